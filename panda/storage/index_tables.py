"""The tables of the index: postings in blocks, how files get into them, a user's rows as of a moment."""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import chain, count, groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from panda.documents.problems import Problem
from panda.documents.text import one_line
from panda.documents.times import parse_time, render_time
from panda.errors import FileFormatError, StoreError
from panda.language.words import split_terms
from panda.storage.formats import Ranges
from panda.storage.index_sources import (
    COLUMNS,
    NOTES,
    TURNS,
    IndexRow,
    Source,
    SourceReader,
    clean_row,
    memory_rows,
    turn_of,
)
from panda.storage.layout import (
    FACTS_MD,
    PREFERENCES_MD,
    RESEARCH_JSON,
    RESEARCH_MD,
    Layout,
    turn_name,
    turn_number,
)
from panda.storage.records import ResearchRecord

BLOCK_BITS = 13
_OTHER_BLOCKS = 16
FIRST_OTHER = 1 << 61  # row ids from here on are no turn numbers
MOST_COUNT = 255

Integers = npt.NDArray[np.int64]
Positions = npt.NDArray[np.intp]

_ROW = np.dtype([("row", "<i8"), ("length", "<i4"), ("session", "<i8"), ("at", "<i8"), ("content", "<i8")])
NO_TIME = -(1 << 62)  # the time of a row that has none


class RowNumbers(NamedTuple):
    """What ranking has to know of one row."""

    row: int  # row id
    length: int  # its number of terms
    session: int  # session_hash of a turn; 0 for everything else
    at: int  # seconds since 1970; NO_TIME if unknown
    content: int  # digest of all that it says


def other_row(source: str, node_id: str, part: int) -> int:
    """A row id above all turn numbers that depends on nothing but what the row is."""
    digest = hashlib.sha256(f"{source}\0{node_id}\0{part}".encode("utf-8", "replace")).digest()
    return FIRST_OTHER | int.from_bytes(digest[:7], "big")


def is_turn(row: int) -> bool:
    """
    Whether a row id is a turn number.

    >>> is_turn(812), is_turn(other_row("facts.md", "fact:a", 0))
    (True, False)
    """
    return row < FIRST_OTHER


@lru_cache(maxsize=10_000)
def session_hash(session: str) -> int:
    """A session id as a number other than 0."""
    return int.from_bytes(hashlib.sha256(session.encode("utf-8", "replace")).digest()[:7], "big") + 1


def block_of(row: int) -> int:
    """
    The block that holds a row: from 0 for turns, below 0 for everything else.

    >>> block_of(8191), block_of(8192)
    (0, 1)
    """
    return row >> BLOCK_BITS if is_turn(row) else -1 - row % _OTHER_BLOCKS


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


def unpack_rows(block: int, data: bytes) -> Integers:
    """
    The row ids of one block that bytes hold: of turns as their places within it.

    >>> unpack_rows(1, bytes([0, 0, 4, 0])).tolist()
    [8192, 8196]
    """
    if block < 0:
        return np.frombuffer(data, "<i8").astype(np.int64)
    return np.frombuffer(data, "<u2").astype(np.int64) + (block << BLOCK_BITS)


Packed = tuple[bytes, bytes]
"""Ascending row ids of one block, and how often a term stands in each; more than 255 count as 255."""


