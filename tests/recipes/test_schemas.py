"""The longest reply that a schema of a recipe allows ends in its room."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from panda.recipes.book import RecipeBook
from panda.recipes.plan import compile_call
from panda.recipes.recipe import Recipe
from panda.recipes.schema import longest_chars, lower_limits
from panda.store.layout import asset

ONE_OF = {"type": "string", "x-options": "candidates"}
BOOK = RecipeBook([asset("recipes")], [asset("prompts")])
RECIPES = [recipe for key in BOOK.recipe_keys() if (recipe := BOOK.load_recipe(key)).output_schema]


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
