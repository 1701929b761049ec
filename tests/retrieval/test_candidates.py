"""What a turn offers a model that writes to choose from: sources merged by rank, within their places."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.api import ScriptedPanda
from tests.script import Script, offered
from tests.store_files import write_research, write_turn, write_visit


def save(panda: ScriptedPanda, number: int, query: str, response: str = "x", **more: Any) -> None:
    """Save a turn in a session of its own."""
    write_turn(panda.user_directory, number, query=query, response=response, session=f"s{number}", **more)


def candidates(panda: ScriptedPanda, query: str) -> dict[str, str]:
    """Return what a turn offers its model, by node, in the order that the model reads."""
    nothing: dict[str, Any] = {"retrieval": {"relevant": []}, "answer": {"items": []}}
    turn = panda.turn(query, script=Script(**nothing))
    return offered(turn.asked("retrieval")[0], "relevant")


def write_preferences(panda: ScriptedPanda, text: str) -> None:
    """Write preferences.md."""
    (panda.user_directory / "preferences.md").write_text(f"---\n{text}---\n", encoding="utf-8")


def test_kinds_are_merged_by_score(ann: ScriptedPanda) -> None:
    """Turns, research, visits and all memory keys come as one ranked list with what they say."""
    summary = "Compared RTX 4050 laptops under $1000"
    save(ann, 811, "Which laptop has an RTX 4050?", "The LOQ 15.", summary=summary)
    page = {"title": "Lenovo LOQ 15", "specs": {"gpu": "RTX 4050"}}
    write_visit(ann.user_directory, 811, "visit_a", page, quality=0.9)
    write_research(ann.user_directory, 811, topic="commerce.laptop", summary="12 laptops")
    write_preferences(ann, "budget: $500-800\n")
    offers = candidates(ann, "Which laptop with RTX 4050 did we see?")
    assert {"turn:811", "visit:visit_a", "research:commerce.laptop", "memory:budget"} <= set(offers)
    assert "Compared RTX 4050 laptops under $1000" in offers["turn:811"]
    assert "budget: $500-800" in offers["memory:budget"]


def test_turns_push_out_no_page(ann: ScriptedPanda) -> None:
    """However often a question was asked, the page that answers it stays a candidate."""
    save(ann, 10, "ferries")
    page = {"title": "Ferry to Porto", "specs": {"pier": "7"}}
    write_visit(ann.user_directory, 10, "visit_a", page, quality=0.9)
    for number in range(11, 61):
        save(ann, number, "Which pier has the ferry to Porto?", "The ferry: pier 7.")
    assert "visit:visit_a" in candidates(ann, "Which pier has the ferry to Porto?")


def test_many_keys_leave_room_for_turns(ann: ScriptedPanda) -> None:
    """Keys without a shared word take a third of the places while turns want them."""
    for number in range(11, 31):
        save(ann, number, "apple")
    write_preferences(ann, "".join(f"key_{n}: value\n" for n in range(40)))
    offers = candidates(ann, "apple?")
    assert sum(node_id.startswith("turn:") for node_id in offers) >= 15
    assert 5 <= sum(node_id.startswith("memory:") for node_id in offers) <= 15


def test_named_date_lifts_a_turn(ann: ScriptedPanda) -> None:
    """Of equal turns the one on the named day comes first."""
    for number in (11, 12, 13):
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number - 10)
        save(ann, number, "we met", "yes", at=at)
    offers = [node for node in candidates(ann, "Who met on 3 January 2026?") if node.startswith("turn:")]
    assert offers[0] == "turn:12"


def test_newest_research_of_a_topic(ann: ScriptedPanda) -> None:
    """Two research files of one topic are one candidate."""
    for number, year in ((11, 2025), (12, 2024)):
        save(ann, number, "pets")
        times = {"created_at": f"{year}-01-01T00:00:00Z", "expires_at": f"{year + 9}-01-01T00:00:00Z"}
        research = {"topic": "pets", "summary": f"hamster {year}", "claims": []}
        write_research(ann.user_directory, number, **research, **times)
    offers = candidates(ann, "hamster?")
    assert "hamster 2025" in offers["research:pets"]
    assert "2024" not in " ".join(offers.values())


def test_unreadable_files_are_told(ann: ScriptedPanda) -> None:
    """A turn whose files do not read is told by its file, and the others are candidates."""
    save(ann, 11, "apple")
    ann.turn_file(11, "context.md").write_text("no front matter", encoding="utf-8")
    nothing: dict[str, Any] = {"retrieval": {"relevant": []}, "answer": {"items": []}}
    turn = ann.turn("apple?", script=Script(**nothing))
    assert "turn_000011/context.md" in turn.err
    assert "turn:11" not in offered(turn.asked("retrieval")[0], "relevant")
