"""Fits: heads on hidden states, found by what they were made for, and what they read."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from panda.errors import FileFormatError, RecipeKeyError
from panda.models.contract import ScoreCase
from panda.models.scripted import Asked, ScriptedModel
from panda.recipes.choices import Choice, ChoiceInputs, Option, choose
from panda.recipes.fit_cases import build_texts
from panda.recipes.fits import ANY, RANK, Fit, fit_name, fit_to_json, load_fit
from panda.recipes.pack import Request
from panda.recipes.prompt_sections import prompt_sections
from panda.recipes.rivals import rival_values
from panda.recipes.schemas import ChoiceSpec, Step, choice_specs
from tests.recipes.books import CLASSES, EVIDENCE, ListJournal, Runner, schema_of, write_book

FIT = """# shots
Message: Stop.
Kind: no

# case
Earlier: {{turn_summaries}}
Message: {{query}}
Kind:

# talk
Message: Go on.

# before
Earlier: {{turn_summaries}}
Message:

# instead
- the weather
"""
EACH = """# shots
Note: a

# case
Note: {{option}}
"""
PROMPTS = {"fit.md": FIT, "each.md": EACH, "classes.md": CLASSES}
HEAD = Fit(("no", "yes"), np.array([[0.0, 0.0], [1.0, 2.0]], np.float32), np.zeros(2, np.float32), 2.0, "", 4)


def spec_of(*steps: Mapping[str, object], **schema: object) -> ChoiceSpec:
    """The one choice of a schema with these steps."""
    (spec,) = choice_specs(schema_of(p={**schema, "x-decide": list(steps)}), path=Path("r.yaml"))
    return spec


VALUES = spec_of({"scorer": "fit", "prompt": "fit.md"}, {"scorer": "label"}, enum=["yes", "no"])
SPANS = {"type": "array", "x-options": "spans", "x-many": {"max": 2, "at_least": 9, "within": 9}}
SUBSET = spec_of(
    {"scorer": "fit", "prompt": "each.md", "many": {"max": 2, "at_least": 0.5, "within": 1}},
    {"scorer": "prior"},
    **SPANS,
)


def inputs() -> ChoiceInputs:
    """Of a choice among values or spans."""
    options = {"p": [Option("s1", "The tent.", prior=9.5), Option("s2", "Bees.")]}
    return ChoiceInputs(
        "Go?", options, lambda: "PACK", PROMPTS.__getitem__, {"turn_summaries.md": "Turn 1: a"}
    )


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


def test_name_follows_the_words() -> None:
    """Another prompt or model makes another fit; nothing else does."""
    name = fit_name("a/fit.md", FIT, "0" * 64)
    assert name.startswith("fit-000000000000-")
    assert fit_name("b/fit.md", FIT, "0" * 64) == name
    assert len({name, fit_name("a/fit.md", FIT + ".", "0" * 64), fit_name("a/fit.md", FIT, "1" * 64)}) == 3


def test_rivals_share_one_probability() -> None:
    """The best of options has the probability that any answers, the others the share their rank leaves."""
    head = Fit((RANK, ANY), np.array([[2.0, 0], [0, 1.0]], np.float32), np.zeros(2, np.float32), 1.0, "", 4)
    low, high = np.exp(head.rival_logprobs([(0.0, 9.0), (1.0, 0.5)]))
    assert high == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert low == pytest.approx(high * np.exp(-2.0))


def test_values_of_rivals() -> None:
    """An option is read alone: how much likelier it makes the query, and, once the prompt file has worked
    answers, how probably a reply takes something from it that the query lacks."""

    def score(prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, ...]]:
        if cases[0].any_of:
            asked.extend(cases)
            return [(-2.0,) if "tent" in case.continuation else (-90.0,) for case in cases]
        return [(-1.0 if "tent" in case.context + case.continuation else -3.0, -9.0) for case in cases]

    asked: list[ScoreCase] = []
    options = [Option("s1", "A tent, this bag."), Option("s2", "Bees.")]
    sections = prompt_sections(EVIDENCE, "e.md")
    first, second = rival_values(options, sections, "Which bag?", score)
    assert first[:2] == pytest.approx((2.0, np.tanh(2.0)))
    assert (second[0], len(first), len(second)) == (0.0, 5, 5)
    assert rival_values([], sections, "Which bag?", score) == []
    assert asked == []
    answered = rival_values(options, {**sections, "answer": "Evidence: x"}, "Which bag?", score)
    assert [values[:5] for values in answered] == [first, second]
    assert [values[5:] for values in answered] == [(-2.0, -12.0), (-12.0, -12.0)]
    assert asked[0].continuation == " A tent, this"
    assert asked[0].context == "Evidence: A tent, this bag.\nQuestion: Which bag?\nAnswer:"


def test_texts_of_values() -> None:
    """A choice among values shows one case, and what precedes the query beside what could instead."""
    texts = build_texts(VALUES, VALUES.steps[0], inputs())
    assert texts.shots.endswith("Kind: no\n\n")
    assert [text.case for text in texts.texts] == ["Earlier: Turn 1: a\nMessage: Go?\nKind:"]
    assert texts.texts[0].before == "Earlier: Turn 1: a\nMessage:"
    assert texts.instead == ("Earlier: the weather\nMessage:",)


def test_texts_of_options() -> None:
    """A choice among options shows one case each."""
    texts = build_texts(SUBSET, SUBSET.steps[0], inputs())
    assert [text.case for text in texts.texts] == ["Note: The tent.", "Note: Bees."]


def decide(spec: ChoiceSpec, probabilities: Mapping[str, float]) -> Choice:
    """Choose with a fit that gives these probabilities; none means that there is no fit."""

    def fit(spec: ChoiceSpec, step: Step, inputs: ChoiceInputs) -> Mapping[str, float]:
        return probabilities

    return choose(spec, inputs(), lambda prefix, cases: [(-1.0, 1), (-3.0, 1)], fit)


def test_fit_decides() -> None:
    """With a fit its likeliest value is taken, with that probability as confidence."""
    assert decide(VALUES, {"no": 0.8, "yes": 0.2}) == Choice(
        "p", "no", {"no": 0.8, "yes": 0.2}, 0.8, "fit", True
    )


def test_without_fit_the_next_step_decides() -> None:
    """Without a fit the step is passed over, and the choice says that it is not fitted."""
    made = decide(VALUES, {})
    assert (made.value, made.scorer, made.fitted) == ("yes", "label", False)


def test_own_bars() -> None:
    """A fit step's bars count when it decides, the property's own when another does."""
    assert decide(SUBSET, {"s1": 0.4, "s2": 0.6}).value == ("s2",)
    assert decide(SUBSET, {}).value == ("s1",)


def test_a_stand_in_waits_for_a_missing_fit() -> None:
    """A step that stands in for a fit decides without it, and never against it."""
    steps = (
        {"choose": "yes", "scorer": "fit", "prompt": "fit.md", "class": "yes", "at_least": 0.9},
        {"choose": "yes", "scorer": "label", "at_least": 0.5, "unfitted": True},
        {"choose": "no"},
    )
    assert decide(spec_of(*steps, enum=["yes", "no"]), {"no": 0.8, "yes": 0.2}).value == "no"
    assert decide(spec_of(*steps, enum=["yes", "no"]), {}).value == "yes"


def test_confidence_of_a_likelihood(tmp_path: Path) -> None:
    """A choice by likelihood is as sure as a fit to labelled cases says of its best score; without one it
    says that it is not fitted."""
    many = {"max": 2, "at_least": 0.0, "within": 9.0}
    step = {"scorer": "likelihood", "prompt": "tests/evidence.md"}
    wanted = schema_of(verdict={"type": "array", "x-options": "spans", "x-many": many, "x-decide": [step]})
    values = {"output_schema": wanted, "templates": None}

    def answer(asked: Asked) -> list[float]:
        return [-3.0 if "tent" in case.context else -6.0 for case in asked.cases]

    def decided() -> Choice:
        return runner().executor.decide("tests/judge", "verdict", request, ListJournal())

    def runner() -> Runner:
        return Runner(write_book(tmp_path, **values), ScriptedModel(answer, writes=False))

    request = Request("Which bag?", [], {"verdict": [Option("s1", "A tent.")]})
    plain = decided()
    assert (plain.scores, plain.fitted) == ({"s1": 1.5}, False)
    scorer, spec = runner().executor.scorer("tests/judge", "verdict", request, ListJournal())
    folder = tmp_path / "recipes" / "fits"
    folder.mkdir()
    head = Fit(
        ("no", "yes"), np.array([[0.0], [2.0]], np.float32), np.array([0.0, -1.0], np.float32), 1.0, "", 4
    )
    (folder / scorer.confidence_name(spec)).write_text(json.dumps(fit_to_json(head, {})), encoding="utf-8")
    made = decided()
    assert (made.value, made.fitted) == (("s1",), True)
    assert made.confidence == pytest.approx(1 / (1 + np.exp(-2.0)), abs=1e-4)


def test_a_fit_is_never_last() -> None:
    """A decision list that could end with a missing fit is refused."""
    with pytest.raises(RecipeKeyError, match="the last step is a fit"):
        spec_of({"scorer": "fit", "prompt": "fit.md"}, enum=["yes", "no"])
