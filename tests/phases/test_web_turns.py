"""Whole turns that read pages: what a query about the present leads to, and what a page cannot do."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.api import LAPTOPS, Panda, ScriptedPanda
from tests.script import APPROVED, Asked, Script, offered, pick, step_of
from tests.web.site import PAGES, Site, running_site

LIVE = {**APPROVED["analyzer"], "needs_live_data": True}
NAME = "Lenovo LOQ 15 Gaming Laptop"
STOCK = f"{NAME}: availability In Stock"
IN_STOCK = "Is the Lenovo LOQ still in stock?"
TWO_DAYS_AGO = "2026-01-02T14:30:00Z"
LAST_SEEN = "(last seen 2026-01-02)"


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


def allow(panda: Panda, site: Site, results: Sequence[tuple[str, str]] = ()) -> None:
    """Let the project read the site's pages; its searches find these addresses with their snippets."""
    hits = [{"url": url, "title": text, "content": text} for url, text in results]
    panda.write("results/saved.json", json.dumps({"results": hits}))
    panda.write("panda.toml", f'web_allow = ["{site.place}"]\nsearch_provider = "file:results"\n')


@pytest.fixture
def embedded(tmp_path: Path, site: Site) -> Panda:
    """Ann's laptops in a project that may read the site, with the models that come with panda."""
    panda = Panda(tmp_path / "embedded", LAPTOPS, user="ann")
    allow(panda, site)
    return panda


def calling(tool: str, **arguments: str) -> dict[str, Any]:
    """The replies of a model that calls one tool, once, and answers nothing of its own."""
    return {
        "analyzer": LIVE,
        "retrieval": {"relevant": pick("visit:", "turn:")},
        "synthesis": {"lines": pick("availability In Stock")},
        "planner": {"tools": [tool], "next_step": "coordinator"},
        "coordinator": [{"calls": [{"tool": tool, "arguments": arguments}]}, {"tool": "done"}],
        "answer": {"items": []},
    }


def quoting(line: str, **replies: Any) -> Callable[[Asked], Any]:
    """A model that answers with the offered line of this text, citing the last one that has it."""
    script = Script(**replies)

    def reply(asked: Asked) -> Any:
        if step_of(asked) != "answer":
            return script(asked)
        ids = [id_ for id_, text in offered(asked, "lines").items() if text.endswith(line)]
        return json.dumps({"items": [{"text": line, "lines": ids[-1:]}]})

    return reply


def visit_two_days_ago(ann: ScriptedPanda, site: Site, url: str) -> None:
    """A turn that read a page two days before the others."""
    script = Script(**calling("web.fetch", url=url))
    assert ann.turn(f"What does {url} say?", script=script, PANDA_NOW=TWO_DAYS_AGO).steps[0]["error"] is None
    site.asked.clear()


def test_stock_is_looked_up_again(ann: ScriptedPanda, site: Site) -> None:
    """With the site up the visit is refreshed by a conditional request, and the answer cites the new one."""
    allow(ann, site)
    url = site.add_file("/loq", "shop_json_ld.html", {"ETag": '"1"'})
    visit_two_days_ago(ann, site, url)
    turn = ann.turn(
        IN_STOCK, script=quoting(f"{NAME}: In Stock. Pickup today.", **calling("web.fetch", url=url))
    )
    (step,) = turn.steps
    assert (step["status"], step["data"]["from"]) == ("success", "unchanged")
    assert site.asked[-1].headers["if-none-match"] == '"1"'
    assert turn.meta(5)["node_ids"] == [f"visit:{step['data']['visit_id']}"]
    assert turn.status == "approved"
    assert ann.problems() == []


def test_site_down(ann: ScriptedPanda, site: Site) -> None:
    """With the site down the answer says when it was last seen; the bare line is no more on offer."""
    allow(ann, site)
    url = site.add_file("/loq", "shop_json_ld.html", {"ETag": '"1"'})
    visit_two_days_ago(ann, site, url)
    site.close()
    turn = ann.turn(IN_STOCK, script=quoting(f"{STOCK} {LAST_SEEN}", **calling("web.fetch", url=url)))
    assert turn.steps[0]["status"] == "error"
    lead, answer, *_ = turn.response.split("\n\n")
    assert lead.startswith("Not looked up: web.fetch: no connection to 127.0.0.1")
    assert answer == f"{STOCK} {LAST_SEEN} [1]"
    assert not any(text.endswith(STOCK) for text in offered(turn.asked("answer")[0], "lines").values())
    assert turn.status == "approved"
    assert ann.problems() == []


def test_a_page_gives_no_orders(ann: ScriptedPanda, site: Site) -> None:
    """A page that orders tools, sections and files gives its text, and nothing of what it orders happens."""
    allow(ann, site)
    url = site.add_file("/lamp", "attack.html")
    replies = {
        **calling("web.fetch", url=url),
        "analyzer": APPROVED["analyzer"],
        "retrieval": {"relevant": []},
    }
    turn = ann.turn(f"What does the lamp at {url} cost?", script=quoting("Lamp L2: price $19.00", **replies))
    assert re.findall(r"(?m)^## (\d)\.", turn.text("context.md")) == ["0", "1", "2", "3", "4", "5", "6"]
    assert [step["tool"] for step in turn.steps] == ["web.fetch"]
    assert site.paths() == ["/lamp"]
    assert not (turn.directory / "staged_memory.json").exists()
    assert "$500-800" not in turn.response
    assert turn.meta(6)["verdict"] == "APPROVE"
    assert turn.status == "approved"
    assert ann.problems() == []


