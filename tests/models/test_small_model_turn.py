"""A whole turn of a real GGUF with 135 million parameters: it makes little sense, and breaks nothing."""

from pathlib import Path

from tests.api import LAPTOPS, Panda

MODELS = """
models:
  small: {backend: llama_cpp, location: "builtin:smollm2-135m", n_ctx: 8192}
layers: {REFLEX: small, NERVES: small, MIND: small, VOICE: small}
"""


def test_a_very_small_model_writes_its_way_through_a_turn(tmp_path: Path) -> None:
    """The turn ends with an answer, a question or a refusal, and whatever it left is sound; nothing halts."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    panda.write("models.yaml", MODELS)
    turn = panda.turn("How much is the Lenovo LOQ 15?")
    assert turn.code in (0, 21, 22), turn.out
    assert {call["model"] for call in turn.calls} == {"small"}
    phases = {call["phase"] for call in turn.calls}
    assert {0, 2, 7} <= phases
    assert 3 in phases or turn.code == 21  # a question to the user ends the turn before the plan
    assert panda.problems() == []