def pack_postings(block: int, said: Mapping[int, Sequence[str]]) -> dict[str, Packed]:
    r"""
    The postings of all terms of some rows of one block.

    Args:
        said: The terms of each row, by row id ascending, repeated as often as they occur.

    >>> pack_postings(0, {1: ["a"], 2: ["b", "a", "b"]})
    {'a': (b'\x01\x00\x02\x00', b'\x01\x01'), 'b': (b'\x02\x00', b'\x02')}
    """
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    flat = np.fromiter(map(numbers.__getitem__, chain.from_iterable(said.values())), np.int64)
    at = np.repeat(np.arange(len(said)), [len(terms) for terms in said.values()])
    pairs, counts = np.unique(flat * len(said) + at, return_counts=True)
    rows = np.fromiter(said, np.int64)[pairs % max(len(said), 1)]
    rows = rows.astype("<i8") if block < 0 else (rows - (block << BLOCK_BITS)).astype("<u2")
    packed, width = rows.tobytes(), rows.itemsize
    packed_counts = np.minimum(counts, MOST_COUNT).astype(np.uint8).tobytes()
    ends = np.cumsum(np.bincount(pairs // max(len(said), 1), minlength=len(numbers))).tolist()
    return {
        term: (packed[start * width : end * width], packed_counts[start:end])
        for term, start, end in zip(numbers, [0, *ends], ends, strict=False)
    }


def merge_postings(block: int, stored: Packed, gone: Integers, added: Packed) -> Packed:
    r"""
    The postings of one term in one block after a change.

    Args:
        gone: Rows whose former counts do not hold any more.

    >>> merge_postings(0, (bytes([1, 0, 2, 0]), bytes([1, 3])), np.array([2]), (bytes([5, 0]), bytes([1])))
    (b'\x01\x00\x05\x00', b'\x01\x01')
    """
    kind = np.dtype("<i8" if block < 0 else "<u2")
    rows, counts = np.frombuffer(stored[0], kind), np.frombuffer(stored[1], np.uint8)
    kept = ~np.isin(unpack_rows(block, stored[0]), gone)
    rows = np.concatenate([rows[kept], np.frombuffer(added[0], kind)])
    order = np.argsort(rows)
    counts = np.concatenate([counts[kept], np.frombuffer(added[1], np.uint8)])
    return rows[order].tobytes(), counts[order].tobytes()


def merge_numbers(stored: bytes, gone: Integers, added: Sequence[RowNumbers]) -> bytes:
    """The statistics of a block after a change, by row ascending."""
    kept = np.frombuffer(stored, _ROW)
    both = np.concatenate([kept[~np.isin(kept["row"], gone)], np.array(added, _ROW)])
    return bytes(both[np.argsort(both["row"])].tobytes())


@dataclass(frozen=True)
class Statistics:
    """All rows of a user as arrays of the same order; the position after the last stands for "none"."""

    rows: Integers  # row ids, ascending: turns first
    lengths: npt.NDArray[np.float32]  # number of terms of each
    sessions: Integers  # session_hash of each turn, 0 for everything else
    times: Integers  # seconds since 1970, or NO_TIME
    contents: Integers  # digest of what each says
    previous: Positions  # position of the previous turn of the same session; one entry more than rows
    following: Positions  # position of the next turn of the same session; one entry more than rows

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def positions(self, rows: Integers) -> Positions:
        """Positions of row ids that are all there."""
        return np.searchsorted(self.rows, rows)


def unpack_numbers(blocks: Iterable[bytes]) -> Statistics:
    """
    The statistics of all blocks of a user.

    Args:
        blocks: As merge_numbers gives them, in any order.
    """
    numbers = np.frombuffer(b"".join(blocks), _ROW)
    numbers = numbers[np.argsort(numbers["row"], kind="stable")]
    count = len(numbers)
    sessions = numbers["session"].astype(np.int64)
    order = np.lexsort((numbers["row"], sessions))
    order = order[sessions[order] != 0]
    same = sessions[order][1:] == sessions[order][:-1]
    previous, following = np.full(count + 1, count, np.intp), np.full(count + 1, count, np.intp)
    previous[order[1:][same]] = order[:-1][same]
    following[order[:-1][same]] = order[1:][same]
    return Statistics(
        rows=numbers["row"].astype(np.int64),
        lengths=numbers["length"].astype(np.float32),
        sessions=sessions,
        times=numbers["at"].astype(np.int64),
        contents=numbers["content"].astype(np.int64),
        previous=previous,
        following=following,
    )


RESEARCH_SCHEMA = (
    "CREATE TABLE research (user TEXT, source TEXT, topic TEXT, keywords TEXT, quality REAL,"
    " created TEXT, expires TEXT, summary TEXT, paths TEXT, visits TEXT, PRIMARY KEY (user, source))"
    " WITHOUT ROWID",
    "CREATE INDEX research_topic ON research (user, topic)",
)


@dataclass(frozen=True)
class ResearchEntry:
    """One research file as the index knows it; expired and poor ones too."""

    source: str  # its research.json, relative to the user's directory
    topic: str  # as "commerce.laptop"
    keywords: tuple[str, ...]  # terms of topic, cache key and summary, sorted
    quality: float | None  # quality_score as written, before any decay
    created_at: datetime | None  # when the research ran
    expires_at: datetime | None  # when it wants to be done again
    summary: str
    paths: tuple[str, ...]  # its files, relative to the user's directory
    visits: tuple[str, ...]  # ids of the visits it rests on


def research_values(source: str, research: ResearchRecord) -> tuple[object, ...]:
    """The columns of one research file, after the user."""
    words = f"{research.topic} {research.cache_key} {research.summary}".replace("_", " ").replace("\0", " ")
    written = research.path.with_name(RESEARCH_MD)
    paths = [source, *([source.replace(RESEARCH_JSON, RESEARCH_MD)] if written.exists() else [])]
    return (
        source,
        one_line(research.topic),
        " ".join(sorted(set(split_terms(words)))),
        research.quality,
        render_time(research.created_at) if research.created_at else None,
        render_time(research.expires_at) if research.expires_at else None,
        one_line(research.summary),
        json.dumps(paths),
        json.dumps(research.visit_ids),
    )


def read_research_entry(row: Any) -> ResearchEntry:
    """The entry that a row of the database holds."""
    return ResearchEntry(
        source=row["source"],
        topic=row["topic"],
        keywords=tuple(row["keywords"].split()),
        quality=row["quality"],
        created_at=parse_time(row["created"]) if row["created"] else None,
        expires_at=parse_time(row["expires"]) if row["expires"] else None,
        summary=row["summary"],
        paths=tuple(json.loads(row["paths"])),
        visits=tuple(json.loads(row["visits"])),
    )


Execute = Callable[..., Any]  # runs one SQL statement with values and gives a cursor

_SCHEMA = (
    "CREATE TABLE sources (user TEXT, path TEXT, stamp TEXT, rows INTEGER, digest TEXT,"
    " PRIMARY KEY (user, path)) WITHOUT ROWID",
    "CREATE TABLE entries (user TEXT, row INTEGER, source TEXT, node_id TEXT, source_type TEXT, header TEXT,"
    " at TEXT, session TEXT, number INTEGER, part INTEGER, summary TEXT, topics TEXT, names TEXT, query TEXT,"
    " response TEXT, PRIMARY KEY (user, row)) WITHOUT ROWID",
    "CREATE INDEX entries_source ON entries (user, source) WHERE number IS NULL",
    "CREATE INDEX entries_node ON entries (user, node_id) WHERE number IS NULL",
    "CREATE TABLE postings (user TEXT, term TEXT, block INTEGER, rows BLOB, counts BLOB,"
    " PRIMARY KEY (user, term, block)) WITHOUT ROWID",
    "CREATE TABLE blocks (user TEXT, block INTEGER, numbers BLOB, PRIMARY KEY (user, block)) WITHOUT ROWID",
    *RESEARCH_SCHEMA,
)
_CUT = "2:"  # how notes are cut into lines: where it changes, their lines get new vectors
_BROKEN_ROWS = -1
BROKEN_STAMP = ""  # stamp of a source that could not be read or parsed: it is tried again each time


@dataclass(frozen=True)
class SyncReport:
    """What bringing the index in line with the files did."""

    updated: int = 0  # files or directories whose rows were written anew
    removed: int = 0  # files or directories that are gone from the index
    problems: tuple[Problem, ...] = ()  # files that cannot be read or parsed; their rows are not in the index
    behind: int = 0
    """Changed files or directories that could not be taken in, because another process is writing."""


@dataclass
class _Changes:
    """What one group of sources changes, gathered before it is written."""

    user_known: bool  # whether anything of the user was ever taken in
    gone: dict[int, IndexRow] = field(default_factory=dict)  # former rows by row id
    added: dict[int, tuple[str, IndexRow]] = field(default_factory=dict)
    """New rows by row id, with their sources."""


@dataclass
class _Block:
    """What changes of the rows of one block."""

    gone: list[int] = field(default_factory=list)  # former rows
    former: set[str] = field(default_factory=set)  # terms that they had
    said: dict[int, list[str]] = field(default_factory=dict)  # terms of each new row, ascending
    numbers: list[RowNumbers] = field(default_factory=list)  # statistics of the new rows


def create_tables(execute: Execute) -> None:
    """Create all tables in an empty database."""
    for statement in _SCHEMA:
        execute(statement)


def clear_tables(execute: Execute) -> None:
    """Take all rows out of all tables."""
    for table in ("sources", "entries", "postings", "blocks", "research"):
        execute(f"DELETE FROM {table}")


class UserTables:
    """The rows of one user."""

    def __init__(self, execute: Execute, user: str) -> None:
        self._execute = execute
        self._user = user

    def known(self) -> dict[str, str]:
        """Stamp of each source as of when it was last taken in."""
        query = "SELECT path, stamp FROM sources WHERE user = ?"
        return {row["path"]: row["stamp"] for row in self._execute(query, (self._user,))}

    def known_turns(self) -> Integers:
        """Number of the turn of each source that lies in one."""
        query = """
            SELECT CAST(substr(path, 12) AS INTEGER) FROM sources
            WHERE user = ? AND path > 'turns/' AND path < 'turns0'"""
        return np.fromiter((row[0] for row in self._execute(query, (self._user,))), np.int64)

    def known_below(self, turn: str) -> dict[str, str]:
        """Stamps of the sources that lie in one turn directory."""
        query = "SELECT path, stamp FROM sources WHERE user = ? AND path >= ? AND path < ?"
        values = (self._user, f"turns/{turn}", f"turns/{turn}0")
        return {row["path"]: row["stamp"] for row in self._execute(query, values)}

    def known_documents(self) -> dict[str, str]:
        """Stamps of the sources that lie in no turn directory."""
        query = "SELECT path, stamp FROM sources WHERE user = ? AND path "
        bounds = ("< 'turns'", "> 'turns0'")  # one after the other: both at once would read all sources
        return {
            row["path"]: row["stamp"] for one in bounds for row in self._execute(query + one, (self._user,))
        }

    def known_stamp(self, source: str) -> str | None:
        """Stamp of one source; None if it is not known."""
        query = "SELECT stamp FROM sources WHERE user = ? AND path = ?"
        row = self._execute(query, (self._user, source)).fetchone()
        return row["stamp"] if row else None

    def unsettled(self) -> list[str]:
        """Sources that gave no rows when they were last read: turns that run, and broken files."""
        query = "SELECT path FROM sources WHERE user = ? AND rows <= 0 AND path <> 'turns'"
        return [row["path"] for row in self._execute(query, (self._user,))]

    def set_stamp(self, source: str, stamp: str, rows: int, digest: str = "") -> None:
        """Remember a source as taken in."""
        self._execute(
            "REPLACE INTO sources VALUES (?, ?, ?, ?, ?)", (self._user, source, stamp, rows, digest)
        )

    def forget_stamp(self, source: str) -> None:
        """Take a source for one that was never seen."""
        self._execute("DELETE FROM sources WHERE user = ? AND path = ?", (self._user, source))

    def take_in(
        self,
        layout: Layout,
        changed: Mapping[str, str],
        removed: Iterable[str],
        watch: Callable[[], None] = lambda: None,
    ) -> SyncReport:
        """
        Bring the rows in line with some files.

        Args:
            changed: Sources to read anew, with their stamps.
            removed: Sources that are not there any more.
        """
        gone = set(removed)
        problems: list[Problem] = []
        updated = 0
        known = self.known_stamp(TURNS) is not None
        with SourceReader(layout, self._user) as reader:
            for _, group in groupby(sorted({*changed, *gone}, key=_place), key=_group):
                changes, sources = _Changes(known), list(group)
                for source in filter(gone.__contains__, sources):
                    self._forget(source, changes)
                    watch()
                stamps = {source: changed[source] for source in sources if source not in gone}
                for source, found in reader.read_all(stamps):
                    updated += self._take(source, changed[source], found, changes, problems)
                    watch()
                self._write(changes)
        return SyncReport(updated, len(gone), tuple(problems))

    def _take(
        self,
        source: str,
        stamp: str,
        found: Source | FileFormatError | StoreError,
        changes: _Changes,
        problems: list[Problem],
    ) -> int:
        """Take one source into the changes; returns 1 if it says anything else than before."""
        if not isinstance(found, Source):
            problems.append(Problem(path=found.where or source, message=found.message, fix=found.fix))
            self._forget(source, changes)
            self.set_stamp(source, BROKEN_STAMP, _BROKEN_ROWS)
            return 0
        rows, research = rows_by_id(source, found.rows), found.research
        known = changes.user_known and self.known_stamp(source) is not None
        former = self.rows_of(source) if known else {}
        self.set_stamp(source, stamp, len(rows), found.digest)
        if research is not None:
            values = (self._user, *research_values(source, research))
            self._execute(f"REPLACE INTO research VALUES ({', '.join('?' * len(values))})", values)
        if known and former == rows:
            return int(research is not None)
        changes.gone.update(former)
        changes.added.update((row_id, (source, row)) for row_id, row in rows.items())
        return 1

    def _forget(self, source: str, changes: _Changes) -> None:
        changes.gone.update(self.rows_of(source))
        self.forget_stamp(source)
        if _is_research(source):
            self._execute("DELETE FROM research WHERE user = ? AND source = ?", (self._user, source))

    def rows_of(self, source: str) -> dict[int, IndexRow]:
        """The rows of one source by row id."""
        turn = turn_of(source)
        if turn is not None and source.count("/") == 1:
            query, value = "SELECT * FROM entries WHERE user = ? AND row = ?", int(turn[5:])
            found = self._execute(query, (self._user, value)).fetchall()
        else:
            query = "SELECT * FROM entries WHERE user = ? AND source = ? AND number IS NULL"
            found = self._execute(query, (self._user, source)).fetchall()
        return {row["row"]: IndexRow(*row_values(row)) for row in found}

    def _write(self, changes: _Changes) -> None:
        blocks: defaultdict[int, _Block] = defaultdict(_Block)
        for row_id, row in changes.gone.items():
            self._execute("DELETE FROM entries WHERE user = ? AND row = ?", (self._user, row_id))
            block = blocks[block_of(row_id)]
            block.gone.append(row_id)
            block.former.update(row_terms(row))
        for row_id, (source, row) in sorted(changes.added.items()):
            self._insert(row_id, source, row)
            block = blocks[block_of(row_id)]
            terms = block.said[row_id] = row_terms(row)
            block.numbers.append(row_numbers(row_id, row, len(terms)))
        for number, block in sorted(blocks.items()):
            self._write_block(number, block)

    def _insert(self, row_id: int, source: str, row: IndexRow) -> None:
        self._execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(self._user, row_id, source, row.node_id, row.source_type, row.header),
                *(render_time(row.at) if row.at else None, row.session, row.number, row.part),
                *(row.summary, row.topics, row.names, row.query, row.response),
            ),
        )

    def _write_block(self, number: int, block: _Block) -> None:
        """Write the statistics and postings of the rows of a block."""
        gone, postings = np.array(block.gone, np.int64), pack_postings(number, block.said)
        key = (self._user, number)
        stored = self._execute("SELECT numbers FROM blocks WHERE user = ? AND block = ?", key).fetchone()
        numbers = merge_numbers(stored["numbers"] if stored else b"", gone, block.numbers)
        self._put("blocks", "user = ? AND block = ?", key, (numbers,))
        find = "user = ? AND term = ? AND block = ?"
        for term in sorted({*block.former, *postings}):
            words = (self._user, term, number)
            packed = postings.get(term, (b"", b""))
            if stored:
                query = f"SELECT rows, counts FROM postings WHERE {find}"
                former = self._execute(query, words).fetchone() or (b"", b"")
                packed = merge_postings(number, tuple(former), gone, packed)
            self._put("postings", find, words, packed)

    def _put(self, table: str, find: str, key: tuple[object, ...], values: tuple[bytes, ...]) -> None:
        """Write a row of a table, or take it out if it would be empty."""
        if values[0]:
            marks = ", ".join("?" * len(key + values))
            self._execute(f"REPLACE INTO {table} VALUES ({marks})", key + values)
        else:
            self._execute(f"DELETE FROM {table} WHERE {find}", key)


