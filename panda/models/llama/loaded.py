"""Every GGUF of one process: loaded once, one context for each window size."""

import hashlib
from functools import partial
from pathlib import Path

from panda.models.contract import ModelInfo
from panda.models.llama.context import KeptPrefixes, LlamaContext
from panda.models.llama.encoder import LlamaEncoder
from panda.models.llama.gguf import GgufFile, Weights, find_gguf
from panda.models.llama.model import LlamaCppModel
from panda.models.llama.projector import Projector
from panda.models.models_file import ModelSpec


class LoadedGgufs:
    """
    Gives models that share weights and contexts; nothing is loaded until one is used. *prefill_threads* None
    means all cores.
    """

    def __init__(self, cache_dir: Path, *, prefill_threads: int | None = None) -> None:
        self._cache_dir = cache_dir
        self._prefill_threads = prefill_threads
        self._kept = KeptPrefixes(cache_dir / "prefixes")
        self._weights: dict[str, Weights] = {}
        self._contexts: dict[tuple[str, int], LlamaContext] = {}
        self._projectors: dict[str, Projector] = {}
        self._encoders: dict[tuple[str, int], LlamaEncoder] = {}

    def model(self, spec: ModelSpec, *, relative_to: Path) -> LlamaCppModel:
        """The model of one entry of models.yaml."""
        file = self._file(spec, relative_to)
        lens = None
        if spec.projector:
            lens = GgufFile(find_gguf(spec.projector, relative_to=relative_to), self._cache_dir)
        info = ModelInfo(
            name=spec.name,
            digest=file.digest if lens is None else lens.joined_digest(file.digest),
            n_ctx=spec.n_ctx,
            writes=spec.writes,
            scores=spec.scores,
            extra={**_origin(spec, file), "projector": str(lens.path) if lens else None},
            sees=lens is not None,
            thinking_tokens=spec.thinking_tokens,
        )
        return LlamaCppModel(
            info,
            load_weights=partial(self._load_weights, file, lens),
            load_context=partial(self._load_context, file, spec.n_ctx),
            load_projector=partial(self._load_projector, file, lens) if lens else None,
        )

    def encoder(self, spec: ModelSpec, *, relative_to: Path) -> LlamaEncoder:
        """The encoder of one entry of models.yaml; arguments and errors as for `model`."""
        file = self._file(spec, relative_to)
        key = (file.digest, spec.n_ctx)
        if key not in self._encoders:
            digest = hashlib.sha256(f"{file.digest} {spec.n_ctx}".encode()).hexdigest()
            info = ModelInfo(spec.name, digest, spec.n_ctx, False, False, _origin(spec, file), embeds=True)
            self._encoders[key] = LlamaEncoder(info, load_weights=partial(self._load_weights, file))
        return self._encoders[key]

    def close(self) -> None:
        """Free all memory. Models given out before must not be used any more."""
        for loaded in (self._encoders, self._projectors, self._contexts, self._weights):
            for part in loaded.values():
                part.close()
            loaded.clear()

    def _file(self, spec: ModelSpec, relative_to: Path) -> GgufFile:
        return GgufFile(find_gguf(spec.location, relative_to=relative_to), self._cache_dir, spec.requantize)

    def _load_weights(self, file: GgufFile, lens: GgufFile | None = None) -> Weights:
        """The weights, with a projector that fits them: what is broken shows before anything is asked."""
        if file.digest not in self._weights:
            with file.runnable_path() as path:
                self._weights[file.digest] = Weights(path)
        if lens is not None:
            self._load_projector(file, lens)
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
        self._contexts[key].reserve(tokens)
        return self._contexts[key]

    def _load_projector(self, file: GgufFile, lens: GgufFile) -> Projector:
        key = lens.joined_digest(file.digest)
        if key not in self._projectors:
            weights = self._load_weights(file)
            self._projectors[key] = Projector(lens.path, weights, threads=self._prefill_threads)
        return self._projectors[key]


def _origin(spec: ModelSpec, file: GgufFile) -> dict[str, str | None]:
    return {
        "backend": "llama_cpp",
        "location": spec.location,
        "file": str(file.path),
        "requantize": spec.requantize,
    }
