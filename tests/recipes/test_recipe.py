"""Recipe files as values: what is read, and how each fault is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from panda.errors import RecipeBudgetError, RecipeKeyError
from panda.recipes.recipe import parse_recipe
from tests.recipes.books import parsed, recipe_values

BUDGET = {"total": 1000, "prompt": 300, "input": 500, "output": 100}


def test_defaults() -> None:
    """What a recipe leaves out has the documented defaults; the temperature is the layer's."""
    recipe = parsed()
    assert recipe.temperature == 0.5
    assert recipe.token_budget.response_reserve == 0
    assert (recipe.quality_gates.max_retries, recipe.quality_gates.timeout_ms) == (2, 300_000)
    assert recipe.quality_gates.below_threshold == "proceed"
    assert (recipe.mode, recipe.compression.model_layer) == (None, "NERVES")


def test_full_schema() -> None:
    """Every key of the recipe schema is read."""
    recipe = parsed(
        input_sections=["§0", "§2"],
        input_docs=["context.md", "plan.json"],
        variables={"tone": "{{mode}}"},
        quality_gates={"confidence_threshold": 0.7, "below_threshold": "halt", "evidence_required": True},
        compression={"enabled": False, "preserve": ["section_0", "tool_errors"]},
        mode="code",
        tools_available=["doc.search"],
        temperature=0,
        examples=["{}"],
    )
    assert recipe.input_sections == (0, 2)
    assert (recipe.mode, recipe.temperature, recipe.examples) == ("code", 0.0, ("{}",))
    assert recipe.quality_gates.confidence_threshold == 0.7
    assert recipe.compression.preserve == ("section_0", "tool_errors")


@pytest.mark.parametrize(
    ("changes", "key", "says"),
    [
        ({"quality_gate": {}}, "quality_gate", "unknown key"),
        ({"name": None}, "name", "missing"),
        ({"name": ""}, "name", "must be a text"),
        ({"model_layer": "mind"}, "model_layer", "'mind'"),
        ({"model_layer": ["MIND"]}, "model_layer", r"\['MIND'\]"),
        ({"system_prompt": "x"}, "system_prompt, prompt_files", "either"),
        ({"prompt_files": None}, "system_prompt, prompt_files", "either"),
        ({"prompt_files": "tests/judge.md"}, "prompt_files", "a list of texts"),
        ({"token_budget": 7}, "token_budget", "a mapping"),
        ({"token_budget": {**BUDGET, "prompt": "x"}}, "token_budget.prompt", "a whole number"),
        ({"token_budget": {**BUDGET, "prompt": -1}}, "token_budget.prompt", "a whole number"),
        ({"token_budget": {**BUDGET, "outptu": 1}}, "token_budget.outptu", "unknown key"),
        ({"output_format": "xml"}, "output_format", "'xml'"),
        ({"output_schema": []}, "output_schema", "a mapping"),
        ({"mode": 0}, "mode", "mode is 0"),
        ({"temperature": 3}, "temperature", "a number from 0 to 2"),
        ({"temperature": True}, "temperature", "a number from 0 to 2"),
        ({"input_sections": ["§9"]}, "input_sections[0]", "'§9'"),
        ({"quality_gates": {"max_retries": 1.5}}, "quality_gates.max_retries", "a whole number"),
        ({"quality_gates": {"timeout_ms": 0}}, "quality_gates.timeout_ms", "at least 1"),
        ({"quality_gates": {"schema_validation": "yes"}}, "quality_gates.schema_validation", "true or false"),
        ({"quality_gates": {"below_threshold": "stop"}}, "quality_gates.below_threshold", "'stop'"),
        ({"compression": {"model_layer": "X"}}, "compression.model_layer", "'X'"),
        ({"variables": {"a": 1}}, "variables.a", "must be a text"),
        ({"templates": []}, "templates", "a mapping"),
    ],
)
def test_wrong_key(changes: dict[str, Any], key: str, says: str) -> None:
    """A key that is unknown, missing or of the wrong type is named with its file."""
    with pytest.raises(RecipeKeyError, match=says) as caught:
        parsed(**changes)
    assert (caught.value.path, caught.value.key) == ("r.yaml", key)


def test_near_key() -> None:
    """A misspelt key or layer is told what it is near to."""
    with pytest.raises(RecipeKeyError) as caught:
        parsed(promt_files=[])
    assert caught.value.fix == "did you mean prompt_files?"
    with pytest.raises(RecipeKeyError) as caught:
        parsed(model_layer="voice")
    assert caught.value.fix == "did you mean VOICE?"


def test_budget_sum() -> None:
    """Parts over the total are an error of their own kind, with the numbers."""
    with pytest.raises(RecipeBudgetError, match=r"1150 tokens, 150 more .* 1000") as caught:
        parsed(token_budget={**BUDGET, "response_reserve": 250})
    assert caught.value.where == "r.yaml:1 (token_budget)"


@pytest.mark.parametrize("values", [None, [], "text", 3])
def test_no_mapping(values: object) -> None:
    """A file that holds no mapping is refused as a whole."""
    with pytest.raises(RecipeKeyError, match="the file must be a mapping"):
        parse_recipe(json.dumps(values), path=Path("r.yaml"), key="k")


def test_a_fault_is_told_with_its_line() -> None:
    """Where a key stands in the file is told with it; of a key that is missing, where it should stand."""
    text = json.dumps(recipe_values(token_budget={**BUDGET, "total": None}), indent=1)
    line = text[: text.index('"total"')].count("\n") + 1
    with pytest.raises(RecipeKeyError, match="total must be a whole number of at least 0") as caught:
        parse_recipe(text, path=Path("r.yaml"), key="k")
    assert caught.value.where == f"r.yaml:{line} (token_budget.total)"
