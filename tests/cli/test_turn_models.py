"""`panda turn --model`: other models than those of models.yaml for one turn."""

import json

import pytest

from tests.api import PRICE_QUESTION, VAGUE_QUESTION, ScriptedPanda
from tests.script import Script

ALL = ("REFLEX", "NERVES", "MIND", "VOICE")


@pytest.fixture
def ann(ann: ScriptedPanda) -> ScriptedPanda:
    """Ann's laptops with a scripted model that no layer names."""
    path = ann.home / "models.yaml"
    text = path.read_text(encoding="utf-8")
    for layer in ALL:
        text = text.replace(f"{layer}: scripted", f"{layer}: offline")
    path.write_text(text, encoding="utf-8")
    return ann


def test_a_turn_is_asked_with_another_model(ann: ScriptedPanda) -> None:
    """All four layers ask the model in this turn, which records it; the next turn is offline again."""
    turn = ann.turn(PRICE_QUESTION, "-m", "scripted")
    assert (turn.code, turn.status) == (0, "approved")
    assert turn.metadata["models"] == dict.fromkeys(ALL, "scripted")
    assert turn.asked("answer")
    following = ann.turn("Hello!")
    assert (following.prompts, "models" in following.metadata) == ((), False)
    assert ann.problems() == []


@pytest.mark.asks_for("shop.example")
def test_one_layer_gets_another_model(ann: ScriptedPanda) -> None:
    """The others stay as they are in models.yaml; what is said of one layer counts more than of all."""
    turn = ann.turn(PRICE_QUESTION, "--model", "voice=scripted")
    assert turn.metadata["models"] == {"VOICE": "scripted"}
    assert {call["layer"] for call in turn.calls if call["kind"] != "offline"} == {"VOICE"}
    other = ann.turn(PRICE_QUESTION, "-m", "VOICE=offline", "-m", "scripted")
    assert other.metadata["models"] == {**dict.fromkeys(ALL, "scripted"), "VOICE": "offline"}
    assert not other.asked("answer")


def test_a_replay_asks_the_same_models(ann: ScriptedPanda) -> None:
    """The turn comes out as it was saved, though models.yaml names other models."""
    turn = ann.turn(PRICE_QUESTION, "-m", "scripted")
    (line,) = ann.json("replay", str(turn.number))["turns"]
    assert (line["result"], line["misses"]) == ("same", [])


@pytest.mark.parametrize("words", [("--resume", "last"), ("--resume-all",)])
def test_a_resumed_turn_goes_on_with_its_models(ann: ScriptedPanda, words: tuple[str, ...]) -> None:
    """Taken up again it asks the model that it was begun with."""
    ann.server.die()
    assert ann.turn(PRICE_QUESTION, "-m", "scripted").code == 75
    ann.server.start()
    assert ann("turn", *words).code == 0
    metadata = json.loads(ann.turn_file(3, "metadata.json").read_text(encoding="utf-8"))
    assert (metadata["status"], metadata["models"]) == ("approved", dict.fromkeys(ALL, "scripted"))
    assert ann.server.asked


def test_a_model_that_is_gone_stops_what_needs_it(ann: ScriptedPanda) -> None:
    """A replay and a resumption name the model that models.yaml does not have any more."""
    saved = ann.turn(PRICE_QUESTION, "-m", "scripted")
    halted = ann.turn(PRICE_QUESTION, "-m", "scripted", script=Script(planner="nonsense"))
    text = (ann.home / "models.yaml").read_text(encoding="utf-8")
    ann.write("models.yaml", text.replace("scripted: {", "other: {"))
    resumed = ann("turn", "--resume", str(halted.number), "--json")
    assert resumed.code == 2
    assert resumed.error["message"].startswith("there is no model 'scripted' for REFLEX")
    (line,) = ann("replay", str(saved.number), "--json").data["turns"]
    assert "there is no model 'scripted'" in line["findings"][0]


def test_a_question_back_names_the_models(ann: ScriptedPanda) -> None:
    """The command that answers it has them too."""
    reply = {"decision": "CLARIFY", "question": "Which one?"}
    turn = ann.turn(VAGUE_QUESTION, "-m", "REFLEX=scripted", script=Script(reflection=reply))
    assert turn.code == 21
    assert "-m REFLEX=scripted" in turn.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-m", "scriptd"), "there is no model 'scriptd' for REFLEX: models.yaml has scripted, offline"),
        (("--model", "EYES=offline"), "there is no model 'offline' for EYES: models.yaml has scripted"),
        (("--model", "VOCE=scripted"), "there is no layer 'VOCE'"),
        (("--model", "VOICE=scripted", "--model", "VOICE=offline"), "VOICE gets two models"),
        (("-m", "scripted", "-m", "offline"), "scripted and offline cannot both serve all layers"),
    ],
)
def test_a_model_that_is_not_there_begins_no_turn(
    ann: ScriptedPanda, words: tuple[str, ...], message: str
) -> None:
    """The fault is told with what there is, before the turn has a number."""
    before = sorted(ann.user_directory.glob("turns/*"))
    ended = ann("turn", *words, "--json", "--", PRICE_QUESTION)
    assert (ended.code, ended.error["message"]) == (2, message)
    assert ended.error["fix"]
    assert sorted(ann.user_directory.glob("turns/*")) == before


def test_a_resumed_turn_takes_no_other_model(ann: ScriptedPanda) -> None:
    """--model goes with a new turn alone."""
    ended = ann("turn", "--resume=3", "--model=scripted", "--json")
    assert (ended.code, ended.error["where"]) == (2, "--resume")
