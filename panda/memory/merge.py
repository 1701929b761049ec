"""Another machine's facts, taken into a user's memory with the clock readings that they have (S2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panda.errors import FileFormatError
from panda.memory.fact import Assertion, Conflict, parse_assertion, parse_conflict
from panda.memory.memory import Memory
from panda.storage.files import parse_json, read_text


@dataclass(frozen=True)
class Merge:
    """What came of a merge."""

    assertions: tuple[Assertion, ...]  # what was new, by clock reading
    conflicts: tuple[Conflict, ...]  # conflict records that were new
    known: int  # facts and records that were here already


def merge_files(memory: Memory, paths: Sequence[Path]) -> Merge:
    """
    Add the facts and conflict records of files.

    Args:
        paths: Files of JSON lines, each a fact or a conflict record (another machine's memory.jsonl and
            conflicts.jsonl), or documents `{"facts": […], "conflicts": […]}`.

    Raises:
        FileFormatError: a line is neither, or has the id of another fact; names the line; nothing is written.
        LockHeldError, StoreError: As Memory says.
    """
    read = [one for path in paths for one in _read(path)]
    with memory.held() as log:
        facts: dict[str, Assertion] = {}
        records: dict[Conflict, None] = {}
        for where, one in read:
            if isinstance(one, Conflict):
                records[one] = None
            else:
                facts.setdefault(one.fact.id, one)
                _check_same(where, one, facts[one.fact.id])
                _check_same(where, one, log.get(one.fact.id) or one)
        new = sorted(
            (one for one in facts.values() if log.get(one.fact.id) is None),
            key=lambda one: (one.fact.reading, one.fact.id),
        )
        there = set(log.conflicts)
        settled = [one for one in records if one not in there]
        if new or settled:
            memory.commit(new, settled)
    return Merge(tuple(new), tuple(settled), len(facts) - len(new) + len(records) - len(settled))


def _check_same(where: str, one: Assertion, other: Assertion) -> None:
    if _meaning(one) != _meaning(other):
        raise FileFormatError(
            f"another fact has the id {one.fact.id!r} and says something else", where=f"{where} (id)"
        )


def _meaning(one: Assertion) -> tuple[object, ...]:
    fact = one.fact
    said = (fact.value.key, fact.confidence, fact.valid_until, fact.source)
    return (*one.subject, *said, fact.reading)


def _read(path: Path) -> Iterator[tuple[str, Assertion | Conflict]]:
    text = read_text(path, pipe=True)
    for where, raw in _values(path, text):
        if isinstance(raw, dict) and "conflict_id" in raw:
            yield where, parse_conflict(raw, where=where)
        else:
            yield where, parse_assertion(raw, where=where)


def _document(path: Path, text: str) -> dict[str, Any] | None:
    """The one object with a list of facts that a text is; None if it is lines of them."""
    try:
        value = parse_json(text, where=str(path))
    except FileFormatError:
        first = next((line for line in text.split("\n") if line.strip()), "")
        if first.strip() in ("{", "["):  # one value over several lines, and broken
            raise
        return None
    return value if isinstance(value, dict) and isinstance(value.get("facts"), list) else None


def _values(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """The facts and records of a file, each with its place."""
    document = _document(path, text)
    if document is not None:
        for name in ("facts", "conflicts"):
            for index, raw in enumerate(document.get(name) or ()):
                yield f"{path}: {name}[{index}]", raw
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"{path}:{number}", parse_json(line, where=str(path), line=number)
