"""What a turn wants remembered: typed values, checked and normalised, before anything is written."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from panda.documents.sentences import one_line
from panda.errors import UsageError
from panda.memory.value import entity_name

Kind = Literal["preference", "fact"]
SaidKind = Literal["preference", "fact", "statement"]
"""What the user said word for word is a statement; facts.md shows it."""
Action = Literal["sets", "adds", "removes", "retracts"]
"""sets: the value holds. adds, removes: of a list. retracts: what was said holds no longer."""
Value = str | bool | int | float | None | tuple["Value", ...]


@dataclass(frozen=True)
class StagedValue:
    """A value that a turn wants remembered; nothing is written before the turn is approved."""

    kind: SaidKind  # which file shows it
    entity: str  # normalised, as "user:ann"
    relation: str  # key, as "budget"
    value: Value  # a scalar or a tuple of scalars
    content_type: str  # how it ages
    source_turn: int  # turn in which it was said
    text: str  # the user's own words
    action: Action = "sets"  # what it does to what was said before
    told: bool = False  # whether code noted it, so that it counts however the turn ends

    def to_json(self) -> dict[str, object]:
        """As in staged_memory.json."""
        return {
            "kind": self.kind,
            "entity": self.entity,
            "relation": self.relation,
            "value": tag_value(self.value),
            "content_type": self.content_type,
            "source_turn": self.source_turn,
            "text": self.text,
            **({"action": self.action} if self.action != "sets" else {}),
            **({"told": True} if self.told else {}),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "StagedValue":
        """From an object of staged_memory.json that satisfies its schema."""
        return cls(
            kind=raw["kind"],
            entity=raw["entity"],
            relation=raw["relation"],
            value=untag_value(raw["value"]),
            content_type=raw["content_type"],
            source_turn=raw["source_turn"],
            text=raw["text"],
            action=raw.get("action", "sets"),
            told=raw.get("told", False),
        )


def normalise_entity(text: str) -> str:
    """
    An entity as it is stored and compared.

    Raises:
        UsageError: It is blank.

    Source:
        S2, "Entity".

    >>> normalise_entity("  Acme   Corp ")
    'acme-corp'
    """
    try:
        return entity_name(text)
    except ValueError as exc:
        raise UsageError(str(exc), fix="name who or what it is about") from exc


def tag_value(value: Value) -> dict[str, object]:
    """
    A value with its type, as files hold it.

    Raises:
        ValueError: A number that is not finite.

    >>> tag_value(("Lenovo", "ASUS")), tag_value(None), tag_value(True)
    ({'type': 'list', 'v': ['Lenovo', 'ASUS']}, {'type': 'null'}, {'type': 'boolean', 'v': True})
    """
    if value is None:
        return {"type": "null"}
    if isinstance(value, bool):
        return {"type": "boolean", "v": value}
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        return {"type": "number", "v": value}
    if isinstance(value, tuple):
        return {"type": "list", "v": list(value)}
    return {"type": "string", "v": value}


def untag_value(raw: Mapping[str, Any]) -> Value:
    """
    The value of {"type", "v"}.

    >>> untag_value({"type": "list", "v": ["a", 1]})
    ('a', 1)
    """
    value = raw.get("v")
    return tuple(value) if isinstance(value, list) else value


def stage_value(
    *,
    user: str,
    kind: SaidKind,
    relation: str,
    value: Value,
    text: str,
    source_turn: int,
    entity: str | None = None,
    action: Action = "sets",
    told: bool = False,
) -> StagedValue:
    """
    A value to be remembered, checked and normalised; writes nothing.

    Args:
        relation: Key; white space around it is dropped.
        value: What is said, verbatim.
        entity: Whom or what it is about; None for the user.

    Raises:
        UsageError: A blank relation, entity or value.
    """
    relation = one_line(relation)
    if not relation or relation.startswith("panda:"):
        raise UsageError(f"{relation!r} is no key for a memory", fix="use a word such as budget")
    if isinstance(value, str) and not value.strip():
        raise UsageError(f"the value of {relation} is blank", fix="say what to remember")
    return StagedValue(
        kind=kind,
        entity=normalise_entity(entity) if entity is not None else f"user:{user}",
        relation=relation,
        value=value,
        content_type="preference" if kind == "preference" else "general_fact",
        source_turn=source_turn,
        text=one_line(text),
        action=action,
        told=told,
    )
