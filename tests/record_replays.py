"""
Record the turns that tests of `panda replay` take: `make record`, when prompts, recipes or phases changed.

Each question is asked of a fresh copy of the demo store at a fixed time, with the embedded model and without
a network. What a right answer holds stands in replays/expected.jsonl, written by hand: a recording with
another answer replaces nothing.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.sealing import read_contacts, sealed_environ

REPLAYS = Path(__file__).parent / "replays"
EXPECTED = "expected.jsonl"
RECORDED_AT = "2026-02-01T12:00:00Z"
FIRST_TURN = 813
MEMORY = ("preferences.md", "facts.md", "memory.jsonl")
WRONG_ANSWERS = 3


def load_expected(replays: Path = REPLAYS) -> Sequence[Mapping[str, Any]]:
    """What is asked and what a right answer is, a line a turn, from FIRST_TURN on."""
    text = (replays / EXPECTED).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


QUESTIONS = tuple(expected["query"] for expected in load_expected())


def turn_name(place: int) -> str:
    """Where the turn of the question at that place lies below its user; 0 is the first."""
    return f"turns/turn_{FIRST_TURN + place:06d}"


def differences(expected: Mapping[str, Any], turn: Path) -> list[str]:
    """
    What is not as expected of a saved turn; [] if its answer is right.

    Args:
        expected: A line of expected.jsonl.
        turn: The turn's directory.
    """
    status = json.loads(_read(turn / "metadata.json") or "{}").get("status")
    context, response = _read(turn / "context.md"), _read(turn / "response.md")
    query = context.partition("## 0. User Query\n\n")[2].partition("\n\n```")[0]
    answered = f"answered: {str(expected['answered']).lower()}\n" in context
    wrong = [f"the query is {query!r}"] if query != expected["query"] else []
    wrong += [f"the status is {status}, not {expected['status']}"] if status != expected["status"] else []
    wrong += [] if answered else [f"`answered` is not {expected['answered']}"]
    wrong += [f"the answer does not hold {text!r}" for text in expected["all"] if text not in response]
    return wrong + [f"the answer holds {text!r}" for text in expected["not"] if text in response]


def _read(path: Path) -> str:
    """A turn's file; "" if the turn ended without it."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def replace_replays(user: Path, replays: Path, ended: Sequence[Mapping[str, Any]]) -> list[str]:
    """
    Put a new recording in the place of the old one, if every answer in it is right.

    Args:
        user: The user's directory that holds the new turns and memory.
        replays: The recording that is replaced, with its expected.jsonl, which stays.
        ended: How each turn ended: {exit_code, asks_for}.

    Returns:
        What is not as expected, a line each; if there is any, nothing is touched.
    """
    wrong: list[str] = []
    for place, (expected, end) in enumerate(zip(load_expected(replays), ended, strict=True)):
        found = differences(expected, user / turn_name(place))
        for name, value in end.items():
            found += [f"{name} is {value}, not {expected[name]}"] if value != expected[name] else []
        wrong += [f"turn {FIRST_TURN + place}, {expected['query']!r}: {one}" for one in found]
    if wrong:
        return wrong
    shutil.rmtree(replays / "turns", ignore_errors=True)
    for place in range(len(ended)):
        shutil.copytree(user / turn_name(place), replays / turn_name(place))
    for name in MEMORY:
        shutil.copy(user / name, replays / name)
    return []


def panda(contacts: Path, *arguments: str) -> int:
    """Run the real command without a network; gives its exit code."""
    command = [sys.executable, "-c", "from panda.cli.main import main; main()", *arguments]
    environ = {**os.environ, "PANDA_NOW": RECORDED_AT, "XDG_STATE_HOME": str(contacts.parent / "state")}
    return subprocess.run(command, check=False, env=sealed_environ(environ, contacts)).returncode


def record(replays: Path = REPLAYS) -> list[str]:
    """Ask every question in one session; gives what is wrong with the answers, as `replace_replays` does."""
    with tempfile.TemporaryDirectory() as directory:
        contacts = Path(directory) / "contacts"
        root = Path(directory) / "panda-system-docs"
        panda(contacts, "init", "--demo", "--root", str(root))
        ended = []
        for question in QUESTIONS:
            before = len(read_contacts(contacts))
            code = panda(
                contacts, "turn", question, "--root", str(root), "--user", "demo", "--session", "default"
            )
            ended.append({"exit_code": code, "asks_for": sorted(set(read_contacts(contacts)[before:]))})
        return replace_replays(root / "users" / "demo", replays, ended)


def main() -> int:
    """The exit code of `make record`."""
    wrong = [f"error: {line}" for line in record()]
    if wrong:
        wrong.append("fix: mend the answer, not tests/replays/expected.jsonl; nothing was replaced")
        print("\n".join(wrong), file=sys.stderr)  # noqa: T201 - a program
    return WRONG_ANSWERS if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
