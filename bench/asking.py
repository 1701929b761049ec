"""Asking a store like a user does, and what is wrong with what comes back."""

import json
import os
import re
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panda.actions.turn_run import turn_data
from panda.app import App
from panda.errors import HaltError, MemoryNodeError
from panda.models.layers import LoadedLayers
from panda.phases.running_turn import Turn
from panda.settings import load_settings
from panda.store.demo import create_store
from panda.store.layout import MEMORY_JSONL, Layout
from panda.store.records import GatheredContext, Plan, RetrievalPlan

FLOORS = Path(__file__).parent / "floors.json"
LIFE = Path(__file__).parent / "life"
ANSWERS = Path(__file__).parent / "answers.jsonl"
BELOW_FLOOR = 3
NO_FALL = 1 / 40
"""Share of the questions by which panda may stand behind the two closest lines without having fallen."""
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
    """What the turn noted."""
    cited: int = 0
    """How many sources it names."""
    closest: str = ""
    """What is shown as closest where nothing surely answers."""
    trail: "Trail | None" = None
    """What its phases had; None where there was no turn."""


@dataclass(frozen=True)
class Trail:
    """What each phase of a turn had before it, for who looks for the one that lost something."""

    stages: tuple[tuple[str, str], ...]
    """(what it is, its text), in the order of the phases."""
    decided: str
    """What the phases decided, on one line."""

    def lost(self, part: str) -> str:
        """
        The first stage that does not hold a text.

        >>> Trail((("candidates", "33 or 34"), ("§2", "nothing")), "").lost("33")
        'lost on the way into §2'
        """
        missing = next((stage for stage, text in self.stages if not holds(text, part)), None)
        return f"lost on the way into {missing}" if missing else "in all stages up to the answer"


Asked = Callable[[str, str], Answer]
"""Gives the answer to a query in a session."""


