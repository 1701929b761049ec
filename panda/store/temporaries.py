"""Temporary files and directories: held while they are written, swept once their process is gone."""

import fcntl
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from panda.store.links import check_links, may_pass

_HELD = re.compile(r"\..+\.[0-9a-f]{12}\.panda\.tmp", re.DOTALL)
_FORMER = re.compile(r"\..+\.[0-9a-f]{12}\.tmp(-journal|-mj[0-9A-F]+)?", re.DOTALL)
"""As versions before this one named them; nobody holds those, so only their age tells."""
FORMER_CACHE = re.compile(r"\.tmp-\w{8}")  # the same in caches
_FORMER_WORK = re.compile(r"panda-(replay|judge)-\w{8}")
_FORMER_FILE_SECONDS, _FORMER_DIRECTORY_SECONDS = 60.0, 3_600.0
_LONGEST_NAME_BYTES = 220
_MARK = "writing"
_KNOWLEDGE = "knowledge"


def is_temporary(path: Path) -> bool:
    """
    Whether the name is one that this or an earlier version gives to temporary files and directories.

    >>> is_temporary(Path(".context.md.0123456789ab.panda.tmp")), is_temporary(Path("context.md"))
    (True, False)
    """
    return _HELD.fullmatch(path.name) is not None or _FORMER.fullmatch(path.name) is not None


def is_abandoned(path: Path) -> bool:
    """Whether it is a temporary file or directory that no process holds any more; writes nothing."""
    if path.name.startswith(f".{_MARK}."):
        return False
    return _FORMER.fullmatch(path.name) is not None or (is_temporary(path) and _is_free(path))


@contextmanager
def held_temporary(
    path: Path, *, directory: bool = False, mode: int | None = None, at: int | None = None
) -> Iterator[Path]:
    """
    A temporary file or directory beside a path, to be renamed to it; what is not renamed goes at the end.

    While the block runs the process holds a lock on it, which the system frees if the process dies: sweeping
    leaves it alone until then, whatever its age and whoever has its process number now.

    Args:
        path: What it will be; its directory must be there.
        mode: Permissions before the umask; None for those that new files and directories usually have.
        at: Descriptor of the directory of *path*, where all that is done is done; None goes by the path.

    Yields:
        The new empty file or directory.
    """
    check_links(path.parent)
    _WRITING.note(path.parent)
    temporary, descriptor = _make(path, directory, mode, at)
    try:
        yield temporary
    finally:
        with suppress(OSError):
            _remove(temporary, at)
        os.close(descriptor)


@contextmanager
def work_directory(name: str) -> Iterator[Path]:
    """
    A directory for the user alone among the system's temporary files; it goes with all it holds at the end.

    Args:
        name: What it is for, e.g. "replay".
    """
    place = Path(tempfile.gettempdir())
    sweep(place, former=_FORMER_WORK)
    with held_temporary(place / f"panda-{name}", directory=True, mode=0o700) as made:
        yield made


def sweep(directory: Path, *, former: re.Pattern[str] = _FORMER, is_locked: bool = False) -> None:
    """
    Remove the temporaries in a directory that no process holds.

    Args:
        directory: Only what lies in it, not what lies deeper; one that cannot be read, or that lies outside
            of its store behind a link, is left as it is.
        former: Names of temporaries of earlier versions: files go when they are a minute old, directories
            when they are an hour old.
        is_locked: Whether the caller holds the lock under which earlier versions write there, so that theirs
            go whatever their age.
    """
    if not may_pass(directory):
        return
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(f".{_MARK}."):
                continue
            if _HELD.fullmatch(entry.name) or former.fullmatch(entry.name):
                _sweep_one(Path(entry.path), is_locked=is_locked)


def sweep_cache(directory: Path) -> None:
    """Remove the temporaries in a cache directory, and in the directories in it, that no process holds."""
    for place in (directory, *directory.glob("*/")):
        sweep(place)
        sweep(place, former=FORMER_CACHE)


class _Writing:
    """The stores that this process writes to: a held file in each tells others when it died."""

    def __init__(self) -> None:
        self._guard = threading.RLock()
        self._stack = ExitStack()
        self._marks: dict[Path, Path] = {}
        self._noted: set[Path] = set()

    def begin(self, root: Path) -> bool:
        """Mark a store; returns False if it was marked already."""
        with self._guard:
            root = root.resolve()
            if root in self._marks:
                return False
            self._marks[root] = self._stack.enter_context(held_temporary(root / _MARK))
            return True

    def end(self) -> None:
        """Take all marks away."""
        with self._guard:
            self._stack.close()
            self._marks.clear()
            self._noted.clear()

    def note(self, directory: Path) -> None:
        """Sweep a directory outside of the marked stores, and note it in their marks."""
        directory = directory.resolve()
        with self._guard:
            if directory in self._noted or any(directory.is_relative_to(root) for root in self._marks):
                return
            self._noted.add(directory)
            sweep(directory)
            for mark in self._marks.values():
                with suppress(OSError), mark.open("ab") as file:
                    file.write(os.fsencode(directory) + b"\0")


