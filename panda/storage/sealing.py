"""The seal of a saved turn: what its files were when it was saved, so that a later change is seen."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from panda.documents.problems import Problem
from panda.errors import FileFormatError, StoreError
from panda.storage.files import read_bytes
from panda.storage.layout import INDEX_SUMMARY_JSON, METADATA_JSON, TurnPaths
from panda.storage.records import load_object
from panda.storage.temporaries import is_temporary

_DIGEST_CHARS = 16
_NO_LINK = "a link"
SEAL = "seal"
"""Key of a digest in the object that it is of."""
_FIX = "restore it; if you changed it yourself and mean it, delete `seal` from the turn's metadata.json"


def seal_files(directory: Path, metadata: Mapping[str, Any]) -> dict[str, str]:
    """
    The digest of every file of a turn, by its path in the directory.

    Args:
        directory: The turn's directory; index_summary.json, which may be made later, is left out.
        metadata: The value of metadata.json, which counts without its seal.

    Returns:
        The first 16 hexadecimal digits of the sha256 of each file, sorted by path.
    """
    found = {METADATA_JSON: seal_value(metadata)}
    for path in directory.rglob("*"):
        name = path.relative_to(directory).as_posix()
        if path.is_file() and name not in (METADATA_JSON, INDEX_SUMMARY_JSON) and not is_temporary(path):
            found[name] = _NO_LINK if path.is_symlink() else _digest(read_bytes(path))
    return dict(sorted(found.items()))


def seal_value(value: Mapping[str, Any]) -> str:
    """The digest of what a JSON object says, its own seal left out."""
    own = {key: part for key, part in value.items() if key != SEAL}
    return _digest(json.dumps(own, sort_keys=True).encode())


def check_seal(directory: Path, metadata: Mapping[str, Any], known: Sequence[Problem]) -> list[Problem]:
    """
    The files of a turn that changed, came or went since it was saved.

    Args:
        directory: The turn's directory.
        metadata: The value of metadata.json; older and imported turns have no seal, and nothing is known.
        known: Problems of the turn; what is wrong with a file already is not told twice.
    """
    sealed = metadata.get(SEAL)
    if sealed is None:
        return []
    there = seal_files(directory, metadata)
    told = {problem.path for problem in known}
    problems = []
    for name in sorted(sealed.keys() | there.keys()):
        path = directory / name
        if there.get(name) == sealed.get(name) or str(path) in told or path.name.startswith("."):
            continue
        happened = "has changed" if name in there and name in sealed else "has gone"
        message = f"{happened if name in sealed else 'has come'} since the turn was saved"
        problems.append(Problem(str(path), message, key=SEAL, fix=_FIX))
    return problems


def is_sealed(paths: TurnPaths) -> bool:
    """Whether the turn is there and was sealed when it was saved."""
    with suppress(FileFormatError, StoreError):
        return bool(load_object(paths / METADATA_JSON).get(SEAL))
    return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARS]
