"""Files of stores and projects: links that lead out, reading, atomic writing, lines, locks, temporaries."""

import codecs
import ctypes
import errno
import fcntl
import json
import logging
import math
import os
import re
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple, TextIO
from uuid import uuid4

from panda.documents.json_text import load_json
from panda.errors import (
    FileFormatError,
    Location,
    LockHeldError,
    NoteFormatError,
    Problem,
    StoreError,
    UntrustedError,
    UsageError,
    Verdict,
)

TRUST_FIX = "look at it with panda trust --dry-run, then panda trust"
"""What to do about anything that is not trusted yet."""


@dataclass(frozen=True)
class _Store:
    real: str  # its root without links
    allows: Callable[[str, str], bool]  # whether a link, by its own path, may lead to a path outside
    fix: str  # what to do about one that may not


_stores: dict[str, _Store] = {}  # by root, both as it is named and without links


def watch_store(root: Path, allows: Callable[[str, str], bool], fix: str = TRUST_FIX) -> None:
    """
    From now on check every path below a root for links that lead out of it: in the whole process, like the
    umask, because a path does not know what it belongs to. *allows* is given the path of a link, without
    links before its last part, and that of what it leads to.
    """
    real = os.path.realpath(root)
    _stores[os.path.normpath(root)] = _stores[real] = _Store(real, allows, fix)


def watch_also(root: Path, *, like: Path) -> None:
    """Check every path below a root as below another one."""
    if (store := _stores.get(os.path.realpath(like))) is not None:
        watch_store(root, store.allows, store.fix)


def forget_store(root: Path) -> None:
    """Check no path below a root any more."""
    for name in (os.path.normpath(root), os.path.realpath(root)):
        _stores.pop(name, None)


def check_links(path: Path | str) -> None:
    """Raises UntrustedError for a path below a watched store if a link on its way leads out and may not."""
    text = os.path.normpath(path)
    root = _root_of(text)
    if root is None:
        if _root_of(os.fspath(path)) is not None:
            raise UntrustedError(f"{path} leads out of the store", where=str(path), fix="leave out ..")
        return
    store = _stores[root]
    at = inside = store.real
    for part in text[len(root) :].split("/")[1:]:
        link = f"{at}/{part}"
        try:
            is_link = stat.S_ISLNK(os.lstat(link).st_mode)
        except OSError:
            return  # nothing there: whoever opens it will be told
        if not is_link:
            at = link
            continue
        at = os.path.realpath(link)
        if is_below(at, inside) or any(is_below(at, other.real) for other in _stores.values()):
            continue
        hop = os.path.normpath(Path(link).parent / Path(link).readlink())
        if _root_of(hop) is not None and os.path.realpath(hop) == at:
            check_links(hop)  # by way of another link of a store, which is asked instead
        elif not store.allows(link, at):
            raise UntrustedError(f"this link leads out of the store, to {at}", where=link, fix=store.fix)
        inside = at


def may_pass(path: Path | str) -> bool:
    """Return whether check_links lets a path pass."""
    try:
        check_links(path)
    except UntrustedError:
        return False
    return True


def check_store(root: str, *, named_in: Path, key: str) -> None:
    """Let a store pass that a file names: a watched one, or one that may be reached as if by a link."""
    at = os.path.realpath(named_in)
    target = os.path.realpath(root.replace("\0", "/"))
    if target in _stores:
        return
    own = _stores.get(_root_of(at) or "")
    if own is None or not own.allows(named_place(at, target), target):
        message = f"it names another store, {target}"
        fix = own.fix if own else TRUST_FIX
        raise UntrustedError(message, where=Location(named_in, key=key), fix=fix)
    watch_store(Path(target), own.allows, own.fix)


def named_place(path: str, target: str) -> str:
    """A place that a file names, as the link that it amounts to."""
    return f"{path} ({target})"


def is_below(path: str, root: str) -> bool:
    """Return whether a path is a root or below it, by their texts."""
    return path == root or path.startswith(root if root.endswith("/") else root + "/")


