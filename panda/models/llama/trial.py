"""A trial of a model file in a worker process, before this one loads it: a damaged file ends llama.cpp."""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

from panda.errors import ModelFileError
from panda.isolation import WorkerLimits, run_isolated
from panda.models.llama.gguf import (
    GgufDescription,
    GgufFile,
    Weights,
    fill_batch,
    load_library,
)
from panda.models.llama.projector import Projector
from panda.store.files import read_cache_file, write_cache_file

_TRIAL_SECONDS = 60.0
_BYTES_PER_SECOND = 50_000_000
"""Slowest disk that a model is read from."""
_MEMORY_BYTES = 4_000_000_000
"""What a trial may take beside the size of the file."""
_WINDOW_TOKENS = 32
_PASSED = b"loads"
_FIX = "get the file anew from where it was published, or name another model in models.yaml"
_passed: set[str] = set()


def try_model(file: GgufFile) -> None:
    """Load a model and compute one token, in a worker. ModelFileError: it cannot be used, or ends that."""
    _try_once(file, file.sha256, partial(_load_model, file.path.absolute()))


def describe_model(file: GgufFile) -> GgufDescription:
    """Return what the header of a model file says, read in a worker. Raises as try_model does."""
    try_model(file)
    call = partial(_describe, file.path.absolute())
    return run_isolated(call, limits=_limits_of(file), where=str(file.path), error=ModelFileError, fix=_FIX)


def try_projector(file: GgufFile, projector: GgufFile) -> None:
    """Load a projector with its model, in a worker. Raises as try_model does."""
    key = projector.joined_digest(file.sha256)
    _try_once(projector, key, partial(_load_projector, file.path.absolute(), projector.path.absolute()))


def _try_once(file: GgufFile, key: str, call: Callable[[], None]) -> None:
    """Make a call in a worker, unless it has passed once; what comes with panda needs no trial."""
    note = file.cache_dir / "trials" / f"{key[:32]}-{version('llama-cpp-python')}"
    if file.is_packaged or str(note) in _passed:
        return
    if read_cache_file(note) != _PASSED:
        limits = _limits_of(file)
        run_isolated(call, limits=limits, where=str(file.path), error=ModelFileError, fix=_FIX)
        write_cache_file(note, _PASSED)
    _passed.add(str(note))


def _limits_of(file: GgufFile) -> WorkerLimits:
    size_bytes = file.path.stat().st_size
    return WorkerLimits(
        seconds=_TRIAL_SECONDS + size_bytes / _BYTES_PER_SECOND,
        memory_bytes=_MEMORY_BYTES + size_bytes,
    )


def _describe(path: Path) -> GgufDescription:
    weights = Weights(path)
    description = weights.describe()
    weights.close()
    return description


def _load_model(path: Path) -> None:
    weights = Weights(path)
    lib = load_library()
    window = min(_WINDOW_TOKENS, weights.n_ctx_train)
    params = weights.context_params(window, threads=1, batch_threads=1)
    params.n_ctx = params.n_batch = params.n_ubatch = window
    context = lib.llama_init_from_model(weights.model, params)
    if context:  # whoever uses the model tells why it gives none
        batch = lib.llama_batch_init(1, 0, 1)
        fill_batch(batch, [max(0, weights.bos)], 0, range(1))
        lib.llama_decode(context, batch)
        lib.llama_batch_free(batch)
        lib.llama_free(context)
    weights.close()


def _load_projector(path: Path, projector: Path) -> None:
    weights = Weights(path)
    Projector(projector, weights, threads=1).close()
    weights.close()
