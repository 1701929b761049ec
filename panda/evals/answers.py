"""Labelled cases through the executor, as the phases ask, and how each kind is answered."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from panda.documents.evidence import check_evidence
from panda.documents.progress import progress
from panda.evals.cases import Case
from panda.language.dates import find_periods
from panda.language.reading import Mood, find_limits, overall_mood
from panda.language.statements import typed_sentences
from panda.language.text import is_question
from panda.language.things import Thing, find_exclusions, find_mentions
from panda.recipes.calls import NoTurn
from panda.recipes.messages import Request

if TYPE_CHECKING:
    from panda.recipes.executor import RecipeExecutor
import time
from collections.abc import Sequence
from dataclasses import dataclass

from panda.choosing.decision import Option
from panda.compression.fit import InputDocument
from panda.evals.cases import Kind, Said, read_choice
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.relevance import share_of_words

Judge = Callable[[Case, "RecipeExecutor"], str | tuple[str, ...]]
"""Maps a case to the answer, in the terms of its label."""


def _mood(case: Case, executor: "RecipeExecutor") -> str:
    """By sentence, as phase 0 does."""
    recipe = executor.book.recipe_for("phase0_query_analyzer", "chat").key
    requests = (Request(sentence, ()) for sentence in typed_sentences(case.query))
    return overall_mood(cast(Mood, executor.decide(recipe, "mood", one, NoTurn()).value) for one in requests)


def _exclusion(case: Case, executor: "RecipeExecutor") -> tuple[str, ...]:
    items = _items(case)
    found = find_exclusions(case.query, items, find_mentions(case.query, items))
    return tuple(f"{one.action} {one.ref}" for one in found)


def _reference(case: Case, executor: "RecipeExecutor") -> tuple[str, ...]:
    refs = (ref for one in find_mentions(case.query, _items(case)) for ref in one.refs)
    return tuple(dict.fromkeys(refs))


def _items(case: Case) -> list[Thing]:
    return [Thing(ref, "", text) for ref, text in case.options]


def _period(case: Case, executor: "RecipeExecutor") -> tuple[str, ...]:
    assert case.now is not None
    periods = find_periods(case.query, case.now)
    return tuple(str(day) for one in periods for day in (one.start, one.end))


def _evidence(case: Case, executor: "RecipeExecutor") -> str:
    """Whether the options, as sources, hold what the query, as an answer, claims."""
    sources = [text for _, text in case.options]
    return "unsupported" if check_evidence(case.query, sources, worded=True) else "supported"


JUDGES: Mapping[str, Judge] = {
    "mood": _mood,
    "quotable": lambda case, _: "question" if is_question(case.query) else "statement",
    "exclusion": _exclusion,
    "reference": _reference,
    "period": _period,
    "constraint": lambda case, _: tuple(one.text for one in find_limits(case.query)),
    "evidence": _evidence,
}
"""By kind."""


def same_phrases(query: str, label: tuple[str, ...], said: tuple[str, ...]) -> bool:
    """
    Whether each labelled phrase overlaps one that was found, and none of these is left over.

    >>> same_phrases("a tent under 3 kg, no pegs", ("under 3 kg", "no pegs"), ("3 kg", "no pegs"))
    True
    """
    wanted, found = ([_span(query, one) for one in phrases] for phrases in (label, said))
    return all(_meets(one, found) for one in wanted) and all(_meets(one, wanted) for one in found)


def _span(query: str, phrase: str) -> range:
    plain, words = " ".join(query.lower().split()), " ".join(phrase.lower().split()).strip(" .,")
    at = plain.find(words)
    return range(at, at + len(words)) if at >= 0 else range(0)


def _meets(one: range, others: list[range]) -> bool:
    return any(max(one.start, other.start) < min(one.stop, other.stop) for other in others)


@dataclass(frozen=True)
class Answered:
    case: Case
    recipe: str  # recipe that was asked, or the rule
    said: Said  # the answer
    fitted: bool  # whether a fit decided
    seconds: float  # wall clock of the choice, nothing of it known before

    @property
    def label(self) -> str:
        return render_label(self.case.label)

    @property
    def right(self) -> bool:
        if self.case.kind == "constraint":
            return same_phrases(self.case.query, tuple(self.case.label), self.said.ranked)
        return self.said.label == self.label

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.case.kind,
            "query": self.case.query,
            "label": self.label,
            "said": self.said.label,
            "right": self.right,
            "confidence": self.said.confidence,
            "score": self.said.score,
        }


def recipe_of(executor: RecipeExecutor, kind: Kind, mode: str = "chat") -> str:
    """The recipe that a kind measures, or the function that judges."""
    if kind.step is None:
        return kind.recipe or kind.choice
    return executor.book.recipe_for(kind.step, mode).key


def run_cases(executor: RecipeExecutor, cases: Sequence[Case]) -> list[Answered]:
    """Ask every case; no answer depends on another case."""
    found = []
    with progress("cases", len(cases)) as advance:
        for case in cases:
            found.append(_answer(executor, case))
            advance()
    return found


def _answer(executor: RecipeExecutor, case: Case) -> Answered:
    kind = case.of
    started = time.monotonic()
    if case.kind in JUDGES:
        judged = JUDGES[case.kind](case, executor)
        said = Said(render_label(judged), None, None, judged if isinstance(judged, tuple) else ())
        return Answered(case, kind.choice, said, kind.has_recipe, time.monotonic() - started)
    recipe = recipe_of(executor, kind)
    request = request_of(case, executor.book.load_recipe(recipe).tools_available)
    choice = executor.decide(recipe, kind.choice, request, NoTurn())
    return Answered(case, recipe, read_choice(kind, choice), choice.fitted, time.monotonic() - started)


def request_of(case: Case, tools: Sequence[str] = ()) -> Request:
    """
    What the phase would give to the recipe; all *tools* are on offer where the label is one of them.

    >>> request_of(Case("reflection", "fit", "And it?", ("A tent",), (), "PROCEED")).documents[0].text
    'Turn 1: A tent'
    """
    kind = case.of
    history = "\n".join(f"Turn {n}: {said}" for n, said in enumerate(case.history, 1))
    documents = [InputDocument("turn_summaries", history)] if history else []
    options = [
        Option(id_, text, (id_,), share_of_words(case.query, text), case.titles.get(id_, ""))
        for id_, text in case.options
    ]
    if not options and case.label in tools:
        options = [Option(name, name) for name in tools]
    return Request(case.query, documents, {kind.over: options} if kind.over and options else {})


def render_label(label: str | tuple[str, ...]) -> str:
    """
    A label as one text, a list without regard to order and case.

    >>> render_label(("under $5", "No nuts"))
    'no nuts; under $5'
    """
    if isinstance(label, str):
        return label
    return "; ".join(sorted(part.lower() for part in label))