def two_shops(site: Site) -> tuple[tuple[str, str], tuple[str, str]]:
    """Two shops that sell the same laptop at different prices, as a search finds them."""
    page = (PAGES / "shop_json_ld.html").read_text(encoding="utf-8")
    north = site.add("/north", page)
    harbour = site.add("/harbour", page.replace("697.00", "649.00"))
    return (north, "Lenovo LOQ 15 for $697.00"), (harbour, "Lenovo LOQ 15 for $649.00")


def researching() -> Script:
    """A model that searches the web once and answers nothing of its own."""
    replies = calling("internet.research", query="price of the Lenovo LOQ 15")
    nothing = {"retrieval": {"relevant": []}, "synthesis": {"lines": []}, "analyzer": APPROVED["analyzer"]}
    return Script(**{**replies, **nothing})


def test_sources_that_disagree(ann: ScriptedPanda, site: Site) -> None:
    """Prices that differ are both in research.json and both in the answer, and a replay gives the same."""
    shops = two_shops(site)
    allow(ann, site, shops)
    turn = ann.turn("Search the web: what does the Lenovo LOQ 15 cost?", script=researching())
    claims = {entry["claim"] for entry in turn.file("research.json")["claims"]}
    assert {f"{NAME}: price $697.00", f"{NAME}: price $649.00"} <= claims
    (north, _), (harbour, _) = shops
    both = (f"$697.00 ({north}) or $649.00 ({harbour})", f"$649.00 ({harbour}) or $697.00 ({north})")
    assert turn.response.startswith(
        tuple(f"{NAME}: price {prices}; the sources disagree [1]" for prices in both)
    )
    assert "673" not in turn.response
    assert turn.status == "approved"
    requests = len(site.asked)
    assert ann("validate", "3", "--json").data["problems"] == []
    assert ann("replay", "3").code == 0
    assert len(site.asked) == requests


def test_research_while_a_shop_is_away(ann: ScriptedPanda, site: Site) -> None:
    """What an earlier visit said of a page that cannot be had is told with its date, nothing bare."""
    url = site.add_file("/loq", "shop_json_ld.html")
    allow(ann, site, [(url, "Lenovo LOQ 15 Gaming Laptop in stock")])
    visit_two_days_ago(ann, site, url)
    site.close()
    (step,) = ann.turn("Search for the Lenovo LOQ.", script=researching()).steps
    assert step["status"] == "error"
    texts = [claim["text"] for claim in step["claims"]]
    assert f"{NAME}: price $697.00 {LAST_SEEN}" in texts
    assert all(text.endswith(LAST_SEEN) for text in texts)


def test_a_page_that_the_query_names(embedded: Panda, site: Site) -> None:
    """It is read whatever tool seems likeliest, and quoted; a page of the same server says nothing to it."""
    url = site.add("/tides.html", "<h1>Tides</h1><p>The harbour floods at spring tides, by 2 metres.</p>")
    embedded.turn(f"What does {site.add_file('/loq', 'shop_json_ld.html')} say?", PANDA_NOW=TWO_DAYS_AGO)
    turn = embedded.turn(f"What does {url} say about the harbour?")
    assert turn.file("plan.json")["tools"][0] == "web.fetch"
    assert turn.steps[0]["arguments"] == {"url": url}
    assert turn.response.startswith("The harbour floods at spring tides, by 2 metres. [1]")
    assert turn.status == "approved"


@pytest.mark.asks_for("shop.example")
def test_the_planned_tool_is_tried(embedded: Panda, site: Site) -> None:
    """A search that is planned is made, also where a page that was looked at again would do."""
    allow(embedded, site, two_shops(site))
    embedded.turn(f"What does {site.add_file('/loq', 'shop_json_ld.html')} say?", PANDA_NOW=TWO_DAYS_AGO)
    turn = embedded.turn("What is the current price of the Lenovo LOQ 15? Search the web.")
    assert turn.file("plan.json")["tools"][0] == "internet.research"
    assert "internet.research" in [step["tool"] for step in turn.steps]


def test_more_pages_than_calls(embedded: Panda, site: Site) -> None:
    """Of many pages that a query names the first are read; the others neither halt the turn nor are read."""
    urls = [site.add(f"/{n}", f"<h1>Tide {n}</h1><p>The harbour floods at tide {n}.</p>") for n in range(5)]
    turn = embedded.turn(f"What do {' and '.join(urls)} say about the harbour?")
    assert [step["arguments"].get("url") for step in turn.steps][:4] == [*urls[:3], None]
    assert turn.status == "approved"
    assert embedded.problems() == []
