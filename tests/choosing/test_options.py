"""Options beside each other: what is read of them, and when the language model is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from panda.choosing.decision import Choice, ChoiceInputs, ChoiceSpec, Option, Question
from panda.choosing.fits import ANY, RANK, Fit
from panda.choosing.scorers import OptionReader, choose, name_options
from panda.errors import RecipeKeyError
from panda.models.contract import Encoder, ScoreCase
from panda.models.scripted import ScriptedEncoder
from panda.recipes.schema import choice_specs
from tests.choosing.asks import ScoreFunction, asking, by_words, forbidden
from tests.recipes.books import EVIDENCE, schema_of

PROMPTS = {"evidence.md": EVIDENCE + "\n# answer\nEvidence: x\n"}
READS = ["cosine", "lead", "rest", "gain", "mutual", "told", "back"]
MANY = {"max": 2, "at_least": 0.5, "within": 1.0}
SPANS = [Option("s1", "Bees hum."), Option("s2", "the tent costs 90")]
INPUTS = ChoiceInputs("the tent costs", {"p": SPANS}, str)
QUICK = Fit(
    (RANK, ANY), np.array([[9, 0, 0], [9, 0, 0]], np.float32), np.array([0, -4], np.float32), 1.0, "", 4
)
FIT = Fit(
    (RANK, ANY),
    np.array([[9, 0, 0, 1, 0, 0, 0], [0, 0, 0, 2, 0, 0, 0]], np.float32),
    np.zeros(2, np.float32),
    1.0,
    "d",
    4,
    QUICK,
)


def spec_of(**step: object) -> ChoiceSpec:
    """A subset of options, by a fit and without one by its prior."""
    wanted = {"scorer": "options", "fit": "answer", "prompt": "evidence.md", "reads": READS, **step}
    schema = {
        "type": "array",
        "x-options": "spans",
        "x-many": MANY,
        "x-decide": [wanted, {"scorer": "prior"}],
    }
    return choice_specs(schema_of(p=schema), path=Path("r.yaml"))[0]


def decide(fit: Fit, score: ScoreFunction, encoder: Encoder | None) -> Choice:
    """Choose with that fit."""
    spec, fits = spec_of(), dict[str, Fit]()
    if encoder is not None:
        ask = asking(score, PROMPTS, encoder=encoder)
        fits[name_options(Question(spec, spec.steps[0], SPANS, INPUTS), ask)] = fit
    return choose(spec, INPUTS, asking(score, PROMPTS, encoder=encoder, fits=fits))


def test_without_doubt_the_language_model_is_not_asked() -> None:
    """Beyond the bars the values that cost nothing decide."""
    choice = decide(replace(FIT, bars=(0.1, 0.9)), forbidden, ScriptedEncoder())
    assert (choice.value, choice.scorer, choice.fitted) == (("s2",), "options", True)


def test_in_doubt_the_language_model_is_asked() -> None:
    """Between the bars all values are read, and their fit gives the probability."""
    choice = decide(FIT, by_words({"Evidence: the tent": -3.0}), ScriptedEncoder())
    assert choice.value == ("s2",)
    assert choice.confidence == pytest.approx(1 / (1 + np.exp(-4 * np.tanh(7 / 2))), abs=1e-4)


def test_without_an_encoder_the_next_step_decides() -> None:
    """No encoder, no fit of options."""
    assert decide(FIT, forbidden, None).scorer == "prior"


def test_what_is_read() -> None:
    """Cosine, lead and rest of each, the gain of the four nearest, and of the best alone what it tells."""
    asked: list[ScoreCase] = []

    def score(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, int]]:
        asked.extend(cases)
        return [(-1.0 if "tent" in case.context else -3.0, 1) for case in cases]

    spec = spec_of()
    options = [SPANS[1], *(Option(f"o{n}", f"Bees {n}.") for n in range(6))]
    question = Question(spec, spec.steps[0], options, INPUTS)
    ask = asking(score, PROMPTS, encoder=ScriptedEncoder())
    reader = OptionReader(question, ask)
    rows = reader.with_gain(reader.read_cheap())
    assert len(asked) == 5
    assert rows[0][3] == pytest.approx(2 * np.tanh(1.0))
    assert rows[0][1] == pytest.approx(rows[0][0] - max(row[0] for row in rows[1:]))
    assert {row[3] for row in rows[1:]} == {0.0}
    whole = reader.with_best(reader.with_mutual(rows, [0]), 0)
    assert whole[0][4:] == pytest.approx((0.0, -1.0, np.tanh(2.0)))
    assert whole[1][4:] == (0.0, 0.0, 0.0)
    assert asked[5] == ScoreCase(
        "Evidence: the tent costs 90\nQuestion: the tent costs\nAnswer:", " 90", True
    )


def test_lines_of_one_source_take_no_lead_from_each_other() -> None:
    """The lead is over the nearest line below another title; without one over the farthest of all."""
    spec = spec_of()
    titled = [Option("s1", "the tent costs 90", title="Camp"), Option("s2", "the tent", title="Camp")]
    options = [*titled, Option("s3", "Bees hum.", title="Garden")]

    def leads(offered: list[Option]) -> list[tuple[float, ...]]:
        question = Question(spec, spec.steps[0], offered, INPUTS)
        return OptionReader(question, asking(forbidden, PROMPTS, encoder=ScriptedEncoder())).read_cheap()

    first, second, other = leads(options)
    assert first[1] == pytest.approx(first[0] - other[0])
    assert second[1] == pytest.approx(second[0] - other[0])
    assert [row[1] for row in leads(titled)] == pytest.approx([first[0] - second[0], 0.0])


def test_of_two_that_are_close_the_query_speaks() -> None:
    """Two options whose order is in doubt are asked how much likelier they are after the query."""
    asked: list[ScoreCase] = []

    def score(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, int]]:
        asked.extend(cases)
        return [
            (-1.0 if "tent" in case.context and "Bees" in case.continuation else -3.0, 1) for case in cases
        ]

    spec = spec_of()
    options = [*SPANS, Option("s3", "A cello.")]
    reader = OptionReader(Question(spec, spec.steps[0], options, INPUTS), asking(score, PROMPTS))
    rows = reader.with_mutual([(0.0,), (0.0,), (0.0,)], [1, 0])
    assert [row[1] for row in rows] == pytest.approx([3 * np.tanh(2 / 3), 0.0, 0.0])
    assert len(asked) == 4


def test_options_may_be_judged_each_for_itself() -> None:
    """A fit without an order asks the language model only of those that are in doubt."""
    step = {"reads": ["cosine", "gain"]}
    spec, encoder = spec_of(**step), ScriptedEncoder()
    first = Fit((ANY,), np.array([[9]], np.float32), np.array([-4], np.float32), 1.0, "", 4)
    weights = np.array([[0, 9]], np.float32)
    fit = Fit((ANY,), weights, np.zeros(1, np.float32), 1.0, "d", 4, first, (0.5, 1.0))
    name = name_options(
        Question(spec, spec.steps[0], SPANS, INPUTS), asking(forbidden, PROMPTS, encoder=encoder)
    )
    ask = asking(by_words({"Evidence: the tent": -3.0}), PROMPTS, encoder=encoder, fits={name: fit})
    choice = choose(spec, INPUTS, ask)
    assert choice.value == ("s2",)
    assert choice.scores["s2"] == pytest.approx(1 / (1 + np.exp(-18 * np.tanh(7 / 2))), abs=1e-4)
    assert choice.scores["s1"] < 0.5


@pytest.mark.parametrize(
    "step", [{"reads": ["gain", "cosine"]}, {"prompt": None}, {"fit": None}, {"reads": ["words"]}]
)
def test_wrong_steps_are_named(step: Mapping[str, object]) -> None:
    """What is read stands in its order, and what it needs is there."""
    with pytest.raises(RecipeKeyError):
        spec_of(**step)
