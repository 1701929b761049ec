"""Files of JSON lines, each line one record: read as they grow, and told line by line."""

import os
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from panda.errors import FileFormatError
from panda.store.files import store_errors
from panda.store.records import parse

_R = TypeVar("_R")
CUT_SHORT = "a write was cut short; the next one removes this line"
"""What is to be done about a last line without a line break that is no JSON."""
_REMEMBERED_BYTES = 4_096
_FOLLOW_SECONDS = 0.2


@dataclass(frozen=True)
class FileLine(Generic[_R]):
    """One line that holds a record."""

    number: int  # its number in the file, from 1
    start: int  # its first byte
    end: int  # the byte behind it
    record: _R


Parts = Generator[FileLine[_R] | FileFormatError, None, None]
"""Lines of a file, and what is wrong with others; to be closed if it is not gone through."""


class LineTail(Generic[_R]):
    """
    Reads a file of JSON lines again and again, each line once, though others append to it, replace it or cut
    it short. No file counts as empty.
    """

    def __init__(self, path: Path, kind: type[_R]) -> None:
        self.path = path
        self._kind = kind
        self._inode: int | None = None
        self._last = b""
        self.size_bytes = 0
        """Bytes up to the end of the last line that was read."""
        self.lines = 0
        """Lines read so far, blank ones included."""

    def read(self, *, torn: bool = True) -> tuple[bool, Parts[_R]]:
        """
        Return whether the file is another one than before, so that all earlier lines are void, and the lines
        added since the last call, to be gone through before the next. Blank lines are left out. *torn* says
        whether a last line without a line break is read too.
        """
        if not self.path.exists():
            return self._start_again(), (part for part in list[FileLine[_R] | FileFormatError]())
        with store_errors(self.path, "read"):
            file = self.path.open("rb")
            inode = os.fstat(file.fileno()).st_ino
            file.seek(self.size_bytes - len(self._last))
            begins_anew = inode != self._inode or file.read(len(self._last)) != self._last
            if begins_anew:
                begins_anew = self._start_again()
                file.seek(0)
            self._inode = inode
        return begins_anew, self._added(file, torn)

    def follow(self) -> Parts[_R]:
        """The lines as they are written, without end; a file that is away for a while is waited for."""
        while True:
            yield from self.read(torn=False)[1]
            time.sleep(_FOLLOW_SECONDS)

    def _start_again(self) -> bool:
        was_known = self._inode is not None
        self._inode = None
        self._last = b""
        self.size_bytes = 0
        self.lines = 0
        return was_known

    def _added(self, file: BinaryIO, torn: bool) -> Parts[_R]:
        with file, store_errors(self.path, "read"):
            for line in file:
                is_whole = line.endswith(b"\n")
                is_read = line.strip() and (is_whole or torn)
                part = self._parse(line, is_whole) if is_read else None
                if is_whole or isinstance(part, FileLine):
                    self.lines, self.size_bytes = self.lines + 1, self.size_bytes + len(line)
                    self._last = (self._last + line)[-_REMEMBERED_BYTES:]
                if not is_whole and isinstance(part, FileLine):
                    self._last = b""
                    self._inode = -1  # with a line break behind it, it is another file
                if part is not None:
                    yield part

    def _parse(self, line: bytes, is_whole: bool) -> FileLine[_R] | FileFormatError:
        number = self.lines + 1
        start = self.size_bytes
        try:
            record = parse(self._kind, line, where=str(self.path), line=number)
        except FileFormatError as exc:
            if not is_whole and exc.__cause__ is not None:  # it is no JSON
                exc.fix = CUT_SHORT
            exc.line = number
            return exc
        return FileLine(number, start, start + len(line), record)


def sound_lines(parts: Parts[_R]) -> Generator[FileLine[_R], None, None]:
    """
    The lines of which a file may not lack one; only what a crash left at its end is passed over. Raises
    FileFormatError: one does not hold its record.
    """
    with closing(parts):
        for part in parts:
            if isinstance(part, FileLine):
                yield part
            elif part.fix != CUT_SHORT:
                raise part


def load_lines(kind: type[_R], path: Path) -> list[_R]:
    """
    The record of each line of a file, as sound_lines gives them; none if there is no file. Raises StoreError:
    it cannot be read.
    """
    return [line.record for line in sound_lines(LineTail(path, kind).read()[1])]
