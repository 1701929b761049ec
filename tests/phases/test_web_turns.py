"""Whole turns that read pages: what a query about the present leads to, and what a page cannot do."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from panda.phases.evidence import as_options, look_at, standing, tool_lines
from panda.phases.synthesizer import of_named_pages
from panda.runs.replay import simulate
from panda.runs.verdict import judge_turn
from panda.store.layout import Layout
from panda.store.visits import place_visit
from panda.tools.table import run_tool
from tests.builders import NOW, file_of
from tests.script import Pick, Script, offered, pick
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import USER, OneModel, Preferring, Ran, laptop_store, scripted_app
from tests.web.site import PAGES, Site, running_site

LIVE = {
    "query_type": "informational",
    "intent": "commerce",
    "needs_current_prices": True,
    "needs_live_data": True,
    "resolved_query": "",
}
NAME = "Lenovo LOQ 15 Gaming Laptop"
STOCK = f"{NAME}: availability In Stock"
_IN_STOCK = pick("availability In Stock")


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


def run(
    root: Path,
    site: Site,
    query: str,
    script: Script | Preferring,
    *,
    visited: str | None = None,
    down: bool = False,
    store: Callable[[Path], Layout] = laptop_store,
    found: Sequence[tuple[str, str]] = (),
) -> Ran:
    """
    One turn in a project that allows the site, a page of which was visited two days ago; or it is down.

    Searches find the pages that are given as (address, snippet).
    """
    project = root / "project"
    (project / "results").mkdir(parents=True)
    results = [{"url": url, "title": text, "content": text} for url, text in found]
    (project / "results" / "saved.json").write_text(json.dumps({"results": results}), encoding="utf-8")
    settings = f'web_allow = ["{site.place}"]\nsearch_provider = "file:results"\n'
    (project / "panda.toml").write_text(settings, encoding="utf-8")
    layout = store(root / "store")
    writes = isinstance(script, Script)
    model = ScriptedModel(script, writes=writes, scores=not writes)
    app = scripted_app(layout, model, project=project)
    if visited is not None:
        folder = layout.of(USER).turn(1).directory
        before = replace(app.tools.store, clock=lambda: NOW - timedelta(days=2))
        then = replace(app.tools, store=before, turn=1, folder=folder)
        assert run_tool("web.fetch", {"url": visited}, then).error is None
        app.index.rebuild([USER])[USER]  # a visit in a turn that has ended is none that turns look out for
        site.asked.clear()
    if down:
        site.close()
    turn = app.start_turn(query, "chat")
    app.run_turn(turn)
    return Ran(app, turn, None, model)


def node_of(url: str, turn: int) -> str:
    """The node of the first visit of a page in one of ann's turns."""
    return f"visit:{place_visit(Layout(Path('/')).of(USER).turn(turn), url)[0]}"


def asking_again(url: str, answer: str, node_id: str, lines: Pick = _IN_STOCK) -> Script:
    """A model that looks at a page again and answers with one of the tool's lines."""
    return Script(
        analyzer=LIVE,
        retrieval={"relevant": pick("visit:", "turn:")},
        synthesis={"lines": lines},
        planner={"tools": ["web.fetch"], "next_step": "coordinator"},
        coordinator=[
            {"calls": [{"tool": "web.fetch", "arguments": {"url": url}}]},
            {"calls": [{"tool": "done"}]},
        ],
        answer={"items": [{"text": answer, "node_ids": [node_id]}]},
    )


