"""The tables of the index, how sources get into them, and a user's entries as of a moment."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from sqlite3 import Connection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panda.documents.progress import progress
from panda.documents.safe_text import unescape_path
from panda.errors import Location, NoteFormatError, Problem, Verdict
from panda.index.sources import (
    BROKEN,
    COLUMNS,
    NOTES,
    IndexEntry,
    IndexSource,
    find_note_files,
    read_sources,
    scan,
    skipped_files,
    turn_of,
    turns_stamp,
)
from panda.language.words import split_terms
from panda.store.layout import FACTS_MD, PREFERENCES_MD, UserStore
from panda.store.node_id import NodeKind, kind_of
from panda.store.records import Ranges

Integers = NDArray[np.int64]
Positions = NDArray[np.intp]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

_MOST_COUNT = 255  # as many times a term counts in one entry
_SHORT_SOURCES = 200  # of which taking in needs no word about how far it is
_BATCH = 4_000  # sources that are written together
_NEWEST = 64  # so many turns are looked at each time
_CUT = "2:"  # how notes are cut into lines: where it changes, their lines get new vectors
_FIELDS = ", ".join(IndexEntry._fields)
_NUMBERS = "row, turn, length, session_key, seconds, content"
SCHEMA = (
    "CREATE TABLE users (user TEXT PRIMARY KEY, turns TEXT) WITHOUT ROWID",
    "CREATE TABLE sources (user TEXT, turn INTEGER, path TEXT, stamp TEXT, is_settled INTEGER, digest TEXT,"
    " faults TEXT,"
    " PRIMARY KEY (user, turn, path)) WITHOUT ROWID",
    "CREATE INDEX sources_unsettled ON sources (user) WHERE NOT is_settled",
    f"CREATE TABLE documents (user TEXT, {_FIELDS}, length INTEGER, session_key INTEGER, content INTEGER,"
    " PRIMARY KEY (user, row)) WITHOUT ROWID",
    f"CREATE INDEX documents_numbers ON documents (user, {_NUMBERS})",
    "CREATE INDEX documents_path ON documents (user, turn, path)",
    "CREATE INDEX documents_node ON documents (user, node_id)",
    "CREATE TABLE postings (user TEXT, term TEXT, row INTEGER, n INTEGER, PRIMARY KEY (user, term, row))"
    " WITHOUT ROWID",
)
TABLES = ("users", "sources", "documents", "postings")
_BY_TURN = "documents INDEXED BY documents_path WHERE user = ? AND turn"  # SQLite would look at all of a user
_BY_PATH = f"{_BY_TURN} = 0 AND path = ?"
_BY_NODE = "documents INDEXED BY documents_node WHERE user = ? AND node_id"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Where index and files of a user differ."""

    changed: Mapping[str, str]  # sources that are new or were written since, with their stamps
    removed: tuple[str, ...]  # sources that are gone
    retried: frozenset[str]  # those of *changed* that could not be read the last time
    rows: Mapping[str, int]  # number of entries in the index by source type, where all was looked at
    turns: str | None  # stamp of the turns directory, taken before looking; None without a user
    turns_known: str | None  # that of when it was last taken in; None if the user never was

    @property
    def sources(self) -> set[str]:
        """All sources that differ, those that cannot be read left out."""
        return {*self.changed, *self.removed} - self.retried


@dataclass(frozen=True)
class SyncReport:
    """What bringing the index in line with the files did."""

    updated: int = 0  # files or turns whose entries were written anew
    removed: int = 0  # files or turns that are gone from the index
    problems: tuple[Problem, ...] = ()  # files that cannot be read or parsed; their entries are not there
    faults: tuple[NoteFormatError, ...] = ()
    """What of the notes is read as text, files that are no notes: of all notes, where all was looked at."""
    behind: int = 0  # changed files or turns that were not taken in: another process is writing


@lru_cache(maxsize=10_000)
def session_key(session: str) -> int:
    """A session id as a number other than 0."""
    return int.from_bytes(hashlib.sha256(session.encode("utf-8", "replace")).digest()[:7], "big") + 1


