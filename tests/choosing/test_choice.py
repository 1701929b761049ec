"""Choices: each scorer with scores that are made up, decision lists, subsets."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from panda.choosing.ask import Pass, read_examples
from panda.choosing.decision import Choice, ChoiceInputs, Option
from panda.choosing.scorers import choose
from panda.errors import RecipeKeyError
from panda.models.contract import Encoder, ScoreCase
from panda.recipes.schema import choice_specs
from tests.choosing.asks import ScoreFunction, asking, forbidden, recorded_of
from tests.recipes.books import CLASSES, schema_of
from tests.scripted_model import ScriptedEncoder

PROMPTS = {"classes.md": CLASSES}
SPANS = (Option("s1", "The tent costs $90.", ("visit:a",), 0.5), Option("s2", "Bees hum.", ("turn:1",), 0.1))


def decide(
    schema: Mapping[str, object],
    score: ScoreFunction,
    options: Mapping[str, Sequence[Option]] | None = None,
    pack: Callable[[], str] = lambda: "PACK",
    encoder: Encoder | None = None,
    prompts: Mapping[str, str] = PROMPTS,
    **known: Any,
) -> Choice:
    """Make the one choice of a schema; the query is "What is the price?"."""
    (spec,) = choice_specs(schema_of(p=schema), path=Path("r.yaml"))
    inputs = ChoiceInputs("What is the price?", options or {}, pack)
    return choose(spec, inputs, asking(score, prompts, encoder=encoder, **known))


def steps(*given: Mapping[str, object], **schema: object) -> dict[str, object]:
    """A schema with a decision list."""
    return {**schema, "x-decide": list(given)}


COSINE = {"scorer": "cosine"}
CLASSES_STEP = {"scorer": "cosine", "prompt": "classes.md"}


def test_label() -> None:
    """label asks for each value after the whole prompt and the cue, and its scores are probabilities."""
    asked: list[tuple[str, ScoreCase]] = []

    def score(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, int]]:
        asked.extend((prefix, case) for case in cases)
        return [(-1.0, 1), (-3.0, 1)]

    choice = decide(steps({"cue": "So:"}, type="boolean"), score)
    assert asked == [("PACK", ScoreCase("So:", " True")), ("PACK", ScoreCase("So:", " False"))]
    assert choice.value is True
    assert choice.confidence == pytest.approx(1 / (1 + math.exp(-2)), abs=1e-4)
    assert sum(choice.scores.values()) == pytest.approx(1)


def test_cosine_with_prior() -> None:
    """The weight of the prior is added to the cosine, and without an encoder to the share of words."""
    schema = steps({"scorer": "cosine", "prior": 0.5}, **{"type": "string", "x-options": "spans"})
    plain = steps({"scorer": "cosine"}, **{"type": "string", "x-options": "spans"})
    both = decide(schema, forbidden, {"p": SPANS}, encoder=ScriptedEncoder()).scores
    near = decide(plain, forbidden, {"p": SPANS}, encoder=ScriptedEncoder()).scores
    assert both == pytest.approx({one.id: near[one.id] + 0.5 * one.prior for one in SPANS})
    assert decide(plain, forbidden, {"p": SPANS}).scores == {"s1": 0.0, "s2": 0.0}
    assert decide(schema, forbidden, {"p": SPANS}).scores == {one.id: 0.5 * one.prior for one in SPANS}


def test_cosine_of_options() -> None:
    """cosine takes the option that is nearest in meaning, of which it reads the meaning if one is given."""
    options = (Option("s1", "Bees hum."), Option("s2", "Ninety", title="The tent. price"))
    schema = steps(COSINE, **{"type": "string", "x-options": "spans"})
    choice = decide(schema, forbidden, {"p": options}, encoder=ScriptedEncoder())
    assert choice.value == "s2"
    assert choice.scores["s2"] > 0.3 > choice.scores["s1"]


def test_cosine_without_an_encoder() -> None:
    """Without an encoder the same step goes by the words in common, for classes with their examples."""
    schema = steps(COSINE, **{"type": "string", "x-options": "spans"})
    priced = (SPANS[1], Option("s3", "The price is $90."))
    assert decide(schema, forbidden, {"p": priced}).scores == {"s2": 0.0, "s3": 1.0}
    classes = steps(CLASSES_STEP, enum=["yes", "no"])
    prompts = {"classes.md": "# yes\n- Do it.\n\n# no\n- Name a price.\n"}
    assert decide(classes, forbidden, prompts=prompts).value == "no"


def test_a_recorded_cosine_is_not_computed_again() -> None:
    """What was written down of a cosine answers the same question; the encoder is not asked."""
    encoder, written = ScriptedEncoder(), list[Pass]()
    schema = steps(COSINE, **{"type": "string", "x-options": "spans"})
    first = decide(schema, forbidden, {"p": SPANS}, encoder=encoder, written=written)
    one = written[0]
    assert (one.by, one.known, len(encoder.asked)) == (encoder.info, [False, False], 3)
    again = decide(schema, forbidden, {"p": SPANS}, encoder=encoder, recorded=recorded_of(one))
    assert again.scores == first.scores
    assert len(encoder.asked) == 3


def test_cosine_of_classes() -> None:
    """With a prompt file cosine compares the query with the examples of each class."""
    classes = steps(CLASSES_STEP, enum=["yes", "no"])
    choice = decide(classes, forbidden, encoder=ScriptedEncoder({"price": "stop"}))
    assert choice.value == "no"
    assert choice.confidence is not None


def test_prior() -> None:
    """prior asks the model nothing and knows no confidence."""
    choice = decide(
        steps({"scorer": "prior"}, **{"type": "string", "x-options": "spans"}), forbidden, {"p": SPANS}
    )
    assert (choice.value, choice.confidence) == ("s1", None)


def test_first_step_over_its_bar_decides() -> None:
    """A step that reaches its bar chooses its value; the steps after it are not scored."""
    schema = steps(
        {**COSINE, "choose": "yes", "over": "evidence", "at_least": 0.5},
        {"choose": "no"},
        enum=["yes", "no"],
    )
    near = decide(schema, forbidden, {"evidence": [Option("s1", "The price is $90.")]})
    far = decide(schema, forbidden, {"evidence": SPANS})
    assert (near.value, near.scorer, near.scores["s1"]) == ("yes", "cosine", 1.0)
    assert (far.value, far.confidence) == ("no", None)


def test_step_without_options_is_passed_over() -> None:
    """A step that has nothing to look at does not decide."""
    schema = steps(
        {**COSINE, "choose": "yes", "over": "evidence", "at_least": -99.0},
        {"choose": "no"},
        enum=["yes", "no"],
    )
    assert decide(schema, forbidden, {"evidence": ()}).value == "no"


def test_class_of_examples() -> None:
    """A step with a class decides by the probability of that class among all of the file."""
    schema = steps(
        {**CLASSES_STEP, "choose": "A", "class": "no", "at_least": 0.9}, {"choose": "B"}, enum=["A", "B"]
    )
    sure = decide(schema, forbidden, encoder=ScriptedEncoder({"price": "stop"}))
    unsure = decide(schema, forbidden, encoder=ScriptedEncoder())
    assert (sure.value, unsure.value) == ("A", "B")
    assert sure.confidence == round(sure.scores["no"], 4)


def test_nothing_to_choose_from() -> None:
    """Without options a single choice is None and a subset is empty."""
    many = {"max": 2, "at_least": 0.0, "within": 9.0}
    one = {"type": "string", "x-options": "spans", "x-decide": [COSINE]}
    assert decide(one, forbidden).value is None
    assert decide({**one, "type": "array", "x-many": many}, forbidden).value == ()


@pytest.mark.parametrize(
    ("many", "taken"),
    [
        ({"max": 9, "at_least": -9.0, "within": 99.0}, ("b", "a", "c")),
        ({"max": 2, "at_least": -9.0, "within": 99.0}, ("b", "a")),
        ({"max": 9, "at_least": 0.3, "within": 99.0}, ("b", "a")),
        ({"max": 9, "at_least": -9.0, "within": 0.35}, ("b", "a")),
        ({"max": 9, "at_least": -9.0, "within": 0.1}, ("b",)),
        ({"max": 9, "at_least": 2.0, "within": 99.0}, ()),
        ({"max": 9, "at_least": 0.8, "within": 9.0, "share": 0.5}, ("b", "a")),
        ({"max": 9, "at_least": 0.95, "within": 9.0, "share": 0.1}, ()),
    ],
)
def test_subset(many: dict[str, float], taken: tuple[str, ...]) -> None:
    """A subset is what reaches the bar and is near enough to the best, best first, up to its most."""
    options = [Option("a", "a", (), 0.6), Option("b", "b", (), 0.9), Option("c", "c", (), 0.2)]
    schema = {"type": "array", "x-options": "spans", "x-many": many, "x-decide": [{"scorer": "prior"}]}
    assert decide(schema, forbidden, {"p": options}).value == taken


def test_prompt_without_sections() -> None:
    """A scorer's prompt without headings is an error that names it."""
    with pytest.raises(RecipeKeyError, match="sections") as caught:
        read_examples("just text", "tests/x.md")
    assert caught.value.where == "prompts/tests/x.md"