def test_stock_is_looked_up_again(tmp_path: Path, site: Site) -> None:
    """With the site up the visit is refreshed by a conditional request, and the answer cites the new one."""
    url = site.add_file("/loq", "shop_json_ld.html", {"ETag": '"1"'})
    ran = run(
        tmp_path,
        site,
        "Is the Lenovo LOQ still in stock?",
        asking_again(url, STOCK, node_of(url, 3)),
        visited=url,
    )
    step = file_of(ran.folder, "steps/step_01.json")
    assert (step["status"], step["data"]["from"]) == ("success", "unchanged")
    assert site.asked[-1].headers["if-none-match"] == '"1"'
    assert ran.meta(5)["node_ids"] == [f"visit:{step['data']['visit_id']}"]
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_site_down(tmp_path: Path, site: Site) -> None:
    """With the site down the answer says when it was last seen; the bare line is no more on offer."""
    url = site.add_file("/loq", "shop_json_ld.html", {"ETag": '"1"'})
    seen = f"{STOCK} (last seen 2026-01-02)"
    script = asking_again(url, seen, node_of(url, 1))
    ran = run(tmp_path, site, "Is the Lenovo LOQ still in stock?", script, visited=url, down=True)
    assert file_of(ran.folder, "steps/step_01.json")["status"] == "error"
    told = ran.response.split("\n\n")
    assert told[0].startswith("Not looked up: web.fetch: no connection to 127.0.0.1")
    assert told[1] == f"{seen} [1]"
    (asked, *_) = ran.asked("answer")
    assert seen in asked.text
    assert STOCK not in offered(asked, "answer").values()
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_a_page_gives_no_orders(tmp_path: Path, site: Site) -> None:
    """A page that orders tools, sections and files gives its text, and nothing of what it orders happens."""
    url = site.add_file("/lamp", "attack.html")
    line = "Lamp L2: price $19.00"
    script = Script(
        retrieval={"relevant": []},
        synthesis={"lines": []},
        planner={"tools": ["web.fetch"], "next_step": "coordinator"},
        coordinator=[
            {"calls": [{"tool": "web.fetch", "arguments": {"url": url}}]},
            {"calls": [{"tool": "done"}]},
        ],
        answer={"items": [{"text": line, "node_ids": [node_of(url, 3)]}]},
    )
    ran = run(tmp_path, site, f"What does the lamp at {url} cost?", script)
    text = ran.folder.read_text("context.md")
    assert re.findall(r"(?m)^## (\d)\.", text) == ["0", "1", "2", "3", "4", "5", "6"]
    assert [step.tool for step in ran.turn.steps()] == ["web.fetch"]
    assert site.paths() == ["/lamp"]
    assert not ran.folder.has("staged_memory.json")
    assert "$500-800" not in ran.response
    assert ran.meta(6)["verdict"] == "APPROVE"
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def two_shops(site: Site) -> tuple[tuple[str, str], tuple[str, str]]:
    """Two shops that sell the same laptop at different prices, as a search finds them."""
    page = (PAGES / "shop_json_ld.html").read_text(encoding="utf-8")
    north, harbour = site.add("/north", page), site.add("/harbour", page.replace("697.00", "649.00"))
    return (north, "Lenovo LOQ 15 for $697.00"), (harbour, "Lenovo LOQ 15 for $649.00")


def researching(**replies: Any) -> Script:
    """A model that searches the web once and answers nothing of its own."""
    given: dict[str, Any] = {
        "analyzer": {**LIVE, "needs_live_data": False},
        "retrieval": {"relevant": []},
        "synthesis": {"lines": []},
        "planner": {"tools": ["internet.research"], "next_step": "coordinator"},
        "coordinator": [
            {"calls": [{"tool": "internet.research", "arguments": {"query": "price of the Lenovo LOQ 15"}}]},
            {"calls": [{"tool": "done"}]},
        ],
        "answer": {"items": []},
    }
    return Script(**{**given, **replies})


def test_sources_that_disagree(tmp_path: Path, site: Site) -> None:
    """Prices that differ are both in research.json and both in the answer, and a replay gives the same."""
    shops = two_shops(site)
    ran = run(tmp_path, site, "Search the web: what does the Lenovo LOQ 15 cost?", researching(), found=shops)
    told = {one["claim"] for one in file_of(ran.folder, "research.json")["claims"]}
    assert {f"{NAME}: price $697.00", f"{NAME}: price $649.00"} <= told
    (north, _), (harbour, _) = shops
    both = (f"$697.00 ({north}) or $649.00 ({harbour})", f"$649.00 ({harbour}) or $697.00 ({north})")
    assert ran.response.startswith(tuple(f"{NAME}: price {one}; the sources disagree [1]" for one in both))
    assert "673" not in ran.response
    assert ran.metadata.status == "approved"
    assert ran.problems == []
    asked = len(site.asked)
    assert judge_turn(ran.folder.paths.directory) == []
    again = simulate(
        ran.app.settings, ran.layout, OneModel(ran.model), ran.turn.turn, work=ran.layout.root.parent
    )
    assert (again.result, again.misses, again.different) == ("same", (), {})
    assert len(site.asked) == asked


