"""Labelled cases asked as the phases ask, and what the answers come to, kind by kind."""

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from panda.documents.evidence import check_evidence
from panda.documents.progress import progress
from panda.documents.records import Whole
from panda.evals.cases import KINDS, Case
from panda.language.dates import find_periods
from panda.language.reading import Mood, find_limits, overall_mood
from panda.language.statements import typed_sentences
from panda.language.text import is_question
from panda.language.things import Thing, find_exclusions, find_mentions
from panda.recipes.calls import NoTurn
from panda.recipes.executor import RecipeExecutor
from panda.recipes.messages import Request

_Z90, _BINS = 1.6448536269514722, 5
COLUMNS = (
    *("kind", "recipe", "fitted", "cases", "accuracy", "90 % interval", "commonest", "ranking"),
    *("calibration", "ms"),
)


def judge(case: Case, executor: RecipeExecutor) -> str | list[str] | None:
    """What is no single choice of a recipe, in the terms of its label; None where one is asked."""
    query, things = case.query, [Thing(option.id, "", option.text) for option in case.options]
    match case.kind:
        case "mood":  # by sentence, as phase 0 does
            ask = partial(executor.decide, case.of.recipe_key(executor.book), "mood", journal=NoTurn())
            moods = (ask(Request(sentence, ())).value for sentence in typed_sentences(query))
            return overall_mood(cast(Iterable[Mood], moods))
        case "quotable":
            return "question" if is_question(query) else "statement"
        case "exclusion":
            excluded = find_exclusions(query, things, find_mentions(query, things))
            return [f"{exclusion.action} {exclusion.ref}" for exclusion in excluded]
        case "reference":
            return list(dict.fromkeys(ref for thing in find_mentions(query, things) for ref in thing.refs))
        case "period" if case.now is not None:
            return [str(day) for span in find_periods(query, case.now) for day in (span.start, span.end)]
        case "constraint":
            return [limit.text for limit in find_limits(query)]
        case "evidence":  # whether the options, as sources, hold what the query, as an answer, claims
            faults = check_evidence(query, [option.text for option in case.options])
            return "unsupported" if faults else "supported"
    return None


def same_phrases(query: str, label: Sequence[str], said: Sequence[str]) -> bool:
    """Whether each labelled phrase overlaps one that was found, and none of these is left over."""
    plain = " ".join(query.lower().split())

    def place(phrase: str) -> set[int]:
        part = " ".join(phrase.lower().split()).strip(" .,")
        return {plain.find(part) + n for n in range(len(part)) if part in plain}

    sides = [*map(place, label)], [*map(place, said)]
    return all(
        any(map(part.intersection, others)) for parts, others in (sides, sides[::-1]) for part in parts
    )


@dataclass(frozen=True)
class Answered:
    case: Case
    recipe: str  # recipe that was asked, or what judged
    fitted: bool  # whether a fit decided
    seconds: float  # wall clock of the choice, nothing of it known before
    said: str  # the answer, in the terms of the label
    ranked: Sequence[str] = ()  # options, best first; of a judged list, what is in it
    confidence: float | None = None  # probability that it is right; None if the scorer gives none
    score: float | None = None  # for kinds of two answers: how far it leans to yes; for ranking only

    @property
    def label(self) -> str:
        return render_label(self.case.label)

    @property
    def right(self) -> bool:
        if self.case.kind == "constraint":
            return same_phrases(self.case.query, tuple(self.case.label), self.ranked)
        return self.said == self.label

    def as_json(self) -> dict[str, object]:
        values = {name: getattr(self, name) for name in ("label", "said", "right", "confidence", "score")}
        return {"kind": self.case.name, "query": self.case.query, **values}


def run_cases(executor: RecipeExecutor, cases: Sequence[Case]) -> list[Answered]:
    """Ask every case; no answer depends on another case."""
    answers = []
    with progress("cases", len(cases)) as advance:
        for case in cases:
            answers.append(_answer(executor, case))
            advance()
    return answers


def _answer(executor: RecipeExecutor, case: Case) -> Answered:
    kind, started = case.of, time.monotonic()
    if (judged := judge(case, executor)) is not None:
        about, listed = (case, kind.choice, bool(kind.asks)), () if isinstance(judged, str) else judged
        return Answered(*about, time.monotonic() - started, render_label(judged), listed)
    recipe = kind.recipe_key(executor.book)
    request = case.request(executor.book.load_recipe(recipe).tools_available)
    choice = executor.decide(recipe, kind.choice, request, NoTurn())
    seconds, scores = time.monotonic() - started, choice.scores
    said, sure, score = str(choice.value), choice.confidence, None
    ranked = sorted(scores, key=lambda option: -scores[option])
    if kind.answers == "any":
        said, score = str(bool(choice.value)), max(scores.values(), default=None)
        sure = sure if choice.value or sure is None else 1 - sure
    elif kind.answers == "first" or isinstance(choice.value, tuple):
        said = ranked[0] if ranked else ""
        if choice.fitted and any(scores.values()):  # beside the others, as one is known to be right
            sure = scores[said] / sum(scores.values())
    said = next((label for label, value in kind.labels.items() if str(value) == said), said)
    return Answered(case, recipe, choice.fitted, seconds, said, ranked, sure, score)