def row_terms(row: IndexRow) -> list[str]:
    """The terms of a row, all columns together, repeated as often as they occur."""
    return split_terms("\n".join(getattr(row, column) for column in COLUMNS))


def row_values(row: Any) -> tuple[Any, ...]:
    """The fields of an IndexRow that a row of the table entries holds."""
    values = tuple(row)
    return *values[3:6], parse_time(values[6]) if values[6] else None, *values[7:]


def row_numbers(row_id: int, row: IndexRow, length: int) -> RowNumbers:
    """What ranking has to know of a row of so many terms."""
    at = math.floor(row.at.timestamp()) if row.at else NO_TIME
    session = session_hash(row.session) if row.session is not None else 0
    cut = _CUT if row.node_id.startswith("knowledge:") else ""
    said = "\0".join([cut + row.node_id, *(getattr(row, column) for column in COLUMNS)])
    content = hashlib.blake2b(said.encode(), digest_size=8).digest()
    return RowNumbers(row_id, length, session, at, int.from_bytes(content, "big", signed=True))


def rows_by_id(source: str, rows: Iterable[IndexRow]) -> dict[int, IndexRow]:
    """The rows of a source as the tables hold them, by row id."""
    return {_row_id(source, row): clean_row(row) for row in rows}


def _row_id(source: str, row: IndexRow) -> int:
    return row.number if row.number is not None else other_row(source, row.node_id, row.part)


