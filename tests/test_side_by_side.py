"""Turns of several processes at once: each sees what was there when it began, and replays the same."""

import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda, ScriptedPanda
from tests.script import Asked, Script, offered, pick, step_of
from tests.store_files import write_note

PROCESSES = 3
ROUNDS = 2
FIRST_TURN = 3
TURNS = range(FIRST_TURN, FIRST_TURN + PROCESSES * ROUNDS)
SECONDS = 120
DRINKS = ("tea", "coffee", "juice")
KINDS = ("Assam", "Lavazza", "Mango", "Ceylon", "Illy", "Orange")
SHARES_A_DIGEST = "note35.md"
"""The name of a note that snapshots keep under one digest with drinks.md."""


def query_of(process: int, number: int) -> str:
    """Return a query: every other turn states a preference; the others ask for those that anybody stated."""
    drinks = [DRINKS[(process + place) % len(DRINKS)] for place in range(len(DRINKS))]
    if (process + number) % 2 == 0:
        return f"My favorite {drinks[0]} is {KINDS[process + number * PROCESSES]}."
    return f"What is my favorite {', '.join(drinks)}?"


class Meeting:
    """
    Replies of a round in which all turns begin before any goes on; then the first of them runs to its end
    while the others wait between beginning and retrieval.

    Args:
        queries: Those of the round, all different; the first one's turn goes on at once.
    """

    def __init__(self, queries: list[str]) -> None:
        self._all_have_begun = threading.Barrier(len(queries))
        self.first_has_ended = threading.Event()
        self._first = queries[0]
        self._scripts = {query: self._script(query) for query in queries}

    def _script(self, query: str) -> Script:
        is_question = query.endswith("?")
        tools = ("memory.query", "doc.search") if is_question else ("memory.create",)
        lines: dict[str, Any] = {"lines": pick("favorite", *KINDS) if is_question else []}
        return Script(
            retrieval={"relevant": pick("memory:favorite", "My favorite") if is_question else []},
            synthesis=lines,
            planner={"tools": list(tools), "next_step": "coordinator"},
            coordinator=[*({"tool": name} for name in tools), {"tool": "done"}],
        )

    def __call__(self, asked: Asked) -> str | Exception:
        queries = [query for query in self._scripts if query in asked.text]
        if not queries:
            return Script()(asked)
        query = max(queries, key=asked.text.rfind)
        if step_of(asked) == "analyzer":
            self._all_have_begun.wait(SECONDS)
            if query != self._first:
                assert self.first_has_ended.wait(SECONDS)
        if step_of(asked) != "answer":
            return self._scripts[query](asked)
        lines = offered(asked, "lines")
        if query.endswith("?"):
            return json.dumps({"items": [{"text": "It was said before.", "lines": [*lines]}]})
        own = [line_id for line_id, text in lines.items() if text.endswith(query)]
        return json.dumps({"items": [{"text": query, "lines": own[-1:]}]})


def run_round(panda: ScriptedPanda, number: int) -> None:
    """Run the turns of a round, each in a process and a session of its own."""
    processes = [(number + place) % PROCESSES for place in range(PROCESSES)]
    queries = [query_of(process, number) for process in processes]
    meeting = Meeting(queries)
    panda.server.script = meeting
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                panda.running("turn", query, "--session", f"s{place}", PANDA_WAIT_SECONDS="60")
            )
            for place, query in zip(processes, queries, strict=True)
        ]
        for process in running:
            assert process.stdin is not None
            process.stdin.close()  # else a turn waits for what it is to be handed
        first, *others = running
        assert first.wait(SECONDS) == 0
        meeting.first_has_ended.set()
        assert [process.wait(SECONDS) for process in others] == [0] * len(others)


@pytest.fixture(scope="module")
def made_at_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedPanda]:
    """A store in which three processes have made turns at once, shared memory among them."""
    with ScriptedPanda(tmp_path_factory.mktemp("side") / "project") as panda:
        write_note(panda.user_directory, "drinks.md", "# Drinks\n\nMy favorite tea shop is in Bergen.\n")
        for number in range(ROUNDS):
            run_round(panda, number)
        yield panda


@pytest.fixture
def panda(made_at_once: ScriptedPanda, tmp_path: Path) -> Panda:
    """A copy of that store, for a test to change."""
    panda = Panda(tmp_path / "project", made_at_once.store, user="ann")
    panda.write("models.yaml", made_at_once.server.models())
    return panda


def query_of_turn(panda: Panda, turn: int) -> str:
    """Return what a turn was asked."""
    return str(json.loads(panda.turn_file(turn, "metadata.json").read_bytes())["query"])


def test_turns_made_at_once_replay_the_same(panda: Panda) -> None:
    """Turns that three processes made at once, shared memory among them, run again the same."""
    data = panda.json("replay", f"{TURNS[0]}-{TURNS[-1]}")
    assert data["results"] == {"same": len(TURNS)}


def test_what_changed_is_named(panda: Panda) -> None:
    """A replay tells which note was written since; without its snapshot a turn is set back by numbers."""
    write_note(panda.user_directory, "drinks.md", "# Drinks\n\nAnother.\n")
    beside = write_note(panda.user_directory, SHARES_A_DIGEST, "# Beside\n\nAs ever.\n")
    os.utime(beside, (0, 0))
    asked = [turn for turn in TURNS if query_of_turn(panda, turn).endswith("?")]
    number = str(asked[-1])  # which turn of a round is the last is chance; what is told quotes no note
    (turn,) = panda("replay", number, "--json").data["turns"]
    # of what was told and corrected since, a file that is set back knows the lines, but not their order
    named = turn["findings"][-1].replace("facts.md, ", "")
    assert named == "changed since the turn: knowledge/drinks.md"
    panda.turn_file(asked[-1], "snapshot.json").unlink()
    (turn,) = panda("replay", number, "--json").data["turns"]
    assert not any("changed since" in finding for finding in turn["findings"])


def test_no_turn_sees_what_began_beside_it(panda: Panda) -> None:
    """A turn is offered no turn and no preference that was saved after it began."""
    memory = (panda.user_directory / "memory.jsonl").read_text(encoding="utf-8").splitlines()
    for number in TURNS:
        snapshot = json.loads(panda.turn_file(number, "snapshot.json").read_bytes())
        plan = panda.turn_file(number, "retrieval_plan.json").read_text(encoding="utf-8")
        turns = {int(turn) for turn in re.findall(r'"turn:(\d+)"', plan)}
        assert all(any(low <= turn <= high for low, high in snapshot["turns"]) for turn in turns), number
        lines = memory[: snapshot["memory"]["assertions"]]
        relations = {relation for line in lines for relation in re.findall(r'"relation": "(\w+)"', line)}
        assert set(re.findall(r'"memory:(\w+)"', plan)) <= relations | {"budget"}, number
