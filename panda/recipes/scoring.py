"""The model's side of choices: what a scorer asks is looked up, computed, and written down."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from panda.models.contract import Model, ScoreCase, ScoreParams, Usage
from panda.recipes.book import RecipeBook
from panda.recipes.choices import Choice, ChoiceInputs, choose
from panda.recipes.fit_cases import YES, FitText, FitTexts, build_texts, judges_options
from panda.recipes.fits import Fit, choice_hash, fit_name
from panda.recipes.journal import CallWriter, Journal
from panda.recipes.pack import Request
from panda.recipes.recipe import Recipe
from panda.recipes.schemas import ChoiceSpec, Step

State = tuple[float, ...]
"""Values that a fit reads; of a hidden state mean and last token, one after the other."""


@dataclass(frozen=True)
class Memo:
    """What was computed before, by any recipe."""

    scores: dict[tuple[str, str, str, str], tuple[float, int]] = field(default_factory=dict)
    """(Log-probability, tokens) by model digest, prefix, context and continuation."""
    states: dict[tuple[str, str, str], State] = field(default_factory=dict)
    """Hidden state by model digest, prefix and text."""

    def clear(self) -> None:
        """Forget everything."""
        self.scores.clear()
        self.states.clear()


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

    @property
    def model_name(self) -> str:
        """The model's key in models.yaml."""
        return self._model.info.name

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
            prompt=self._prompt,
            documents={document.name: document.text for document in request.documents},
        )
        return choose(
            spec, inputs, score, lambda spec, step, inputs: self._fitted(spec, step, inputs, attempt)
        )

    def states(self, spec: ChoiceSpec, step: Step, request: Request) -> list[tuple[State, State]]:
        """
        What a fit of a step would read, one pair an option or one for all: for tuning.

        Args:
            spec: The property.
            step: Its step with the scorer fit.
            request: As for choose.

        Returns:
            Hidden state, and how much likelier the query becomes.
        """
        documents = {document.name: document.text for document in request.documents}
        inputs = ChoiceInputs(request.query, request.options, str, self._prompt, documents)
        texts = build_texts(spec, step, inputs)
        return [
            (self._state(texts.shots, text.case)[0], self._gains(spec.name, texts, text, request.query, 1))
            for text in texts.texts
        ]

    def fit_name(self, spec: ChoiceSpec, step: Step) -> str:
        """Name of the file that holds the step's fit for this model."""
        hash_ = choice_hash(spec, step, self._prompt(step.prompt or ""))
        return fit_name(spec.name, self._model.info.digest, hash_)

    def _prompt(self, name: str) -> str:
        return self._book.load_prompt(name, where=str(self._recipe.path))

    def _fitted(self, spec: ChoiceSpec, step: Step, inputs: ChoiceInputs, attempt: int) -> dict[str, float]:
        fit = self._book.fit(self.fit_name(spec, step)) if self._model.info.embeds else None
        if fit is None:
            return {}
        texts = build_texts(spec, step, inputs)
        found = [
            self._classify(
                fit,
                spec.name,
                texts.shots,
                text.case,
                self._gains(spec.name, texts, text, inputs.query, attempt),
                attempt,
            )
            for text in texts.texts
        ]
        if not judges_options(spec, step):
            return found[0]
        options = inputs.options.get(step.over or spec.name, ())
        return {option.id: one[YES] for option, one in zip(options, found, strict=True)}

    def _gains(self, name: str, texts: FitTexts, text: FitText, query: str, attempt: int) -> State:
        """Per token, how much likelier the query is than after each thing instead, and how likely at all."""
        if text.before is None or not texts.instead:
            return ()
        cases = [ScoreCase(before, f" {query}\n") for before in (text.before, *texts.instead)]
        (given, count), *others = self._score(name, texts.talk, cases, attempt)
        return (*((given - value) / count for value, _ in others), others[0][0] / count)

    def _classify(
        self, fit: Fit, name: str, prefix: str, text: str, gains: State, attempt: int
    ) -> dict[str, float]:
        """Probabilities of a fit's classes; written down like scores, under a prefix that names the fit."""
        named = f"[fit {fit.digest}]\n{prefix}"
        cases = [ScoreCase(text, label) for label in fit.classes]
        digest, memo = self._model.info.digest, self._memo.scores
        keys = [(digest, named, case.context, case.continuation) for case in cases]
        for key, case in zip(keys, cases, strict=True):
            recorded = None
            if key not in memo:
                recorded = self._journal.recordings.score(self._recipe.key, digest, named, case)
            memo |= {key: recorded} if recorded else {}
        known = [key in memo for key in keys]
        usage, seconds = Usage(0, 0, 0), 0.0
        if not all(known):
            state, usage, seconds = self._state(prefix, text)
            logprobs = fit.logprobs((*state, *gains))
            memo |= {key: (logprobs[key[3]], 1) for key in keys}
        values = [memo[key] for key in keys]
        self._writer.write_choose(name, named, cases, values, known, usage, seconds, attempt)
        return {label: math.exp(value) for label, (value, _) in zip(fit.classes, values, strict=True)}

    def _state(self, prefix: str, text: str) -> tuple[State, Usage, float]:
        key = (self._model.info.digest, prefix, text)
        if key in self._memo.states:
            return self._memo.states[key], Usage(0, 0, 0), 0.0
        params = ScoreParams(self._recipe.quality_gates.timeout_ms / 1000)
        hidden = self._model.embed(prefix, text, params)
        self._memo.states[key] = (*hidden.mean, *hidden.last)
        return self._memo.states[key], hidden.usage, hidden.seconds

    def _score(
        self, name: str, prefix: str, cases: Sequence[ScoreCase], attempt: int
    ) -> list[tuple[float, int]]:
        memo, digest = self._memo.scores, self._model.info.digest
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
