"""
Choices by log-probability: how a model that writes badly still decides well.

Four scorers ask the model, one asks nothing:

- likelihood: how much likelier the query becomes when an option is put before it, compared with notes that
  have nothing to do with it. Ranks evidence and candidates.
- channel: how likely the query is after examples of each class. Sorts queries into classes.
- label: how likely each label is after the whole prompt. For models that follow instructions.
- fit: what a fitted linear head reads in the model's hidden state after worked examples.
- prior: the order that the options came with.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from panda.documents.last_seen import without_last_seen
from panda.models.contract import ScoreCase
from panda.recipes.prompt_sections import prompt_sections, section_items
from panda.recipes.schemas import ChoiceSpec, Step

_MOST_REVERSED = 8
"""How many options are scored in reverse; the others count as the worst of them."""
_BEFORE = "Evidence: {{option}}\nQuestion:"
ScoreFunction = Callable[[str, Sequence[ScoreCase]], list[tuple[float, int]]]
"""Maps a prefix and cases to (log-probability, number of tokens) of each continuation."""


@dataclass(frozen=True)
class Option:
    """One thing that can be chosen."""

    id: str
    """What the reply holds when it is chosen."""
    text: str
    """What it says, one line."""
    node_ids: tuple[str, ...] = ()
    """Nodes it comes from."""
    prior: float = 0.0
    """How well it fits by words, 0 to 1."""
    title: str = ""
    """What the scorer sees before the text, as "Turn 809"; it is no part of what is quoted."""

    @property
    def scored(self) -> str:
        """The text as a scorer sees it, keys as words."""
        return f"{self.title}: {self.worded}" if self.title else self.worded

    @property
    def worded(self) -> str:
        """The text, keys as words, without the mark of when it was last seen."""
        return without_last_seen(self.text).replace("_", " ")


@dataclass(frozen=True)
class Choice:
    """A choice that was made."""

    name: str
    """Property of the reply."""
    value: str | bool | tuple[str, ...] | None
    """What was chosen; ids for a subset, best first; None when there was nothing to choose from."""
    scores: Mapping[str, float]
    """Score by option id or value, of the step that decided."""
    confidence: float | None
    """Probability that the choice is right as the scorer sees it; None when nothing was scored."""
    scorer: str
    """Scorer of the step that decided."""
    fitted: bool = False
    """Whether the confidence comes from a fit to labelled cases."""


@dataclass(frozen=True)
class ChoiceInputs:
    """What the choices of one call look at."""

    query: str
    """The user's query."""
    options: Mapping[str, Sequence[Option]]
    """Options by property name or by the name in `over`."""
    pack: Callable[[], str]
    """Gives the whole prompt as text, for labels."""
    prompt: Callable[[str], str]
    """Gives the text of a prompt file."""
    documents: Mapping[str, str] = field(default_factory=dict)
    """Documents of the turn by name, for the cases of fits."""


FitFunction = Callable[[ChoiceSpec, Step, ChoiceInputs], Mapping[str, float]]
"""Maps a fit step to probabilities by value or option id; empty without a fit."""


def choose(
    spec: ChoiceSpec,
    inputs: ChoiceInputs,
    score: ScoreFunction,
    fit: FitFunction | None = None,
) -> Choice:
    """
    Make one choice by its decision list.

    Args:
        spec: The property and its steps; the first step that reaches its bar decides.
        inputs: Query, options and prompts.
        score: Asks the model.
        fit: Asks a fit; None leaves all fits out.

    Returns:
        The choice. With a subset, `value` holds the ids that reach the bar, best first; with a single one
        and no options, `value` is None.
    """
    made: Choice | None = None
    is_fitted = False

    def known_fit(spec: ChoiceSpec, step: Step, inputs: ChoiceInputs) -> Mapping[str, float]:
        nonlocal is_fitted
        found = fit(spec, step, inputs) if fit else {}
        is_fitted = is_fitted or bool(found)
        return found

    for step in spec.steps:
        if not (step.unfitted and is_fitted):
            made = made or _try_step(spec, step, inputs, score, known_fit)
    return made or Choice(spec.name, () if spec.many else None, {}, None, spec.steps[-1].scorer)


def written_choice(spec: ChoiceSpec, value: Any) -> Choice:
    """A choice that a model made which cannot score: by writing it, and so without a confidence."""
    taken = tuple(dict.fromkeys(value)) if isinstance(value, list) else value
    return Choice(spec.name, taken, {}, None, "written")


def _try_step(
    spec: ChoiceSpec, step: Step, inputs: ChoiceInputs, score: ScoreFunction, fit: FitFunction
) -> Choice | None:
    if step.choose is not None and step.at_least is None:
        return Choice(spec.name, step.choose, {}, None, step.scorer)
    if step.scorer == "fit":
        scores = fit(spec, step, inputs)
    else:
        scores = _scores(step, _offered(spec, step, inputs), inputs, score)
    if step.class_ is not None:
        scores = {key: value for key, value in scores.items() if key == step.class_}
    if not scores:
        return None
    best = max(scores, key=lambda option: scores[option])
    if step.at_least is not None and scores[best] < step.at_least:
        return None
    confidence, fitted = _confidence(step, scores), step.scorer == "fit"
    many = step.many or spec.many
    if spec.many and many:
        ranked = sorted(scores, key=lambda option: -scores[option])
        bar = max(many.at_least, scores[best] - many.within)
        taken = tuple(option for option in ranked if scores[option] >= bar)[: many.max]
        return Choice(spec.name, taken, scores, confidence, step.scorer, fitted)
    if step.choose is not None:
        return Choice(spec.name, step.choose, scores, confidence, step.scorer, fitted)
    value = next((value for value in spec.values if str(value) == best), best)
    return Choice(spec.name, value, scores, confidence, step.scorer, fitted)


