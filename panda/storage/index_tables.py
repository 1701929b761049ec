"""The tables of the index: what they are, and how changed files get into them."""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from panda.documents.problems import Problem
from panda.documents.text import one_line
from panda.documents.times import parse_time, render_time
from panda.errors import FileFormatError, StoreError
from panda.language.words import split_terms
from panda.storage.index_blocks import (
    NO_TIME,
    Integers,
    RowNumbers,
    block_of,
    merge_numbers,
    merge_postings,
    other_row,
    pack_counts,
    pack_rows,
    session_hash,
)
from panda.storage.index_scan import TURNS, turn_of
from panda.storage.index_sources import COLUMNS, IndexRow, clean_row, digest_note, load_rows
from panda.storage.layout import RESEARCH_JSON, RESEARCH_MD, Layout
from panda.storage.records import load_object, load_research

RESEARCH_SCHEMA = (
    "CREATE TABLE research (user TEXT, source TEXT, topic TEXT, keywords TEXT, quality REAL,"
    " created TEXT, expires TEXT, summary TEXT, paths TEXT, visits TEXT, PRIMARY KEY (user, source))"
    " WITHOUT ROWID",
    "CREATE INDEX research_topic ON research (user, topic)",
)


@dataclass(frozen=True)
class ResearchEntry:
    """One research file as the index knows it; expired and poor ones too."""

    source: str
    """Its research.json, relative to the user's directory."""
    topic: str
    """As "commerce.laptop"."""
    keywords: tuple[str, ...]
    """Terms of topic, cache key and summary, sorted."""
    quality: float | None
    """quality_score as written, before any decay."""
    created_at: datetime | None
    """When the research ran."""
    expires_at: datetime | None
    """When it wants to be done again."""
    summary: str
    """Its summary."""
    paths: tuple[str, ...]
    """Its files, relative to the user's directory."""
    visits: tuple[str, ...]
    """Ids of the visits it rests on."""


def load_research_row(layout: Layout, user: str, source: str) -> tuple[object, ...]:
    """
    The columns of one research file, after the user.

    Raises:
        StoreError: It is missing or cannot be read.
        FileFormatError: It is corrupt.
    """
    path = layout.user(user) / source
    research = load_research(path)
    key = str(load_object(path).get("cache_key") or "")
    words = f"{research.topic} {key} {research.summary}".replace("_", " ").replace("\0", " ")
    written = path.with_name(RESEARCH_MD)
    paths = [source, *([source.replace(path.name, RESEARCH_MD)] if written.exists() else [])]
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


Execute = Callable[..., Any]
"""Runs one SQL statement with values and gives a cursor."""

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
_CUT = "2:"
"""How notes are cut into lines: where it changes, their lines get new vectors."""
_BROKEN_ROWS = -1
BROKEN_STAMP = ""
"""Stamp of a source that could not be read or parsed: it is tried again each time."""


@dataclass(frozen=True)
class SyncReport:
    """What bringing the index in line with the files did."""

    updated: int = 0
    """Files or directories whose rows were written anew."""
    removed: int = 0
    """Files or directories that are gone from the index."""
    problems: tuple[Problem, ...] = ()
    """Files that cannot be read or parsed; their rows are not in the index."""
    behind: int = 0
    """Changed files or directories that could not be taken in, because another process is writing."""


@dataclass
class _Changes:
    """What one group of sources changes, gathered before it is written."""

    user_known: bool
    """Whether anything of the user was ever taken in."""
    gone: dict[int, IndexRow] = field(default_factory=dict)
    """Former rows by row id."""
    added: dict[int, tuple[str, IndexRow]] = field(default_factory=dict)
    """New rows by row id, with their sources."""


def create_tables(execute: Execute) -> None:
    """Create all tables in an empty database."""
    for statement in _SCHEMA:
        execute(statement)


def clear_tables(execute: Execute) -> None:
    """Take all rows out of all tables."""
    for table in ("sources", "entries", "postings", "blocks", "research"):
        execute(f"DELETE FROM {table}")


