"""What the memory files say against what the log says: edits by hand, and what is not shown yet. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from panda.documents.memory_file import MemoryEntry
from panda.memory.assertions import Assertion
from panda.memory.confidence import MISSING, TYPED_BY_HAND
from panda.memory.keys import says
from panda.memory.staging import Kind

_LEAST = 0.01


@dataclass(frozen=True)
class Standing:
    """What the log says of one key."""

    triple: tuple[str, str, str]
    """Scope, entity, relation."""
    live: tuple[Assertion, ...]
    """What competes now, the winner first; empty if nothing lives."""
    past: tuple[Assertion, ...]
    """The same with what has expired."""
    said: Sequence[Assertion]
    """All that was ever said of it."""

    @property
    def winner(self) -> Assertion | None:
        """What holds; of what has expired if nothing else does."""
        return next(iter(self.live or self.past), None)

    @property
    def expired(self) -> bool:
        """Whether all that was said has expired."""
        return bool(self.past) and not self.live


Verdict = Literal["same", "typed", "deleted", "stale"]
"""same: the file shows what the log says. typed and deleted: by hand. stale: the log went on."""


@dataclass(frozen=True)
class Comparison:
    """One key of one memory file, compared with the log."""

    kind: Kind
    """Which file."""
    key: str
    """The key as the log has it."""
    entry: MemoryEntry | None
    """What the file says; None if it does not have the key."""
    standing: Standing | None
    """What the log says; None if it never spoke of it."""
    verdict: Verdict
    """What follows."""

    @property
    def is_relabelled(self) -> bool:
        """Whether the value was typed over, and what stands beside it is still that of the former one."""
        winner = self.standing.winner if self.standing else None
        return (
            self.verdict == "typed"
            and self.entry is not None
            and not self.entry.is_bare
            and winner is not None
            and self.entry.updated_at is not None
            and (self.entry.source_turn, self.entry.updated_at) == (winner.source_turn, winner.asserted_at)
        )

    @property
    def typed_confidence(self) -> float:
        """What a value typed by hand begins with: what stands beside it, if it was written for this value."""
        if self.entry is None or self.entry.is_bare or self.is_relabelled:
            return TYPED_BY_HAND
        given = self.entry.confidence
        return MISSING if given is None else max(given, _LEAST)  # 0 would retract it


def compare(
    kind: Kind,
    entries: Mapping[str, MemoryEntry] | None,
    standings: Mapping[str, Standing],
    former: Mapping[str, Standing],
) -> list[Comparison]:
    """
    What became of each key of a memory file.

    Args:
        kind: Which file.
        entries: What it says, by key as the log has it; None if there is no file, which is not to say that
            all was deleted.
        standings: What the log says, by key, of all keys that this file shows.
        former: What it said when the file was last known to show it, for keys of which that differs.

    Returns:
        The keys of the file in its order, then those that it lacks, in the order of the log; a file need not
        show what has expired.
    """
    by_key = entries or {}
    found = []
    for key in dict.fromkeys([*by_key, *standings, *former]):
        entry, standing = by_key.get(key), standings.get(key)
        before = former.get(key, standing)
        verdict = _verdict(entry, standing, before, key in former, is_file=entries is not None)
        if entry is not None or verdict != "same" or (standing and standing.expired):
            found.append(Comparison(kind, key, entry, standing, verdict))
    return found


def _verdict(
    entry: MemoryEntry | None,
    standing: Standing | None,
    before: Standing | None,
    went_on: bool,
    *,
    is_file: bool,
) -> Verdict:
    if _shows(entry, standing):
        return "same" if not went_on or _dated(entry, standing) else "stale"
    if entry is not None and standing is not None and _was(entry, standing):
        return "stale"
    if went_on and (_shows(entry, before) or _was_said(entry, standing or before)):
        return "stale"
    if entry is not None:
        return "typed"
    return "stale" if went_on or not is_file else "deleted"


def _shows(entry: MemoryEntry | None, standing: Standing | None) -> bool:
    """Whether a file says what it must while the log says that."""
    winner = standing.winner if standing else None
    if winner is None or entry is None:
        return entry is None and (winner is None or (standing is not None and standing.expired))
    return says(entry.value, winner.fact.value)


def _was_said(entry: MemoryEntry | None, standing: Standing | None) -> bool:
    """Whether an entry shows something that the log holds with the same date."""
    return entry is not None and any(
        entry.updated_at == one.asserted_at and says(entry.value, one.fact.value)
        for one in (standing.said if standing else ())
    )


def _dated(entry: MemoryEntry | None, standing: Standing | None) -> bool:
    """Whether an entry that shows the right value has its date, too, or none at all."""
    winner = standing.winner if standing else None
    return entry is None or winner is None or entry.updated_at in (None, winner.asserted_at)


def _was(entry: MemoryEntry, standing: Standing) -> bool:
    """Whether an entry shows what won before it expired."""
    return bool(standing.past) and says(entry.value, standing.past[0].fact.value)
