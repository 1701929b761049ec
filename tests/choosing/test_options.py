"""Options beside each other: the closest to the query is first, and a fit says whether it answers."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from panda.choosing.decision import Choice, ChoiceInputs, ChoiceSpec, Option, Question
from panda.choosing.fits import Fit, name_fit
from panda.choosing.scorers import choose, describe_line, read_options
from panda.errors import RecipeKeyError
from panda.models.contract import Encoder
from panda.recipes.schema import choice_specs
from tests.choosing.asks import asking, forbidden
from tests.recipes.books import schema_of
from tests.scripted_model import ScriptedEncoder

SPANS = [Option("s1", "Bees hum."), Option("s2", "the tent costs 90")]
INPUTS = ChoiceInputs("the tent costs", {"p": SPANS}, str)
WEIGHTS = np.array([[4, 0], [0, 0]], np.float32)
FIT = Fit(("answered", "nothing"), WEIGHTS, np.array([-8, 0], np.float32), 1.0, "d", 4)


def spec_of(**step: object) -> ChoiceSpec:
    """A subset of options, by a fit and without one by its prior."""
    schema = {
        "type": "array",
        "x-options": "spans",
        "x-many": {"max": 2, "at_least": 0.5, "within": 1.0},
        "x-decide": [
            {"scorer": "options", "fit": "answer", "reads": ["cosine", "partners"], **step},
            {"scorer": "prior"},
        ],
    }
    return choice_specs(schema_of(p=schema), path=Path("r.yaml"))[0]


def decide(inputs: ChoiceInputs, encoder: Encoder | None) -> Choice:
    """Choose with the fit, if there is an encoder."""
    spec, fits = spec_of(), dict[str, Fit]()
    if encoder is not None:
        ask = asking(forbidden, {}, encoder=encoder)
        fits[name_fit(Question(spec, spec.steps[0], SPANS, inputs), ask)] = FIT
    return choose(spec, inputs, asking(forbidden, {}, encoder=encoder, fits=fits))


def test_the_closest_answers_and_the_language_model_is_not_asked() -> None:
    """The closest line has the probability of the fit, each other less the further behind it is."""
    choice = decide(INPUTS, ScriptedEncoder())
    assert (choice.value, choice.scorer, choice.fitted) == (("s2",), "options", True)
    assert choice.scores["s2"] == choice.confidence or choice.confidence == round(choice.scores["s2"], 4)
    spec = spec_of()
    closeness, _ = read_options(
        Question(spec, spec.steps[0], SPANS, INPUTS), asking(forbidden, {}, encoder=ScriptedEncoder())
    )
    behind = math.log(choice.scores["s2"] / choice.scores["s1"])
    assert behind == pytest.approx(20 * (closeness[1] - closeness[0]))


def test_nothing_is_taken_where_the_closest_does_not_answer() -> None:
    """Below the bar of the closest no option is taken, however few there are."""
    assert decide(ChoiceInputs("who plays the cello", {"p": SPANS}, str), ScriptedEncoder()).value == ()


def test_without_an_encoder_the_next_step_decides() -> None:
    """No encoder, no fit of options."""
    assert decide(INPUTS, None).scorer == "prior"


def test_partners_are_looked_for_where_words_are_lacking() -> None:
    """Words that the text has need none; others are compared with what else it says."""
    ask = asking(forbidden, {}, encoder=ScriptedEncoder({"price": "cost"}))

    def read(query: str, text: str) -> dict[str, float]:
        return describe_line(ask.words(query), ask.words(text))

    near = read("what is the price of the tent", "tent, cost 90")
    assert near["partners"] == pytest.approx(1, abs=1e-6)
    assert near["lacking"] == 0.1
    far = read("who gave me the tent", "tent, cost 90")
    assert far["partners"] < 0.5
    assert far["lacking"] == 0.1
    assert near["rest"] > far["rest"]
    assert read("tents cost", "the tent costs 90")["partners"] == 0.75
    assert read("bees", "") == {"partners": 0.0, "lacking": 0.1, "rest": 0.0}


def test_words_in_their_places_order_lines() -> None:
    """A line is as close as its meaning and the nearest of its words for each word of the query."""
    spec, spans = spec_of(), [Option("s1", "tent"), Option("s2", "tent price bees hum")]
    inputs = ChoiceInputs("tent price", {"p": spans}, str)
    closeness, _ = read_options(
        Question(spec, spec.steps[0], spans, inputs), asking(forbidden, {}, encoder=ScriptedEncoder())
    )
    assert closeness[1] > closeness[0]


@pytest.mark.parametrize("step", [{"reads": ["partners", "cosine"]}, {"fit": None}, {"reads": ["gain"]}])
def test_wrong_steps_are_named(step: Mapping[str, object]) -> None:
    """What is read stands in its order, and a fit has a name."""
    with pytest.raises(RecipeKeyError):
        spec_of(**step)
