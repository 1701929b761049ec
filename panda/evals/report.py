"""Labelled cases asked as the phases ask, and what the answers come to, kind by kind."""

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from panda.documents.evidence import check_evidence
from panda.documents.progress import progress
from panda.documents.record_codec import Whole
from panda.evals.cases import KINDS, Case
from panda.messages.clauses import typed_sentences
from panda.messages.limits import find_limits
from panda.messages.mentions import Thing, find_exclusions, find_mentions
from panda.messages.periods import find_periods
from panda.messages.questions import is_question
from panda.messages.reading import Mood, overall_mood
from panda.recipes.calls import NoTurn
from panda.recipes.executor import RecipeExecutor
from panda.recipes.reply import Reply

_Z90 = 1.6448536269514722
COLUMNS = ("kind", "recipe", "served by", "cases", "accuracy", "90 % interval", "commonest", "ms")
WRONG_COLUMNS = ("kind", "query", "label", "said")


def judge(case: Case, executor: RecipeExecutor) -> str | list[str] | None:
    """
    Return the answer to a case that no single choice of a recipe gives, in the terms of its label; None where
    a recipe is asked.
    """
    query = case.query
    things = [Thing(option.id, "", option.text) for option in case.options]
    match case.kind:
        case "mood":  # by sentence, as phase 0 does
            replies = (_ask(executor, case, text) for text in typed_sentences(query))
            return overall_mood(cast(Mood, case.of.answer(reply)) for reply in replies)
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


def same_phrases(query: str, label: Sequence[str], phrases: Sequence[str]) -> bool:
    """Return whether each labelled phrase overlaps one that was found, and none of these is left over."""
    plain = " ".join(query.lower().split())

    def place(phrase: str) -> set[int]:
        part = " ".join(phrase.lower().split()).strip(" .,")
        return {plain.find(part) + n for n in range(len(part)) if part in plain}

    sides = [*map(place, label)], [*map(place, phrases)]
    return all(
        any(map(part.intersection, others)) for parts, others in (sides, sides[::-1]) for part in parts
    )


@dataclass(frozen=True, kw_only=True)
class AnsweredCase:
    case: Case
    recipe: str  # recipe that was asked, or what judged
    served_by: str  # what replied
    seconds: float  # wall clock of the reply
    answer: str  # the answer, in the terms of the label
    listed: Sequence[str] = ()  # what is in a judged list

    @property
    def label(self) -> str:
        return render_label(self.case.label)

    @property
    def is_right(self) -> bool:
        if self.case.kind == "constraint":
            return same_phrases(self.case.query, tuple(self.case.label), self.listed)
        return self.answer == self.label

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.case.name,
            "query": self.case.query,
            "label": self.label,
            "said": self.answer,
            "right": self.is_right,
        }


def run_cases(executor: RecipeExecutor, cases: Sequence[Case]) -> list[AnsweredCase]:
    """Ask every case; no answer depends on another case."""
    answers = []
    with progress("cases", len(cases)) as advance:
        for case in cases:
            answers.append(_answer(executor, case))
            advance()
    return answers


def _ask(executor: RecipeExecutor, case: Case, query: str = "") -> Reply[Any]:
    """Return the reply to a case, or to a part of its query."""
    key = case.of.recipe_key(executor.book)
    request = case.request(executor.book.load_recipe(key), executor.book.contract_of(key), query=query)
    return executor.execute(key, request, NoTurn())


def _answer(executor: RecipeExecutor, case: Case) -> AnsweredCase:
    kind = case.of
    started = time.monotonic()
    key = kind.recipe_key(executor.book)
    server = executor.served_by(executor.book.load_recipe(key).model_layer) if kind.step else "code"
    if (judged := judge(case, executor)) is not None:
        listed = () if isinstance(judged, str) else judged
        return AnsweredCase(
            case=case,
            recipe=key,
            served_by=server,
            seconds=time.monotonic() - started,
            answer=render_label(judged),
            listed=listed,
        )
    answer = str(kind.answer(_ask(executor, case)))
    answer = next((label for label, value in kind.labels.items() if value == answer), answer)
    return AnsweredCase(
        case=case, recipe=key, served_by=server, seconds=time.monotonic() - started, answer=answer
    )


def render_label(label: str | Iterable[str]) -> str:
    """Return a label as one text, a list without regard to order and case."""
    return label if isinstance(label, str) else "; ".join(sorted(part.lower() for part in label))


class KindReport(Whole, frozen=True):
    kind: str
    recipe: str
    served_by: str
    asked: str  # the property that is judged
    cases: int
    right: int
    accuracy: float
    interval: tuple[float, float]  # Wilson's, 90 %
    commonest_share: float  # what always saying the commonest label would give
    confusion: Mapping[str, Mapping[str, int]]  # label → answer → cases
    milliseconds: float

    @property
    def row(self) -> tuple[object, ...]:
        """Return the cells of the table row under COLUMNS."""
        low, high = self.interval
        interval = f"{low:.2f}–{high:.2f}"
        accuracy = f"{self.accuracy:.2f}"
        commonest = f"{self.commonest_share:.2f}"
        about = (self.kind, self.recipe, self.served_by, self.cases)
        return (*about, accuracy, interval, commonest, round(self.milliseconds))


def build_report(answers: Sequence[AnsweredCase]) -> list[KindReport]:
    by_kind: dict[str, list[AnsweredCase]] = {kind: [] for kind in KINDS}
    for answer in answers:
        by_kind.setdefault(answer.case.name, []).append(answer)
    return [_report(kind, group) for kind, group in by_kind.items() if group]


def _report(kind: str, answers: Sequence[AnsweredCase]) -> KindReport:
    count = len(answers)
    right = sum(answer.is_right for answer in answers)
    pairs = Counter(sorted((answer.label, answer.answer) for answer in answers))
    confusion = {label: {answer: n for (of, answer), n in pairs.items() if of == label} for label, _ in pairs}
    return KindReport(
        kind=kind,
        recipe=answers[0].recipe,
        served_by=answers[0].served_by,
        asked=answers[0].case.of.name,
        cases=count,
        right=right,
        accuracy=right / count,
        interval=find_interval(right, count),
        commonest_share=max(sum(answers_by_text.values()) for answers_by_text in confusion.values()) / count,
        confusion={} if answers[0].case.of.answers == "list" else confusion,
        milliseconds=1000 * sum(answer.seconds for answer in answers) / count,
    )


def find_interval(right: int, of: int) -> tuple[float, float]:
    """Return Wilson's confidence interval of a share."""
    share = right / of
    square = _Z90**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = _Z90 / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)
