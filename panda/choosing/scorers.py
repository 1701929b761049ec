"""
A choice by its decision list, the first step that reaches its bar decides; and the scorers of its steps.

A scorer maps a question to a score by option; where it cannot tell (no options, no encoder, no fit made for
the models in force) there are no scores, and the step is passed over.

- head: the classes of a fit, read of the message (`fits.py`).
- options: by how close they are to the query; a fit on a few values of the closest says whether any answers.
- cosine: how near options, or the examples of classes, are to the query. Without an encoder the same step is
  decided by the words that they share with it.
- prior: the order that the options came with.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from panda.choosing.ask import Ask, Vectors
from panda.choosing.decision import FITTED, SCORERS, Choice, ChoiceInputs, ChoiceSpec, Option, Question, Step
from panda.choosing.fits import find_fit, score_head, softmax
from panda.language.words import FUNCTION_WORDS, split_terms
from panda.models.contract import ScoreCase
from panda.retrieval.relevance import share_of_words

_SHARPNESS = 15.0  # what a cosine is multiplied by, so that the softmax over classes becomes a probability
_BEHIND = 20.0  # the same of closeness, by which one of several lines is the right one in folds
ANSWERED = "answered"  # the class of a fit of options that says that the closest one answers
_LEAST = 1e-6
_MOST_LACKING = 4  # so many words at most count as lacking
_NONE_LACKING = 0.75  # what counts as the partners' cosine where a line has all words of a query
_SCALE = 5.0  # what a cosine is multiplied by, so that one strength of regularisation suits all values
_MOST_READ = 5  # so many options, the nearest in meaning, are read word by word


def score_cosine(question: Question, ask: Ask) -> dict[str, float]:
    """
    Nearness and weighted prior of each option; with a prompt file, the probability of each class, made of its
    nearest example and the mean of all.
    """
    query, step = question.inputs.query, question.step
    if step.prompt is None:
        near = _nearness(query, [option.near for option in question.options], ask)
        pairs = zip(question.options, near, strict=True)
        return {option.id: value + step.prior * option.prior for option, value in pairs}
    of_class = ask.examples(step.prompt)
    examples = {option.id: items for option in question.options if (items := of_class.get(option.text))}
    values = iter(_nearness(query, [item for items in examples.values() for item in items], ask))
    of_each = {name: [next(values) for _ in items] for name, items in examples.items()}
    return softmax(
        {name: _SHARPNESS * (max(all_) + sum(all_) / len(all_)) / 2 for name, all_ in of_each.items()}
    )


def _nearness(query: str, texts: Sequence[str], ask: Ask) -> list[float]:
    """Cosine of each text with the query; without an encoder the share of the query's words that it has."""
    if ask.encoder is None:
        return [share_of_words(query, text) for text in texts]
    cases = [ScoreCase("", text) for text in texts]

    def compute() -> list[float]:  # what is written down is a logarithm
        return [math.log(max(_LEAST, (1 + cosine) / 2)) for cosine in ask.cosines(query, texts)]

    return [round(2 * math.exp(value) - 1, 6) for value in ask.judge(f"[cosine]\n{query}\n", cases, compute)]


def score_options(question: Question, ask: Ask) -> Mapping[str, float]:
    """
    Probability of each option that it answers. The closest has what the fit gives for it, each other the less
    the further behind that it is.
    """
    options, fit = question.options, find_fit(question, ask)
    if fit is None or not options:
        return {}

    def compute() -> list[float]:
        closeness, values = read_options(question, ask)
        sure = fit.logprobs(values)[ANSWERED]
        return [sure - _BEHIND * (max(closeness) - near) for near in closeness]

    named = "\n".join([f"[fit {fit.digest}]", question.inputs.query, *(option.near for option in options)])
    logprobs = ask.judge(named, [ScoreCase(option.near, " yes") for option in options], compute)
    return {option.id: math.exp(value) for option, value in zip(options, logprobs, strict=True)}


