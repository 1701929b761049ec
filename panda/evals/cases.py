"""Labelled cases and their kinds: what is asked, of which choice, and the answer (docs/cases.md)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from panda.choosing.decision import Option
from panda.compression.fit import InputDocument
from panda.documents.records import Record, Words
from panda.documents.text import nearest
from panda.errors import FileFormatError, NotFoundError
from panda.recipes.book import RecipeBook
from panda.recipes.messages import Request
from panda.retrieval.relevance import share_of_words
from panda.store.files import read_text
from panda.store.records import parse


@dataclass(frozen=True)
class Kind:
    choice: str  # property of the recipe's schema, or what judges
    asks: str = ""  # recipe, or step of the registry that has it; "" where code judges
    answers: Literal["value", "first", "any", "list"] = "value"
    """value: itself; first: the best option's id; any: whether an option was taken; list: texts."""
    labels: Mapping[str, str | bool] = field(default_factory=dict)
    """Label → value, where cases have words of their own for it."""
    over: str = ""  # name that the case's options go by, if not the property's

    def recipe_key(self, book: RecipeBook) -> str:
        """The recipe that is measured, or what judges."""
        if "/" in self.asks or not self.asks:
            return self.asks or self.choice
        return book.recipe_for(self.asks, "chat").key


_QUERY, _ANSWER = "phase0_query_analyzer", "phase5_synthesizer"
KINDS: Mapping[str, Kind] = {
    "clear": Kind("decision", "phase1_reflection", labels={"clear": "PROCEED", "unclear": "CLARIFY"}),
    "reflection": Kind("decision", "phase1_reflection"),
    "query_type": Kind("query_type", _QUERY),
    "intent": Kind("intent", _QUERY),
    "relevance": Kind("relevant", "phase2_1_retrieval", "any", {"relevant": True, "irrelevant": False}),
    "route": Kind("next_step", "phase3_planner", over="evidence"),
    "span": Kind("answer", _ANSWER, "first"),
    "nothing": Kind("answer", _ANSWER, "any", {"answered": True, "nothing": False}),
    "mood": Kind("mood", _QUERY),
    "quotable": Kind("reading", labels={"statement": False, "question": True}),
    "agreement": Kind("agreement", _QUERY),
    "recap": Kind("looks_back", _QUERY),
    "talk": Kind("small_talk", _QUERY),
    "forget": Kind("forgets", _QUERY),
    **dict.fromkeys(("exclusion", "reference", "period", "constraint"), Kind("reading", answers="list")),
    "evidence": Kind("check_evidence", "", "any", {"supported": True, "unsupported": False}),
}
"""Every kind, by the name that cases use."""


class Case(Record, frozen=True, kw_only=True):
    """A line of a file of labelled cases."""

    kind: str = ""  # a key of KINDS
    recipe: str = ""  # without a kind, the recipe that is asked
    choice: str = ""  # and its property
    split: Literal["fit", "test"] = "test"
    query: Words
    history: tuple[str, ...] = ()  # summaries of the session's earlier turns, oldest first
    options: tuple[Option, ...] = ()  # what can be chosen or looked at
    open_question: str = ""  # the question to the user that is open
    now: datetime | None = None  # from when relative times count
    label: str | tuple[str, ...]  # the right answer

    @property
    def name(self) -> str:
        return self.kind or f"{self.recipe} {self.choice}"

    @property
    def of(self) -> Kind:
        """What is asked; a recipe's own property goes by its value, or with options by the best of them."""
        return KINDS.get(self.kind) or Kind(self.choice, self.recipe, "first" if self.options else "value")

    def request(self, tools: Sequence[str] = ()) -> Request:
        """What the phase would give to the recipe; *tools* are on offer where the label is one of them."""
        history = "\n".join(f"Turn {n}: {summary}" for n, summary in enumerate(self.history, 1))
        documents = [InputDocument("turn_summaries", history)] if history else []
        options = [
            replace(option, node_ids=(option.id,), prior=share_of_words(self.query, option.text))
            for option in self.options
        ] or [Option(name, name) for name in tools if self.label in tools]
        return Request(self.query, documents, {self.of.over or self.of.choice: options} if options else {})


def load_cases(path: Path, book: RecipeBook | None = None) -> list[Case]:
    """
    The cases of a file, or of all `*.jsonl` files of a directory. Raises FileFormatError: one is wrong by
    itself or, with a book, is no answer of its recipe; NotFoundError: there is none.
    """
    cases: list[Case] = []
    for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
        for number, text in enumerate(read_text(file).split("\n"), 1):
            if not text.strip():
                continue
            try:
                cases.append(parse(Case, text, where=str(file), line=number))
                _check(cases[-1], book)
            except FileFormatError as exc:
                exc.path, exc.line = str(file), number
                exc.fix = (exc.key and exc.fix) or "docs/cases.md has an example of each kind"
                raise
    if not cases:
        raise NotFoundError("there is no case", where=str(path), fix="name a file of labelled cases")
    return cases


def _check(case: Case, book: RecipeBook | None) -> None:
    """Raises FileFormatError with key and fix: a case whose values have the right types is none."""
    if bool(case.kind) == bool(case.recipe and case.choice):
        raise FileFormatError(
            "what is asked is not clear", key="kind", fix="name a kind, or recipe and choice"
        )
    if case.kind and case.kind not in KINDS:
        raise FileFormatError(f"there is no kind {case.kind!r}", key="kind", fix=nearest(case.kind, KINDS))
    if case.kind == "period" and case.now is None:
        raise FileFormatError("now is missing: periods count from it", key="now", fix="add now")
    kind, label = case.of, case.label
    if isinstance(label, str) == (kind.answers == "list"):
        wanted = "a list of texts" if isinstance(label, str) else "a text"
        raise FileFormatError(f"label must be {wanted}", key="label", fix=f"give {wanted}")
    known: Collection[str] = kind.labels or [option.id for option in case.options if kind.answers == "first"]
    if kind.asks and kind.answers == "value" and not known and book is not None:
        recipe = book.load_recipe(kind.recipe_key(book))
        choices = {spec.name: spec.values for spec in recipe.choices}
        if kind.choice not in choices:
            fix = nearest(kind.choice, choices)
            raise FileFormatError(f"{recipe.key} has no choice {kind.choice!r}", key="choice", fix=fix)
        known = [*map(str, choices[kind.choice])] or recipe.tools_available
    if known and label not in known:
        raise FileFormatError(f"label is {label!r:.60}", key="label", fix=nearest(str(label), known))
