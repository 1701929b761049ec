"""Recorded turns of the demo come out as they were; a changed prompt is a loud miss. No model is called."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from panda.models.contract import (
    Completion,
    GenerateParams,
    HiddenState,
    Message,
    Model,
    ScoreCase,
    ScoreParams,
    Scores,
    TokenScores,
)
from panda.models.layers import Layers
from panda.models.models_file import load_models_file
from panda.replays.simulating import Simulation, simulate
from panda.settings import load_settings
from panda.storage.assets import asset
from panda.storage.layout import Layout
from tests.record_replays import FIRST_TURN, QUESTIONS


class Unasked:
    """A model that can be looked at but not asked."""

    def __init__(self, model: Model) -> None:
        self.info = model.info
        self.count_model_tokens = model.count_model_tokens
        self.render_chat = model.render_chat

    def generate(self, messages: Sequence[Message], params: GenerateParams) -> Completion:
        raise AssertionError("a replay asked a model")

    def score(self, prefix: str, cases: Sequence[ScoreCase], params: ScoreParams) -> Scores:
        raise AssertionError("a replay asked a model")

    def score_tokens(self, prefix: str, text: str, params: ScoreParams) -> TokenScores:
        raise AssertionError("a replay asked a model")

    def embed(self, prefix: str, text: str, params: ScoreParams) -> HiddenState:
        raise AssertionError("a replay asked a model")


class NoCalls:
    """Layers of models that cannot be asked."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def model(self, layer: str) -> Model:
        """The model of a layer."""
        return Unasked(self._layers.model(layer))

    def release(self, layer: str) -> None:
        """Nothing is loaded."""


@pytest.fixture
def store(recorded: Path, tmp_path: Path) -> Layout:
    """The demo store with the recorded turns in it."""
    return Layout(shutil.copytree(recorded, tmp_path / "store"))


def replay(store: Layout, number: int, project: Path) -> Simulation:
    flags = {"root": str(store.root), "user": "demo"}
    settings = load_settings(flags, {"XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}, project)
    layers = Layers(load_models_file(settings.models_file), cache_dir=settings.cache_dir, environ={})
    with layers:
        return simulate(settings, store, NoCalls(layers), number)


@pytest.mark.parametrize("number", range(FIRST_TURN, FIRST_TURN + len(QUESTIONS)))
def test_recorded_turns_come_out_the_same(store: Layout, tmp_path: Path, number: int) -> None:
    """Every document of a recorded turn is byte for byte the same; if a change is meant: `make record`."""
    found = replay(store, number, tmp_path)
    assert found.halted is None
    assert [miss.difference for miss in found.misses] == []
    assert found.different == {}
    assert "context.md" in found.same


def test_changed_prompt_misses(store: Layout, tmp_path: Path) -> None:
    """After a change to one prompt, exactly the calls of its recipe miss, with the difference shown."""
    prompt = tmp_path / "prompts" / "pipeline" / "phase0_current_prices.md"
    prompt.parent.mkdir(parents=True)
    text = (asset("prompts") / "pipeline" / "phase0_current_prices.md").read_text(encoding="utf-8")
    prompt.write_text(text.replace("\n- ", "\n- Changed.\n- ", 1), encoding="utf-8")
    found = replay(store, FIRST_TURN, tmp_path)
    assert {miss.recipe for miss in found.misses} == {"pipeline/phase0_query_analyzer"}
    assert "+Message: Changed." in found.misses[0].difference
