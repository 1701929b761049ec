"""Which candidates are relevant: what the model says and what the index says, taken together. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from panda.retrieval.candidates import Candidate

_INDEX_WEIGHT = 1.0
"""What the index's best candidate is worth, in units of the likelihood (nats a token)."""
_JUDGED_WEIGHT = 1.5
"""What certainty about a candidate is worth, in the same units."""
_BAR = 1.5
"""Least sum that counts as relevant."""
_WITHIN = 0.6
"""How far below the best of its kind a candidate may lie."""
_MOST: Mapping[str, int] = {"turn": 3, "memory": 3, "fact": 2, "knowledge": 2, "research": 2, "visit": 2}

By = Literal["model", "index", "always_include"]


@dataclass(frozen=True)
class Judged:
    """A candidate with what was found about it."""

    candidate: Candidate
    """The candidate."""
    score: float | None
    """Model and index together; None if the model did not score it."""
    chosen: bool
    """Whether it is relevant."""
    by: By
    """Who decided."""


def judge_candidates(
    candidates: Sequence[Candidate],
    *,
    judged: Mapping[str, float],
    likelihoods: Mapping[str, float],
    written: Sequence[str],
    by_rule: Sequence[str],
) -> list[Judged]:
    """
    Decide on every candidate.

    Args:
        candidates: Best first by the index.
        judged: Probability that a candidate is relevant, by node id, from a fit; {} without one.
        likelihoods: How much likelier the query becomes by it, in nats a token; {} where none were asked.
        written: The ids that a model chose which gives no scores; taken as they are.
        by_rule: Candidates that a rule includes.

    Returns:
        The candidates in the same order. Without scores the model's own choice counts; with scores those
        are chosen that reach the bar and lie near the best of their kind, at most three turns.

    Source:
        Design §4 "Retrieval"; S1 §13.2.
    """
    if not judged and not likelihoods:
        chosen = set(written)
        scores: dict[str, float] = {}
    else:
        top = max((one.score for one in candidates), default=0.0)
        scores = {
            one.node_id: _together(one, judged, likelihoods, top)
            for one in candidates
            if one.node_id in judged or one.node_id in likelihoods
        }
        chosen = _chosen(scores)
    return [
        Judged(
            one,
            scores.get(one.node_id),
            one.node_id in chosen or one.node_id in by_rule,
            "always_include"
            if one.node_id in by_rule
            else "model"
            if one.node_id in written
            else "index"
            if one.node_id in chosen and one.score > 0
            else "model",
        )
        for one in candidates
    ]


def _together(
    one: Candidate, judged: Mapping[str, float], likelihoods: Mapping[str, float], top: float
) -> float:
    by_index = max(0.0, one.score) / top if top > 0 else 0.0
    by_fit = judged.get(one.node_id, 0.5) - 0.5
    return likelihoods.get(one.node_id, 0.0) + _INDEX_WEIGHT * by_index + _JUDGED_WEIGHT * by_fit


def _chosen(scores: Mapping[str, float]) -> set[str]:
    chosen: set[str] = set()
    for kind, most in _MOST.items():
        mine = {node_id: score for node_id, score in scores.items() if node_id.partition(":")[0] == kind}
        bar = max([_BAR, *(score - _WITHIN for score in mine.values())])
        ranked = sorted((node_id for node_id in mine if mine[node_id] >= bar), key=lambda one: -mine[one])
        chosen |= set(ranked[:most])
    return chosen
