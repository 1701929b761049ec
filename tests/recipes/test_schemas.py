"""What a schema of a recipe becomes for a model that writes, and that its longest reply ends in its room."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from panda.recipes.book import RecipeBook
from panda.recipes.plan import compile_call
from panda.recipes.recipe import Recipe
from panda.recipes.schema import longest_chars, lower_limits, plain_schema
from panda.store.layout import asset

TEXT = {"type": "string"}
ONE_OF = {"type": "string", "x-options": "candidates"}
SOME_OF = {"type": "array", "x-options": "spans", "x-many": {"max": 2, "at_least": 0, "within": 1}}
BOOK = RecipeBook([asset("recipes")], [asset("prompts")])
RECIPES = [recipe for key in BOOK.recipe_keys() if (recipe := BOOK.load_recipe(key)).output_schema]


@pytest.mark.parametrize(
    ("asked", "plain"),
    [
        (TEXT, TEXT),
        (ONE_OF, {"type": "string", "enum": ["a"]}),
        (SOME_OF, {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["a"]}}),
        (
            {"type": "array", "minItems": 1, "x-options": "none"},
            {"type": "array", "minItems": 0, "maxItems": 0, "items": TEXT},
        ),
        (
            {"items": {"properties": {"ids": {"type": "array", "x-options": "candidates", "x-from": "p"}}}},
            {"items": {"properties": {"ids": {"type": "array", "items": {"type": "string", "enum": ["a"]}}}}},
        ),
        ({"properties": {"x-ray": TEXT}}, {"properties": {"x-ray": TEXT}}),
    ],
)
def test_options_become_enums(asked: dict[str, Any], plain: dict[str, Any]) -> None:
    """Options of the call become enums; no key of panda's own is left, but a property may be called so."""
    name = "empty" if asked.get("x-options") == "none" else "p"
    schema = {"type": "object", "required": [name, "other"], "properties": {name: asked, "other": TEXT}}
    options = {"p": ["a"], "empty": []}
    assert plain_schema(schema, only=[name], options=options) == {
        "type": "object",
        "required": [name],
        "properties": {name: plain},
    }


class Ids(Mapping[str, Sequence[str]]):
    """Sixteen ids, as long as those of pages are, for every choice."""

    def __getitem__(self, name: str) -> Sequence[str]:
        return [f"visit:visit_{n:012}" for n in range(16)]

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.key)
def test_the_longest_reply_fits_the_budget(recipe: Recipe) -> None:
    """
    Every text and list of a recipe has a limit, and lowered ones leave room for the longest reply, even if
    each of its characters takes a token.
    """
    properties = recipe.output_schema["properties"]
    asked = compile_call(recipe, "writes").asked
    schema = {**recipe.output_schema, "properties": {name: properties[name] for name in asked}}
    assert math.isfinite(longest_chars(schema, Ids(), open_chars=0))
    room = recipe.token_budget.output
    for most in (3 * room, room):
        assert longest_chars(lower_limits(schema, most, Ids()), Ids(), open_chars=0) <= most


def test_limits_are_kept_where_they_fit() -> None:
    """A schema whose longest reply fits is not touched; ids on offer and enums never are."""
    why = {"type": "string", "maxLength": 400}
    assert lower_limits(why, 402) == why
    schema = {"type": "object", "required": ["page", "why"], "properties": {"page": ONE_OF, "why": why}}
    lowered = lower_limits(schema, 100, {"page": ["visit:1"]})["properties"]
    assert lowered["page"] == ONE_OF
    assert 1 <= lowered["why"]["maxLength"] <= 80
