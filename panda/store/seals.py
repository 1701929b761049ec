"""Digests of texts and files, and the seal of a saved turn, by which a later change is seen."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from panda.errors import FileFormatError, Problem, StoreError
from panda.store.files import is_temporary, read_bytes, read_json
from panda.store.layout import INDEX_SUMMARY_JSON, METADATA_JSON, TurnPaths


def part_of(name: str) -> str:
    """
    The part that a note belongs to, one of 64: so that a snapshot has one size whatever there is.

    >>> part_of("Research/troll_farms.md")
    '40'
    """
    return f"{hashlib.sha256(name.encode()).digest()[0] >> 2:02d}"


def digest_parts(digests: Mapping[str, str]) -> dict[str, str]:
    """Digests of parts, of the digests of notes by their names."""
    lines: dict[str, list[str]] = {}
    for name in sorted(digests):
        lines.setdefault(part_of(name), []).append(f"{name}\0{digests[name]}\n")
    return {part: text_digest("".join(lines[part])) for part in sorted(lines)}


def text_digest(text: str | bytes) -> str:
    """
    A digest of 16 hexadecimal digits: enough to see a change, not to prove one.

    >>> text_digest("a")
    'ca978112ca1bbdca'
    """
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:16]


_NO_LINK = "a link"
SEAL = "seal"  # key of a digest in the object that it is of
_FIX = "restore it; if you changed it yourself and mean it, delete `seal` from the turn's metadata.json"


def seal_files(directory: Path, metadata: Mapping[str, Any]) -> dict[str, str]:
    """
    The digest of every file of a turn, by its path in the directory; metadata.json counts without its seal,
    and index_summary.json, which may be made later, not at all.
    """
    digests = {METADATA_JSON: seal_value(metadata)}
    for path in directory.rglob("*"):
        name = path.relative_to(directory).as_posix()
        if path.is_file() and name not in (METADATA_JSON, INDEX_SUMMARY_JSON) and not is_temporary(path):
            digests[name] = _NO_LINK if path.is_symlink() else text_digest(read_bytes(path))
    return dict(sorted(digests.items()))


def seal_value(value: Mapping[str, Any]) -> str:
    """The digest of what a JSON object says, its own seal left out."""
    own = {key: part for key, part in value.items() if key != SEAL}
    return text_digest(json.dumps(own, sort_keys=True).encode())


def check_seal(
    directory: Path, metadata: Mapping[str, Any], known_problems: Sequence[Problem]
) -> list[Problem]:
    """
    The files of a turn that changed, came or went since it was saved, but for those that *known_problems*
    name. Older and imported turns have no seal.
    """
    sealed = metadata.get(SEAL)
    if sealed is None:
        return []
    there = seal_files(directory, metadata)
    reported_paths = {problem.path for problem in known_problems}
    problems = []
    for name in sorted(sealed.keys() | there.keys()):
        path = directory / name
        if there.get(name) == sealed.get(name) or str(path) in reported_paths or path.name.startswith("."):
            continue
        happened = "has changed" if name in there and name in sealed else "has gone"
        message = f"{happened if name in sealed else 'has come'} since the turn was saved"
        problems.append(Problem(message, str(path), key=SEAL, fix=_FIX))
    return problems


def is_sealed(paths: TurnPaths) -> bool:
    """Return whether the turn is there and was sealed when it was saved."""
    with suppress(FileFormatError, StoreError, AttributeError):
        return bool(read_json(paths / METADATA_JSON).get(SEAL))
    return False
