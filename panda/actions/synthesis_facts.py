"""Where the facts of a synthesis come from: a user's memory, or one file; read again when it has changed."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock

from panda.memory.fact_reader import parse_scope_facts
from panda.memory.user_memory import Memory
from panda.store.fact_records import Conflict, Fact
from panda.store.files import parse_json, read_text, store_errors
from panda.store.layout import UserStore

Scoped = tuple[list[Fact], list[Conflict]]
"""Facts and conflict records of all scopes."""


def read_facts_file(path: Path) -> Scoped:
    """
    The facts and conflicts of a JSON file `{"facts": […], "conflicts": […]}`; a pipe will do. Raises
    FileFormatError: it is not such a file; names the element and its key.
    """
    return parse_scope_facts(parse_json(read_text(path, pipe=True), where=str(path)), where=str(path))


class FactSource:
    """Facts that many requests share, kept until one of the files that they are read from changes."""

    def __init__(self, read: Callable[[], Scoped], *paths: Path) -> None:
        self._read = read
        self._paths = paths
        self._lock = Lock()
        self._loaded: tuple[object, Scoped] | None = None

    def load(self) -> Scoped:
        """The facts and conflicts as they are now. Raises FileFormatError: they are not what they must be."""
        with self._lock:
            seen = [_mark(path) for path in self._paths]
            if self._loaded is None or self._loaded[0] != seen:
                self._loaded = seen, self._read()
            return self._loaded[1]


def file_source(path: Path) -> FactSource:
    """The facts of one file; those of a pipe are read once."""
    read = partial(read_facts_file, path)
    return FactSource(read, path) if path.is_file() else FactSource(read)


def memory_source(store: UserStore) -> FactSource:
    """The facts of a user's memory, edits by hand as what they will be in the log; nothing is written."""
    memory = Memory(replace(store, wait_seconds=0))

    def read() -> Scoped:
        log, edits = memory.read()
        return [*log.assertions, *edits], list(log.conflicts)

    files = (store.memory_log, store.conflicts_log, store.preferences, store.facts, store.memory_shown)
    return FactSource(read, *files)


def _mark(path: Path) -> tuple[int, ...]:
    """Return values that differ once a file has changed."""
    if not path.exists():
        return ()
    with store_errors(path, "read"):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
