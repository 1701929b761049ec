"""What a message means, read once: its mood, what it refers to, what it rules out, limits and keeps. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

Mood = Literal["asks", "tells", "orders"]
Action = Literal["drop", "demote", "keep"]
Change = Literal["adds", "removes", "corrects"]
Agreement = Literal["agrees", "declines", "neither"]


@dataclass(frozen=True)
class Clause:
    """A part of the message that does one thing."""

    text: str
    """As it stands."""
    mood: Mood
    """What it does."""


@dataclass(frozen=True)
class Referred:
    """Words that stand for things that were spoken of."""

    words: str
    """As they stand."""
    refs: tuple[str, ...] = ()
    """Refs of the session's entities, or a turn as "turn:12"; empty if it is not known which."""


@dataclass(frozen=True)
class Excluded:
    """What is to happen with a thing that was spoken of."""

    ref: str
    """Ref of the session's entity."""
    action: Action
    """Never again, not now, or back again."""
    words: str
    """The words that say so."""


@dataclass(frozen=True)
class Days:
    """A period that is spoken of."""

    start: str
    """First day, as 2026-11-22."""
    end: str
    """Last day."""
    words: str
    """The words that say so."""


@dataclass(frozen=True)
class Limit:
    """What limits the things that are looked for."""

    text: str
    """The words that say so."""
    key: str | None = None
    """What it limits; None if that is not known."""
    value: str | int | float | None = None
    """To what; None if that is not known."""


@dataclass(frozen=True)
class Statement:
    """What is to be kept."""

    text: str
    """As it stands."""
    key: str | None = None
    """Relation; None unless sure."""
    value: str | tuple[str, ...] | None = None
    """Its value, verbatim; of a relation with several those that are named; None unless sure."""
    entity: str | None = None
    """Whom or what it is about; None for the user."""
    action: Change | None = None
    """What it does to what was said before: adds to several values, removes one, or corrects it."""


@dataclass(frozen=True)
class Reading:
    """What a message means."""

    mood: Mood = "asks"
    """Of the whole: orders if any clause orders, else asks if any asks, else tells."""
    clauses: tuple[Clause, ...] = ()
    """The message in order."""
    references: tuple[Referred, ...] = ()
    """In order."""
    exclusions: tuple[Excluded, ...] = ()
    """What it rules out, or wants to keep."""
    clears: str | None = None
    """The words that start over; None if none do."""
    periods: tuple[Days, ...] = ()
    """In order."""
    limits: tuple[Limit, ...] = ()
    """In order."""
    agreement: Agreement | None = None
    """What it says to the open question; None where none is open."""
    recap: bool = False
    """Whether it looks back on the conversation as a whole."""
    all: bool = False
    """Whether the whole of a list is wanted."""
    details: bool = False
    """Whether all that a page says of a thing is wanted, and not one value."""
    statements: tuple[Statement, ...] = ()
    """What it tells that is to be kept."""

    @property
    def turns(self) -> list[str]:
        """The turns that it names by number, as "turn:12"."""
        return [ref for one in self.references for ref in one.refs if ref.startswith("turn:")]

    def as_json(self) -> dict[str, Any]:
        """
        The reading as query_analysis.json holds it: without what is empty.

        >>> Reading("tells", statements=(Statement("I live in Bern", "location", "Bern"),)).as_json()
        {'mood': 'tells', 'statements': [{'text': 'I live in Bern', 'key': 'location', 'value': 'Bern'}]}
        """
        values = {name: value for name, value in asdict(self).items() if value not in ((), None, False)}
        return {
            name: [_without_none(one) for one in value] if isinstance(value, tuple) else value
            for name, value in values.items()
        }


def _without_none(value: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: one for name, one in value.items() if one is not None}
    return {name: list(one) if isinstance(one, tuple) else one for name, one in found.items()}


_PARTS = {
    "clauses": Clause,
    "references": Referred,
    "exclusions": Excluded,
    "periods": Days,
    "limits": Limit,
    "statements": Statement,
}


def parse_reading(value: Mapping[str, Any]) -> Reading:
    """
    A reading as as_json gave it; what is absent is empty.

    >>> parse_reading({"mood": "orders", "limits": [{"text": "under $5"}]}).limits
    (Limit(text='under $5', key=None, value=None),)
    """
    given: dict[str, Any] = dict(value)
    for name, part in _PARTS.items():
        given[name] = tuple(_part(part, one) for one in given.get(name, ()))
    return Reading(**given)


def _part(kind: type[Any], value: Mapping[str, Any]) -> object:
    return kind(**{name: tuple(one) if isinstance(one, list) else one for name, one in value.items()})


def overall_mood(clauses: Sequence[Clause]) -> Mood:
    """
    The mood of a message: it orders if any clause does, else asks if any does.

    >>> overall_mood((Clause("I live in Bern.", "tells"), Clause("Is it far?", "asks")))
    'asks'
    """
    said = {clause.mood for clause in clauses}
    return next((cast(Mood, mood) for mood in ("orders", "asks") if mood in said), "tells")
