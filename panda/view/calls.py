"""The model calls of a turn: what was asked, what could be answered, and how likely each answer was."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panda.documents.context import PHASES
from panda.view.turn_reader import Lines

MOST_CALLS = 200
_MOST_OPTIONS = 40
_PROMPT_CHARS = 6_000
_ALL_CHARS = 300_000  # of all prompts of a page together


@dataclass(frozen=True)
class Choice:
    """One option of a call."""

    text: str  # what might have come
    context: str  # what it was judged behind; "" where all options have the same before them
    logprob: float
    share: float  # its probability, 0 to 1: e to the power of logprob
    is_best: bool


@dataclass(frozen=True)
class Prompt:
    """One text that was given to the model."""

    role: str  # system, user, assistant; "" for the text before options
    text: str  # as far as it is shown
    cut_chars: int  # how much of it is left out


@dataclass(frozen=True)
class Call:
    """One line of calls.jsonl."""

    number: int
    line: int  # line of the file
    phase: int
    phase_name: str
    recipe: str  # as "pipeline/phase1_reflection"
    kind: str  # choose or generate
    property: str  # what was chosen; "" for a text
    attempt: int
    layer: str
    model: str
    seconds: float
    tokens: Mapping[str, int | None]  # prompt, reused, output
    prompts: tuple[Prompt, ...]
    choices: tuple[Choice, ...]
    choices_left: int  # options that are not shown
    output: str | None  # the text of a model that wrote
    reasoning: str
    finish_reason: str
    error: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Calls:
    """The calls that a page shows."""

    shown: tuple[Call, ...]
    left: int  # calls that are not shown
    bad: tuple[tuple[int, str], ...]  # damaged lines, and what is wrong with them
    unread_bytes: int  # how much of the file was not read


def read_calls(lines: Lines) -> Calls:
    """The calls that the lines of a calls.jsonl hold, cut to what a page can show."""
    texts: dict[str, str] = {}
    room = _ALL_CHARS
    shown: list[Call] = []
    for line, value in lines.values:
        if value["kind"] == "forgotten":
            continue
        for part in [value.get("prefix"), *(value.get("messages") or ())]:
            if part and part.get("sha256") and "content" in part:
                texts[part["sha256"]] = part["content"]
        call = _call(line, value, texts, max(room, 0))
        room -= sum(len(prompt.text) for prompt in call.prompts)
        shown.append(call)
    return Calls(tuple(shown), lines.unread_lines, lines.bad, lines.unread_bytes)


def _call(line: int, value: Mapping[str, Any], texts: Mapping[str, str], room: int) -> Call:
    options = value.get("options") or ()
    choices = _choices(options)
    given = [("", value["prefix"])] if value.get("prefix") else []
    given += [(part["role"], part) for part in value.get("messages") or ()]
    most = min(_PROMPT_CHARS, room)
    error = value.get("error")
    return Call(
        number=value["n"],
        line=line,
        phase=value["phase"],
        phase_name=PHASES[value["phase"]],
        recipe=value["recipe"],
        kind=value["kind"],
        property=value.get("property") or "",
        attempt=value["attempt"],
        layer=str(value.get("layer") or ""),
        model=str(value.get("model") or ""),
        seconds=value["seconds"],
        tokens=value["usage"],
        prompts=tuple(_prompt(role, part, texts, most) for role, part in given),
        choices=choices[:_MOST_OPTIONS],
        choices_left=max(0, len(choices) - _MOST_OPTIONS),
        output=_head(value.get("output")),
        reasoning=_head(value.get("reasoning")) or "",
        finish_reason=value.get("finish_reason") or "",
        error=str(error.get("message") if isinstance(error, Mapping) else error or ""),
        parameters=value.get("parameters") or {},
    )


def _head(text: str | None) -> str | None:
    if text is None or len(text) <= _PROMPT_CHARS:
        return text
    return f"{text[:_PROMPT_CHARS]}\n[… {len(text) - _PROMPT_CHARS:,} more characters in calls.jsonl]"


def _prompt(role: str, part: Mapping[str, Any], texts: Mapping[str, str], most: int) -> Prompt:
    text = part["content"] if part.get("content") else texts.get(part.get("sha256", ""), "")
    return Prompt(role, text[:most], max(0, len(text) - most))


def _choices(options: Sequence[Mapping[str, Any]]) -> tuple[Choice, ...]:
    likeliest = sorted(options, key=lambda one: -one["logprob"])
    return tuple(
        Choice(
            text=one["continuation"],
            context=one["context"],
            logprob=one["logprob"],
            share=math.exp(min(0.0, one["logprob"])),
            is_best=one is likeliest[0],
        )
        for one in likeliest
    )
