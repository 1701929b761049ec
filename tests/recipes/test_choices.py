"""Choices: each scorer with scores that are made up, decision lists, subsets."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from panda.errors import RecipeKeyError
from panda.models.contract import ScoreCase
from panda.recipes.choices import Choice, ChoiceInputs, Option, ScoreFunction, choose
from panda.recipes.prompt_sections import prompt_sections
from panda.recipes.schemas import choice_specs
from tests.recipes.books import CLASSES, EVIDENCE, schema_of

PROMPTS = {"evidence.md": EVIDENCE, "classes.md": CLASSES}
SPANS = (Option("s1", "The tent costs $90.", ("visit:a",), 0.5), Option("s2", "Bees hum.", ("turn:1",), 0.1))


def by_words(scores: Mapping[str, float], other: float = -10.0) -> ScoreFunction:
    """Scores a case by the first of these words in it; one token each."""

    def score(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, int]]:
        texts = [prefix + case.context + case.continuation for case in cases]
        return [(next((scores[w] for w in scores if w in text), other), 1) for text in texts]

    return score


def forbidden(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, int]]:
    """The score function of a test in which nothing may be scored."""
    raise AssertionError("a score was asked for")


def decide(
    schema: Mapping[str, object],
    score: ScoreFunction,
    options: Mapping[str, Sequence[Option]] | None = None,
    pack: Callable[[], str] = lambda: "PACK",
) -> Choice:
    """Make the one choice of a schema; the query is "What is the price?"."""
    (spec,) = choice_specs(schema_of(p=schema), path=Path("r.yaml"))
    return choose(spec, ChoiceInputs("What is the price?", options or {}, pack, PROMPTS.__getitem__), score)


def steps(*given: Mapping[str, object], **schema: object) -> dict[str, object]:
    """A schema with a decision list."""
    return {**schema, "x-decide": list(given)}


LIKELIHOOD = {"scorer": "likelihood", "prompt": "evidence.md"}
CHANNEL = {"scorer": "channel", "prompt": "classes.md"}


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


def test_channel() -> None:
    """channel takes the class after whose examples the query is likeliest."""
    choice = decide(steps(CHANNEL, enum=["yes", "no"]), by_words({"Do it": -9.0, "Stop": -5.0}))
    assert (choice.value, choice.scorer) == ("no", "channel")
    assert choice.scores["no"] == pytest.approx(1 / (1 + math.exp(-4)))


def test_channel_sees_the_examples() -> None:
    """channel puts each example on a line of its own and asks for the query after them."""
    asked: list[tuple[str, ScoreCase]] = []

    def score(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, int]]:
        asked.extend((prefix, case) for case in cases)
        return [(0.0, 1)]

    decide(steps(CHANNEL, enum=["yes", "no"]), score)
    case = ScoreCase("Message:", " What is the price?\n")
    assert asked == [("Message: Do it.\nMessage: Go on.\n", case), ("Message: Stop.\n", case)]


def test_likelihood() -> None:
    """likelihood takes the evidence that makes the query likelier than foreign texts do, per token."""
    choice = decide(
        steps(LIKELIHOOD, **{"type": "string", "x-options": "spans"}),
        by_words({"tent": -4.0, "Bees live": -9.0, "cello": -7.0}),
        {"p": SPANS},
    )
    assert choice.value == "s1"
    assert choice.scores == {"s1": 4.0, "s2": -2.0}
    assert choice.confidence == pytest.approx(1 / (1 + math.exp(-4)), abs=1e-4)


def test_likelihood_with_prior() -> None:
    """The weight of the prior is added on top."""
    step = {**LIKELIHOOD, "prior": 2.0}
    choice = decide(steps(step, **{"type": "string", "x-options": "spans"}), by_words({}), {"p": SPANS})
    assert choice.scores == {"s1": 1.0, "s2": 0.2}


def test_likelihood_in_reverse() -> None:
    """With reverse, an option also counts by how much likelier the query makes it than another question."""
    step = {**LIKELIHOOD, "reverse": 0.5}
    scores = {"Question: What is the price?\nEvidence: The tent": -2.0}
    choice = decide(steps(step, **{"type": "string", "x-options": "spans"}), by_words(scores), {"p": SPANS})
    assert choice.scores == {"s1": 4.0, "s2": 0.0}


def test_only_the_best_are_scored_in_reverse() -> None:
    """Eight options are scored in reverse; the others count as the worst of them."""
    asked: set[str] = set()
    options = [Option(f"s{n}", f"Note {n:02}.") for n in range(12)]

    def score(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, int]]:
        asked.update(case.continuation.strip() for case in cases if "Evidence:" in case.context[-9:])
        gains = {option.text: -1.0 - n for n, option in enumerate(options)}
        return [(next((gains[t] for t in gains if t in case.context), -20.0), 1) for case in cases]

    step = {**LIKELIHOOD, "reverse": 1.0}
    choice = decide(steps(step, **{"type": "string", "x-options": "spans"}), score, {"p": options})
    assert asked == {option.text for option in options[:8]}
    assert choice.scores == {f"s{n}": 19.0 - n for n in range(12)}


def test_prior() -> None:
    """prior asks the model nothing and knows no confidence."""
    choice = decide(
        steps({"scorer": "prior"}, **{"type": "string", "x-options": "spans"}), forbidden, {"p": SPANS}
    )
    assert (choice.value, choice.confidence) == ("s1", None)


def test_first_step_over_its_bar_decides() -> None:
    """A step that reaches its bar chooses its value; the steps after it are not scored."""
    schema = steps(
        {**LIKELIHOOD, "choose": "yes", "over": "evidence", "at_least": 1.0},
        {"choose": "no"},
        enum=["yes", "no"],
    )
    near = decide(schema, by_words({"tent": -8.0}), {"evidence": SPANS})
    far = decide(schema, by_words({"tent": -9.5}), {"evidence": SPANS})
    assert (near.value, near.scorer, near.scores["s1"]) == ("yes", "likelihood", 2.0)
    assert (far.value, far.confidence) == ("no", None)


def test_step_without_options_is_passed_over() -> None:
    """A step that has nothing to look at does not decide."""
    schema = steps(
        {**LIKELIHOOD, "choose": "yes", "over": "evidence", "at_least": -99.0},
        {"choose": "no"},
        enum=["yes", "no"],
    )
    assert decide(schema, forbidden, {"evidence": ()}).value == "no"


def test_class_of_a_channel() -> None:
    """A step with a class decides by the probability of that class among all of the file."""
    step = {**CHANNEL, "choose": "A", "class": "no", "at_least": 0.9}
    schema = steps(step, {"choose": "B"}, enum=["A", "B"])
    sure = decide(schema, by_words({"Do it": -9.0, "Stop": -5.0}))
    unsure = decide(schema, by_words({"Do it": -5.5, "Stop": -5.0}))
    assert (sure.value, unsure.value) == ("A", "B")
    assert sure.confidence == pytest.approx(1 / (1 + math.exp(-4)), abs=1e-4)


def test_nothing_to_choose_from() -> None:
    """Without options a single choice is None and a subset is empty."""
    many = {"max": 2, "at_least": 0.0, "within": 9.0}
    one = {"type": "string", "x-options": "spans", "x-decide": [LIKELIHOOD]}
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
        prompt_sections("just text", "tests/x.md")
    assert caught.value.where == "prompts/tests/x.md"
