"""internet.research over saved result pages and a site of our own."""

import json
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.api import ScriptedPanda, Turn
from tests.script import Script, pick
from tests.web.site import PAGES, Site, running_site

QUERY = "How much does the Lenovo LOQ 15 cost?"
DONE = {"tool": "done"}


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


@pytest.fixture
def ann(ann: ScriptedPanda, site: Site) -> ScriptedPanda:
    """Ann may read the site, and searches what she has saved."""
    (ann.home / "results").mkdir()
    ann.environ |= {"PANDA_WEB_ALLOW": site.place, "PANDA_SEARCH_PROVIDER": f"file:{ann.home / 'results'}"}
    return ann


def save_results(ann: ScriptedPanda, *results: tuple[str, str, str]) -> None:
    """Save the results of one search: (url, title, snippet) each."""
    listed = [{"url": url, "title": title, "content": text} for url, title, text in results]
    ann.write("results/saved.json", json.dumps({"query": QUERY, "results": listed}))


def two_shops(site: Site, ann: ScriptedPanda) -> tuple[str, str]:
    """Two shops that sell the same laptop at different prices, and a page about something else."""
    page = (PAGES / "shop_json_ld.html").read_text(encoding="utf-8")
    first = site.add("/north/loq", page)
    second = site.add("/harbour/loq", page.replace("697.00", "649.00"))
    save_results(
        ann,
        (first, "Lenovo LOQ 15 Gaming Laptop", "Lenovo LOQ 15 for $697.00, in stock"),
        (second, "Lenovo LOQ 15 at Harbour", "The Lenovo LOQ 15 costs $649.00"),
        (site.add_file("/tides", "article.html"), "How tides work", "The sea rises"),
    )
    return first, second


def research(ann: ScriptedPanda, *queries: str, **replies: Any) -> Turn:
    """A turn that researches each query, one a round."""
    calls = [
        {"calls": [{"tool": "internet.research", "arguments": {"query": query}}]}
        for query in queries or (QUERY,)
    ]
    usual = {
        "planner": {"tools": [], "next_step": "coordinator"},
        "coordinator": [*calls, DONE],
        "worth_a_look": {"results": pick("LOQ")},
        "answer": {"items": []},
    }
    return ann.turn(QUERY, script=Script(**{**usual, **replies}))


def test_sources_that_disagree(site: Site, ann: ScriptedPanda) -> None:
    """Both prices stand in research.json with their visits; one claim shows both, and nothing is averaged."""
    first, second = two_shops(site, ann)
    turn = research(ann)
    (step,) = turn.steps
    assert step["error"] is None
    value = turn.file("research.json")
    prices = {claim["claim"]: claim["visit_id"] for claim in value["claims"] if "price" in claim["claim"]}
    assert {text.rpartition(" ")[2] for text in prices} == {"$697.00", "$649.00"}
    assert set(prices.values()) == set(value["webpage_cache"])
    assert (value["created_at"], value["expires_at"]) == ("2026-01-04T14:30:00Z", "2026-01-04T20:30:00Z")
    assert value["quality_score"] == 0.67
    both = f"$649.00 ({second}) or $697.00 ({first})"
    text = f"Lenovo LOQ 15 Gaming Laptop: price {both}; the sources disagree"
    assert [conflict["text"] for conflict in value["conflicts"]] == [text]
    texts = [claim["text"] for claim in step["claims"]]
    assert texts[0] == text
    assert not [claim for claim in texts if claim.endswith(("price $697.00", "price $649.00"))]
    assert "673" not in turn.text("research.md")
    assert "/tides" not in site.paths()
    assert ann.problems() == []
    later = ann.turn(QUERY, script=Script(retrieval={"relevant": pick("research:")}))
    prompts = "\n".join(request.text for request in later.asked("synthesis"))
    assert text in prompts
    assert "price $697.00 (" not in prompts.replace(text, "")


def test_a_report_that_fails_loses_nothing(site: Site, ann: ScriptedPanda) -> None:
    """If the model gives no valid report, the findings stand with what code counts of them."""
    two_shops(site, ann)
    turn = research(ann, summary=["nonsense", "nonsense", "nonsense", {"summary": "Done.", "topics": []}])
    (step,) = turn.steps
    assert step["error"] is None
    assert any("$649.00" in claim["text"] for claim in step["claims"])
    assert turn.file("research.json")["summary"]


