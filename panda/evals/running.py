"""Labelled cases through the executor, as the phases ask."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from panda.compression.fitting import InputDocument
from panda.documents.constraints import find_constraints
from panda.documents.evidence import check_evidence
from panda.evals.cases import Case
from panda.evals.kinds import KINDS, Kind, Said, read_choice
from panda.recipes.choices import Option
from panda.recipes.executor import RecipeExecutor
from panda.recipes.pack import Request
from panda.recipes.recordings import Recordings
from panda.retrieval.overlap import share_of_words

_PREPOSITION = re.compile(r"^(?:(?:for|in|with|at|that|which|is|and|a|an) )+")


@dataclass(frozen=True)
class Answered:
    """One case and what was said."""

    case: Case
    """The case."""
    recipe: str
    """Recipe that was asked, or the rule."""
    said: Said
    """The answer."""
    fitted: bool
    """Whether a fit decided."""
    seconds: float
    """Wall clock of the choice, nothing of it known before."""

    @property
    def label(self) -> str:
        """The right answer as one text."""
        return render_label(self.case.label)

    @property
    def right(self) -> bool:
        """Whether what was said is right."""
        return self.said.label == self.label

    def as_json(self) -> dict[str, object]:
        """For files."""
        return {
            "kind": self.case.kind,
            "query": self.case.query,
            "label": self.label,
            "said": self.said.label,
            "right": self.right,
            "confidence": self.said.confidence,
            "score": self.said.score,
        }


class EvalJournal:
    """A journal that keeps nothing: what is measured is no turn."""

    user_id = session_id = "eval"
    turn, phase = 0, None

    def __init__(self) -> None:
        self.recordings = Recordings([])

    def seed(self, recipe: str, attempt: int) -> int:
        """Always 0; choices draw nothing."""
        return 0

    def count_execution(self, recipe: str) -> None:
        """Evaluations have no limit."""

    def add_call(self, record: Mapping[str, object]) -> None:
        """Dropped."""

    def knows_prefix(self, digest: str) -> bool:
        """Nothing is written down, so nothing need be spelt out."""
        return True


def recipe_of(executor: RecipeExecutor, kind: Kind, mode: str = "chat") -> str:
    """The recipe that a kind measures, or the function that judges."""
    return kind.choice if kind.step is None else executor.book.recipe_for(kind.step, mode).key


def run_cases(
    executor: RecipeExecutor, cases: Sequence[Case], *, advance: Callable[[], None] = lambda: None
) -> list[Answered]:
    """
    Ask every case.

    Args:
        executor: Asks the recipes.
        cases: In any order; no answer depends on another case.
        advance: Told after each.

    Raises:
        HaltError: A model call failed.
    """
    found = []
    for case in cases:
        found.append(_answer(executor, case))
        advance()
    return found


def _answer(executor: RecipeExecutor, case: Case) -> Answered:
    kind = KINDS[case.kind]
    started = time.monotonic()
    if kind.step is None:
        said = Said(_JUDGES[kind.choice](case), None, None)
        return Answered(case, kind.choice, said, False, time.monotonic() - started)
    recipe = recipe_of(executor, kind)
    choice = executor.decide(recipe, kind.choice, request_of(case), EvalJournal())
    return Answered(case, recipe, read_choice(kind, choice), choice.fitted, time.monotonic() - started)


def _label_of_evidence(case: Case) -> str:
    """Whether the options, as sources, hold what the query, as an answer, claims."""
    return "unsupported" if check_evidence(case.query, [text for _, text in case.options]) else "supported"


_JUDGES: Mapping[str, Callable[[Case], str]] = {
    "find_constraints": lambda case: render_label(tuple(find_constraints(case.query))),
    "check_evidence": _label_of_evidence,
}
"""How the kinds without a recipe are judged, by the choice that they name."""


def request_of(case: Case) -> Request:
    """
    What the phase would give to the recipe.

    >>> request_of(Case("reflection", "fit", "And it?", ("A tent",), (), "PROCEED")).documents[0].text
    'Turn 1: A tent'
    """
    kind = KINDS[case.kind]
    history = "\n".join(f"Turn {n}: {said}" for n, said in enumerate(case.history, 1))
    documents = [InputDocument("turn_summaries", history)] if history else []
    options = [Option(i, text, (i,), share_of_words(case.query, text)) for i, text in case.options]
    return Request(case.query, documents, {kind.over: options} if kind.over else {})


def render_label(label: str | tuple[str, ...]) -> str:
    """
    A label as one text, a list without regard to order, case, a preposition in front and a dot at the end.

    >>> render_label(("for under $5", "No nuts."))
    'no nuts; under $5'
    """
    if isinstance(label, str):
        return label
    return "; ".join(sorted(_PREPOSITION.sub("", part.lower().strip(" .,")) for part in label))
