"""Asking a store like a user does, and what is wrong with what comes back."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panda.app import build_with
from panda.errors import HaltError
from panda.models.layers import Layers
from panda.settings import load_settings
from panda.storage.creation import create_store
from panda.storage.layout import MEMORY_JSONL, RESPONSE_MD, Layout

FLOORS = Path(__file__).parent / "floors.json"
LIFE = Path(__file__).parent / "life"
ANSWERS = Path(__file__).parent / "answers.jsonl"
BELOW_FLOOR = 3
_ALIKE = str.maketrans("’‘ʼ“”\u00a0\u202f", "'''\"\"  ")


@dataclass(frozen=True)
class Answer:
    """What came of a turn."""

    status: str
    """Of the turn."""
    answered: bool
    """Whether anything was answered."""
    text: str
    """The answer without its list of sources; "" if there is none."""
    kept: tuple[str, ...] = ()
    """The values that the turn asserted."""


Asked = Callable[[str, str], Answer]
"""Gives the answer to a query in a session."""


def asker(layers: Layers, root: Path, user: str = "default") -> Asked:
    """
    Asks a store, one turn after another, with models that stay loaded.

    Args:
        layers: The models.
        root: The store.
        user: Whose turns they are.
    """
    layout = Layout(root)

    def ask(query: str, session: str) -> Answer:
        given = {"root": str(root), "user": user, "session": session}
        app = build_with(load_settings(given, os.environ, root), layout, layers)
        turn = app.start_turn(query, "chat")
        try:
            app.run_turn(turn)
        except HaltError as exc:
            return Answer("halted", False, f"{exc.message}")
        answer = turn.folder.read_context().section(5)
        status = turn.folder.read_metadata().status
        said = turn.folder.read_text(RESPONSE_MD) if status == "approved" and answer else ""
        log = layout.user(user) / MEMORY_JSONL
        facts = [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []
        kept = tuple(json.dumps(f["value"]) for f in facts if f.get("source_turn") == turn.turn)
        answered = bool(answer and answer.meta["answered"]) and status == "approved"
        return Answer(status, answered, said.partition("\n\nSources:\n")[0], kept)

    return ask


def make_store(root: Path, notes: Mapping[str, str], user: str = "default") -> None:
    """A store with these notes, by their path below knowledge/."""
    create_store(root)
    for name, text in notes.items():
        path = Layout(root).user(user) / "knowledge" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def holds(text: str, part: str) -> bool:
    """
    Whether a text has a part, as whole words, whatever its capitals, white space and apostrophes.

    >>> holds("It costs 24,90 €, a hand’s width", "24,90 €"), holds("A hand’s  width", "hand's width")
    (True, True)
    >>> holds("size 333", "33"), holds("16 € a week", "6 €"), holds("In stock.", "in stock")
    (False, False, True)
    """
    pattern = r"(?<!\w)(?<!\d[.,])" + re.escape(_plain(part)) + r"(?!\w|[.,]\d)"
    return re.search(pattern, _plain(text)) is not None


def _plain(text: str) -> str:
    return " ".join(text.translate(_ALIKE).casefold().split())


def misses(case: Mapping[str, Any], answer: Answer, replies: Sequence[Answer] = ()) -> list[str]:
    """
    What is wrong with an answer; [] if it is right.

    Args:
        case: A turn of a conversation, a question of the vault, or a line of answers.jsonl.
        answer: What came.
        replies: The answers to the turns of the conversation before it, oldest first.

    >>> misses({"all": ["six weeks"], "not": ["May"]}, Answer("approved", True, "Turn it in six weeks."))
    []
    >>> misses({"all": ["six weeks"], "not": ["May"]}, Answer("approved", True, "Turn it in May."))
    ["does not hold 'six weeks'", "holds 'May'"]
    >>> misses({"tell": True}, Answer("approved", True, "Noted."))
    ['nothing was kept']
    >>> misses({"answered": False}, Answer("approved", True, "$5"))
    ['answered, though nothing that is saved answers it']
    >>> listed = Answer("approved", True, "Weigela, Annabelle")
    >>> case = {"nth": 2, "of": 1, "labels": {"Annabelle": "24 €", "Weigela": "17 €"}}
    >>> misses(case, Answer("approved", True, "24 €"), [listed])
    []
    >>> misses(case, Answer("approved", True, "17 €"), [listed])
    ["does not hold '24 €'", "holds '17 €'"]
    """
    if answer.status != "approved":
        return [f"ended {answer.status}"]
    if case.get("tell"):
        return [] if answer.kept else ["nothing was kept"]
    if case.get("answered") is False:
        return ["answered, though nothing that is saved answers it"] if answer.answered else []
    wanted, unwanted = case.get("all", ()), case.get("not", ())
    if "nth" in case:
        listed = replies[case["of"] - 1].text
        order = sorted((label for label in case["labels"] if holds(listed, label)), key=_place_in(listed))
        if len(order) < case["nth"]:
            return [f"the reply to turn {case['of']} named {len(order)} of its list"]
        wanted = [case["labels"][order[case["nth"] - 1]]]
        unwanted = [text for text in case["labels"].values() if text not in wanted]
    wrong = [] if answer.answered else ["not answered"]
    wrong += [f"does not hold {part!r}" for part in wanted if not holds(answer.text, part)]
    return wrong + [f"holds {part!r}" for part in unwanted if holds(answer.text, part)]


def _place_in(text: str) -> Callable[[str], int]:
    return lambda label: _plain(text).index(_plain(label))


class Tally:
    """How many turns of each part were right, against floors."""

    def __init__(self) -> None:
        self._right: dict[str, list[bool]] = {}

    def add(self, part: str, query: str, answer: Answer, wrong: Sequence[str]) -> None:
        """Count a turn and print it."""
        self._right.setdefault(part, []).append(not wrong)
        told = " | ".join(answer.text.split("\n\n")) or answer.status
        print(f"{'right' if not wrong else 'WRONG'}  {part}: {query}  →  {told}", flush=True)  # noqa: T201
        for line in wrong:
            print(f"       {line}", flush=True)  # noqa: T201

    def close(self, *, whole: bool) -> int:
        """
        Print the shares; gives the exit code.

        Args:
            whole: Whether everything was asked, so that floors count.
        """
        counts = {part: sum(right) for part, right in self._right.items()}
        for part, right in self._right.items():
            print(f"{part}: {counts[part]} of {len(right)} right", flush=True)  # noqa: T201
        return check_floors("right", counts) if whole else 0


def check_floors(name: str, values: Mapping[str, float]) -> int:
    """
    Print what is below its floor; gives the exit code.

    Args:
        name: Of the table in floors.json.
        values: What was measured, by the names of that table; those without a floor pass.
    """
    floors = json.loads(FLOORS.read_text(encoding="utf-8"))[name]
    below = {part: value for part, value in values.items() if value < floors.get(part, value)}
    for part, value in below.items():
        print(f"BELOW ITS FLOOR: {part} {value:g}, the floor is {floors[part]:g}", flush=True)  # noqa: T201
    return BELOW_FLOOR if below else 0
