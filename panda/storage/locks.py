"""Locks between processes."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from panda.errors import LockHeldError, StoreError
from panda.storage.os_errors import make_directory, store_errors

_POLL_SECONDS = 0.05


@contextmanager
def held_lock(
    path: Path, *, holder: str, wait_seconds: float, on_wait: Callable[[str], None] | None = None
) -> Iterator[None]:
    """
    Holds an exclusive lock between processes while the block runs; the system frees it if the process dies.

    Args:
        path: Lock file; it stays, and names the holder while it is held.
        holder: Who takes the lock, in words, e.g. "panda turn (pid 411)".
        wait_seconds: How long to wait for another holder; 0 does not wait.
        on_wait: Told once who holds the lock, when waiting begins.

    Raises:
        LockHeldError: Somebody else still holds it after that time.
        StoreError: The lock file cannot be opened.

    Source:
        design, command line.
    """
    make_directory(path.parent)
    with store_errors(path, "lock"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _wait_for(path, descriptor, wait_seconds, on_wait)
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


def _wait_for(
    path: Path, descriptor: int, wait_seconds: float, on_wait: Callable[[str], None] | None
) -> None:
    deadline = time.monotonic() + wait_seconds
    told = False
    while True:
        try:
            with store_errors(path, "lock"):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except StoreError as exc:
            if not isinstance(exc.__cause__, BlockingIOError):
                raise
        name = os.pread(descriptor, 500, 0).decode(errors="replace") or "another process"
        if time.monotonic() >= deadline:
            raise LockHeldError(
                f"the lock is held by {name}; waited {wait_seconds:g} s",
                where=str(path),
                fix="wait until it is done, or give a longer --wait",
            )
        if on_wait and not told:
            on_wait(name)
            told = True
        time.sleep(_POLL_SECONDS)