def _root_of(path: str) -> str | None:
    """Return the deepest watched root that a path is or lies below; None if there is none."""
    while path not in _stores:
        parent = path.rpartition("/")[0]
        if not parent:
            return "/" if path.startswith("/") and "/" in _stores else None
        path = parent
    return path


@contextmanager
def store_errors(path: Path | str, doing: str) -> Iterator[None]:
    """
    Lets no link of the path lead out of the store (UntrustedError), and turns an OSError inside of the block
    into a StoreError: "cannot", what is being done, the path and the system's reason.
    """
    check_links(path)
    try:
        yield
    except OSError as exc:
        fixes = {
            PermissionError: "check who owns the file and its directory",
            FileNotFoundError: "check the path",
            IsADirectoryError: "it is a directory: name a file in it",
            NotADirectoryError: "a part of the path is a file: check the path",
        }
        fix = fixes.get(type(exc), "check the disk and the path, then run the command again")
        raise StoreError(f"cannot {doing} {path}: {exc.strerror or exc}", where=str(path), fix=fix) from exc


def why_unread(exc: Problem | OSError) -> str:
    """Why a file cannot be read, without the file."""
    return exc.message if isinstance(exc, Problem) else exc.strerror or "it cannot be read"


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived. Whoever is ready for Ctrl-C is ready for it."""


_writing: dict[int, list[type[KeyboardInterrupt]]] = {}  # by thread that writes: what waits until it is done
_writing_guard = threading.Lock()
_raised: list[type[KeyboardInterrupt]] = []  # by the handler of signals, in the main thread


@contextmanager
def uninterrupted() -> Iterator[list[type[KeyboardInterrupt]]]:
    """Ctrl-C, SIGTERM and interrupt_thread take effect after the block, which is told those that arrived."""
    me = threading.get_ident()
    if me in _writing:
        yield _writing[me]
        return
    with _writing_guard:
        arrived = _writing[me] = []
    try:
        yield arrived
    finally:
        with _writing_guard:
            del _writing[me]
        if arrived:
            raise arrived[0]


def interrupt(number: int, frame: FrameType | None) -> None:
    """The handler of Ctrl-C and SIGTERM: raises once no write is at hand, the second time at once."""
    exception = Terminated if number == signal.SIGTERM else KeyboardInterrupt
    arrived = _writing.get(threading.get_ident())
    if arrived is None or arrived:
        _raised.append(exception)
        raise exception
    arrived.append(exception)


def raise_lost_interrupt() -> None:
    """Raise what a signal raised where Python drops it: in a callback from C, or in a finalizer."""
    if _raised and threading.current_thread() is threading.main_thread():
        raise _raised[0]


def interrupt_thread(thread: threading.Thread) -> None:
    """
    Raise KeyboardInterrupt in another thread before its next step in Python: a call that waits for the system
    ends first, and a write that is at hand too. A thread that has ended is left alone.
    """
    with _writing_guard:
        if thread.ident in _writing:
            _writing[thread.ident].append(KeyboardInterrupt)
        elif thread.ident is not None and thread.is_alive():
            ident = ctypes.c_ulong(thread.ident)
            exception = ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, exception)


_PRIVATE_UMASK = 0o077
_umask_of_user: int | None = None  # the umask that a command began with, while private_files replaces it


@contextmanager
def private_files() -> Iterator[None]:
    """
    Within the block, whatever this process creates is for its user alone: memory is private, however the
    umask is set. The umask counts again for what the user names for output (output_mode).
    """
    global _umask_of_user
    former = _umask_of_user
    before = os.umask(_PRIVATE_UMASK)
    _umask_of_user = before if former is None else former
    try:
        yield
    finally:
        os.umask(before)
        _umask_of_user = former


def umask_of_user() -> int:
    """The umask of whoever started the command, for what they name for output and programs that it starts."""
    if _umask_of_user is not None:
        return _umask_of_user
    umask = os.umask(_PRIVATE_UMASK)
    os.umask(umask)
    return umask


def output_mode(*, directory: bool = False) -> int:
    """The permissions of a new file or directory that the user asked for by name: as the umask says."""
    return (0o777 if directory else 0o666) & ~umask_of_user()


@contextmanager
def open_output(path: Path | str, mode: Literal["a", "w"]) -> Iterator[TextIO]:
    """A text file that the user names for output, to be written line by line."""
    is_new = not Path(path).exists()
    with store_errors(path, "create"):
        file = Path(path).open(mode, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115  # below
    with file:
        if is_new:
            os.fchmod(file.fileno(), output_mode())
        yield file


_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}(\.panda)?\.tmp", re.DOTALL)
_LONGEST_NAME_BYTES = 220
_MARK = "writing"
_marks: dict[Path, Path] = {}  # by store that this process writes to: a temporary that tells when it died
_marks_held = ExitStack()
_marks_guard = threading.RLock()
_swept: set[Path] = set()  # directories outside of these stores


def is_temporary(path: Path) -> bool:
    """
    Return whether the name is one that panda gives to temporary files and directories.

    >>> is_temporary(Path(".context.md.0123456789ab.panda.tmp")), is_temporary(Path("context.md"))
    (True, False)
    """
    return _TEMPORARY.fullmatch(path.name) is not None


def is_abandoned(path: Path) -> bool:
    """Return whether a path is a temporary file or directory that no process holds any more."""
    return is_temporary(path) and not path.name.startswith(f".{_MARK}.") and _take(path)


@contextmanager
def held_temporary(path: Path, *, directory: bool = False, at: int | None = None) -> Iterator[Path]:
    """
    A new temporary file or directory beside a path, for the user alone, to be renamed to it; what is not
    renamed goes at the end. Sweeping leaves it alone until then, or until the process is dead: it holds a
    lock.

    Args:
        at: Descriptor of the directory of *path*, where all is done; None goes by the path.
    """
    check_links(path.parent)
    _sweep_outside(path.parent)
    stem = os.fsdecode(os.fsencode(path.name)[:_LONGEST_NAME_BYTES])
    while True:
        temporary = path.with_name(f".{stem}.{uuid4().hex[:12]}.panda.tmp")
        place = temporary if at is None else temporary.name
        if directory:
            os.mkdir(place, 0o700, dir_fd=at)
        flags = os.O_RDONLY | os.O_DIRECTORY if directory else os.O_RDWR | os.O_CREAT | os.O_EXCL
        try:
            descriptor = os.open(place, flags, 0o600, dir_fd=at)
        except FileNotFoundError:
            if not directory:
                raise
            continue  # swept before it could be held
        with suppress(OSError):  # where there are no locks, nothing is swept either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_at(descriptor, place, at):
            break
        os.close(descriptor)  # swept before it was held
    try:
        yield temporary
    finally:
        with suppress(OSError):
            _remove(place, at)
        os.close(descriptor)


@contextmanager
def work_directory(name: str) -> Iterator[Path]:
    """A directory for the user alone among the system's temporary files; it goes at the end."""
    place = Path(tempfile.gettempdir()) / f"panda-{name}"
    with held_temporary(place, directory=True) as directory:
        yield directory


