"""Turns of several processes at once: each sees what was there when it began, and replays the same."""

import json
import multiprocessing
import os
import re
import shutil
from itertools import count
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from panda.runs.replay import simulate
from panda.store.layout import Layout, UserStore
from panda.store.seals import part_of
from tests.builders import still_clock
from tests.script import Script, offered, pick, step_of
from tests.scripted_model import Asked, Reply, ScriptedModel
from tests.scripted_turns import USER, OneModel, laptop_store, scripted_app

PROCESSES = 3
ROUNDS = 4
SECONDS = 60
DRINKS = ("tea", "coffee", "juice", "cocoa")
KINDS = ("Assam", "Lavazza", "Mango", "Milka", "Ceylon", "Illy")


def query_of(process: int, round_: int) -> str:
    """Every other turn states a preference; the others ask for those that anybody stated."""
    drink = DRINKS[(process + round_) % len(DRINKS)]
    if (process + round_) % 2 == 0:
        return f"My favorite {drink} is {KINDS[(process * ROUNDS + round_) % len(KINDS)]}."
    return "What is my favorite tea, coffee, juice, cocoa?"


class Meeting:
    """
    A model that waits at a barrier once the turn has begun, and then replies by script.

    Args:
        query: The turn's query.
        barrier: Where the turns of a round meet; all but the first wait there for the end of the first too.
        is_first: Whether the turn goes on at once.
    """

    def __init__(self, query: str, barrier: Barrier, *, is_first: bool) -> None:
        self._is_question = query.endswith("?")
        self._waits = [barrier] if is_first else [barrier, barrier]
        steps = ("memory.query", "doc.search") if self._is_question else ("memory.create",)
        lines: dict[str, Any] = {"lines": pick("favorite", *KINDS) if self._is_question else []}
        self._script = Script(
            retrieval={"relevant": pick("memory:favorite", "My favorite") if self._is_question else []},
            synthesis=lines,
            planner={"tools": list(steps), "next_step": "coordinator"},
            coordinator=[*({"tool": name} for name in steps), {"tool": "done"}],
        )
        self._query = query

    def __call__(self, asked: Asked) -> Reply | None:
        if step_of(asked) == "reflection":
            while self._waits:
                self._waits.pop().wait(SECONDS)
        if step_of(asked) == "answer":
            text = "It was said before." if self._is_question else self._query
            return json.dumps({"items": [{"text": text, "lines": self._citable(asked)}]})
        return self._script(asked)

    def _citable(self, asked: Asked) -> list[str]:
        """The lines that an answer cites: what was found, or what was said in this turn."""
        lines = offered(asked, "lines")
        own = [id_ for id_, said in lines.items() if said.endswith(self._query)]
        return [*lines] if self._is_question else own[-1:]


def run_turns(root: Path, process: int, barrier: Barrier) -> None:
    """
    The turns of one process, in a session of its own. In each round all turns begin before any goes on; then
    one of them runs to its end while the others wait between beginning and retrieval.
    """
    layout = Layout(root)
    for round_ in range(ROUNDS):
        is_first, query = round_ % PROCESSES == process, query_of(process, round_)
        model = ScriptedModel(Meeting(query, barrier, is_first=is_first), scores=False)
        app = scripted_app(layout, model, session=f"s{process}")
        app.run_turn(app.start_turn(query, "chat"))
        if is_first:
            barrier.wait(SECONDS)
        app.index.close()


def run_side_by_side(layout: Layout) -> None:
    """All processes to their end."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    workers = [
        context.Process(target=run_turns, args=(layout.root, process, barrier))
        for process in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(2 * SECONDS)
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    layout = laptop_store(tmp_path_factory.mktemp("side") / "store")
    note = layout.of(USER).knowledge / "drinks.md"
    note.parent.mkdir(parents=True)
    note.write_text("# Drinks\n\nMy favorite tea shop is in Bergen.\n", encoding="utf-8")
    run_side_by_side(layout)
    return layout


def test_twelve_turns_replay_the_same(layout: Layout, tmp_path: Path) -> None:
    """Twelve turns that three processes made at once, shared memory among them, simulate the same."""
    store = UserStore(layout.root, USER, still_clock)
    numbers = [n for n in store.numbers() if store.open(n).snapshot() is not None]
    assert len(numbers) == PROCESSES * ROUNDS
    none = OneModel(ScriptedModel(lambda asked: None, scores=False))
    app = scripted_app(layout, none.scripted)
    found = {number: simulate(app.settings, layout, none, number, work=tmp_path) for number in numbers}
    assert {n: (one.findings, one.different) for n, one in found.items() if one.result != "same"} == {}


def test_what_changed_is_named(layout: Layout, tmp_path: Path) -> None:
    """A replay tells which note was written since; without its snapshot a turn is set back by numbers."""
    copy = Layout(shutil.copytree(layout.root, tmp_path / "copy"))
    (copy.of(USER).knowledge / "drinks.md").write_text("# Drinks\n\nAnother.\n", encoding="utf-8")
    names = (f"note{n}.md" for n in count())
    beside = next(name for name in names if part_of(name) == part_of("drinks.md"))  # they share a digest
    (copy.of(USER).knowledge / beside).write_text("# Beside\n\nAs ever.\n", encoding="utf-8")
    os.utime(copy.of(USER).knowledge / beside, (0, 0))
    number = max(UserStore(copy.root, USER, still_clock).numbers())
    none = OneModel(ScriptedModel(lambda asked: None, scores=False))
    app = scripted_app(copy, none.scripted)
    found = simulate(app.settings, copy, none, number, work=tmp_path / "run")
    # of what was told and corrected since, a file that is set back knows the lines, but not their order
    told = found.findings[-1].replace("facts.md, ", "")
    assert told == "changed since the turn: knowledge/drinks.md"
    (copy.of(USER).turn(number) / "snapshot.json").unlink()
    found = simulate(app.settings, copy, none, number, work=tmp_path / "run")
    assert not any("changed since" in finding for finding in found.findings)


def test_no_turn_sees_what_began_beside_it(layout: Layout) -> None:
    """A turn is offered no turn and no preference that was saved after it began."""
    store = UserStore(layout.root, USER, still_clock)
    for number in store.numbers():
        folder = store.open(number)
        snapshot = folder.snapshot()
        if snapshot is None:
            continue
        plan = folder.read_text("retrieval_plan.json")
        turns = {int(found) for found in re.findall(r'"turn:(\d+)"', plan)}
        assert all(snapshot.holds(turn) for turn in turns), number
        mark = snapshot.memory
        assert mark is not None
        lines = layout.of(USER).memory_log.read_text(encoding="utf-8").splitlines()[: mark.assertions]
        known = {relation for line in lines for relation in re.findall(r'"relation": "(\w+)"', line)}
        assert set(re.findall(r'"memory:(\w+)"', plan)) <= known | {"budget"}, number
