"""
A choice by its decision list, the first step that reaches its bar decides; and the scorers of its steps.

A scorer maps a question to a score by option; where it cannot tell (no options, no encoder, no fit made for
the models in force) there are no scores, and the step is passed over.

- likelihood: how much likelier the query becomes when an option is put before it, compared with notes that
  have nothing to do with it. Ranks evidence and candidates.
- channel: how likely the query is after examples of each class. Sorts queries into classes.
- label: how likely each label is after the whole prompt. For models that follow instructions.
- cosine: how near options, or the examples of classes, are to the query. Without an encoder the same step is
  decided by `channel`, or by the words that options share with the query.
- head: the classes of a fit, read of the message (`heads.py`).
- options: a fit on a few values of each option says which answers the query, and whether any does.
- prior: the order that the options came with.
"""

import math
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from panda.choosing.ask import Ask, section_items
from panda.choosing.decision import (
    FITTED,
    GAIN,
    MUTUAL,
    SCORERS,
    Choice,
    ChoiceInputs,
    ChoiceSpec,
    Option,
    Question,
    Step,
)
from panda.choosing.fits import Fit, fit_name, softmax
from panda.choosing.heads import score_head
from panda.language.wording import leave_shared
from panda.models.contract import ScoreCase, Usage

MOST_ASKED = 8
"""So many options, the nearest in meaning, the language model reads; the others count as the last of them."""
_SHARPNESS = 15.0  # what a cosine is multiplied by, so that the softmax over classes becomes a probability
LAYOUT = 3  # to be raised with every change of what a value is: fits of another layout are not found
MOST_COMPARED = 4  # how many options, the nearest, the language model compares
MOST_JUDGED = 8  # how many it judges each for itself; of so many the rest is read as well
ANSWERS = "yes"
_LEAST = -12.0  # logarithms below this say no more
_MOST_GAIN = 2.0  # nats that a token counts at most in a gain: a name that is only copied proves little
_MOST_MUTUAL = 3.0  # the same of what the query says of an option
Rows = list[tuple[float, ...]]


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
    asked = _nearest_options(question, ask)
    found = ask.score(*forward_cases(asked, ask.sections(step), query))
    foreign, given = found[: -len(asked)], found[-len(asked) :]
    base = sum(value for value, _ in foreign) / len(foreign)
    gains = {option.id: (value - base) / count for option, (value, count) in zip(asked, given, strict=True)}
    least = min(gains.values())
    return {option.id: gains.get(option.id, least) + step.prior * option.prior for option in question.options}


def _nearest_options(question: Question, ask: Ask) -> Sequence[Option]:
    """The options that the language model reads, in their order; all of them without an encoder."""
    options = question.options
    if len(options) <= MOST_ASKED or ask.encoder is None:
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


def score_cosine(question: Question, ask: Ask) -> dict[str, float]:
    """Cosine and weighted prior of each option; with a prompt file, the probability of each class."""
    if question.step.prompt is not None:
        return _score_classes(question, ask) if ask.encoder is not None else score_examples(question, ask)
    if ask.encoder is None:
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


def name_options(question: Question, ask: Ask) -> str:
    """Name of the file of a step's fit: it belongs to both models, one layout and the words of the prompt."""
    assert ask.encoder is not None
    step = question.step
    shots = ask.prompt(step.prompt) + ask.model.info.digest if step.prompt else ""
    layout = f"{LAYOUT} {' '.join(step.reads)}\n{shots}"
    return fit_name(step.fit or "", layout, ask.encoder.info.digest)


def score_options(question: Question, ask: Ask) -> Mapping[str, float]:
    """Probability of each option that it answers; nothing without an encoder, a fit for it, or options."""
    options = question.options
    if ask.encoder is None or not options:
        return {}
    fit = ask.find_fit(name_options(question, ask))
    if fit is None:
        return {}

    def compute() -> tuple[Sequence[float], Usage, float]:
        reader = OptionReader(question, ask)
        return reader.judge(fit), reader.usage, reader.seconds

    named = "\n".join([f"[fit {fit.digest}]", question.inputs.query, *(option.scored for option in options)])
    cases = [ScoreCase(option.scored, f" {ANSWERS}") for option in options]
    logprobs = ask.judge(ask.encoder.info, named, cases, compute)
    return {option.id: math.exp(value) for option, value in zip(options, logprobs, strict=True)}


