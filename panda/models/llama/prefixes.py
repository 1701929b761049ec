"""States of computed prompt prefixes, kept in memory and on disk."""

import zlib
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

from panda.models.llama.gguf import write_cache_file

_MEMORY_BYTES = 4 * 2**20
_DISK_BYTES = 2**30
_DISK_LEAST_TOKENS = 32
_CHECKSUM_BYTES = 4


class KeptPrefixes:
    """
    Prefix states by key, the least recently used dropped first.

    A file that is cut off or changed is no error: its checksum fails and the prefix is computed again.

    Args:
        directory: Where other processes find the states; None keeps them in memory only.
        memory_bytes: Most bytes kept in memory.
        disk_bytes: Most bytes kept on disk.
    """

    def __init__(
        self, directory: Path | None, *, memory_bytes: int = _MEMORY_BYTES, disk_bytes: int = _DISK_BYTES
    ) -> None:
        self._directory = directory
        self._memory_bytes = memory_bytes
        self._disk_bytes = disk_bytes
        self._states: OrderedDict[str, bytes] = OrderedDict()

    def find(self, key: str) -> bytes | None:
        """The state kept under *key*, from memory or disk; None if there is none."""
        if key in self._states:
            self._states.move_to_end(key)
            return self._states[key]
        if self._directory is None:
            return None
        path = self._path(key)
        try:
            with path.open("rb") as file:
                state = file.read(max(0, path.stat().st_size - _CHECKSUM_BYTES))
                checksum = file.read()
        except OSError:
            return None
        with suppress(OSError):  # a cache that may only be read
            path.touch()  # recently used
        if _checksum(state) != checksum:
            return None
        self._remember(key, state)
        return state

    def keep(self, key: str, state: bytes, *, tokens: int) -> None:
        """
        Keep a state.

        Args:
            key: Of the tokens and of everything that decides their state.
            state: As the context gave it.
            tokens: Length of the prefix; short ones are not worth a file.
        """
        self._remember(key, state)
        if self._directory is None or tokens < _DISK_LEAST_TOKENS or len(state) > self._disk_bytes:
            return
        self._make_room(len(state) + _CHECKSUM_BYTES)
        write_cache_file(self._path(key), state + _checksum(state))

    def _path(self, key: str) -> Path:
        assert self._directory is not None
        return self._directory / f"{key[:40]}.state"

    def _remember(self, key: str, state: bytes) -> None:
        self._states[key] = state
        self._states.move_to_end(key)
        total = sum(map(len, self._states.values()))
        while total > self._memory_bytes and self._states:
            _, dropped = self._states.popitem(last=False)
            total -= len(dropped)

    def _make_room(self, needed: int) -> None:
        assert self._directory is not None
        files = []
        for path in self._directory.glob("*.state"):
            try:
                status = path.stat()
            except OSError:
                continue  # another process dropped it
            files.append((status.st_mtime_ns, status.st_size, path))
        total = needed + sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self._disk_bytes:
                return
            with suppress(OSError):
                path.unlink(missing_ok=True)
            total -= size


def _checksum(state: bytes) -> bytes:
    return zlib.crc32(state).to_bytes(_CHECKSUM_BYTES, "big")