def sweep(directory: Path) -> None:
    """Remove the temporaries in a directory that no process holds; none behind a link out of the store."""
    if not may_pass(directory):
        return
    with suppress(OSError), os.scandir(directory) as entries:
        for path in [Path(entry.path) for entry in entries]:
            if is_temporary(path) and not path.name.startswith(f".{_MARK}."):
                _take(path, remove=True)


def sweep_below(directory: Path) -> None:
    """Remove all temporaries of a store, or of a part of one, that no process holds; notes are left alone."""
    for place, below, _ in os.walk(directory):
        sweep(Path(place))
        below[:] = [name for name in below if name != "knowledge" and not is_temporary(Path(name))]


def begin_writing(root: Path, project: Path | None = None) -> None:
    """
    Mark a store as written to by this process, and sweep what killed ones left: in the whole store, and in
    what their marks name of the project, if a mark is still there. One that cannot be written stays as it is.
    """
    with suppress(OSError), _marks_guard:
        root = root.resolve()
        if root in _marks:
            return
        _marks[root] = _marks_held.enter_context(held_temporary(root / _MARK))
        _sweep_outside(Path(tempfile.gettempdir()))
        for place in (root, *root.glob("*"), *root.glob("users/*")):
            sweep(place)
        dead = [mark for mark in root.glob(f".{_MARK}.*") if is_temporary(mark) and _take(mark)]
        if dead:
            sweep_below(root)
        for mark in dead:
            names = mark.read_bytes().split(b"\0") if mark.is_file() else []  # who reads a pipe waits
            for place in (Path(os.fsdecode(name)).resolve() for name in names if name):
                if any(place.is_relative_to(top.resolve()) for top in (root, project or root)):
                    sweep(place)
            _take(mark, remove=True)


