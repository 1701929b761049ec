"""Layers that models serve beside layers that are offline."""

import re
from itertools import product

import pytest

from tests.api import PRICE_QUESTION, ScriptedPanda

LAYERS = ("REFLEX", "NERVES", "MIND", "VOICE")


@pytest.mark.asks_for("shop.example")
@pytest.mark.parametrize("mix", [*product(("scripted", "offline"), repeat=len(LAYERS))], ids=" ".join)
def test_every_mix_of_layers_answers(mix: tuple[str, ...], ann: ScriptedPanda) -> None:
    """Whichever layers are offline, a question is answered, and only the others ask their model."""
    models = (ann.home / "models.yaml").read_text(encoding="utf-8")
    layers = ", ".join(f"{layer}: {served_by}" for layer, served_by in zip(LAYERS, mix, strict=True))
    ann.write("models.yaml", re.sub("layers: {.*}", f"layers: {{{layers}, EYES: null}}", models))
    turn = ann.turn(PRICE_QUESTION)
    assert turn.status == "approved", turn.out
    served = {layer for layer, served_by in zip(LAYERS, mix, strict=True) if served_by == "scripted"}
    asked = {call["layer"] for call in turn.calls if call["kind"] != "offline"}
    assert asked == served - {"NERVES"}