_WRITING = _Writing()


def begin_writing(root: Path, project: Path | None = None) -> None:
    """
    Tell other processes that this one writes to a store, and sweep what killed ones left there.

    A store is walked as a whole only if a process died that wrote to it: its mark is still there. What
    versions without marks left is found where they left it most.

    Args:
        root: The store. One that cannot be written is left as it is: whoever writes meets the error.
        project: Where else a mark of the store may say that something was left; no further.
    """
    with suppress(OSError):
        if not _WRITING.begin(root):
            return
        sweep(Path(tempfile.gettempdir()), former=_FORMER_WORK)
        sweep(root)
        for place in ("indexes", "interventions", "logs", "users", "users/*"):
            for directory in root.glob(place):
                sweep(directory)
        marks = [path for path in root.glob(f".{_MARK}.*") if is_temporary(path)]
        dead = [path for path in marks if _is_free(path)]
        if dead:
            sweep_below(root)
        for path in dead:
            for directory in map(Path.resolve, _noted_in(path)):
                if any(directory.is_relative_to(place.resolve()) for place in (root, project or root)):
                    sweep(directory)
            _sweep_one(path)


def end_writing() -> None:
    """The process writes to no store any more."""
    _WRITING.end()


def sweep_below(directory: Path) -> None:
    """Remove all temporaries of a store, or of a part of one, that no process holds; notes are left alone."""
    for place, below, _ in os.walk(directory):
        sweep(Path(place))
        below[:] = [name for name in below if name != _KNOWLEDGE and not is_temporary(Path(name))]


def _noted_in(mark: Path) -> Iterable[Path]:
    with suppress(OSError):
        if mark.is_file():  # who reads a pipe waits
            return [Path(os.fsdecode(name)) for name in mark.read_bytes().split(b"\0") if name]
    return []


def _make(path: Path, directory: bool, mode: int | None, at: int | None) -> tuple[Path, int]:
    """A new file or directory with a descriptor that holds it."""
    stem = os.fsdecode(os.fsencode(path.name)[:_LONGEST_NAME_BYTES])
    while True:
        temporary = path.with_name(f".{stem}.{uuid4().hex[:12]}.panda.tmp")
        place = _place(temporary, at)
        if directory:
            os.mkdir(place, 0o777 if mode is None else mode, dir_fd=at)
            try:
                descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
            except FileNotFoundError:
                continue  # swept before it could be held
        else:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
            descriptor = os.open(place, flags, 0o666 if mode is None else mode, dir_fd=at)
        with suppress(OSError):  # where there are no locks, nothing is swept either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_at(descriptor, temporary, at):
            return temporary, descriptor
        os.close(descriptor)  # swept before it was held


def _place(path: Path, at: int | None) -> Path | str:
    return path if at is None else path.name


def _is_at(descriptor: int, path: Path, at: int | None = None) -> bool:
    with suppress(OSError):
        status = os.stat(_place(path, at), dir_fd=at, follow_symlinks=False)
        return os.path.samestat(os.fstat(descriptor), status)
    return False


def _is_free(path: Path) -> bool:
    with _unheld(path) as free:
        return free


@contextmanager
def _unheld(path: Path, *, is_locked: bool = False) -> Iterator[bool]:
    """Whether no process holds it, nor will while the block runs; former ones are held until they are old."""
    descriptor = -1
    free = False
    with suppress(OSError):
        if is_locked or _HELD.fullmatch(path.name) or _is_old(path.lstat()):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = _is_at(descriptor, path)
    try:
        yield free
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _is_old(status: os.stat_result) -> bool:
    most = _FORMER_DIRECTORY_SECONDS if stat.S_ISDIR(status.st_mode) else _FORMER_FILE_SECONDS
    return time.time() - max(status.st_mtime, status.st_ctime) > most


def _sweep_one(path: Path, *, is_locked: bool = False) -> None:
    with _unheld(path, is_locked=is_locked) as free:
        if free:
            with suppress(OSError):
                _remove(path)


def _remove(path: Path, at: int | None = None) -> None:
    place = _place(path, at)
    if stat.S_ISDIR(os.stat(place, dir_fd=at, follow_symlinks=False).st_mode):
        shutil.rmtree(place, dir_fd=at)
    else:
        os.unlink(place, dir_fd=at)
