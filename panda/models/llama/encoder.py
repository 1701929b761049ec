"""Texts as vectors: a GGUF that embeds, in a context of its own."""

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from panda.errors import ModelFileError
from panda.models.contract import ModelInfo
from panda.models.llama.gguf import Weights, fill_batch, load_library, take_error

if TYPE_CHECKING:
    from panda.models.contract import Vectors

_FEWEST_CONTEXT_TOKENS = 8


class LlamaEncoder:
    """
    An encoder run by llama.cpp. Every text is computed alone and on one thread, so that its vector depends on
    nothing else; for texts of a line or two that is also the fastest way.
    """

    def __init__(self, info: ModelInfo, *, load_weights: Callable[[], Weights]) -> None:
        self.info = info
        self._load_weights = load_weights
        self._weights: Weights | None = None
        self._ctx: Any = None
        self._batch: Any = None

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """
        One vector of length 1 for each of n texts, shape (n, width); of a long text the beginning counts.

        Raises:
            ModelFileError: The file is missing, broken, or no encoder.
        """
        weights = self._open()
        found = np.empty((len(texts), weights.n_embd), np.float32)
        for row, text in enumerate(texts):
            found[row] = self._encode(weights, text)
        return found

    def close(self) -> None:
        """Free the memory of the context; the weights belong to who gave them."""
        if self._ctx:
            load_library().llama_batch_free(self._batch)
            load_library().llama_free(self._ctx)
        self._ctx = self._weights = None

    def _open(self) -> Weights:
        if self._weights is not None:
            return self._weights
        weights, lib = self._load_weights(), load_library()
        window = self.info.n_ctx
        params = weights.context_params(window, threads=1, batch_threads=1)
        params.n_ctx = params.n_batch = params.n_ubatch = max(window, _FEWEST_CONTEXT_TOKENS)
        params.embeddings = True
        take_error()
        self._ctx = lib.llama_init_from_model(weights.model, params)
        self._batch = lib.llama_batch_init(window, 0, 1)
        if not self._ctx or lib.llama_pooling_type(self._ctx) == lib.LLAMA_POOLING_TYPE_NONE:
            reason = take_error() if not self._ctx else "it gives no vector for a whole text"
            self.close()
            raise ModelFileError(
                f"the model {self.info.name} is no encoder: {reason}",
                where=str(weights.path),
                fix="name an embedding GGUF for `encoder` in models.yaml, or set encoder: null",
            )
        self._weights = weights
        return weights

    def _encode(self, weights: Weights, text: str) -> "Vectors":
        lib = load_library()
        tokens = weights.tokenise(text, with_ends=True)
        window = int(lib.llama_n_ctx(self._ctx))
        if len(tokens) > window:  # the closing mark stays
            tokens = [*tokens[: window - 1], tokens[-1]]
        fill_batch(self._batch, tokens, 0, range(len(tokens)))
        take_error()
        memory = lib.llama_get_memory(self._ctx)
        if memory:  # decoders that embed keep what they have read
            lib.llama_memory_clear(memory, True)
        code = lib.llama_decode(self._ctx, self._batch)
        if code != 0:
            raise RuntimeError(f"llama_decode gave {code} for {len(tokens)} tokens: {take_error()}")
        pointer = lib.llama_get_embeddings_seq(self._ctx, 0)
        values = np.ctypeslib.as_array(
            ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), (weights.n_embd,)
        )
        vector = values.astype(np.float32)
        length = float(np.linalg.norm(vector))
        return vector / length if length else vector
