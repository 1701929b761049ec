"""Replies under a JSON Schema: asked for by grammar or in words, and read without what stands around them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from panda.documents import json_schema
from panda.documents.json_text import load_json
from panda.errors import RecipeSchemaError, SchemaError
from panda.isolation import WorkerLimits, run_isolated
from panda.models.model_contract import Message

_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "$schema", "$id", "$comment"}
)
_SCHEMA_KEYS = frozenset({"additionalProperties", "items", "additionalItems"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_ENFORCED = frozenset(
    {
        *(_SCHEMA_KEYS | _SCHEMA_MAPS | _SCHEMA_LISTS),
        *("type", "enum", "const", "$ref", "required", "minItems", "maxItems"),
        *("minLength", "maxLength", "pattern", "format"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
)
_MOST_CHARS = 500
"""Longest `maxLength` that a server is sent; longer ones are told in words and looked at in the reply. That
of llama-cpp-python crashes at one of 1,200, and llama.cpp's own refuses thousands."""
_DIALECTS: Mapping[str | None, tuple[str | None, bool]] = {
    "json_schema": ("json_schema", False),
    "json_object": ("schema", True),
    "prompt": (None, True),
    None: (None, False),
}
"""The key of response_format under which a server is sent the schema, and whether it is told in words too."""
_COSTLY = frozenset({"allOf", "$ref", "patternProperties", "multipleOf"})
_PLAIN_CHARS = 32_000
_PLAIN_PATTERN_CHARS = 60
_COMPILE_LIMITS = WorkerLimits(seconds=5, memory_bytes=1_000_000_000)


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
    digest = hashlib.sha256(f"{_compiler_version()} {text}".encode()).hexdigest()
    marker_path = cache_dir / "schemas" / digest[:40] if cache_dir else None
    if marker_path is None or not marker_path.exists():
        _compile(text, where)
    if marker_path is not None:
        with suppress(OSError):  # a cache that cannot be written is left as it is
            marker_path.parent.mkdir(parents=True, exist_ok=True)
            marker_path.touch()


def strip_schema(
    schema: Mapping[str, Any], *, where: str | None = None, most_chars: int | None = None, at: str = ""
) -> dict[str, Any]:
    """
    The schema as a backend gets it, without our `x-` keys; raises where a keyword would be ignored. A
    `maxLength` beyond *most_chars* is left out.

    >>> strip_schema({"properties": {"x-a": {"x-options": "spans", "type": "string"}}})
    {'properties': {'x-a': {'type': 'string'}}}
    """

    def strip(part: Any, *place: object) -> Any:
        inner = f"{at}/{'/'.join(map(str, place))}"
        is_schema = isinstance(part, Mapping)
        return strip_schema(part, where=where, most_chars=most_chars, at=inner) if is_schema else part

    plain: dict[str, Any] = {}
    for key, value in schema.items():
        is_long = key == "maxLength" and most_chars is not None and isinstance(value, int)
        if key.startswith("x-") or key in _ANNOTATIONS or (is_long and value > most_chars):
            continue
        if key not in _ENFORCED:
            message = f'the schema uses "{key}", which a grammar cannot enforce, at {at}/{key}'
            fix = f'take "{key}" out, or begin its name with x- if it is meant for panda'
            raise RecipeSchemaError(message, where, fix=fix)
        plain[key] = value
        if key in _SCHEMA_MAPS and isinstance(value, Mapping):
            plain[key] = {name: strip(part, key, name) for name, part in value.items()}
        elif key in _SCHEMA_LISTS and isinstance(value, list | tuple):
            plain[key] = [strip(part, key, number) for number, part in enumerate(value)]
        elif key in _SCHEMA_KEYS:
            plain[key] = strip(value, key)
    return plain


_compiler_version = cache(partial(version, "llguidance"))  # looking it up takes as long as all the rest


