"""
The full-text index of a store: derived from its files, brought in line with them before each use.

Every user has two tables of his own, so that word statistics and rows of different users never mix:
`entries` holds one row a node, `words` its searchable columns, for turns those of the neighbouring turns of
the session too.
"""

import math
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from panda.documents.times import parse_time
from panda.errors import LockHeldError, StoreError
from panda.storage.index_sources import scan_sources
from panda.storage.index_tables import SyncReport, UserTables, indexable, table_names
from panda.storage.layout import Layout
from panda.storage.os_errors import make_directory

_VERSION = 1
WEIGHTS: tuple[float, ...] = (1.0, 1.0, 1.0, 0.5, 0.2)
"""What a hit in summary, topics, body, the previous and the next turn counts."""

_LEAST_IDF = 1e-6
"""What SQLite's bm25 puts in place of an inverse document frequency that is not above 0."""
_MOST_WORDS = 64

_T = TypeVar("_T")


@dataclass(frozen=True)
class IndexEntry:
    """One node as the index knows it."""

    node_id: str
    """As "turn:811"."""
    source_type: str
    """Kind of source, in S0's names."""
    header: str
    """Short line for a list of candidates."""
    at: datetime | None
    """When it was said or seen."""
    session: str | None
    """Session of a turn."""
    number: int | None
    """Number of a turn."""
    score: float
    """BM25 over the weighted columns, above 0 and higher if better; 0 if it was not searched for."""
    body: str
    """Query and answer of a turn, values of anything else."""


