"""The memory of one user as it is now, read as far as it can be: damage is noted, the rest is given."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock

from panda.errors import Problem, StoreError
from panda.memory.conflicts import Contradiction, find_contradictions
from panda.memory.files import KINDS, Projection
from panda.memory.log import MemoryLog
from panda.memory.memory import Remembered, load_remembered
from panda.store.fact import Assertion
from panda.store.files import read_text
from panda.store.layout import CONFLICTS_JSONL, MEMORY_JSONL, UserStore
from panda.store.lines import LineTail

_MOST_BAD = 50


@dataclass(frozen=True)
class MemoryState:
    """What a memory says at one moment."""

    log: MemoryLog
    values: tuple[Remembered, ...]  # what holds; () if the log is damaged
    contradictions: tuple[Contradiction, ...]  # those that stand
    problems: tuple[tuple[str, str], ...]  # name of each damaged file, and what is wrong with it
    lines: tuple[Assertion, ...] | None
    """The lines of a damaged log that can be read, in its order; None if it is sound."""


class MemoryReader:
    """Reads a user's memory again and again, each line once; writes nothing, takes no edits in."""

    def __init__(self, store: UserStore) -> None:
        self._state = Projection(store)
        self._logs = (store.memory_log, store.conflicts_log)
        self._lock = Lock()

    def read(self, now: datetime) -> MemoryState:
        """What it says now. Nothing holds of a log with a damaged line, which may have retracted anything."""
        with self._lock:
            try:
                self._check_files()
                self._state.log.refresh()
            except (Problem, OSError) as exc:
                return self._damaged(exc)
            problems = tuple(self._load_texts())
            return MemoryState(
                self._state.log,
                tuple(load_remembered(self._state, now)),
                tuple(find_contradictions(self._state.log, now)),
                problems,
                None,
            )

    def _check_files(self) -> None:
        """Raises StoreError where a log is a pipe or a device, which would be read for ever."""
        for path in self._logs:
            if path.exists() and not path.is_file():
                raise StoreError("not a regular file", where=str(path))

    def _load_texts(self) -> Iterator[tuple[str, str]]:
        try:
            self._state.refresh()
        except (Problem, OSError):
            self._state.texts = dict.fromkeys(KINDS)
            for kind, path in self._state.paths.items():
                try:
                    self._state.texts[kind] = read_text(path) if path.exists() else None
                except (Problem, OSError) as exc:
                    yield path.name, _message(exc)
        for kind, path in self._state.paths.items():
            try:
                self._state.entries(kind)
            except Problem as exc:
                self._state.texts[kind] = None
                yield path.name, _message(exc)

    def _damaged(self, error: Problem | OSError) -> MemoryState:
        lines, problems = [], []
        for one in _sound(self._logs[0]):
            if isinstance(one, Assertion):
                lines.append(one)
            else:
                problems.append((MEMORY_JSONL, one))
        if not problems:
            name = CONFLICTS_JSONL if self._logs[0].is_file() else MEMORY_JSONL
            problems = [(name, _message(error))]
        return MemoryState(self._state.log, (), (), tuple(problems[:_MOST_BAD]), tuple(lines))


def _sound(path: Path) -> Iterator[Assertion | str]:
    if not path.is_file():
        return
    try:
        with closing(LineTail(path, Assertion).read()[1]) as parts:
            for part in parts:
                yield f"line {part.line}: {part.message}" if isinstance(part, Problem) else part.record
    except (Problem, OSError) as exc:
        yield _message(exc)


def _message(error: Problem | OSError) -> str:
    if isinstance(error, Problem):
        return f"{error.where}: {error.message}" if error.where else error.message
    return error.strerror or "it cannot be read"
