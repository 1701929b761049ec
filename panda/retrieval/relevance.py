"""Which candidates are relevant: what the model says and what the index says, taken together. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from panda.retrieval.candidates import Candidate
from panda.retrieval.overlap import share_of_words

_INDEX_WEIGHT = 0.3
"""What being the index's best candidate is worth, in units of the likelihood (nats a token)."""
_WORDS_WEIGHT = 0.6
"""What holding all words of the query is worth."""
_BAR = 0.6
"""Least sum with which the only candidate of its kind is relevant."""
_BAR_PER_LOG = 0.3
"""The best of many irrelevant candidates scores higher: the bar grows with the logarithm of their number."""
_WITHIN = 0.6
"""How far below the best of its kind a candidate may lie."""
_WITHIN_ALL = 1.2
"""How far below the best of all kinds that it is compared with."""
_SHORT = frozenset(("memory", "fact"))
"""Kinds of a few words: one shared word scores high there, so no longer kind is measured by them."""
_MOST_TURNS = 3
"""So many turns by the sum, and as many of the index's first, are chosen once one turn is relevant."""
_MOST: Mapping[str, int] = {"memory": 3, "fact": 2, "knowledge": 2, "research": 2, "visit": 2}

By = Literal["model", "always_include"]


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
    """Who decided: the model with the index, or a rule."""


def judge_candidates(
    candidates: Sequence[Candidate],
    *,
    query: str,
    likelihoods: Mapping[str, float],
    written: Sequence[str],
    by_rule: Sequence[str],
) -> list[Judged]:
    """
    Decide on every candidate.

    Args:
        candidates: Best first by the index.
        query: The user's query.
        likelihoods: How much likelier the query becomes by it, and it by the query, in nats a token, by node
            id; {} where none were asked.
        written: The ids that a model chose which gives no scores; taken as they are.
        by_rule: Candidates that a rule includes.

    Returns:
        The candidates in the same order. Without scores the model's own choice counts; with scores those
        are chosen that reach the bar and lie near the best of their kind, and not far below the best of all;
        preferences and facts push out nothing longer. Of turns, if one reaches the bar, the best three and
        the index's first three are: which of them tell most, their lines show.

    Source:
        Design §4 "Retrieval"; S1 §13.2.
    """
    if not likelihoods:
        chosen = set(written)
        scores: dict[str, float] = {}
    else:
        top = max((one.score for one in candidates), default=0.0)
        scores = {
            one.node_id: _together(one, query, likelihoods[one.node_id], top)
            for one in candidates
            if one.node_id in likelihoods
        }
        chosen = _chosen(scores, {one.node_id: one.score for one in candidates})
    return [
        Judged(
            one,
            scores.get(one.node_id),
            one.node_id in chosen or one.node_id in by_rule,
            "always_include" if one.node_id in by_rule else "model",
        )
        for one in candidates
    ]


def _together(one: Candidate, query: str, likelihood: float, top: float) -> float:
    by_index = max(0.0, one.score) / top if top > 0 else 0.0
    return likelihood + _INDEX_WEIGHT * by_index + _WORDS_WEIGHT * share_of_words(query, one.text)


def _chosen(scores: Mapping[str, float], by_index: Mapping[str, float]) -> set[str]:
    chosen: set[str] = set()
    kinds = {node_id: node_id.partition(":")[0] for node_id in scores}
    for kind in ("turn", *_MOST):
        mine = {node_id: score for node_id, score in scores.items() if kinds[node_id] == kind}
        beside = (score for one, score in scores.items() if kind in _SHORT or kinds[one] not in _SHORT)
        best = max(beside, default=0.0)
        least = _BAR + _BAR_PER_LOG * math.log(max(1, len(mine)))
        bar = max([least, best - _WITHIN_ALL, *(score - _WITHIN for score in mine.values())])
        ranked = sorted(mine, key=lambda one: -mine[one])
        reached = [node_id for node_id in ranked if mine[node_id] >= bar]
        if kind == "turn" and reached:
            indexed = sorted((one for one in mine if by_index[one] > 0), key=lambda one: -by_index[one])
            chosen |= {*ranked[:_MOST_TURNS], *indexed[:_MOST_TURNS]}
        chosen |= set(reached[: _MOST.get(kind, 0)])
    return chosen
