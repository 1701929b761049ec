"""
Files below a directory, reached one component at a time without following a link.

A path that is checked and then opened as a whole can lead elsewhere: somebody swaps a directory for a link in
between. Here each component is opened relative to the one before, so what was looked at is what is used.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from panda.errors import UsageError
from panda.storage.files import store_errors
from panda.storage.signals import signals_after
from panda.storage.temporaries import held_temporary

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


@contextmanager
def open_beneath(top: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """
    A descriptor of a directory, closed at the end.

    Args:
        top: Where the way begins; may itself be reached through links.
        parts: Names of directories below it; none of them "..". Empty is the top.
        make: Whether missing directories are made.

    Raises:
        UsageError: The way passes a link.
        OSError: It cannot be opened.
    """
    here = os.open(top, _DIRECTORY & ~os.O_NOFOLLOW)
    try:
        for number, part in enumerate(parts):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=here)
                    os.fsync(here)
            _refuse_link(here, part, parts[: number + 1])
            inner = os.open(part, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def look_beneath(top: Path, parts: Sequence[str]) -> os.stat_result | None:
    """
    What stands at a path; None if nothing does.

    Raises:
        UsageError: The way passes a link, or ends at one.
        StoreError: It cannot be looked at.
    """
    with store_errors(top.joinpath(*parts), "look at"):
        try:
            with open_beneath(top, parts[:-1]) as parent:
                if not parts:
                    return os.fstat(parent)
                _refuse_link(parent, parts[-1], parts)
                return os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
        except OSError as exc:
            if exc.errno in _NOT_THERE:
                return None
            raise


def read_beneath(top: Path, parts: Sequence[str], *, most_bytes: int) -> bytes | None:
    """
    The content of a regular file, or of its beginning.

    Args:
        top: Where the way begins.
        parts: Names below it, at least one.
        most_bytes: How much is read.

    Returns:
        Its bytes; None if there is no regular file.

    Raises:
        UsageError: The way passes a link, or ends at one.
        StoreError: It cannot be read.
    """
    with store_errors(top.joinpath(*parts), "read"):
        try:
            with open_beneath(top, parts[:-1]) as parent:
                _refuse_link(parent, parts[-1], parts)
                # a pipe must not be waited for
                file = os.open(parts[-1], os.O_RDONLY | os.O_NONBLOCK | _FILE, dir_fd=parent)
                with os.fdopen(file, "rb") as opened:
                    return opened.read(most_bytes) if stat.S_ISREG(os.fstat(file).st_mode) else None
        except OSError as exc:
            if exc.errno in _NOT_THERE:
                return None
            raise


def write_beneath(top: Path, parts: Sequence[str], data: bytes) -> None:
    """
    Replace a file in one step; directories are made, permissions of the former file kept.

    Args:
        top: Where the way begins.
        parts: Names below it, at least one.
        data: The whole content.

    Raises:
        UsageError: The way passes a link, or ends at one.
        StoreError: It cannot be written; no temporary file is left.
    """
    name = parts[-1]
    with (
        signals_after(),
        store_errors(top.joinpath(*parts), "write"),
        open_beneath(top, parts[:-1], make=True) as parent,
    ):
        _refuse_link(parent, name, parts)
        try:
            mode: int | None = stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            mode = None
        made = held_temporary(top.joinpath(*parts), mode=None if mode is None else 0o600, at=parent)
        with made as temporary:
            file = os.open(temporary.name, os.O_WRONLY | _FILE, dir_fd=parent)
            with os.fdopen(file, "wb") as opened:
                opened.write(data)
                opened.flush()
                if mode is not None:
                    os.fchmod(file, mode)
                os.fsync(file)
            os.rename(temporary.name, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)


def _refuse_link(parent: int, name: str, parts: Sequence[str]) -> None:
    """Only for the message: what is opened after it does not follow links."""
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise UsageError(f"{'/'.join(parts)!r} passes a symlink, {name!r}", fix="name the file itself")
