"""The scripted model."""

import pytest

from panda.errors import ModelAwayError
from panda.models.contract import GenerateParams, Message, ScoreCase, ScoreParams
from tests.scripted_model import ScriptedModel, by_text, in_order

PARAMS = GenerateParams(temperature=0, max_tokens=50, seed=0, timeout_seconds=1)


def ask(model: ScriptedModel, text: str) -> str:
    return model.generate((Message("user", text),), PARAMS).text


def test_replies_in_order_then_fails() -> None:
    """Each call takes the next reply; one too many fails with what was asked."""
    model = ScriptedModel(in_order("one  two\n", "three"))
    assert [ask(model, "a"), ask(model, "b")] == ["one  two\n", "three"]
    with pytest.raises(AssertionError, match=r"nothing is scripted for call 3:\nwhat now"):
        ask(model, "what now")
    assert [call.text for call in model.asked] == ["a", "b", "what now"]


def test_replies_by_text() -> None:
    """The first key that occurs in the call decides; an error is raised as it stands."""
    model = ScriptedModel(by_text({"sky": "blue", "Answer:": [-1.0], "away": ModelAwayError("gone")}))
    assert ask(model, "the sky?") == "blue"
    assert model.score("Q", [ScoreCase("Answer:", " x")], ScoreParams(1)).logprobs == (-1.0,)
    with pytest.raises(ModelAwayError):
        ask(model, "away")


def test_wrong_number_of_scores_fails() -> None:
    """A script with another number of values than cases is a bug in the test."""
    with pytest.raises(AssertionError, match="1 scripted values for 2 cases"):
        ScriptedModel(in_order([-1.0])).score("", [ScoreCase("", " a")] * 2, ScoreParams(1))
