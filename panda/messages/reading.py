"""What a message means, read once: its mood, what it refers to, what it rules out, limits and keeps. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import Annotated, Any, Literal, cast

import msgspec

from panda.language.patterns import lazy_pattern
from panda.language.text import plain_signs

MESSAGE_CHARS = 4_000
"""As much of a message is read by the rules on what it means; a query has at most 500 tokens."""
LimitValue = str | int | float | None
Mood = Literal["asks", "tells", "orders"]
Action = Literal["drop", "demote", "keep"]
Change = Literal["adds", "removes", "corrects"]
Agreement = Literal["agrees", "declines", "neither"]


NodeId = Annotated[str, msgspec.Meta(pattern=r"^[^/\x00\n]+\Z")]


class ReadingPart(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of a reading; what is empty is not written."""


class Clause(ReadingPart, frozen=True):
    """A part of the message that does one thing."""

    text: str  # as it stands
    mood: Mood  # what it does


class Referred(ReadingPart, frozen=True):
    """Words that stand for things that were spoken of."""

    words: str  # as they stand
    refs: tuple[str, ...] = msgspec.field(default_factory=lambda: ())  # never left out
    """Refs of the session's entities, or a turn as "turn:12"; empty if it is not known which."""


class Excluded(ReadingPart, frozen=True):
    """What is to happen with a thing that was spoken of."""

    ref: str  # ref of the session's entity
    action: Action  # never again, not now, or back again
    words: str  # the words that say so


class Days(ReadingPart, frozen=True):
    """A period that is spoken of."""

    start: str  # first day, as 2026-11-22
    end: str  # last day
    words: str  # the words that say so


class Limit(ReadingPart, frozen=True):
    """What limits the things that are looked for."""

    text: str  # the words that say so
    key: str | None = None  # what it limits; None if that is not known
    value: LimitValue = None  # to what; None if that is not known


class Statement(ReadingPart, frozen=True):
    """What is to be kept."""

    text: str  # as it stands
    key: str | None = None  # relation; None unless sure
    value: str | tuple[str, ...] | None = None
    """Its value, verbatim; of a relation with several those that are named; None unless sure."""
    entity: str | None = None  # whom or what it is about; None for the user
    action: Change | None = None
    """What it does to what was said before: adds to several values, removes one, or corrects it."""


class ToldPlace(ReadingPart, frozen=True):
    """A clause within a sentence that was told."""

    node: NodeId  # of the sentence
    start: int = msgspec.field(default_factory=lambda: 0)  # where the clause begins, in characters
    sentence_chars: int = msgspec.field(default_factory=lambda: 0)
    """Length of the sentence; one of another length was rewritten since."""


class Reading(ReadingPart, frozen=True):
    """What a message means."""

    mood: Mood = msgspec.field(default_factory=lambda: "asks")  # never left out
    """Of the whole: orders if any sentence orders, else asks if any asks, else tells."""
    clauses: tuple[Clause, ...] = ()  # the message in order
    references: tuple[Referred, ...] = ()  # in order
    exclusions: tuple[Excluded, ...] = ()  # what it rules out, or wants to keep
    clears: str | None = None  # the words that start over; None if none do
    periods: tuple[Days, ...] = ()  # in order
    limits: tuple[Limit, ...] = ()  # in order
    agreement: Agreement | None = None  # what it says to the open question; None where none is open
    talk: bool = False  # whether it tells, asks and orders nothing
    pasted: bool = False  # whether it is a document that is handed over with nothing asked of it
    of_documents: bool = False
    """Whether it asks nothing of its own, as "Summarise the risks", of documents that were handed over."""
    recap: bool = False  # whether it looks back on the conversation as a whole
    all: bool = False  # whether the whole of a list is wanted
    details: bool = False  # whether all that a page says of a thing is wanted, and not one value
    now: bool = False  # whether it asks how things are by now, and not how they were
    address: bool = False  # whether it asks where on the web something is
    statements: tuple[Statement, ...] = ()  # what it tells that is to be kept
    forgets: bool = False  # whether something that is kept is to be forgotten
    forget: tuple[NodeId, ...] = ()  # nodes of what that is or may be, one for each thing
    forget_places: tuple[ToldPlace, ...] = ()  # where the clauses stand that those of `forget` mean
    asks_to_forget: bool = False  # whether the user is asked before anything is forgotten
    not_stored: tuple[str, ...] = ()  # clauses that tell what the user asks not to be stored

    @property
    def is_about_memory(self) -> bool:
        """Return whether the message asks for nothing but that something is forgotten, or is not stored."""
        asks = any(clause.mood == "asks" for clause in self.clauses)
        return self.forgets or (bool(self.not_stored) and not asks)

    @property
    def only_tells(self) -> bool:
        """
        Return whether nothing is looked for: the message is small talk or pasted, or all of it is stored.
        """
        is_kept = bool(self.statements) and all(clause.mood == "tells" for clause in self.clauses)
        return self.mood == "tells" and (self.talk or self.pasted or is_kept)

    @property
    def turns(self) -> list[str]:
        """Return the turns that it names by number, as "turn:12"."""
        return [ref for reference in self.references for ref in reference.refs if ref.startswith("turn:")]


