"""The retrieval plan as retrieval_plan.json holds it (S1 §4.1)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from panda.language.reading import Reading
from panda.language.topics import matters_to_buyers
from panda.memory.confidence import age_days
from panda.memory.gathered import is_stale
from panda.memory.node import Node
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


def ruled_nodes(
    reading: Reading, analysis: Mapping[str, Any], offered: Sequence[str], previous: str | None
) -> list[str]:
    """
    The candidates that are relevant by rule.

    Args:
        reading: What the user's query means.
        analysis: query_analysis.json.
        offered: Ids of the candidates.
        previous: Id of the session's previous turn; None if there is none.

    Returns:
        Turns that the query names, what it refers to, the previous turn if it refers to something that was
        not found, and for somebody who looks for something to buy the preferences about money and brands.

    >>> about = {"content_reference": None, "reference_resolution": {"status": "not_needed"}}
    >>> about["intent"] = "commerce"
    >>> ruled_nodes(Reading("orders"), about, ["memory:budget", "memory:hamster"], None)
    ['memory:budget']
    """
    wanted = reading.turns
    reference = analysis["content_reference"]
    if reference:
        wanted += [reference["node_id"], *analysis.get("reference_nodes", ())]
    elif previous and analysis["reference_resolution"]["status"] == "failed":
        wanted.append(previous)
    if analysis["intent"] == "commerce" and (reading.mood == "orders" or reading.limits):
        keys = (node_id for node_id in offered if node_id.startswith("memory:"))
        wanted += [node_id for node_id in keys if matters_to_buyers(node_id)]
    return [node_id for node_id in dict.fromkeys(wanted) if node_id in offered]


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
