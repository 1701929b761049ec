"""Which model servers are busy with requests of any process of this machine: a locked file a request."""

import fcntl
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path


class ServerSlots:
    """
    The slots of servers: as many files a server as it serves requests at the same time, each locked by the
    process whose request it is. The system frees what a process held that died. Without this, workers that
    share a fleet meet at one server while another one has nothing to do, and no order of turns helps.

    Args:
        directory: Where the files are, the same for all processes; None knows nothing of others.
        per_server: How many requests one server serves at the same time.
    """

    def __init__(self, directory: Path | None, per_server: int) -> None:
        self._directory = directory
        self._per_server = per_server

    def take(self, urls: Sequence[str]) -> tuple[int, int | None]:
        """
        A slot of about the least busy one of some servers, of equally busy ones the first.

        Returns:
            The server's index, and what is to be given back once its request has ended. If all slots are
            taken, or files cannot be locked: 0 and None.
        """
        if self._directory is None:
            return 0, None
        names = [hashlib.sha256(url.encode()).hexdigest()[:32] for url in urls]
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            for slot in range(self._per_server):
                for index, name in enumerate(names):
                    descriptor = _lock(self._directory / f"{name}-{slot}.lock")
                    if descriptor is not None:
                        return index, descriptor
        except OSError:
            pass  # no worse than not to know of others
        return 0, None

    def give_back(self, slot: int | None) -> None:
        """End what take has begun."""
        if slot is not None:
            os.close(slot)


def _lock(path: Path) -> int | None:
    """A descriptor that holds the lock of a file; None if another one does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        os.close(descriptor)
        if isinstance(exc, BlockingIOError):
            return None
        raise
    return descriptor
