"""Recorded turns of the demo come out as they were; a changed prompt is a loud miss. No language
model is called."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from panda.models.contract import (
    Completion,
    Encoder,
    GenerateParams,
    Message,
    Model,
    ScoreCase,
    ScoreParams,
    Scores,
    TokenScores,
)
from panda.models.layers import Layers
from panda.models.models_file import load_models_file
from panda.runs.ledger import TurnLine
from panda.runs.replay import simulate
from panda.settings import load_settings
from panda.store.layout import Layout
from tests.record_replays import (
    EXPECTED,
    FIRST_TURN,
    MEMORY,
    QUESTIONS,
    REPLAYS,
    differences,
    load_expected,
    replace_replays,
    turn_name,
)

ENDED = [{name: one[name] for name in ("exit_code", "asks_for")} for one in load_expected()]


class Unasked:
    """A model that can be looked at but not asked."""

    def __init__(self, model: Model) -> None:
        self.info = model.info
        self.check_file, self.count_model_tokens = model.check_file, model.count_model_tokens
        self.render_chat = model.render_chat

    def generate(self, messages: Sequence[Message], params: GenerateParams) -> Completion:
        raise AssertionError("a replay asked a model")

    def score(self, prefix: str, cases: Sequence[ScoreCase], params: ScoreParams) -> Scores:
        raise AssertionError("a replay asked a model")

    def score_tokens(self, prefix: str, text: str, params: ScoreParams) -> TokenScores:
        raise AssertionError("a replay asked a model")


class NoCalls:
    """Layers of models that cannot be asked."""

    sees: bool = False

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def model(self, layer: str) -> Model:
        """The model of a layer."""
        return Unasked(self._layers.model(layer))

    def release(self, layer: str) -> None:
        """Nothing is loaded."""

    def encoder(self) -> Encoder | None:
        """The real one: what the index finds by meaning is looked up again, like what it finds by words."""
        return self._layers.encoder()


@pytest.fixture
def store(recorded: Path, tmp_path: Path) -> Layout:
    """The demo store with the recorded turns in it."""
    return Layout(shutil.copytree(recorded, tmp_path / "store"))


def replay(store: Layout, number: int, project: Path) -> TurnLine:
    flags = {"root": str(store.root), "user": "demo"}
    settings = load_settings(flags, {"XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}, project)
    layers = Layers(load_models_file(settings.models_file), cache_dir=settings.cache_dir, environ={})
    with layers:
        return simulate(settings, store, NoCalls(layers), number, work=project / "run")


@pytest.mark.parametrize("number", range(FIRST_TURN, FIRST_TURN + len(QUESTIONS)))
def test_recorded_turns_come_out_the_same(store: Layout, tmp_path: Path, number: int) -> None:
    """Every document of a recorded turn is byte for byte the same; if a change is meant: `make record`."""
    found = replay(store, number, tmp_path)
    assert [miss.difference for miss in found.misses] == []
    assert found.different == {}
    assert found.result == "same"
    directory = store.of("demo").turn(number).directory
    again = tmp_path / "run" / "turns" / "demo" / directory.name
    assert (again / "context.md").read_bytes() == (directory / "context.md").read_bytes()


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_recorded_answers_are_right(place: int) -> None:
    """Every recorded answer holds what expected.jsonl says, whatever the code made of it: mend the code."""
    assert differences(load_expected()[place], REPLAYS / turn_name(place)) == []


def files_of(directory: Path) -> dict[str, bytes]:
    """All files below a directory."""
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("response.md", "Lenovo LOQ 15", "ASUS TUF", "turn 813, 'Which laptop was the top pick"),
        ("response.md", "Sources:", "Or the ASUS.\n\nSources:", "the answer holds 'ASUS'"),
        ("metadata.json", '"approved"', '"failed"', "the status is failed, not approved"),
        ("context.md", "answered: true", "answered: false", "`answered` is not True"),
    ],
)
def test_a_wrong_answer_replaces_nothing(
    store: Layout, tmp_path: Path, name: str, old: str, new: str, said: str
) -> None:
    """A recording with one wrong answer is refused, with what differs, and no file of the old one changes."""
    user, replays = store.of("demo").home, tmp_path / "replays"
    shutil.copytree(REPLAYS, replays)
    path = user / turn_name(0) / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    wrong = replace_replays(user, replays, ENDED)
    assert any(said in line for line in wrong)
    assert all("turn 813, " in line for line in wrong)
    assert files_of(replays) == files_of(REPLAYS)


def test_a_wrong_ending_replaces_nothing(store: Layout) -> None:
    """Another exit code than expected, or a request to a host that is not expected, is refused too."""
    ended = [{**ENDED[0], "exit_code": 22}, {**ENDED[1], "asks_for": ["shop.example"]}, *ENDED[2:]]
    wrong = replace_replays(store.of("demo").home, REPLAYS, ended)
    assert [line.rpartition(": ")[2] for line in wrong] == [
        "exit_code is 22, not 0",
        "asks_for is ['shop.example'], not []",
    ]


def test_right_answers_replace_the_recording(store: Layout, tmp_path: Path) -> None:
    """A recording with right answers takes the place of what stood there; what is expected stays."""
    user, replays = store.of("demo").home, tmp_path / "replays"
    (replays / "turns" / "turn_000001").mkdir(parents=True)
    shutil.copy(REPLAYS / EXPECTED, replays)
    assert replace_replays(user, replays, ENDED) == []
    names = [turn_name(place).removeprefix("turns/") for place in range(len(QUESTIONS))]
    assert sorted(path.name for path in (replays / "turns").iterdir()) == names
    assert sorted(path.name for path in replays.iterdir()) == sorted([EXPECTED, "turns", *MEMORY])
