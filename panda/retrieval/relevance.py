"""Which candidates are relevant: what 2.1 chose, and what a rule includes. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from panda.retrieval.candidates import Candidate

By = Literal["model", "always_include"]


@dataclass(frozen=True)
class Judged:
    """A candidate with what was found about it."""

    candidate: Candidate
    """The candidate."""
    score: float | None
    """How relevant its best line is; None if that was not scored."""
    chosen: bool
    """Whether it is relevant."""
    by: By
    """Who decided: the choice of 2.1, or a rule."""


def judge_candidates(
    candidates: Sequence[Candidate],
    *,
    scores: Mapping[str, float],
    chosen: Collection[str],
    by_rule: Collection[str],
) -> list[Judged]:
    """
    What became of every candidate, in the same order.

    Args:
        candidates: Best first by the index.
        scores: How relevant they are, by node id; {} where that was not scored.
        chosen: The ids that 2.1 chose.
        by_rule: Candidates that a rule includes.

    Source:
        Design §4 "Retrieval"; S1 §13.2.
    """
    return [
        Judged(
            one,
            scores.get(one.node_id),
            one.node_id in chosen or one.node_id in by_rule,
            "always_include" if one.node_id in by_rule else "model",
        )
        for one in candidates
    ]