@lru_cache(maxsize=128)
def _compile(text: str, where: str | None) -> str:
    """The grammar of a schema; of one that may take long to compile, made in a process with limits."""
    schema = json.loads(text)
    check_json_schema(schema, where=where)
    if len(text) <= _PLAIN_CHARS and _is_plain(schema):
        return _compile_here(text, where)
    return run_isolated(
        partial(_compile_here, text, where),
        limits=_COMPILE_LIMITS,
        where=where or "output_schema",
        error=RecipeSchemaError,
        fix="make the schema simpler: fewer alternatives and properties, shorter patterns",
    )


def check_json_schema(schema: object, *, where: str | None) -> None:
    """Raise RecipeSchemaError where a reply cannot be judged by a schema."""
    try:
        json_schema.check_schema(schema)
    except SchemaError as exc:
        message = f"the schema is not valid JSON Schema: {exc.message}, at {exc.key or '/'}"
        raise RecipeSchemaError(message, where, fix=exc.fix) from exc


def _is_plain(schema: object) -> bool:
    """Return whether a schema has nothing whose grammar may grow out of proportion to its text."""
    if isinstance(schema, list):
        return all(map(_is_plain, schema))
    if not isinstance(schema, dict):
        return True
    pattern = schema.get("pattern", "")
    is_short = not isinstance(pattern, str) or len(pattern) <= _PLAIN_PATTERN_CHARS
    return is_short and not _COSTLY & schema.keys() and all(map(_is_plain, schema.values()))


def _compile_here(text: str, where: str | None) -> str:
    from llguidance import LLMatcher

    # Exactly one way to put spaces: a model cannot wander off into endless blank lines.
    spaces: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    grammar = LLMatcher.grammar_from_json_schema(text, overrides=spaces)
    is_error, messages = LLMatcher.validate_grammar_with_warnings(grammar)
    if is_error or messages:
        reason = " ".join(" ".join(messages).split())
        fix = "say it with type, properties, required, items, enum, pattern or bounds"
        raise RecipeSchemaError(f"the schema does not compile to a grammar: {reason}", where, fix=fix)
    return grammar


THINK = "<think>"
END_OF_THOUGHTS = "</think>"
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


def with_schema(
    messages: Sequence[Message], schema: Mapping[str, object], dialect: str | None
) -> Sequence[Message]:
    """The messages as a server of a dialect gets them, the schema in words at the end of the last."""
    if not _DIALECTS[dialect][1]:
        return messages
    asked = "Reply with one JSON object of this schema, and nothing else:\n"
    asked += json.dumps(strip_schema(schema), ensure_ascii=False)
    return [*messages[:-1], replace(messages[-1], content=f"{messages[-1].content}\n\n{asked}")]


def response_format(schema: Mapping[str, object], dialect: str | None) -> dict[str, object]:
    """The keys of a request by which a server of a dialect is asked for JSON of a schema; none for words."""
    key, _ = _DIALECTS[dialect]
    if key is None:
        return {}
    plain = strip_schema(schema, most_chars=_MOST_CHARS)
    strict = {"strict": True} if _allows_strict(plain) else {}
    sent = plain if key == "schema" else {"name": "reply", **strict, "schema": plain}
    return {"response_format": {"type": dialect, key: sent}}


def is_of(schema: Mapping[str, object], text: str) -> bool:
    """Return whether a text is JSON of a schema."""
    try:
        return json_schema.find_violation(strip_schema(schema), load_json(text, strict=False)) is None
    except (ValueError, RecursionError):
        return False


def _allows_strict(schema: object) -> bool:
    """
    Return whether OpenAI's `strict` takes it: each object requires all of its properties and has no others.
    """
    parts: Sequence[object] = schema if isinstance(schema, list | tuple) else ()
    if isinstance(schema, Mapping):
        parts = [*schema.values()]
        if schema.get("type") == "object":
            properties = schema.get("properties", {})
            if schema.get("additionalProperties") is not False or not isinstance(properties, Mapping):
                return False
            if set(properties) != set(schema.get("required", ())):
                return False
            parts = [*properties.values()]
    return all(map(_allows_strict, parts))
