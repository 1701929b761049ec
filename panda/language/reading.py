"""What a message means, read once: its mood, what it refers to, what it rules out, limits and keeps. Pure."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any, Literal, TypeVar, cast, get_args

import msgspec

from panda.language.text_front import plain_signs

Mood = Literal["asks", "tells", "orders"]
Action = Literal["drop", "demote", "keep"]
Change = Literal["adds", "removes", "corrects"]
Agreement = Literal["agrees", "declines", "neither"]


@dataclass(frozen=True)
class Clause:
    """A part of the message that does one thing."""

    text: str  # as it stands
    mood: Mood  # what it does


@dataclass(frozen=True)
class Referred:
    """Words that stand for things that were spoken of."""

    words: str  # as they stand
    refs: tuple[str, ...] = ()
    """Refs of the session's entities, or a turn as "turn:12"; empty if it is not known which."""


@dataclass(frozen=True)
class Excluded:
    """What is to happen with a thing that was spoken of."""

    ref: str  # ref of the session's entity
    action: Action  # never again, not now, or back again
    words: str  # the words that say so


@dataclass(frozen=True)
class Days:
    """A period that is spoken of."""

    start: str  # first day, as 2026-11-22
    end: str  # last day
    words: str  # the words that say so


@dataclass(frozen=True)
class Limit:
    """What limits the things that are looked for."""

    text: str  # the words that say so
    key: str | None = None  # what it limits; None if that is not known
    value: str | int | float | None = None  # to what; None if that is not known


@dataclass(frozen=True)
class Statement:
    """What is to be kept."""

    text: str  # as it stands
    key: str | None = None  # relation; None unless sure
    value: str | tuple[str, ...] | None = None
    """Its value, verbatim; of a relation with several those that are named; None unless sure."""
    entity: str | None = None  # whom or what it is about; None for the user
    action: Change | None = None
    """What it does to what was said before: adds to several values, removes one, or corrects it."""


@dataclass(frozen=True)
class Reading:
    """What a message means."""

    mood: Mood = "asks"  # of the whole: orders if any clause orders, else asks if any asks, else tells
    clauses: tuple[Clause, ...] = ()  # the message in order
    references: tuple[Referred, ...] = ()  # in order
    exclusions: tuple[Excluded, ...] = ()  # what it rules out, or wants to keep
    clears: str | None = None  # the words that start over; None if none do
    periods: tuple[Days, ...] = ()  # in order
    limits: tuple[Limit, ...] = ()  # in order
    agreement: Agreement | None = None  # what it says to the open question; None where none is open
    recap: bool = False  # whether it looks back on the conversation as a whole
    all: bool = False  # whether the whole of a list is wanted
    details: bool = False  # whether all that a page says of a thing is wanted, and not one value
    statements: tuple[Statement, ...] = ()  # what it tells that is to be kept

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


def parse_reading(value: Mapping[str, Any]) -> Reading:
    """
    A reading as as_json gave it; what is absent is empty.

    >>> parse_reading({"mood": "orders", "limits": [{"text": "under $5"}]}).limits
    (Limit(text='under $5', key=None, value=None),)
    """
    return msgspec.convert(value, Reading)


def overall_mood(clauses: Sequence[Clause]) -> Mood:
    """
    The mood of a message: it orders if any clause does, else asks if any does.

    >>> overall_mood((Clause("I live in Bern.", "tells"), Clause("Is it far?", "asks")))
    'asks'
    """
    said = {clause.mood for clause in clauses}
    return next((cast(Mood, mood) for mood in ("orders", "asks") if mood in said), "tells")


_KEY_FORM = re.compile(r"[a-z][a-z0-9_]{0,47}")
_LIMIT_KEY = re.compile(r"[a-z][a-z0-9_]{0,47}(?::\w{1,40})?")
_NO_KEYS = ("said_t",)  # beginnings of keys that code gives
_AROUND = " \t\n\"'“”‘’.,;:!?…"
_END_MARKS = re.compile(r"[.!?…]+")
T = TypeVar("T")


