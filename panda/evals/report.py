"""What the answers to labelled cases come to, kind by kind."""

from collections.abc import Sequence
from typing import Any

from panda.evals.kinds import KINDS
from panda.evals.measures import (
    area_under_curve,
    calibration_error,
    commonest_share,
    count_confusion,
    find_interval,
    share_of_pairs,
)
from panda.evals.running import Answered

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
    One object a kind, in the order of KINDS.

    Args:
        answers: Of any kinds.

    Returns:
        Numbers that do not depend on the order of the cases, but for the milliseconds.
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
    curve = area_under_curve([score for _, score in scored], [a.label == yes for a, _ in scored])
    return {"AUC": curve, "pairs": share_of_pairs(groups)}


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