class OptionReader:
    """
    Reads the values of a question's options, those of a step's `reads` alone, in that order.

    Args:
        ask: Asks the models; what they cost is added up in `usage` and `seconds`.
    """

    def __init__(self, question: Question, ask: Ask) -> None:
        self._query, self._options = question.inputs.query, question.options
        self._step, self._ask = question.step, ask
        self.usage, self.seconds = Usage(0, 0, 0), 0.0

    def judge(self, fit: Fit) -> list[float]:
        """Log-probability of each option that it answers."""
        rows = self.read_cheap()
        sure = fit.first.option_logprobs(rows) if fit.first is not None else None
        if not fit.ranks:
            doubtful = [n for n in range(len(rows)) if sure is None or fit.doubts(sure[n])]
            asked = _nearest(rows, doubtful, MOST_JUDGED)
            found = fit.option_logprobs(self.with_gain(rows, asked)) if asked else []
            return [found[n] if sure is None or n in asked else sure[n] for n in range(len(rows))]
        if sure is not None and fit.is_clear(rows, max(sure)):
            return sure
        rows = self.with_gain(rows, _nearest(rows, range(len(rows)), MOST_COMPARED))
        rows = self.with_mutual(rows, fit.find_rivals(rows))
        return fit.option_logprobs(self.with_best(rows, fit.find_best(rows)))

    def read_cheap(self) -> Rows:
        """Of each option the values that need no language model."""
        near = self._ask.cosines(self._query, [option.near for option in self._options])
        rest = list(near)
        if "rest" in self._step.reads:
            for n in sorted(range(len(near)), key=lambda n: -near[n])[:MOST_JUDGED]:
                query, text = leave_shared(self._query, self._options[n].near)
                rest[n] = self._ask.cosines(query, [text])[0]
        rows = []
        alone = min(near) if len(near) > 1 else 0.0  # those of other sources are no nearer than these
        for place, option in enumerate(self._options):
            title = option.title or None  # without one each stands for itself
            others = (n for n, other in enumerate(self._options) if n != place and other.title != title)
            lead = near[place] - max((near[n] for n in others), default=alone)
            values = {"cosine": near[place], "lead": lead, "rest": rest[place]}
            rows.append(tuple(values[name] for name in self._step.reads if name in values))
        return rows

    def with_gain(self, rows: Rows, asked: Sequence[int] | None = None) -> Rows:
        """The rows with the gain of each option, if it is read; what is not asked counts as the last."""
        if GAIN not in self._step.reads:
            return rows
        if asked is None:
            asked = _nearest(rows, range(len(rows)), MOST_COMPARED)
        befores = ["Question:", *(before_query(self._options[n].scored) for n in asked)]
        found = self._score("shots", [ScoreCase(before, f" {self._query}\n") for before in befores])
        bare, *given = [each[:-1] or each for each in found]
        gains = {
            n: _bounded(each, bare, _MOST_GAIN) / len(bare) for n, each in zip(asked, given, strict=True)
        }
        least = min(gains.values())
        return [(*row, gains.get(n, least)) for n, row in enumerate(rows)]

    def with_mutual(self, rows: Rows, rivals: Sequence[int]) -> Rows:
        """The rows with what the query says of each rival; the others count as the last, one alone as 0."""
        if MUTUAL not in self._step.reads:
            return rows
        found = {n: self._tell_back(n)[0] for n in rivals} if len(rivals) > 1 else {}
        least = min(found.values(), default=0.0)
        return [(*row, found.get(n, least)) for n, row in enumerate(rows)]

    def with_best(self, rows: Rows, best: int) -> Rows:
        """The rows with what is read of the best option alone, 0 for the others."""
        found = []
        for name in self._step.reads:
            if name == "told":
                case = _told_case(self._options[best], self._query)
                found.append(max(self._score("answer", [case])[0][0], _LEAST))
            elif name == "back":
                found.append(self._tell_back(best)[1])
        none = (0.0,) * len(found)
        return [(*row, *(found if n == best else none)) for n, row in enumerate(rows)]

    def _tell_back(self, place: int) -> tuple[float, float]:
        """
        By how many nats an option is likelier after the query, over the root of its tokens, so that a long
        one is no better for it; and the mean of its tokens, each up to 1.
        """
        unrelated = self._ask.sections(self._step)["unrelated question"].strip()
        contexts = [f"Question: {asked}\nEvidence:" for asked in (self._query, unrelated)]
        text = f" {self._options[place].scored}\n"
        given, other = self._score("reverse", [ScoreCase(context, text) for context in contexts])
        mutual = _bounded(given, other, _MOST_MUTUAL) / math.sqrt(len(given))
        return mutual, _bounded(given, other, 1.0) / len(given)

    def _score(self, section: str, cases: Sequence[ScoreCase]) -> list[tuple[float, ...]]:
        prefix = self._ask.sections(self._step)[section].strip() + "\n\n"
        found, usage, seconds = self._ask.score_tokens(prefix, cases)
        self.usage, self.seconds = self.usage + usage, self.seconds + seconds
        return found


def _nearest(rows: Rows, places: Iterable[int], most: int) -> list[int]:
    return sorted(places, key=lambda n: tuple(-value for value in rows[n][:1]))[:most]


def _told_case(option: Option, query: str) -> ScoreCase:
    asked = {_bare(word) for word in query.split()}
    told = "".join(f" {word}" for word in option.worded.split() if _bare(word) not in asked)
    context = f"Evidence: {option.scored}\nQuestion: {query}\nAnswer:"
    return ScoreCase(context, told or "\n", any_of=True)


def _bounded(given: Sequence[float], otherwise: Sequence[float], most: float) -> float:
    """The gains of all tokens, none beyond *most* either way."""
    return sum(most * math.tanh((value - base) / most) for value, base in zip(given, otherwise, strict=True))


def _bare(word: str) -> str:
    return word.strip(string.punctuation).lower()


_SCORERS: Mapping[str, Callable[[Question, Ask], Mapping[str, float]]] = {
    "label": score_labels,
    "likelihood": score_likelihood,
    "cosine": score_cosine,
    "head": score_head,
    "options": score_options,
    "prior": lambda question, ask: {option.id: option.prior for option in question.options},
    "channel": score_examples,
}
assert tuple(_SCORERS) == SCORERS
_PROBABLE = ("label", "channel", *FITTED)  # scorers whose scores are probabilities


def choose(spec: ChoiceSpec, inputs: ChoiceInputs, ask: Ask) -> Choice:
    """
    Make one choice by its decision list.

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
