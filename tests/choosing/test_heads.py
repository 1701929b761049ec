"""Heads: what they read of a message, and what they decide with and without an encoder."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from panda.choosing.ask import Ask, Pass
from panda.choosing.decision import Choice, ChoiceInputs, ChoiceSpec, Option, Question
from panda.choosing.fits import FITS_DIR, Fit, load_fit, name_fit, read_values
from panda.choosing.scorers import choose
from panda.models.contract import Encoder
from panda.models.layers import Layers
from panda.models.models_file import parse_models_file
from panda.recipes.book import RecipeBook
from panda.recipes.schema import choice_specs
from panda.store.layout import asset
from tests.choosing.asks import asking, forbidden, recorded_of
from tests.recipes.books import CLASSES, schema_of
from tests.scripted_model import ScriptedEncoder

HEAD = {"scorer": "head", "fit": "kind", "reads": ["query", "antecedents"]}
LINES = {"scorer": "head", "fit": "route", "reads": ["lines"], "over": "evidence"}
EXAMPLES = {"scorer": "cosine", "prompt": "classes.md"}
HISTORY = {"turn_summaries.md": "Turn 1: A tent for two\nTurn 2: Bees"}


def spec_of(*steps: Mapping[str, object]) -> ChoiceSpec:
    """A choice of yes or no with these steps."""
    (spec,) = choice_specs(schema_of(p={"enum": ["yes", "no"], "x-decide": list(steps)}), path=Path("r.yaml"))
    return spec


def read(step: Mapping[str, object], inputs: ChoiceInputs, ask: Ask) -> list[float]:
    """What a step reads."""
    spec = spec_of(step, {"choose": "no"})
    options = inputs.options.get("evidence", ())
    return [float(value) for value in read_values(Question(spec, spec.steps[0], options, inputs), ask)]


def decide(encoder: Encoder | None, made: bool = True, **known: Any) -> Choice:
    """Choose between yes and no; the fit says yes when there is history."""
    spec = spec_of(HEAD, EXAMPLES)
    inputs = ChoiceInputs("And the tent?", {}, lambda: "PACK", HISTORY)
    ask = asking(forbidden, {"classes.md": CLASSES}, encoder=encoder, **known)
    fits = {}
    if encoder is not None and made:
        question = Question(spec, spec.steps[0], (), inputs)
        values = read_values(question, ask)
        weights = np.zeros((2, len(values)), np.float32)
        weights[1, -1] = 2.0 / values[-1]
        fits = {name_fit(question, ask): Fit(("no", "yes"), weights, np.zeros(2, np.float32), 1.0, "d", 4)}
    ask = asking(forbidden, {"classes.md": CLASSES}, encoder=encoder, fits=fits, **known)
    return choose(spec, inputs, ask)


def test_a_head_decides() -> None:
    """The likeliest class of the fit is taken, with its probability as confidence."""
    choice = decide(ScriptedEncoder())
    assert (choice.value, choice.scorer, choice.fitted) == ("yes", "head", True)
    assert choice.confidence == round(1 / (1 + np.exp(-2.0)), 4)


def test_without_an_encoder_the_next_step_decides() -> None:
    """A head is passed over where there is no encoder, or no fit for it."""
    for choice in (decide(None), decide(ScriptedEncoder(), made=False)):
        assert (choice.scorer, choice.fitted) == ("cosine", False)


def test_what_is_recorded_is_not_read_again() -> None:
    """The written probabilities answer for the encoder."""
    written: list[Pass] = []
    first = decide(ScriptedEncoder(), written=written)
    again: list[Pass] = []
    assert decide(ScriptedEncoder(), recorded=recorded_of(written[-1]), written=again) == first
    assert again[-1].known == [True, True]


def test_antecedents_are_what_earlier_turns_said() -> None:
    """Of history are read the mean vector, the highest cosine, and whether there is any; no turn numbers."""
    step = {**HEAD, "reads": ["antecedents"]}
    ask = asking(forbidden, {}, encoder=ScriptedEncoder())
    told = read(step, ChoiceInputs("a tent for two", {}, str, HISTORY), ask)
    assert (told[-9], told[-3], told[-2]) == (0.0, 9.0, 3.0)
    about, again = ask.vectors(["A tent for two", "Bees"])
    assert told[:-81] == [float(value) for value in 5.0 * (about + again) / 2]
    alone = read(step, ChoiceInputs("a tent for two", {}, str), ask)
    assert (alone[-9], {*alone[:-81], *alone[-8:]}) == (3.0, {0.0})


def test_lines_count_by_the_nearest_and_by_words() -> None:
    """Of lines are read the best cosine, its lead, and the content words in common; zeros without any."""
    ask = asking(forbidden, {}, encoder=ScriptedEncoder())
    lines = [Option("e1", "the tent", title="Camping"), Option("e2", "bees")]
    found = read(LINES, ChoiceInputs("camping the tent", {"evidence": lines}, str), ask)
    assert found[:2] == [1.0, 5.0]
    assert found[3] == 2.0
    assert read(LINES, ChoiceInputs("camping the tent", {}, str), ask) == [0.0] * 6


TOOLS = ("memory.query", "memory.create", "doc.search", "content.generate", "web.fetch", "internet.research")
PLANNER = ("phase3_planner_chat", "tools")
COORDINATOR = ("phase4_coordinator_chat", "tool")


def pick(encoder: Encoder | None, of: tuple[str, str], query: str, offered: Sequence[str]) -> Choice:
    """Choose a tool as the shipped recipe does; examples speak for memory.query."""
    recipe, name = of
    book = RecipeBook([asset("recipes")], [asset("prompts")])
    loaded = book.load_recipe(f"pipeline/{recipe}")
    spec = next(spec for spec in choice_specs(loaded.output_schema, path=loaded.path) if spec.name == name)
    prompts = {"pipeline/phase4_tools.md": book.load_prompt("pipeline/phase4_tools.md", where="")}
    fits = {path.name: load_fit(path) for path in (asset("recipes") / FITS_DIR).glob("tool-*.json")}
    ask = asking(forbidden, prompts, encoder=encoder, fits=fits)
    return choose(spec, ChoiceInputs(query, {name: [Option(one, one) for one in offered]}, str), ask)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encoder]:
    """The packaged encoder."""
    path = tmp_path_factory.mktemp("encoder")
    models = parse_models_file("models: {}\nlayers: {}\n", path=path / "models.yaml")
    with Layers(models, cache_dir=path, environ={}) as layers:
        found = layers.encoder()
        assert found is not None
        yield found


@pytest.mark.parametrize("of", [PLANNER, COORDINATOR])
@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("Write a birthday poem for my uncle.", "content.generate"),
        ("Has the page of the pool changed?", "web.fetch"),
        ("Remember that I am allergic to wasps.", "memory.create"),
        ("Find hotels in Kyoto on the web.", "internet.research"),
        ("Search my notes for the tent.", "doc.search"),
    ],
)
def test_tools_are_chosen_by_the_head(encoder: Encoder, of: tuple[str, str], query: str, tool: str) -> None:
    """Plans and calls name the tool that the query asks for; that the loop is over the head cannot say."""
    choice = pick(encoder, of, query, [*TOOLS, "done"])
    best = choice.value[0] if isinstance(choice.value, tuple) else choice.value
    assert (best, choice.scorer, choice.fitted) == (tool, "head", True)
    assert set(choice.scores) == set(TOOLS)


@pytest.mark.parametrize("of", [PLANNER, COORDINATOR])
def test_a_class_that_is_not_on_offer_is_never_taken(encoder: Encoder, of: tuple[str, str]) -> None:
    """The probability of a tool that cannot be used goes to those that can."""
    choice = pick(encoder, of, "Has the page of the pool changed?", ["doc.search", "memory.query", "done"])
    assert set(choice.scores) == {"doc.search", "memory.query"}
    assert sum(choice.scores.values()) == pytest.approx(1)
    assert choice.scorer == "head"


def test_where_the_head_knows_nothing_on_offer_the_next_step_decides(encoder: Encoder) -> None:
    """It is passed over, as where nothing is on offer at all."""
    assert pick(encoder, PLANNER, "Run the tests.", ["test.run", "done"]).scorer == "cosine"
    assert pick(encoder, PLANNER, "Run the tests.", []).value == ()


@pytest.mark.parametrize("of", [PLANNER, COORDINATOR])
def test_tools_without_an_encoder(of: tuple[str, str]) -> None:
    """Examples decide, as before, of the tools on offer."""
    choice = pick(None, of, "What is my shoe size?", ["memory.query", "doc.search"])
    assert choice.scorer == "cosine"
    assert choice.value in ("memory.query", ("memory.query",))