class UserTables:
    """
    The rows of one user.

    Args:
        execute: Runs SQL on an open connection.
        user: Whose rows.
    """

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
            layout: Where the store is.
            changed: Sources to read anew, with their stamps.
            removed: Sources that are not there any more.
            watch: Called after each source.
        """
        todo: dict[str, str | None] = {**changed, **dict.fromkeys(removed)}
        problems: list[Problem] = []
        updated = 0
        known = self.known_stamp(TURNS) is not None
        grouped = sorted((_group(source), source) for source in todo)
        for _, group in groupby(grouped, key=itemgetter(0)):
            changes = _Changes(known)
            for _, source in group:
                stamp = todo[source]
                if stamp is None:
                    self._forget(source, changes)
                else:
                    updated += self._read(layout, source, stamp, changes, problems)
                watch()
            self._write(changes)
        return SyncReport(updated, sum(stamp is None for stamp in todo.values()), tuple(problems))

    def _read(
        self, layout: Layout, source: str, stamp: str, changes: _Changes, problems: list[Problem]
    ) -> int:
        """Take one source into the changes; returns 1 if it says anything else than before."""
        try:
            loaded = load_rows(layout, self._user, source, stamp)
            rows = rows_by_id(source, loaded)
            digest = digest_note(layout, self._user, source)
            research = load_research_row(layout, self._user, source) if _is_research(source) else None
        except (FileFormatError, StoreError) as exc:
            problems.append(Problem(path=exc.where or source, message=exc.message, fix=exc.fix))
            self._forget(source, changes)
            self.set_stamp(source, BROKEN_STAMP, _BROKEN_ROWS)
            return 0
        known = changes.user_known and self.known_stamp(source) is not None
        former = self.rows_of(source) if known else {}
        self.set_stamp(source, stamp, len(rows), digest)
        if research is not None:
            marks = ", ".join("?" * (len(research) + 1))
            self._execute(f"REPLACE INTO research VALUES ({marks})", (self._user, *research))
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
        gone: dict[int, dict[str, set[int]]] = {}
        for row_id, row in changes.gone.items():
            self._execute("DELETE FROM entries WHERE user = ? AND row = ?", (self._user, row_id))
            terms = gone.setdefault(block_of(row_id), {})
            for term in count_terms(row):
                terms.setdefault(term, set()).add(row_id)
        added: dict[int, defaultdict[str, dict[int, int]]] = {}
        numbers: dict[int, list[RowNumbers]] = {}
        for row_id, (source, row) in sorted(changes.added.items()):
            self._insert(row_id, source, row)
            counts = count_terms(row)
            block = block_of(row_id)
            by_term = added.setdefault(block, defaultdict(dict))
            for term, count in counts.items():
                by_term[term][row_id] = count
            numbers.setdefault(block, []).append(row_numbers(row_id, row, counts.total()))
        for block in sorted({*gone, *added}):
            out = {row_id for row_id in changes.gone if block_of(row_id) == block}
            empty = self._write_numbers(block, out, numbers.get(block, []))
            self._write_postings(block, empty, gone.get(block, {}), added.get(block, {}))

    def _insert(self, row_id: int, source: str, row: IndexRow) -> None:
        self._execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(self._user, row_id, source, row.node_id, row.source_type, row.header),
                *(render_time(row.at) if row.at else None, row.session, row.number, row.part),
                *(row.summary, row.topics, row.names, row.query, row.response),
            ),
        )

    def _write_numbers(self, block: int, gone: set[int], added: Sequence[RowNumbers]) -> bool:
        """Write a block's statistics; returns whether there were none before."""
        key = (self._user, block)
        stored = self._execute("SELECT numbers FROM blocks WHERE user = ? AND block = ?", key).fetchone()
        merged = merge_numbers(stored["numbers"] if stored else None, gone, added)
        if merged is None:
            self._execute("DELETE FROM blocks WHERE user = ? AND block = ?", key)
        else:
            self._execute("REPLACE INTO blocks VALUES (?, ?, ?)", (*key, merged))
        return stored is None

    def _write_postings(
        self, block: int, empty: bool, gone: Mapping[str, set[int]], added: Mapping[str, Mapping[int, int]]
    ) -> None:
        insert = "REPLACE INTO postings VALUES (?, ?, ?, ?, ?)"
        for term in sorted({*gone, *added}):
            key = (self._user, term, block)
            if empty:
                counts = added[term]
                self._execute(insert, (*key, pack_rows(block, counts), pack_counts(counts.values())))
                continue
            stored = self._execute(
                "SELECT rows, counts FROM postings WHERE user = ? AND term = ? AND block = ?", key
            ).fetchone()
            merged = merge_postings(
                block, tuple(stored) if stored else None, gone.get(term, set()), added.get(term, {})
            )
            if merged is None:
                self._execute("DELETE FROM postings WHERE user = ? AND term = ? AND block = ?", key)
            else:
                self._execute(insert, (*key, *merged))


def count_terms(row: IndexRow) -> Counter[str]:
    """How often each term stands in a row, all columns together."""
    return Counter(split_terms("\n".join(getattr(row, column) for column in COLUMNS)))


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


def _group(source: str) -> int:
    """Sources that are written together: the turns of one block with all that lies in them."""
    turn = turn_of(source)
    return -1 if turn is None else block_of(int(turn[5:]))
