"""Turns of a model that writes as one of 8B to 30B does, with code fences, remarks and thoughts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from panda.documents.yaml_text import parse_yaml
from panda.models.scripted import Asked

STEPS: Mapping[str, str] = {
    "resolved_query": "analyzer",
    "relevant": "retrieval",
    "sections": "synthesis",
    "guidance": "context",
    "tasks": "planner",
    "calls": "coordinator",
    "items": "answer",
    "reason": "validator",
    "summary": "summary",
    "history": "session",
    "question": "reflection",
    "reasoning": "retrieval",
    "kind": "strategy",
    "phrases": "phrases",
    "results": "worth_a_look",
    "sources": "sources",
    "pages": "about",
    "accepted": "read_well",
    "zones": "zones",
    "claims": "claims",
    "same": "conflicts",
}
"""Step of the pipeline by a property that it asks for; the first that fits counts."""

THOUGHT = "Okay, the user wants {something}. Let me look at what I was given, and reply in JSON."
STYLES: Mapping[str, str] = {
    "plain": "%s",
    "fenced": "```json\n%s\n```",
    "chatty": "Sure! Here is the JSON you asked for:\n\n```json\n%s\n```\n\nLet me know if you need more.",
    "thinking": f"<think>\n{THOUGHT}\n</think>\n\n%s",
}
"""What stands around a reply, by style."""


@dataclass(frozen=True)
class NaturalTurn:
    """What a model writes in one turn, and what is to come of it."""

    query: str
    """What the user asks."""
    style: str
    """One of STYLES."""
    status: str
    """How the turn ends."""
    replies: Mapping[str, Any]
    """By step: an object, raw text, or a list of these whose last one stays."""
    says: tuple[str, ...]
    """What the answer or the question holds."""
    asks: Mapping[str, int]
    """How often a step is asked, by step."""


@cache
def natural_turns() -> Mapping[str, NaturalTurn]:
    """The turns of natural.yaml by name."""
    cases = parse_yaml((Path(__file__).parent / "natural.yaml").read_text(encoding="utf-8"))
    usual: Mapping[str, Any] = cases["usual"]
    return {
        name: NaturalTurn(
            turn["query"],
            turn["style"],
            turn["status"],
            {**usual, **turn.get("replies", {})},
            tuple(turn.get("says", ())),
            turn.get("asks", {}),
        )
        for name, turn in cases["turns"].items()
    }


def step_of(asked: Asked) -> str:
    """The step of the pipeline that asks, by the schema of its reply; without one NERVES is to reword."""
    schema = getattr(asked.params, "schema", None)
    if schema is None:
        return "rewording"
    return next(step for name, step in STEPS.items() if name in schema["properties"])


class NaturalWriter:
    """
    Writes a turn's replies, for a scripted model.

    Args:
        turn: What it says; of an object the properties that it is asked for.
    """

    def __init__(self, turn: NaturalTurn) -> None:
        self._turn = turn
        self.used: dict[str, int] = {}
        """How often each step was asked."""

    def __call__(self, asked: Asked) -> str:
        step = step_of(asked)
        used = self.used.get(step, 0)
        self.used[step] = used + 1
        reply = self._turn.replies[step]
        if isinstance(reply, list):
            reply = reply[min(used, len(reply) - 1)]
        if isinstance(reply, str):
            return reply
        properties = getattr(asked.params, "schema", {})["properties"]
        said = {name: value for name, value in reply.items() if name in properties}
        return STYLES[self._turn.style] % json.dumps(said, ensure_ascii=False, indent=2)
