"""Reading logs/executions.jsonl, once or as it grows."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any, Self

from panda.documents.problems import Problem
from panda.errors import FileFormatError
from panda.storage.files import parse_json
from panda.storage.os_errors import store_errors

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class LogLine:
    """One line that is whole."""

    number: int
    """Its number in the file, from 1."""
    record: dict[str, Any]
    """What it holds, unchecked."""


class LogReader:
    """
    Reads a file of JSON lines that others append to, replace or truncate; to be used in a `with`.

    Args:
        path: The file; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._offset = 0
        self._number = 0
        self._torn = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._file is not None:
            self._file.close()

    def read_new(self) -> Iterator[LogLine | Problem]:
        """
        The lines completed since the last call, in order; a line that is no JSON object is a Problem.

        Of a file that was replaced the rest is read, then the one in its place; one that was cut short is
        read from its beginning.

        Raises:
            StoreError: It is there but cannot be read.
        """
        if self._file is not None:
            yield from self._read_on(self._file)
        if (replacement := self._open_replacement()) is not None:
            if self._file is not None:
                self._file.close()
            self._file, self._offset, self._number = replacement, 0, 0
            yield from self._read_on(replacement)

    def _open_replacement(self) -> FileIO | None:
        """The file at the path, if it is another than the one that is open."""
        with store_errors(self._path, "read"):
            try:
                file = self._path.open("rb", buffering=0)
            except FileNotFoundError:
                return None
            if self._file and os.path.sameopenfile(file.fileno(), self._file.fileno()):
                file.close()
                return None
            return file

    def _read_on(self, file: FileIO) -> Iterator[LogLine | Problem]:
        with store_errors(self._path, "read"):
            if not self._is_continued(file):
                self._offset = self._number = 0
            file.seek(self._offset)
        buffered = BufferedReader(file)  # a fresh one: a kept one might hold what has been truncated since
        try:
            while line := self._next(buffered):
                parsed = self._parse(line)
                if parsed is not None:
                    yield parsed
        finally:
            buffered.detach()

    def _is_continued(self, file: FileIO) -> bool:
        """Whether what was read still stands there, as far as its length and its last line break say."""
        if self._offset == 0:
            return True
        file.seek(self._offset - 1)
        return file.read(1) == b"\n"

    def read_torn(self) -> Iterator[LogLine | Problem]:
        """What stands after the last line break seen by read_new: a last line that a crash cut short."""
        if self._torn.strip():
            self._number += 1
            parsed = self._parse(self._torn)
            if isinstance(parsed, Problem):
                fix = "a write was cut short; the next one removes this line"
                parsed = Problem(parsed.path, parsed.message, line=parsed.line, fix=fix)
            if parsed is not None:
                yield parsed
            self._number -= 1

    def _next(self, file: "BufferedReader[FileIO]") -> bytes:
        """The next whole line; b"" if there is none."""
        with store_errors(self._path, "read"):
            line = file.readline()
        if not line.endswith(b"\n"):
            self._torn = line
            return b""
        self._offset += len(line)
        self._number += 1
        return line

    def _parse(self, line: bytes) -> LogLine | Problem | None:
        if not line.strip():
            return None
        try:
            value = parse_json(line.decode(), where=str(self._path), line=self._number)
        except UnicodeDecodeError:
            return Problem(str(self._path), "not UTF-8", line=self._number)
        except FileFormatError as exc:
            return Problem(str(self._path), exc.message, line=self._number)
        if not isinstance(value, dict):
            return Problem(str(self._path), "not a JSON object", line=self._number)
        return LogLine(self._number, value)


def follow_log(reader: LogReader) -> Iterator[LogLine | Problem]:
    """
    The lines of a log as they are written, without end; a file that is away for a while is waited for.

    Args:
        reader: Has read what is not wanted any more.

    Raises:
        StoreError: The file cannot be read.
    """
    while True:
        yield from reader.read_new()
        time.sleep(_POLL_SECONDS)
