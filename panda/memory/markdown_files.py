"""preferences.md and facts.md beside the log: what differs, edits by hand, and the lines to change."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from panda.documents.memory_file import MemoryEntry, MemoryText, parse_memory_file, render_value
from panda.documents.record_codec import Whole, encode
from panda.documents.times import parse_time
from panda.documents.yaml_text import as_read
from panda.errors import FileFormatError, StoreError
from panda.index.sources import IndexEntry
from panda.memory.assertion_log import Extent, MemoryLog
from panda.memory.confidence import MISSING, TYPED_BY_HAND
from panda.memory.fact_reader import Kind, file_value, typed_value
from panda.store.fact_records import EPOCH, Assertion, Conflict, SaidKind, Subject, Value, entity_name
from panda.store.files import check_links, read_bytes, read_memory_file
from panda.store.layout import UserStore
from panda.store.records import Snapshot, parse
from panda.store.seals import text_digest

KINDS: tuple[Kind, ...] = ("preference", "fact")
_TITLES = {"preference": "Preferences", "fact": "Facts"}
_LEAST = 0.01
_NO_FILE = "none"
Verdict = Literal["same", "typed", "deleted", "stale"]
"""same: the file shows what the log says. typed and deleted: by hand. stale: the log went on."""


def split_key(key: str, kind: Kind, user: str) -> tuple[str, str]:
    """
    Entity and relation of a key that somebody typed.

    >>> split_key("Acme Corp#ceo", "fact", "ann"), split_key("c#", "fact", "ann")
    (('acme-corp', 'ceo'), ('user:ann', 'c#'))
    >>> split_key("a#b", "preference", "ann")
    ('user:ann', 'a#b')
    """
    entity, _, relation = key.partition("#")
    if kind == "preference" or not entity.strip() or not relation.strip():
        return f"user:{user}", key
    return entity_name(entity), relation


def canonical_key(key: str, kind: Kind, user: str) -> str | None:
    """The key that panda writes where somebody typed a key; None for one that no memory can have."""
    subject = Subject("local", *split_key(key, kind, user))
    return subject.key(user) if subject.relation.strip() and not subject.is_system else None


def shown_in(kind: SaidKind, entity: str, user: str) -> Kind:
    return "preference" if kind == "preference" and entity == f"user:{user}" else "fact"


def says(raw: object, value: Value) -> bool:
    """Return whether what a memory file holds is what it shows for a value, as 1e+300 for a number."""
    typed = render_value(raw) if isinstance(raw, Mapping) else raw
    return typed_value(typed).key == typed_value(as_read(file_value(value))).key


@dataclass(frozen=True)
class Standing:
    subject: Subject
    live: tuple[Assertion, ...]  # what competes now, the winner first; empty if nothing lives
    past: tuple[Assertion, ...]  # the same with what has expired

    @property
    def winner(self) -> Assertion | None:
        """Return the assertion that holds; an expired one if no other does."""
        return next(iter(self.live or self.past), None)

    @property
    def expired(self) -> bool:
        return bool(self.past) and not self.live

    def is_shown_by(self, entry: MemoryEntry | None) -> bool:
        if self.winner is None or entry is None:
            return entry is None and (self.winner is None or self.expired)
        return _says(entry, self.winner)


def _says(entry: MemoryEntry, assertion: Assertion) -> bool:
    return says(entry.value, assertion.value)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    kind: Kind
    key: str  # as the log has it
    subject: Subject
    entry: MemoryEntry | None  # what the file says; None if it does not have the key
    standing: Standing | None  # what the log says; None if it never spoke of it
    verdict: Verdict

    @property
    def is_relabelled(self) -> bool:
        """
        Return whether the value was typed over, and what stands beside it is still that of the former one.
        """
        entry = self.entry
        winner = self.standing.winner if self.standing else None
        if self.verdict != "typed" or entry is None or entry.is_bare or winner is None:
            return False
        noted = (entry.source_turn, entry.updated_at)
        return entry.updated_at is not None and noted == (winner.source_turn, winner.asserted_at)

    @property
    def is_new(self) -> bool:
        """Return whether what stands beside the value was not written for it."""
        return self.entry is None or self.entry.is_bare or self.is_relabelled

    @property
    def typed_confidence(self) -> float:
        if self.entry is None or self.is_new:
            return TYPED_BY_HAND
        confidence = self.entry.confidence
        return MISSING if confidence is None else max(confidence, _LEAST)  # 0 would retract it


class Shown(Whole, frozen=True):
    """A mark: up to where the memory files showed the log, and what they were."""

    assertions: int  # bytes of memory.jsonl
    conflicts: int  # bytes of conflicts.jsonl
    digests: Mapping[Kind, str]  # kind to a digest of its file


@dataclass(frozen=True)
class Bound:
    """What was there when a turn began; nothing else is read by it, however long it takes."""

    turn: int  # its number
    at: datetime  # when it began
    snapshot: Snapshot | None  # what it recorded; None for a turn of before: lower numbers, earlier instants
    is_apart: bool = False  # whether it is run outside the store, which may hold a turn of its number
    memory: "Projection | None" = None  # the memory of then, where it was read then
    sources: Mapping[str, Sequence[IndexEntry]] = field(default_factory=dict)
    """Entries of what the index lacks, or has as it is now, by source."""
    beside: frozenset[int] = frozenset()  # turns outside the store that it may read

    def holds(self, number: int) -> bool:
        if number == self.turn or number in self.beside:
            return True
        return number < self.turn if self.snapshot is None else self.snapshot.holds(number)


def known_then(log: MemoryLog, bound: Bound) -> list[Assertion]:
    """
    The assertions that were there when a turn began: those up to the last that was recorded; what others have
    put between them since is judged by its time. Without a record, or if the last one is gone (forgotten, or
    asserted anew by a batch): those that were asserted by then, in turns that were there; what was typed, set
    or reflected counts by its time alone.
    """
    mark = bound.snapshot.memory if bound.snapshot else None
    if mark is not None and mark.last is None:
        return []
    place = log.place(mark.last) if mark and mark.last else None
    if mark is None or place is None:
        then = (assertion for assertion in log.assertions if assertion.asserted_at <= bound.at)
        turns = ((assertion, assertion.source_turn) for assertion in then)
        return [
            assertion
            for assertion, turn in turns
            if turn is None or (turn != bound.turn and bound.holds(turn))
        ]
    assertions = log.assertions[: place + 1]
    if len(assertions) <= mark.assertions or mark.asserted_at is None:
        return assertions
    return [assertion for assertion in assertions if assertion.asserted_at <= parse_time(mark.asserted_at)]


_Places = dict[tuple[Kind, str], Standing]
"""What the log says, by file and key."""


class Projection:
    """Log and memory files of one user, read together; nothing is written but the mark."""

    def __init__(self, store: UserStore) -> None:
        self.user = store.user
        self.log = MemoryLog(store)
        self.paths: Mapping[Kind, Path] = {"preference": store.preferences, "fact": store.facts}
        self.texts: dict[Kind, str | None] = {}
        """The files as they are; None for one that is not there."""
        self.mark: Shown | None = None
        """What was noted when panda last wrote; None if it never did."""
        self._mark_path = store.memory_shown

    def refresh(self) -> None:
        """
        Read what there is. The mark comes first and the files last: whoever writes meanwhile does it in the
        other order, so what looks unshown can be shown already, but never the other way round.
        """
        self.mark = self._read_mark()
        self.log.refresh()
        if self.mark is not None and self.mark.assertions > self.log.extent.assertions:
            self.mark = None
        self.texts = {
            kind: read_memory_file(path) if path.exists() else None for kind, path in self.paths.items()
        }

    def with_only(
        self, assertions: Sequence[Assertion], conflicts: Sequence[Conflict], now: datetime
    ) -> "Projection":
        """Memory as if this were the whole log; in the files only what that changes is as then."""
        then = copy(self)
        then.mark = None
        then.log = self.log.with_only(assertions, conflicts)
        winners: dict[Subject, Assertion | None] = {}
        for subject in dict.fromkeys([*self.log.subjects("local"), *then.log.subjects("local")]):
            holds, held = (next(iter(log.contenders(subject, now=now)), None) for log in (self.log, then.log))
            if holds != held:
                winners[subject] = held
        then.texts = self.shown(winners)
        return then

    def as_of(self, bound: Bound, texts: Mapping[Kind, str | None] | None = None) -> "Projection":
        """Memory as it was when a turn began; *texts* are the memory files of then, where they were kept."""
        assertions = known_then(self.log, bound)
        fact_ids: set[str | None] = {None, *(assertion.id for assertion in assertions)}
        count = bound.snapshot.memory.conflicts if bound.snapshot and bound.snapshot.memory else None
        settled = [record for record in self.log.conflicts[:count] if record.resolution_fact in fact_ids]
        if texts is not None:
            then = copy(self)
            then.log = self.log.with_only(assertions, settled)
            then.texts = dict(texts)
            return then
        if len(assertions) == len(self.log.assertions):
            return self
        then = self.with_only(assertions, settled, bound.at)
        then.texts |= {kind: None for kind, text in self.texts.items() if text is None}
        local = (assertion for assertion in assertions if assertion.scope == "local")
        kinds = {shown_in(assertion.kind, assertion.entity, self.user) for assertion in local}
        for kind in KINDS:
            if kind not in kinds and then.texts[kind] == _empty_file(kind):
                then.texts[kind] = None  # panda made the file for something that was said later
        return then

    @property
    def digests(self) -> dict[str, str | None]:
        """Digest of each memory file by its name; None for one that is not there."""
        texts = ((self.paths[kind].name, self.texts.get(kind)) for kind in KINDS)
        return {name: None if text is None else text_digest(text) for name, text in texts}

    def shown(
        self, winners: Mapping[Subject, Assertion | None], typed: Mapping[Subject, Comparison] | None = None
    ) -> dict[Kind, str | None]:
        """
        The texts of both memory files with the lines of some keys brought up to date: what holds, or none.
        What was *typed* by hand, if the winner came of it, stays so. Raises DocumentError: an entry cannot be
        changed alone.
        """
        files: dict[Kind, MemoryText] = {}
        for subject, winner in winners.items():
            key = subject.key(self.user)
            by_hand = (typed or {}).get(subject)
            home = shown_in(winner.kind, subject.entity, self.user) if winner else None
            if subject.is_system:
                continue
            for kind in KINDS:
                entry = self.entry(kind, key)
                text = self.texts[kind]
                where = str(self.paths[kind])
                if kind != home and (text is None or not self._is_ours(kind, entry, subject)):
                    continue
                if kind not in files:
                    files[kind] = MemoryText(text or "", title=_TITLES[kind], where=where)
                typed_key = entry.key if entry else key
                if kind != home or winner is None:
                    files[kind].remove(typed_key)
                    continue
                value = file_value(winner.value)
                turn = winner.source_turn
                if by_hand is not None and by_hand.kind == kind and not by_hand.is_relabelled:
                    files[kind].relist(typed_key, value, turn)
                else:
                    sure = winner.confidence
                    at = winner.asserted_at
                    files[kind].set(typed_key, value, confidence=sure, source_turn=turn, updated_at=at)
        return self.texts | {kind: file.text for kind, file in files.items()}

    def _is_ours(self, kind: Kind, entry: MemoryEntry | None, subject: Subject) -> bool:
        assertions = [assertion for assertion in self.log.of(subject) if assertion.confidence > 0]
        if entry is not None:
            return any(_says(entry, assertion) for assertion in assertions)
        return all(shown_in(assertion.kind, subject.entity, self.user) == kind for assertion in assertions)

    def _read_mark(self) -> Shown | None:
        if not self._mark_path.exists():
            return None
        with suppress(FileFormatError, StoreError):
            return parse(Shown, read_bytes(self._mark_path), where=str(self._mark_path))
        return Shown(0, 0, {})  # a crash tore it: take nothing for shown

    def _mark_of_now(self) -> Shown:
        digests: dict[Kind, str] = {
            kind: _NO_FILE if text is None else hashlib.sha256(text.encode()).hexdigest()[:32]
            for kind, text in self.texts.items()
        }
        return Shown(*self.log.extent, digests)

    def write_mark(self) -> None:
        """Note that the files, as they are in `texts`, show the log as it was read."""
        mark = self._mark_of_now()
        if mark != self.mark:
            text = json.dumps(encode(mark)) + "\n"
            check_links(self._mark_path)
            with suppress(OSError):  # not synced: without it the log counts as further than the files
                self._mark_path.write_text(text, encoding="utf-8")
            self.mark = mark

    @property
    def is_settled(self) -> bool:
        return self.mark == self._mark_of_now()

    def entries(self, kind: Kind) -> dict[str, MemoryEntry] | None:
        """By key as in the log, without impossible ones; None if the file is not there or blank."""
        text = self.texts[kind]
        if text is None or not text.strip("\ufeff \t\r\n"):
            return None
        parsed_entries = parse_memory_file(text, where=str(self.paths[kind]))
        keyed = ((canonical_key(entry.key, kind, self.user), entry) for entry in parsed_entries)
        return {key: entry for key, entry in keyed if key is not None}

    def entry(self, kind: Kind, key: str) -> MemoryEntry | None:
        """One entry of a memory file, by key as the log has it. Raises DocumentError: it is corrupt."""
        own = parse_memory_file(self.texts[kind] or "", where=str(self.paths[kind]), only=key)
        if not own and "#" in key:  # perhaps its entity is typed in another way
            return (self.entries(kind) or {}).get(key)
        return own[0] if own else None

    def standing(self, subject: Subject, now: datetime) -> Standing:
        return _standing(self.log, subject, now)

    def compare(self, now: datetime) -> list[Comparison]:
        """
        Return what became of each key, file by file: in its order, then of those that it lacks, in that of
        the log. A key that is fact and preference is the preference's. Without a file nothing was deleted.
        """
        mark = self.mark and Extent(self.mark.assertions, self.mark.conflicts)
        went_on = mark is not None and mark != self.log.extent
        then = self.log.before(mark) if mark and went_on else self.log
        changed = dict.fromkeys(self.log.added_after(mark)) if mark and went_on else ()
        standings = self._by_key(self.log, self.log.subjects("local"), now)
        former = self._by_key(
            then, [subject for subject in changed if subject.scope == "local"], now, unsaid=KINDS
        )
        comparisons: list[Comparison] = []
        files = {kind: self.entries(kind) for kind in KINDS}
        preferred = files["preference"] or {}
        for kind in KINDS:
            entries = files[kind] or {}
            logged = [key for of, key in (*standings, *former) if of == kind]
            for key in dict.fromkeys([*entries, *logged]):
                entry = entries.get(key)
                standing = standings.get((kind, key))
                verdict = self._verdict(entry, standing, former.get((kind, key)))
                if verdict == "deleted" and files[kind] is None:
                    verdict = "stale"
                is_told = entry is not None or verdict != "same" or (standing and standing.expired)
                if is_told and not (kind == "fact" and verdict == "typed" and key in preferred):
                    subject = Subject("local", *split_key(key, kind, self.user))
                    subject = standing.subject if standing else subject
                    comparisons.append(
                        Comparison(
                            kind=kind,
                            key=key,
                            subject=subject,
                            entry=entry,
                            standing=standing,
                            verdict=verdict,
                        )
                    )
        return comparisons

    def typed(self, comparison: Comparison) -> Assertion:
        """Return the assertion of what was typed by hand."""
        assert comparison.entry is not None
        return Assertion(
            *(
                "",
                comparison.subject.entity,
                comparison.subject.relation,
                typed_value(comparison.entry.value),
            ),
            *(f"file:{self.paths[comparison.kind].name}", comparison.typed_confidence, "local"),
            kind=comparison.kind,
            source_turn=None if comparison.is_new else comparison.entry.source_turn,
            asserted_at=(not comparison.is_new and comparison.entry.updated_at) or EPOCH,
        )

    def _verdict(
        self, entry: MemoryEntry | None, standing: Standing | None, former: Standing | None
    ) -> Verdict:
        """*former*: what the log said when the file was last known to show it, if it spoke of it since."""
        before = former or standing
        went_on = former is not None
        winner = standing.winner if standing else None
        if standing.is_shown_by(entry) if standing else entry is None:
            dated = entry is None or winner is None or entry.updated_at in (None, winner.asserted_at)
            return "same" if dated or not went_on else "stale"
        won_before_it_expired = entry and standing and standing.past and _says(entry, standing.past[0])
        if won_before_it_expired or (went_on and before and before.is_shown_by(entry)):
            return "stale"
        if entry is None:
            return "stale" if went_on else "deleted"
        subject_standing = standing or before
        assertions = self.log.of(subject_standing.subject) if subject_standing and went_on else ()
        was_said = any(
            assertion.asserted_at == entry.updated_at and _says(entry, assertion) for assertion in assertions
        )
        return "stale" if was_said else "typed"

    def _by_key(
        self, log: MemoryLog, subjects: Sequence[Subject], now: datetime, *, unsaid: Sequence[Kind] = ()
    ) -> _Places:
        places: _Places = {}
        for subject in subjects:
            if subject.is_system:
                continue
            standing = _standing(log, subject, now)
            winner = standing.winner
            kinds = unsaid if winner is None else [shown_in(winner.kind, subject.entity, self.user)]
            for kind in kinds:
                places[kind, subject.key(self.user)] = standing
        return places


def _empty_file(kind: Kind) -> str:
    """A memory file as panda makes it, before it holds anything."""
    return MemoryText("", title=_TITLES[kind], where="").text


def _standing(log: MemoryLog, subject: Subject, now: datetime) -> Standing:
    past = tuple(log.contenders(subject, now=now, include_expired=True))
    live = tuple(
        assertion for assertion in past if assertion.valid_until is None or assertion.valid_until >= now
    )
    return Standing(subject, live, past)