def asker(layers: LoadedLayers, root: Path, user: str = "default") -> Asked:
    """
    Asks a store, one turn after another, with models that stay loaded.

    Args:
        layers: The models.
        root: The store.
        user: Whose turns they are.
    """

    def ask(query: str, session: str) -> Answer:
        given = {"root": str(root), "user": user, "session": session}
        settings = load_settings(given, os.environ, root)
        app = App(settings, settings.store, layers)
        turn = app.start_turn(query, "chat")
        try:
            app.run_turn(turn)
        except HaltError as exc:
            return Answer("halted", False, f"{exc.message}")
        data = turn_data(turn.folder, turn.metadata)
        approved = data["status"] == "approved"
        said = data["response"].partition("\n\nSources:\n")[0] if approved else data["question"] or ""
        if "noted" in data:
            kept = tuple(one["text"] for one in data["noted"])
        else:
            log = app.store.home / MEMORY_JSONL
            facts = [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []
            kept = tuple(json.dumps(f["value"]) for f in facts if f.get("source_turn") == turn.turn)
        answered = approved and bool(data["answered"])
        closest = "\n".join(passage["text"] for passage in data["closest"])
        cited = len(data["sources"])
        return Answer(data["status"], answered, said, kept, cited, closest, _trail(app, turn))

    return ask


def _trail(app: App, turn: Turn) -> Trail:
    folder = turn.folder
    retrieval, context, plan = folder.find(RetrievalPlan), folder.find(GatheredContext), folder.find(Plan)
    candidates = retrieval.candidates if retrieval else ()
    offered = [one.node_id for one in candidates]
    chosen = [one.node_id for one in candidates if one.chosen]
    gathered = [item.text for section in (context.sections if context else ()) for item in section.items]
    steps = folder.load_steps()
    found = [claim.text for step in steps for claim in step.claims]
    decided = plan.next_step if plan else None
    tools = ", ".join(step.tool for step in steps)
    return Trail(
        (
            ("the candidates", _texts(app, offered)),
            ("the nodes that 2.1 chose", _texts(app, chosen)),
            ("§2 or what tools found", "\n".join([*gathered, *found])),
        ),
        f"chosen {', '.join(chosen) or 'none'}; next step {decided}; tools {tools or 'none'}",
    )


def _texts(app: App, node_ids: Sequence[str]) -> str:
    texts = []
    for node_id in node_ids:
        with suppress(MemoryNodeError):
            texts.append(app.tools.reader.load(node_id).text)
    return "\n".join(texts)


def make_store(root: Path, notes: Mapping[str, str], user: str = "default") -> None:
    """A store with these notes, by their path below knowledge/."""
    create_store(root)
    for name, text in notes.items():
        path = Layout(root).of(user).home / "knowledge" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def holds(text: str, part: str) -> bool:
    """
    Whether a text has a part, as whole words, whatever its capitals, white space, apostrophes and ".00".

    >>> holds("It costs 24,90 €, a hand’s width", "24,90 €"), holds("A hand’s  width", "hand's width")
    (True, True)
    >>> holds("price $697.00", "697"), holds("price $697.50", "697")
    (True, False)
    >>> holds("size 333", "33"), holds("16 € a week", "6 €"), holds("In stock.", "in stock")
    (False, False, True)
    """
    pattern = r"(?<!\w)(?<!\d[.,])" + re.escape(_plain(part)) + r"(?!\w|[.,](?!00?(?!\d))\d)"
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
    >>> both = {"tell": True, "keeps": ["30th"], "all": ["Priya"]}
    >>> misses(both, Answer("approved", True, "Priya", ("until the 30th",)))
    []
    >>> misses({"or": [["Brandl"], ["0172"]]}, Answer("approved", True, "Ring Brandl"))
    []
    >>> misses({"all": ["tenner"], "or": [["£10"]]}, Answer("approved", True, "Now a tenner"))
    []
    >>> misses({"none": True, "not": ["61"]}, Answer("approved", False, "Your pulse was 61."))
    ["holds '61'"]
    >>> misses({"quiet": True}, Answer("approved", True, "You are welcome.", cited=2))
    ['2 sources are named for small talk']
    >>> listed = Answer("approved", True, "Weigela, Annabelle")
    >>> case = {"nth": 2, "of": 1, "labels": {"Annabelle": "24 €", "Weigela": "17 €"}}
    >>> misses(case, Answer("approved", True, "24 €"), [listed])
    []
    >>> misses(case, Answer("approved", True, "17 €"), [listed])
    ["does not hold '24 €'", "holds '17 €'"]
    """
    if answer.status != "approved":
        return [f"ended {answer.status}"]
    wanted, unwanted = case.get("all", ()), case.get("not", ())
    if case.get("quiet"):
        wrong = [f"noted {text!r}" for text in answer.kept]
        return wrong + ([f"{answer.cited} sources are named for small talk"] if answer.cited else [])
    if has_no_answer(case):
        wrong = ["answered, though nothing that is saved answers it"] if answer.answered else []
        return wrong + [f"holds {part!r}" for part in unwanted if holds(answer.text, part)]
    if case.get("forget"):
        return [f"kept {text!r}" for text in answer.kept]
    told = []
    if case.get("tell"):
        told = [] if answer.kept else ["nothing was kept"]
        told += [f"kept nothing of {part!r}" for part in case.get("keeps", ()) if not _kept(answer, part)]
        if not is_question(case):
            return told
    if "nth" in case:
        listed = replies[case["of"] - 1].text
        order = sorted((label for label in case["labels"] if holds(listed, label)), key=_place_in(listed))
        if len(order) < case["nth"]:
            return [f"the reply to turn {case['of']} named {len(order)} of its list"]
        wanted = [case["labels"][order[case["nth"] - 1]]]
        unwanted = [text for text in case["labels"].values() if text not in wanted]
    wrong = told + ([] if answer.answered else ["not answered"])
    ways = [way for way in (wanted, *case.get("or", ())) if way]
    if ways and not any(all(holds(answer.text, part) for part in way) for way in ways):
        lacking = [f"does not hold {part!r}" for part in wanted if not holds(answer.text, part)]
        wrong += [f"holds none of {case['or']!r}"] if "or" in case else lacking
    return wrong + [f"holds {part!r}" for part in unwanted if holds(answer.text, part)]


def has_no_answer(case: Mapping[str, Any]) -> bool:
    """Whether nothing that is saved answers a case."""
    return case.get("answered") is False or bool(case.get("none"))


def is_question(case: Mapping[str, Any]) -> bool:
    """Whether a case has an answer that can be right or wrong, whatever else it does."""
    return not has_no_answer(case) and any(key in case for key in ("all", "or", "nth"))


def kind_of_case(case: Mapping[str, Any]) -> str:
    """Under what a turn of a conversation is counted."""
    kinds = {"quiet": "small talk", "forget": "forgotten", "none": "nothing to tell", "tell": "told"}
    return next((name for key, name in kinds.items() if case.get(key)), "asked")


def _kept(answer: Answer, part: str) -> bool:
    return any(holds(text, part) for text in answer.kept)


def _place_in(text: str) -> Callable[[str], int]:
    return lambda label: _plain(text).index(_plain(label))


class Tally:
    """How many turns of each part were right, against floors."""

    def __init__(self) -> None:
        self._right: dict[str, list[bool]] = {}
        self._beside: dict[str, list[tuple[bool, bool]]] = {}

    def compare(self, questions: str, right: bool, closest: bool) -> None:
        """Whether panda and the two closest lines alone answered a question of a set rightly."""
        self._beside.setdefault(questions, []).append((right, closest))

    def add(self, part: str, query: str, answer: Answer, wrong: Sequence[str], *, place: str = "") -> None:
        """
        Count a turn and print it; of a wrong one also what its phases decided and which lost what it needs.

        Args:
            part: Where it counts.
            query: What was said.
            answer: What came.
            wrong: What is wrong with that.
            place: How far the part is, as "3/72".
        """
        self._right.setdefault(part, []).append(not wrong)
        told = " | ".join(line for line in answer.text.splitlines() if line) or answer.status
        print(f"{'right' if not wrong else 'WRONG'}  {part} {place}: {query}  →  {told}", flush=True)  # noqa: T201
        trail = answer.trail
        for line in wrong:
            lacks = line.partition("does not hold ")[2]
            lost = f", {trail.lost(literal_eval(lacks))}" if trail and lacks else ""
            print(f"       {line}{lost}", flush=True)  # noqa: T201
        if wrong and trail:
            print(f"       {trail.decided}", flush=True)  # noqa: T201

    def close(self, *, whole: bool) -> int:
        """
        Print the shares; gives the exit code.

        Args:
            whole: Whether everything was asked, so that floors count.
        """
        counts = {part: sum(right) for part, right in self._right.items()}
        for part, right in self._right.items():
            share = counts[part] / len(right)
            print(f"{part}: {counts[part]} of {len(right)} right, {share:.0%}", flush=True)  # noqa: T201
        for questions, pairs in self._beside.items():
            panda, closest = (sum(side) for side in zip(*pairs, strict=True))
            below = "  BELOW THE TWO CLOSEST LINES" if panda + len(pairs) * NO_FALL < closest else ""
            told = f"{questions}: of {len(pairs)} questions panda {panda}, two closest lines {closest}{below}"
            print(told, flush=True)  # noqa: T201
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