def _is_research(source: str) -> bool:
    return source.endswith(f"/{RESEARCH_JSON}") and source.count("/") == 2


def _place(source: str) -> tuple[int, str]:
    return _group(source), source


def _group(source: str) -> int:
    """Sources that are written together: the turns of one block with all that lies in them."""
    turn = turn_of(source)
    return -1 if turn is None else block_of(int(turn[5:]))


Floats = npt.NDArray[np.float32]

_BY_NODE = "entries INDEXED BY entries_node"
"""SQLite, which keeps no statistics here, would walk through all turns of the user."""


@dataclass(frozen=True)
class IndexEntry(IndexRow):
    """One row as the index knows it."""

    row: int = 0  # row id: of a turn its number

    @property
    def body(self) -> str:
        """Query and answer of a turn, content of anything else."""
        return f"{self.query}\n{self.response}" if self.query else self.response


@dataclass(frozen=True)
class AsOf:
    """What of the index counts for a turn: what was there when it began."""

    turns: Ranges  # the turns that were saved, and the turn itself: what lies in other turns is left out
    memory: Mapping[str, str]  # what the memory files said then, by name


class IndexView:
    """
    The rows of one user, within one read transaction.

    Args:
        statistics: Those of all rows, of an earlier view of the same ones; None reads them.
        as_of: What counts of the rows; None for all.
    """

    def __init__(
        self,
        execute: Execute,
        user: str,
        statistics: Statistics | None = None,
        as_of: AsOf | None = None,
    ) -> None:
        self._execute = execute
        self._user = self.user = user
        """Whose rows."""
        self._as_of = as_of
        self.all_statistics = statistics or unpack_numbers(self._numbers())
        """Lengths, times and neighbours of all rows, whether or not they count."""
        self._gone = self._rows_since(as_of) if as_of else set()
        self._added: dict[int, IndexRow] = {}
        for name, text in as_of.memory.items() if as_of else ():
            self._set_back(name, text)
        self._counts = {row_id: Counter(row_terms(row)) for row_id, row in self._added.items()}
        self._out = np.array(sorted(self._gone), np.int64)
        self.statistics = self._statistics_then() if self._gone or self._added else self.all_statistics
        """The same of the rows that count."""

    def _numbers(self) -> Iterator[bytes]:
        query = "SELECT numbers FROM blocks WHERE user = ?"
        return (row["numbers"] for row in self._execute(query, (self._user,)))

    def _rows_since(self, as_of: AsOf) -> set[int]:
        """Rows of turns that do not count, and of what lies in them."""
        turns = self.all_statistics.rows[self.all_statistics.sessions != 0]
        found = set(turns[~_within(turns, as_of.turns)].tolist())
        query = "SELECT row FROM entries WHERE user = ? AND number IS NULL AND source >= ? AND source < ?"
        after = 0
        for first, last in (*as_of.turns, (0, 0)):
            end = f"turns/{turn_name(first)}" if first else "turns0"
            if first != after + 1:
                values = (self._user, f"turns/{turn_name(after + 1)}", end)
                found.update(row["row"] for row in self._execute(query, values))
            after = last
        return found

    def _set_back(self, name: str, text: str) -> None:
        """Give a memory file the rows that it had."""
        now = UserTables(self._execute, self._user).rows_of(name)
        with suppress(FileFormatError):
            then = rows_by_id(name, memory_rows(name, text, where=name))
            if then != now:
                self._gone.update(now)
                self._added.update(then)

    def _statistics_then(self) -> Statistics:
        added = [row_numbers(at, row, self._counts[at].total()) for at, row in sorted(self._added.items())]
        return unpack_numbers([merge_numbers(b"".join(self._numbers()), self._out, added)])

    @property
    def turns(self) -> Integers:
        """Numbers of the turns that count, ascending."""
        numbers: Integers = self.statistics.rows[self.statistics.sessions != 0]
        return numbers

    def note_digests(self) -> dict[str, str]:
        """Digest of each knowledge document, by its name below knowledge/."""
        query = "SELECT path, digest FROM sources WHERE user = ? AND path >= ? AND path < ?"
        found = self._execute(query, (self._user, NOTES, f"{NOTES[:-1]}0"))
        return {row["path"].removeprefix(NOTES): row["digest"] for row in found}

    def postings(self, term: str) -> tuple[Positions, Floats]:
        """
        Where a term stands.

        Args:
            term: As split_terms gives it.

        Returns:
            Positions in the statistics, ascending within turns, and how often it stands there.
        """
        query = "SELECT block, rows, counts FROM postings WHERE user = ? AND term = ?"
        found = self._execute(query, (self._user, term)).fetchall()
        then = {row_id: counts[term] for row_id, counts in self._counts.items() if term in counts}
        if not found and not then:
            return np.empty(0, np.intp), np.empty(0, np.float32)
        rows = np.concatenate(
            [*(unpack_rows(one["block"], one["rows"]) for one in found), np.array([*then], np.int64)]
        )
        numbers = [np.frombuffer(one["counts"], np.uint8) for one in found]
        counts = np.concatenate([*numbers, [min(count, MOST_COUNT) for count in then.values()]])
        if len(self._out):
            kept = ~np.isin(rows, self._out)
            kept[len(rows) - len(then) :] = True
            rows, counts = rows[kept], counts[kept]
        return self.statistics.positions(rows), counts.astype(np.float32)

    def entries(self, rows: Iterable[int]) -> dict[int, IndexEntry]:
        """The entries of some rows, by row id."""
        query = "SELECT * FROM entries WHERE user = ? AND row = ?"
        entries = {row: _entry_then(row, self._added[row]) for row in rows if row in self._added}
        stored = (row for row in rows if row not in self._gone and row not in entries)
        found = (self._execute(query, (self._user, row)).fetchone() for row in stored)
        return entries | {row["row"]: _entry(row) for row in found if row is not None}

    def _counting(self, rows: Iterable[Any], wanted: Callable[[IndexRow], bool]) -> list[IndexEntry]:
        """The entries of rows that count, then of those that are no more and did."""
        found = [_entry(row) for row in rows if row["row"] not in self._gone]
        return found + [_entry_then(at, row) for at, row in self._added.items() if wanted(row)]

    def nodes(self, node_ids: Iterable[str]) -> list[IndexEntry]:
        """The entries of some nodes, those that the index does not hold left out."""
        found: list[IndexEntry] = []
        for node_id in dict.fromkeys(node_ids):
            kind, _, rest = node_id.partition(":")
            if kind == "turn" and rest.isascii() and rest.isdigit():
                found += self.entries([int(rest)]).values() if len(rest) < 18 else ()
            else:
                query = f"SELECT * FROM {_BY_NODE} WHERE user = ? AND node_id = ? AND number IS NULL"
                rows = self._execute(query, (self._user, node_id))
                found += self._counting(rows, lambda row, node_id=node_id: row.node_id == node_id)  # type: ignore[misc]
        return found

    def turns_holding(self, node_id: str) -> list[int]:
        """Numbers of the turns in whose directories a research or visit of that id lies."""
        query = f"SELECT source FROM {_BY_NODE} WHERE user = ? AND node_id = ? AND number IS NULL"
        names = (turn_of(row["source"]) for row in self._execute(query, (self._user, node_id)))
        return [number for name in names if name and (number := turn_number(name))]

    def visits(self) -> list[tuple[int, str]]:
        """Turn and directory name of every visit, in no order."""
        query = "SELECT source FROM entries WHERE user = ? AND number IS NULL AND source GLOB ?"
        found = self._execute(query, (self._user, "turns/turn_*/webpage_cache/*"))
        parts = (row["source"].split("/") for row in found)
        return [(int(turn.removeprefix("turn_")), name) for _, turn, _, name in parts]

    def memory_keys(self) -> list[IndexEntry]:
        """The entries of all keys of preferences.md, then of facts.md, by node id."""
        query = """
            SELECT * FROM entries WHERE user = ? AND source = ? AND number IS NULL ORDER BY node_id"""
        found: list[IndexEntry] = []
        for name, kind in ((PREFERENCES_MD, "preference"), (FACTS_MD, "fact")):
            rows = self._execute(query, (self._user, name)).fetchall()
            entries = self._counting(rows, lambda row, kind=kind: row.source_type == kind)  # type: ignore[misc]
            found += sorted(entries, key=lambda entry: entry.node_id)
        return found

    def newest(self, limit: int, before_turn: int | None, *, most_turns: int) -> list[IndexEntry]:
        """
        The newest sources: knowledge documents, research and visits first, then turns.

        Args:
            limit: Most entries that are no turns.
            most_turns: Most turns.
            before_turn: Only turns with a smaller number; None for all.
        """
        documents = """
            SELECT * FROM entries WHERE user = ? AND number IS NULL AND source NOT IN (?, ?)
            ORDER BY at IS NULL, at DESC, row LIMIT ?"""
        turns = """
            SELECT * FROM entries WHERE user = ? AND number IS NOT NULL AND number < ifnull(?, number + 1)
            ORDER BY row DESC LIMIT ?"""
        more = len(self._gone)
        found = self._execute(documents, (self._user, PREFERENCES_MD, FACTS_MD, limit + more)).fetchall()
        last = self._execute(turns, (self._user, before_turn, most_turns + more)).fetchall()
        kept = ([_entry(row) for row in rows if row["row"] not in self._gone] for rows in (found, last))
        return [*next(kept)[:limit], *next(kept)[:most_turns]]

    def session_rows(self, session: str) -> Integers:
        """Numbers of all turns of a session."""
        query = "SELECT row FROM entries WHERE user = ? AND session = ?"
        rows = (row["row"] for row in self._execute(query, (self._user, session)))
        return np.array([row for row in rows if row not in self._gone], np.int64)

    def session_turns(self, session: str) -> list[int]:
        """Numbers of the saved turns of a session."""
        query = "SELECT row, number FROM entries WHERE user = ? AND session = ? AND number IS NOT NULL"
        rows = self._execute(query, (self._user, session))
        return [int(row["number"]) for row in rows if row["row"] not in self._gone]

    def research(self, topic: str | None = None) -> list[ResearchEntry]:
        """
        Research files, newest first, whatever their age and quality.

        Args:
            topic: Only this topic; None for all.
        """
        query = "SELECT * FROM research WHERE user = ? AND topic = ifnull(?, topic)"
        found = [read_research_entry(row) for row in self._execute(query, (self._user, topic))]
        if self._as_of is not None:
            found = [one for one in found if _counts_research(one, self._as_of)]
        return sorted(found, key=lambda one: (one.created_at is not None, one.created_at), reverse=True)

    def count_rows(self) -> dict[str, int]:
        """Number of rows of each source type; a knowledge document has one for each section."""
        query = "SELECT source_type, count(*) AS n FROM entries WHERE user = ? GROUP BY 1 ORDER BY 1"
        return {row["source_type"]: row["n"] for row in self._execute(query, (self._user,))}


def _within(numbers: Integers, ranges: Ranges) -> npt.NDArray[np.bool_]:
    """Which of some numbers lie in ranges."""
    if not ranges:
        return np.zeros(len(numbers), np.bool_)
    firsts, lasts = np.array(ranges, np.int64).T
    at = np.searchsorted(firsts, numbers, "right") - 1
    within: npt.NDArray[np.bool_] = (at >= 0) & (numbers <= lasts[at])
    return within


def _counts_research(one: ResearchEntry, as_of: AsOf) -> bool:
    turn = turn_of(one.source)
    return turn is None or any(first <= int(turn[5:]) <= last for first, last in as_of.turns)


def _entry_then(row_id: int, row: IndexRow) -> IndexEntry:
    return IndexEntry(**vars(row), row=row_id)


def _entry(row: Any) -> IndexEntry:
    values = (*row_values(row), row["row"])
    return IndexEntry(*values)
