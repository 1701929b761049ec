"""What was there when a turn began: turns saved, memory, files by digest. Its `snapshot.json`."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

Digest = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
_MemoryFile = Annotated[str, Meta(extra_json_schema={"enum": ["preferences.md", "facts.md"]})]
_Number = Annotated[int, Meta(ge=1)]
_Count = Annotated[int, Meta(ge=0)]
Ranges = tuple[tuple[_Number, _Number], ...]
"""Whole numbers as ranges, first and last of each, ascending."""


@dataclass(frozen=True)
class MemoryMark:
    """Up to where memory.jsonl and conflicts.jsonl went."""

    assertions: _Count
    """Lines of memory.jsonl."""
    last: str | None
    """Id of the last of them; None if there was none."""
    asserted_at: str | None
    """The latest instant at which one was asserted."""
    conflicts: _Count
    """Lines of conflicts.jsonl."""


@dataclass(frozen=True)
class Snapshot:
    """What was there when a turn began."""

    schema: Literal["panda.snapshot/1"] = field(default="panda.snapshot/1", kw_only=True)
    """Name and version of the format."""
    turns: Ranges
    """Numbers of the saved turns."""
    memory: MemoryMark | None
    """How far the user's memory went; None if it could not be read."""
    files: Mapping[_MemoryFile, Digest | None]
    """Digest of each memory file by name; None for one that was not there."""
    notes: _Count
    """Number of notes below knowledge/."""
    knowledge: Mapping[Annotated[str, Meta(pattern="^[0-6][0-9]$")], Digest]
    """Digests of the notes' names and content, those of one part together; see part_of."""

    def holds(self, number: int) -> bool:
        """Whether a turn was saved."""
        return any(first <= number <= last for first, last in self.turns)

    def changed_since(self, now: "Snapshot", notes: Iterable[str]) -> list[str]:
        """
        The files that differ from what they were.

        Args:
            now: What is there now.
            notes: Names of the notes that there are now, as node ids have them.

        Returns:
            Names of memory files, then of the notes of each part that changed: one of them is new, gone or
            another; "knowledge/…" stands for a part that has none left.
        """
        found = [name for name in self.files if self.files[name] != now.files.get(name)]
        by_part: dict[str, list[str]] = {}
        for name in sorted(notes):
            by_part.setdefault(part_of(name), []).append(f"knowledge/{name}")
        parts = sorted({*self.knowledge, *now.knowledge})
        changed = [part for part in parts if self.knowledge.get(part) != now.knowledge.get(part)]
        return list(dict.fromkeys([*found, *(n for p in changed for n in by_part.get(p, ["knowledge/…"]))]))


def part_of(name: str) -> str:
    """
    The part that a note belongs to, one of 64: so that a snapshot has one size whatever there is.

    >>> part_of("Research/troll_farms.md")
    '40'
    """
    return f"{hashlib.sha256(name.encode()).digest()[0] >> 2:02d}"


def digest_parts(digests: Mapping[str, str]) -> dict[str, str]:
    """
    Digests of parts, of the digests of notes.

    Args:
        digests: Digest of each note by its name.
    """
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
