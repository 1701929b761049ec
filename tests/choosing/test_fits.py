"""Fits: heads on hidden states, found by what they were made for, and what they read."""

import json
from pathlib import Path

import numpy as np
import pytest

from panda.choosing.decision import ChoiceInputs, ChoiceSpec, Question, Step
from panda.choosing.fits import Fit, fit_to_json, load_fit, name_fit
from panda.errors import FileFormatError
from tests.choosing.asks import asking, forbidden
from tests.scripted_model import ScriptedEncoder

HEAD = Fit(("no", "yes"), np.array([[0.0, 0.0], [1.0, 2.0]], np.float32), np.zeros(2, np.float32), 2.0, "", 4)


def test_file_round_trip(tmp_path: Path) -> None:
    """A fit that was written gives the same probabilities when it is read."""
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(fit_to_json(HEAD, {"recipe": "a/b"})), encoding="utf-8")
    again = load_fit(path)
    assert again.logprobs((0.5, 0.25)) == HEAD.logprobs((0.5, 0.25))
    assert np.exp(again.logprobs((0.5, 0.25))["yes"]) == pytest.approx(1 / (1 + np.exp(-0.5)))


@pytest.mark.parametrize("text", ["[]", "{}", "no json", '{"classes": ["a", "b"], "weights": "AAA"}'])
def test_broken_file(tmp_path: Path, text: str) -> None:
    """A file that is no fit is named in the error."""
    path = tmp_path / "fit.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError) as caught:
        load_fit(path)
    assert caught.value.where == str(path)


def test_name_follows_encoder_and_layout() -> None:
    """Another encoder or layout makes another fit."""

    def name(reads: str, encoder: ScriptedEncoder) -> str:
        step = Step(scorer="head", fit="intent", reads=tuple(reads.split()))
        spec = ChoiceSpec("p", (), None, (step,))
        question = Question(spec, step, (), ChoiceInputs("x", {}, str))
        return name_fit(question, asking(forbidden, {}, encoder=encoder))

    first = name("query", ScriptedEncoder())
    assert first.startswith("intent-")
    assert (
        len({first, name("query order", ScriptedEncoder()), name("query", ScriptedEncoder({"a": "b"}))}) == 3
    )