def _numbers_of(entry: IndexEntry, length: int) -> tuple[int, ...]:
    """Return the numbers that ranking needs of an entry with so many terms, in the order of _NUMBERS."""
    session = 0 if entry.session is None else session_key(entry.session)
    cut = _CUT if kind_of(entry.node_id) is NodeKind.KNOWLEDGE else ""
    text = "\0".join([cut + entry.node_id, *(getattr(entry, column) for column in COLUMNS)])
    content = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)
    return entry.row, entry.turn, length, session, entry.seconds, content


def _written_faults(faults: Sequence[NoteFormatError]) -> str:
    if not faults:
        return ""
    return json.dumps([(fault.message, fault.line, fault.key, fault.fix) for fault in faults])


class UserTables:
    """What the tables hold of one user, and how it gets there."""

    def __init__(self, connection: Connection, user: str) -> None:
        self._connection = connection
        self.user = user

    def _rows(self, query: str, *values: object) -> list[Any]:
        return self._connection.execute(query, (self.user, *values)).fetchall()

    def _numbers(self, query: str) -> Integers:
        return np.fromiter(chain.from_iterable(self._connection.execute(query, (self.user,))), np.int64)

    def turns_stamp(self) -> str | None:
        """The stamp of the turns directory as of when it was last taken in; None: the user never was."""
        return next((stamp for (stamp,) in self._rows("SELECT turns FROM users WHERE user = ?")), None)

    def compare(self, store: UserStore, turns: Collection[int] | None) -> Difference:
        """
        Return where the tables and the user's files differ. Looks at memory files and notes, and at some
        turns beside those that came, went, or may have changed where no directory tells: the newest, and
        those unsaved or broken. None looks at all.
        """
        stamp = turns_stamp(store)
        stamp_known = self.turns_stamp()
        query = "SELECT path, stamp FROM sources WHERE user = ?"
        rows = dict[str, int]()
        if turns is None or stamp_known is None:
            numbers = set(store.listed_numbers())
            known_stamps = dict(self._rows(query))
            of_type = "SELECT source_type, count(*) FROM documents WHERE user = ? GROUP BY 1 ORDER BY 1"
            rows = dict(self._rows(of_type))
        else:
            newest = f"SELECT turn FROM sources WHERE user = ?1 ORDER BY turn DESC LIMIT {_NEWEST}"
            unsettled = (
                "SELECT turn FROM sources INDEXED BY sources_unsettled WHERE user = ?1 AND NOT is_settled"
            )
            numbers = {turn for (turn,) in self._rows(f"{unsettled} UNION SELECT turn FROM ({newest})")}
            if stamp != stamp_known:
                taken = self._numbers("SELECT turn FROM sources WHERE user = ? AND turn > 0")
                numbers |= {*np.setxor1d(taken, np.fromiter(store.listed_numbers(), np.int64)).tolist()}
            numbers = numbers.union(turns) - {0}
            some = (self._rows(f"{query} AND turn = ?", turn) for turn in (0, *numbers))
            known_stamps = dict(chain.from_iterable(some))
        on_disk = scan(store, sorted(numbers))
        changed = {source: there for source, there in on_disk.items() if known_stamps.get(source) != there}
        retried = frozenset(source for source in changed if known_stamps.get(source) == BROKEN)
        removed = tuple(source for source in known_stamps if source not in on_disk)
        return Difference(
            changed=changed,
            removed=removed,
            retried=retried,
            rows=rows,
            turns=stamp,
            turns_known=stamp_known,
        )

    def take_in(self, store: UserStore, turns: Collection[int] | None) -> SyncReport:
        """Bring the entries in line with what differs where compare looks."""
        difference = self.compare(store, turns)
        problems = list[Problem]()
        updated = 0
        order = sorted({*difference.changed, *difference.removed})
        is_long = turns is None or len(order) > _SHORT_SOURCES
        with progress("indexing", len(order) if is_long else 0) as advance:
            for start in range(0, len(order), _BATCH):
                gone: list[IndexEntry] = []
                added: list[IndexEntry] = []
                batch = order[start : start + _BATCH]
                stamps = {path: difference.changed[path] for path in batch if path in difference.changed}
                removed = ((path, IndexSource([])) for path in batch if path not in stamps)
                for path, source in chain(removed, read_sources(store, stamps)):
                    key = (turn_of(path), path)
                    former = self._entries_of(path)
                    entries = {entry.row: entry for entry in source.entries}
                    gone += (entry for row, entry in former.items() if entries.get(row) != entry)
                    added += (entry for row, entry in entries.items() if former.get(row) != entry)
                    self._rows("DELETE FROM sources WHERE user = ? AND turn = ? AND path = ?", *key)
                    if path in stamps:
                        stamp = BROKEN if source.problems else stamps[path]
                        is_settled = source.is_settled and not source.problems
                        row = (*key, stamp, is_settled, source.digest, _written_faults(source.faults))
                        self._rows("INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
                        updated += not source.problems and former != entries
                    problems += source.problems
                    advance()
                self._write(gone, added)
        self._rows("DELETE FROM users WHERE user = ?")
        if difference.turns is not None:
            self._rows("INSERT INTO users VALUES (?, ?)", difference.turns)
        faults = self._faults(store) if turns is None else ()
        return SyncReport(updated, len(difference.removed), tuple(problems), faults)

    def _faults(self, store: UserStore) -> tuple[NoteFormatError, ...]:
        query = "SELECT path, faults FROM sources WHERE user = ? AND turn = 0 AND faults != '' ORDER BY path"
        faults: list[NoteFormatError] = []
        for path, written in self._rows(query):
            where = f"{store.home}/{unescape_path(path)}"
            for message, line, key, fix in json.loads(written):
                place = Location(where, line=line, key=key)
                faults.append(NoteFormatError(message, place, fix=fix, verdict=Verdict.SOUND))
        skipped = find_note_files(str(store.knowledge)).skipped
        return (*faults, *skipped_files(store.knowledge, skipped))

    def _entries(self, condition: str, *values: object) -> list[IndexEntry]:
        return [IndexEntry(*row) for row in self._rows(f"SELECT {_FIELDS} FROM {condition}", *values)]

    def _entries_of(self, path: str) -> dict[int, IndexEntry]:
        """The entries of a source by row: of a turn all that lies in it."""
        turn = turn_of(path)
        entries = self._entries(f"{_BY_TURN} = ?", turn) if turn else self._entries(_BY_PATH, path)
        return {entry.row: entry for entry in entries}

    def _write(self, gone: Sequence[IndexEntry], added: Sequence[IndexEntry]) -> None:
        many = self._connection.executemany
        user = self.user
        former = sorted((user, term, entry.row) for entry in gone for term in set(split_terms(entry.text)))
        many("DELETE FROM postings WHERE user = ? AND term = ? AND row = ?", former)
        many("DELETE FROM documents WHERE user = ? AND row = ?", [(user, entry.row) for entry in gone])
        counted = [(entry, Counter(split_terms(entry.text))) for entry in added]
        numbers = (_numbers_of(entry, counts.total()) for entry, counts in counted)
        documents = [(user, *entry, n[2], n[3], n[5]) for entry, n in zip(added, numbers, strict=True)]
        marks = ", ".join("?" * (len(IndexEntry._fields) + 4))
        many(f"REPLACE INTO documents VALUES ({marks})", documents)
        postings = ((user, term, entry.row, n) for entry, counts in counted for term, n in counts.items())
        many(f"REPLACE INTO postings VALUES (?, ?, ?, min(?, {_MOST_COUNT}))", sorted(postings))


class Statistics:
    """
    What ranking has to know of a user's entries: arrays in the order of their rows, made of one of shape
    (6, n) with row, turn, length, session_key, seconds and content. The position after the last is "none".
    """

    def __init__(self, numbers: Integers) -> None:
        self.numbers = numbers
        self.rows, self.turns, lengths, self.sessions, self.times, self.contents = numbers
        """Row ids, turns first; turns in which they lie; session_key, 0 for no turn; times; digests."""
        self.lengths: Floats = lengths.astype(np.float32)  # number of terms of each
        self.count = len(self.rows)
        order = np.argsort(self.sessions, kind="stable")
        order = order[self.sessions[order] != 0]
        same = self.sessions[order][1:] == self.sessions[order][:-1]
        self.previous, self.following = (np.full(self.count + 1, self.count, np.intp) for _ in range(2))
        """Position of the previous and of the next turn of the same session; one entry more than rows."""
        self.previous[order[1:][same]] = order[:-1][same]
        self.following[order[:-1][same]] = order[1:][same]

    def find(self, rows: Integers) -> tuple[Positions, Mask]:
        """Positions of row ids, and which of them are there."""
        if not self.count:
            return np.zeros(len(rows), np.intp), np.zeros(len(rows), np.bool_)
        at = np.minimum(np.searchsorted(self.rows, rows), self.count - 1)
        return at, self.rows[at] == rows


@dataclass(frozen=True)
class AsOf:
    """What of the index counts for a turn: what was there when it began."""

    turns: Ranges  # the turns that were saved, and the turn itself: what lies in other turns is left out
    sources: Mapping[str, Sequence[IndexEntry]]  # what some sources gave then, whatever the tables hold


def in_ranges(*numbers: ArrayLike) -> tuple[tuple[int, int], ...]:
    """Numbers as ranges: first and last of each, ascending."""
    ordered = np.unique(np.concatenate([np.asarray(some, np.int64) for some in numbers]))
    firsts = ordered[np.diff(ordered, prepend=ordered[:1] - 2) > 1]
    lasts = ordered[np.diff(ordered, append=ordered[-1:] + 2) > 1]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))


