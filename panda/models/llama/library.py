"""The llama.cpp library, loaded on first use and kept silent; the only importer of llama_cpp."""

import ctypes
import os
import sys
from collections import deque
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec
from typing import Any

_ERROR_LEVEL = 4
_CONTINUED_LEVEL = 5
_errors: deque[str] = deque(maxlen=20)
_alive: list[Any] = []  # callbacks that C still points to


@cache
def load_library() -> Any:
    """
    Import llama_cpp's module of C functions and silence it.

    Its OpenMP threads are told to sleep instead of spinning between steps; that only works before the import.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    llama_cpp = _import_functions()
    last_level = 0

    def keep_errors(level: int, text: bytes, _: object) -> None:
        nonlocal last_level
        if level != _CONTINUED_LEVEL:
            last_level = level
        if last_level == _ERROR_LEVEL:
            _errors.append(text.decode("utf-8", "replace").strip())

    callback = llama_cpp.llama_log_callback(keep_errors)
    _alive.append(callback)
    llama_cpp.llama_log_set(callback, ctypes.c_void_p(0))
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
    lib = load_library()
    features = lib.llama_print_system_info().decode("utf-8", "replace")
    return f"{version('llama-cpp-python')} {features}"


@cache
def load_multimodal() -> Any:
    """llama.cpp's functions for pictures, kept as silent as the rest."""
    load_library()
    from llama_cpp import mtmd_cpp

    mtmd_cpp.mtmd_log_set(_alive[0], ctypes.c_void_p(0))
    mtmd_cpp.mtmd_helper_log_set(_alive[0], ctypes.c_void_p(0))
    return mtmd_cpp
