"""
vectors.db: the vectors of texts, kept so that none is computed twice.

Derived from what the index holds, and never needed: a file that is gone, damaged, locked by another process
or on a full or read-only disk gives nothing and takes nothing.
"""

import os
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
_READ_SECONDS = 0.5
_WRITE_SECONDS = 2.0
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_UNREADABLE = (sqlite3.Error, ValueError, TypeError)  # a damaged page says anything
_SCHEMA = f"""
    CREATE TABLE vectors (digest BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID;
    CREATE TABLE blocks (user TEXT, model TEXT, block INTEGER, texts BLOB, PRIMARY KEY (user, model, block))
        WITHOUT ROWID;
    PRAGMA user_version = {_VERSION}"""
_SIDE_FILES = ("-journal", "-wal", "-shm")  # how SQLite's own files beside a database end

_Data = TypeVar("_Data", bytes, memoryview)
_Statement = tuple[str, Iterable[tuple[object, ...]]]


def side_files(path: Path) -> list[Path]:
    """SQLite's own files beside a database: journal, write-ahead log and its index."""
    return [path.with_name(f"{path.name}{ending}") for ending in _SIDE_FILES]


def check_database(path: Path) -> None:
    """Let a database pass as check_links does; what is no file in the place of one of SQLite's own goes."""
    check_links(path)
    for side in filter(_is_foreign, side_files(path)):
        with store_errors(path.parent, "write in"):
            side.unlink()


def _is_foreign(side: Path) -> bool:  # it would wait for a pipe
    return side.is_symlink() or (side.exists() and not side.is_file())


def uri_of(path: Path, how: str) -> str:
    """A database for sqlite3.connect, opened as *how* says."""
    return f"file:{quote(os.fsencode(path.absolute()))}?{how}"


def number_of(connection: sqlite3.Connection, pragma: str) -> int:
    """Return the value of a pragma that is a number."""
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


@dataclass(frozen=True)
class VectorBlock:
    """What is known of the texts of some rows."""

    user: str  # whose rows
    model: str  # digest of the model of the vectors
    number: int  # which rows
    texts: bytes  # as whoever fills it packs them; empty if there are none left


class VectorStore:
    """The kept vectors of one store, each by a digest of its text and its model; new ones if *is_written*."""

    def __init__(self, layout: Layout, *, is_written: bool = True) -> None:
        self._is_written = is_written and not layout.read_only_mark.exists()
        self._path = layout.vectors

    def load(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """The vectors that are there, by digest."""
        vectors: dict[bytes, bytes] = {}
        with suppress(*_UNREADABLE), self._reading() as connection:
            for digest in digests:
                query = "SELECT vector FROM vectors WHERE digest = ?"
                for (data,) in connection.execute(query, (digest,)):
                    if (vector := _checked(digest, data)) is not None:
                        vectors[digest] = vector
        return vectors

    def blocks(
        self, user: str, model: str, numbers: Collection[int] | None = None
    ) -> Iterator[tuple[int, memoryview]]:
        """Yield the stored blocks of the texts of a user's rows, all or some; one at a time is in memory."""
        query = "SELECT block, texts FROM blocks WHERE user = ? AND model = ?"
        key = (user, model)
        with suppress(*_UNREADABLE), self._reading() as connection:
            rows: Iterable[tuple[int, bytes]] = connection.execute(f"{query} ORDER BY block", key)
            if numbers is not None:
                some = (connection.execute(f"{query} AND block = ?", (*key, number)) for number in numbers)
                rows = chain.from_iterable(some)
            for block, data in rows:
                texts = _checked(_block_key(user, model, block), memoryview(data))
                if texts is not None:
                    yield block, texts

    def save(self, vectors: Mapping[bytes, bytes], blocks: Iterable[VectorBlock] = ()) -> bool:
        """Keep some vectors by their digests, and blocks as they are now; whether they were written."""
        rows = [(digest, vector + _check(digest, vector)) for digest, vector in vectors.items()]
        keys = {(block.user, block.model, block.number): block.texts for block in blocks}
        texts = [(*key, data + _check(_block_key(*key), data)) for key, data in keys.items() if data]
        gone = "DELETE FROM blocks WHERE user = ? AND model = ? AND block = ?"
        new = ("REPLACE INTO vectors VALUES (?, ?)", rows), ("INSERT INTO blocks VALUES (?, ?, ?, ?)", texts)
        return self._write((gone, keys), *new)

    def keep_only(self, digests: Collection[bytes], users: Collection[str], model: str) -> bool:
        """Drop all other vectors and blocks; whether it was written, which it is not if there is no file."""
        with suppress(*_UNREADABLE), self._reading() as connection:
            rows = connection.execute("SELECT digest FROM vectors")
            others = [row for row in rows if row[0] not in digests]
            keys = connection.execute("SELECT DISTINCT user, model FROM blocks").fetchall()
            unknown = [key for key in keys if key[0] not in users or key[1] != model]
            gone = "DELETE FROM blocks WHERE user = ? AND model = ?"
            return self._write(("DELETE FROM vectors WHERE digest = ?", others), (gone, unknown))
        return False

    def count(self) -> int:
        """Number of vectors, of all users and models."""
        with suppress(*_UNREADABLE), self._reading() as connection:
            return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])
        return 0

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to the file. Raises sqlite3.Error: there is none of this version."""
        check_links(self._path)
        if any(map(_is_foreign, side_files(self._path))):
            raise sqlite3.OperationalError("something else lies beside it")
        uri = uri_of(self._path, "mode=ro")
        with closing(sqlite3.connect(uri, timeout=_READ_SECONDS, uri=True)) as connection:
            if number_of(connection, "user_version") != _VERSION:
                raise sqlite3.DatabaseError("made by another version of panda")
            yield connection

    def _write(self, *statements: _Statement) -> bool:
        if not self._is_written:
            return False
        with suppress(sqlite3.Error, StoreError, OSError):
            make_directory(self._path.parent)
            return self._written(statements) or self._written(statements)
        return False

    def _written(self, statements: Sequence[_Statement]) -> bool:
        """Write as a whole; False if the file was damaged or of another version, and is gone now."""
        check_database(self._path)
        try:
            connection = sqlite3.connect(self._path, timeout=_WRITE_SECONDS, isolation_level=None)
            with closing(connection):
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("BEGIN IMMEDIATE")
                if number_of(connection, "user_version") == 0:
                    for statement in _SCHEMA.split(";"):
                        connection.execute(statement)
                if number_of(connection, "user_version") == _VERSION:
                    for statement, rows in statements:
                        connection.executemany(statement, rows)
                    connection.execute("COMMIT")
                    return True
        except sqlite3.DatabaseError as exc:
            if getattr(exc, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                raise
        for path in (self._path, *side_files(self._path)):
            path.unlink(missing_ok=True)
        return False


def _block_key(user: str, model: str, number: int) -> bytes:
    return f"{user}\0{model}\0{number}".encode("utf-8", "replace")


def _check(key: bytes, data: bytes | memoryview) -> bytes:
    """Four bytes that show whether what was kept is what is read: SQLite sees no change within a page."""
    return zlib.crc32(data, zlib.crc32(key)).to_bytes(_CHECK_BYTES, "big")


def _checked(key: bytes, data: _Data) -> _Data | None:
    vector_data = data[:-_CHECK_BYTES]
    return vector_data if _check(key, vector_data) == data[-_CHECK_BYTES:] else None
