"""The model's side of choices: what a scorer asks is looked up, computed, and written down."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from panda.models.contract import Model, ScoreCase, ScoreParams, Scores, Usage
from panda.recipes.book import RecipeBook
from panda.recipes.choices import Choice, ChoiceInputs, Option, choose
from panda.recipes.fit_cases import YES, FitTexts, build_texts, judges_options
from panda.recipes.fits import Fit, fit_name
from panda.recipes.journal import CallWriter, Journal, add_usage
from panda.recipes.pack import Request
from panda.recipes.prompt_sections import prompt_sections
from panda.recipes.recipe import Recipe
from panda.recipes.rivals import compares_rivals, rival_values
from panda.recipes.schemas import ChoiceSpec, Step

_FAR_BELOW = 2.0
"""Nats a token: an option that explains the query so much worse than the best one is not read further."""

_Key = tuple[str, str, ScoreCase]
State = tuple[float, ...]
"""Values that a fit reads; of a hidden state mean and last token, one after the other."""


@dataclass(frozen=True)
class Memo:
    """What was computed before, by any recipe."""

    scores: dict[_Key, tuple[float, int]] = field(default_factory=dict)
    """(Log-probability, tokens) by model digest, prefix and case."""
    each: dict[_Key, tuple[float, ...]] = field(default_factory=dict)
    """The log-probability of each token, by the same."""
    states: dict[tuple[str, str, str], State] = field(default_factory=dict)
    """Hidden state by model digest, prefix and text."""

    def clear(self) -> None:
        """Forget everything."""
        self.scores.clear()
        self.each.clear()
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

        def fit(spec: ChoiceSpec, step: Step, inputs: ChoiceInputs) -> dict[str, float]:
            return self._fitted(spec, step, inputs, attempt)

        return self._with_confidence(spec, choose(spec, self._inputs(request, pack), score, fit))

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
        inputs = self._inputs(request, str)
        sections = self._sections(step)
        if compares_rivals(sections):
            values = self._rivals(_options(spec, step, inputs), sections, request.scored)[0]
            return [((), one) for one in values]
        texts = build_texts(spec, step, inputs)
        gains = self._gains(spec.name, texts, request.scored, 1)
        return [
            (self._state(texts.shots, text.case)[0], one)
            for text, one in zip(texts.texts, gains, strict=True)
        ]

    def fit_name(self, step: Step) -> str:
        """Name of the file that holds the step's fit for this model."""
        prompt = step.prompt or ""
        return fit_name(prompt, self._prompt(prompt), self._model.info.digest)

    def confidence_name(self, spec: ChoiceSpec) -> str:
        """Name of the file that makes a confidence of the best likelihood of a choice's last step."""
        step = spec.steps[-1]
        words = f"{self._prompt(step.prompt or '')}\n{step.prior} {step.reverse}"
        return fit_name(f"{self._recipe.path.stem}_{spec.name}.md", words, self._model.info.digest)

    def _with_confidence(self, spec: ChoiceSpec, made: Choice) -> Choice:
        """The choice; one by likelihood with the confidence that labelled cases give to such a score."""
        if made.scorer != "likelihood" or not made.scores or spec.steps[-1].scorer != made.scorer:
            return made
        fit = self._book.fit(self.confidence_name(spec))
        if fit is None:
            return made
        sure = math.exp(fit.logprobs((max(made.scores.values()),))[YES])
        return replace(made, confidence=round(sure, 4), fitted=True)

    def reads_rivals(self, step: Step) -> bool:
        """Whether the step's fit reads options beside each other."""
        return compares_rivals(self._sections(step))

    def _inputs(self, request: Request, pack: Callable[[], str]) -> ChoiceInputs:
        documents = {document.name: document.text for document in request.documents}
        return ChoiceInputs(request.scored, request.options, pack, self._prompt, documents)

    def _prompt(self, name: str) -> str:
        return self._book.load_prompt(name, where=str(self._recipe.path))

    def _sections(self, step: Step) -> dict[str, str]:
        return prompt_sections(self._prompt(step.prompt or ""), step.prompt or "")

    def _fitted(self, spec: ChoiceSpec, step: Step, inputs: ChoiceInputs, attempt: int) -> dict[str, float]:
        sections = self._sections(step)
        is_readable = compares_rivals(sections) or self._model.info.embeds
        fit = self._book.fit(self.fit_name(step)) if is_readable else None
        if fit is None:
            return {}
        options = _options(spec, step, inputs)
        if compares_rivals(sections):
            return self._judge(fit, spec.name, options, sections, inputs.query, attempt) if options else {}
        texts = build_texts(spec, step, inputs)
        gains = self._gains(spec.name, texts, inputs.query, attempt)
        best = max((one[0] for one in gains if one), default=0.0)
        found = [
            self._classify(fit, spec.name, texts.shots, text.case, one, attempt)
            if not one or best - one[0] <= _FAR_BELOW
            else {YES: 0.0}
            for text, one in zip(texts.texts, gains, strict=True)
        ]
        if not judges_options(spec, step):
            return found[0]
        return {option.id: one[YES] for option, one in zip(options, found, strict=True)}

    def _judge(
        self,
        fit: Fit,
        name: str,
        options: Sequence[Option],
        sections: Mapping[str, str],
        query: str,
        attempt: int,
    ) -> dict[str, float]:
        """Probabilities of options that are read beside each other; written down under all of them."""
        named = "\n".join([f"[fit {fit.digest}]", query, *(option.scored for option in options)])
        cases = [ScoreCase(option.scored, f" {YES}") for option in options]
        keys, known = self._look_up(named, cases)
        usage, seconds = Usage(0, 0, 0), 0.0
        if not all(known):
            values, usage, seconds = self._rivals(options, sections, query)
            found = fit.rival_logprobs(values)
            self._memo.scores.update(zip(keys, ((value, 1) for value in found), strict=True))
        values_ = [self._memo.scores[key] for key in keys]
        self._writer.write_choose(name, named, cases, values_, known, usage, seconds, attempt)
        return {option.id: math.exp(value) for option, (value, _) in zip(options, values_, strict=True)}

    def _rivals(
        self, options: Sequence[Option], sections: Mapping[str, str], query: str
    ) -> tuple[list[State], Usage, float]:
        usage, seconds = Usage(0, 0, 0), 0.0

        def score(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, ...]]:
            nonlocal usage, seconds
            keys = [self._key(prefix, case) for case in cases]
            todo = list(dict.fromkeys(key for key in keys if key not in self._memo.each))
            if todo:
                scores = self._ask(prefix, todo)
                usage, seconds = add_usage(usage, scores.usage), seconds + scores.seconds
            return [self._memo.each[key] for key in keys]

        return rival_values(options, sections, query, score), usage, seconds

    def _gains(self, name: str, texts: FitTexts, query: str, attempt: int) -> list[State]:
        """Of each text, per token: how much likelier the query is than after each thing instead, and how
        likely at all. All are asked in one call, which reads their shared beginning once."""
        asked = [text.before for text in texts.texts if text.before is not None] if texts.instead else []
        befores = list(dict.fromkeys([*asked, *texts.instead])) if asked else []
        cases = [ScoreCase(before, f" {query}\n") for before in befores]
        found = (
            dict(zip(befores, self._score(name, texts.talk, cases, attempt), strict=True)) if cases else {}
        )

        def gain(before: str | None) -> State:
            if before not in found:
                return ()
            given, count = found[before]
            others = [found[one][0] for one in texts.instead]
            return (*((given - value) / count for value in others), others[0] / count)

        return [gain(text.before) for text in texts.texts]

    def _classify(
        self, fit: Fit, name: str, prefix: str, text: str, gains: State, attempt: int
    ) -> dict[str, float]:
        """Probabilities of a fit's classes; written down like scores, under a prefix that names the fit."""
        named = f"[fit {fit.digest}]\n{prefix}"
        cases = [ScoreCase(text, label) for label in fit.classes]
        keys, known = self._look_up(named, cases)
        usage, seconds = Usage(0, 0, 0), 0.0
        if not all(known):
            state, usage, seconds = self._state(prefix, text)
            logprobs = fit.logprobs((*state, *gains))
            self._memo.scores.update((key, (logprobs[key[2].continuation], 1)) for key in keys)
        values = [self._memo.scores[key] for key in keys]
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
        keys, known = self._look_up(prefix, cases)
        todo = list(dict.fromkeys(key for key, before in zip(keys, known, strict=True) if not before))
        seconds, usage = 0.0, Usage(0, 0, 0)
        if todo:
            scores = self._ask(prefix, todo)
            seconds, usage = scores.seconds, scores.usage
        found = [self._memo.scores[key] for key in keys]
        self._writer.write_choose(name, prefix, cases, found, known, usage, seconds, attempt)
        return found

    def _key(self, prefix: str, case: ScoreCase) -> _Key:
        return (self._model.info.digest, prefix, case)

    def _look_up(self, prefix: str, cases: Sequence[ScoreCase]) -> tuple[list[_Key], list[bool]]:
        """Keys of the cases, and which were computed before, in this process or in the recorded turn."""
        memo, digest = self._memo.scores, self._model.info.digest
        keys = [self._key(prefix, case) for case in cases]
        for key, case in zip(keys, cases, strict=True):
            recorded = None
            if key not in memo:
                recorded = self._journal.recordings.score(self._recipe.key, digest, prefix, case)
            memo |= {key: recorded} if recorded else {}
        return keys, [key in memo for key in keys]

    def _ask(self, prefix: str, keys: Sequence[_Key]) -> Scores:
        """Scores from the model, remembered."""
        params = ScoreParams(self._recipe.quality_gates.timeout_ms / 1000)
        scores = self._model.score(prefix, [case for _, _, case in keys], params)
        found = list(zip(scores.logprobs, scores.tokens, strict=True))
        self._memo.scores.update(zip(keys, found, strict=True))
        each = scores.each or [(value / count,) * count for value, count in found]
        self._memo.each.update(zip(keys, each, strict=True))
        return scores


def _options(spec: ChoiceSpec, step: Step, inputs: ChoiceInputs) -> Sequence[Option]:
    return inputs.options.get(step.over or spec.name, ())
