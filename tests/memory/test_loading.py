"""Which lines of loaded documents reach the synthesis of the context, in which order, and what goes first."""

import re

from tests.api import ScriptedPanda, Turn
from tests.script import Script, loaded_documents, offered, pick
from tests.store_files import write_note, write_research, write_turn

QUERY = "Which laptops are there?"
LAPTOPS = "\n".join(
    f"- Laptop {n} of the old market weighs {n} kg and has a screen of {n + 10} inches." for n in range(150)
)
"""About 3,000 tokens."""


def load(ann: ScriptedPanda, *nodes: str) -> tuple[Turn, dict[str, list[str]]]:
    """Ask with these nodes chosen; return the turn and the lines of each document that was loaded."""
    turn = ann.turn(QUERY, script=Script(retrieval={"relevant": pick(*nodes)}, answer={"items": []}))
    assert turn.code == 0, turn.err
    return turn, loaded_documents(turn.asked("synthesis")[0])


def write_claims(ann: ScriptedPanda) -> None:
    """Write research of 30 hours ago with seven claims, of which the later ones are surer."""
    claims = [
        {"claim": f"Laptop {n} @ ${n}97", "source": "a.example", "confidence": n / 10} for n in range(3, 10)
    ]
    times = {"created_at": "2026-01-03T08:30:00Z", "expires_at": "2026-01-03T14:30:00Z"}
    write_research(ann.user_directory, 1, claims=claims, **times)


def test_memory_comes_before_research_visits_notes_and_newer_turns(ann: ScriptedPanda) -> None:
    """Documents are loaded in this order, and the plan names them by kind and says how old research is."""
    write_claims(ann)
    write_turn(ann.user_directory, 3, query="And laptops?", response="Laptop 9 is light.")
    write_note(ann.user_directory, "shops.md", "Shop 5 sells laptops.\n")
    turn, documents = load(ann, "turn:1 ", "turn:3 ", "memory:", "research:", "visit:", "knowledge:")
    order = ["memory:budget", "research:commerce.laptop", "visit:visit_loq", "knowledge:shops.md"]
    assert list(documents) == [*order, "turn:3", "turn:1"]
    assert len(documents["research:commerce.laptop"]) == 7
    plan = turn.file("retrieval_plan.json")
    assert plan["relevant_turns"] == [3, 1]
    assert plan["relevant_memory_keys"] == ["budget"]
    assert plan["relevant_knowledge"] == ["shops.md"]
    assert plan["webpage_cache_needed"] == ["visit_loq"]
    assert plan["research_cache_match"] == {
        "matched": True,
        "topic": "commerce.laptop",
        "freshness": "30.0 hours",
        "quality": 0.9,
        "reuse_recommendation": "refresh",
    }
    assert {candidate["by"] for candidate in plan["candidates"] if candidate["chosen"]} == {"model"}


def test_a_turn_keeps_at_most_1500_tokens(ann: ScriptedPanda) -> None:
    """The rest of an earlier turn is left out, with a warning that has the numbers."""
    write_turn(ann.user_directory, 3, query="What is there?", response=LAPTOPS)
    turn, documents = load(ann, "turn:3")
    (warning,) = [warning for warning in turn.warnings if warning.startswith("turn:3 cut from")]
    before, after = map(int, re.findall(r"\d+", warning)[1:])
    assert before > 3_000
    assert 1_400 < after <= 1_500
    assert 60 < len(documents["turn:3"]) < 80


def test_research_keeps_its_best_claims(ann: ScriptedPanda) -> None:
    """If documents do not fit together, research keeps its summary and its five surest claims."""
    write_claims(ann)
    write_note(ann.user_directory, "shops.md", LAPTOPS)
    _, documents = load(ann, "research:", "knowledge:")
    claims = [re.findall(r"Laptop (\d) @|Five", line) for line in documents["research:commerce.laptop"]]
    assert claims == [[""], *([str(n)] for n in range(5, 10))]


def test_each_kind_of_source_has_its_own_room_among_the_candidates(ann: ScriptedPanda) -> None:
    """Turns do not push memory or notes out, nor these them."""
    for number in range(3, 40):
        query = f"Which laptops are there in shop {number}?"
        write_turn(ann.user_directory, number, query=query, response="Many.")
    for number in range(6):
        write_note(ann.user_directory, f"shop{number}.md", f"Laptops are there in shop {number}.\n")
    turn, _ = load(ann, "memory:budget")
    kinds = [node_id.partition(":")[0] for node_id in offered(turn.asked("retrieval")[0], "relevant")]
    assert (kinds.count("memory"), kinds.count("knowledge")) == (1, 6)
    assert 20 <= kinds.count("turn") < 30


def test_lines_that_are_never_shown(ann: ScriptedPanda) -> None:
    """Expired lines, questions and lines too long to quote are no part of a document."""
    write_claims(ann)
    text = f"How much is it?\n\n{'x' * 1_001}\n\nThe GPU is an RTX 4050.\n"
    write_note(ann.user_directory, "shops.md", text)
    _, documents = load(ann, "knowledge:")
    assert documents["knowledge:shops.md"] == ["The GPU is an RTX 4050."]