def end_writing() -> None:
    """The process writes to no store any more; signals that it was sent are dealt with."""
    _raised.clear()
    with _marks_guard:
        _marks_held.close()
        _marks.clear()
        _swept.clear()


def _sweep_outside(directory: Path) -> None:
    """Sweep a directory outside of the stores that are written to, once, and note it in their marks."""
    directory = directory.resolve()
    with _marks_guard:
        if directory in _swept or any(directory.is_relative_to(root) for root in _marks):
            return
        _swept.add(directory)
        sweep(directory)
        for mark in _marks.values():
            with suppress(OSError), mark.open("ab") as file:
                file.write(os.fsencode(directory) + b"\0")


def _take(path: Path, *, remove: bool = False) -> bool:
    """Return whether no process holds a temporary, which may be removed then."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free = _is_at(descriptor, path, None)
            if is_free and remove:
                _remove(path, None)
            return is_free
        finally:
            os.close(descriptor)
    return False


def _is_at(descriptor: int, place: Path | str, at: int | None) -> bool:
    with suppress(OSError):
        status = os.stat(place, dir_fd=at, follow_symlinks=False)
        return os.path.samestat(os.fstat(descriptor), status)
    return False


def _remove(place: Path | str, at: int | None) -> None:
    if stat.S_ISDIR(os.stat(place, dir_fd=at, follow_symlinks=False).st_mode):
        shutil.rmtree(place, dir_fd=at)
    else:
        os.unlink(place, dir_fd=at)


class _Durability:
    is_wanted = True


def stop_syncing() -> None:
    """From now on this process does not wait for the disk: who takes up what it wrote does, once."""
    _Durability.is_wanted = False


def _sync(descriptor: int) -> None:
    if _Durability.is_wanted:
        os.fsync(descriptor)


def sync_path(path: Path) -> None:
    """Makes what a file holds, or names made or removed in a directory, last through a crash."""
    if _Durability.is_wanted:
        with store_errors(path, "sync"):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def make_directory(path: Path, *, mode: int = 0o700) -> None:
    """
    Creates a directory and its parents, durably; an existing one is fine. What is new is for the user alone,
    or has the permissions of *mode* (output_mode).
    """
    if path.is_dir():
        return
    make_directory(path.parent, mode=mode)
    with store_errors(path, "create"):
        path.mkdir(mode=0o700, exist_ok=True)
        if mode != 0o700:
            path.chmod(mode)
    sync_path(path.parent)


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
    Holds an exclusive lock between processes, which the system frees if the process dies. The lock file
    stays, and names the *holder* in words, who is logged once it is waited for longer than a moment. Raises
    LockHeldError: somebody else still holds it after that time.
    """
    make_directory(path.parent)
    with store_errors(path, "lock"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
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


def _wait_for(path: Path, descriptor: int, wait_seconds: float) -> None:
    began = time.monotonic()
    was_reported = False
    while True:
        with store_errors(path, "lock"), suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        name = os.pread(descriptor, 500, 0).decode(errors="replace") or "another process"
        waited = time.monotonic() - began
        if waited >= wait_seconds:
            message = f"the lock is held by {name}; waited {wait_seconds:g} s"
            fix = "wait until it is done, or give a longer --wait"
            raise LockHeldError(message, where=str(path), fix=fix)
        if waited >= _TOLD_SECONDS and not was_reported:
            _log.info("waiting for %s", name)
            was_reported = True
        time.sleep(_POLL_SECONDS)


def is_locked(path: Path) -> bool:
    """Return whether a process holds a lock; the lock file is looked at and never written."""
    try:
        if path.is_file():
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


_TAIL_BYTES = 65_536


def write_synced(path: Path, data: bytes) -> None:
    """Writes a file in place and syncs it: for files in a temporary directory that is renamed afterwards."""
    with store_errors(path, "write"), path.open("wb") as file:
        file.write(data)
        file.flush()
        _sync(file.fileno())


def write_output(path: Path, data: str | bytes) -> None:
    """Write a file that the user names for output, as write_atomic does; the umask counts for what is new."""
    if not path.is_symlink():
        make_directory(path.parent, mode=output_mode(directory=True))
    write_atomic(path, data, mode=output_mode())


def write_atomic(path: Path, data: str | bytes, *, mode: int = 0o600) -> None:
    """
    Replaces a file in one step: after a crash it holds the former content or the given one, nothing else.
    Directories are made; a file that is there keeps its permissions, a new one has those of *mode*. A link
    stays a link: the file that it leads to is replaced. A device or a pipe is written into. Raises
    StoreError: it cannot be written; no temporary file is left.
    """
    content = data.encode() if isinstance(data, str) else data
    with uninterrupted(), store_errors(path, "write"):
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(content)
            return
        path = path.resolve() if path.is_symlink() else path
        make_directory(path.parent)
        try:
            _replace(path, content, mode=mode)
        except FileNotFoundError:  # somebody has deleted the directory meanwhile
            make_directory(path.parent)
            _replace(path, content, mode=mode)
        sync_path(path.parent)


def _replace(path: Path, content: bytes, *, mode: int, at: int | None = None) -> None:
    """*mode* counts for a new file; *at* is the descriptor of its directory, or None to go by the path."""
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(os.stat(path if at is None else path.name, dir_fd=at).st_mode)
    with held_temporary(path, at=at) as temporary:
        source, target = (temporary, path) if at is None else (temporary.name, path.name)
        descriptor = os.open(source, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            _sync(descriptor)
        os.rename(source, target, src_dir_fd=at, dst_dir_fd=at)


REPORT_MARK = "<!-- a report of panda: the next one takes its place -->"
"""What the first bytes of a report hold, and of nothing else that panda may replace."""
_MARKED_BYTES = 256


def read_cache_file(path: Path) -> bytes:
    """Return what a cache file holds; nothing if it cannot be read."""
    with suppress(OSError):
        return path.read_bytes()
    return b""


def write_cache_file(path: Path, data: bytes) -> None:
    """Write a cache file whole or not at all; a cache that cannot be written is left as it is."""
    with suppress(OSError):  # only speed is lost: everything in the cache can be computed again
        path.parent.mkdir(parents=True, exist_ok=True)
        with held_temporary(path) as temporary:
            temporary.write_bytes(data)
            temporary.replace(path)


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


NOTE_BYTES = 5_000_000
"""The largest note, preferences.md or facts.md that is read."""
_UNICODE_MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
_UNICODE_MARKS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def read_memory_file(path: Path | str) -> str:
    """
    Return the text of preferences.md or facts.md.

    Raises:
        FileFormatError: It is larger than NOTE_BYTES, and then nothing of it is read, it is not UTF-8, or a
            directory stands there.
        StoreError: As read_text.
    """
    if Path(path).is_dir():
        message = "it is a directory, and a file must stand there"
        raise FileFormatError(message, where=str(path), fix="move it away")
    return to_text(_read_limited(path), path)


def read_note(path: Path | str) -> str:
    """
    Return the text of a note; one that is not UTF-8 is read by its byte order mark, else as Windows-1252.

    Raises:
        NoteFormatError: It is no text.
        FileFormatError: It is larger than NOTE_BYTES; then nothing of it is read.
        StoreError: As read_bytes.
    """
    return decode_note(_read_limited(path), path)[0]


def read_note_encoded(path: Path | str) -> tuple[str, str]:
    """Return the text of a note and the name of its encoding; raises as read_note."""
    return decode_note(_read_limited(path), path)


def decode_note(data: bytes, path: Path | str) -> tuple[str, str]:
    """Return the text of a note's bytes, and the name of their encoding; raises NoteFormatError."""
    with suppress(UnicodeDecodeError):
        return data.decode().removeprefix("\ufeff"), "utf-8"
    encoding = next((name for mark, name in _UNICODE_MARKS.items() if data.startswith(mark)), "Windows-1252")
    with suppress(UnicodeDecodeError):
        if encoding != "Windows-1252":
            return data.decode(encoding), encoding
    if _NO_TEXT.search(data):
        raise NoteFormatError("it is no text and is not read", str(path), verdict=Verdict.SOUND)
    return data.decode("Windows-1252", "replace"), "Windows-1252"


def _read_limited(path: Path | str) -> bytes:
    with store_errors(path, "read"):
        size_bytes = os.stat(path).st_size  # noqa: PTH116 - thousands of calls
    if size_bytes > NOTE_BYTES:
        message = f"it has {size_bytes:,} bytes, and a file of notes may have {NOTE_BYTES:,}; it is not read"
        raise FileFormatError(message, where=str(path), fix="split it into several files, or move it away")
    return read_bytes(path)


def read_bytes(path: Path | str, *, pipe: bool = False) -> bytes:
    """
    Content of a file. Raises StoreError: it is missing, cannot be read, or is no regular file; with *pipe*,
    which is not for files of the store, it may be a pipe, and is waited for.
    """
    with store_errors(path, "read"):
        flags = os.O_RDONLY | (0 if pipe else os.O_NONBLOCK)
        return _content(os.open(path, flags), pipe=pipe)


def _content(descriptor: int, *, pipe: bool = False) -> bytes:
    """All that an open file holds; it is closed."""
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not pipe and not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        data = os.read(descriptor, status.st_size + 1)  # mostly all of it, by one call
        while len(data) != status.st_size and (more := os.read(descriptor, _TAIL_BYTES)):
            data += more
        return data
    finally:
        os.close(descriptor)


class FileStamp(NamedTuple):
    """What tells a file from itself as it was before, without a look into it."""

    inode: int
    size_bytes: int
    modified_at_ns: int


def stamp_file(path: Path) -> FileStamp:
    """Return the stamp of a file, of a link that of its target. Raises StoreError: there is none."""
    with store_errors(path, "read"):
        status = path.stat()
    return FileStamp(status.st_ino, status.st_size, status.st_mtime_ns)


def read_text(path: Path | str, *, pipe: bool = False) -> str:
    """Content of a text file, line breaks as they are in it. Raises as read_bytes and to_text do."""
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


_JSON_FORM = "write keys and texts in double quotes, a comma between two members and none behind the last"


def parse_json(text: str, *, where: str, line: int = 1) -> Any:
    """
    The value of a JSON text that begins in that line of a file; half of a surrogate pair becomes U+FFFD.
    Raises FileFormatError: it is not JSON, or has NaN, an infinity or too large a number; names the line.
    """
    try:
        return load_json(text, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as exc:
        message = f"not valid JSON: {exc.msg} (column {exc.colno})"
        place = Location(where, line=line + exc.lineno - 1)
        fix = "mend it, or take it from a backup" if _root_of(str(where)) else _JSON_FORM
        raise FileFormatError(message, where=place, fix=fix) from exc
    except (ValueError, RecursionError) as exc:
        raise FileFormatError(f"not valid JSON: {exc}", where=Location(where, line=line)) from exc


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:80]} is too large a number")
    return number


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
    """Half of a surrogate pair, as a broken file can bring in, becomes a JSON escape."""
    return text.encode("utf-8", errors="backslashreplace")


def append_json_line(path: Path, value: object) -> None:
    """Adds one line to a JSON-lines file, as append_json_lines does."""
    append_json_lines(path, [value])


def append_json_lines(path: Path, values: Sequence[object]) -> None:
    """
    Adds lines to a JSON-lines file, which is made if need be, and syncs it once. A last line without a line
    break is what a crash left: it is completed if it is whole JSON, else removed, since nobody was told that
    it was written. Raises StoreError: it cannot be written; all whole lines are there as before.
    """
    make_directory(path.parent)
    lines = "".join(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n" for value in values)
    is_new = not path.exists()
    with store_errors(path, "append to"), held_log(path) as file, uninterrupted():
        _append(file, _encode_json(lines))
    if is_new:
        sync_path(path.parent)


@contextmanager
def held_log(path: Path) -> Iterator[FileIO]:
    """A file of lines, made if need be, that no other process adds to or replaces while the block runs."""
    while True:
        with path.open("a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file.fileno(), path.resolve(), None):
                yield file
                return
        # whoever held the lock has put another file in its place


def _append(file: FileIO, lines: bytes) -> None:
    start = end = file.seek(0, os.SEEK_END)
    tail = b""
    while start and b"\n" not in tail:
        start = max(0, start - _TAIL_BYTES)
        file.seek(start)
        tail = file.read(end - start)
    if torn := tail.rpartition(b"\n")[2]:
        try:
            json.loads(torn)
            lines = b"\n" + lines
        except (ValueError, RecursionError):
            end = file.truncate(end - len(torn))
    try:
        rest = memoryview(lines)
        while rest:
            rest = rest[file.write(rest) :]
        _sync(file.fileno())
    except BaseException:
        with suppress(OSError):
            file.truncate(end)
        raise


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_THERE = (FileNotFoundError, NotADirectoryError)


@contextmanager
def open_beneath(top: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """
    A descriptor of a directory below another, or of that itself, which may be reached through links: what is
    done at it stays in it, whatever somebody puts in its place meanwhile. *make* makes missing directories,
    as the umask says.
    Raises UsageError: the way passes a link.
    """
    here = os.open(top, _DIRECTORY & ~os.O_NOFOLLOW)
    try:
        for number, part in enumerate(parts):
            is_new = False
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=here)
                    os.fsync(here)
                    is_new = True
            _refuse_link(here, parts[: number + 1])
            inner = os.open(part, _DIRECTORY, dir_fd=here)
            if is_new:
                os.fchmod(inner, output_mode(directory=True))
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def look_beneath(top: Path, parts: Sequence[str]) -> os.stat_result | None:
    """
    Return the status of what stands at a path; None if nothing does. Raises UsageError: the way passes a
    link, or ends at one.
    """
    place = top.joinpath(*parts)
    with store_errors(place, "look at"), suppress(*_NOT_THERE), open_beneath(top, parts[:-1]) as parent:
        if not parts:
            return os.fstat(parent)
        _refuse_link(parent, parts)
        return os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
    return None


def read_beneath(top: Path, parts: Sequence[str], *, most_bytes: int) -> bytes | None:
    """The beginning of a regular file; None if there is none. UsageError as for look_beneath."""
    place = top.joinpath(*parts)
    with store_errors(place, "read"), suppress(*_NOT_THERE), open_beneath(top, parts[:-1]) as parent:
        _refuse_link(parent, parts)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(parts[-1], flags, dir_fd=parent)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        with os.fdopen(descriptor, "rb") as file:
            return file.read(most_bytes)
    return None


def write_beneath(top: Path, parts: Sequence[str], data: bytes) -> None:
    """Replace a file of a project in one step, as write_output does. UsageError as for look_beneath."""
    path = top.joinpath(*parts)
    with uninterrupted(), store_errors(path, "write"), open_beneath(top, parts[:-1], make=True) as parent:
        _refuse_link(parent, parts)
        _replace(path, data, mode=output_mode(), at=parent)
        os.fsync(parent)


def _refuse_link(parent: int, parts: Sequence[str]) -> None:
    """Only for the message: what is opened after it does not follow links."""
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False).st_mode):
            message = f"{'/'.join(parts)!r} passes a symlink, {parts[-1]!r}"
            raise UsageError(message, fix="name the file itself")
