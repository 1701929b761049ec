"""The memory files beside the log: what both say now, and how far the files were known to show the log."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from panda.documents.memory_file import MemoryEntry, find_entry, parse_memory_file
from panda.errors import FileFormatError, StoreError
from panda.memory.keys import canonical_key, is_system, memory_key, shown_in
from panda.memory.log import Extent, MemoryLog, Triple
from panda.memory.shown import Comparison, Standing, compare
from panda.memory.staging import Kind
from panda.storage.files import read_json, read_text
from panda.storage.layout import Layout
from panda.storage.links import check_links

KINDS: tuple[Kind, ...] = ("preference", "fact")
_NO_FILE = "none"


@dataclass(frozen=True)
class Shown:
    """A mark: up to where the memory files showed the log, and what they were."""

    extent: Extent
    """How much of log and conflict records they showed."""
    digests: Mapping[str, str]
    """Kind to a digest of its file."""

    def to_json(self) -> dict[str, object]:
        """As memory.shown.json holds it."""
        return {
            "assertions": self.extent.assertions,
            "conflicts": self.extent.conflicts,
            "digests": dict(self.digests),
        }


class Projection:
    """
    Log and memory files of one user, read together; nothing is written.

    Args:
        layout: Where the store is.
        user: Whose memory.
    """

    def __init__(self, layout: Layout, user: str) -> None:
        self.user = user
        self.log = MemoryLog(layout, user)
        self.paths: Mapping[Kind, Path] = {
            "preference": layout.preferences(user),
            "fact": layout.facts(user),
        }
        self.texts: dict[Kind, str | None] = {}
        """The files as they are; None for one that is not there."""
        self.mark: Shown | None = None
        """What was noted when panda last wrote; None if it never did."""
        self._mark_path = layout.memory_shown(user)

    def refresh(self) -> None:
        """
        Read what there is. The mark comes first and the files last: whoever writes meanwhile does it in the
        other order, so what looks unshown can be shown already, but never the other way round.

        Raises:
            StoreError: A file cannot be read.
            FileFormatError: The log is corrupt, or a memory file is not UTF-8.
        """
        self.mark = self._read_mark()
        self.log.refresh()
        if self.mark is not None and self.mark.extent.assertions > self.log.extent.assertions:
            self.mark = None
        self.texts = {kind: read_text(path) if path.exists() else None for kind, path in self.paths.items()}

    def _read_mark(self) -> Shown | None:
        if not self._mark_path.exists():
            return None
        with suppress(FileFormatError, StoreError, KeyError, TypeError, ValueError):
            raw = read_json(self._mark_path)
            return Shown(Extent(int(raw["assertions"]), int(raw["conflicts"])), dict(raw["digests"]))
        return Shown(Extent(0, 0), {})  # a crash tore it: take nothing for shown

    def write_mark(self) -> None:
        """Note that the files, as they are in `texts`, show the log as it was read."""
        mark = Shown(self.log.extent, self._digests())
        if mark != self.mark:
            text = json.dumps(mark.to_json()) + "\n"
            check_links(self._mark_path)
            with suppress(OSError):  # not synced: without it the log counts as further than the files
                self._mark_path.write_text(text, encoding="utf-8")
            self.mark = mark

    def _digests(self) -> dict[str, str]:
        return {
            kind: _NO_FILE if text is None else hashlib.sha256(text.encode()).hexdigest()[:32]
            for kind, text in self.texts.items()
        }

    @property
    def is_settled(self) -> bool:
        """Whether nothing happened to files and log since the mark."""
        return self.mark is not None and self.mark == Shown(self.log.extent, self._digests())

    def entries(self, kind: Kind) -> dict[str, MemoryEntry] | None:
        """
        What a memory file says, by key as the log has it; None if it is not there. Keys that no memory can
        have are left out.

        Raises:
            DocumentError: It is corrupt.
        """
        text = self.texts[kind]
        if text is None:
            return None
        found = parse_memory_file(text, where=str(self.paths[kind]))
        keyed = ((canonical_key(entry.key, kind, self.user), entry) for entry in found)
        return {key: entry for key, entry in keyed if key is not None}

    def entry(self, kind: Kind, key: str) -> MemoryEntry | None:
        """
        One entry of a memory file, by key as the log has it.

        Raises:
            DocumentError: It is corrupt.
        """
        text, where = self.texts[kind] or "", str(self.paths[kind])
        found = find_entry(text, key, where=where)
        if found is None and "#" in key:  # perhaps its entity is typed in another way
            return (self.entries(kind) or {}).get(key)
        return found

    def standing(self, triple: Triple, now: datetime, extent: Extent | None = None) -> Standing:
        """What the log says of one scope, entity and relation."""
        past = tuple(self.log.contenders(triple, now=now, include_expired=True, extent=extent))
        live = (one for one in past if one.fact.valid_until is None or one.fact.valid_until >= now)
        return Standing(triple, tuple(live), past, self.log.of(triple))

    def compare(self, now: datetime) -> list[Comparison]:
        """
        Every key of both files and of the log.

        Raises:
            DocumentError: A memory file is corrupt.
        """
        entries = {kind: self.entries(kind) for kind in KINDS}
        standings = self._by_key(
            [self.standing(triple, now) for triple in self.log.triples("local")], only_winners=True
        )
        extent = self.mark.extent if self.mark else self.log.extent
        changed = dict.fromkeys(triple for triple in self.log.added_after(extent) if triple[0] == "local")
        former = self._by_key([self.standing(t, now, extent) for t in changed], only_winners=False)
        found = [one for kind in KINDS for one in compare(kind, entries[kind], standings[kind], former[kind])]
        preferred = set(entries["preference"] or ())
        return [one for one in found if not self._is_second(one, preferred)]

    def _is_second(self, one: Comparison, preferred: set[str]) -> bool:
        """Whether a fact was typed under a key that is a preference too: the preference holds."""
        return one.kind == "fact" and one.verdict == "typed" and one.key in preferred

    def _by_key(self, standings: list[Standing], *, only_winners: bool) -> dict[Kind, dict[str, Standing]]:
        found: dict[Kind, dict[str, Standing]] = {"preference": {}, "fact": {}}
        for standing in standings:
            _, entity, relation = standing.triple
            winner = standing.winner
            if is_system(entity) or is_system(relation):
                continue
            if winner is not None:
                kinds: tuple[Kind, ...] = (shown_in(winner.kind, entity, self.user),)
            else:
                kinds = () if only_winners else KINDS
            for kind in kinds:
                found[kind][memory_key(entity, relation, self.user)] = standing
        return found
