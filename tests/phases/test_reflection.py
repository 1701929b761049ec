"""Phase 1: go on, or ask back."""

from pathlib import Path

import pytest

from tests.api import LAPTOPS, ROOT, VAGUE_QUESTION, Panda, ScriptedPanda
from tests.script import Script


@pytest.fixture
def laptops(tmp_path: Path) -> Panda:
    """Ann's laptops, with the models that come with panda."""
    return Panda(tmp_path / "project", LAPTOPS, user="ann")


def test_clarify_ends_the_turn(laptops: Panda) -> None:
    """A query that is surely unclear ends the turn with a question; nothing is gathered."""
    turn = laptops.turn("Do the thing.")
    question = "What do you mean by “Do the thing.”? Please name the thing that it is about."
    assert (turn.code, turn.status, turn.metadata["question"]) == (21, "clarify", question)
    assert turn.metadata["route"] == [0, 1, 7]
    assert turn.sections == [0, 1]
    assert turn.file("reflection.json")["decision"] == "CLARIFY"
    assert turn.response == question
    assert laptops.problems() == []


def test_long_query_is_quoted_in_part(ann: ScriptedPanda) -> None:
    """The question quotes no more than the beginning of a long query, on one line."""
    script = Script(reflection={"decision": "CLARIFY", "question": ""})
    question = ann.turn("Do the thing.\n" * 30, script=script).metadata["question"]
    assert "“Do the thing. Do the thing." in question
    assert len(question) < 160


@pytest.mark.asks_for("shop.example")
def test_clear_query_proceeds(laptops: Panda) -> None:
    """A clear query goes on to be gathered for, with a reason; an offline reply has no confidence."""
    turn = laptops.turn("How much is the Lenovo LOQ 15?")
    reflection = turn.file("reflection.json")
    assert reflection["decision"] == turn.meta(1)["decision"] == "PROCEED"
    assert reflection["confidence"] is None
    reason = turn.body(1).removeprefix("**Decision:** PROCEED\n\n")
    assert reason == reflection["reasoning"] != ""
    assert 2 in turn.metadata["route"]


def test_a_writer_is_told_what_is_close(ann: ScriptedPanda, tmp_path: Path) -> None:
    """Whoever writes decides beside the lines of the store that are closest, or that there are none."""
    assert "budget: $500-800" in ann.turn(VAGUE_QUESTION).asked("reflection")[0].text
    with ScriptedPanda(tmp_path / "bare", None) as bare:
        bare("init")
        turn = bare.turn("How much is it?", "--new-user")
        assert "Nothing was found." in turn.asked("reflection")[0].text


def test_without_an_encoder_a_query_that_names_nothing_is_asked_back(laptops: Panda) -> None:
    """Where nothing can tell, only a query without a telling word is asked back, none that names a thing."""
    models = (ROOT / "models.yaml").read_text(encoding="utf-8")
    laptops.write("models.yaml", models.replace("encoder: minilm-l6", "encoder: null"))
    assert laptops.turn("Which one?").status == "clarify"
    assert laptops.turn("Which tea?").meta(1)["decision"] == "PROCEED"