def read_options(question: Question, ask: Ask) -> tuple[list[float], list[float]]:
    """
    How close each option is to the query, and what the step's fit reads of the closest, in order.

    An option is as close as the mean of its cosine with the query, and of the cosine of each of the query's
    words with the nearest word of the option, each word as the encoder reads it in its place. Options that
    are not among the nearest in meaning count as the last of those by their words.
    """
    query, texts = question.inputs.query, [option.near for option in question.options]
    cosines, asked = ask.cosines(query, texts), ask.words(query)
    read = sorted(range(len(texts)), key=lambda place: -cosines[place])[:_MOST_READ]
    nearest = {place: _mean_nearest(asked, ask.words(texts[place])) for place in read}
    least = min(nearest.values())
    closeness = [(near + nearest.get(place, least)) / 2 for place, near in enumerate(cosines)]
    best = closeness.index(max(closeness))
    values = {"cosine": cosines[best], **describe_line(asked, ask.words(texts[best]))}
    return closeness, [_SCALE * values[name] for name in question.step.reads]


Words = Sequence[tuple[str, Vectors]]


def describe_line(asked: Words, said: Words) -> dict[str, float]:
    """
    What a line says beyond the words that a query and it have in common.

    - partners: the mean cosine of the query's telling words that the line lacks with the nearest of its other
      words
    - lacking: how many these words are, by ten
    - rest: the cosine of all that the query asks beyond those words with all that the line says beyond them
    """
    held = {term for word, _ in said for term in split_terms(word)}
    telling = [one for one in asked if one[0] not in FUNCTION_WORDS] or asked
    terms = {term for word, _ in telling for term in split_terms(word)}
    lacking = [one for one in telling if held.isdisjoint(split_terms(one[0]))]
    others = [one for one in said if terms.isdisjoint(split_terms(one[0]))]
    partners = _mean_nearest(lacking, others) if lacking else _NONE_LACKING
    beyond = [one for one in asked if held.isdisjoint(split_terms(one[0]))]
    means = [
        np.mean([vector for _, vector in words], axis=0)
        for words in (beyond or asked, others or said)
        if words
    ]
    rest = (
        float(np.prod(means, axis=0).sum() / math.prod(map(np.linalg.norm, means)))
        if len(means) == 2
        else 0.0
    )
    return {"partners": partners, "lacking": min(len(lacking), _MOST_LACKING) / 10, "rest": round(rest, 6)}


def _mean_nearest(words: Words, others: Words) -> float:
    """The mean of each word's cosine with the nearest of the others; 0 where there are none of either."""
    if not words or not others:
        return 0.0
    cosines = np.array([vector for _, vector in words]) @ np.array([vector for _, vector in others]).T
    return round(math.fsum(map(float, cosines.max(axis=1))) / len(words), 6)


_SCORERS: Mapping[str, Callable[[Question, Ask], Mapping[str, float]]] = {
    "cosine": score_cosine,
    "head": score_head,
    "options": score_options,
    "prior": lambda question, ask: {option.id: option.prior for option in question.options},
}
assert tuple(_SCORERS) == SCORERS


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
        return [Option(name, name) for name in ask.examples(step.prompt or "")]
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
    ranked = sorted(scores, key=lambda option: -scores[option])
    best = scores[ranked[0]]
    if step.at_least is not None and best < step.at_least:
        return None
    value: Any = step.choose
    many = step.many or spec.many
    if spec.many and many:
        bar = max(many.at_least if many.share is None else many.share * best, best - many.within)
        taken = [option for option in ranked if scores[option] >= bar] if best >= many.at_least else []
        value = tuple(taken[: many.max])
    elif value is None:
        value = next((value for value in spec.values if str(value) == ranked[0]), ranked[0])
    is_probable = step.scorer in FITTED or (step.scorer == "cosine" and step.prompt is not None)
    confidence = round(best, 4) if is_probable else None
    return Choice(spec.name, value, scores, confidence, step.scorer, step.scorer in FITTED)
