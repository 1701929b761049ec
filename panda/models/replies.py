"""How a reply of a schema is asked for in words, and the reply itself without what stands around it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from panda.documents.json_schema import worst_fault
from panda.documents.json_text import load_json
from panda.models.contract import Message
from panda.models.grammar import strip_schema

THINK, END_OF_THOUGHTS = "<think>", "</think>"
"""What stands before and behind the reasoning of a model that writes it into its reply."""


def split_reasoning(text: str, *, is_open: bool) -> tuple[str, str]:
    """
    Reasoning and reply of a model that writes both as one text.

    Args:
        text: As written.
        is_open: Whether the model thinks: the chat template may then have written `<think>` already.

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
    """
    A text behind the reasoning that it was written after, as the model wrote both.

    >>> as_written("user: Hi", "Hm.", "{")
    '<think>\\nHm.\\n</think>\\n\\n{'
    >>> as_written("user: Hi", "", "{")
    '{'
    """
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
        return found if isinstance(load_json(found), dict) else text
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
        return worst_fault(strip_schema(schema), load_json(text)) is None
    except (ValueError, RecursionError):
        return False


def allows_strict(schema: object) -> bool:
    """
    Whether OpenAI's `strict` takes a schema: each object requires all of its properties and has no others.

    >>> closed = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    >>> allows_strict({"type": "array", "items": closed})
    True
    >>> allows_strict({**closed, "required": []})
    False
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