def test_a_second_research_in_a_turn_is_refused(site: Site, ann: ScriptedPanda) -> None:
    """And one that was done before its step was written, as before a kill, is not done again."""
    two_shops(site, ann)
    first, other = research(ann, QUERY, "tea").steps
    assert "already" in other["error"]
    call = {"calls": [{"tool": "internet.research", "arguments": {"query": QUERY}}]}
    halted = research(ann, coordinator=[call, "nonsense"])
    claims = halted.steps[0]["claims"]
    asked = len(site.asked)
    ann.turn_file(4, "steps/step_01.json").unlink()
    resumed = ann.resume(4, script=Script(coordinator=[call, DONE], answer={"items": []}))
    assert halted.code == 20
    assert [step["claims"] for step in resumed.steps] == [claims]
    assert len(site.asked) == asked
    assert first["error"] is None


def test_nothing_found(site: Site, ann: ScriptedPanda) -> None:
    """Without usable pages the result is an error that says what could not be read."""
    save_results(ann, (f"{site.root}/gone", "Lenovo LOQ 15 cost", "Lenovo LOQ 15 for $1"))
    (step,) = research(ann).steps
    assert step["status"] == "error"
    assert "HTTP 404" in step["error"]


def test_without_a_provider(ann: ScriptedPanda) -> None:
    """Without a search provider the tool says how to configure one, and the planner is told."""
    del ann.environ["PANDA_SEARCH_PROVIDER"]
    turn = research(ann)
    assert "no search provider" in turn.asked("planner")[0].text
    assert turn.steps == []


class Searx(Site):
    """A SearXNG server that has one page, and a result that has no address."""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer any search."""
        if handler.path.startswith("/search?"):
            results = [{"url": f"{self.root}/tea", "title": " Lenovo LOQ 15 ", "content": "b"}, {"url": "x"}]
            headers = {"Content-Type": "application/json"}
            self.add(handler.path, json.dumps({"results": results}), headers=headers)
        super().answer(handler)


def test_searxng(ann: ScriptedPanda) -> None:
    """A SearXNG server is asked by its JSON API; what has no address is no result."""
    server = Searx()
    try:
        server.add_file("/tea", "shop_json_ld.html")
        ann.environ |= {
            "PANDA_WEB_ALLOW": server.place,
            "PANDA_SEARCH_PROVIDER": f"searxng:{server.root}",
        }
        (step,) = research(ann).steps
        *searches, page = server.paths()
    finally:
        server.close()
    assert step["error"] is None
    assert page == "/tea"
    assert searches
    assert all("format=json" in search for search in searches)


def test_saved_results_are_regular_files_of_their_directory(
    site: Site, ann: ScriptedPanda, tmp_path: Path
) -> None:
    """Links that lead out, pipes, devices and large files are left out with a reason, the rest is read."""
    two_shops(site, ann)
    results = ann.home / "results"
    outside = tmp_path / "outside"
    outside.mkdir()
    (results / "saved.json").rename(results / "kept.txt")
    (results / "saved.json").symlink_to("kept.txt")
    leaked = json.dumps({"results": [{"url": site.add("/leak", "x"), "title": f"Lenovo LOQ 15 {QUERY}"}]})
    (outside / "leak.json").write_text(leaked, encoding="utf-8")
    (results / "leak.json").symlink_to(outside / "leak.json")
    (results / "zero.json").symlink_to("/dev/zero")
    (results / "loop.json").symlink_to("loop.json")
    os.mkfifo(results / "pipe.html")
    (results / "directory.html").mkdir()
    with (results / "large.json").open("wb") as file:
        file.truncate(3_000_000_000)
    turn = research(ann)
    (step,) = turn.steps
    assert step["error"] is None
    assert any("$649.00" in claim["text"] for claim in step["claims"])
    assert "/leak" not in site.paths()
    for name in ("leak.json", "zero.json", "loop.json", "pipe.html", "directory.html", "large.json"):
        assert f"{results / name} is left out" in turn.err


def test_an_address_that_is_none_is_no_result(site: Site, ann: ScriptedPanda) -> None:
    """A result whose address has a bracket without its other is passed over."""
    two_shops(site, ann)
    broken = {"results": [{"url": "http://[::1", "title": "Lenovo LOQ 15", "content": "$1.00"}]}
    ann.write("results/broken.json", json.dumps(broken))
    assert research(ann).steps[0]["error"] is None


def test_outside_a_turn(ann: ScriptedPanda) -> None:
    """A research is kept in the directory of a turn, so `panda tool run` says how to order it in one."""
    ended = ann("tool", "run", "internet.research", "--args", json.dumps({"query": QUERY}))
    assert ended.code == 3
    assert "a research needs a turn" in ended.err
    assert "panda turn" in ended.err
