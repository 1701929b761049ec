"""What the page of a turn says beside its answer: halts, replaced attempts, tools, calls, candidates."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from panda.documents.context import Meta, Section, Text
from panda.errors import Problem, ReplyError
from panda.store.interventions import resolve_intervention, write_intervention
from panda.store.layout import Layout, UserStore
from panda.store.turns import TurnFolder
from panda.view.answer import render_markdown
from panda.view.evidence import Source, Statement
from panda.view.formats import FILTERS
from panda.view.shelf import Query
from panda.view.turn import load_turn
from tests.api import run_here
from tests.view.sites import client_of, page_words, shelf_of


def at_noon() -> datetime:
    """The present of these tests."""
    return datetime(2026, 2, 1, 12, 5, tzinfo=UTC)


@pytest.fixture
def root(recorded: Path, tmp_path: Path) -> Path:
    """A store of its own with the recorded turns."""
    return shutil.copytree(recorded, tmp_path / "store")


def turn_of(root: Path, number: int = 813) -> TurnFolder:
    """A turn to change."""
    return UserStore(root, "demo", at_noon).open(number)


def page_of(root: Path, number: int = 813) -> SimpleNamespace:
    """What the page of a turn shows."""
    return load_turn(shelf_of(root), Query({"user": "demo", "turn": str(number)}, {}))


def test_a_halt_is_told_with_its_fix(root: Path) -> None:
    """An intervention of the turn says what came, what to do and how to go on; of others there is none."""
    layout = Layout(root)
    error = ReplyError(
        "no JSON came", where="phase 5", fix="use another model", expected="JSON", received="<b>words</b>"
    )
    for number in (813, 8130):
        id_ = write_intervention(
            UserStore(layout.root, "demo", at_noon), error, turn=number, phase=5, recipe=None
        )
    (layout.interventions / f"20260201t120000z-demo-813-{'0' * 8}.json").write_text("{")
    text = client_of(root).get("/turns/demo/813").text
    for words in ("no JSON came", "use another model", "panda turn --resume 813", "&lt;b&gt;words&lt;/b&gt;"):
        assert words in text
    assert len(page_of(root).halts) == 2
    assert isinstance(page_of(root).halts[0], Problem)
    resolve_intervention(UserStore(layout.root, "demo", at_noon, 1), id_, "a larger model is used")
    assert page_of(root, 812).halts == []


def test_replaced_attempts_are_compared_with_what_came_after(root: Path) -> None:
    """Each attempt stands beside the next one of the same section, the last beside the answer."""
    turn = turn_of(root)
    for number, line in enumerate(("first line", "second line", "third line")):
        document = turn.read_context()
        section = document.section(5)
        assert section is not None
        turn.write_context(document.with_section(Section(5, (Meta(section.meta), Text(line)))))
        if number < 2:
            turn.supersede([5, 6], number + 1)
    attempts = page_of(root).attempts
    assert [attempt.number for attempt in attempts] == [1, 2]
    changed = [
        {(line.kind, line.text) for line in attempt.sections[0].lines if line.kind in ("old", "new")}
        for attempt in attempts
    ]
    assert changed == [
        {("old", "first line"), ("new", "second line")},
        {("old", "second line"), ("new", "third line")},
    ]
    assert attempts[0].sections[1].lines == ()
    text = client_of(root).get("/turns/demo/813").text
    assert "<del" in text
    assert "Written anew without a change" in text


def test_candidates_are_all_there_with_score_and_choice(root: Path) -> None:
    """Every candidate of the retrieval plan is a row, the chosen ones first, each with who chose it."""
    plan = json.loads((turn_of(root).paths / "retrieval_plan.json").read_text())
    rows = page_of(root).candidates
    assert {(row.node_id, row.chosen, row.by, row.score) for row in rows} == {
        (one["node_id"], one["chosen"], one["by"], one["score"]) for one in plan["candidates"]
    }
    assert [row.chosen for row in rows] == sorted((row.chosen for row in rows), reverse=True)


def test_calls_hold_prompt_options_and_probabilities(root: Path) -> None:
    """Every line of calls.jsonl is a call; a prompt that stands in an earlier line is spelt out."""
    calls = page_of(root).asked
    assert len(calls) == len((turn_of(root).paths / "calls.jsonl").read_text().splitlines())
    for call in calls:
        assert all(text for _, text, _ in call.prompts), call.line
        shares = [FILTERS["likelihood"](option.logprob) for option in call.options]
        assert all(0 <= share <= 1 for share in shares)
        assert shares == sorted(shares, reverse=True)


def test_phases_add_up(root: Path) -> None:
    """The bars of the timeline lie one behind the other and fill it."""
    bars = page_of(root).phases
    assert [row.phase for row, *_ in bars] == list(range(8))
    assert sum(width for *_, width in bars) == pytest.approx(100)
    assert bars[3][2] == pytest.approx(sum(width for *_, width in bars[:3]))


def test_phases_name_what_decided(root: Path) -> None:
    """By the calls that the turn made: with the packaged models the encoder, and no language model."""
    assert {models for _, models, _, _ in page_of(root).phases} == {"minilm-l6"}


def test_ages_and_confidences_are_those_of_then(root: Path) -> None:
    """A source is as old, and as much to be believed, as it was when the turn ran."""
    source = page_of(root).statements[0].sources[0]
    assert source.age_seconds is not None
    assert source.age_seconds < 2 * 3_600
    assert source.confidence == pytest.approx(0.94, abs=0.005)


def test_memory_that_changed_since_is_shown_as_it_was(root: Path) -> None:
    """What an answer quotes of memory is what that said then, whatever it says now."""
    before = page_of(root, 815).statements
    words = ["memory", "set", "favorite_hamster", "Roborovski", "--root", str(root), "--user", "demo"]
    assert run_here(words).code == 0
    assert "Roborovski" in (root / "users" / "demo" / "preferences.md").read_text()
    after = page_of(root, 815).statements
    assert [source.lines for one in after for source in one.sources] == [
        source.lines for one in before for source in one.sources
    ]


def test_neighbours_skip_gaps(root: Path) -> None:
    """The turns before and after are those that there are."""
    page = page_of(root, 798)
    assert (page.older, page.newer) == (790, 805)
    assert (page_of(root, 720).older, page_of(root, 816).newer) == (None, None)


def test_an_answer_that_was_not_approved_is_shown_as_a_draft(root: Path) -> None:
    """Where another text was given instead, the draft stands below it, with its sources."""
    turn = turn_of(root)
    metadata = json.loads((turn.paths / "metadata.json").read_text())
    (turn.paths / "metadata.json").write_text(json.dumps({**metadata, "status": "failed"}))
    (turn.paths / "response.md").write_text("No answer was approved.\n")
    page = page_of(root)
    assert page.answer is not None
    assert page.draft is not None
    assert "No answer was approved." in page.answer
    assert 'href="#e1-1"' in page.draft
    assert "not approved" in client_of(root).get("/turns/demo/813").text


@pytest.mark.parametrize(
    ("answer", "statement"),
    [
        ("It is **In Stock**. [1]", "It is **In Stock**."),
        ("| a | b |\n|---|---|\n| In | Stock |\n\n([1])", "| a | b |\n|---|---|\n| In | Stock |"),
        ("```\nIn Stock\n```\n\n([1])", "```\nIn Stock\n```"),
        ("It is:\n\n- In\n- Stock [1]", "It is:\n\n- In\n- Stock"),
        ("1. In Stock [1]", "In Stock"),
        ("| a |\n|---|\n| In Stock [1] |", "a: In Stock"),
        ("> In Stock [1]", "> In Stock"),
        ("\\# In Stock [1]", "# In Stock"),
        ("<b>In Stock</b> [1]", "<b>In Stock</b>"),
        ("In &amp; Stock [1] and `x[1]`", "In &amp; Stock"),
    ],
)
def test_marks_lead_to_their_source_whatever_they_stand_in(answer: str, statement: str) -> None:
    """A mark behind a paragraph, list, table, fence or quote is a link to the source of that statement."""
    source = Source("e1-1", 1, "turn:1", "", "", None, None, None, None, True, True, ())
    html = render_markdown(answer, [Statement(statement, (source,))])
    assert html.count('href="#e1-1"') == 1
    assert "<b>" not in html


@pytest.mark.parametrize(("run", "is_link"), [("20260201-1", True), ("gone", False)])
def test_a_turn_of_a_batch_names_its_run(root: Path, run: str, is_link: bool) -> None:
    """Which item of which batch it is stands at the top, with a link where the store has the run."""
    (root / "runs" / "20260201-1").mkdir(parents=True)
    path = turn_of(root).paths / "metadata.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "run": run, "item": "question <7>"}))
    text = client_of(root).get("/turns/demo/813").text
    assert "item question &lt;7&gt; of" in text
    assert (f'href="/runs/{run}"' in text) is is_link


def test_a_run_that_leads_elsewhere_is_no_run(root: Path) -> None:
    """A turn whose run is a path says that its metadata cannot be used, and the rest has no link there."""
    path = turn_of(root).paths / "metadata.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "run": "../x", "item": "question <7>"}))
    reply = client_of(root).get("/turns/demo/813")
    assert reply.status_code == 200
    assert "metadata.json cannot be used: metadata.json:1 (run): run must be a plain name" in page_words(
        reply.text
    )
    assert "availability In Stock" in reply.text
    assert "/runs/.." not in reply.text
