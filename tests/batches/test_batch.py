"""A batch: every item exactly once, whatever is killed; each sees the store as it was at the start."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from panda.errors import UsageError
from panda.index.index import Index
from panda.memory.files import Projection
from panda.runs.batch import Batch, begin_batch
from panda.runs.compare import Thresholds, compare_runs, find_regressions, load_sides
from panda.runs.item import Files, Items, Task
from panda.runs.ledger import open_run
from panda.runs.queries import Expectation, Query
from panda.session.file import load_session, verify_session
from panda.store.interventions import list_interventions
from panda.store.layout import Layout, UserStore
from panda.store.records import Intervention
from panda.store.validate import check_store
from tests.batches.scripted import QUESTION, Moody, run_batch, scripted_models, settings_of
from tests.effort import tried
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import USER, laptop_store, scripted_app


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The laptop store of user ann."""
    return laptop_store(tmp_path / "panda-system-docs")


def asked(count: int, *, session: str | None = None, query: str = QUESTION) -> list[Query]:
    """So many items that ask the same."""
    return [Query(f"q{number}", query, session=session) for number in range(count)]


def made_turns(layout: Layout) -> list[tuple[str | None, int]]:
    """Item and number of the turns that batches made, by number."""
    store = UserStore(layout.root, USER, settings_of(layout.root).clock)
    folders = map(store.open, store.numbers())
    return [(one.read_metadata().item, one.number) for one in folders if one.read_metadata().run]


def check_sound(layout: Layout) -> None:
    """The store has no problem, its index knows every turn, and each session is what its turns say."""
    assert check_store(layout) == []
    index = Index(layout)
    assert not index.behind(USER).sources
    index.close()
    for path in (layout.of(USER).home / "sessions").iterdir():
        assert verify_session(layout.of(USER), path.name) == []


def test_every_item_once(layout: Layout) -> None:
    """Items become turns of the store with the numbers that they were planned with, in the order given."""
    lines: list[dict[str, object]] = []
    found = run_batch(layout.root, asked(5), lines=lines)
    assert [line.result for line in found.lines] == ["passed"] * 5
    assert made_turns(layout) == [(f"q{number}", 3 + number) for number in range(5)]
    assert sorted(str(line["id"]) for line in lines) == [f"q{number}" for number in range(5)]
    assert all("697" in str(line["response"]) for line in lines)
    assert not found.left
    assert not (layout.runs / "last").exists()
    check_sound(layout)


def test_an_item_sees_its_own_session_and_the_start(layout: Layout) -> None:
    """What another session of the batch told is not seen; what its own did is; the store keeps all."""
    told = "Remember that my cat is called Luna."
    queries = [
        Query("a1", told, session="a"),
        Query("a2", QUESTION, session="a"),
        Query("b1", QUESTION, session="b"),
        Query("c1", told, session="c"),
    ]
    run_batch(layout.root, queries, jobs=2)
    store = UserStore(layout.root, USER, settings_of(layout.root).clock)
    seen = {item: store.open(number).snapshot() for item, number in made_turns(layout)}
    ranges = {item: snapshot.turns for item, snapshot in seen.items() if snapshot is not None}
    assert ranges == {"a1": ((1, 2),), "a2": ((1, 3),), "b1": ((1, 2),), "c1": ((1, 2),)}
    memory = Projection(layout.of(USER))
    memory.refresh()
    assert {one.source_turn for one in memory.log.assertions} >= {3, 6}
    check_sound(layout)


def test_a_session_that_changes_between_workers(layout: Layout) -> None:
    """A worker that comes back to a session which went on in another one has its turns, and no others."""
    settings = settings_of(layout.root)
    run = begin_batch(settings, {}, asked(4, session="s"), save=True)
    found = Batch(settings, run, asked(4, session="s"))
    assert list(found.prepare()) == []
    assert found.start is not None
    with scripted_models(settings, {}) as layers:
        workers = [Items(settings, layers, found.start, is_remote=True) for _ in range(2)]
        earlier: list[tuple[int, Path | Files]] = []
        for turn, worker in zip((3, 4, 5, 6), (0, 0, 1, 0), strict=True):
            query = Query(f"q{turn - 3}", QUESTION, session="s")
            made = workers[worker].run(Task(run.id, query, USER, "s", turn, tuple(earlier)))
            assert made.error is None
            assert isinstance(made.turn, dict)
            snapshot = json.loads(made.turn["snapshot.json"])
            assert snapshot["turns"] == ([[1, 2]] if turn == 3 else [[1, turn - 1]])
            earlier.append((turn, made.turn))
        for one in workers:
            one.close()


