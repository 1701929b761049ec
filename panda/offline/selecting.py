"""Ids of options by their scores."""

from collections.abc import Mapping, Sequence

from panda.steps.options import Option


def best_ids(scores: Mapping[str, float], *, limit: int, least_score: float, behind: float) -> list[str]:
    """
    Return at most *limit* ids, best first: those with a score of at least *least_score* that are at most
    *behind* below the best.

    >>> best_ids({"a": 0.5, "b": 0.9, "c": 0.1}, limit=2, least_score=0.3, behind=0.4)
    ['b', 'a']
    """
    ranked = sorted(scores, key=lambda id_: -scores[id_])
    if not ranked or scores[ranked[0]] < least_score:
        return []
    bar = max(least_score, scores[ranked[0]] - behind)
    return [id_ for id_ in ranked if scores[id_] >= bar][:limit]


def best(scores: Mapping[str, float]) -> str:
    """Return the id with the highest score, the first of several."""
    return max(scores, key=lambda id_: scores[id_])


def priors(options: Sequence[Option]) -> dict[str, float]:
    """Return the prior of each option by its id."""
    return {option.id: option.prior for option in options}


def highest_prior(options: Sequence[Option]) -> float:
    """Return the highest prior of some options; 0 without any."""
    return max((option.prior for option in options), default=0.0)