class Index:
    """
    The index file of one store.

    Args:
        layout: Where the store is; on a read-only root the index is kept in memory.
        wait_seconds: How long to wait for another process that is writing.
    """

    def __init__(self, layout: Layout, *, wait_seconds: float = 30.0) -> None:
        self._layout = layout
        self._wait_seconds = wait_seconds
        self._in_memory = layout.read_only_mark.exists()
        self._connection: sqlite3.Connection | None = None
        self._guard = threading.RLock()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._guard:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def sync(self, user: str) -> SyncReport:
        """
        Take in what was added, changed or removed on disk since the last time.

        Args:
            user: Whose files.

        Raises:
            LockHeldError: Another process kept writing for too long.
            StoreError: The index file cannot be written.
        """
        return self._run(user, lambda connection: _sync(connection, self._layout, user))

    def search(
        self, user: str, words: Sequence[str], *, limit: int = 200, before_turn: int | None = None
    ) -> list[IndexEntry]:
        """
        The entries that hold any of the words, best first.

        Args:
            user: Whose entries.
            words: Words as typed; each is quoted, so none is a syntax error. Empty finds nothing.
            limit: Most entries to return.
            before_turn: Only turns with a smaller number; None for all.
        """
        quoted = ['"' + indexable(word).replace('"', '""') + '"' for word in words if word.strip("\0 ")]
        return self._run(user, lambda connection: _search(connection, user, quoted, limit, before_turn))

    def entries(self, user: str, node_ids: Iterable[str]) -> list[IndexEntry]:
        """The entries of some nodes, those that the index does not hold left out."""
        wanted = list(dict.fromkeys(node_ids))
        marks = ", ".join("?" * len(wanted))
        query = (
            f"SELECT *, 0.0 AS score FROM {table_names(user)[0]} WHERE node_id IN ({marks}) ORDER BY rowid"
        )
        return (
            self._run(user, lambda connection: _fetch(connection, user, query, tuple(wanted)))
            if wanted
            else []
        )

    def memory_keys(self, user: str) -> list[IndexEntry]:
        """The entries of all keys of preferences.md and facts.md, by node id."""
        query = f"""
            SELECT *, 0.0 AS score FROM {table_names(user)[0]} WHERE source IN ('preferences.md', 'facts.md')
            ORDER BY source DESC, node_id"""
        return self._run(user, lambda connection: _fetch(connection, user, query, ()))

    def _run(self, user: str, act: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._guard:
            try:
                return act(self._open())
            except sqlite3.OperationalError as exc:
                self._raise_if_held(exc)
                failed: sqlite3.DatabaseError = exc
            except sqlite3.DatabaseError as exc:
                failed = exc
            self._remove()
            try:  # whatever was wrong with the file, it is derived: from nothing, once
                _sync(self._open(), self._layout, user)
                return act(self._open())
            except sqlite3.DatabaseError as exc:
                self._raise_if_held(exc)
                where = str(self._layout.turn_index)
                raise StoreError(f"the index cannot be used: {exc}", where=where, fix="delete it") from failed

    def _raise_if_held(self, exc: sqlite3.DatabaseError) -> None:
        if "locked" in str(exc) or "busy" in str(exc):
            self.close()
            raise LockHeldError(
                f"another process has been writing the index for {self._wait_seconds:g} s",
                where=str(self._layout.turn_index),
            ) from exc

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            path = self._layout.turn_index
            if not self._in_memory:
                make_directory(path.parent)
            self._connection = sqlite3.connect(
                ":memory:" if self._in_memory else path,
                timeout=self._wait_seconds,
                isolation_level=None,
                check_same_thread=False,
            )
            self._connection.row_factory = sqlite3.Row
            if not self._in_memory:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise sqlite3.DatabaseError(f"made by another version of panda ({version})")
            if version == 0:
                self._connection.execute(f"PRAGMA user_version = {_VERSION}")
        return self._connection

    def _remove(self) -> None:
        with suppress(sqlite3.Error):
            self.close()
        self._connection = None
        if self._in_memory:
            return
        path = self._layout.turn_index
        for suffix in ("", "-wal", "-shm", "-journal"):
            try:
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            except OSError as exc:
                raise StoreError(f"cannot delete the broken index: {exc.strerror}", where=str(path)) from exc


def _search(
    connection: sqlite3.Connection, user: str, quoted: list[str], limit: int, before_turn: int | None
) -> list[IndexEntry]:
    """
    SQLite's bm25 takes words found in more than half of the rows for worthless, which in a small store are
    the very words of its subject. So every word is searched alone and its share scaled to the inverse
    document frequency ln(1 + (N - n + .5) / (n + .5)), which is always above 0.
    """
    entries, table, _ = table_names(user)
    if not UserTables(connection.execute, user).exist():
        return []
    total = connection.execute(f"SELECT count(*) FROM {entries}").fetchone()[0]
    count = f"SELECT count(*) FROM {table} WHERE {table} MATCH ?"
    counts = [(connection.execute(count, (word,)).fetchone()[0], word) for word in quoted]
    parts = ["SELECT 0 AS rowid, 0.0 AS part WHERE 0"]  # bm25 fails where a lone part is merged with the sum
    values: list[str | int | float] = []
    weights = ", ".join(str(weight) for weight in WEIGHTS)
    for found, word in sorted(pair for pair in counts if pair[0])[:_MOST_WORDS]:
        ratio = (total - found + 0.5) / (found + 0.5)
        of_sqlite = math.log(ratio) if ratio > 1 else 0.0
        parts.append(
            f"SELECT rowid, -bm25({table}, {weights}) * ? AS part FROM {table} WHERE {table} MATCH ?"
        )
        values += [math.log1p(ratio) / (of_sqlite if of_sqlite > 0 else _LEAST_IDF), word]
    query = f"""
        SELECT e.*, s.score FROM
            (SELECT rowid AS id, sum(part) AS score FROM ({" UNION ALL ".join(parts)}) GROUP BY rowid) AS s
            JOIN {entries} AS e ON e.rowid = s.id
        WHERE e.number IS NULL OR e.number < ? ORDER BY s.score DESC, e.rowid LIMIT ?"""
    return _fetch(
        connection, user, query, (*values, before_turn if before_turn is not None else 1 << 61, limit)
    )


def _fetch(
    connection: sqlite3.Connection, user: str, query: str, values: tuple[str | int | float, ...]
) -> list[IndexEntry]:
    if not UserTables(connection.execute, user).exist():
        return []
    return [
        IndexEntry(
            node_id=row["node_id"],
            source_type=row["source_type"],
            header=row["header"],
            at=parse_time(row["at"]) if row["at"] else None,
            session=row["session"],
            number=row["number"],
            score=row["score"],
            body=row["body"],
        )
        for row in connection.execute(query, values)
    ]


def _sync(connection: sqlite3.Connection, layout: Layout, user: str) -> SyncReport:
    tables = UserTables(connection.execute, user)
    if tables.exist() and tables.known_stamps() == scan_sources(layout, user):
        return SyncReport(0, 0, ())
    connection.execute("BEGIN IMMEDIATE")
    try:
        tables.create()
        # Scanned again: another process may have written while this one waited.
        report = tables.take_in(layout, scan_sources(layout, user))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return report