def _offered(spec: ChoiceSpec, step: Step, inputs: ChoiceInputs) -> Sequence[Option]:
    if step.class_ is not None:
        return [
            Option(name, name)
            for name in prompt_sections(inputs.prompt(step.prompt or ""), step.prompt or "")
        ]
    if spec.values and not step.over:
        return [Option(str(value), str(value)) for value in spec.values]
    return inputs.options.get(step.over or spec.name, ())


def _scores(
    step: Step, options: Sequence[Option], inputs: ChoiceInputs, score: ScoreFunction
) -> dict[str, float]:
    if not options:
        return {}
    if step.scorer == "prior":
        return {option.id: option.prior for option in options}
    if step.scorer == "label":
        return _labels(step, options, inputs, score)
    sections = prompt_sections(inputs.prompt(step.prompt or ""), step.prompt or "")
    if step.scorer == "channel":
        return _channel(options, sections, inputs.query, score)
    return _likelihood(step, options, sections, inputs.query, score)


def _labels(
    step: Step, options: Sequence[Option], inputs: ChoiceInputs, score: ScoreFunction
) -> dict[str, float]:
    cases = [ScoreCase(step.cue, f" {option.text}") for option in options]
    found = score(inputs.pack(), cases)
    return _softmax({option.id: value for option, (value, _) in zip(options, found, strict=True)})


def _channel(
    options: Sequence[Option], sections: Mapping[str, str], query: str, score: ScoreFunction
) -> dict[str, float]:
    found: dict[str, float] = {}
    for option in options:
        examples = sections.get(option.text)
        if examples:
            lines = "\n".join(f"Message: {line}" for line in section_items(examples))
            found[option.id] = score(lines + "\n", [ScoreCase("Message:", f" {query}\n")])[0][0]
    return _softmax(found)


def _likelihood(
    step: Step, options: Sequence[Option], sections: Mapping[str, str], query: str, score: ScoreFunction
) -> dict[str, float]:
    found = score(*forward_cases(options, sections, query))
    foreign, given = found[: -len(options)], found[-len(options) :]
    base = sum(value for value, _ in foreign) / len(foreign)
    gains = [(value - base) / count for value, count in given]
    if step.reverse:
        first = sorted(range(len(options)), key=lambda n: -gains[n])[:_MOST_REVERSED]
        back = score(*reverse_cases([options[n] for n in first], sections, query))
        leads = reverse_leads([value / count for value, count in back], len(first))
        turned = dict(zip(first, leads, strict=True))
        gains = [gain + step.reverse * turned.get(n, min(leads)) for n, gain in enumerate(gains)]
    return {option.id: gain + step.prior * option.prior for option, gain in zip(options, gains, strict=True)}


def forward_cases(
    options: Sequence[Option], sections: Mapping[str, str], query: str
) -> tuple[str, list[ScoreCase]]:
    """Prefix and cases of the query after each note of `# foreign`, then after each option."""
    texts = [*section_items(sections["foreign"]), *(option.scored for option in options)]
    before = sections.get("before", "").strip() or _BEFORE
    cases = [ScoreCase(before.replace("{{option}}", text), f" {query}\n") for text in texts]
    return sections["shots"].strip() + "\n\n", cases


def reverse_cases(
    options: Sequence[Option], sections: Mapping[str, str], query: str
) -> tuple[str, list[ScoreCase]]:
    """Each option after the query, then each after every unrelated question; prefix and cases."""
    unrelated = sections["unrelated question"]
    cases = [
        ScoreCase(f"Question: {asked}\nEvidence:", f" {option.worded}\n")
        for asked in (query, *(section_items(unrelated) or [unrelated.strip()]))
        for option in options
    ]
    return sections["reverse"].strip() + "\n\n", cases


def reverse_leads(values: Sequence[float], count: int) -> list[float]:
    """
    How much likelier options are after the query than after unrelated questions.

    Args:
        values: Of the cases of `reverse_cases`, in their order.
        count: How many options there are.

    >>> reverse_leads([-1.0, -2.0, -3.0, -2.0, -2.0, -2.0], 2)
    [1.5, 0.0]
    """
    return [
        value - sum(values[count + n :: count]) / (len(values) // count - 1)
        for n, value in enumerate(values[:count])
    ]


def _softmax(values: Mapping[str, float]) -> dict[str, float]:
    if not values:
        return {}
    top = max(values.values())
    total = sum(math.exp(value - top) for value in values.values())
    return {key: math.exp(value - top) / total for key, value in values.items()}


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, value))))


def _confidence(step: Step, scores: Mapping[str, float]) -> float | None:
    best = max(scores.values())
    if step.scorer in ("label", "channel", "fit"):
        return round(best, 4)
    return None if step.scorer == "prior" else round(_sigmoid(best), 4)
