"""Which schemas compile, and that what compiles is enforced."""

from typing import Any

import pytest

from panda.errors import RecipeSchemaError
from panda.models.llama.model import LlamaCppModel
from panda.models.replies import compile_schema

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        {"not": TEXT},
        {"if": TEXT, "then": TEXT},
        {"type": "array", "uniqueItems": True},
        {"type": "array", "contains": TEXT},
        {"type": "object", "minProperties": 1},
        {"type": "object", "propertyNames": TEXT},
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        {"type": "object", "unevaluatedProperties": False},
        {"type": "object", "propertys": {}},
        {"type": "string", "contentEncoding": "base64"},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"maxLenght": 3}}}},
        {"anyOf": [TEXT, {"not": {}}]},
        {"$defs": {"x": {"uniqueItems": True}}, "type": "string"},
    ],
)
def test_unsupported_keyword_is_named(schema: dict[str, Any]) -> None:
    """A keyword that the grammar would ignore is an error that names it and where it stands."""
    with pytest.raises(
        RecipeSchemaError, match=r'uses "\w+", which a grammar cannot enforce, at /'
    ) as caught:
        compile_schema(schema, where="recipes/a.yaml: output_schema")
    assert caught.value.where == "recipes/a.yaml: output_schema"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "strin"}, "not valid JSON Schema"),
        ({"properties": 5}, "not valid JSON Schema"),
        ({"type": "string", "format": "wat"}, "Unknown format: wat"),
        ({"type": "string", "pattern": "a(?=b)"}, "look-around"),
        ({"enum": []}, "does not compile|not valid"),
        ({"$ref": "#/$defs/none"}, "leads to nothing"),
        ({"$ref": "http://example.org/x"}, "leads out of the schema"),
        ({"oneOf": [TEXT, {"type": "string", "maxLength": 3}]}, "oneOf"),
        ({"type": "string", "minLength": 5, "maxLength": 3}, "minLength"),
        ({"allOf": [TEXT, {"type": "null"}]}, "incompatible types"),
    ],
)
def test_schema_without_a_grammar_says_why(schema: dict[str, Any], message: str) -> None:
    """A keyword that cannot be compiled gives the reason in one line."""
    with pytest.raises(RecipeSchemaError, match=message) as caught:
        compile_schema(schema)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"enum": ["a", 1, None]}, "1", '"b"'),
        ({"const": {"a": 1}}, '{"a": 1}', '{"a": 2}'),
        ({"type": ["string", "null"]}, "null", "1"),
        ({"type": "string", "maxLength": 2}, '"ab"', '"abc"'),
        ({"type": "string", "minLength": 2}, '"ab"', '"a"'),
        ({"type": "string", "pattern": "^[ab]+$"}, '"ab"', '"ac"'),
        ({"type": "string", "format": "date"}, '"2026-01-04"', '"4 January"'),
        ({"type": "integer", "minimum": 1, "maximum": 10}, "10", "11"),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "0.5", "1"),
        ({"type": "integer", "multipleOf": 5}, "15", "14"),
        ({"type": "array", "items": TEXT, "maxItems": 1}, '["a"]', '["a", "b"]'),
        ({"type": "array", "items": TEXT, "minItems": 1}, '["a"]', "[]"),
        (
            {"type": "array", "prefixItems": [TEXT, {"type": "null"}], "items": False},
            '["a", null]',
            '["a", 1]',
        ),
        ({"anyOf": [TEXT, {"type": "null"}]}, "null", "true"),
        ({"oneOf": [TEXT, {"type": "null"}]}, '"a"', "true"),
        ({"allOf": [TEXT, {"maxLength": 1}]}, '"a"', '"ab"'),
        ({"$ref": "#/$defs/x", "$defs": {"x": TEXT}}, '"a"', "1"),
        (
            {"type": "object", "patternProperties": {"^n": {"type": "null"}}, "additionalProperties": False},
            '{"n": null}',
            '{"n": 1}',
        ),
        (
            {
                "type": "object",
                "properties": {"x-a": TEXT},
                "required": ["x-a"],
                "additionalProperties": False,
            },
            '{"x-a": "b"}',
            "{}",
        ),
        ({"type": "object", "additionalProperties": {"type": "null"}}, '{"n": null}', '{"n": 1}'),
        ({"type": "object", "properties": {"a": TEXT}}, '{"a": "b"}', '{\n"a": "b"}'),
    ],
)
def test_what_compiles_is_enforced(schema: dict[str, Any], good: str, bad: str, model: LlamaCppModel) -> None:
    """Every supported keyword lets a right value through and stops a wrong one; white space is fixed."""
    from llguidance import LLMatcher

    tokenizer = model._load_weights().grammar_tokenizer

    def passes(text: str) -> bool:
        matcher = LLMatcher(tokenizer, compile_schema(schema), log_level=0)
        tokens = tokenizer.tokenize_str(text)
        return bool(matcher.validate_tokens(tokens) == len(tokens)) and (
            matcher.consume_tokens(tokens) and matcher.is_accepting()
        )

    assert passes(good)
    assert not passes(bad)
