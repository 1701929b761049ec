"""
One choice, made by its decision list: the first step whose scorer reaches the step's bar decides.

A scorer maps a question to a score by option; where it cannot tell (no options, no encoder, no fit made for
the models in force) there are no scores, and the step is passed over.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from panda.choosing.ask import Ask
from panda.choosing.decision import FITTED, SCORERS, Choice, ChoiceInputs, ChoiceSpec, Option, Question, Step
from panda.choosing.heads import score_head
from panda.choosing.likelihood import score_examples, score_labels, score_likelihood
from panda.choosing.nearness import score_cosine
from panda.choosing.options import score_options


class ScoreFunction(Protocol):
    """Scores of what a question offers, by option id; empty if it cannot tell."""

    def __call__(self, question: Question, ask: Ask) -> Mapping[str, float]: ...


def score_prior(question: Question, ask: Ask) -> dict[str, float]:
    """The order that the options came with."""
    return {option.id: option.prior for option in question.options}


_SCORERS: Mapping[str, ScoreFunction] = {
    "label": score_labels,
    "likelihood": score_likelihood,
    "cosine": score_cosine,
    "head": score_head,
    "options": score_options,
    "prior": score_prior,
    "channel": score_examples,
}
assert tuple(_SCORERS) == SCORERS
_PROBABLE = ("label", "channel", *FITTED)
"""Scorers whose scores are probabilities."""


def choose(spec: ChoiceSpec, inputs: ChoiceInputs, ask: Ask) -> Choice:
    """
    Make one choice by its decision list.

    Args:
        spec: The property and its steps; the first step that reaches its bar decides.
        inputs: Query, options and documents.
        ask: Asks the models.

    Returns:
        The choice. With a subset, `value` holds the ids that reach the bar, best first; with a single one
        and no options, `value` is None.
    """
    is_fitted = False
    for step in spec.steps:
        if step.unfitted and is_fitted:
            continue
        scores: Mapping[str, float] = {}
        options = _offered(spec, step, inputs, ask)
        if (options or step.scorer == "head") and (step.choose is None or step.at_least is not None):
            scores = _SCORERS[step.scorer](Question(spec, step, options, inputs), ask)
        is_fitted = is_fitted or (step.scorer in FITTED and bool(scores))
        made = _take(spec, step, scores)
        if made is not None:
            return made
    return Choice(spec.name, () if spec.many else None, {}, None, spec.steps[-1].scorer)


def written_choice(spec: ChoiceSpec, value: Any) -> Choice:
    """A choice that a model made by writing it; its confidence is not known so far."""
    taken = tuple(dict.fromkeys(value)) if isinstance(value, list) else value
    return Choice(spec.name, taken, {}, None, "written")


def _offered(spec: ChoiceSpec, step: Step, inputs: ChoiceInputs, ask: Ask) -> Sequence[Option]:
    if step.scorer == "head":
        return inputs.options.get(step.over or "", ())
    if step.class_ is not None:
        return [Option(name, name) for name in ask.sections(step)]
    if spec.values and not step.over:
        return [Option(str(value), str(value)) for value in spec.values]
    return inputs.options.get(step.over or spec.name, ())


def _take(spec: ChoiceSpec, step: Step, scores: Mapping[str, float]) -> Choice | None:
    """What a step with these scores decides; None if it is passed over."""
    if step.choose is not None and step.at_least is None:
        return Choice(spec.name, step.choose, {}, None, step.scorer)
    if step.class_ is not None and not spec.many:
        scores = {key: value for key, value in scores.items() if key == step.class_}
    if not scores:
        return None
    best = max(scores, key=lambda option: scores[option])
    if step.at_least is not None and scores[best] < step.at_least:
        return None
    confidence, fitted = _confidence(step, scores[best]), step.scorer in FITTED
    many = step.many or spec.many
    if spec.many and many:
        ranked = sorted(scores, key=lambda option: -scores[option])
        least = many.at_least if many.share is None else many.share * scores[best]
        bar = max(least, scores[best] - many.within)
        is_any = scores[best] >= many.at_least
        taken = tuple(option for option in ranked if is_any and scores[option] >= bar)[: many.max]
        return Choice(spec.name, taken, scores, confidence, step.scorer, fitted)
    value = next((value for value in spec.values if str(value) == best), best)
    return Choice(
        spec.name, value if step.choose is None else step.choose, scores, confidence, step.scorer, fitted
    )


def _confidence(step: Step, best: float) -> float | None:
    if step.scorer in _PROBABLE or (step.scorer == "cosine" and step.prompt is not None):
        return round(best, 4)
    if step.scorer != "likelihood":
        return None
    return round(1 / (1 + math.exp(-max(-50.0, min(50.0, best)))), 4)
