"""What an answer holds as a whole: what a session was about."""

import json
from pathlib import Path

from tests.api import LAPTOPS, Panda, ScriptedPanda
from tests.script import Script
from tests.store_files import import_line

QUERY = "What have we talked about so far?"


def test_a_session_is_told_turn_by_turn(tmp_path: Path) -> None:
    """Without a language model every turn of the session is told with what was asked, and cited."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    turn = panda.turn(QUERY, "--session", "tea")
    assert turn.status == "approved"
    assert turn.meta(5)["items"] == [{"text": "“I drink tea.” – Assam it is.", "node_ids": ["turn:2"]}]
    assert turn.steps == []


def test_questions_back_and_missing_answers_are_told(tmp_path: Path) -> None:
    """A turn that asked back is told as that; of one that found nothing it is said."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    lines = [
        import_line(user="ann", turn=3, session="s", query="I want a bike.", response="For town or hills?"),
        import_line(user="ann", turn=4, session="s", query="For hills.", response=""),
    ]
    path = panda.write("turns.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    assert panda("import", str(path)).code == 0
    turn = panda.turn("Recap, please.", "--session", "s")
    assert [item["text"] for item in turn.meta(5)["items"]] == [
        "“I want a bike.” – “For town or hills?”",
        "“For hills.” – no answer was found",
    ]
    assert turn.status == "approved"


def test_a_model_that_writes_is_shown_the_session(ann: ScriptedPanda) -> None:
    """A model that writes finds the session's turns in §2, and words the answer itself."""
    answer = {"items": [{"text": "We talked about tea: Assam.", "node_ids": ["turn:2"]}]}
    turn = ann.turn(QUERY, "--session", "tea", script=Script(answer=answer))
    assert "Assam it is. [" in turn.body(2)
    assert turn.meta(5)["items"] == answer["items"]
