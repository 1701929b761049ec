"""What a turn wants remembered: typed values, checked and normalised, before anything is written."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from panda.documents.text import one_line
from panda.errors import UsageError
from panda.memory.fact import Subject
from panda.memory.value import SaidKind, entity_name, parse_value, typed_value

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

    @property
    def subject(self) -> Subject:
        """What it will compete for."""
        return Subject("local", self.entity, self.relation)

    def to_json(self) -> dict[str, object]:
        """As in staged_memory.json: what is as it mostly is is left out, the value has its type."""
        value = {**asdict(self), "value": typed_value(self.value).to_json()}
        defaults = {field.name: field.default for field in fields(self)}
        return {name: one for name, one in value.items() if one != defaults[name]}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "StagedValue":
        """From an object of staged_memory.json that satisfies its schema."""
        return cls(**{**raw, "value": parse_value(raw["value"]).v})


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
    about = normalise_entity(entity) if entity is not None else f"user:{user}"
    ages = "preference" if kind == "preference" else "general_fact"
    return StagedValue(kind, about, relation, value, ages, source_turn, one_line(text), action, told)