def render_label(label: str | Iterable[str]) -> str:
    """A label as one text, a list without regard to order and case."""
    return label if isinstance(label, str) else "; ".join(sorted(part.lower() for part in label))


class KindReport(Whole, frozen=True):
    kind: str
    recipe: str
    choice: str
    fitted: bool
    cases: int
    right: int
    accuracy: float
    interval: tuple[float, float]  # Wilson's, 90 %
    commonest: str | None  # the commonest label
    commonest_share: float  # what always saying it would give, or choosing by chance
    ranking: Mapping[
        str, float | None
    ]  # how often the right option is of the first two; or curves of yes and no
    confusion: Mapping[str, Mapping[str, int]]  # label → answer → cases
    calibration_error: float | None
    milliseconds: float

    @property
    def row(self) -> tuple[object, ...]:
        """Under COLUMNS."""
        low, high = self.interval
        ranks = (f"{name} {value:.2f}" for name, value in self.ranking.items() if value is not None)
        error = "" if self.calibration_error is None else f"{self.calibration_error:.2f}"
        return (
            *(self.kind, self.recipe, "yes" if self.fitted else "no", self.cases, f"{self.accuracy:.2f}"),
            *(f"{low:.2f}–{high:.2f}", f"{self.commonest_share:.2f}", " ".join(ranks), error),
            round(self.milliseconds),
        )


def build_report(answers: Sequence[Answered]) -> list[KindReport]:
    by_kind: dict[str, list[Answered]] = {kind: [] for kind in KINDS}
    for answer in answers:
        by_kind.setdefault(answer.case.name, []).append(answer)
    return [_report(kind, group) for kind, group in by_kind.items() if group]


def _report(kind: str, answers: Sequence[Answered]) -> KindReport:
    of, count, right = answers[0].case.of, len(answers), sum(answer.right for answer in answers)
    pairs = Counter(sorted((answer.label, answer.said) for answer in answers))
    confusion = {label: {said: n for (of_, said), n in pairs.items() if of_ == label} for label, _ in pairs}
    commonest = max(confusion, key=lambda label: sum(confusion[label].values()))
    chance = [1 / len(answer.case.options) for answer in answers if of.answers == "first"]
    share = (sum(chance) or sum(confusion[commonest].values())) / count
    sure = [(answer.confidence, answer.right) for answer in answers if answer.confidence is not None]
    fitted = all(answer.fitted for answer in answers)
    names = (None, {}) if of.answers in ("list", "first") else (commonest, confusion)
    return KindReport(
        *(kind, answers[0].recipe, of.choice, fitted, count, right, right / count),
        *(find_interval(right, count), names[0], share, _ranking(answers), names[1]),
        *(calibration_error(sure), 1000 * sum(answer.seconds for answer in answers) / count),
    )


def find_interval(right: int, of: int) -> tuple[float, float]:
    """Wilson's, of a share."""
    share, square = right / of, _Z90**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = _Z90 / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def calibration_error(pairs: Sequence[tuple[float, bool]]) -> float | None:
    """The mean distance of confidence from the share of right answers, over bins of equally many cases."""
    if not pairs:
        return None
    ordered = np.array(sorted(pairs, key=lambda pair: pair[0]), np.float64)
    bins = np.array_split(ordered[:, 0] - ordered[:, 1], min(_BINS, max(1, len(pairs) // 10)))
    return round(float(sum(abs(gaps.sum()) for gaps in bins)) / len(pairs), 12)


def _ranking(answers: Sequence[Answered]) -> dict[str, float | None]:
    of = answers[0].case.of
    if of.answers == "first":
        return {"top2": sum(answer.label in answer.ranked[:2] for answer in answers) / len(answers)}
    groups: dict[str, list[tuple[float, bool]]] = {}
    for answer in answers:
        if answer.score is not None:
            groups.setdefault(answer.case.query, []).append((answer.score, bool(of.labels[answer.label])))
    whole = [scored for group in groups.values() for scored in group]
    return {"AUC": share_of_pairs([whole]), "pairs": share_of_pairs(groups.values())} if whole else {}


def share_of_pairs(groups: Iterable[Sequence[tuple[float, bool]]]) -> float | None:
    """How often a positive one of a group of (score, positive) scores above a negative; ties count half."""
    arrays = [np.array(group, np.float64) for group in groups]
    gaps = [np.subtract.outer(*(each[each[:, 1] == yes, 0] for yes in (1, 0))).ravel() for each in arrays]
    signs = np.sign(np.concatenate(gaps))
    return float(signs.mean() + 1) / 2 if len(signs) else None
