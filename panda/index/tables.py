"""The tables of the index, how sources get into them, and a user's entries as of a moment."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from sqlite3 import Connection
from typing import Any

import numpy as np
import numpy.typing as npt

from panda.errors import FileFormatError, Problem
from panda.index.sources import (
    BROKEN,
    COLUMNS,
    FIRST_OTHER,
    NOTES,
    IndexEntry,
    memory_entries,
    read_sources,
    turn_of,
)
from panda.language.words import split_terms
from panda.store.layout import FACTS_MD, PREFERENCES_MD, Layout
from panda.store.records import Ranges

Integers = npt.NDArray[np.int64]
Positions = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

_MOST_COUNT = 255  # as many times a term counts in one entry
_BATCH = 4_000  # sources that are written together
_CUT = "2:"  # how notes are cut into lines: where it changes, their lines get new vectors
_FIELDS = ", ".join(IndexEntry._fields)
_SELECT = f"SELECT {_FIELDS} FROM documents"
_NUMBERS = "row, turn, length, session_key, seconds, content"
SCHEMA = (
    "CREATE TABLE users (user TEXT PRIMARY KEY, turns TEXT) WITHOUT ROWID",
    "CREATE TABLE sources (user TEXT, path TEXT, stamp TEXT, is_settled INTEGER, digest TEXT,"
    " PRIMARY KEY (user, path)) WITHOUT ROWID",
    "CREATE INDEX sources_unsettled ON sources (user, path) WHERE NOT is_settled",
    f"CREATE TABLE documents (user TEXT, {_FIELDS}, length INTEGER, session_key INTEGER, content INTEGER,"
    " PRIMARY KEY (user, row)) WITHOUT ROWID",
    f"CREATE INDEX documents_numbers ON documents (user, {_NUMBERS})",
    "CREATE INDEX documents_path ON documents (user, path) WHERE session IS NULL",
    "CREATE INDEX documents_node ON documents (user, node_id) WHERE session IS NULL",
    "CREATE TABLE postings (user TEXT, term TEXT, row INTEGER, n INTEGER, PRIMARY KEY (user, term, row))"
    " WITHOUT ROWID",
)
TABLES = ("users", "sources", "documents", "postings")


@dataclass(frozen=True)
class SyncReport:
    """What bringing the index in line with the files did."""

    updated: int = 0  # files or turns whose entries were written anew
    removed: int = 0  # files or turns that are gone from the index
    problems: tuple[Problem, ...] = ()  # files that cannot be read or parsed; their entries are not there
    behind: int = 0
    """Changed files or turns that could not be taken in, because another process is writing."""


@lru_cache(maxsize=10_000)
def session_key(session: str) -> int:
    """A session id as a number other than 0."""
    return int.from_bytes(hashlib.sha256(session.encode("utf-8", "replace")).digest()[:7], "big") + 1


def _integers(text: str | None) -> Integers:
    """The numbers that group_concat gave: four times faster than as rows."""
    return np.fromstring(text, np.int64, sep=",") if text else np.empty(0, np.int64)


def _numbers_of(entry: IndexEntry, length: int) -> tuple[int, ...]:
    """What ranking has to know of an entry with so many terms."""
    session = 0 if entry.session is None else session_key(entry.session)
    cut = _CUT if entry.node_id.startswith("knowledge:") else ""
    said = "\0".join([cut + entry.node_id, *(getattr(entry, column) for column in COLUMNS)])
    content = int.from_bytes(hashlib.blake2b(said.encode(), digest_size=8).digest(), "big", signed=True)
    return entry.row, entry.turn, length, session, entry.seconds, content


class UserTables:
    """What the tables hold of one user."""

    def __init__(self, connection: Connection, user: str) -> None:
        self._connection, self.user = connection, user
        """Whose they are."""

    def _rows(self, query: str, *values: object) -> list[Any]:
        return self._connection.execute(query, (self.user, *values)).fetchall()

    def turns_stamp(self) -> str | None:
        """The stamp of the turns directory as of when it was last taken in; None: the user never was."""
        return next((stamp for (stamp,) in self._rows("SELECT turns FROM users WHERE user = ?")), None)

    def set_turns_stamp(self, stamp: str | None) -> None:
        """Remember that all was taken in; None for a user who is not there any more."""
        self._rows("DELETE FROM users WHERE user = ?")
        if stamp is not None:
            self._rows("INSERT INTO users VALUES (?, ?)", stamp)

    def known(self) -> dict[str, str]:
        """Stamp of each source as of when it was last taken in."""
        return dict(self._rows("SELECT path, stamp FROM sources WHERE user = ?"))

    def known_among(self, turns: Iterable[str]) -> dict[str, str]:
        """The same of memory files, notes and some turns."""
        query = "SELECT path, stamp FROM sources WHERE user = ? AND path "
        found = self._rows(f"{query} < 'turns/'") + self._rows(f"{query} >= 'turns0'")
        return dict(found + [row for source in turns for row in self._rows(f"{query} = ?", source)])

    def known_turns(self) -> Integers:
        """Numbers of the turns that are known."""
        query = """
            SELECT group_concat(substr(path, 12)) FROM sources
            WHERE user = ? AND path > 'turns/' AND path < 'turns0'"""
        return _integers(self._rows(query)[0][0])

    def newest_turns(self, limit: int) -> list[int]:
        """Numbers of the newest saved turns."""
        query = "SELECT row FROM documents WHERE user = ? AND row < ? ORDER BY row DESC LIMIT ?"
        return [row for (row,) in self._rows(query, FIRST_OTHER, limit)]

    def unsettled(self) -> list[str]:
        """Sources that may change without their turns directory: turns that run, and broken files."""
        return [path for (path,) in self._rows("SELECT path FROM sources WHERE user = ? AND NOT is_settled")]

    def take_in(
        self,
        layout: Layout,
        changed: Mapping[str, str],
        removed: Collection[str],
        watch: Callable[[], None] = lambda: None,
    ) -> SyncReport:
        """Bring the entries in line with changed sources, by their stamps, and with those that are gone."""
        is_known = self.turns_stamp() is not None
        find = "SELECT 1 FROM sources WHERE user = ? AND path = ?"
        problems: list[Problem] = []
        updated, order = 0, sorted({*changed, *removed})
        for start in range(0, len(order), _BATCH):
            gone: list[IndexEntry] = []
            added: list[IndexEntry] = []
            some = order[start : start + _BATCH]
            stamps = {source: changed[source] for source in some if source in changed}
            for source in (source for source in some if source not in stamps):
                gone += self._entries_of(source).values()
                self._rows("DELETE FROM sources WHERE user = ? AND path = ?", source)
                watch()
            for source, made in read_sources(layout, self.user, stamps):
                was_known = is_known and bool(self._rows(find, source))
                former = self._entries_of(source) if was_known else {}
                entries = {entry.row: entry for entry in made.entries}
                stamp = BROKEN if made.problems else stamps[source]
                about = (source, stamp, made.is_settled and not made.problems, made.digest)
                self._rows("REPLACE INTO sources VALUES (?, ?, ?, ?, ?)", *about)
                gone += (entry for row, entry in former.items() if entries.get(row) != entry)
                added += (entry for row, entry in entries.items() if former.get(row) != entry)
                problems += made.problems
                updated += not made.problems and (former != entries or not was_known)
                watch()
            self._write(gone, added)
        return SyncReport(updated, len(removed), tuple(problems))

    def _entries_of(self, source: str) -> dict[int, IndexEntry]:
        """The entries of one source by row."""
        other = f"{_SELECT} INDEXED BY documents_path WHERE user = ? AND session IS NULL"
        if number := turn_of(source):
            rows = self._rows(f"{_SELECT} WHERE user = ? AND row = ?", number)
            rows += self._rows(f"{other} AND path > ? AND path < ?", f"{source}/", f"{source}0")
        else:
            rows = self._rows(f"{other} AND path = ?", source)
        return {row[0]: IndexEntry(*row) for row in rows}

    def _write(self, gone: Sequence[IndexEntry], added: Sequence[IndexEntry]) -> None:
        many, user = self._connection.executemany, self.user
        former = sorted((user, term, one.row) for one in gone for term in set(split_terms(one.text)))
        many("DELETE FROM postings WHERE user = ? AND term = ? AND row = ?", former)
        many("DELETE FROM documents WHERE user = ? AND row = ?", [(user, one.row) for one in gone])
        counted = [(one, Counter(split_terms(one.text))) for one in added]
        documents = []
        for one, counts in counted:
            _, _, length, session, _, content = _numbers_of(one, counts.total())
            documents.append((user, *one, length, session, content))
        marks = ", ".join("?" * (len(IndexEntry._fields) + 4))
        many(f"REPLACE INTO documents VALUES ({marks})", documents)
        postings = ((user, term, one.row, n) for one, counts in counted for term, n in counts.items())
        many(f"REPLACE INTO postings VALUES (?, ?, ?, min(?, {_MOST_COUNT}))", sorted(postings))


class Statistics:
    """
    What ranking has to know of a user's entries, as arrays of the same order; the position after the last
    stands for "none".

    Args:
        numbers: Shape (6, n): row, turn, length, session_key, seconds and content of each, by row ascending.
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
    memory: Mapping[str, str]  # what the memory files said then, by name


