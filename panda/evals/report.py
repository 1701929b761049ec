"""What the answers to labelled cases come to, kind by kind."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from panda.evals.answers import Answered
from panda.evals.cases import KINDS

_Z90 = 1.6448536269514722
_BINS = 5


def find_interval(right: int, of: int) -> tuple[float, float]:
    """
    Wilson's 90 % interval of a share.

    >>> [round(end, 3) for end in find_interval(80, 100)], find_interval(0, 0)
    ([0.727, 0.857], (0.0, 1.0))
    """
    if of == 0:
        return 0.0, 1.0
    share, square = right / of, _Z90**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = _Z90 / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def commonest_share(labels: Sequence[str]) -> tuple[str, float]:
    """The commonest label and its share: what always saying it would give."""
    label, count = Counter(sorted(labels)).most_common(1)[0]
    return label, count / len(labels)


def count_confusion(labels: Sequence[str], said: Sequence[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for label, answer in sorted(zip(labels, said, strict=True)):
        row = found.setdefault(label, {})
        row[answer] = row.get(answer, 0) + 1
    return found


def calibration_error(confidences: Sequence[float], right: Sequence[bool]) -> float | None:
    """
    How far confidence and truth are apart, 0 to 1: over bins of equally many cases, the mean distance of the
    mean confidence from the share of right answers. None without cases.

    >>> calibration_error([0.8] * 5, [True, True, True, True, False]), calibration_error([], [])
    (0.0, None)
    """
    if not confidences:
        return None
    pairs = sorted(zip(confidences, right, strict=True), key=lambda pair: pair[0])
    bins = min(_BINS, max(1, len(pairs) // 10))
    total = 0.0
    for n in range(bins):
        part = pairs[n * len(pairs) // bins : (n + 1) * len(pairs) // bins]
        total += abs(sum(confidence for confidence, _ in part) - sum(ok for _, ok in part))
    return round(total / len(pairs), 12)


def share_of_pairs(groups: Mapping[str, Sequence[tuple[float, bool]]]) -> float | None:
    """
    Within groups of (score, positive), how often a positive one scores above a negative one; ties count half,
    and of one group it is the area under the curve.

    >>> share_of_pairs({"q1": [(0.9, True), (0.3, False)], "q2": [(0.1, True), (0.2, False)]})
    0.5
    """
    won = [
        (high > low) + (high == low) / 2
        for members in groups.values()
        for high, yes in members
        if yes
        for low, other in members
        if not other
    ]
    return sum(won) / len(won) if won else None


COLUMNS = (
    "kind",
    "recipe",
    "fitted",
    "cases",
    "accuracy",
    "90 % interval",
    "commonest",
    "ranking",
    "calibration",
    "ms",
)


def build_report(answers: Sequence[Answered]) -> list[dict[str, Any]]:
    """
    One object a kind, in the order of KINDS; but for the milliseconds the order of the cases makes no
    difference.
    """
    asked = dict.fromkeys(answer.case.kind for answer in answers)
    kinds = [*(kind for kind in KINDS if kind in asked), *(kind for kind in asked if kind not in KINDS)]
    return [_of_kind(kind, [answer for answer in answers if answer.case.kind == kind]) for kind in kinds]


def report_rows(report: Sequence[dict[str, Any]]) -> list[tuple[object, ...]]:
    """The report as rows under COLUMNS."""
    return [
        (
            one["kind"],
            one["recipe"],
            "yes" if one["fitted"] else "no",
            one["cases"],
            _short(one["accuracy"]),
            f"{one['interval'][0]:.2f}–{one['interval'][1]:.2f}",
            _short(one["commonest_share"]),
            " ".join(f"{name} {value:.2f}" for name, value in one["ranking"].items() if value is not None),
            _short(one["calibration_error"]),
            round(one["milliseconds"]),
        )
        for one in report
    ]


def _of_kind(kind: str, answers: Sequence[Answered]) -> dict[str, Any]:
    right = sum(answer.right for answer in answers)
    labels, said = [a.label for a in answers], [a.said.label for a in answers]
    commonest, share = commonest_share(labels)
    sure = [(a.said.confidence, a.right) for a in answers if a.said.confidence is not None]
    of = answers[0].case.of
    is_list = of.answers in ("rule", "first")
    return {
        "kind": kind,
        "recipe": answers[0].recipe,
        "choice": of.choice,
        "fitted": all(answer.fitted for answer in answers),
        "cases": len(answers),
        "right": right,
        "accuracy": right / len(answers),
        "interval": list(find_interval(right, len(answers))),
        "commonest": None if is_list else commonest,
        "commonest_share": share if of.answers != "first" else _by_chance(answers),
        "ranking": _ranking(answers),
        "confusion": {} if is_list else count_confusion(labels, said),
        "calibration_error": calibration_error([c for c, _ in sure], [ok for _, ok in sure]),
        "milliseconds": 1000 * sum(a.seconds for a in answers) / len(answers),
    }


def _by_chance(answers: Sequence[Answered]) -> float:
    return sum(1 / max(1, len(a.case.options)) for a in answers) / len(answers)


def _ranking(answers: Sequence[Answered]) -> dict[str, float | None]:
    """For options, the share of cases whose right one is among the first two; for yes or no, the curve."""
    of = answers[0].case.of
    if of.answers == "first":
        return {"top2": sum(a.label in a.said.ranked[:2] for a in answers) / len(answers)}
    scored = [(a, a.said.score) for a in answers if a.said.score is not None]
    if of.answers != "any" or not scored:
        return {}
    yes = of.yes
    groups: dict[str, list[tuple[float, bool]]] = {}
    for answer, score in scored:
        groups.setdefault(answer.case.query, []).append((score, answer.label == yes))
    curve = share_of_pairs({"": [(score, a.label == yes) for a, score in scored]})
    return {"AUC": curve, "pairs": share_of_pairs(groups)}


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
