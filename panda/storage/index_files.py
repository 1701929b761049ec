"""The two index files as files: locks, temporary builds, and the swap that readers do not notice."""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from panda.storage.files import held_lock, make_directory, store_errors, sync_directory
from panda.storage.layout import Layout
from panda.storage.temporaries import sweep

_SIDE_FILES = ("-journal", "-wal", "-shm")

Identity = tuple[tuple[int, int] | None, ...]


class IndexFiles:
    """
    turn_index.db and research_index.db of one store.

    One lock is for writers; it is held for as long as they write. The other one is held by readers while
    they read and by a writer for the moment in which it puts new files in place, so that no reader goes on
    with a file that is gone: SQLite would take the journal of the new file for its own.

    Args:
        layout: Where the store is.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.paths = (layout.turn_index, layout.research_index)
        """The two files."""

    @contextmanager
    def writing(
        self, holder: str, *, wait_seconds: float, on_wait: Callable[[str], None] | None = None
    ) -> Iterator[None]:
        """The writers' lock, as held_lock gives it; what killed builds left is removed."""
        lock = self._layout.indexes / "index.lock"
        with held_lock(lock, holder=holder, wait_seconds=wait_seconds, on_wait=on_wait):
            sweep(self._layout.indexes, is_locked=True)
            yield

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """While the block runs, no other process puts new files in place."""
        with self._swap_lock(fcntl.LOCK_SH):
            yield

    @contextmanager
    def _swap_lock(self, kind: int) -> Iterator[None]:
        path = self._layout.indexes / "swap.lock"
        make_directory(path.parent)
        with store_errors(path, "lock"):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)

    def are_writable(self) -> bool:
        """Whether this process may write them, by permissions, mounts and the store's own mark."""
        if self._layout.read_only_mark.exists():
            return False
        place = next(path for path in (self._layout.indexes, *self._layout.indexes.parents) if path.exists())
        return all(os.access(path, os.W_OK) for path in (place, *self.paths) if path.exists())

    def identity(self) -> Identity:
        """Which files are in place; changes with every swap."""
        found: list[tuple[int, int] | None] = []
        for path in self.paths:
            try:
                status = path.stat()
                found.append((status.st_dev, status.st_ino))
            except OSError:
                found.append(None)
        return tuple(found)

    def swap(self, built: Sequence[Path], *, settle: Callable[[Sequence[Path]], None]) -> None:
        """
        Put finished files in place; only under the writers' lock.

        Args:
            built: The new files in the order of *paths*, in the same directory.
            settle: Told the old files when no reader is left, to roll back what a killed writer left: SQLite
                would take its journal for one of the new files.
        """
        for path in built:
            with store_errors(path, "sync"), path.open("rb") as file:
                os.fsync(file.fileno())
        with self._swap_lock(fcntl.LOCK_EX):
            settle(self.paths)
            # Research first: if the power goes between the two, the turn index still names what to read.
            for new, place in reversed(list(zip(built, self.paths, strict=True))):
                with store_errors(place, "replace"):
                    place.with_name(f"{place.name}-journal").unlink(missing_ok=True)
                    new.rename(place)
        sync_directory(self._layout.indexes)

    def remove(self, identity: Identity) -> None:
        """Remove these files and what belongs to them, if they are in place; only under the writers' lock."""
        with self._swap_lock(fcntl.LOCK_EX):
            for path in self.paths if identity == self.identity() else ():
                for suffix in ("", *_SIDE_FILES):
                    with store_errors(path, "delete"):
                        path.with_name(path.name + suffix).unlink(missing_ok=True)
