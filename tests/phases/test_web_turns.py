"""Whole turns that read pages: what a query about the present leads to, and what a page cannot do."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from panda.models.scripted import ScriptedModel
from panda.storage.layout import Layout
from panda.storage.visits import place_visit
from panda.tools.table import run_tool
from tests.builders import NOW
from tests.scripted_turns import USER, Ran, Script, laptop_store, pick, scripted_app
from tests.web.site import Site, running_site

LIVE = {
    "query_type": "informational",
    "intent": "commerce",
    "needs_current_prices": True,
    "needs_live_data": True,
    "resolved_query": "",
}
STOCK = "Lenovo LOQ 15 Gaming Laptop: availability In Stock"


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


def run(
    root: Path, site: Site, query: str, script: Script, *, visited: str | None = None, down: bool = False
) -> Ran:
    """One turn in a project that allows the site, a page of which was visited two days ago; or it is down."""
    project = root / "project"
    project.mkdir()
    (project / "panda.toml").write_text(f'web_allow = ["{site.place}"]\n', encoding="utf-8")
    layout = laptop_store(root / "store")
    model = ScriptedModel(script, writes=True, scores=False)
    app = scripted_app(layout, model, project=project)
    if visited is not None:
        folder = layout.turn(USER, 1).directory
        then = replace(app.tools, turn=1, folder=folder, clock=lambda: NOW - timedelta(days=2))
        assert run_tool("web.fetch", {"url": visited}, then).error is None
        site.asked.clear()
    if down:
        site.close()
    turn = app.start_turn(query, "chat")
    app.run_turn(turn)
    return Ran(app, turn, None, model)


def node_of(url: str, turn: int) -> str:
    """The node of the first visit of a page in one of ann's turns."""
    return f"visit:{place_visit(Layout(Path('/')).turn(USER, turn), url)[0]}"


def asking_again(url: str, answer: str, node_id: str) -> Script:
    """A model that looks at a page again and answers with one of the tool's lines."""
    return Script(
        analyzer=LIVE,
        retrieval={"relevant": pick("visit:")},
        synthesis={"lines": pick("availability In Stock")},
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
    step = ran.folder.read_json("steps/step_01.json")
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
    assert ran.folder.read_json("steps/step_01.json")["status"] == "error"
    assert ran.response.startswith(f"{seen} [1]")
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
    assert [step["tool"] for step in ran.turn.steps()] == ["web.fetch"]
    assert site.paths() == ["/lamp"]
    assert not ran.folder.has("staged_memory.json")
    assert "$500-800" not in ran.response
    assert ran.meta(6)["verdict"] == "APPROVE"
    assert ran.metadata.status == "approved"
    assert ran.problems == []