def check_reading(
    written: object, *, query: str, refs: Collection[str], is_open: bool
) -> tuple[Reading, list[str]]:
    """
    A reading that a model wrote, less what cannot be so: words that are not in the query, ids that are not
    on offer, days that are none. Nothing else is judged again.

    Args:
        written: What stands under `reading` in a reply; parts may be missing, null or of any type.
        query: The raw query, in which every quoted part must stand, but for signs, blanks and capitals.
        refs: The session's entities.
        is_open: Whether a question is open, so that there is something to agree to.

    Returns:
        The reading, its quoted words as they stand in the query, and what was taken out, in words. A part
        that is missing is empty.

    >>> reading, dropped = check_reading({"mood": "orders", "exclusions": [
    ...     {"ref": "e1", "action": "drop", "words": "Forget the HP"},
    ...     {"ref": "e9", "action": "drop", "words": "Forget the HP"},
    ... ]}, query="forget the  HP.", refs=["e1"], is_open=False)
    >>> reading.exclusions
    (Excluded(ref='e1', action='drop', words='forget the  HP'),)
    >>> dropped
    ["exclusions[1]: there is no entity 'e9'"]
    """
    if not isinstance(written, Mapping):
        return Reading(), ["all of it: it is no object"]
    check = _Checked(written, query, frozenset(refs))
    clauses = tuple(check.each("clauses", check.clause))
    mood = check.one_of(written, "mood", get_args(Mood))
    agreement = check.one_of(written, "agreement", get_args(Agreement))
    if agreement in ("agrees", "declines") and not is_open:
        check.drop("agreement", "no question is open")
    reading = Reading(
        mood=cast(Mood, mood) if mood else overall_mood(clauses) if clauses else "asks",
        clauses=clauses,
        references=tuple(check.each("references", check.reference)),
        exclusions=tuple(check.each("exclusions", check.exclusion)),
        clears=check.quoted(written, "clears", "clears"),
        periods=tuple(check.each("periods", check.period)),
        limits=tuple(check.each("limits", check.limit)),
        agreement=cast(Agreement, agreement or "neither") if is_open else None,
        recap=check.flag("recap"),
        all=check.flag("all"),
        statements=tuple(check.each("statements", check.statement)),
    )
    return reading, check.dropped