def in_ranges(*numbers: npt.ArrayLike) -> tuple[tuple[int, int], ...]:
    """
    Numbers as ranges: first and last of each, ascending.

    >>> in_ranges([7, 1], [2, 3])
    ((1, 3), (7, 7))
    """
    ordered = np.unique(np.concatenate([np.asarray(some, np.int64) for some in numbers]))
    firsts = ordered[np.diff(ordered, prepend=ordered[:1] - 2) > 1]
    lasts = ordered[np.diff(ordered, append=ordered[-1:] + 2) > 1]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))


def _within(numbers: Integers, ranges: Ranges) -> Mask:
    """Which of some numbers lie in ranges."""
    firsts, lasts = np.array([(-1, -1), *ranges], np.int64).T
    within: Mask = numbers <= lasts[np.searchsorted(firsts, numbers, "right") - 1]
    return within


class IndexView:
    """
    The entries of one user, within one read transaction.

    Args:
        statistics: Those of all entries, of an earlier view of the same ones; None reads them.
        as_of: What counts of the entries; None for all.
    """

    def __init__(
        self,
        connection: Connection,
        user: str,
        statistics: Statistics | None = None,
        as_of: AsOf | None = None,
    ) -> None:
        self._connection, self.user = connection, user
        """Whose entries they are."""
        if statistics is None:
            query = f"SELECT {_NUMBERS} FROM documents WHERE user = ? ORDER BY row"
            flat = np.fromiter(chain.from_iterable(connection.execute(query, (user,))), np.int64)
            statistics = Statistics(flat.reshape(-1, 6).T.copy())
        self.statistics = self.all_statistics = statistics
        """Lengths, times and neighbours of the entries that count, and of all."""
        self._then: dict[int, IndexEntry] = {}  # entries of memory as they were, by row
        self._terms: dict[int, Counter[str]] = {}
        self._set_back: dict[str, list[IndexEntry]] = {}
        self._hidden = np.empty(0, np.int64)
        """Rows of memory files that said something else then."""
        if as_of is not None:
            self._bind(as_of)

    def _rows(self, query: str, *values: object) -> list[Any]:
        return self._connection.execute(query, (self.user, *values)).fetchall()

    def _bind(self, as_of: AsOf) -> None:
        """Bound what counts: one mask over all entries, and the memory files as they were."""
        all_ = self.all_statistics
        counts = (all_.turns == 0) | _within(all_.turns, as_of.turns)
        for name, text in as_of.memory.items():
            now = {entry.row: entry for entry in self._others("path", "path = ?", name)}
            with suppress(FileFormatError):
                then = {entry.row: entry for entry in memory_entries(name, text, where=name)}
                if then != now:
                    self._set_back[name] = list(then.values())
                    self._then |= then
                    self._hidden = np.append(self._hidden, np.array([*now], np.int64))
        if counts.all() and not self._set_back:
            return
        counts &= ~np.isin(all_.rows, self._hidden)
        self._terms = {row: Counter(split_terms(entry.text)) for row, entry in self._then.items()}
        added = [_numbers_of(entry, self._terms[row].total()) for row, entry in self._then.items()]
        numbers = [all_.numbers[:, counts], np.array(added, np.int64).reshape(-1, 6).T]
        joined = np.concatenate(numbers, axis=1)
        self.statistics = Statistics(joined[:, np.argsort(joined[0])])

    @property
    def turns(self) -> Integers:
        """Numbers of the turns that count, ascending."""
        numbers: Integers = self.statistics.rows[self.statistics.sessions != 0]
        return numbers

    def note_digests(self) -> dict[str, str]:
        """Digest of each note, by its name below knowledge/."""
        query = "SELECT path, digest FROM sources WHERE user = ? AND path >= ? AND path < ?"
        found = self._rows(query, NOTES, f"{NOTES[:-1]}0")
        return {path.removeprefix(NOTES): digest for path, digest in found}

    def postings(self, term: str) -> tuple[Positions, Floats]:
        """Positions in the statistics where a term, as split_terms gives it, stands, and how often."""
        query = "SELECT group_concat(row * 256 + n) FROM postings WHERE user = ? AND term = ?"
        packed = _integers(self._rows(query, term)[0][0])
        if len(self._hidden):
            packed = packed[~np.isin(packed >> 8, self._hidden)]
        then = [row * 256 + min(said[term], _MOST_COUNT) for row, said in self._terms.items() if term in said]
        packed = np.append(packed, np.array(then, np.int64)) if then else packed
        positions, is_there = self.statistics.find(packed >> 8)
        return positions[is_there], (packed[is_there] & 255).astype(np.float32)

    def entries(self, rows: Iterable[int]) -> dict[int, IndexEntry]:
        """The entries of those of some rows that count, by row id."""
        wanted = list(rows)
        _, is_there = self.statistics.find(np.array(wanted, np.int64))
        query = f"{_SELECT} WHERE user = ? AND row = ?"
        found = dict(self._then)
        for row in (row for row, there in zip(wanted, is_there, strict=True) if there):
            if row not in found:
                found.update((row, IndexEntry(*values)) for values in self._rows(query, row))
        return {row: found[row] for row in wanted if row in found}

    def _others(self, index: str, condition: str, *values: object) -> list[IndexEntry]:
        """Entries that are no turns and count, those of memory set back left out."""
        where = f"INDEXED BY documents_{index} WHERE user = ? AND session IS NULL AND {condition}"
        found = [IndexEntry(*row) for row in self._rows(f"{_SELECT} {where}", *values)]
        _, counts = self.statistics.find(np.array([one.row for one in found], np.int64))
        kept = zip(found, counts, strict=True)
        return [one for one, does_count in kept if does_count and one.row not in self._then]

    def nodes(self, node_ids: Iterable[str]) -> list[IndexEntry]:
        """The entries of some nodes, those that the index does not hold left out."""
        found: list[IndexEntry] = []
        for node_id in dict.fromkeys(node_ids):
            kind, _, name = node_id.partition(":")
            if kind == "turn":
                is_number = name.isascii() and name.isdigit() and len(name) < len(str(FIRST_OTHER))
                found += self.entries([int(name)] if is_number else []).values()
            else:
                found += self._others("node", "node_id = ?", node_id)
                found += (one for one in self._then.values() if one.node_id == node_id)
        return found

    def turns_holding(self, node_id: str) -> list[int]:
        """Numbers of the turns in whose directories a research or visit of that id lies."""
        return [entry.turn for entry in self._others("node", "node_id = ?", node_id) if entry.turn]

    def visits(self) -> list[tuple[int, str]]:
        """Turn and directory name of every visit, in no order."""
        query = """
            SELECT turn, path FROM documents INDEXED BY documents_node
            WHERE user = ? AND session IS NULL AND node_id > 'visit:' AND node_id < 'visit;'"""
        return [(turn, path.rpartition("/")[2]) for turn, path in self._rows(query)]

    def memory_keys(self) -> list[IndexEntry]:
        """The entries of all keys of preferences.md, then of facts.md, by node id."""
        found: list[IndexEntry] = []
        for name in (PREFERENCES_MD, FACTS_MD):
            entries = self._set_back.get(name) or self._others("path", "path = ?", name)
            found += sorted(entries, key=lambda entry: entry.node_id)
        return found

    def newest(self, limit: int, before_turn: int | None, *, most_turns: int) -> list[IndexEntry]:
        """The newest notes, research and visits, up to a limit, then the newest turns before a number."""
        query = """
            SELECT row FROM documents INDEXED BY documents_path
            WHERE user = ? AND session IS NULL AND path NOT IN (?, ?) ORDER BY seconds DESC, row"""
        rows = np.array(self._rows(query, PREFERENCES_MD, FACTS_MD), np.int64).reshape(-1)
        _, is_there = self.statistics.find(rows)
        turns = self.turns if before_turn is None else self.turns[self.turns < before_turn]
        chosen = [*rows[is_there][:limit].tolist(), *turns[::-1][:most_turns].tolist()]
        return list(self.entries(chosen).values())

    def session_turns(self, session: str) -> list[int]:
        """Numbers of the saved turns of a session, ascending."""
        found: list[int] = self.statistics.rows[self.statistics.sessions == session_key(session)].tolist()
        return found

    def research(self) -> list[IndexEntry]:
        """Research, newest first, whatever its age and quality."""
        found = self._others("node", "node_id > 'research:' AND node_id < 'research;'")
        return sorted(found, key=lambda one: (-one.seconds, one.path))

    def count_rows(self) -> dict[str, int]:
        """Number of entries of each source type; a note has one for each section."""
        return dict(
            self._rows("SELECT source_type, count(*) FROM documents WHERE user = ? GROUP BY 1 ORDER BY 1")
        )