def overall_mood(moods: Iterable[Mood]) -> Mood:
    """
    Return "orders" if any part of a message orders, else "asks" if any asks, else "tells"; "asks" without
    parts.
    """
    distinct = set(moods) or {"asks"}
    return next((cast(Mood, mood) for mood in ("orders", "asks") if mood in distinct), "tells")


_KEY_FORM = lazy_pattern(r"(?!said_t)[a-z][a-z0-9_]{0,47}")  # code gives the keys that begin with said_t
_LIMIT_KEY = lazy_pattern(_KEY_FORM.pattern + r"(?::\w{1,40})?")
_AROUND = " \t\n\"'“”‘’.,;:!?…"
_END_MARKS = lazy_pattern(r"[.!?…]+")


def check_reading(
    written: object, *, query: str, refs: Collection[str], is_open: bool, kept: Collection[str] = ()
) -> tuple[Reading, list[str]]:
    """
    Return a reading that a model wrote, parts missing or of any type, less what cannot be so: words that are
    not in the query (but for signs, blanks and capitals), ids that are not on offer (*refs* of the session,
    nodes *kept*), days that are none, agreement where no question *is_open*. Gives it with its words as they
    stand in the query, and what was taken out, in words. Nothing else is judged again.
    """
    if not isinstance(written, Mapping):
        return Reading(), ["all of it: it is no object"]
    dropped: list[str] = []

    def drop(place: str, why: str) -> None:
        dropped.append(f"{place}: {why}")

    def typed(value: object, form: Any, place: str) -> Any:
        try:
            return msgspec.convert(value, form)
        except msgspec.ValidationError as exc:
            drop(place, str(exc))
            return None

    def quoted(words: object, place: str) -> str | None:
        span = find_span(words, query) if isinstance(words, str) else None
        if span is None:
            drop(place, f"{words!r:.80} does not stand in the query")
        return span

    def entries(name: str, words: str) -> Iterator[tuple[Mapping[str, Any], str, str]]:
        """Yield each entry that quotes the query, its place, and what it quotes."""
        for n, entry in enumerate(typed(written.get(name), list[object] | None, name) or ()):
            place = f"{name}[{n}]"
            if not isinstance(entry, Mapping):
                drop(place, "it is no object")
            elif entry.get("action") == "keep" and entry.get(words) == "":
                yield entry, place, ""  # it is named again
            elif text := quoted(entry.get(words), place):
                yield entry, place, text

    def find_offered(candidates: object, ids: Collection[str], place: str) -> tuple[str, ...]:
        if not isinstance(candidates, list):
            candidates = [] if candidates is None else [candidates]
        there = tuple(dict.fromkeys(ref for ref in candidates if isinstance(ref, str) and ref in ids))
        for ref in candidates:
            if ref not in there:
                drop(place, f"there is no entity {ref!r:.40}")
        return there

    def days(start: object, end: object, place: str) -> bool:
        first, last = (typed(day, date, place) for day in (start, end))
        if first and last and first > last:
            drop(place, f"{end} is before {start}")
        return bool(first and last and first <= last)

    def limit(entry: Mapping[str, Any], place: str, text: str) -> Limit:
        key = _key(entry, _LIMIT_KEY)
        value = entry.get("value")
        if key is not None and isinstance(value, str | int | float) and not isinstance(value, bool):
            return Limit(text, key, value)
        if value is not None:
            drop(place, f"the key {entry.get('key')!r:.40} with the value {value!r:.40}")
        return Limit(text)

    def read_statements(entry: Mapping[str, Any], place: str, text: str) -> list[Statement]:
        action: Change | None = typed(entry.get("action"), Change | None, place)
        key = _key(entry, _KEY_FORM)
        value = entry.get("value")
        entity = entry.get("entity") or None
        values = [] if value in (None, "") else [value]
        if isinstance(value, list):
            values = value
        *spans, about = (
            find_span(part, text) if isinstance(part, str) else None for part in (*values, entity)
        )
        quotes = tuple(span for span in spans if span)
        if not values or key is None or len(quotes) < len(values) or (entity and not about):
            if values:
                whose = f" of {entity!r:.40}" if entity else ""
                drop(place, f"the key {entry.get('key')!r:.40} with the value {value!r:.60}{whose}")
            return [Statement(text, action="corrects" if action == "corrects" else None)]
        if action == "removes":
            return [Statement(text, key, part, about, "removes") for part in quotes]
        is_list = action == "adds" or len(quotes) > 1
        return [Statement(text, key, quotes if is_list else quotes[0], about, action)]

    clauses = [
        Clause(text, mood)
        for entry, place, text in entries("clauses", "text")
        if (mood := typed(entry.get("mood"), Mood, place))
    ]
    exclusions = [
        Excluded(ref, action, words)
        for entry, place, words in entries("exclusions", "words")
        for ref in find_offered([entry.get("ref")], refs, place)
        if (action := typed(entry.get("action"), Action, place))
    ]
    agreement = typed(written.get("agreement"), Agreement | None, "agreement")
    if agreement in ("agrees", "declines") and not is_open:
        drop("agreement", "no question is open")
    forget = find_offered(written.get("forget"), kept, "forget")
    statements = [part for entry in entries("statements", "text") for part in read_statements(*entry)]
    reading = Reading(
        mood=typed(written.get("mood"), Mood | None, "mood")
        or overall_mood(clause.mood for clause in clauses),
        clauses=tuple(clauses),
        references=tuple(
            Referred(words, find_offered(entry.get("refs"), refs, place))
            for entry, place, words in entries("references", "words")
        ),
        exclusions=tuple(exclusions),
        clears=quoted(written["clears"], "clears") if written.get("clears") else None,
        periods=tuple(
            Days(entry["start"], entry["end"], words)
            for entry, place, words in entries("periods", "words")
            if days(entry.get("start"), entry.get("end"), place)
        ),
        limits=tuple(limit(*entry) for entry in entries("limits", "text")),
        agreement=agreement or "neither" if is_open else None,
        talk=typed(written.get("talk"), bool | None, "talk") is True,
        recap=typed(written.get("recap"), bool | None, "recap") is True,
        all=typed(written.get("all"), bool | None, "all") is True,
        statements=() if forget else tuple(statements),
        forgets=bool(forget),
        forget=forget,
    )
    return reading, dropped


def find_span(words: str, text: str) -> str | None:
    """
    Return words as they stand in a text, whatever their capitals, blanks and signs; None if they do not.
    """
    if words.strip() == words and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text):
        return words
    parts = [re.escape(part) for part in plain_signs(words).strip(_AROUND).split()]
    plain = plain_signs(text)
    match = re.search(r"(?<!\w)" + r"\s+".join(parts) + r"(?!\w)", plain, re.IGNORECASE) if parts else None
    if match is None:
        return None
    ends = _END_MARKS.match(plain, match.end()) if _END_MARKS.search(words.rstrip()[-1:]) else None
    return text[match.start() : ends.end() if ends else match.end()]


def _key(entry: Mapping[str, Any], form: re.Pattern[str]) -> str | None:
    key = entry.get("key")
    plain = re.sub(r"[\s-]+", "_", key.strip().lower()) if isinstance(key, str) else ""
    return plain if form.fullmatch(plain) else None
