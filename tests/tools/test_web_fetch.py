"""web.fetch: visits written, refreshed and quoted."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.api import ScriptedPanda
from tests.script import Script
from tests.store_files import NOW, render_instant
from tests.web.site import Site, running_site

STAMPED = {"ETag": '"1"'}


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


@pytest.fixture
def ann(ann: ScriptedPanda, site: Site) -> ScriptedPanda:
    """Ann may read the site."""
    ann.environ["PANDA_WEB_ALLOW"] = site.place
    return ann


def fetch(
    ann: ScriptedPanda, *urls: str, query: str = "Is it in stock?", days: float = 0, **more: Any
) -> Any:
    """The step of the only call, or the steps of several, with which a turn reads pages."""
    calls = [{"tool": "web.fetch", "arguments": {"url": url, **more}} for url in urls]
    script = Script(
        retrieval={"relevant": []},
        synthesis={"lines": []},
        planner={"tools": [], "next_step": "coordinator"},
        coordinator=[{"calls": calls}, {"tool": "done"}],
        answer={"items": []},
    )
    steps = ann.turn(query, script=script, PANDA_NOW=render_instant(NOW + timedelta(days=days))).steps
    assert len(steps) == len(calls)
    return steps[0] if len(steps) == 1 else steps


def texts_of(step: Mapping[str, Any]) -> list[str]:
    """The claims of a step."""
    return [claim["text"] for claim in step["claims"]]


def test_visit_is_written(ann: ScriptedPanda, site: Site) -> None:
    """A page becomes a visit of the turn: manifest, content and data; its lines are claims that cite it."""
    step = fetch(ann, site.add_file("/loq", "shop_json_ld.html", STAMPED))
    assert step["error"] is None
    assert (step["data"]["from"], step["data"]["page_type"]) == ("server", "product")
    (directory,) = ann.turn_file(3, "webpage_cache").iterdir()
    assert {path.name for path in directory.iterdir()} == {"manifest.json", "content.md", "extracted.json"}
    assert json.loads((directory / "extracted.json").read_text())["price"] == "$697.00"
    assert json.loads((directory / "manifest.json").read_text())["extraction_quality"] == 0.98
    assert {claim["node_id"] for claim in step["claims"]} == {f"visit:{step['data']['visit_id']}"}
    assert "Lenovo LOQ 15 Gaming Laptop: availability In Stock" in texts_of(step)
    assert step["artifacts"][0] == f"webpage_cache/{directory.name}/content.md"
    assert ann.problems() == []


def test_second_visit_is_conditional(ann: ScriptedPanda, site: Site) -> None:
    """An unchanged page is not sent again; its new visit has a new id and says what it refreshes."""
    url = site.add_file("/loq", "shop_json_ld.html", STAMPED)
    first = fetch(ann, url)["data"]
    second = fetch(ann, url, days=1)["data"]
    assert site.asked[-1].headers["if-none-match"] == '"1"'
    assert second["from"] == "unchanged"
    assert second["refreshes"] == first["visit_id"] != second["visit_id"]
    assert second["visited_at"] == "2026-01-05T14:30:00Z"
    assert second["fields"] == first["fields"]


def test_stamps_go_only_to_the_address_that_gave_them(ann: ScriptedPanda, site: Site) -> None:
    """An address that redirects to the page gets no stamps."""
    site.add_file("/end", "shop_json_ld.html", STAMPED)
    url = site.add("/a", status=301, headers={"Location": "/end"})
    fetch(ann, url)
    asked = len(site.asked)
    fetch(ann, url, days=1)
    stamped = {asked.path: "if-none-match" in asked.headers for asked in site.asked[asked:]}
    assert (stamped["/a"], stamped["/end"]) == (False, True)


def test_changed_page(ann: ScriptedPanda, site: Site) -> None:
    """A page that has changed is read anew."""
    url = site.add_file("/p", "shop_plain.html", STAMPED)
    first = fetch(ann, url)["data"]
    site.add_file("/p", "shop_split_price.html", {"ETag": '"2"'})
    second = fetch(ann, url)["data"]
    assert (second["from"], second["fields"]["price"]) == ("server", "$189.95")
    assert second["refreshes"] == first["visit_id"]


def test_cached_answer_by_age(ann: ScriptedPanda, site: Site) -> None:
    """A visit that is young enough is used as it is; an older one is not."""
    url = site.add_file("/p", "shop_plain.html")
    first = fetch(ann, url)["data"]
    asked = len(site.asked)
    again = fetch(ann, url, days=0.02, max_age_minutes=60)["data"]
    assert (again["from"], again["visit_id"]) == ("cache", first["visit_id"])
    assert len(site.asked) == asked
    assert fetch(ann, url, days=1, max_age_minutes=60)["data"]["from"] == "server"


def test_twice_in_a_turn(ann: ScriptedPanda, site: Site) -> None:
    """Two visits of one page in one turn are two visits."""
    url = site.add_file("/p", "shop_plain.html")
    steps = fetch(ann, url, f"{url}#reviews")
    assert [step["data"]["title"] for step in steps] == ["Garden Spade Pro"] * 2
    assert len({step["data"]["visit_id"] for step in steps}) == 2
    assert len(list(ann.turn_file(3, "webpage_cache").iterdir())) == 2
    assert ann.problems() == []


def test_site_down(ann: ScriptedPanda, site: Site) -> None:
    """Of a page that cannot be had it is told what it said when it was last seen."""
    url = site.add_file("/loq", "shop_json_ld.html", STAMPED)
    fetch(ann, url)
    site.close()
    step = fetch(ann, url, days=90)
    assert step["status"] == "error"
    assert "no connection" in step["error"]
    assert "last seen 2026-01-04T14:30:00Z" in step["error"]
    assert "Lenovo LOQ 15 Gaming Laptop: availability In Stock (last seen 2026-01-04)" in texts_of(step)
    unknown = fetch(ann, f"{site.root}/other")
    assert (unknown["status"], unknown["claims"]) == ("error", [])


def test_article_and_table_are_quotable(ann: ScriptedPanda, site: Site) -> None:
    """The sentences of an article and the rows of a table are lines of the visit."""
    url = site.add_file("/tides", "article.html")
    step = fetch(ann, url, query="How high is the tide in the Bay of Fundy?")
    assert any("reaches 16 metres" in text for text in texts_of(step))
    step = fetch(ann, site.add_file("/ferry", "table.html"), query="When does the Borealis leave?")
    assert "Turku to Stockholm: Ship Borealis, Leaves 20:15, Arrives 06:30, Fare €38" in texts_of(step)


def test_refused(ann: ScriptedPanda) -> None:
    """Other protocols and addresses of this machine's network are errors, not visits."""
    urls = ("ftp://a.example/x", "http://169.254.169.254/latest/meta-data", "javascript:1")
    for step in fetch(ann, *urls):
        assert (step["status"], step["claims"]) == ("error", [])
