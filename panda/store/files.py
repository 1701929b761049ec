"""Reading, atomic writing, appending and locking of files. Every OSError becomes a StoreError."""

import errno
import fcntl
import json
import logging
import math
import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from panda.documents.json_text import load_json
from panda.errors import FileFormatError, Location, LockHeldError, Problem, StoreError, UsageError
from panda.store.links import check_links
from panda.store.signals import signals_after
from panda.store.temporaries import held_temporary


@contextmanager
def store_errors(path: Path | str, doing: str) -> Iterator[None]:
    """
    Lets no link lead out of the store, and turns an OSError inside of the block into a StoreError.

    Args:
        path: The file or directory that the block opens, lists, makes or removes.
        doing: What is being done, after "cannot".

    Raises:
        UntrustedError: The path leads out of its store by a link that may not.
        StoreError: An OSError was raised; names the path and the system's reason.
    """
    check_links(path)
    try:
        yield
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise StoreError(f"cannot {doing} {path}: {reason}", where=str(path), fix=_fix(exc)) from exc


def why_unread(exc: Problem | OSError) -> str:
    """Why a file cannot be read, without the file."""
    return exc.message if isinstance(exc, Problem) else exc.strerror or "it cannot be read"


def _fix(exc: OSError) -> str:
    if isinstance(exc, PermissionError):
        return "check who owns the file and its directory"
    if isinstance(exc, FileNotFoundError):
        return "check the path"
    return "check the disk and the path, then run the command again"


class _Durability:
    """Whether what this process writes to stores must last through a crash of the machine."""

    is_wanted = True


def stop_syncing() -> None:
    """From now on this process writes to stores that are not to last: a working copy is made again."""
    _Durability.is_wanted = False


def _sync(descriptor: int) -> None:
    if _Durability.is_wanted:
        os.fsync(descriptor)


