"""Repairs of replies: what servers put around or into them is taken off by name; no value is made up."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from panda.documents.json_text import is_json
from panda.models.replies import is_of

Repair: TypeAlias = Literal[
    "event_stream",
    "content_parts",
    "finish_reason",
    "harmony_channels",
    "think_tags",
    "code_fence",
    "surrounding_text",
    "list_of_one",
    "trailing_commas",
    "line_ends",
]
"""The names under which calls.jsonl lists repairs; docs/models.md says what each of them does."""
_JSON_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_STRING = re.compile(_JSON_STRING, re.DOTALL)
_STRING_OR_COMMA = re.compile(rf"{_JSON_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_STRING_OR_BRACE = re.compile(rf"{_JSON_STRING}|[{{}}]", re.DOTALL)
_FENCE = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)
_BEGINS_OBJECT = re.compile(r"""\{\s*(?:["'}]|\Z)""")
_CONTROL = re.compile(r"[\x00-\x1f]")
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"(?P<text>.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)
_BARE_CHANNELS = re.compile(r"\A\s*analysis(?P<reasoning>.*)assistant\s*final(?P<text>.*)\Z", re.DOTALL)
_MAX_STARTS = 200
"""How many braces of a text are tried as the beginning of an object."""


@dataclass(frozen=True)
class Repaired:
    """A reply, and what was done to it."""

    text: str
    repairs: tuple[Repair, ...] = ()


def repair_object(text: str, schema: Mapping[str, Any]) -> Repaired:
    r"""
    Return the JSON object of a reply under a schema of an object, without what stands around it.

    Text that is JSON of an object stays as it is. Where there is not exactly one object that the schema
    allows, or else exactly one object at all, the text stays as it is too: whoever reads it refuses it.

    >>> repair_object('```json\n{"a": 1,}\n```', {"type": "object"})
    Repaired(text='{"a": 1}', repairs=('code_fence', 'trailing_commas'))
    >>> repair_object('{"a": 1} I hope {this} helps!', {"type": "object"})
    Repaired(text='{"a": 1}', repairs=('surrounding_text',))
    >>> repair_object('Either {"a": 1} or {"a": 2}', {"type": "object"}).repairs
    ()
    """
    if schema.get("type") != "object":
        return Repaired(text)
    repairs: list[Repair] = []
    inner = text
    if fenced := _FENCE.match(text):
        inner = fenced[1]
        repairs.append("code_fence")
    repaired = _repair_value(inner, repairs)
    if repaired is not None:
        return repaired
    candidates = list(_find_objects(text))
    fitting = [candidate for candidate in candidates if is_of(schema, candidate.text)]
    distinct = {json.dumps(json.loads(candidate.text)): candidate for candidate in fitting or candidates}
    if len(distinct) != 1:
        return Repaired(text)
    (chosen,) = distinct.values()
    around: Repair = "code_fence" if "```" in text else "surrounding_text"
    return Repaired(chosen.text, (around, *chosen.repairs))


def _repair_value(text: str, repairs: list[Repair]) -> Repaired | None:
    """
    Return the object of a text that is JSON of one, or of a list of one, with its faults mended; JSON of
    anything else as it is; None for a text that is no JSON.
    """
    mended = _mend_json(text.strip())
    if mended is None:
        return None
    value = json.loads(mended.text)
    if isinstance(value, dict):
        if not repairs and not mended.repairs:
            return Repaired(text)
        return Repaired(mended.text, (*repairs, *mended.repairs))
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        inner = mended.text[1:-1].strip()
        return Repaired(inner, (*repairs, "list_of_one", *mended.repairs))
    return Repaired(text)


def _mend_json(text: str) -> Repaired | None:
    """Return a text as JSON, without trailing commas and with line ends escaped; None if it is none."""
    if is_json(text):
        return Repaired(text)
    repairs: list[Repair] = []
    mends: tuple[tuple[Repair, Callable[[str], str]], ...] = (
        ("line_ends", _escape_line_ends),
        ("trailing_commas", _drop_trailing_commas),
    )
    for name, mend in mends:
        mended = mend(text)
        if mended != text:
            text = mended
            repairs.append(name)
    return Repaired(text, tuple(repairs)) if repairs and is_json(text) else None


def _drop_trailing_commas(text: str) -> str:
    return _STRING_OR_COMMA.sub(lambda match: "" if match[0] == "," else match[0], text)


def _escape_line_ends(text: str) -> str:
    def escape(match: re.Match[str]) -> str:
        return _CONTROL.sub(lambda control: json.dumps(control[0])[1:-1], match[0])

    return _STRING.sub(escape, text)


def _find_objects(text: str) -> Iterator[Repaired]:
    """
    Yield each JSON object that stands in a text, outermost ones alone.

    Ends at what begins like an object and is none: parts of a broken object are no reply.
    """
    at = text.find("{")
    for _ in range(_MAX_STARTS):
        if at < 0:
            return
        end = _find_end(text, at)
        mended = _mend_json(text[at:end]) if end is not None else None
        if mended is not None and end is not None:
            yield mended
            at = text.find("{", end)
        elif _BEGINS_OBJECT.match(text, at):
            return
        else:
            at = text.find("{", at + 1)


def _find_end(text: str, start: int) -> int | None:
    """Return where the brace that opens at *start* is closed, outside of strings; None if it never is."""
    depth = 0
    for match in _STRING_OR_BRACE.finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.end()
    return None


def split_channels(text: str) -> tuple[str, str] | None:
    """
    Return reasoning and reply of a text in the channels of OpenAI's harmony format; None if it has none.

    >>> split_channels("<|channel|>analysis<|message|>Hm.<|end|><|channel|>final<|message|>{}")
    ('Hm.', '{}')
    >>> split_channels("analysisHm.assistantfinal{}")
    ('Hm.', '{}')
    """
    parts = [(match["name"], match["text"].strip()) for match in _CHANNEL.finditer(text)]
    if parts:
        finals = [inner for name, inner in parts if name == "final"]
        thoughts = [inner for name, inner in parts if name != "final" and inner]
        return "\n\n".join(thoughts), finals[-1] if finals else ""
    bare = _BARE_CHANNELS.match(text)
    return (bare["reasoning"].strip(), bare["text"].strip()) if bare else None
