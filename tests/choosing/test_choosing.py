"""Choices of models that do not write: the shipped fits, the tools that they choose, subsets of options."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from panda.choosing.ask import Ask, Memo
from panda.choosing.decision import Choice, ChoiceInputs, Option, Question
from panda.choosing.fits import FITS_DIR, Fit, load_fit, name_fit
from panda.choosing.scorers import choose
from panda.models.contract import Encoder
from panda.models.layers import Layers
from panda.models.models_file import load_models_file
from panda.recipes.book import RecipeBook
from panda.recipes.schema import choice_specs
from panda.store.layout import asset

BOOK = RecipeBook([asset("recipes")], [asset("prompts")])
TOOLS = ("memory.query", "memory.create", "doc.search", "content.generate", "web.fetch", "internet.research")
PLANNER = ("phase3_planner_chat", "tools")
COORDINATOR = ("phase4_coordinator_chat", "tool")


def asking(encoder: Encoder | None, prompts: Mapping[str, str], fits: Mapping[str, Fit]) -> Ask:
    """Return what choices ask, with nothing recorded and no language model."""
    return Ask(
        model=None,
        encoder=encoder,
        memo=Memo(),
        prompt=prompts.__getitem__,
        find_fit=fits.get,
        recorded=lambda *key: None,
        write=lambda scored: None,
        timeout_seconds=1.0,
    )


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layers]:
    """The models of the packaged models.yaml."""
    models = load_models_file(asset("models.yaml"))
    with Layers(models, cache_dir=tmp_path_factory.mktemp("cache"), environ={}) as opened:
        yield opened


def pick(
    layers: Layers, recipe: tuple[str, str], query: str, offered: Sequence[str], *, has_encoder: bool = True
) -> Choice:
    """Choose a tool as the shipped recipe does."""
    loaded = BOOK.load_recipe(f"pipeline/{recipe[0]}")
    specs = choice_specs(loaded.output_schema, path=loaded.path)
    spec = next(spec for spec in specs if spec.name == recipe[1])
    prompts = {"pipeline/phase4_tools.md": BOOK.load_prompt("pipeline/phase4_tools.md", where="")}
    fits = {path.name: load_fit(path) for path in (asset("recipes") / FITS_DIR).glob("tool-*.json")}
    ask = asking(layers.encoder() if has_encoder else None, prompts, fits)
    return choose(spec, ChoiceInputs(query, {recipe[1]: [Option(name, name) for name in offered]}), ask)


@pytest.mark.parametrize("recipe", [PLANNER, COORDINATOR])
@pytest.mark.parametrize(
    ("query", "offered", "tool"),
    [
        ("Write a birthday poem for my uncle.", TOOLS, "content.generate"),
        ("Has the page of the pool changed?", TOOLS, "web.fetch"),
        ("Remember that I am allergic to wasps.", TOOLS, "memory.create"),
        ("Find hotels in Kyoto on the web.", TOOLS, "internet.research"),
        ("Search my notes for the tent.", TOOLS, "doc.search"),
        ("Has the page of the pool changed?", ("doc.search", "memory.query"), "doc.search"),
    ],
)
def test_tools_are_chosen_by_the_head(
    layers: Layers, recipe: tuple[str, str], query: str, offered: Sequence[str], tool: str
) -> None:
    """Plans and calls name the tool that the query asks for, of those that are on offer."""
    choice = pick(layers, recipe, query, [*offered, "done"])
    best = choice.value[0] if isinstance(choice.value, tuple) else choice.value
    assert choice.scorer == "head"
    assert choice.fitted
    assert set(choice.scores) == set(offered)
    assert sum(choice.scores.values()) == pytest.approx(1)
    if len(offered) == len(TOOLS):
        assert best == tool


@pytest.mark.parametrize("recipe", [PLANNER, COORDINATOR])
def test_where_no_head_decides_examples_do(layers: Layers, recipe: tuple[str, str]) -> None:
    """Without an encoder, and of tools that the head does not know, the next step decides."""
    choice = pick(layers, recipe, "What is my shoe size?", ["memory.query", "doc.search"], has_encoder=False)
    assert choice.scorer == "cosine"
    assert choice.value in ("memory.query", ("memory.query",))
    assert pick(layers, PLANNER, "Run the tests.", ["test.run", "done"]).scorer == "cosine"
    assert pick(layers, PLANNER, "Run the tests.", []).value == ()


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
    choice = {"type": "array", "x-options": "spans", "x-many": many, "x-decide": [{"scorer": "prior"}]}
    schema = {"type": "object", "required": ["p"], "properties": {"p": choice}}
    (spec,) = choice_specs(schema, path=Path("r.yaml"))
    chosen = choose(spec, ChoiceInputs("What?", {"p": options}), asking(None, {}, {}))
    assert chosen.value == taken


def test_each_shipped_fit_is_asked_for(layers: Layers) -> None:
    """A layout, prompt or model that changes without its fits would make choices worse without a word."""
    asked = set()
    for key in BOOK.recipe_keys():
        recipe = BOOK.load_recipe(key)
        ask = asking(layers.encoder(), BOOK.prompts_of(key), {})
        for spec in choice_specs(recipe.output_schema, path=recipe.path):
            for step in spec.steps:
                if step.fit is not None:
                    asked.add(name_fit(Question(spec, step, (), ChoiceInputs("x", {})), ask))
    assert asked == {path.name for path in (asset("recipes") / FITS_DIR).glob("*.json")}
