"""Text of models that do not write."""

import pytest

from panda.choosing.decision import Choice, Option
from panda.errors import RecipeKeyError
from panda.recipes.messages import Request
from panda.recipes.reply import fill_templates
from tests.recipes.books import parsed, planned

REQUEST = Request(
    "Is it so?",
    options={"answer": [Option("s1", "It is.", ("visit:a", "turn:1")), Option("s2", "It was.", ("turn:2",))]},
    variables={"line": "a line"},
)


def filled(template: object, *chosen: str, **values: object) -> object:
    """What a template for `why` becomes."""
    choices = {"answer": Choice("answer", chosen, {}, None, "prior")}
    return fill_templates(planned("chooses", templates={"why": template}), REQUEST, choices, values)["why"]


def test_texts() -> None:
    """A template is a text with variables, a list of such texts, or nothing."""
    assert filled("{{query}} {{line}}: {{verdict}}", verdict="yes") == "Is it so? a line: yes"
    assert filled(["{{line}}", "b"]) == ["a line", "b"]
    assert filled(None) is None


def test_spans() -> None:
    """Spans become items, verbatim, in the order chosen, with the nodes they come from."""
    assert filled({"spans": "answer"}, "s2", "s1") == [
        {"text": "It was.", "node_ids": ["turn:2"]},
        {"text": "It is.", "node_ids": ["visit:a", "turn:1"]},
    ]
    assert filled({"spans": "answer"}) == []


@pytest.mark.parametrize("template", [7, {"span": "answer"}, [["a"], 1]])
def test_wrong_template(template: object) -> None:
    """A template of no known kind is an error where the recipe is loaded."""
    with pytest.raises(RecipeKeyError) as caught:
        parsed(templates={"why": template})
    assert caught.value.where == "r.yaml:1 (templates.why)"


def test_a_variable_without_a_value() -> None:
    """It is an error that names the templates."""
    with pytest.raises(RecipeKeyError) as caught:
        filled("{{nothing}}")
    assert caught.value.where == "r.yaml (templates)"


def test_sources() -> None:
    """A model that writes is not asked for what only feeds templates."""
    plan = planned(templates={"why": {"spans": "answer"}, "other": "text"})
    assert plan.replaced == {"answer": ("why",)}
