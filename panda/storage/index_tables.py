"""The tables of one user in the index: what they are, and how changed files get into them."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from panda.documents.problems import Problem
from panda.documents.times import render_time
from panda.errors import FileFormatError, StoreError
from panda.storage.index_sources import IndexRow, load_rows
from panda.storage.layout import Layout

Execute = Callable[..., Any]
"""Runs one SQL statement with values and gives a cursor."""

_COLUMNS = "summary, topics, body, previous, next"


@dataclass(frozen=True)
class SyncReport:
    """What bringing the index in line with the files did."""

    updated: int
    """Files or directories read anew."""
    removed: int
    """Files or directories that are gone from the index."""
    problems: tuple[Problem, ...]
    """Files that cannot be read or parsed; their rows are not in the index."""


def table_names(user: str) -> tuple[str, str, str]:
    """
    Quoted names of a user's tables: entries, words, sources.

    >>> table_names("ann")
    ('"entries:ann"', '"words:ann"', '"sources:ann"')
    """
    name = user.replace('"', '""')
    return f'"entries:{name}"', f'"words:{name}"', f'"sources:{name}"'


def indexable(text: str) -> str:
    """
    The text without what SQLite cannot hold: NUL and lone surrogates.

    >>> indexable("a\\0b\\ud800")
    'a b?'
    """
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


class UserTables:
    """
    The tables of one user.

    Args:
        execute: Runs SQL on an open connection.
        user: Whose tables.
    """

    def __init__(self, execute: Execute, user: str) -> None:
        self._execute = execute
        self._user = user
        self._entries, self._words, self._sources = table_names(user)

    def exist(self) -> bool:
        """Whether they were created."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self._execute(query, (f"words:{self._user}",)).fetchone() is not None

    def create(self) -> None:
        """Create them where they are missing."""
        name = self._user.replace('"', '""')
        entries = self._entries
        self._execute(
            f"CREATE TABLE IF NOT EXISTS {self._sources} (path TEXT PRIMARY KEY, stamp TEXT) WITHOUT ROWID"
        )
        self._execute(
            f"CREATE TABLE IF NOT EXISTS {entries} (rowid INTEGER PRIMARY KEY, source TEXT, node_id TEXT,"
            " source_type TEXT, header TEXT, at TEXT, session TEXT, number INTEGER,"
            " summary TEXT, topics TEXT, body TEXT)"
        )
        for index, columns in (("source", "source"), ("node", "node_id"), ("session", "session, number")):
            self._execute(f'CREATE INDEX IF NOT EXISTS "{index}:{name}" ON {entries} ({columns})')
        self._execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._words} USING"
            f" fts5({_COLUMNS}, tokenize = 'porter unicode61 remove_diacritics 2')"
        )

    def known_stamps(self) -> dict[str, str]:
        """Stamp of each source as of when it was last taken in."""
        return {
            row["path"]: row["stamp"] for row in self._execute(f"SELECT path, stamp FROM {self._sources}")
        }

    def take_in(self, layout: Layout, on_disk: dict[str, str]) -> SyncReport:
        """
        Bring the rows in line with the files.

        Args:
            layout: Where the store is.
            on_disk: Sources with their stamps, as scan_sources gives them.
        """
        known = self.known_stamps()
        removed = [source for source in known if source not in on_disk]
        changed = [source for source in on_disk if known.get(source) != on_disk[source]]
        problems: list[Problem] = []
        touched: set[tuple[str, int]] = set()
        for source in [*removed, *changed]:
            touched.update(self._forget(source))
        for source in changed:
            try:
                rows = load_rows(layout, self._user, source)
            except (FileFormatError, StoreError) as exc:
                problems.append(Problem(path=exc.where or source, message=exc.message, fix=exc.fix))
                continue
            self._execute(f"INSERT INTO {self._sources} VALUES (?, ?)", (source, on_disk[source]))
            for row in rows:
                touched.update(self._add(source, row))
        self._write_turn_words(touched)
        return SyncReport(len(changed) - len(problems), len(removed), tuple(problems))

    def _forget(self, source: str) -> Iterable[tuple[str, int]]:
        query = f"SELECT rowid, session, number FROM {self._entries} WHERE source = ?"
        rows = self._execute(query, (source,)).fetchall()
        for row in rows:
            self._execute(f"DELETE FROM {self._words} WHERE rowid = ?", (row["rowid"],))
        self._execute(f"DELETE FROM {self._entries} WHERE source = ?", (source,))
        self._execute(f"DELETE FROM {self._sources} WHERE path = ?", (source,))
        return [(row["session"], row["number"]) for row in rows if row["number"] is not None]

    def _add(self, source: str, row: IndexRow) -> Iterable[tuple[str, int]]:
        rowid = row.number if row.number is not None else _stable_rowid(source, row.node_id)
        at = render_time(row.at) if row.at else None
        texts = (indexable(row.summary), indexable(row.topics), indexable(row.body))
        node_id, header = indexable(row.node_id), indexable(row.header)
        self._execute(
            f"INSERT INTO {self._entries} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (rowid, source, node_id, row.source_type, header, at, row.session, row.number, *texts),
        )
        if row.session is not None and row.number is not None:
            return [(row.session, row.number)]
        self._execute(
            f"INSERT INTO {self._words} (rowid, {_COLUMNS}) VALUES (?, ?, ?, ?, '', '')", (rowid, *texts)
        )
        return []

    def _write_turn_words(self, touched: set[tuple[str, int]]) -> None:
        numbers = {number for _, number in touched}
        for session, number in touched:
            numbers.update(row["number"] for row in self._neighbours(session, number) if row is not None)
        for number in sorted(numbers):
            self._execute(f"DELETE FROM {self._words} WHERE rowid = ?", (number,))
            row = self._execute(f"SELECT * FROM {self._entries} WHERE rowid = ?", (number,)).fetchone()
            if row is None:
                continue
            previous, following = self._neighbours(row["session"], number)
            self._execute(
                f"INSERT INTO {self._words} (rowid, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    number,
                    row["summary"],
                    row["topics"],
                    row["body"],
                    previous["body"] if previous else "",
                    following["body"] if following else "",
                ),
            )

    def _neighbours(self, session: str, number: int) -> tuple[Any, Any]:
        head = f"SELECT number, body FROM {self._entries} WHERE session = ? AND number"
        return (
            self._execute(f"{head} < ? ORDER BY number DESC LIMIT 1", (session, number)).fetchone(),
            self._execute(f"{head} > ? ORDER BY number LIMIT 1", (session, number)).fetchone(),
        )


def _stable_rowid(source: str, node_id: str) -> int:
    """A rowid above all turn numbers that depends on nothing but the two texts."""
    digest = hashlib.sha256(f"{source}\0{node_id}".encode()).digest()
    return (1 << 61) | int.from_bytes(digest[:7], "big")