@dataclass
class _Checked:
    """One written reading on its way through the checks."""

    written: Mapping[str, Any]  # as the model wrote it
    query: str  # what is quoted
    refs: frozenset[str]  # ids that there are
    dropped: list[str] = field(default_factory=list)  # what was taken out

    def drop(self, place: str, why: str) -> None:
        self.dropped.append(f"{place}: {why}")

    def each(self, name: str, part: Callable[[Mapping[str, Any], str], Iterator[T]]) -> Iterator[T]:
        """What the entries of a list come to."""
        entries = self.written.get(name)
        if entries is None:
            return
        if not isinstance(entries, list):
            self.drop(name, "it is no list")
            return
        for n, entry in enumerate(entries):
            place = f"{name}[{n}]"
            if isinstance(entry, Mapping):
                yield from part(entry, place)
            else:
                self.drop(place, "it is no object")

    def flag(self, name: str) -> bool:
        value = self.written.get(name)
        if value is not None and not isinstance(value, bool):
            self.drop(name, f"{value!r:.40} is neither true nor false")
        return value is True

    def one_of(
        self, entry: Mapping[str, Any], name: str, known: Collection[str], place: str | None = None
    ) -> str | None:
        value = entry.get(name)
        if value is not None and value not in known:
            self.drop(place or name, f"{name} is {value!r:.40}, not one of {', '.join(known)}")
            return None
        return cast(str | None, value)

    def quoted(self, entry: Mapping[str, Any], name: str, place: str) -> str | None:
        """Words as they stand in the query; None if they don't, or there are none."""
        words = entry.get(name)
        if words is None or words == "":
            return None
        place_in_query = find_span(words, self.query) if isinstance(words, str) else None
        if place_in_query is None:
            self.drop(place, f"{words!r:.80} does not stand in the query")
        return place_in_query

    def said(self, entry: Mapping[str, Any], name: str, place: str) -> str | None:
        """The same for words that must be there."""
        if not entry.get(name):
            self.drop(place, f"it has no {name}")
            return None
        return self.quoted(entry, name, place)

    def clause(self, entry: Mapping[str, Any], place: str) -> Iterator[Clause]:
        text, mood = self.said(entry, "text", place), self.one_of(entry, "mood", get_args(Mood), place)
        if text and mood:
            yield Clause(text, cast(Mood, mood))

    def reference(self, entry: Mapping[str, Any], place: str) -> Iterator[Referred]:
        words, refs = self.said(entry, "words", place), entry.get("refs")
        given = refs if isinstance(refs, list) else [] if refs is None else [refs]
        known = tuple(dict.fromkeys(one for one in given if isinstance(one, str) and one in self.refs))
        for one in given:
            if one not in known:
                self.drop(place, f"there is no entity {one!r:.40}")
        if words:
            yield Referred(words, known)

    def exclusion(self, entry: Mapping[str, Any], place: str) -> Iterator[Excluded]:
        ref, words = entry.get("ref"), self.said(entry, "words", place)
        action = self.one_of(entry, "action", get_args(Action), place)
        if not isinstance(ref, str) or ref not in self.refs:
            self.drop(place, f"there is no entity {ref!r:.40}")
        elif words and action:
            yield Excluded(ref, cast(Action, action), words)

    def period(self, entry: Mapping[str, Any], place: str) -> Iterator[Days]:
        words, start, end = self.said(entry, "words", place), _day(entry, "start"), _day(entry, "end")
        if start is None or end is None or end < start:
            self.drop(place, f"{entry.get('start')!r:.40} to {entry.get('end')!r:.40} are no days")
        elif words:
            yield Days(str(start), str(end), words)

    def limit(self, entry: Mapping[str, Any], place: str) -> Iterator[Limit]:
        text, value = self.said(entry, "text", place), entry.get("value")
        if not text:
            return
        key = _key(entry, _LIMIT_KEY)
        if key is not None and isinstance(value, str | int | float) and not isinstance(value, bool):
            yield Limit(text, key, value)
            return
        if value is not None:
            self.drop(place, f"the key {entry.get('key')!r:.40} with the value {value!r:.40}")
        yield Limit(text)

    def statement(self, entry: Mapping[str, Any], place: str) -> Iterator[Statement]:
        """A statement; one whose key, value or entity can't be so is kept without them."""
        text, key, value = self.said(entry, "text", place), _key(entry, _KEY_FORM), entry.get("value")
        action = self.one_of(entry, "action", get_args(Change), place)
        if not text:
            return
        bare = Statement(text, action="corrects" if action == "corrects" else None)
        values = value if isinstance(value, list) else [] if value in (None, "") else [value]
        if not values:
            yield bare
            return
        entity = entry.get("entity") or None
        within = [find_span(one, text) if isinstance(one, str) else None for one in values]
        about = find_span(entity, text) if isinstance(entity, str) else None
        if key is None or None in within or (entity is not None and about is None):
            told = f"the key {entry.get('key')!r:.40} with the value {value!r:.60}"
            self.drop(place, told + (f" of {entity!r:.40}" if entity else ""))
            yield bare
            return
        found = tuple(one for one in within if one is not None)
        for one in found if action == "removes" else ():
            yield Statement(text, key, one, about, "removes")
        if action != "removes":
            is_list = action == "adds" or len(found) > 1
            yield Statement(text, key, found if is_list else found[0], about, cast(Change | None, action))


def find_span(words: str, text: str) -> str | None:
    """
    Words as they stand in a text, whatever their capitals, blanks and signs; None if they don't.

    >>> find_span("i'm  in Bern.", "Well, I’m in\\nBern. Nice!"), find_span("and", "sand")
    ('I’m in\\nBern.', None)
    """
    parts = [re.escape(part) for part in plain_signs(words).strip(_AROUND).split()]
    if not parts:
        return None
    plain = plain_signs(text)
    match = re.search(r"(?<!\w)" + r"\s+".join(parts) + r"(?!\w)", plain, re.IGNORECASE)
    if match is None:
        return None
    ends = _END_MARKS.match(plain, match.end()) if _END_MARKS.search(words.rstrip()[-1:]) else None
    return text[match.start() : ends.end() if ends else match.end()]


def _day(entry: Mapping[str, Any], name: str) -> date | None:
    try:
        return date.fromisoformat(str(entry.get(name)))
    except ValueError:
        return None


def _key(entry: Mapping[str, Any], form: re.Pattern[str]) -> str | None:
    key = entry.get("key")
    plain = re.sub(r"[\s-]+", "_", key.strip().lower()) if isinstance(key, str) else ""
    return plain if form.fullmatch(plain) and not plain.startswith(_NO_KEYS) else None
