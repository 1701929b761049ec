"""Batches of ann's questions, as commands begin them, and what they leave in her store."""

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from tests.api import PRICE_QUESTION, Panda, ScriptedPanda
from tests.script import Asked, Script, step_of

MEMORY = "Remember that my cat is called Luna."


def item(name: str, query: str = PRICE_QUESTION, **keys: Any) -> dict[str, Any]:
    """Return a line of a batch."""
    return {"id": name, "query": query, **keys}


def items(count: int, **keys: Any) -> list[dict[str, Any]]:
    """Return so many lines that ask the same, with the ids q0, q1 and so on."""
    return [item(f"q{number}", **keys) for number in range(count)]


def begin_batch(panda: Panda, lines: list[dict[str, Any]], *words: str) -> dict[str, Any]:
    """Run the lines of a batch and return its `data`, however it ends."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    data: dict[str, Any] = panda("batch", "-", "--json", *words, stdin=text).data
    return data


def resume_batch(panda: Panda, *words: str, run: str = "last") -> dict[str, Any]:
    """Go on with a batch and return its `data`, however it ends."""
    data: dict[str, Any] = panda("batch", "--resume", run, "--json", *words).data
    return data


def results_of(data: dict[str, Any]) -> dict[str, str]:
    """Return what each item of a batch came to, by id, in the order of the batch."""
    return {line["item"]: line["result"] for line in data["items"]}


def saved_items(panda: Panda) -> list[tuple[str, int]]:
    """Return item and number of the turns that batches left in the store, by number."""
    names = [path.parent.name for path in panda.user_directory.glob("turns/turn_*/metadata.json")]
    numbers = [int(name[5:]) for name in names if name[5:].isdigit()]  # others are being written
    records = [read_file(panda, number, "metadata.json") for number in sorted(numbers)]
    return [(record["item"], record["turn"]) for record in records if record.get("run")]


def read_file(panda: Panda, turn: int, name: str) -> Any:
    """Return a JSON file of one of the user's turns."""
    return json.loads(panda.turn_file(turn, name).read_bytes())


def seen_turns(panda: Panda) -> dict[str, list[list[int]]]:
    """Return which turns each item saw, as ranges of numbers, by id."""
    return {name: read_file(panda, turn, "snapshot.json")["turns"] for name, turn in saved_items(panda)}


def remembered_turns(panda: Panda) -> list[int]:
    """Return the turns that told what is in memory, in the order in which it was written."""
    lines = (panda.user_directory / "memory.jsonl").read_text(encoding="utf-8").splitlines()
    turns = [json.loads(line).get("source_turn") for line in lines]
    return [turn for turn in turns if turn is not None]


def check_sound(panda: Panda) -> None:
    """Check that the store has no problem, its index is fresh, and each session is what its turns say."""
    assert panda.problems() == []
    assert panda.json("index", "status")["fresh"]
    for path in panda.user_directory.glob("sessions/*/session.json"):
        assert panda.sessions_differ(path.parent.name) == []


def check_once(panda: Panda, lines: list[dict[str, Any]]) -> None:
    """Check that each item of the newest batch has one turn and one line, and that the store is sound."""
    ids = Counter(line["id"] for line in lines)
    assert Counter(name for name, _ in saved_items(panda)) == ids
    (*_, run) = sorted((panda.store / "runs").iterdir())
    ledger = (run / "turns.jsonl").read_text(encoding="utf-8").splitlines()
    assert Counter(json.loads(line)["item"] for line in ledger) == ids
    assert json.loads((run / "run.json").read_bytes())["finished_at"] is not None
    check_sound(panda)


class MoodyScript(Script):
    """
    The script of an approved turn; a query that says so is slow, halts, or kills the process that asks.

    Args:
        panda: Whose server is asked; at most one process at a time is killed.
        directory: Of the marks: `halt-without:x` halts until the file x is there, `kill:x` kills once.
    """

    def __init__(self, panda: ScriptedPanda, directory: Path) -> None:
        super().__init__()
        self._panda = panda
        self._directory = directory

    def __call__(self, asked: Asked) -> str | Exception:
        """Return the scripted reply, after what the query says."""
        text = asked.text
        if "slowly" in text:
            time.sleep(0.05)
        if "halt-without:" in text and not self._mark(text, "halt-without:").exists():
            return "nonsense"
        if "die at once" in text and step_of(asked) == "planner":
            self._kill_asking()
        if "kill:" in text and not self._mark(text, "kill:").exists():
            self._mark(text, "kill:").touch()
            self._kill_asking()
        return super().__call__(asked)

    def _mark(self, text: str, word: str) -> Path:
        return self._directory / text.partition(word)[2].split()[0].strip('",.')

    def _kill_asking(self) -> None:
        """Kill the process that asked last with -9."""
        address = self._panda.server.connections[-1]
        assert isinstance(address, tuple)
        for process in psutil.Process().children(recursive=True):
            if any(place.laddr.port == address[1] for place in process.net_connections("tcp")):
                os.kill(process.pid, signal.SIGKILL)