def test_research_while_a_shop_is_away(tmp_path: Path, site: Site) -> None:
    """What an earlier visit said of a page that cannot be had is told with its date, nothing bare."""
    url = site.add_file("/loq", "shop_json_ld.html")
    found = [(url, "Lenovo LOQ 15 Gaming Laptop in stock")]
    query = "Search for the Lenovo LOQ."
    ran = run(tmp_path, site, query, researching(), visited=url, down=True, found=found)
    (step,) = ran.turn.steps()
    assert step.status == "error"
    texts = [claim.text for claim in step.claims]
    assert f"{NAME}: price $697.00 (last seen 2026-01-02)" in texts
    assert all(text.endswith("(last seen 2026-01-02)") for text in texts)


def test_a_page_that_the_query_names(tmp_path: Path, site: Site) -> None:
    """It is read whatever tool seems likeliest, and quoted; a page of the same server says nothing to it."""
    url = site.add("/tides.html", "<h1>Tides</h1><p>The harbour floods at spring tides, by 2 metres.</p>")
    site.add_file("/loq", "shop_json_ld.html")
    model = Preferring("memory.query", "floods at spring tides")
    query = f"What does {url} say about the harbour?"
    ran = run(tmp_path, site, query, model, visited=f"{site.root}/loq")
    assert file_of(ran.folder, "plan.json")["tools"][0] == "web.fetch"
    assert ran.turn.steps()[0].arguments == {"url": url}
    assert ran.response.startswith("The harbour floods at spring tides, by 2 metres. [1]")
    assert ran.metadata.status == "approved"


def test_the_planned_tool_is_tried(tmp_path: Path, site: Site) -> None:
    """A search that is planned is made, also where a page that was looked at again would do."""
    url = site.add_file("/loq", "shop_json_ld.html")
    shops = two_shops(site)
    model = Preferring("internet.research", "Lenovo LOQ 15 Gaming Laptop: price", "current")
    query = "What is the current price of the Lenovo LOQ 15? Search the web."
    ran = run(tmp_path, site, query, model, visited=url, found=shops)
    assert file_of(ran.folder, "plan.json")["tools"][0] == "internet.research"
    assert "internet.research" in [step.tool for step in ran.turn.steps()]


def test_more_pages_than_calls(tmp_path: Path, site: Site) -> None:
    """Of many pages that a query names the first are read; the others neither halt the turn nor are read."""
    urls = [site.add(f"/{n}", f"<h1>Tide {n}</h1><p>The harbour floods at tide {n}.</p>") for n in range(5)]
    query = f"What do {' and '.join(urls)} say about the harbour?"
    ran = run(tmp_path, site, query, Preferring("web.fetch", "floods at tide 1"))
    assert [step.arguments["url"] for step in ran.turn.steps()][:3] == urls[:3]
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_lines_of_a_named_page_count_for_more(tmp_path: Path, site: Site) -> None:
    """They are on offer by themselves as well, without the page's own address."""
    url = site.add("/tides.html", "<h1>Tides</h1><p>The harbour floods at spring tides, by 2 metres.</p>")
    ran = run(tmp_path, site, f"What does {url} say about floods?", Preferring("memory.query"))
    lines = tool_lines(ran.turn, ran.app.gatherer.reader)
    spans = as_options(standing(look_at(ran.turn, lines, quotes=False)))
    named = {span.text for span in of_named_pages(ran.turn, spans)}
    assert named == {"The harbour floods at spring tides, by 2 metres."}
    assert not any("url http" in span.text for span in spans)
