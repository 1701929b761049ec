"""Which candidates are offered, which are chosen, and what the plan says of it."""

from datetime import timedelta

from panda.memory.node import Node
from panda.retrieval.candidates import (
    Candidate,
    build_plan,
    offered_candidates,
    planned_nodes,
)
from tests.store_files import NOW


def candidate(node_id: str, score: float = 0.0, text: str = "words") -> Candidate:
    return Candidate(node_id, text, score)


def test_offers_by_kind() -> None:
    """Each kind of source has its own room: turns do not push memory out, nor it them."""
    turns = [candidate(f"turn:{n}", 30 - n, "w" + " w" * 100) for n in range(1, 26)]
    keys = [candidate(f"memory:k{n}", 0.0, "w" + " w" * 75) for n in range(6)]
    pages = [candidate(f"visit:v{n}", 0.0, "w" + " w" * 175) for n in range(4)]
    offered = offered_candidates([*turns, *keys, *pages])
    ids = [one.node_id for one in offered]
    assert ids == [f"turn:{n}" for n in range(1, 21)] + [f"memory:k{n}" for n in range(4)] + [
        "visit:v0",
        "visit:v1",
    ]


def test_choice_and_rules() -> None:
    """What 2.1 chose is relevant, and what a rule adds; both with their score, if there is one."""
    candidates = [candidate("turn:1"), candidate("memory:budget"), candidate("turn:2")]
    plan = build_plan(
        candidates,
        None,
        NOW,
        scores={"turn:1": 0.4, "turn:2": 0.1},
        chosen=["turn:1"],
        by_rule=["memory:budget"],
        chosen_by="closeness",
        reasoning=None,
    )
    assert [(one.chosen, one.by, one.score) for one in plan.candidates] == [
        (True, "closeness", 0.4),
        (True, "always_include", None),
        (False, "closeness", 0.1),
    ]


def test_plan() -> None:
    """The plan names what was chosen by kind, says how old research is, and is read back best first."""
    candidates = [candidate("turn:7", 5.0), candidate("turn:9", 1.0), candidate("research:a.b", 2.0)]
    research = Node(
        "research:a.b",
        "research_cache",
        "a.b",
        "r.json",
        NOW - timedelta(hours=30),
        (),
        expires_at=NOW - timedelta(hours=24),
    )
    plan = build_plan(
        candidates,
        research,
        NOW,
        scores={"turn:7": 1.7, "turn:9": 1.6, "research:a.b": 1.0},
        chosen=["turn:7", "turn:9", "research:a.b"],
        by_rule=[],
        chosen_by="closeness",
        reasoning=None,
    )
    assert plan.relevant_turns == (7, 9)
    assert plan.turn_relevance["7"].relevance == "high"
    assert plan.turn_relevance["9"].relevance == "medium"
    match = plan.research_cache_match
    assert (match.matched, match.topic, match.freshness) == (True, "a.b", "30.0 hours")
    assert match.reuse_recommendation == "refresh"
    assert planned_nodes(plan) == ["turn:7", "turn:9", "research:a.b"]
