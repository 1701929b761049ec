"""preferences.md and facts.md beside the log: what differs, edits by hand, and the lines to change."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from panda.documents.memory_edit import MemoryText
from panda.documents.memory_file import MemoryEntry, find_entry, parse_memory_file
from panda.errors import FileFormatError, StoreError
from panda.memory.confidence import MISSING, TYPED_BY_HAND
from panda.memory.fact import Assertion
from panda.memory.keys import canonical_key, file_value, is_system, memory_key, says, shown_in
from panda.memory.log import Extent, MemoryLog, Triple
from panda.memory.staging import Kind
from panda.storage.files import read_json, read_text
from panda.storage.layout import Layout
from panda.storage.links import check_links

_LEAST = 0.01


@dataclass(frozen=True)
class Standing:
    """What the log says of one key."""

    triple: tuple[str, str, str]  # scope, entity, relation
    live: tuple[Assertion, ...]  # what competes now, the winner first; empty if nothing lives
    past: tuple[Assertion, ...]  # the same with what has expired
    said: Sequence[Assertion]  # all that was ever said of it

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
    key: str  # the key as the log has it
    entry: MemoryEntry | None  # what the file says; None if it does not have the key
    standing: Standing | None  # what the log says; None if it never spoke of it
    verdict: Verdict  # what follows

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


KINDS: tuple[Kind, ...] = ("preference", "fact")
_NO_FILE = "none"


@dataclass(frozen=True)
class Shown:
    """A mark: up to where the memory files showed the log, and what they were."""

    extent: Extent  # how much of log and conflict records they showed
    digests: Mapping[str, str]  # kind to a digest of its file

    def to_json(self) -> dict[str, object]:
        """As memory.shown.json holds it."""
        return {
            "assertions": self.extent.assertions,
            "conflicts": self.extent.conflicts,
            "digests": dict(self.digests),
        }


class Projection:
    """Log and memory files of one user, read together; nothing is written."""

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


_TITLES = {"preference": "Preferences", "fact": "Facts"}


class Showing:
    """
    The texts of both memory files, as they are to become.

    Args:
        state: Log and files as they are.
    """

    def __init__(self, state: Projection) -> None:
        self._state = state
        self._files: dict[Kind, MemoryText] = {}

    def texts(self) -> dict[Kind, str | None]:
        """Kind to the text of its file; None for one that is not there and need not be."""
        return {
            kind: self._files[kind].text if kind in self._files else self._state.texts[kind] for kind in KINDS
        }

    def show(self, triple: Triple, winner: Assertion | None, typed: Comparison | None = None) -> None:
        """
        Bring the lines of one key up to date in both files.

        Args:
            triple: Scope, entity and relation of the key.
            winner: What holds; None if nothing does, then the key goes.
            typed: What was typed by hand, if that is how the winner came about: it stays as it was typed.

        Raises:
            DocumentError: A file is corrupt, or written so that the entry cannot be changed alone.
        """
        _, entity, relation = triple
        if is_system(entity) or is_system(relation):
            return
        state = self._state
        key = memory_key(entity, relation, state.user)
        home = shown_in(winner.kind, entity, state.user) if winner else None
        for kind in KINDS:
            entry = state.entry(kind, key)
            typed_key = entry.key if entry else key
            if kind == home and winner is not None:
                by_hand = typed is not None and typed.kind == kind and not typed.is_relabelled
                self._set(kind, typed_key, winner, by_hand=by_hand)
            elif state.texts[kind] is not None and _is_ours(state, kind, entry, triple):
                self._file(kind).remove(typed_key)

    def _file(self, kind: Kind) -> MemoryText:
        if kind not in self._files:
            where = str(self._state.paths[kind])
            text = self._state.texts[kind] or ""
            self._files[kind] = MemoryText(text, title=_TITLES[kind], where=where)
        return self._files[kind]

    def _set(self, kind: Kind, key: str, winner: Assertion, *, by_hand: bool) -> None:
        value, turn = file_value(winner.fact.value), winner.source_turn
        if by_hand:
            self._file(kind).relist(key, value, turn)
            return
        confidence, at = winner.fact.confidence, winner.asserted_at
        self._file(kind).set(key, value, confidence=confidence, source_turn=turn, updated_at=at)


def _is_ours(state: Projection, kind: Kind, entry: MemoryEntry | None, triple: Triple) -> bool:
    """Whether what a file has under a key is what the log said, and no line that only looks like it."""
    said = [one for one in state.log.of(triple) if one.fact.confidence > 0]
    if entry is None:
        return not any(shown_in(one.kind, triple[1], state.user) != kind for one in said)
    return any(says(entry.value, one.fact.value) for one in said)
