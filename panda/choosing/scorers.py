"""
A choice by its decision list, the first step that reaches its bar decides; and the scorers of its steps.

A scorer maps a question to a score by option; where it cannot tell (no options, no encoder, no fit made for
the models in force) there are no scores, and the step is passed over.

- label: how likely each label is after the whole prompt: the one call of a language model for a decision that
  has no list. For models that follow instructions.
- cosine: how near options, or the examples of classes, are to the query. Without an encoder the same step is
  decided by the words that they share with it.
- head: the classes of a fit, read of the message (`heads.py`).
- options: by how close they are to the query; a fit on a few values of the closest says whether any answers.
- prior: the order that the options came with.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from panda.choosing.ask import Ask, section_items
from panda.choosing.decision import (
    FITTED,
    SCORERS,
    Choice,
    ChoiceInputs,
    ChoiceSpec,
    Option,
    Question,
    Step,
)
from panda.choosing.fits import fit_name, softmax
from panda.choosing.heads import score_head
from panda.models.contract import ScoreCase, Usage
from panda.retrieval.relevance import WORDS_WEIGHT, share_of_words, shares_by_rarity

_SHARPNESS = 15.0  # what a cosine is multiplied by, so that the softmax over classes becomes a probability
LAYOUT = 4  # to be raised with every change of what a value is: fits of another layout are not found
ANSWERED = "answered"  # the class of a fit of options that says that the closest one answers
_MOST_LACKING = 4  # so many words at most count as lacking
_SCALE = 5.0  # what a cosine is multiplied by, so that one strength of regularisation suits all values


def score_labels(question: Question, ask: Ask) -> dict[str, float]:
    """Probability of each option's text after the whole prompt and the step's cue."""
    cases = [ScoreCase(question.step.cue, f" {option.text}") for option in question.options]
    found = ask.score(question.inputs.pack(), cases)
    return softmax({o.id: value for o, (value, _) in zip(question.options, found, strict=True)})


def score_cosine(question: Question, ask: Ask) -> dict[str, float]:
    """Cosine and weighted prior of each option; with a prompt file, the probability of each class."""
    if question.step.prompt is not None:
        return _score_classes(question, ask)
    found = _nearness(question.inputs.query, [option.near for option in question.options], ask)
    weight = question.step.prior
    return {one.id: near + weight * one.prior for one, near in zip(question.options, found, strict=True)}


def _nearness(query: str, texts: Sequence[str], ask: Ask) -> list[float]:
    """Cosine of each text with the query; without an encoder the share of the query's words that it has."""
    if ask.encoder is None:
        return [share_of_words(query, text) for text in texts]
    return ask.judge_cosines(query, texts)


def _score_classes(question: Question, ask: Ask) -> dict[str, float]:
    """Of each class the mean of its nearest and its mean cosine, made a probability."""
    sections = ask.sections(question.step)
    examples = {
        option.id: items
        for option in question.options
        if (items := section_items(sections.get(option.text, "")))
    }
    query, texts = question.inputs.query, [item for items in examples.values() for item in items]
    found = iter(_nearness(query, texts, ask))
    near = {name: [next(found) for _ in items] for name, items in examples.items()}
    return softmax(
        {name: _SHARPNESS * (max(all_) + sum(all_) / len(all_)) / 2 for name, all_ in near.items()}
    )


def name_options(question: Question, ask: Ask) -> str:
    """Name of the file of a step's fit: it belongs to one encoder and one layout."""
    assert ask.encoder is not None
    step = question.step
    return fit_name(step.fit or "", f"{LAYOUT} {' '.join(step.reads)}", ask.encoder.info.digest)


def score_options(question: Question, ask: Ask) -> Mapping[str, float]:
    """
    Probability of each option that it answers; nothing without an encoder, a fit for it, or options. The
    closest option has what the fit gives for it, each other the less the further behind that it is.
    """
    options = question.options
    fit = ask.find_fit(name_options(question, ask)) if ask.encoder is not None and options else None
    if fit is None or ask.encoder is None:
        return {}

    def compute() -> tuple[Sequence[float], Usage, float]:
        closeness, values = read_options(question, ask)
        sure = fit.logprobs(values)[ANSWERED]
        return [sure - _SHARPNESS * (max(closeness) - near) for near in closeness], Usage(0, 0, 0), 0.0

    named = "\n".join([f"[fit {fit.digest}]", question.inputs.query, *(option.near for option in options)])
    cases = [ScoreCase(option.near, " yes") for option in options]
    logprobs = ask.judge(ask.encoder.info, named, cases, compute)
    return {option.id: math.exp(value) for option, value in zip(options, logprobs, strict=True)}


def read_options(question: Question, ask: Ask) -> tuple[list[float], list[float]]:
    """
    How close each option is to the query, and what the step's fit reads of the closest, in order.

    - cosine: with the query
    - partners: the mean cosine of the query's words that the line lacks with the nearest of its other words
    - lacking: how many words of the query the line lacks

    The lead over other lines, the share of the query's words, and whether a value of the kind that is
    asked for is there add nothing to these (tests/evals/RESULTS.md).
    """
    query, texts = question.inputs.query, [option.near for option in question.options]
    cosines, words = ask.cosines(query, texts), shares_by_rarity(query, texts)
    closeness = [near + WORDS_WEIGHT * share for near, share in zip(cosines, words, strict=True)]
    best = closeness.index(max(closeness))
    partners, lacking = ask.partners(query, texts[best])
    values = {"cosine": cosines[best], "partners": partners, "lacking": min(lacking, _MOST_LACKING) / 10}
    return closeness, [_SCALE * values[name] for name in question.step.reads]


_SCORERS: Mapping[str, Callable[[Question, Ask], Mapping[str, float]]] = {
    "label": score_labels,
    "cosine": score_cosine,
    "head": score_head,
    "options": score_options,
    "prior": lambda question, ask: {option.id: option.prior for option in question.options},
}
assert tuple(_SCORERS) == SCORERS
_PROBABLE = ("label", *FITTED)  # scorers whose scores are probabilities


def choose(spec: ChoiceSpec, inputs: ChoiceInputs, ask: Ask) -> Choice:
    """
    One choice by its decision list. Of a subset, `value` holds the ids that reach the bar, best first; of a
    single one without options it is None.
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
    return None
