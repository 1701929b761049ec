"""The longest reply that a schema of a recipe allows ends in its room."""

import math

import pytest

from panda.recipes.book import RecipeBook
from panda.recipes.recipe_file import Recipe
from panda.recipes.schema import asked_properties, longest_chars, lower_limits, plain_schema
from panda.store.layout import asset

IDS = [f"visit:visit_{n:012}" for n in range(16)]
"""Sixteen ids, as long as those of pages are."""
BOOK = RecipeBook([asset("recipes")], [asset("prompts")])
RECIPES = [recipe for key in BOOK.recipe_keys() if (recipe := BOOK.load_recipe(key)).output_schema]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.key)
def test_the_longest_reply_fits_the_budget(recipe: Recipe) -> None:
    """
    Every text and list of a recipe has a limit, and lowered ones leave room for the longest reply, even if
    each of its characters takes a token; what is lenient is not asked for then.
    """
    contract = BOOK.contract_of(recipe.key)
    asked = asked_properties(recipe.output_schema, contract)
    options = dict.fromkeys(contract.option_sets, IDS)
    schema = plain_schema(recipe.output_schema, contract, only=asked, options=options)
    assert math.isfinite(longest_chars(schema, open_chars=0))
    needed = [name for name in asked if name not in contract.lenient]
    schema = plain_schema(recipe.output_schema, contract, only=needed, options=options)
    room = recipe.token_budget.output
    for most in (3 * room, room):
        assert longest_chars(lower_limits(schema, most), open_chars=0) <= most


def test_limits_are_kept_where_they_fit() -> None:
    """A schema whose longest reply fits is not touched; the ids on offer never are."""
    why = {"type": "string", "maxLength": 400}
    page = {"type": "string", "enum": ["visit:1"]}
    assert lower_limits(why, 402) == why
    schema = {"type": "object", "required": ["page", "why"], "properties": {"page": page, "why": why}}
    lowered = lower_limits(schema, 100)["properties"]
    assert lowered["page"] == page
    assert 1 <= lowered["why"]["maxLength"] <= 80
