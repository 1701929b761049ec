"""Replies end within their room: schemas have limits, and lower ones after a reply that was cut."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from panda.models.contract import Completion, GenerateParams, Usage
from panda.recipes.book import RecipeBook
from panda.recipes.plan import compile_call
from panda.recipes.recipe import Recipe
from panda.recipes.schema import longest_chars, lower_limits
from panda.store.layout import asset
from tests.recipes.books import Runner, schema_of, write_book
from tests.scripted_model import ScriptedModel, in_order

BOOK = RecipeBook([asset("recipes")], [asset("prompts")])
RECIPES = [recipe for key in BOOK.recipe_keys() if (recipe := BOOK.load_recipe(key)).output_schema]
CUT = Completion('{"why": "So, so, so', "length", Usage(1, 0, 100), 0.0)
SAID = '{"why": "So.", "reading": {"words": []}, "verdict": "yes"}'
READING = {
    "type": "object",
    "x-lenient": True,
    "properties": {"words": {"type": "array", "items": {"type": "string"}}},
}
SCHEMA = schema_of(why={"type": "string", "maxLength": 400}, reading=READING, verdict={"enum": ["yes", "no"]})


class Ids(Mapping[str, Sequence[str]]):
    """Sixteen ids, as long as those of pages are, for every choice."""

    def __getitem__(self, name: str) -> Sequence[str]:
        return [f"visit:visit_{n:012}" for n in range(16)]

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


def asked_of_writers(recipe: Recipe) -> dict[str, Any]:
    """The schema that a model that writes gets, as the executor asks it."""
    properties = recipe.output_schema["properties"]
    asked = compile_call(recipe, "writes").asked
    return {**recipe.output_schema, "properties": {n: properties[n] for n in asked}}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.key)
def test_the_longest_reply_fits_the_budget(recipe: Recipe) -> None:
    """
    Every text and list of a recipe has a limit, and lowered ones leave room for the longest reply, even if
    each of its characters takes a token.
    """
    schema = asked_of_writers(recipe)
    assert math.isfinite(longest_chars(schema, Ids(), open_chars=0))
    room = recipe.token_budget.output
    for most in (3 * room, room):
        assert longest_chars(lower_limits(schema, most, Ids()), Ids(), open_chars=0) <= most


def test_limits_are_kept_where_they_fit() -> None:
    """A schema whose longest reply fits is not touched; ids on offer and enums never are."""
    assert lower_limits(SCHEMA["properties"]["why"], 402) == SCHEMA["properties"]["why"]
    choice = {"type": "string", "x-options": "candidates"}
    schema = schema_of(page=choice, why={"type": "string", "maxLength": 400})
    lowered = lower_limits(schema, 100, {"page": ["visit:1"]})["properties"]
    assert lowered["page"] == choice
    assert 1 <= lowered["why"]["maxLength"] <= 80


def schemas(run: Runner) -> list[Any]:
    """The schemas of all calls."""
    assert isinstance(run.model, ScriptedModel)
    return [one.params.schema for one in run.model.asked if isinstance(one.params, GenerateParams)]


def test_a_cut_reply_is_asked_for_again_smaller(tmp_path: Path) -> None:
    """After a cut the limits are lowered and told, and what may be missing is left out; then once more."""
    model = ScriptedModel(in_order(CUT, CUT, SAID.replace('"reading": {"words": []}, ', "")), scores=False)
    run = Runner(write_book(tmp_path, output_schema=SCHEMA), model)
    assert run.run().attempts == 3
    first, second, third = schemas(run)
    assert first["properties"]["why"]["maxLength"] == 400
    assert 50 < second["properties"]["why"]["maxLength"] < 300
    assert "reading" not in second["properties"]
    assert third["properties"]["why"]["maxLength"] < 100
    again = model.asked[1].messages
    assert f'"maxLength": {second["properties"]["why"]["maxLength"]}' in again[0].content
    assert "it was cut after 100 tokens; write a shorter one" in again[1].content


def test_other_faults_lower_nothing(tmp_path: Path) -> None:
    """A reply that is refused for another reason may be as long as before."""
    run = Runner(write_book(tmp_path, output_schema=SCHEMA), ScriptedModel(in_order("x", SAID), scores=False))
    run.run()
    first, second = schemas(run)
    assert first == second