def test_a_session_that_others_go_on_with(layout: Layout) -> None:
    """Turns that another process adds to a session of a batch meanwhile are in it beside its own."""
    run_batch(layout.root, asked(3, session="default"), most=1)
    app = scripted_app(layout, ScriptedModel(Moody(), writes=True, scores=False))
    app.run_turn(app.start_turn(QUESTION, "chat"))
    run_batch(layout.root, None, resume="last")
    session = load_session(layout.of(USER), "default")
    assert session is not None
    assert [one.turn for one in session.turns] == [1, 3, 4, 5, 6]
    check_sound(layout)


def test_what_is_tried_again_sees_what_came_before_it(layout: Layout) -> None:
    """Not what came after it in its session, though that is saved by now."""
    wrong = [Expectation(), Expectation(contains="no such words"), Expectation()]
    queries = [Query(f"q{n}", QUESTION, session="s", expect=one) for n, one in enumerate(wrong)]
    run_batch(layout.root, queries)
    run_batch(layout.root, None, resume="last", retry_failed=True)
    store = UserStore(layout.root, USER, settings_of(layout.root).clock)
    assert made_turns(layout) == [("q0", 3), ("q1", 4), ("q2", 5), ("q1", 6)]
    snapshot = store.open(6).snapshot()
    assert snapshot is not None
    assert snapshot.turns == ((1, 3),)
    check_sound(layout)


def test_a_live_item_goes_on_in_another_worker(layout: Layout, tmp_path: Path) -> None:
    """A worker that is killed in a live batch leaves a turn in the store: the next try takes it up."""
    queries = [Query("q0", f"{QUESTION} kill:{tmp_path / 'mark'} please")]
    found = run_batch(layout.root, queries, jobs=1, live=True)
    assert [line.findings for line in found.lines] == [()]
    assert made_turns(layout) == [("q0", 3)]
    check_sound(layout)


def test_forgotten_words_do_not_stop_a_run(layout: Layout) -> None:
    """The queries kept with a run may have lost what was told in an item that has ended."""
    found = run_batch(layout.root, asked(2), most=1)
    kept = open_run(layout, "last").directory / "queries.jsonl"
    kept.write_text(kept.read_text().replace(QUESTION, "[forgotten]", 1))
    assert len(found.left) == 1
    assert len(run_batch(layout.root, None, resume="last").lines) == 2


def test_live_items_see_what_is_there(layout: Layout) -> None:
    """A live batch runs in the store: later items see the turns of other sessions."""
    run_batch(layout.root, asked(3), jobs=1, live=True)
    store = UserStore(layout.root, USER, settings_of(layout.root).clock)
    snapshot = store.open(5).snapshot()
    assert snapshot is not None
    assert snapshot.turns == ((1, 4),)
    check_sound(layout)


def test_a_killed_worker_costs_one_try(layout: Layout, tmp_path: Path) -> None:
    """An item whose worker is killed is run again; one that kills every worker fails, and no other does."""
    queries = [
        *asked(2),
        Query("once", f"{QUESTION} kill:{tmp_path / 'mark'} please"),
        Query("always", f"{QUESTION} die at once"),
        Query("last", QUESTION),
    ]
    found = run_batch(layout.root, queries)
    assert {line.item: line.result for line in found.lines if line.result != "passed"} == {"always": "failed"}
    assert "has died" in found.failed[0].findings[0]
    check_sound(layout)


def test_a_killed_runner(layout: Layout) -> None:
    """Killed with -9 at any time, again and again: in the end every item has exactly one turn."""
    settings, most = settings_of(layout.root), tried(3, 10)
    queries = [
        Query(f"q{n}", f"{QUESTION} slowly", session=f"s{n % 4}" if n % 2 else None)
        for n in range(2 * most + 4)
    ]
    run = begin_batch(settings, {}, queries, save=True)
    random.seed(7)
    kills = 0
    words = [sys.executable, "-m", "tests.batches.scripted", str(layout.root), "2", run.id]
    for _ in range(60):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = len(list(run.lines()))
        deadline = time.monotonic() + 60
        while process.poll() is None and len(list(run.lines())) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(random.random() * 0.3)
        if process.poll() is None and kills < most:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        if process.wait() == 0:
            break
    assert kills == most
    assert run.plan().finished_at is not None
    items = [item for item, _ in made_turns(layout)]
    assert Counter(items) == Counter(query.id for query in queries)
    assert Counter(line.item for line in run.lines()) == Counter(query.id for query in queries)
    check_sound(layout)


def test_changed_queries_are_refused(layout: Layout) -> None:
    """A run goes on with the queries that it was begun with, and with no others."""
    found = run_batch(layout.root, asked(3), most=1)
    assert len(found.left) == 2
    changed = [*asked(2), Query("q2", "What is tea?")]
    with pytest.raises(UsageError, match="other queries: q2"):
        run_batch(layout.root, changed, resume="last")
    assert len(run_batch(layout.root, asked(3), resume="last").lines) == 3
    assert len(made_turns(layout)) == 3


