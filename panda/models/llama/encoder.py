"""Texts as vectors: a GGUF that embeds, in a context of its own."""

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from panda.errors import ModelFileError
from panda.models.cores import usable_cores
from panda.models.llama.gguf import Weights, fill_batch, load_library, take_error
from panda.models.model_contract import ModelInfo

if TYPE_CHECKING:
    from panda.models.model_contract import Vectors

_FEWEST_CONTEXT_TOKENS = 8
_MOST_VECTORS = 8_192
_MANY_TEXTS = 64  # so many texts are worth a context on each core
_MOST_ENCODERS = 8
_vectors: "dict[tuple[str, str], Vectors]" = {}  # by digest of the model and text: of all encoders here


class LlamaEncoder:
    """
    An encoder run by llama.cpp: every text alone and on one thread, so that its vector depends on nothing
    else; for texts of a line or two that is also the fastest way.
    """

    def __init__(self, info: ModelInfo, *, load_weights: Callable[[], Weights]) -> None:
        self.info = info
        self._load_weights = load_weights
        self._weights: Weights | None = None
        self._contexts: dict[int | None, Any] = {}  # by the pooling asked for; None leaves it to the model
        self._batch: Any = None

    def encode(self, texts: Sequence[str]) -> "Vectors":
        weights = self._open()
        new = [text for text in dict.fromkeys(texts) if (self.info.digest, text) not in _vectors]
        if len(new) >= _MANY_TEXTS:
            self._encode_many(weights, new)
        vectors = np.empty((len(texts), weights.n_embd), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._encode_text(weights, text)
        return vectors

    def _encode_many(self, weights: Weights, texts: Sequence[str]) -> None:
        """Compute vectors on all cores, each in a context of its own, and remember them."""
        count = min(len(usable_cores()), _MOST_ENCODERS)
        others = [LlamaEncoder(self.info, load_weights=self._load_weights) for _ in range(count - 1)]
        try:
            encoders = [self, *others]
            for other in others:
                other._open()  # one after the other: loading is not for several threads
            with ThreadPoolExecutor(count) as threads:
                shares = [texts[at::count] for at in range(count)]
                pairs = zip(encoders, shares, strict=True)
                running = [threads.submit(own._encode_each, weights, share) for own, share in pairs]
                for work in running:
                    work.result()
        finally:
            for other in others:
                other.close()

    def _encode_each(self, weights: Weights, texts: Sequence[str]) -> None:
        for text in texts:
            self._encode_text(weights, text)

    def _encode_text(self, weights: Weights, text: str) -> "Vectors":
        """Return the vector of a text; those of a process are remembered, whoever asked for them."""
        key = (self.info.digest, text)
        vector = _vectors.get(key)
        if vector is None:
            ctx, _ = self._decode(weights, text, None)
            if len(_vectors) >= _MOST_VECTORS:
                _vectors.clear()
            vector = _unit(_floats(load_library().llama_get_embeddings_seq(ctx, 0), weights.n_embd))
            _vectors[key] = vector
        return vector

    def encode_words(self, text: str) -> list[tuple[str, "Vectors"]]:
        weights = self._open()
        lib = load_library()
        ctx, tokens = self._decode(weights, text, lib.LLAMA_POOLING_TYPE_NONE)
        words: list[tuple[str, list[Vectors]]] = []
        for place, piece in enumerate(weights.piece(token).decode("utf-8", "replace") for token in tokens):
            if not piece:
                continue  # a mark that begins or ends a text
            row = _floats(lib.llama_get_embeddings_ith(ctx, place), weights.n_embd)
            if words and not piece.startswith(" "):
                words[-1] = (words[-1][0] + piece, [*words[-1][1], row])
            else:
                words.append((piece.strip(), [row]))
        return [(word, _unit(np.mean(rows, axis=0))) for word, rows in words]

    def close(self) -> None:
        """Free the memory of the contexts; the weights belong to who gave them."""
        if self._contexts:
            load_library().llama_batch_free(self._batch)
        for ctx in self._contexts.values():
            load_library().llama_free(ctx)
        self._contexts.clear()
        self._weights = None

    def _open(self) -> Weights:
        if self._weights is None:
            weights = self._load_weights()
            lib = load_library()
            take_error()
            ctx = self._new_context(weights, None)
            reason = "it gives no vector for a whole text" if ctx else take_error()
            if ctx:
                self._batch = lib.llama_batch_init(self.info.n_ctx, 0, 1)
                self._contexts[None] = ctx
            if not ctx or lib.llama_pooling_type(ctx) == lib.LLAMA_POOLING_TYPE_NONE:
                self.close()
                message = f"the model {self.info.name} is no encoder: {reason}"
                fix = "name an embedding GGUF for `encoder` in models.yaml, or set encoder: null"
                raise ModelFileError(message, str(weights.path), fix=fix)
            self._weights = weights
        return self._weights

    def _new_context(self, weights: Weights, pooling: int | None) -> Any:
        window = self.info.n_ctx
        params = weights.context_params(window, threads=1, batch_threads=1)
        params.n_ctx = params.n_batch = params.n_ubatch = max(window, _FEWEST_CONTEXT_TOKENS)
        params.embeddings = True
        if pooling is not None:
            params.pooling_type = pooling
        return load_library().llama_init_from_model(weights.model, params)

    def _decode(self, weights: Weights, text: str, pooling: int | None) -> tuple[Any, list[int]]:
        """The context that holds the vectors of a text now, and its tokens."""
        if pooling not in self._contexts:
            self._contexts[pooling] = self._new_context(weights, pooling)
        lib = load_library()
        ctx = self._contexts[pooling]
        tokens = weights.tokenise(text, with_ends=True)
        window = int(lib.llama_n_ctx(ctx))
        if len(tokens) > window:  # the closing mark stays
            tokens = [*tokens[: window - 1], tokens[-1]]
        fill_batch(self._batch, tokens, 0, range(len(tokens)))
        take_error()
        memory = lib.llama_get_memory(ctx)
        if memory:  # decoders that embed keep what they have read
            lib.llama_memory_clear(memory, True)
        code = lib.llama_decode(ctx, self._batch)
        if code != 0:
            raise RuntimeError(f"llama_decode gave {code} for {len(tokens)} tokens: {take_error()}")
        return ctx, tokens


def _floats(pointer: Any, width: int) -> "Vectors":
    """A copy: llama.cpp keeps them until its next computation."""
    values = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), (width,))
    return values.astype(np.float32)


def _unit(vector: "Vectors") -> "Vectors":
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
