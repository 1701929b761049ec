"""The retrieval plan as retrieval_plan.json holds it (S1 §4.1)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from panda.memory.confidence import age_days
from panda.memory.gathered import is_stale
from panda.memory.node import Node
from panda.retrieval.relevance import Judged

_FULL = 0.80
_PARTIAL = 0.50


def build_plan(
    judged: Sequence[Judged], research: Node | None, now: datetime, *, reasoning: str | None
) -> dict[str, Any]:
    """
    The plan of one query.

    Args:
        judged: All candidates that were looked at, best first.
        research: The research that was chosen, loaded; None if none was.
        now: From when ages count.
        reasoning: The model's words, if it gave any.

    Source:
        S1 §4.1, with `relevant_knowledge` (design §4).
    """
    chosen = [one for one in judged if one.chosen]
    turns = [one for one in chosen if one.candidate.node_id.startswith("turn:")]
    return {
        "relevant_turns": [int(_name(one)) for one in turns],
        "turn_relevance": {
            _name(one): {"relevance": _level(one, turns), "reason": _reason(one)} for one in turns
        },
        "relevant_memory_keys": _names(chosen, "memory:", "fact:"),
        "relevant_knowledge": _names(chosen, "knowledge:"),
        "research_cache_match": _research(research, now),
        "webpage_cache_needed": _names(chosen, "visit:"),
        "candidates": [
            {
                "node_id": one.candidate.node_id,
                "score": None if one.score is None else round(one.score, 4),
                "index": one.candidate.score,
                "chosen": one.chosen,
                "by": one.by,
            }
            for one in judged
        ],
        "reasoning": reasoning,
    }


def planned_nodes(plan: Mapping[str, Any]) -> list[str]:
    """The ids of the nodes that a plan chose, best first."""
    return _ranked([one for one in plan["candidates"] if one["chosen"]])


def further_nodes(plan: Mapping[str, Any]) -> list[str]:
    """The ids of the candidates that a plan left out, best first."""
    return _ranked([one for one in plan["candidates"] if not one["chosen"]])


def _ranked(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    def rank(one: Mapping[str, Any]) -> tuple[bool, float]:
        return one["by"] != "always_include", -(one["score"] or 0.0)

    return [str(one["node_id"]) for one in sorted(candidates, key=rank)]


def _name(one: Judged) -> str:
    return one.candidate.node_id.partition(":")[2]


def _names(chosen: Sequence[Judged], *prefixes: str) -> list[str]:
    return [_name(one) for one in chosen if one.candidate.node_id.startswith(prefixes)]


def _level(one: Judged, turns: Sequence[Judged]) -> str:
    best = max((other.score or 0.0 for other in turns), default=0.0)
    return "high" if one.by == "always_include" or (one.score or 0.0) >= best else "medium"


def _reason(one: Judged) -> str:
    if one.by == "always_include":
        return "the query or the session refers to it"
    words = "shares words with the query" if one.candidate.shares_words else "fits the query in other words"
    return words if one.score is None else f"{words}; model and index together {one.score:.2f}"


def _research(node: Node | None, now: datetime) -> dict[str, Any]:
    if node is None:
        return {
            "matched": False,
            "topic": None,
            "freshness": None,
            "quality": None,
            "reuse_recommendation": None,
        }
    quality = round(node.confidence, 2)
    stale = is_stale(node, now)
    reuse = "refresh" if stale or quality < _PARTIAL else "full" if quality >= _FULL else "partial"
    return {
        "matched": True,
        "topic": node.id.partition(":")[2],
        "freshness": None if node.at is None else f"{age_days(node.at, now) * 24:.1f} hours",
        "quality": quality,
        "reuse_recommendation": reuse,
    }
