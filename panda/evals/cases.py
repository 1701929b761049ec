"""Labelled cases and their kinds: what is asked, of which choice, and the answer (tests/evals/README.md)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from panda.choosing.decision import Choice
from panda.documents.records import Record, Words, decode
from panda.errors import FileFormatError, Location, NotFoundError
from panda.store.files import parse_json, read_text


@dataclass(frozen=True)
class Kind:
    step: str | None  # step of the registry whose recipe is asked; None for a rule
    choice: str  # property of the recipe's schema; of a kind without a recipe, what is judged
    over: str | None  # name that the case's options go by; None when it has none
    answers: Literal["value", "first", "any", "rule"] = "value"
    """value: itself. rule: a list of texts. first: the best option's id. any: whether one was taken."""
    yes: str = ""  # for any: the label when an option was taken
    no: str = ""  # for any: the label when none was
    recipe: str | None = None  # the recipe itself, of a case that names it; then there is no step
    values: Mapping[str, str] = field(default_factory=dict)
    """Label → value of the property, where cases have words of their own for it."""

    @property
    def has_recipe(self) -> bool:
        """Whether a recipe is asked, not a rule."""
        return self.answers != "rule" and (self.step or self.recipe) is not None


KINDS: Mapping[str, Kind] = {
    "clear": Kind("phase1_reflection", "decision", None, values={"clear": "PROCEED", "unclear": "CLARIFY"}),
    "reflection": Kind("phase1_reflection", "decision", None),
    "query_type": Kind("phase0_query_analyzer", "query_type", None),
    "intent": Kind("phase0_query_analyzer", "intent", None),
    "relevance": Kind("phase2_1_retrieval", "relevant", "relevant", "any", "relevant", "irrelevant"),
    "route": Kind("phase3_planner", "next_step", "evidence"),
    "span": Kind("phase5_synthesizer", "answer", "answer", "first"),
    "nothing": Kind("phase5_synthesizer", "answer", "answer", "any", "answered", "nothing"),
    "mood": Kind("phase0_query_analyzer", "mood", None),
    "quotable": Kind(None, "reading", None),
    "agreement": Kind("phase0_query_analyzer", "agreement", None),
    "recap": Kind("phase0_query_analyzer", "looks_back", None),
    "talk": Kind("phase0_query_analyzer", "small_talk", None),
    "forget": Kind("phase0_query_analyzer", "forgets", None),
    "exclusion": Kind(None, "reading", None, "rule"),
    "reference": Kind(None, "reading", None, "rule"),
    "period": Kind(None, "reading", None, "rule"),
    "constraint": Kind(None, "reading", None, "rule"),
    "evidence": Kind(None, "check_evidence", None, "any", "supported", "unsupported"),
}
"""Every kind, by the name that cases use."""


@dataclass(frozen=True)
class Said:
    label: str  # in the terms of the case's label
    confidence: float | None  # probability that it is right; None if the scorer gives none
    score: float | None  # For kinds of two answers: how far it leans to yes. For ranking only.
    ranked: tuple[str, ...] = ()  # options, best first


def read_choice(kind: Kind, choice: Choice) -> Said:
    """
    A choice in the terms of a kind's labels.

    >>> read_choice(KINDS["nothing"], Choice("answer", (), {"s1": 0.2}, 0.2, "fit")).label
    'nothing'
    """
    scores, confidence = choice.scores, choice.confidence
    ranked = tuple(sorted(scores, key=lambda option: -scores[option]))
    best = max(scores.values(), default=None)
    if kind.answers == "any":
        taken = bool(choice.value)
        sure = confidence if taken or confidence is None else 1 - confidence
        return Said(kind.yes if taken else kind.no, sure, best, ranked)
    if kind.answers == "first" or isinstance(choice.value, tuple):
        if choice.fitted and best:  # beside the others, as one of them is known to be right
            confidence = best / sum(scores.values())
        return Said(ranked[0] if ranked else "", confidence, None, ranked)
    labels = {value: label for label, value in kind.values.items()}
    return Said(labels.get(str(choice.value), str(choice.value)), confidence, None, ranked)


@dataclass(frozen=True)
class Case:
    kind: str  # which choice is asked: a key of KINDS, or "RECIPE PROPERTY" of a case that names both
    split: str  # fit or test
    query: str  # what the user says
    history: tuple[str, ...]  # summaries of the session's earlier turns, oldest first
    options: tuple[tuple[str, str], ...]  # (id, text) of what can be chosen or looked at
    label: str | tuple[str, ...]  # the right answer
    open_question: str = ""  # the question to the user that is open
    now: datetime | None = None  # from when relative times count
    titles: Mapping[str, str] = field(default_factory=dict)
    """Id of an option → what it stands below; those that stand for themselves are left out."""

    @property
    def of(self) -> Kind:
        """What is asked; a recipe's own property goes by its value, or with options by the best of them."""
        if self.kind in KINDS:
            return KINDS[self.kind]
        recipe, _, choice = self.kind.partition(" ")
        return Kind(None, choice, choice, "first" if self.options else "value", recipe=recipe)


def load_cases(path: Path) -> list[Case]:
    """The cases of a file, or of all `*.jsonl` files of a directory; NotFoundError where there is none."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    lines = (
        (text, Location(file, line=n))
        for file in files
        for n, text in enumerate(read_text(file).splitlines(), 1)
        if text.strip()
    )
    cases = parse_cases(lines)
    if not cases:
        raise NotFoundError("there is no case", where=str(path), fix="name a file of labelled cases")
    return cases


def parse_cases(lines: Iterable[tuple[str, str]]) -> list[Case]:
    """Cases from (line, where) pairs."""
    return [_case(parse_json(text, where=where), where) for text, where in lines]


class _Option(Record, frozen=True, forbid_unknown_fields=False):
    id: str
    text: str
    title: str | None = None


class _Line(Record, frozen=True):
    query: Words
    label: str | tuple[str, ...]
    kind: str | None = None
    recipe: str | None = None
    choice: str | None = None
    split: Literal["fit", "test"] = "test"
    history: tuple[str, ...] = ()
    options: tuple[_Option, ...] = ()
    open_question: str = ""
    now: datetime | None = None


def _case(value: object, where: str) -> Case:
    line = decode(_Line, value, where=where)
    kind = f"{line.recipe} {line.choice}" if line.recipe and line.choice and not line.kind else line.kind
    if kind is None or (line.kind and (kind not in KINDS or line.recipe or line.choice)):
        message = f"there is no kind {kind!r}; known: {', '.join(KINDS)}; or name recipe and choice"
        raise FileFormatError(message, where, fix="see tests/evals/README.md for the format")
    is_list = kind in KINDS and KINDS[kind].answers == "rule"
    if isinstance(line.label, str) == is_list:
        message = f"label of {kind} must be {'a list of texts' if is_list else 'a text'}"
        raise FileFormatError(message, where, key="label", fix="see tests/evals/README.md for the format")
    return Case(
        kind,
        line.split,
        line.query,
        line.history,
        tuple((option.id, option.text) for option in line.options),
        line.label,
        line.open_question,
        line.now,
        {option.id: option.title for option in line.options if option.title is not None},
    )