class IndexView(UserTables):
    """The entries of one user that count at a moment, within a transaction; *statistics* are of all."""

    def __init__(
        self, connection: Connection, user: str, statistics: Statistics | None, as_of: AsOf | None
    ) -> None:
        super().__init__(connection, user)
        if statistics is None:
            flat = self._numbers(f"SELECT {_NUMBERS} FROM documents WHERE user = ? ORDER BY row")
            statistics = Statistics(flat.reshape(-1, 6).T.copy())
        self.statistics = self.all_statistics = statistics
        """Lengths, times and neighbours of the entries that count, and of all."""
        self.as_of = as_of
        self.then: dict[int, IndexEntry] = {}
        """Entries as they were of what the tables hold otherwise or not at all, by row."""
        self._terms: dict[int, Counter[str]] = {}
        self._hidden: set[int] = set()  # rows of what the tables hold instead
        if as_of is not None:
            self._bind(as_of)

    def _bind(self, as_of: AsOf) -> None:
        for name, entries in as_of.sources.items():
            now = {entry.row: entry for entry in self._find(_BY_PATH, name)}
            then = {entry.row: entry for entry in entries}
            if then != now:
                self.then |= then
                self._hidden |= now.keys() | then.keys()
        all_ = self.all_statistics
        firsts, lasts = np.array([(0, 0), *as_of.turns], np.int64).T
        counts: Mask = all_.turns <= lasts[np.searchsorted(firsts, all_.turns, "right") - 1]
        counts &= ~np.isin(all_.rows, list(self._hidden))
        if counts.all() and not self.then:
            return
        self._terms = {row: Counter(split_terms(entry.text)) for row, entry in self.then.items()}
        added = [_numbers_of(entry, self._terms[row].total()) for row, entry in self.then.items()]
        joined = np.concatenate(
            [all_.numbers[:, counts], np.reshape(added, (-1, 6)).astype(np.int64).T], axis=1
        )
        self.statistics = Statistics(joined[:, np.argsort(joined[0])])

    @property
    def turns(self) -> Integers:
        """Numbers of the turns that count, ascending."""
        numbers: Integers = self.statistics.rows[self.statistics.sessions != 0]
        return numbers

    def session_turns(self, session: str) -> list[int]:
        """Numbers of the turns of a session that count, ascending."""
        numbers: list[int] = self.statistics.rows[self.statistics.sessions == session_key(session)].tolist()
        return numbers

    def postings(self, term: str) -> tuple[Positions, Floats]:
        """Positions in the statistics where a term, as split_terms gives it, stands, and how often."""
        query = "SELECT group_concat(row * 256 + n) FROM postings WHERE user = ? AND term = ?"
        text = self._rows(query, term)[0][0] or ""  # four times faster than as rows
        packed = np.fromstring(text, np.int64, sep=",") if text else np.empty(0, np.int64)
        if self._hidden or self.then:
            packed = packed[~np.isin(packed >> 8, list(self._hidden))]
            then = [
                row * 256 + min(n, _MOST_COUNT) for row, counts in self._terms.items() if (n := counts[term])
            ]
            packed = np.append(packed, np.array(then, np.int64))
        positions, is_there = self.statistics.find(packed >> 8)
        return positions[is_there], (packed[is_there] & 255).astype(np.float32)

    def entries(self, rows: Iterable[int]) -> dict[int, IndexEntry]:
        """The entries of those of some rows that count, by row id."""
        wanted = np.array(list(rows), np.int64)
        _, counts = self.statistics.find(wanted)
        read = self._entries
        by_row = "documents WHERE user = ? AND row = ?"
        return {row: self.then.get(row) or read(by_row, row)[0] for row in wanted[counts].tolist()}

    def _find(self, condition: str, *values: object) -> list[IndexEntry]:
        """The entries that meet a condition of the tables, and count, those as they were left out."""
        entries = self._entries(condition, *values)
        _, counts = self.statistics.find(np.array([entry.row for entry in entries], np.int64))
        pairs = zip(entries, counts, strict=True)
        return [entry for entry, does in pairs if does and entry.row not in self._hidden]

    def nodes(self, node_ids: Iterable[str]) -> list[IndexEntry]:
        """The entries of some nodes, those that the index does not hold left out."""
        entries: list[IndexEntry] = []
        for node_id in dict.fromkeys(node_ids):
            entries += self._find(f"{_BY_NODE} = ?", node_id)
            entries += (entry for entry in self.then.values() if entry.node_id == node_id)
        return entries

    def visits(self) -> list[tuple[int, str]]:
        """Turn and directory name of every visit, in no order, whether it counts or not."""
        query = f"SELECT turn, path FROM {_BY_NODE} > 'visit:' AND node_id < 'visit;'"
        return [(turn, path.rpartition("/")[2]) for turn, path in self._rows(query)]

    def research(self) -> list[IndexEntry]:
        """Research, newest first, whatever its age and quality."""
        entries = self._find(f"{_BY_NODE} > 'research:' AND node_id < 'research;'")
        return sorted(entries, key=lambda entry: (-entry.seconds, entry.path))

    def memory_keys(self) -> list[IndexEntry]:
        """The entries of all keys of preferences.md, then of facts.md, by node id."""
        entries: list[IndexEntry] = []
        for name in (PREFERENCES_MD, FACTS_MD):
            own = [entry for entry in self.then.values() if entry.path == name]
            own += self._find(_BY_PATH, name)
            entries += sorted(own, key=lambda entry: entry.node_id)
        return entries

    def newest(self, limit: int, before_turn: int | None, *, most_turns: int) -> list[IndexEntry]:
        """The newest notes, research and visits, up to a limit, then the newest turns before a number."""
        all_ = self.statistics
        memory = [entry.row for entry in self.memory_keys()]
        others = np.flatnonzero((all_.sessions == 0) & ~np.isin(all_.rows, memory))
        others = others[np.argsort(-all_.times[others], kind="stable")][:limit]
        turns = self.turns if before_turn is None else self.turns[self.turns < before_turn]
        rows = [*all_.rows[others].tolist(), *turns[::-1][:most_turns].tolist()]
        return list(self.entries(rows).values())

    def note_digests(self) -> dict[str, str]:
        """Digest of each note, by its name below knowledge/."""
        query = "SELECT path, digest FROM sources WHERE user = ? AND turn = 0 AND path >= ? AND path < ?"
        rows = self._rows(query, NOTES, f"{NOTES[:-1]}0")
        return {path.removeprefix(NOTES): digest for path, digest in rows}
