"""
What the language model says of options, by how likely it finds the query or a label after them.

- likelihood: how much likelier the query becomes when an option is put before it, compared with notes that
  have nothing to do with it. Ranks evidence and candidates.
- channel: how likely the query is after examples of each class. Sorts queries into classes.
- label: how likely each label is after the whole prompt. For models that follow instructions.
"""

import math
from collections.abc import Mapping, Sequence

from panda.choosing.ask import Ask
from panda.choosing.decision import Option, Question
from panda.choosing.sections import section_items
from panda.models.contract import ScoreCase

MOST_ASKED = 8
"""So many options, the nearest in meaning, the language model reads; the others count as the last of them."""


def score_labels(question: Question, ask: Ask) -> dict[str, float]:
    """Probability of each option's text after the whole prompt and the step's cue."""
    cases = [ScoreCase(question.step.cue, f" {option.text}") for option in question.options]
    found = ask.score(question.inputs.pack(), cases)
    return softmax({o.id: value for o, (value, _) in zip(question.options, found, strict=True)})


def score_examples(question: Question, ask: Ask) -> dict[str, float]:
    """Probability of each class by how likely the query is after its examples in the prompt file."""
    sections, query = ask.sections(question.step), question.inputs.query
    found: dict[str, float] = {}
    for option in question.options:
        examples = sections.get(option.text)
        if examples:
            lines = "\n".join(f"Message: {line}" for line in section_items(examples))
            found[option.id] = ask.score(lines + "\n", [ScoreCase("Message:", f" {query}\n")])[0][0]
    return softmax(found)


def score_likelihood(question: Question, ask: Ask) -> dict[str, float]:
    """Nats a token by which the query becomes likelier after each option than after foreign notes."""
    step, query = question.step, question.inputs.query
    asked = _nearest(question, ask)
    found = ask.score(*forward_cases(asked, ask.sections(step), query))
    foreign, given = found[: -len(asked)], found[-len(asked) :]
    base = sum(value for value, _ in foreign) / len(foreign)
    gains = {option.id: (value - base) / count for option, (value, count) in zip(asked, given, strict=True)}
    least = min(gains.values())
    return {option.id: gains.get(option.id, least) + step.prior * option.prior for option in question.options}


def _nearest(question: Question, ask: Ask) -> Sequence[Option]:
    """The options that the language model reads, in their order; all of them without an encoder."""
    options = question.options
    if len(options) <= MOST_ASKED or not ask.has_encoder:
        return options
    near = ask.judge_cosines(question.inputs.query, [option.near for option in options])
    first = sorted(range(len(options)), key=lambda n: -near[n])[:MOST_ASKED]
    return [options[n] for n in sorted(first)]


def before_query(text: str) -> str:
    """What stands before the query that a text is to make likelier."""
    return f"Evidence: {text}\nQuestion:"


def forward_cases(
    options: Sequence[Option], sections: Mapping[str, str], query: str
) -> tuple[str, list[ScoreCase]]:
    """Prefix and cases of the query after each note of `# foreign`, then after each option."""
    texts = [*section_items(sections["foreign"]), *(option.scored for option in options)]
    cases = [ScoreCase(before_query(text), f" {query}\n") for text in texts]
    return sections["shots"].strip() + "\n\n", cases


def softmax(values: Mapping[str, float]) -> dict[str, float]:
    """Probabilities by logarithms; empty for none."""
    if not values:
        return {}
    top = max(values.values())
    total = sum(math.exp(value - top) for value in values.values())
    return {key: math.exp(value - top) / total for key, value in values.items()}
