"""Labelled cases and their kinds: what is asked, what of a reply is judged, what is right (docs/cases.md)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from msgspec import structs

from panda.compression.fit import InputDocument
from panda.documents.record_codec import Record, Words
from panda.documents.safe_text import nearest
from panda.errors import FileFormatError, NotFoundError
from panda.recipes.book import RecipeBook
from panda.recipes.recipe_file import Recipe
from panda.recipes.reply import Reply
from panda.retrieval.relevance import share_of_words
from panda.session.message import References, UserMessage
from panda.session.registry import find_references
from panda.steps.inputs import PlanningInputs, QueryInputs, ReflectionInputs
from panda.steps.options import Option
from panda.steps.request import Request
from panda.steps.step_contract import StepContract
from panda.store.carry import EMPTY, Pending
from panda.store.files import read_text
from panda.store.records import parse


@dataclass(frozen=True)
class Kind:
    name: str  # the property of the reply that is judged, or what judges
    step: str = ""  # the step that is asked, or the key of a recipe; "" where code judges
    answers: Literal["text", "list"] = "text"
    labels: Mapping[str, str] = field(default_factory=dict)
    """Label → value, where cases have words of their own for it."""
    option_set: str = ""  # name of the set that the case's options are
    read: Callable[[Reply[Any]], object] | None = None  # reads the answer from the reply; None: the property

    def recipe_key(self, book: RecipeBook) -> str:
        """Return the key of the recipe that is measured, or of the one that judges."""
        if "/" in self.step or not self.step:
            return self.step or self.name
        return book.recipe_for(self.step, "chat").key

    def answer(self, reply: Reply[Any]) -> object:
        """Return what a reply says; of a list the first."""
        value = self.read(reply) if self.read else reply.values.get(self.name)
        return value[0] if isinstance(value, list | tuple) and value else value


def _mood(reply: Reply[Any]) -> object:
    return _reading(reply).get("mood")


def _agreement(reply: Reply[Any]) -> object:
    return _reading(reply).get("agreement")


def _is_recap(reply: Reply[Any]) -> object:
    return bool(_reading(reply).get("recap"))


def _is_talk(reply: Reply[Any]) -> object:
    return bool(_reading(reply).get("talk"))


def _forgets(reply: Reply[Any]) -> object:
    return bool(_reading(reply).get("forgets") or _reading(reply).get("forget"))


def _reading(reply: Reply[Any]) -> Mapping[str, Any]:
    return reply.values.get("reading") or {}


_QUERY = "phase0_query_analyzer"
KINDS: Mapping[str, Kind] = {
    "clear": Kind("decision", "phase1_reflection", labels={"clear": "PROCEED", "unclear": "CLARIFY"}),
    "reflection": Kind("decision", "phase1_reflection"),
    "query_type": Kind("query_type", _QUERY),
    "intent": Kind("intent", _QUERY),
    "route": Kind("next_step", "phase3_planner", option_set="evidence"),
    "mood": Kind("mood", _QUERY, read=_mood),
    "quotable": Kind("reading", labels={"statement": "statement", "question": "question"}),
    "agreement": Kind("agreement", _QUERY, read=_agreement),
    "recap": Kind("recap", _QUERY, labels={"recap": "True", "other": "False"}, read=_is_recap),
    "talk": Kind("talk", _QUERY, labels={"talk": "True", "other": "False"}, read=_is_talk),
    "forget": Kind("forget", _QUERY, labels={"forget": "True", "other": "False"}, read=_forgets),
    **dict.fromkeys(("exclusion", "reference", "period", "constraint"), Kind("reading", answers="list")),
    "evidence": Kind("check_evidence", labels={"supported": "supported", "unsupported": "unsupported"}),
}
"""Every kind, by the name that cases use."""


class Case(Record, frozen=True, kw_only=True):
    """A line of a file of labelled cases."""

    kind: str = ""  # a key of KINDS
    step: str = ""  # without a kind, the step that is asked
    recipe: str = ""  # or the recipe
    choice: str = ""  # and the property of the reply
    split: Literal["fit", "test"] = "test"
    query: Words
    history: tuple[str, ...] = ()  # summaries of the session's earlier turns, oldest first
    options: tuple[Option, ...] = ()  # what can be chosen or looked at
    open_question: str = ""  # the question to the user that is open
    now: datetime | None = None  # from when relative times count
    label: str | tuple[str, ...]  # the right answer

    @property
    def name(self) -> str:
        return self.kind or f"{self.recipe or self.step} {self.choice}"

    @property
    def of(self) -> Kind:
        """Return the kind of what is asked."""
        return KINDS.get(self.kind) or Kind(self.choice, self.recipe or self.step)

    def request(self, recipe: Recipe, contract: StepContract[Any], *, query: str = "") -> Request:
        """
        Return what the phase would give; the tools of the recipe are on offer where the label is one of them.

        Args:
            query: A part of the case's query that is asked in its place.
        """
        history = "\n".join(f"Turn {n}: {summary}" for n, summary in enumerate(self.history, 1))
        documents = [InputDocument("turn_summaries", history)] if history else []
        options: list[Option] = [
            replace(option, node_ids=(option.id,), prior=share_of_words(self.query, option.text))
            for option in self.options
        ]
        if not options and self.label in recipe.tools_available:
            options = [Option(name, name) for name in recipe.tools_available]
        sets = {"tools": [Option(name, name) for name in recipe.tools_available]}
        if options:
            sets[self.of.option_set or self.of.name] = options
        asked = query or self.query
        mode = recipe.mode or "chat"
        variables = {
            **dict.fromkeys(contract.variables, ""),
            "mode": mode,
            "session_id": "eval",
            "quoted": self.query,
        }
        return Request(
            asked, documents, sets, variables, inputs=self._inputs(contract.name, asked, mode, sets)
        )

    def message(self, query: str) -> UserMessage:
        """Return a query beside a session in which its question, if it has one, is open."""
        pending = None
        if self.open_question or self.kind == "agreement":
            question = self.open_question or "Shall I?"
            pending = Pending(id="q1", asked_turn=1, asked_by=1, type="question", message=question)
        carry = structs.replace(EMPTY, pending_clarification=pending)
        references = References(tuple(find_references(query, carry)), carry)
        sent_at = self.now or datetime.now(UTC)
        return UserMessage(query=query, sent_at=sent_at, carry=carry, references=references)

    def _inputs(self, step: str, query: str, mode: str, sets: Mapping[str, Sequence[Option]]) -> object:
        """Return the typed inputs of the step that is asked, as far as a case has them."""
        if step == _QUERY:
            return QueryInputs(message=self.message(query))
        if step == "phase1_reflection":
            return ReflectionInputs(quoted=query, history=self.history)
        if step == "phase3_planner":
            return PlanningInputs(
                mode=mode,
                tools=[option.id for option in sets["tools"]],
                evidence=lambda: sets.get("evidence", ()),
                pages=(),
                opens_page=False,
                is_told=False,
                is_answered=lambda: False,
                wants_new=False,
                is_researched=False,
                is_enough=lambda: False,
            )
        return None


def load_cases(path: Path, book: RecipeBook | None = None) -> list[Case]:
    """
    Return the cases of a file, or of all `*.jsonl` files of a directory. Raises FileFormatError: one is wrong
    by itself or, with a book, is no answer of its recipe; NotFoundError: there is none.
    """
    cases: list[Case] = []
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    for file in files:
        for number, text in enumerate(read_text(file).split("\n"), 1):
            if not text.strip():
                continue
            try:
                cases.append(parse(Case, text, where=str(file), line=number))
                _check(cases[-1], book)
            except FileFormatError as exc:
                exc.path = str(file)
                exc.line = number
                exc.fix = (exc.key and exc.fix) or "docs/cases.md has an example of each kind"
                raise
    if not cases:
        raise NotFoundError("there is no case", where=str(path), fix="name a file of labelled cases")
    return cases


def _check(case: Case, book: RecipeBook | None) -> None:
    """Raises FileFormatError with key and fix: a case whose values have the right types is none."""
    names_one = bool(case.recipe) != bool(case.step) and bool(case.choice)
    if bool(case.kind) == names_one:
        fix = "name a kind, or choice with a step or a recipe"
        raise FileFormatError("what is asked is not clear", key="kind", fix=fix)
    if case.kind and case.kind not in KINDS:
        raise FileFormatError(f"there is no kind {case.kind!r}", key="kind", fix=nearest(case.kind, KINDS))
    if case.kind == "period" and case.now is None:
        raise FileFormatError("now is missing: periods count from it", key="now", fix="add now")
    kind = case.of
    label = case.label
    if isinstance(label, str) == (kind.answers == "list"):
        wanted = "a list of texts" if isinstance(label, str) else "a text"
        raise FileFormatError(f"label must be {wanted}", key="label", fix=f"give {wanted}")
    allowed: Sequence[str] = [*kind.labels]
    if kind.step and kind.read is None and not allowed and book is not None:
        recipe = book.load_recipe(kind.recipe_key(book))
        properties = recipe.output_schema.get("properties", {})
        if kind.name not in properties:
            fix = nearest(kind.name, properties)
            raise FileFormatError(f"{recipe.key} has no property {kind.name!r}", key="choice", fix=fix)
        allowed = [*map(str, recipe.enum_of(kind.name))]
        allowed = allowed or [option.id for option in case.options] or recipe.tools_available
    if allowed and label not in allowed:
        raise FileFormatError(f"label is {label!r:.60}", key="label", fix=nearest(str(label), allowed))
