"""The schemas that a model's calls of tools are held to."""

import pytest

from panda.models.replies import compile_schema
from panda.recipes.book import RecipeBook
from panda.recipes.schema import plain_schema
from panda.store.layout import asset
from panda.tools.table import TOOLS


@pytest.mark.parametrize("mode", ["chat", "code"])
def test_the_schemas_of_all_tools_compile(mode: str) -> None:
    """A grammar holds the arguments of every tool of a mode."""
    book = RecipeBook([asset("recipes")], [asset("prompts")])
    recipe = book.recipe_for("phase4_coordinator", mode)
    names = recipe.tools_available
    schema = plain_schema(
        recipe.output_schema,
        book.contract_of(recipe.key),
        only=["note", "calls"],
        options={"tool": [*names, "done"], "goal": ["G1"]},
        arguments={name: TOOLS[name].argument_schema for name in names},
    )
    assert len(schema["properties"]["calls"]["items"]["anyOf"]) == len(names) + 1
    assert compile_schema(schema)
