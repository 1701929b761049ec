"""What an answer holds as a whole: what a session was about, and lists."""

from pathlib import Path

from tests.builders import build_store, import_line
from tests.script import Script
from tests.scripted_turns import USER, Preferring, laptop_store, run_turn

QUERY = "What have we talked about so far?"


def test_a_session_is_told_turn_by_turn(tmp_path: Path) -> None:
    """A model that only quotes tells every turn of the session with what was asked, and cites it."""
    ran = run_turn(
        laptop_store(tmp_path), QUERY, Preferring("PROCEED"), writes=False, scores=True, session="tea"
    )
    assert (ran.error, ran.metadata.status) == (None, "approved")
    assert ran.meta(5)["items"] == [{"text": "“I drink tea.” – Assam it is.", "node_ids": ["turn:2"]}]
    assert ran.turn.steps() == []


def test_questions_back_and_missing_answers_are_told(tmp_path: Path) -> None:
    """A turn that asked back is told as that; of one that found nothing it is said."""
    lines = [
        import_line(user=USER, turn=1, session="s", query="I want a bike.", response="For town or hills?"),
        import_line(user=USER, turn=2, session="s", query="For hills.", response=""),
    ]
    layout = build_store(tmp_path, *lines)
    ran = run_turn(layout, "Recap, please.", Preferring("PROCEED"), writes=False, scores=True, session="s")
    assert [item["text"] for item in ran.meta(5)["items"]] == [
        "“I want a bike.” – “For town or hills?”",
        "“For hills.” – no answer was found",
    ]
    assert ran.metadata.status == "approved"


def test_a_model_that_writes_is_shown_the_session(tmp_path: Path) -> None:
    """A model that writes finds the session's turns in §2, and words the answer itself."""
    said = {"items": [{"text": "We talked about tea: Assam.", "node_ids": ["turn:2"]}]}
    ran = run_turn(laptop_store(tmp_path), QUERY, Script(answer=said), session="tea")
    assert "Assam it is. [" in ran.body(2)
    assert ran.meta(5)["items"] == said["items"]


def test_a_list_is_quoted_with_its_items(tmp_path: Path) -> None:
    """The line that introduces a list is quoted with the list."""
    layout = laptop_store(tmp_path)
    notes = layout.of(USER).home / "knowledge" / "hotels.md"
    notes.parent.mkdir()
    notes.write_text(
        "Hotels that friends like:\n\n- Palace: $310\n- Jasmim: $95\n\nBook early.\n", encoding="utf-8"
    )
    preferring = Preferring("PROCEED", "Hotels that friends like")
    ran = run_turn(layout, "Which hotels do friends like?", preferring, writes=False, scores=True)
    texts = [item["text"] for item in ran.meta(5)["items"]]
    assert texts[:3] == ["Hotels that friends like:", "Palace: $310", "Jasmim: $95"]
