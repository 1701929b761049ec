"""
Nearness in meaning: the cosine of the query's vector with those of options, or of the examples of classes.

Without an encoder the same step is decided in another way, and this is the only place that says how: classes
by how likely the language model finds the query after their examples, options by the words that they share.
"""

from panda.choosing.ask import Ask
from panda.choosing.decision import Question
from panda.choosing.likelihood import score_examples, softmax
from panda.choosing.sections import section_items

_SHARPNESS = 15.0
"""What a cosine is multiplied by, so that the softmax over classes becomes a probability."""


def score_cosine(question: Question, ask: Ask) -> dict[str, float]:
    """Cosine and weighted prior of each option; with a prompt file, the probability of each class."""
    if question.step.prompt is not None:
        return _score_classes(question, ask) if ask.has_encoder else score_examples(question, ask)
    if not ask.has_encoder:
        return {option.id: option.prior for option in question.options}
    texts = [option.near for option in question.options]
    found = ask.judge_cosines(question.inputs.query, texts)
    weight = question.step.prior
    return {one.id: near + weight * one.prior for one, near in zip(question.options, found, strict=True)}


def _score_classes(question: Question, ask: Ask) -> dict[str, float]:
    """Of each class the mean of its nearest and its mean cosine, made a probability."""
    sections = ask.sections(question.step)
    examples = {
        option.id: items
        for option in question.options
        if (items := section_items(sections.get(option.text, "")))
    }
    found = iter(
        ask.judge_cosines(question.inputs.query, [item for items in examples.values() for item in items])
    )
    near = {name: [next(found) for _ in items] for name, items in examples.items()}
    return softmax(
        {name: _SHARPNESS * (max(all_) + sum(all_) / len(all_)) / 2 for name, all_ in near.items()}
    )
