"""Standard input beside a query: what a pipe or a redirected file gives is a document of the turn."""

import os
import select
from collections.abc import Callable
from contextlib import suppress
from io import UnsupportedOperation
from typing import BinaryIO

from panda.errors import StoreError

_WAIT_SECONDS = 2.0
_STEP_BYTES = 65_536
_WAITING = "Waiting for standard input; --no-stdin leaves it alone."


def read_piped(stdin: BinaryIO, tell: Callable[[str], None], *, most_bytes: int) -> bytes | None:
    """
    Return what standard input holds, at most one byte more than *most_bytes*; None if it is a terminal,
    cannot be read, or holds nothing but blanks. *tell* is told of waiting, and how much was read.
    """
    data = b""
    with suppress(OSError):  # closed: not to be read
        if not stdin.isatty():
            data = _read(stdin, tell, most_bytes)
    if not data.strip():
        return None
    tell(f"Read {_size(len(data))} from standard input.")
    return data


def _read(stdin: BinaryIO, tell: Callable[[str], None], most_bytes: int) -> bytes:
    with suppress(UnsupportedOperation):  # no file, as in tests
        os.set_blocking(stdin.fileno(), True)  # else a pause of the writer is taken for the end
        if not select.select([stdin.fileno()], [], [], _WAIT_SECONDS)[0]:
            tell(_WAITING)
    parts: list[bytes] = []
    size_bytes = 0
    while size_bytes <= most_bytes:
        try:
            part = stdin.read(min(_STEP_BYTES, most_bytes + 1 - size_bytes))
        except OSError as exc:
            if not parts:  # as nohup leaves it: not to be read
                break
            message = f"standard input broke off after {size_bytes:,} bytes: {exc.strerror}"
            raise StoreError(message, where="standard input", fix="give it again") from exc
        if not part:
            break
        parts.append(part)
        size_bytes += len(part)
    return b"".join(parts)


def _size(count_bytes: int) -> str:
    """
    >>> _size(12), _size(12_345), _size(2_500_000)
    ('12 bytes', '12 kB', '2.5 MB')
    """
    if count_bytes < 1_000:
        return "1 byte" if count_bytes == 1 else f"{count_bytes} bytes"
    if count_bytes < 1_000_000:
        return f"{count_bytes / 1_000:.0f} kB"
    return f"{count_bytes / 1_000_000:.1f} MB"
