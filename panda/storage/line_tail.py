"""A growing file of JSON lines, of which only what was added is read again."""

import os
from pathlib import Path
from typing import Any

from panda.errors import FileFormatError
from panda.storage.files import parse_json, store_errors

_REMEMBERED_BYTES = 4_096


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

    def read(self) -> tuple[bool, list[tuple[int, int, Any]]]:
        """
        What was added since the last call.

        Returns:
            Whether the file is another one than before, so that all earlier lines are void; and for each
            line its number from 1, the byte behind it, and its value. Blank lines are skipped, a torn last
            line that is no JSON is left out.

        Raises:
            StoreError: The file cannot be read.
            FileFormatError: A line is not UTF-8 or not JSON; names it.
        """
        if not self._path.exists():
            return self._start_again(), []
        with store_errors(self._path, "read"), self._path.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            file.seek(self.size_bytes - len(self._last))
            begins_anew = inode != self._inode or file.read(len(self._last)) != self._last
            if begins_anew:
                begins_anew = self._start_again()
                file.seek(0)
            data = file.read()
        found = self._parse(data)
        self._inode = inode
        return begins_anew, found

    def _start_again(self) -> bool:
        known = self._inode is not None
        self._inode, self._last, self.size_bytes, self.lines = None, b"", 0, 0
        return known

    def _parse(self, data: bytes) -> list[tuple[int, int, Any]]:
        whole_bytes = data.rfind(b"\n") + 1
        torn = data[whole_bytes:]
        found = []
        number, start, offset = self.lines, 0, self.size_bytes
        while start < whole_bytes:  # line by line: of a large file there is no second copy
            line = data[start : data.index(b"\n", start)]
            start += len(line) + 1
            number, offset = number + 1, offset + len(line) + 1
            if line.strip():
                found.append((number, offset, self._value(line, number)))
        self.lines, self.size_bytes = number, offset
        self._last = (self._last + data[max(0, whole_bytes - _REMEMBERED_BYTES) : whole_bytes])[
            -_REMEMBERED_BYTES:
        ]
        if torn.strip():
            try:
                found.append((number + 1, offset + len(torn), self._value(torn, number + 1)))
            except FileFormatError:
                return found  # what a crash left; the next append takes it away
            self.lines, self.size_bytes, self._last = number + 1, offset + len(torn), b""
            self._inode = -1  # the next append puts a line break in front: read the file anew then
        return found

    def _value(self, line: bytes, number: int) -> Any:
        place = f"{self._path}:{number}"
        try:
            text = line.decode()
        except UnicodeDecodeError as exc:
            raise FileFormatError(
                f"not UTF-8: byte 0x{line[exc.start]:02x}", where=place, fix="save the file as UTF-8"
            ) from exc
        return parse_json(text, where=str(self._path), line=number)
