"""One context window: decoding token by token or in chunks, and going back to a prefix."""

import ctypes
import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panda.errors import ModelFileError
from panda.models.cores import usable_cores
from panda.models.llama.gguf import (
    SEQUENCE,
    Weights,
    fill_batch,
    library_identity,
    load_library,
    take_error,
)
from panda.models.llama.projector import Seen
from panda.models.model_contract import Deadline
from panda.store.files import write_cache_file

_MEMORY_BYTES = 4 * 2**20
_DISK_BYTES = 2**30
_DISK_LEAST_TOKENS = 32
_CHECKSUM_BYTES = 4


class KeptPrefixes:
    """
    Prefix states by key, the least recently used dropped first; *directory* None keeps them in memory only. A
    file that is cut off or changed is no error: its checksum fails and the prefix is computed again.
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
        path = self._directory / f"{key[:40]}.state"
        try:
            with path.open("rb") as file:
                state = file.read(max(0, path.stat().st_size - _CHECKSUM_BYTES))
                is_whole = file.read() == _checksum(state)
        except OSError:
            return None
        with suppress(OSError):  # a cache that may only be read
            path.touch()  # recently used
        if not is_whole:
            return None
        self._remember(key, state)
        return state

    def keep(self, key: str, state: bytes, *, tokens: int) -> None:
        """Keep a state, as the context gave it, in memory; a prefix of some length also on disk."""
        self._remember(key, state)
        if self._directory is None or tokens < _DISK_LEAST_TOKENS or len(state) > self._disk_bytes:
            return
        self._make_room(self._directory, len(state) + _CHECKSUM_BYTES)
        write_cache_file(self._directory / f"{key[:40]}.state", state + _checksum(state))

    def _remember(self, key: str, state: bytes) -> None:
        self._states[key] = state
        self._states.move_to_end(key)
        total = sum(map(len, self._states.values()))
        while total > self._memory_bytes and self._states:
            _, dropped = self._states.popitem(last=False)
            total -= len(dropped)

    def _make_room(self, directory: Path, needed: int) -> None:
        files = []
        for path in directory.glob("*.state"):
            with suppress(OSError):  # another process dropped it
                status = path.stat()
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


CHUNK_TOKENS = 512
"""Prompts are computed in chunks of this size from position 0, so that values never depend on reuse."""
_FIRST_WINDOW = 512
_SMALL_MODEL_PARAMS = 1_000_000_000


class LlamaContext:
    """
    A window over loaded weights, with one sequence in it. It grows up to *n_ctx* with what it has to hold:
    memory costs much, and the values of a computation don't depend on the room beside it. Every computation
    depends only on the tokens before it and on how they are cut into `compute` calls, so a caller that always
    cuts in the same way gets the same bits.

    *identity* is the digest of the weights, part of the key of a kept prefix; *prefill_threads* None means
    all cores. *is_watched* checks time within a chunk too, which costs a small model about 6 % of its speed
    for at most two seconds of precision; None means for large models only.
    """

    def __init__(
        self,
        weights: Weights,
        *,
        n_ctx: int,
        kept_prefixes: KeptPrefixes,
        identity: str,
        prefill_threads: int | None = None,
        is_watched: bool | None = None,
    ) -> None:
        lib = self._lib = load_library()
        cores = prefill_threads or len(usable_cores())
        is_small = weights.n_params < _SMALL_MODEL_PARAMS
        params = weights.context_params(n_ctx, threads=1 if is_small else cores, batch_threads=cores)
        params.n_batch = params.n_ubatch = min(CHUNK_TOKENS, n_ctx)
        params.pooling_type = lib.LLAMA_POOLING_TYPE_NONE
        self._params = params
        self._kept_prefixes = kept_prefixes
        self._ctx: Any = None
        self.weights = weights
        self.n_ctx = n_ctx
        self._grows = not weights.depends_on_window
        self._identity = f"{identity} {library_identity()} {CHUNK_TOKENS} {0 if self._grows else n_ctx}"
        self._batch: Any = lib.llama_batch_init(CHUNK_TOKENS, 0, 1)
        self._prefix: tuple[int, ...] = ()
        self._position = 0
        self._deadline: Deadline | None = None
        self._interrupt: KeyboardInterrupt | None = None
        self._watch: Any = lib.ggml_abort_callback(self._should_abort)
        self._is_watched = is_watched if is_watched is not None else not is_small
        self.reserve(1)

    @property
    def position(self) -> int:
        """Number of tokens computed so far."""
        return self._position

    def reserve(self, tokens: int) -> None:
        """Make room for so many tokens altogether. A window that has to grow for it is empty afterwards."""
        if self._ctx and tokens <= self._params.n_ctx:
            return
        self._free()
        window = max(_FIRST_WINDOW, 1 << (tokens - 1).bit_length()) if self._grows else self.n_ctx
        self._params.n_ctx = min(window, self.n_ctx)
        take_error()
        self._ctx = self._lib.llama_init_from_model(self.weights.model, self._params)
        if not self._ctx:
            message = f"no context of {self._params.n_ctx:,} tokens can be made: {take_error()}"
            fix = "set a smaller n_ctx in models.yaml"
            raise ModelFileError(message, str(self.weights.path), fix=fix)
        self._memory: Any = self._lib.llama_get_memory(self._ctx)
        self._position = 0
        self._prefix = ()
        if self._is_watched:
            self._lib.llama_set_abort_callback(self._ctx, self._watch, ctypes.c_void_p(0))

    def enter_prefix(self, tokens: Sequence[int], deadline: Deadline) -> int:
        """
        Make *tokens* the whole content of the window: as it stands, from a kept state, or computed now. Gives
        how many were not computed again.
        """
        wanted = tuple(tokens)
        if wanted and wanted == self._prefix and self._cut(len(wanted)):
            return len(wanted)
        self._clear()
        if not wanted:
            return 0
        key = hashlib.sha256(f"{self._identity} {wanted}".encode()).hexdigest()
        state = self._kept_prefixes.find(key)
        if state is not None and self._restore(state):
            self._position = len(wanted)
            self._prefix = wanted
            return len(wanted)
        self._clear()
        self.compute(wanted, deadline, logits=False)
        self._prefix = wanted
        self._kept_prefixes.keep(key, self._save(), tokens=len(wanted))
        return 0

    def compute(
        self, tokens: Sequence[int], deadline: Deadline, *, logits: bool = True
    ) -> NDArray[np.float32]:
        """
        Append tokens, at least one, cut into chunks of CHUNK_TOKENS from the first; a ModelTimeoutError
        leaves the window empty. Gives the logits after the last, shape (n_vocab,); empty if not wanted.
        """
        for start in range(0, len(tokens), CHUNK_TOKENS):
            chunk = tokens[start : start + CHUNK_TOKENS]
            is_last = start + CHUNK_TOKENS >= len(tokens)
            wanted = (len(chunk) - 1,) if logits and is_last else ()
            self._decode(chunk, wanted, deadline)
        return self._row(-1).copy() if logits else np.empty(0, np.float32)

    def compute_picture(self, seen: Seen, deadline: Deadline) -> None:
        """Append a picture; the deadline is checked between its parts alone."""
        for part in seen.parts():
            deadline.check()
            take_error()
            n_batch = min(CHUNK_TOKENS, self.n_ctx)
            code, self._position = seen.decode_into(self._ctx, part, self._position, n_batch)
            if code != 0:
                self._clear()
                raise RuntimeError(f"computing a picture gave {code}: {take_error()}")
        deadline.check()

    def compute_logprobs(self, tokens: Sequence[int], deadline: Deadline, *, first: int = 1) -> list[float]:
        """
        Append tokens but for the last; the log-probability of each from index *first* >= 1 on. A
        ModelTimeoutError leaves the window empty.
        """
        logprobs: list[float] = []
        for start in range(0, len(tokens) - 1, CHUNK_TOKENS):
            following = tokens[start + 1 : start + 1 + CHUNK_TOKENS]
            chunk = tokens[start : start + len(following)]
            wanted = range(max(0, first - 1 - start), len(chunk))
            self._decode(chunk, wanted, deadline)
            for i in wanted:
                row = self._row(i)
                token = following[i]
                top = row.max()
                logprobs.append(float(row[token] - top - np.log(np.exp(row - top).sum(dtype=np.float64))))
        return logprobs

    def cut(self, position: int) -> None:
        """Forget everything from *position* on; at least the prefix must stay."""
        if not self._cut(position):
            raise RuntimeError(f"the memory of {self.weights.path.name} cannot be cut at {position}")

    def close(self) -> None:
        self._free()
        if self._batch:
            self._lib.llama_batch_free(self._batch)
            self._batch = None

    def _free(self) -> None:
        if self._ctx:
            self._lib.llama_free(self._ctx)
            self._ctx = None

    def _cut(self, position: int) -> bool:
        if position < self._position:
            if not self._lib.llama_memory_seq_rm(self._memory, SEQUENCE, position, -1):
                return False
            self._position = position
        return True

    def _clear(self) -> None:
        self._lib.llama_memory_clear(self._memory, False)
        self._position = 0
        self._prefix = ()

    def _decode(self, tokens: Sequence[int], wanted: Sequence[int], deadline: Deadline) -> None:
        deadline.check()
        fill_batch(self._batch, tokens, self._position, wanted)
        self._deadline = deadline
        take_error()
        code = self._lib.llama_decode(self._ctx, self._batch)
        if code == 0:
            self._position += len(tokens)
            return
        self._clear()
        if self._interrupt is not None:
            interrupt, self._interrupt = self._interrupt, None
            raise interrupt
        deadline.check()
        raise RuntimeError(f"llama_decode gave {code} for {len(tokens)} tokens: {take_error()}")

    def _should_abort(self, _: object) -> bool:
        try:
            return self._deadline is not None and self._deadline.passed
        except KeyboardInterrupt as exc:
            self._interrupt = exc  # cannot travel through C; raised again by _decode
            return True

    def _row(self, index: int) -> NDArray[np.float32]:
        """Logits where llama.cpp keeps them, until the next computation."""
        pointer = self._lib.llama_get_logits_ith(self._ctx, index)
        return np.ctypeslib.as_array(pointer, shape=(self.weights.n_vocab,))

    def _save(self) -> bytes:
        size = self._lib.llama_state_seq_get_size(self._ctx, SEQUENCE)
        buffer = (ctypes.c_uint8 * size)()
        written = self._lib.llama_state_seq_get_data(self._ctx, buffer, size, SEQUENCE)
        return bytes(memoryview(buffer)[:written])

    def _restore(self, state: bytes) -> bool:
        data = np.frombuffer(state, np.uint8).ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        return bool(self._lib.llama_state_seq_set_data(self._ctx, data, len(state), SEQUENCE) == len(state))
