"""OSErrors as StoreErrors, and directories that last through a crash."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from panda.errors import StoreError
from panda.storage.links import check_links


@contextmanager
def store_errors(path: Path, doing: str) -> Iterator[None]:
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


def _fix(exc: OSError) -> str:
    if isinstance(exc, PermissionError):
        return "check who owns the file and its directory"
    if isinstance(exc, FileNotFoundError):
        return "check the path"
    return "check the disk and the path, then run the command again"


def sync_directory(path: Path) -> None:
    """
    Makes names created, renamed or removed in a directory last through a crash.

    Raises:
        StoreError: It cannot be opened or synced.
    """
    with store_errors(path, "sync"):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_directory(path: Path) -> None:
    """
    Creates a directory and its parents, durably; an existing one is fine.

    Raises:
        StoreError: It cannot be created.
    """
    if path.is_dir():
        return
    make_directory(path.parent)
    with store_errors(path, "create"):
        path.mkdir(exist_ok=True)
    sync_directory(path.parent)
