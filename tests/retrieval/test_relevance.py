"""Which candidates are offered, which are chosen, and what the plan says of it."""

from datetime import timedelta

from panda.memory.node import Node
from panda.retrieval.candidates import Candidate
from panda.retrieval.offers import offered_candidates
from panda.retrieval.plan import build_plan, planned_nodes
from panda.retrieval.relevance import judge_candidates
from panda.retrieval.rules import ruled_nodes
from tests.stores import NOW

ANALYSIS = {
    "content_reference": None,
    "reference_resolution": {"status": "not_needed"},
    "intent": "query",
}


def candidate(node_id: str, score: float = 0.0, text: str = "words") -> Candidate:
    return Candidate(node_id, text, score)


def chosen(likelihoods: dict[str, float], *candidates: Candidate, by_rule: tuple[str, ...] = ()) -> list[str]:
    judged = judge_candidates(candidates, query="q", likelihoods=likelihoods, written=[], by_rule=by_rule)
    return [one.candidate.node_id for one in judged if one.chosen]


def test_offers_by_kind() -> None:
    """Each kind of source has its own room: turns do not push memory out, nor it them."""
    turns = [candidate(f"turn:{n}", 30 - n, "w " * 125) for n in range(1, 26)]
    keys = [candidate(f"memory:k{n}", 0.0, "w " * 100) for n in range(6)]
    pages = [candidate(f"visit:v{n}", 0.0, "w " * 200) for n in range(4)]
    offered = offered_candidates([*turns, *keys, *pages], count=lambda text: len(text.split()))
    ids = [one.node_id for one in offered]
    assert ids == [f"turn:{n}" for n in range(1, 21)] + [f"memory:k{n}" for n in range(4)] + [
        "visit:v0",
        "visit:v1",
    ]


def test_model_and_index_together() -> None:
    """A candidate that the index likes needs less of the model, one in other words more."""
    liked, other = candidate("memory:1", 9.0), candidate("memory:2", 0.0)
    assert chosen({"memory:1": 0.7, "memory:2": 0.7}, liked, other) == ["memory:1"]
    assert chosen({"memory:1": 0.7, "memory:2": 1.2}, liked, other) == ["memory:1", "memory:2"]
    assert chosen({"memory:1": -0.5, "memory:2": -0.4}, liked, other) == []


def test_short_kinds_push_out_nothing_longer() -> None:
    """A preference that scores high by a shared word leaves the only visit in; a turn does not."""
    visit, other = candidate("visit:a"), candidate("memory:brands")
    assert chosen({"visit:a": 1.5, "memory:brands": 3.9}, visit, other) == ["visit:a", "memory:brands"]
    assert chosen({"visit:a": 1.5, "turn:1": 3.9}, visit, candidate("turn:1")) == ["turn:1"]
    fact = candidate("fact:a")
    assert chosen({"fact:a": 1.5, "memory:brands": 3.9}, fact, other) == ["memory:brands"]
    assert chosen({"fact:a": 1.5, "visit:a": 3.9}, fact, visit) == ["visit:a"]


def test_turns_to_look_at() -> None:
    """Once a turn is relevant, the best three and the index's first are looked at; no turn if none is."""
    turns = [candidate(f"turn:{n}", score) for n, score in enumerate((0.0, 0.0, 0.0, 0.0, 9.0, 8.0), 1)]
    likelihoods = {one.node_id: 3.0 - n / 5 for n, one in enumerate(turns)}
    assert chosen(likelihoods, *turns) == ["turn:1", "turn:2", "turn:3", "turn:5", "turn:6"]
    assert chosen({node_id: value - 3 for node_id, value in likelihoods.items()}, *turns) == []


def test_at_most_three_turns() -> None:
    """Of turns that are equally good three are chosen; another kind comes in if it is not far worse."""
    turns = [candidate(f"turn:{n}") for n in range(1, 9)]
    likelihoods = {one.node_id: 2.0 for one in turns} | {"memory:budget": 0.9}
    assert chosen(likelihoods, *turns, candidate("memory:budget")) == [
        "turn:1",
        "turn:2",
        "turn:3",
        "memory:budget",
    ]
    assert "memory:budget" not in chosen(
        likelihoods | {"memory:budget": 0.7}, *turns, candidate("memory:budget")
    )


def test_more_candidates_need_more() -> None:
    """What suffices where nothing else is does not suffice among thirty."""
    crowd = [candidate(f"turn:{n}") for n in range(2, 31)]
    likelihoods = {one.node_id: -1.0 for one in crowd} | {"turn:1": 1.0}
    assert chosen({"turn:1": 1.0}, candidate("turn:1")) == ["turn:1"]
    assert chosen(likelihoods, candidate("turn:1"), *crowd) == []


def test_written_choice_and_rules() -> None:
    """Without scores the ids that a model wrote count; a rule adds to either."""
    candidates = [candidate("turn:1"), candidate("memory:budget")]
    judged = judge_candidates(
        candidates, query="q", likelihoods={}, written=["turn:1"], by_rule=["memory:budget"]
    )
    assert [(one.chosen, one.by, one.score) for one in judged] == [
        (True, "model", None),
        (True, "always_include", None),
    ]
    assert chosen({"memory:budget": -1.0}, candidates[1], by_rule=("memory:budget",)) == ["memory:budget"]


def test_rules() -> None:
    """Named turns, what is referred to, and the previous turn of a reference that was not found."""
    offered = ["turn:7", "turn:9", "visit:v", "memory:budget"]
    assert ruled_nodes("what was turn 7 about?", ANALYSIS, offered, "turn:9") == ["turn:7"]
    found = {**ANALYSIS, "content_reference": {"node_id": "visit:v"}}
    assert ruled_nodes("is it in stock?", found, offered, "turn:9") == ["visit:v"]
    lost = {**ANALYSIS, "reference_resolution": {"status": "failed"}}
    assert ruled_nodes("is it in stock?", lost, offered, "turn:9") == ["turn:9"]
    assert ruled_nodes("find a cheap laptop", ANALYSIS, offered, None) == []


def test_plan() -> None:
    """The plan names what was chosen by kind, says how old research is, and is read back best first."""
    candidates = [candidate("turn:7", 5.0), candidate("turn:9", 1.0), candidate("research:a.b", 2.0)]
    judged = judge_candidates(
        candidates,
        query="q",
        likelihoods={"turn:7": 1.7, "turn:9": 1.6, "research:a.b": 1.0},
        written=[],
        by_rule=[],
    )
    research = Node(
        "research:a.b",
        "research_cache",
        "a.b",
        "r.json",
        NOW - timedelta(hours=30),
        (),
        expires_at=NOW - timedelta(hours=24),
    )
    plan = build_plan(judged, research, NOW, reasoning=None)
    assert plan["relevant_turns"] == [7, 9]
    assert plan["turn_relevance"]["7"]["relevance"] == "high"
    assert plan["turn_relevance"]["9"]["relevance"] == "medium"
    match = plan["research_cache_match"]
    assert (match["matched"], match["topic"], match["freshness"]) == (True, "a.b", "30.0 hours")
    assert match["reuse_recommendation"] == "refresh"
    assert planned_nodes(plan) == ["turn:7", "turn:9", "research:a.b"]