def sync_file(path: Path) -> None:
    """Makes what was written to a file last through a crash."""
    if _Durability.is_wanted:
        with store_errors(path, "sync"), path.open("rb") as file:
            os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Makes names created, renamed or removed in a directory last through a crash."""
    if not _Durability.is_wanted:
        return
    with store_errors(path, "sync"):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_directory(path: Path) -> None:
    """Creates a directory and its parents, durably; an existing one is fine."""
    if path.is_dir():
        return
    make_directory(path.parent)
    with store_errors(path, "create"):
        path.mkdir(exist_ok=True)
    sync_directory(path.parent)


def remove_tree(path: Path) -> None:
    """Removes a directory with all it holds, or as much of it as goes; a link is left as it is."""
    check_links(path)
    shutil.rmtree(path, ignore_errors=True)


_POLL_SECONDS = 0.05
_TOLD_SECONDS = 0.3  # a shorter wait is nobody's concern
_log = logging.getLogger(__name__)


@contextmanager
def held_lock(path: Path, *, holder: str, wait_seconds: float) -> Iterator[None]:
    """
    Holds an exclusive lock between processes while the block runs; the system frees it if the process dies.
    Who holds it is logged once it is waited for longer than a moment.

    Args:
        path: Lock file; it stays, and names the holder while it is held.
        holder: Who takes the lock, in words, e.g. "panda turn (pid 411)".

    Raises:
        LockHeldError: Somebody else still holds it after that time.
        StoreError: The lock file cannot be opened.
    """
    make_directory(path.parent)
    with store_errors(path, "lock"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _wait_for(path, descriptor, wait_seconds)
        with store_errors(path, "write"):
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, holder.encode(), 0)
        try:
            yield
        finally:
            with store_errors(path, "write"):
                os.truncate(descriptor, 0)
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a process holds a lock; the lock file is looked at and never written."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _wait_for(path: Path, descriptor: int, wait_seconds: float) -> None:
    began, told = time.monotonic(), False
    while True:
        try:
            with store_errors(path, "lock"):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except StoreError as exc:
            if not isinstance(exc.__cause__, BlockingIOError):
                raise
        name = os.pread(descriptor, 500, 0).decode(errors="replace") or "another process"
        waited = time.monotonic() - began
        if waited >= wait_seconds:
            raise LockHeldError(
                f"the lock is held by {name}; waited {wait_seconds:g} s",
                where=str(path),
                fix="wait until it is done, or give a longer --wait",
            )
        if waited >= _TOLD_SECONDS and not told:
            _log.info("waiting for %s", name)
            told = True
        time.sleep(_POLL_SECONDS)


_KINDS = {True: os.strerror(errno.EISDIR), False: "not a regular file"}
_TAIL_BYTES = 65_536
_TRIES = 4  # how often a directory that somebody deletes meanwhile is made again


def write_synced(path: Path, data: bytes) -> None:
    """Writes a file in place and syncs it: for files in a temporary directory that is renamed afterwards."""
    with signals_after(), store_errors(path, "write"):
        _write_synced(path, data)


def _write_synced(path: Path, data: bytes, *, mode: int | None = None) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        _sync(file.fileno())


def write_atomic(path: Path, data: str | bytes) -> None:
    """
    Replaces a file in one step: after a crash it holds the former content or the given one, nothing else.

    It keeps its permissions. A link stays a link: the file that it leads to is replaced. A device or a pipe
    is written into. Ctrl-C and SIGTERM wait until it is written.

    Args:
        path: The file; missing parent directories are created.
        data: Whole content; text is written as UTF-8 with its line breaks as they are.

    Raises:
        StoreError: It cannot be written; no temporary file is left.
    """
    content = data.encode() if isinstance(data, str) else data
    with signals_after():
        with store_errors(path, "write"):
            if path.exists() and not (path.is_file() or path.is_dir()):
                path.write_bytes(content)
                return
            path = path.resolve() if path.is_symlink() else path
            mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        for left in reversed(range(_TRIES)):
            try:
                make_directory(path.parent)
                with store_errors(path, "write"):
                    _replace(path, content, mode)
            except StoreError as exc:
                if not left or not isinstance(exc.__cause__, FileNotFoundError):
                    raise
            else:
                return


def _replace(path: Path, content: bytes, mode: int | None) -> None:
    with held_temporary(path, mode=None if mode is None else 0o600) as temporary:
        _write_synced(temporary, content, mode=mode)
        temporary.rename(path)
    sync_directory(path.parent)


REPORT_MARK = "<!-- a report of panda: the next one takes its place -->"
"""What the first bytes of a report hold, and of nothing else that panda may replace."""
_MARKED_BYTES = 256


def replace_report(path: Path) -> None:
    """Take a former report away, so that it is not taken for the one to come. UsageError: it is none."""
    if path.is_file() and path.stat().st_size:
        with path.open("rb") as file:
            if REPORT_MARK.encode() not in file.read(_MARKED_BYTES):
                message = f"{path} is there already and no report of panda"
                raise UsageError(message, fix="name another file, or move that one away")
        path.resolve().unlink()


def check_target(path: Path) -> None:
    """Raises UsageError for a link that leads out of the directory in which a file is to be written."""
    target = path.resolve()
    is_system = path.is_absolute() and path.parts[1:2] in (("dev",), ("proc",))
    if path.is_symlink() and target.parent != path.parent.resolve() and not is_system:
        raise UsageError(f"{path} is a link to {target}", fix="name the file that is to be written itself")


def render_json(value: object) -> str:
    """
    JSON as panda writes it: indented by two, characters as they are, one final line break.

    >>> render_json({"turn": 1})
    '{\\n  "turn": 1\\n}\\n'
    """
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def write_json(path: Path, value: object) -> None:
    """Replaces a JSON file in one step."""
    write_atomic(path, _encode_json(render_json(value)))


def _encode_json(text: str) -> bytes:
    """JSON as bytes; half of a surrogate pair, as a broken file can bring in, becomes a JSON escape."""
    return text.encode("utf-8", errors="backslashreplace")


def append_json_line(path: Path, value: object) -> None:
    """
    Adds one line to a JSON-lines file and syncs it, as append_json_lines does. Raises StoreError: it cannot
    be written; all whole lines are there as before.
    """
    append_json_lines(path, [value])


def append_json_lines(path: Path, values: Sequence[object]) -> None:
    """
    Adds lines to a JSON-lines file and syncs it once.

    A last line without a line break is what a crash left: it is completed if it is whole JSON, else removed,
    since nobody was told that it was written. Writers of several processes wait for each other; Ctrl-C and
    SIGTERM wait until the lines are written.

    Args:
        path: The file; it and its directories are made.
        values: A JSON value a line.

    Raises:
        StoreError: It cannot be written; all whole lines are there as before.
    """
    make_directory(path.parent)
    lines = b"".join(
        _encode_json(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n") for value in values
    )
    created = not path.exists()
    with store_errors(path, "append to"), held_log(path) as file, signals_after():
        _append(file, lines)
    if created:
        sync_directory(path.parent)


@contextmanager
def held_log(path: Path) -> Iterator[FileIO]:
    """A file of lines, made if need be, that no other process adds to or replaces while the block runs."""
    while True:
        with path.open("a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield file
                return
        # whoever held the lock has put another file in its place


def _append(file: FileIO, line: bytes) -> None:
    torn = _torn_line(file)
    end = file.seek(0, os.SEEK_END)
    if torn and _is_json(torn):
        line = b"\n" + line
    elif torn:
        end = file.truncate(end - len(torn))
    try:
        rest = memoryview(line)
        while rest:
            rest = rest[file.write(rest) :]
        _sync(file.fileno())
    except BaseException:
        with suppress(OSError):
            file.truncate(end)
        raise


def _torn_line(file: FileIO) -> bytes:
    """What stands after the last line break."""
    start = end = file.seek(0, os.SEEK_END)
    tail = b""
    while start and b"\n" not in tail:
        start = max(0, start - _TAIL_BYTES)
        file.seek(start)
        tail = file.read(end - start)
    return tail.rpartition(b"\n")[2]


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def read_bytes(path: Path | str, *, pipe: bool = False) -> bytes:
    """
    Content of a file.

    Args:
        pipe: Whether it may be a pipe, which is waited for; never for files of the store.

    Raises:
        StoreError: It is missing, is no regular file, or cannot be read.
    """
    with store_errors(path, "read"):
        flags = os.O_RDONLY | (0 if pipe else os.O_NONBLOCK)  # a pipe is not waited for
        return _content(os.open(path, flags), pipe=pipe)


def _content(descriptor: int, *, pipe: bool = False) -> bytes:
    """All that an open file holds; it is closed."""
    try:
        status = os.fstat(descriptor)
        if not pipe and not stat.S_ISREG(status.st_mode):
            is_directory = stat.S_ISDIR(status.st_mode)
            raise OSError(errno.EISDIR if is_directory else errno.EINVAL, _KINDS[is_directory])
        data = os.read(descriptor, status.st_size + 1)  # mostly all of it, by one call
        while len(data) != status.st_size and (more := os.read(descriptor, _TAIL_BYTES)):
            data += more
        return data
    finally:
        os.close(descriptor)


def read_text_at(directory: int, path: str) -> str:
    """
    As read_text, of a file in an open directory whose own way was checked: unless the file is a link, or
    cannot be read, its way is not walked again.
    """
    with suppress(OSError, UnicodeDecodeError):
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
        return _content(os.open(path.rpartition("/")[2], flags, dir_fd=directory)).decode()
    return read_text(path)


def read_text(path: Path | str, *, pipe: bool = False) -> str:
    """
    Content of a text file, line breaks as they are in it.

    Args:
        pipe: As for read_bytes.

    Raises:
        StoreError: It is missing, is no regular file, or cannot be read.
        FileFormatError: It is not UTF-8; names the line.
    """
    return to_text(read_bytes(path, pipe=pipe), path)


def to_text(data: bytes, path: Path | str) -> str:
    """The text that a file holds. Raises FileFormatError: it is not UTF-8; names the line."""
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        message = f"not UTF-8: byte 0x{data[exc.start]:02x} at offset {exc.start}"
        raise FileFormatError(message, where=Location(path, line=line), fix="save the file as UTF-8") from exc


def read_json(path: Path | str) -> Any:
    """The value of a JSON file. Raises FileFormatError: it is not UTF-8 or not JSON; names the line."""
    return parse_json(read_text(path), where=str(path))


def parse_json(text: str, *, where: str, line: int = 1) -> Any:
    """
    The value of a JSON text; half of a surrogate pair becomes U+FFFD.

    Args:
        text: JSON; NaN, infinities and numbers that are too large for one are refused.
        line: Line of the file at which the text begins.

    Raises:
        FileFormatError: It is not JSON; names the line.
    """
    try:
        return load_json(text, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as exc:
        message = f"not valid JSON: {exc.msg} (column {exc.colno})"
        raise FileFormatError(message, where=Location(where, line=line + exc.lineno - 1)) from exc
    except (ValueError, RecursionError) as exc:
        raise FileFormatError(f"not valid JSON: {exc}", where=Location(where, line=line)) from exc


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:80]} is too large a number")
    return number


def read_json_lines(path: Path) -> list[Any]:
    """
    The values of a JSON-lines file, in order; a torn last line is left out, blank lines are skipped. Raises
    FileFormatError: a line is not JSON; names it.
    """
    lines = read_text(path).split("\n")
    torn = lines.pop()
    if torn.strip() and _is_json(torn.encode()):
        lines.append(torn)
    return [parse_json(one, where=str(path), line=i) for i, one in enumerate(lines, 1) if one.strip()]


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
    What stands at a path; None if nothing does. Raises UsageError: the way passes a link, or ends at one.
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
        most_bytes: How much is read.

    Returns:
        Its bytes; None if there is no regular file.

    Raises:
        UsageError: The way passes a link, or ends at one.
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
    Replace a file in one step; directories are made, permissions of the former file kept. Raises UsageError:
    the way passes a link, or ends at one. StoreError: it cannot be written; no temporary file is left.
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
