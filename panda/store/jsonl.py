"""A file of JSON lines that others append to, replace or cut short, of which each line is read once."""

import os
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from panda.errors import FileFormatError, Problem
from panda.store.files import parse_json, store_errors

CUT_SHORT = "a write was cut short; the next one removes this line"
"""What is to be done about a last line without a line break that is no JSON."""

_REMEMBERED_BYTES = 4_096
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Line:
    """One line that is a JSON object."""

    number: int  # its number in the file, from 1
    end: int  # the byte behind it
    record: dict[str, Any]  # what it holds, unchecked


Parts = Generator[Line | Problem, None, None]
"""Lines of a file, and what is wrong with others; to be closed if it is not gone through."""


class LineTail:
    """
    Reads a file of JSON lines again and again, each line once.

    Args:
        path: The file; none counts as empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode: int | None = None
        self._last = b""
        self.size_bytes = 0
        """Bytes up to the end of the last line that was read."""
        self.lines = 0
        """Lines read so far, blank ones included."""

    def read(self, *, torn: bool = True) -> tuple[bool, Parts]:
        """
        What was added since the last call.

        Args:
            torn: Whether a last line without a line break is read too.

        Returns:
            Whether the file is another one than before, so that all earlier lines are void; and its new lines
            in order, to be gone through before the next call. Blank lines are left out, what is no JSON
            object is a Problem.
        """
        if not self._path.exists():
            return self._start_again(), (part for part in list[Line | Problem]())
        with store_errors(self._path, "read"):
            file = self._path.open("rb")
            inode = os.fstat(file.fileno()).st_ino
            file.seek(self.size_bytes - len(self._last))
            begins_anew = inode != self._inode or file.read(len(self._last)) != self._last
            if begins_anew:
                begins_anew = self._start_again()
                file.seek(0)
            self._inode = inode
        return begins_anew, self._added(file, torn)

    def follow(self) -> Parts:
        """The lines as they are written, without end; a file that is away for a while is waited for."""
        while True:
            yield from self.read(torn=False)[1]
            time.sleep(_POLL_SECONDS)

    def _start_again(self) -> bool:
        known = self._inode is not None
        self._inode, self._last, self.size_bytes, self.lines = None, b"", 0, 0
        return known

    def _added(self, file: BinaryIO, torn: bool) -> Parts:
        with file, store_errors(self._path, "read"):
            for line in file:
                is_whole = line.endswith(b"\n")
                is_read = line.strip() and (is_whole or torn)
                part = self._parse(line, None if is_whole else CUT_SHORT) if is_read else None
                if is_whole or isinstance(part, Line):
                    self.lines, self.size_bytes = self.lines + 1, self.size_bytes + len(line)
                    self._last = (self._last + line)[-_REMEMBERED_BYTES:]
                if not is_whole and isinstance(part, Line):
                    self._last, self._inode = b"", -1  # with a line break behind it, it is another file
                if part is not None:
                    yield part

    def _parse(self, line: bytes, fix: str | None) -> Line | Problem:
        number, path = self.lines + 1, str(self._path)
        try:
            value = parse_json(line.decode(), where=path, line=number)
        except UnicodeDecodeError as exc:
            message = f"not UTF-8: byte 0x{line[exc.start]:02x}"
            return Problem(message, path, line=number, fix=fix or "save the file as UTF-8")
        except FileFormatError as exc:
            return Problem(exc.message, path, line=number, fix=fix)
        if not isinstance(value, dict):
            return Problem("not a JSON object", path, line=number, fix=fix)
        return Line(number, self.size_bytes + len(line), value)


def sound_lines(parts: Parts) -> Generator[Line, None, None]:
    """
    The lines of which a file may not lack one; only what a crash left at its end is passed over. Raises
    FileFormatError: one is no JSON object.
    """
    with closing(parts):
        for part in parts:
            if isinstance(part, Line):
                yield part
            elif part.fix != CUT_SHORT:
                raise FileFormatError(part.message, part.path, line=part.line, fix=part.fix)
