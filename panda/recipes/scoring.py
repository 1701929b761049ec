"""The model's side of choices: what a scorer asks is looked up, computed, and written down."""

from collections.abc import Callable, Sequence

from panda.models.contract import Model, ScoreCase, ScoreParams, Usage
from panda.recipes.book import RecipeBook
from panda.recipes.choices import Choice, ChoiceInputs, choose
from panda.recipes.journal import CallWriter, Journal
from panda.recipes.pack import Request
from panda.recipes.recipe import Recipe
from panda.recipes.schemas import ChoiceSpec

Memo = dict[tuple[str, str, str, str], tuple[float, int]]
"""(Log-probability, tokens) by model digest, prefix, context and continuation."""


class ChoiceScorer:
    """
    Makes the choices of one execution.

    Args:
        book: Gives prompts.
        recipe: The recipe that is executed.
        model: Its model.
        memo: What was scored before, by any recipe; added to.
        journal: Knows what was recorded.
        writer: Writes the calls down.
    """

    def __init__(
        self,
        book: RecipeBook,
        recipe: Recipe,
        model: Model,
        memo: Memo,
        journal: Journal,
        writer: CallWriter,
    ) -> None:
        self._book = book
        self._recipe = recipe
        self._model = model
        self._memo = memo
        self._journal = journal
        self._writer = writer

    def choose(self, spec: ChoiceSpec, request: Request, pack: Callable[[], str], attempt: int) -> Choice:
        """
        Make one choice.

        Args:
            spec: The property.
            request: Query, options and documents.
            pack: Gives the whole prompt as text.
            attempt: Which attempt of the execution it is.
        """

        def score(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, int]]:
            return self._score(spec.name, prefix, cases, attempt)

        inputs = ChoiceInputs(
            query=request.query,
            options=request.options,
            pack=pack,
            prompt=lambda name: self._book.load_prompt(name, where=str(self._recipe.path)),
        )
        return choose(spec, inputs, score)

    def _score(
        self, name: str, prefix: str, cases: Sequence[ScoreCase], attempt: int
    ) -> list[tuple[float, int]]:
        memo, digest = self._memo, self._model.info.digest
        keys = [(digest, prefix, case.context, case.continuation) for case in cases]
        for key, case in zip(keys, cases, strict=True):
            if key not in memo:
                recorded = self._journal.recordings.score(self._recipe.key, digest, prefix, case)
                memo |= {key: recorded} if recorded else {}
        todo = list(dict.fromkeys(key for key in keys if key not in memo))
        seconds, usage = 0.0, Usage(0, 0, 0)
        if todo:
            params = ScoreParams(self._recipe.quality_gates.timeout_ms / 1000)
            scores = self._model.score(prefix, [ScoreCase(key[2], key[3]) for key in todo], params)
            memo.update(zip(todo, zip(scores.logprobs, scores.tokens, strict=True), strict=True))
            seconds, usage = scores.seconds, scores.usage
        found = [memo[key] for key in keys]
        known = [key not in todo for key in keys]
        self._writer.write_choose(name, prefix, cases, found, known, usage, seconds, attempt)
        return found
