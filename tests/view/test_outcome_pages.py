"""What pages say of a turn's outcome: of the turn itself, in lists, of sessions and of runs."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.api import Panda, open_pages
from tests.batches.commands import begin_batch, item
from tests.view.browser import CHROMIUM, browser
from tests.view.sites import Html, assert_plain, page_words

UNSURE_QUERY = "How much does the Lenovo LOQ 15 cost?"
FLIGHT_QUERY = "When does the flight to Lisbon leave?"
NOTE = "# Garden\n\nThe tomatoes are watered on Monday.\n\nThe shed key hangs behind the door.\n"


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store whose notes have nothing to do with UNSURE_QUERY, and a turn that asked it."""
    panda = Panda(tmp_path / "project", user="ann", PANDA_NOW="2026-02-01T12:05:00Z")
    panda.write("store/users/ann/knowledge/garden.md", NOTE)
    panda.write("store/users/ann/knowledge/trip.md", "# Trip\n\nThe flight to Lisbon leaves at 9:40.\n")
    assert panda.turn(UNSURE_QUERY, "--session", "talk").data["outcome"] == "unsure"
    return panda


@pytest.fixture
def pages(panda: Panda) -> TestClient:
    """The pages over that store."""
    return open_pages(panda)


def test_the_page_of_an_unsure_turn_shows_what_is_closest(panda: Panda, pages: TestClient) -> None:
    """Up to three passages, the best line of each marked, each with a link to its place in its source."""
    closest = panda.json("show", "1", "--why")["closest"]
    html = pages.get("/turns/ann/1").text
    assert_plain(html)
    words = page_words(html)
    assert "Nothing surely answers this. Closest:" in words
    assert "approved" not in words.partition("The document")[0].lower()
    listed = html.partition('<ul class="closest">')[2].partition("</ul>")[0]
    assert 0 < listed.count("<li>") == len(closest) <= 3
    page = Html(html)
    figures = {attributes.get("id") for name, attributes in page.elements if name == "figure"}
    for number, passage in enumerate(closest, 1):
        assert f"<mark>{passage['best']}</mark>" in listed
        assert f'href="#e{number}-1">{passage["provenance"]}:{passage["line"]}</a>' in listed
        assert f"e{number}-1" in figures
        assert passage["best"] in page.text_in[f"e{number}-1"]


def test_a_closest_passage_stands_as_the_turn_read_it(panda: Panda, pages: TestClient) -> None:
    """A note that has changed since is shown with the lines of then."""
    best = panda.json("show", "1", "--why")["closest"][0]["best"]
    for path in (panda.user_directory / "knowledge").iterdir():
        path.write_text("# Other\n\nNothing of it is left.\n", encoding="utf-8")
    html = pages.get("/turns/ann/1").text
    assert best in Html(html).text_in["e1-1"]
    assert "this note has changed since: these lines are those that the turn read" in page_words(html)


def test_lists_show_and_filter_outcomes(panda: Panda, pages: TestClient) -> None:
    """The list of turns and the page of a session name the outcome, and the list takes turns by it."""
    panda.turn(FLIGHT_QUERY, "--session", "talk")
    panda("gather", "--query", FLIGHT_QUERY)
    rows = pages.get("/turns/ann").text.partition('<ol class="turns"')[2]
    for word in ("unsure", "answered", "gathered"):
        assert f'<span class="status {word}">{word}</span>' in rows
    assert "approved" not in rows.partition("</ol>")[0]
    unsure = page_words(pages.get("/turns/ann?outcome=unsure").text)
    assert UNSURE_QUERY in unsure
    assert FLIGHT_QUERY not in unsure
    assert pages.get("/turns/ann?outcome=sure").status_code == 400
    session = pages.get("/sessions/ann/talk").text
    assert '<span class="status unsure">unsure</span>' in session
    assert '<span class="status approved">' not in session


def test_the_page_of_a_batch_shows_outcomes(panda: Panda, pages: TestClient) -> None:
    """Each item stands there with its result and what its turn came to."""
    run = begin_batch(panda, [item("q", UNSURE_QUERY)])["run"]
    assert "passed unsure exit code 0" in page_words(pages.get(f"/runs/{run}").text)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
def test_an_unsure_turn_fits_a_phone(panda: Panda) -> None:
    """Nothing is wider than 390 pixels."""
    assert panda("view", "--out", "pages").code == 0
    with browser() as looking:
        looking.look("light", 390)
        for name in ("turns/ann/1.html", "turns/ann.html"):
            looking.open((panda.home / "pages" / name).as_uri())
            assert looking.ask("document.documentElement.scrollWidth <= innerWidth"), name
