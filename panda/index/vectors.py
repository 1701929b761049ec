"""
vectors.db: the vectors of texts, kept so that none is computed twice.

Derived from what the index holds, and never needed: a file that is gone, damaged, locked by another process
or on a full or read-only disk gives nothing and takes nothing.
"""

import os
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from panda.errors import StoreError
from panda.store.files import check_links, make_directory, store_errors
from panda.store.layout import Layout

_VERSION = 2
_CHECK_BYTES = 4
_READ_SECONDS, _WRITE_SECONDS = 0.5, 2.0
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_UNREADABLE = (sqlite3.Error, ValueError, TypeError)  # a damaged page says anything
_SCHEMA = f"""
    CREATE TABLE vectors (digest BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID;
    CREATE TABLE blocks (user TEXT, model TEXT, block INTEGER, texts BLOB, PRIMARY KEY (user, model, block))
        WITHOUT ROWID;
    PRAGMA user_version = {_VERSION}"""
SIDE_FILES = ("-journal", "-wal", "-shm")  # how SQLite's own files beside a database end

_Data = TypeVar("_Data", bytes, memoryview)


def check_database(path: Path) -> None:
    """Let a database pass as check_links does; what is no file in the place of one of SQLite's own goes."""
    check_links(path)
    for side in _foreign_sides(path):
        with store_errors(path.parent, "write in"):
            side.unlink()


def _foreign_sides(path: Path) -> list[Path]:
    """What is no file in the place of one of SQLite's own; it would wait for a pipe."""
    sides = [path.with_name(f"{path.name}{ending}") for ending in SIDE_FILES]
    return [side for side in sides if side.is_symlink() or (side.exists() and not side.is_file())]


def uri_of(path: Path, how: str) -> str:
    """A database for sqlite3.connect, opened as *how* says."""
    return f"file:{quote(os.fsencode(path.absolute()))}?{how}"


@dataclass(frozen=True)
class Block:
    """What is known of the texts of some rows."""

    user: str  # whose rows
    model: str  # digest of the model of the vectors
    number: int  # which rows
    texts: bytes  # as whoever fills it packs them; empty if there are none left


class VectorStore:
    """
    The kept vectors of one store, each by a digest of its text and its model.

    Args:
        is_written: Whether anything new is kept.
    """

    def __init__(self, layout: Layout, *, is_written: bool = True) -> None:
        self._is_written = is_written and not layout.read_only_mark.exists()
        self._path = layout.vectors

    def load(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """The vectors that are there, by digest."""
        vectors: dict[bytes, bytes] = {}
        with suppress(*_UNREADABLE), self._reading() as connection:
            if connection is None:
                return {}
            for digest in digests:
                query = "SELECT vector FROM vectors WHERE digest = ?"
                for (data,) in connection.execute(query, (digest,)):
                    if (vector := _checked(digest, data)) is not None:
                        vectors[digest] = vector
        return vectors

    def blocks(
        self, user: str, model: str, numbers: Collection[int] | None = None
    ) -> Iterator[tuple[int, memoryview]]:
        """What is known of the texts of a user's rows, all blocks or some; one at a time is in memory."""
        query, key = "SELECT block, texts FROM blocks WHERE user = ? AND model = ?", (user, model)
        with suppress(*_UNREADABLE), self._reading() as connection:
            if connection is None:
                return
            rows: Iterable[tuple[int, bytes]] = connection.execute(f"{query} ORDER BY block", key)
            if numbers is not None:
                some = (connection.execute(f"{query} AND block = ?", (*key, number)) for number in numbers)
                rows = chain.from_iterable(some)
            for block, data in rows:
                texts = _checked(_block_key(user, model, block), memoryview(data))
                if texts is not None:
                    yield block, texts

    def save(self, vectors: Mapping[bytes, bytes], blocks: Iterable[Block] = ()) -> bool:
        """Keep some vectors by their digests, and blocks as they are now; whether they were written."""

        def act(connection: sqlite3.Connection) -> None:
            rows = ((digest, vector + _check(digest, vector)) for digest, vector in vectors.items())
            connection.executemany("REPLACE INTO vectors VALUES (?, ?)", rows)
            for block in blocks:
                key = (block.user, block.model, block.number)
                connection.execute("DELETE FROM blocks WHERE user = ? AND model = ? AND block = ?", key)
                if block.texts:
                    data = block.texts + _check(_block_key(*key), block.texts)
                    connection.execute("INSERT INTO blocks VALUES (?, ?, ?, ?)", (*key, data))

        return self._write(act)

    def keep_only(self, digests: Iterable[bytes], users: Collection[str], model: str) -> bool:
        """Drop all other vectors and blocks; whether it was written, which it is not if there is no file."""

        def act(connection: sqlite3.Connection) -> None:
            connection.execute("CREATE TEMP TABLE kept (digest BLOB PRIMARY KEY) WITHOUT ROWID")
            connection.executemany("INSERT OR IGNORE INTO kept VALUES (?)", ((digest,) for digest in digests))
            connection.execute("DELETE FROM vectors WHERE digest NOT IN (SELECT digest FROM kept)")
            for known in connection.execute("SELECT DISTINCT user, model FROM blocks").fetchall():
                if known[0] not in users or known[1] != model:
                    connection.execute("DELETE FROM blocks WHERE user = ? AND model = ?", known)

        return self._path.exists() and self._write(act)

    def count(self) -> int:
        """Number of vectors, of all users and models."""
        with suppress(*_UNREADABLE), self._reading() as connection:
            if connection:
                return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])
        return 0

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection to the file; None if there is none of this version."""
        check_links(self._path)
        if not self._path.exists() or _foreign_sides(self._path):
            yield None
            return
        uri = uri_of(self._path, "mode=ro")
        with closing(sqlite3.connect(uri, timeout=_READ_SECONDS, uri=True)) as connection:
            yield connection if _version(connection) == _VERSION else None

    def _write(self, act: Callable[[sqlite3.Connection], None]) -> bool:
        if not self._is_written:
            return False
        with suppress(sqlite3.Error, StoreError, OSError):
            make_directory(self._path.parent)
            return self._written(act) or self._written(act)
        return False

    def _written(self, act: Callable[[sqlite3.Connection], None]) -> bool:
        """Write as a whole; False if the file was damaged or of another version, and is gone now."""
        check_database(self._path)
        try:
            connection = sqlite3.connect(self._path, timeout=_WRITE_SECONDS, isolation_level=None)
            with closing(connection):
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("BEGIN IMMEDIATE")
                if _version(connection) == 0:
                    for statement in _SCHEMA.split(";"):
                        connection.execute(statement)
                if _version(connection) == _VERSION:
                    act(connection)
                    connection.execute("COMMIT")
                    return True
        except sqlite3.DatabaseError as exc:
            if getattr(exc, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                raise
        for suffix in ("", "-journal"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        return False


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _block_key(user: str, model: str, number: int) -> bytes:
    return f"{user}\0{model}\0{number}".encode("utf-8", "replace")


def _check(key: bytes, data: bytes | memoryview) -> bytes:
    """Four bytes that show whether what was kept is what is read: SQLite sees no change within a page."""
    return zlib.crc32(data, zlib.crc32(key)).to_bytes(_CHECK_BYTES, "big")


def _checked(key: bytes, data: _Data) -> _Data | None:
    kept = data[:-_CHECK_BYTES]
    return kept if _check(key, kept) == data[-_CHECK_BYTES:] else None
