"""Output schemas, split into choices and text."""

from pathlib import Path
from typing import Any

import pytest

from panda.choosing.decision import ChoiceSpec, Many
from panda.errors import RecipeKeyError
from panda.recipes.schema import choice_specs, plain_schema, text_properties
from tests.recipes.books import schema_of

PATH = Path("r.yaml")


def spec_of(**schema: object) -> ChoiceSpec:
    """The one choice of a schema with the property `p`."""
    (spec,) = choice_specs(schema_of(p=schema), path=PATH)
    return spec


def test_choices_and_text() -> None:
    """Enum, boolean and x-options are choices, in order; all else is text."""
    schema = schema_of(
        a={"type": "string"},
        b={"enum": ["x", "y"]},
        c={"type": "array", "items": {"enum": ["x"]}},
        d={"type": "boolean"},
        e={"type": "array", "x-options": "spans", "x-many": {"max": 2, "at_least": 0, "within": 1}},
    )
    assert [spec.name for spec in choice_specs(schema, path=PATH)] == ["b", "d", "e"]
    assert text_properties(schema) == ("a", "c")


def test_values() -> None:
    """A choice has the values of its enum, true and false for a boolean, none for options of the call."""
    assert spec_of(enum=["x", "y"]).values == ("x", "y")
    assert spec_of(**{"enum": ["x", "y"], "x-written": ["y"]}).values == ("x",)
    assert spec_of(type="boolean").values == (True, False)
    assert spec_of(type="boolean", enum=[True]).values == (True,)
    assert spec_of(**{"type": "string", "x-options": "spans"}).values == ()


def test_default_step() -> None:
    """Without x-decide each value's label is scored."""
    (step,) = spec_of(type="boolean").steps
    assert (step.scorer, step.cue, step.at_least, step.choose) == ("label", "Answer:", None, None)


def test_steps() -> None:
    """A decision list is read with all keys of its steps."""
    decide = [
        {"choose": "x", "scorer": "cosine", "prompt": "p.md", "class": "c", "at_least": -1.5, "over": "o"},
        {"scorer": "cosine", "prior": 0.5},
        {"choose": "y"},
    ]
    first, second, last = spec_of(**{"enum": ["x", "y"], "x-decide": decide}).steps
    assert (first.choose, first.class_, first.at_least, first.over) == ("x", "c", -1.5, "o")
    assert (second.prior, second.at_least) == (0.5, None)
    assert (first.scores, second.scores, last.scores) == (True, True, False)


def test_many() -> None:
    """x-many takes a subset."""
    many = {"max": 3, "at_least": 0.5, "within": 1}
    assert spec_of(**{"type": "array", "x-options": "spans", "x-many": many}).many == Many(3, 0.5, 1.0)


def decide(**step: object) -> dict[str, object]:
    """A choice of x and y with one step."""
    return {"enum": ["x", "y"], "x-decide": [step]}


@pytest.mark.parametrize(
    ("schema", "key"),
    [
        ({"type": "boolean", "x-decided": []}, "p.x-decided"),
        ({"type": "string", "x-options": "things"}, "p.x-options"),
        ({"enum": [1, 2]}, "p.enum[0]"),
        ({"enum": "x"}, "p.enum"),
        ({"type": "boolean", "x-decide": []}, "p.x-decide"),
        ({"type": "boolean", "x-decide": "label"}, "p.x-decide"),
        ({"type": "boolean", "x-decide": ["label"]}, "p.x-decide[0]"),
        (decide(scorer="guess"), "p.x-decide[0].scorer"),
        (decide(scorer="label", **{"class": "x"}), "p.x-decide[0].class"),
        (decide(choose="z"), "p.x-decide[0].choose"),
        (decide(choose=1), "p.x-decide[0].choose"),
        (decide(at_least="high"), "p.x-decide[0].at_least"),
        (decide(atleast=1), "p.x-decide[0].atleast"),
        (
            {"type": "array", "x-options": "spans", "x-many": {"max": 0, "at_least": 0, "within": 0}},
            "p.x-many.max",
        ),
        ({"type": "array", "x-options": "spans", "x-many": {"max": 1, "within": 0}}, "p.x-many.at_least"),
        ({"type": "array", "x-options": "spans", "x-many": 3}, "p.x-many"),
        (True, "p"),
        ([], "p"),
    ],
)
def test_wrong_choice(schema: Any, key: str) -> None:
    """A wrong x- key is named with its whole path."""
    with pytest.raises(RecipeKeyError) as caught:
        choice_specs(schema_of(p=schema), path=PATH)
    assert caught.value.where == f"r.yaml (output_schema.properties.{key})"


def test_plain_schema() -> None:
    """The plain schema has no x- keys, but a property may be called so; options become enums."""
    schema = schema_of(
        **{
            "x-ray": {"type": "string"},
            "one": {"type": "string", "x-options": "candidates"},
            "some": {"type": "array", "x-options": "spans", "x-many": {"max": 2, "at_least": 0, "within": 1}},
            "items": {
                "items": {"properties": {"ids": {"type": "array", "x-options": "candidates", "x-from": "s"}}}
            },
        }
    )
    plain = plain_schema(schema, only=None, options={"one": ["a"], "some": ["b"], "s": ["c"]})
    assert plain["properties"] == {
        "x-ray": {"type": "string"},
        "one": {"type": "string", "enum": ["a"]},
        "some": {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["b"]}},
        "items": {
            "items": {"properties": {"ids": {"type": "array", "items": {"type": "string", "enum": ["c"]}}}}
        },
    }


def test_plain_schema_of_some() -> None:
    """Only the properties asked for stay, also among the required ones."""
    plain = plain_schema(schema_of(a={"type": "string"}, b={"enum": ["x"]}), only=["b"], options={})
    assert plain == {"type": "object", "required": ["b"], "properties": {"b": {"enum": ["x"]}}}


def test_no_options() -> None:
    """A list of none of the options is empty, whatever its least length."""
    schema = schema_of(some={"type": "array", "minItems": 1, "x-options": "spans"})
    plain = plain_schema(schema, only=None, options={"some": []})
    assert plain["properties"]["some"] == {
        "type": "array",
        "minItems": 0,
        "maxItems": 0,
        "items": {"type": "string"},
    }
