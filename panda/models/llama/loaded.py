"""Every GGUF of one process: loaded once, one context for each window size."""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from panda.models.contract import ModelInfo
from panda.models.llama.context import KeptPrefixes, LlamaContext
from panda.models.llama.encoder import LlamaEncoder
from panda.models.llama.gguf import GgufFile, Weights, find_gguf
from panda.models.llama.model import LlamaCppModel
from panda.models.llama.projector import Projector


class LoadedGgufs:
    """
    Gives models that share weights and contexts. Nothing is loaded until a model is used.

    Args:
        cache_dir: For digests, requantised copies and prefix states.
        prefill_threads: Threads for prompts; None means all cores.
    """

    def __init__(self, cache_dir: Path, *, prefill_threads: int | None = None) -> None:
        self._cache_dir = cache_dir
        self._prefill_threads = prefill_threads
        self._kept = KeptPrefixes(cache_dir / "prefixes")
        self._weights: dict[str, Weights] = {}
        self._contexts: dict[tuple[str, int], LlamaContext] = {}
        self._projectors: dict[str, Projector] = {}
        self._encoders: dict[tuple[str, int], LlamaEncoder] = {}

    def model(
        self,
        name: str,
        location: str,
        *,
        relative_to: Path,
        n_ctx: int,
        writes: bool,
        scores: bool,
        requantize: str | None = None,
        projector: str | None = None,
        thinking_tokens: int = 0,
    ) -> LlamaCppModel:
        """
        The model of one entry of models.yaml.

        Args:
            name: Its key there.
            location: "builtin:NAME" or a path.
            relative_to: Directory that a relative path starts from.
            n_ctx: Window in model tokens.
            writes: Whether it is trusted with free text.
            scores: Whether it may score options.
            requantize: Quantisation to run it in; None for the file as it is.
            projector: Path of the GGUF that turns pictures into embeddings of the model; None sees nothing.
            thinking_tokens: How much of the window is for reasoning before each reply.

        Raises:
            ModelFileError: The file is missing or no GGUF.
        """
        file = GgufFile(find_gguf(location, relative_to=relative_to), self._cache_dir, requantize)
        lens = GgufFile(find_gguf(projector, relative_to=relative_to), self._cache_dir) if projector else None
        info = ModelInfo(
            name=name,
            digest=file.digest if lens is None else lens.joined_digest(file.digest),
            n_ctx=n_ctx,
            writes=writes,
            scores=scores,
            extra={**_origin(location, file, requantize), "projector": str(lens.path) if lens else None},
            sees=lens is not None,
            thinking_tokens=thinking_tokens,
        )
        load_weights: Callable[[], Weights] = partial(self._load_weights, file)
        if lens is not None:
            load_weights = partial(self._load_both, file, lens)
        return LlamaCppModel(
            info,
            load_weights=load_weights,
            load_context=partial(self._load_context, file, n_ctx),
            load_projector=partial(self._load_projector, file, lens) if lens else None,
        )

    def encoder(
        self, name: str, location: str, *, relative_to: Path, n_ctx: int, requantize: str | None = None
    ) -> LlamaEncoder:
        """
        The encoder of one entry of models.yaml; arguments and errors as for `model`.
        """
        file = GgufFile(find_gguf(location, relative_to=relative_to), self._cache_dir, requantize)
        key = (file.digest, n_ctx)
        if key not in self._encoders:
            info = ModelInfo(
                name=name,
                digest=hashlib.sha256(f"{file.digest} {n_ctx}".encode()).hexdigest(),
                n_ctx=n_ctx,
                writes=False,
                scores=False,
                embeds=True,
                extra=_origin(location, file, requantize),
            )
            self._encoders[key] = LlamaEncoder(info, load_weights=partial(self._load_weights, file))
        return self._encoders[key]

    def close(self) -> None:
        """Free all memory. Models given out before must not be used any more."""
        for encoder in self._encoders.values():
            encoder.close()
        self._encoders.clear()
        for projector in self._projectors.values():
            projector.close()
        for context in self._contexts.values():
            context.close()
        for weights in self._weights.values():
            weights.close()
        self._projectors.clear()
        self._contexts.clear()
        self._weights.clear()

    def _load_weights(self, file: GgufFile) -> Weights:
        if file.digest not in self._weights:
            with file.runnable_path() as path:
                self._weights[file.digest] = Weights(path)
        return self._weights[file.digest]

    def _load_context(self, file: GgufFile, n_ctx: int, tokens: int) -> LlamaContext:
        key = (file.digest, n_ctx)
        if key not in self._contexts:
            self._contexts[key] = LlamaContext(
                self._load_weights(file),
                n_ctx=n_ctx,
                kept=self._kept,
                identity=file.digest,
                prefill_threads=self._prefill_threads,
            )
        context = self._contexts[key]
        context.reserve(tokens)
        return context

    def _load_both(self, file: GgufFile, lens: GgufFile) -> Weights:
        """The weights, with a projector that fits them: what is broken shows before anything is asked."""
        self._load_projector(file, lens)
        return self._load_weights(file)

    def _load_projector(self, file: GgufFile, lens: GgufFile) -> Projector:
        key = lens.joined_digest(file.digest)
        if key not in self._projectors:
            self._projectors[key] = Projector(
                lens.path, self._load_weights(file), threads=self._prefill_threads
            )
        return self._projectors[key]


def _origin(location: str, file: GgufFile, requantize: str | None) -> dict[str, str | None]:
    """What `panda models list` says of where a model comes from."""
    return {
        "backend": "llama_cpp",
        "location": location,
        "file": str(file.path),
        "requantize": requantize,
    }
