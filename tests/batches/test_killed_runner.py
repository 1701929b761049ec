"""A batch whose runner is killed, and a session that goes from worker to worker: every item exactly once."""

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

from panda.index.index import Index
from panda.runs.batch import Batch, begin_batch
from panda.runs.item import Files, Items, Task
from panda.runs.queries import Query
from panda.session.file import verify_session
from panda.store.layout import Layout, UserStore
from panda.store.validate import check_store
from tests.batches.scripted import QUESTION, scripted_models, settings_of
from tests.effort import tried
from tests.scripted_turns import USER, laptop_store


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
