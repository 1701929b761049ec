"""The pages in a headless Chromium: no complaint on the console, no fault for axe-core, links that land."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api import Panda
from tests.serving.servers import Server, running
from tests.store_files import write_turn
from tests.view.browser import AXE, CHROMIUM, Browser, browser
from tests.view.logs import executions, write_log
from tests.view.sites import change_json, write_run

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")

LOOKS = [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]
PATHS = (
    "",
    "?q=laptop",
    "turns/demo/811",
    "turns/demo/813",
    "turns/demo/815",
    "turns/demo/813/files/context.md",
    "memory/demo",
    "sessions/demo",
    "sessions/demo/default",
    "runs",
    "runs/20260201T120000Z-rerun-1",
    "runs/compare/saved/20260201T120000Z-rerun-1",
    "stats/demo",
    "interventions",
)


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    """One browser for all tests."""
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def panda(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Panda:
    """A store of its own with the recorded turns."""
    panda = Panda(tmp_path_factory.mktemp("browser"), recorded, user="demo")
    write_run(panda, {811: {}, 813: {"result": "differs", "different": {"plan.json": "-a\n+b"}}}, planned=1)
    write_log(panda, executions(300))
    return panda


@pytest.fixture(scope="module")
def server(panda: Panda) -> Iterator[Server]:
    """The pages over it, served by the command."""
    with running("view", "--no-open", environ=panda.environ) as served:
        yield served


def faults(page: Browser) -> list[str]:
    """What axe-core finds on the page, anything at all."""
    assert AXE is not None
    page.ask(AXE.read_text(encoding="utf-8") + ";0")
    violations = page.ask(
        "axe.run({resultTypes: ['violations']}).then(r => r.violations.map("
        "v => `${v.impact} ${v.id}: ${v.nodes.map(n => n.target).join(' ')}`))"
    )
    return list(violations)


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_pages_open_without_a_complaint(page: Browser, server: Server, scheme: str, width: int) -> None:
    """In light and dark, on desktop and phone: a silent console, and nothing wider than the screen."""
    page.look(scheme, width)
    for path in PATHS:
        page.complaints.clear()
        page.open(server.url + path)
        assert page.complaints == [], path
        assert page.ask("document.documentElement.scrollWidth <= innerWidth"), path
        assert page.ask("getComputedStyle(document.body).display") == "flex", "the stylesheet is there"


@pytest.mark.skipif(AXE is None, reason="no axe-core: npm install axe-core, and name its folder in NODE_PATH")
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing(page: Browser, server: Server, scheme: str, width: int) -> None:
    """An accessibility check finds no fault, with everything that opens opened."""
    page.look(scheme, width)
    for path in (*PATHS, "nothing"):
        page.open(server.url + path)
        page.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert faults(page) == [], path


def test_a_mark_leads_to_the_words(page: Browser, server: Server) -> None:
    """A click on the mark of an answer brings the quoted words into view."""
    page.look("light", 1280)
    page.open(server.url + "turns/demo/813")
    page.ask("document.querySelector('a.mark').click()")
    page.wait(
        "(() => { const box = document.querySelector(':target mark').getBoundingClientRect();"
        " return box.top >= 0 && box.bottom <= innerHeight; })()"
    )
    assert "availability In Stock" in page.ask("document.querySelector(':target mark').textContent")


def test_keys_go_from_row_to_row(page: Browser, server: Server) -> None:
    """j and k move the focus, Enter opens what has it."""
    page.open(server.url)
    for key in "jjk":
        page.press(key)
    assert page.ask("document.activeElement === document.querySelector('[data-row]')")
    page.press("/")
    assert page.ask("document.activeElement.name") == "q"


def test_the_list_follows_new_turns(page: Browser, server: Server, panda: Panda) -> None:
    """A turn that is saved while the list is open appears in it without a reload."""
    page.open(server.url)
    write_turn(panda.user_directory, 990, query="Is this new?", response="Yes.")
    page.wait("document.querySelector('ol.turns').textContent.includes('Is this new?')")


def test_the_page_of_a_running_turn_follows_it(page: Browser, server: Server, panda: Panda) -> None:
    """While a turn runs its page shows what it writes, and what was opened stays open."""
    path = panda.turn_file(812, "metadata.json")
    saved = json.loads(path.read_text())
    following = {"phase": 3, "round": 0, "attempt": 0}
    change_json(path, status="running", saved_at=None, seal=None, next=following)
    page.open(server.url + "turns/demo/812")
    page.ask("document.querySelector('#section-0').open = true")
    path.write_text(json.dumps({**saved, "query": "How deep exactly?"}))
    page.wait("document.querySelector('h1').textContent === 'How deep exactly?'")
    assert page.ask("document.querySelector('#section-0').open")
    assert not page.ask("document.querySelector('main').hasAttribute('data-live')")


def test_the_page_of_a_value_and_its_faults(page: Browser, server: Server) -> None:
    """The first value of the memory opens without a complaint."""
    page.open(server.url + "memory/demo")
    page.complaints.clear()
    page.ask("document.querySelector('[data-row]').click()")
    page.wait("location.pathname.split('/').length === 4")
    assert page.complaints == []
    assert AXE is None or faults(page) == []


def test_written_pages_open_from_a_disk(page: Browser, panda: Panda) -> None:
    """The files have their style and their links, without a server and without a complaint."""
    site = panda.home / "site"
    assert panda("view", "--out", "site").code == 0
    page.look("light", 1280)
    page.complaints.clear()
    page.open((site / "index.html").as_uri())
    assert page.ask("getComputedStyle(document.body).display") == "flex"
    page.ask("document.querySelector('[data-row]').click()")
    page.wait("document.querySelector('article.turn-page')")
    page.open((site / "turns/demo/813.html").as_uri())
    page.ask("document.querySelector('a.mark').click()")
    page.wait("document.querySelector(':target mark')")
    assert page.complaints == []


def test_pages_without_a_script(page: Browser, server: Server) -> None:
    """With JavaScript switched off the list, its form and a turn are there all the same."""
    page.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(server.url + "?q=laptop")
        html = page.send("DOM.getOuterHTML", nodeId=page.send("DOM.getDocument")["root"]["nodeId"])[
            "outerHTML"
        ]
        assert "Compare RTX 4050 laptops" in html
    finally:
        page.send("Emulation.setScriptExecutionDisabled", value=False)