def test_failures_end_it_and_are_tried_again(layout: Layout) -> None:
    """After so many failures no item begins; --retry-failed runs those that failed with new numbers."""
    mark = layout.root / "mark"
    queries = [Query("bad", QUESTION, expect=Expectation(contains="no such words")), *asked(3)]
    found = run_batch(layout.root, queries, jobs=1, max_failures=1)
    assert [(line.item, line.result) for line in found.lines] == [("bad", "failed")]
    assert found.failed[0].findings == ("the answer does not hold 'no such words'",)
    found = run_batch(layout.root, None, jobs=1, resume="last", retry_failed=True)
    assert {str(line.item): line.turn for line in found.lines} == {"bad": 7, "q0": 4, "q1": 5, "q2": 6}
    assert not mark.exists()
    check_sound(layout)


def test_a_retry_that_is_limited_keeps_the_others(layout: Layout, tmp_path: Path) -> None:
    """What failed and waits for its next try stays failed, and is no part of what the next retry begins."""
    marks = [tmp_path / f"mark{n}" for n in range(3)]
    queries = [Query(mark.name, f"{QUESTION} halt-without:{mark} please") for mark in marks]
    assert len(run_batch(layout.root, queries).failed) == 3
    for mark in marks:
        mark.touch()
    found = run_batch(layout.root, None, resume="last", retry_failed=True, most=1)
    assert [(line.item, line.result) for line in found.lines] == [
        ("mark0", "passed"),
        ("mark1", "failed"),
        ("mark2", "failed"),
    ]
    found = run_batch(layout.root, None, resume="last", retry_failed=True)
    assert [line.result for line in found.lines] == ["passed"] * 3
    assert [item for item, _ in made_turns(layout)] == ["mark0", "mark1", "mark2"]
    check_sound(layout)


def test_the_newest_run_is_the_one_that_began_last(layout: Layout) -> None:
    """last goes by the ids of the runs: one that is finished later than the next began is older."""
    run_batch(layout.root, asked(2), most=1)
    first = open_run(layout, "last").id
    newest = [begin_batch(settings_of(layout.root), {}, asked(1), save=True).id for _ in range(11)][-1]
    assert open_run(layout, "last").id == newest
    run_batch(layout.root, None, resume=first)
    assert open_run(layout, "last").id == newest


def test_a_halted_item_is_adopted_and_tried_again(layout: Layout, tmp_path: Path) -> None:
    """Its turn is there, with an open intervention; when it is tried again, that goes, and another comes."""
    mark = tmp_path / "mark"
    queries = [Query("halts", f"{QUESTION} halt-without:{mark} please"), *asked(2)]
    found = run_batch(layout.root, queries)
    assert [(line.item, line.exit_code) for line in found.failed] == [("halts", 20)]
    store = UserStore(layout.root, USER, settings_of(layout.root).clock)
    assert store.open(3).read_metadata().status == "halted"
    (one,) = list_interventions(layout)
    assert isinstance(one, Intervention)
    assert (one.turn, one.is_open) == (3, True)
    mark.touch()
    found = run_batch(layout.root, None, resume="last", retry_failed=True)
    assert [line.result for line in found.lines] == ["passed"] * 3
    assert made_turns(layout) == [("q0", 4), ("q1", 5), ("halts", 6)]
    (one,) = list_interventions(layout)
    assert isinstance(one, Intervention)
    assert not one.is_open
    check_sound(layout)


def test_two_batches_compare(layout: Layout) -> None:
    """Batches of the same items are compared item by item; a killed one is red."""
    one = run_batch(layout.root, asked(2))
    two = run_batch(layout.root, asked(2))
    del one, two
    runs = sorted(path.name for path in layout.runs.iterdir())
    sides = load_sides(layout, *runs)
    assert find_regressions(compare_runs(*sides), Thresholds()) == []
    run_batch(layout.root, asked(2), most=1)
    newest = open_run(layout, "last").id
    found = find_regressions(compare_runs(*load_sides(layout, runs[0], newest)), Thresholds())
    assert any("is not finished" in sentence for sentence in found)


def test_the_ledger_is_json_lines(layout: Layout) -> None:
    """Each item has one line with its turn, result and exit code."""
    run_batch(layout.root, asked(2))
    lines = (open_run(layout, "last").directory / "turns.jsonl").read_text().splitlines()
    values = {value["item"]: value for value in map(json.loads, lines)}
    assert {(one["turn"], one["result"], one["exit_code"]) for one in values.values()} == {
        (3, "passed", 0),
        (4, "passed", 0),
    }
