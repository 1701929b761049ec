"""Every GGUF of one process: loaded once, one context for each window size."""

import hashlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from panda.models.llama.encoder import LlamaEncoder
from panda.models.llama.gguf import BUILTIN_PREFIX, GgufFile, Weights, check_gguf, find_gguf
from panda.models.llama.llama_context import KeptPrefixes, LlamaContext
from panda.models.llama.model import LlamaCppModel
from panda.models.llama.projector import Projector
from panda.models.llama.trial import try_model, try_projector
from panda.models.model_contract import ModelInfo
from panda.models.models_file import ModelSpec

_Part = TypeVar("_Part")


class LoadedGgufs:
    """
    Gives models that share weights and contexts; nothing is loaded until one is used. *prefill_threads* None
    means all cores.
    """

    def __init__(self, cache_dir: Path, *, prefill_threads: int | None = None) -> None:
        self._cache_dir = cache_dir
        self._prefill_threads = prefill_threads
        self._kept_prefixes = KeptPrefixes(cache_dir / "prefixes")
        self._parts: dict[tuple[str, str, int], Any] = {}  # what is loaded, by kind, digest and window

    def model(self, spec: ModelSpec, *, relative_to: Path) -> LlamaCppModel:
        """The model of one entry of models.yaml."""
        file = self._file(spec, relative_to)
        assert spec.n_ctx is not None, "models.yaml gives that of a file"
        lens = None
        if spec.projector:
            place = find_gguf(spec.projector, relative_to=relative_to)
            lens = GgufFile(place, self._cache_dir, is_packaged=spec.projector.startswith(BUILTIN_PREFIX))
        info = ModelInfo(
            name=spec.name,
            digest=file.sha256 if lens is None else lens.joined_digest(file.sha256),
            n_ctx=spec.n_ctx,
            scores=True,
            extra={**_origin(spec, file), "projector": str(lens.path) if lens else None},
            sees=lens is not None,
            thinking_tokens=spec.thinking_tokens,
        )
        return LlamaCppModel(
            info,
            check_file=cache(partial(_check_file, file)),  # looked at once
            load_weights=partial(self._load_weights, file, lens),
            load_context=partial(self._load_context, file, spec.n_ctx),
            load_projector=partial(self._load_projector, file, lens) if lens else None,
        )

    def encoder(self, spec: ModelSpec, *, relative_to: Path) -> LlamaEncoder:
        """The encoder of one entry of models.yaml; arguments and errors as for `model`."""
        file = self._file(spec, relative_to)
        assert spec.n_ctx is not None, "models.yaml gives that of a file"
        digest = hashlib.sha256(f"{file.sha256} {spec.n_ctx}".encode()).hexdigest()
        info = ModelInfo(spec.name, digest, spec.n_ctx, False, _origin(spec, file), embeds=True)
        load = partial(self._load_weights, file)
        return self._load(("encoder", file.sha256, spec.n_ctx), lambda: LlamaEncoder(info, load_weights=load))

    def close(self) -> None:
        """Free all memory. Models given out before must not be used any more."""
        for key in sorted(self._parts, key=lambda key: key[0] == "weights"):  # which the others need
            self._parts[key].close()
        self._parts.clear()

    def _load(self, key: tuple[str, str, int], make: Callable[[], _Part]) -> _Part:
        if key not in self._parts:
            self._parts[key] = make()
        part: _Part = self._parts[key]
        return part

    def _file(self, spec: ModelSpec, relative_to: Path) -> GgufFile:
        path = find_gguf(spec.location, relative_to=relative_to)
        is_packaged = spec.location.startswith(BUILTIN_PREFIX)
        return GgufFile(path, self._cache_dir, is_packaged=is_packaged)

    def _load_weights(self, file: GgufFile, lens: GgufFile | None = None) -> Weights:
        """The weights, with a projector that fits them: what is broken shows before anything is asked."""

        def read() -> Weights:
            try_model(file)
            return Weights(file.path, is_packaged=file.is_packaged)

        weights = self._load(("weights", file.sha256, 0), read)
        if lens is not None:
            self._load_projector(file, lens)
        return weights

    def _load_context(self, file: GgufFile, n_ctx: int, tokens: int) -> LlamaContext:
        weights = self._load_weights(file)
        threads = self._prefill_threads
        context = self._load(
            ("context", file.sha256, n_ctx),
            lambda: LlamaContext(
                weights,
                n_ctx=n_ctx,
                kept_prefixes=self._kept_prefixes,
                identity=file.sha256,
                prefill_threads=threads,
            ),
        )
        context.reserve(tokens)
        return context

    def _load_projector(self, file: GgufFile, lens: GgufFile) -> Projector:
        weights = self._load_weights(file)
        threads = self._prefill_threads
        try_projector(file, lens)
        key = ("projector", lens.joined_digest(file.sha256), 0)
        return self._load(key, lambda: Projector(lens.path, weights, threads=threads))


def _check_file(file: GgufFile) -> None:
    """Raises ModelFileError for a file that is no whole model."""
    if file.is_packaged:
        _check_packaged(file.path)
    else:
        try_model(file)


@cache
def _check_packaged(path: Path) -> None:
    """Raises ModelFileError as check_gguf; what comes with panda is looked at once in a process."""
    check_gguf(path)


def _origin(spec: ModelSpec, file: GgufFile) -> dict[str, str]:
    return {"backend": "llama_cpp", "location": spec.location, "file": str(file.path)}
