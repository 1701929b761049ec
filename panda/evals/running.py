"""Labelled cases through the executor, as the phases ask."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from panda.choosing.decision import Option
from panda.compression.documents import InputDocument
from panda.evals.cases import Case
from panda.evals.judges import JUDGES, same_phrases
from panda.evals.kinds import Kind, Said, read_choice
from panda.recipes.calls import NoTurn
from panda.recipes.executor import RecipeExecutor
from panda.recipes.messages import Request
from panda.retrieval.relevance import share_of_words


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
        if self.case.kind == "constraint":
            return same_phrases(self.case.query, tuple(self.case.label), self.said.ranked)
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


def recipe_of(executor: RecipeExecutor, kind: Kind, mode: str = "chat") -> str:
    """The recipe that a kind measures, or the function that judges."""
    if kind.step is None:
        return kind.recipe or kind.choice
    return executor.book.recipe_for(kind.step, mode).key


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
    What the phase would give to the recipe.

    Args:
        case: The case.
        tools: What the recipe may use: all of it is on offer where the label is one of them.

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
