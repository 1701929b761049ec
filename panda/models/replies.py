"""Replies under a JSON Schema: asked for by grammar or in words, and read without what stands around them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache, partial
from importlib.metadata import version
from pathlib import Path

from panda.documents.json_text import load_json, worst_fault
from panda.errors import RecipeSchemaError
from panda.models.contract import Message

_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "$schema", "$id", "$comment"}
)
_ENFORCED = frozenset(
    {
        *("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions"),
        *("properties", "required", "additionalProperties", "patternProperties"),
        *("items", "prefixItems", "additionalItems", "minItems", "maxItems"),
        *("minLength", "maxLength", "pattern", "format"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
)
_SCHEMA_KEYS = frozenset({"additionalProperties", "items", "additionalItems"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})


def compile_schema(schema: Mapping[str, object], *, where: str | None = None) -> str:
    """
    The llguidance grammar of a JSON Schema (2020-12); objects and lists stand on one line, as json.dumps
    writes them. Keys that begin with `x-` are ours and left out. Everything else must either be enforced by
    the grammar or be a mere annotation: what would be ignored is a RecipeSchemaError, since the model would
    then break it unseen.
    """
    return _compile(json.dumps(strip_schema(schema, where=where), ensure_ascii=False), where)


def check_schema(schema: Mapping[str, object], *, where: str | None, cache_dir: Path | None) -> None:
    """Raise what compile_schema raises; a directory keeps an empty file for each schema that has compiled."""
    text = json.dumps(strip_schema(schema, where=where), ensure_ascii=False)
    if cache_dir is None:
        _compile(text, where)
        return
    digest = hashlib.sha256(f"{_compiler_version()} {text}".encode()).hexdigest()
    known = cache_dir / "schemas" / digest[:40]
    if not known.exists():
        _compile(text, where)
        with suppress(OSError):  # a cache that cannot be written is left as it is
            known.parent.mkdir(parents=True, exist_ok=True)
            known.touch()


def strip_schema(
    schema: Mapping[str, object], *, where: str | None = None, most_chars: int | None = None
) -> dict[str, object]:
    """
    The schema as a backend gets it, without our `x-` keys; raises where a keyword would be ignored. A
    `maxLength` beyond *most_chars* is left out.

    >>> strip_schema({"properties": {"x-a": {"x-options": "spans", "type": "string"}}})
    {'properties': {'x-a': {'type': 'string'}}}
    """
    plain = _strip(schema, "", where, most_chars)
    assert isinstance(plain, dict)
    return plain


_compiler_version = cache(partial(version, "llguidance"))  # looking it up takes as long as all the rest


@lru_cache(maxsize=128)
def _compile(text: str, where: str | None) -> str:
    from llguidance import LLMatcher

    _check_meta_schema(text, where)
    # Exactly one way to put spaces: a model cannot wander off into endless blank lines.
    grammar = LLMatcher.grammar_from_json_schema(
        text, overrides={"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    )
    is_error, messages = LLMatcher.validate_grammar_with_warnings(grammar)
    if is_error or messages:
        reason = " ".join(" ".join(messages).split())
        raise RecipeSchemaError(
            f"the schema does not compile to a grammar: {reason}",
            where=where,
            fix="say it with type, properties, required, items, enum, pattern or bounds",
        )
    return grammar


def _check_meta_schema(text: str, where: str | None) -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(json.loads(text))
    except SchemaError as exc:
        place = "/".join(map(str, exc.absolute_path)) or "(top)"
        raise RecipeSchemaError(
            f"the schema is not valid JSON Schema: {exc.message}, at /{place}",
            where=where,
            fix="see https://json-schema.org/understanding-json-schema",
        ) from exc


def _strip(schema: object, at: str, where: str | None, most_chars: int | None) -> object:
    """At schema positions only: a property may be called x-…."""
    if not isinstance(schema, Mapping):
        return schema
    plain: dict[str, object] = {}
    for key, value in schema.items():
        place = f"{at}/{key}"
        if key.startswith("x-"):
            continue
        is_long = key == "maxLength" and most_chars is not None and isinstance(value, int)
        if is_long and value > most_chars:
            continue
        if key in _SCHEMA_MAPS and isinstance(value, Mapping):
            plain[key] = {
                name: _strip(part, f"{place}/{name}", where, most_chars) for name, part in value.items()
            }
        elif key in _SCHEMA_LISTS and isinstance(value, list | tuple):
            plain[key] = [_strip(part, f"{place}/{i}", where, most_chars) for i, part in enumerate(value)]
        elif key in _SCHEMA_KEYS:
            plain[key] = _strip(value, place, where, most_chars)
        elif key in _ENFORCED:
            plain[key] = value
        elif key not in _ANNOTATIONS:
            raise RecipeSchemaError(
                f'the schema uses "{key}", which a grammar cannot enforce, at {place}',
                where=where,
                fix=f'take "{key}" out, or begin its name with x- if it is meant for panda',
            )
    return plain


THINK, END_OF_THOUGHTS = "<think>", "</think>"
"""What stands before and behind the reasoning of a model that writes it into its reply."""


def split_reasoning(text: str, *, is_open: bool) -> tuple[str, str]:
    """
    Reasoning and reply of a model that writes both as one text. *is_open*: the model thinks, and the chat
    template may have written `<think>` already.

    >>> split_reasoning("<think>Hm, {a}.</think> {}", is_open=False)
    ('Hm, {a}.', '{}')
    >>> split_reasoning("<think>Hm, {a", is_open=False)
    ('Hm, {a', '')
    >>> split_reasoning("Qwen ends its thoughts with </think>.", is_open=False)
    ('', 'Qwen ends its thoughts with </think>.')
    """
    bare = text.lstrip()
    if not bare.startswith(THINK) and not (is_open and END_OF_THOUGHTS in bare and not bare.startswith("{")):
        return "", text
    reasoning, _, reply = bare.removeprefix(THINK).partition(END_OF_THOUGHTS)
    return reasoning.strip(), reply.strip()


def as_written(chat: str, reasoning: str, text: str) -> str:
    """A text behind the reasoning that it was written after, as the model wrote both."""
    if not reasoning:
        return text
    before = "" if chat.rstrip().endswith(THINK) else f"{THINK}\n"
    return f"{before}{reasoning}\n{END_OF_THOUGHTS}\n\n{text}"


def bare_object(text: str, schema: Mapping[str, object]) -> str:
    """
    The JSON object of a reply under a schema, without code fence or words around it; else the text as it is.

    >>> bare_object('Here it is:\\n```json\\n{"a": 1}\\n```', {"type": "object"})
    '{"a": 1}'
    >>> bare_object("{a}, he said", {"type": "object"})
    '{a}, he said'
    """
    found = text[text.find("{") : text.rfind("}") + 1]
    if schema.get("type") != "object" or found == text:
        return text
    try:
        return found if isinstance(load_json(found, strict=False), dict) else text
    except (ValueError, RecursionError):
        return text


def with_schema(
    messages: Sequence[Message], schema: Mapping[str, object], dialect: str | None
) -> Sequence[Message]:
    """The messages as a server of a dialect gets them: all but json_schema tell the schema in words, last."""
    if dialect not in ("json_object", "prompt"):
        return messages
    asked = "Reply with one JSON object of this schema, and nothing else:\n"
    asked += json.dumps(strip_schema(schema), ensure_ascii=False)
    return [*messages[:-1], replace(messages[-1], content=f"{messages[-1].content}\n\n{asked}")]


def is_of(schema: Mapping[str, object], text: str) -> bool:
    """Whether a text is JSON of a schema."""
    try:
        return worst_fault(strip_schema(schema), load_json(text, strict=False)) is None
    except (ValueError, RecursionError):
        return False


def allows_strict(schema: object) -> bool:
    """
    Whether OpenAI's `strict` takes a schema: each object requires all of its properties and has no others.
    """
    if isinstance(schema, list | tuple):
        return all(allows_strict(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    parts = [*schema.values()]
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping) or schema.get("additionalProperties") is not False:
            return False
        if set(properties) != set(schema.get("required", ())):
            return False
        parts = [*properties.values()]
    return all(allows_strict(part) for part in parts)
