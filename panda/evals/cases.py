"""Labelled cases: what is asked, and the right answer. The format is described in tests/evals/README.md."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panda.errors import FileFormatError, NotFoundError
from panda.evals.kinds import KINDS
from panda.storage.files import parse_json, read_text

_KEYS = {"kind", "split", "query", "history", "options", "label"}
_SPLITS = ("fit", "test")


@dataclass(frozen=True)
class Case:
    """One labelled case."""

    kind: str
    """Which choice is asked, a key of KINDS."""
    split: str
    """fit or test."""
    query: str
    """What the user says."""
    history: tuple[str, ...]
    """Summaries of the session's earlier turns, oldest first."""
    options: tuple[tuple[str, str], ...]
    """(id, text) of what can be chosen or looked at."""
    label: str | tuple[str, ...]
    """The right answer."""


def load_cases(path: Path) -> list[Case]:
    """
    The cases of a file, or of all `*.jsonl` files of a directory.

    Args:
        path: The file or directory.

    Raises:
        NotFoundError: There is no such file, or no case in it.
        FileFormatError: A line is no case.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    lines = (
        (text, f"{file}:{n}")
        for file in files
        for n, text in enumerate(read_text(file).splitlines(), 1)
        if text.strip()
    )
    cases = parse_cases(lines)
    if not cases:
        raise NotFoundError("there is no case", where=str(path), fix="name a file of labelled cases")
    return cases


def parse_cases(lines: Iterable[tuple[str, str]]) -> list[Case]:
    """
    Cases from (line, where) pairs.

    Raises:
        FileFormatError: A line is no case.

    >>> parse_cases([('{"kind": "intent", "split": "fit", "query": "Hi", "label": "greeting"}', "x:1")])
    [Case(kind='intent', split='fit', query='Hi', history=(), options=(), label='greeting')]
    """
    return [_case(parse_json(text, where=where), where) for text, where in lines]


def _case(value: Any, where: str) -> Case:
    if not isinstance(value, dict) or set(value) - _KEYS:
        raise _fault("a case is an object with the keys " + ", ".join(sorted(_KEYS)), where)
    query, label, split = value.get("query"), value.get("label"), value.get("split", "test")
    if value.get("kind") not in KINDS:
        raise _fault(f"there is no kind {value.get('kind')!r}; known: {', '.join(KINDS)}", where)
    if split not in _SPLITS:
        raise _fault("split must be fit or test", where)
    if not isinstance(query, str) or not query.strip():
        raise _fault("query must be a text", where)
    if isinstance(label, list) and all(isinstance(part, str) for part in label):
        label = tuple(label)
    if isinstance(label, str) == (value["kind"] == "constraint") or not isinstance(label, str | tuple):
        raise _fault("label must be a text; for constraint, a list of texts", where)
    history = value.get("history") or []
    options = value.get("options") or []
    try:
        pairs = tuple((str(option["id"]), str(option["text"])) for option in options)
    except (KeyError, TypeError) as exc:
        raise _fault("each of the options needs an id and a text", where) from exc
    return Case(value["kind"], split, query, tuple(map(str, history)), pairs, label)


def _fault(message: str, where: str) -> FileFormatError:
    return FileFormatError(message, where=where, fix="see tests/evals/README.md for the format")
