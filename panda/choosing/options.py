"""
Options beside each other: a fit on a few values of each says which answers the query, and whether any does.

Read are, as a step says, of each: `cosine` with the query; `lead`, that less the highest of the others that
do not stand below the same title;
`rest`, the cosine of what query and option say beyond the words that both have; `gain`, by how many nats a
token it makes the query likelier; of two that are close `mutual`, by how many nats it is likelier after the
query than after another question; and of the best alone `told`, how probably a reply begins with something
of it that the query lacks, and `back`, the same as `mutual` a token.

A fit without an order (made from cases of one option each) judges every option for itself. The values that
cost nothing come first; where they leave no doubt, the language model is not asked, otherwise of few.
"""

import math
import string
from collections.abc import Iterable, Mapping, Sequence

from panda.choosing.ask import Ask
from panda.choosing.decision import GAIN, MUTUAL, Option, Question
from panda.choosing.fits import Fit, fit_name
from panda.choosing.likelihood import before_query
from panda.language.wording import leave_shared
from panda.models.contract import ScoreCase, Usage

LAYOUT = 3
"""To be raised with every change of what a value is: fits of another layout are not found."""
MOST_COMPARED = 4
"""How many options, the nearest, the language model compares."""
MOST_JUDGED = 8
"""How many it judges each for itself; of so many the rest is read as well."""
ANSWERS = "yes"
_LEAST = -12.0
"""Logarithms below this say no more."""
_MOST_GAIN = 2.0
"""Nats that a token counts at most in a gain: a name that is only copied proves little."""
_MOST_MUTUAL = 3.0
"""The same of what the query says of an option."""

Rows = list[tuple[float, ...]]


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
        question: What is asked.
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
