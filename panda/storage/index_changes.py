"""What the index has not taken in yet: the change journal, and what a look at the directories tells."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np

from panda.errors import FileFormatError, StoreError
from panda.storage.files import read_text, store_errors, write_atomic
from panda.storage.index_scan import (
    TURNS,
    scan_documents,
    scan_sources,
    scan_turns,
    turn_numbers,
    turn_of,
    turns_stamp,
)
from panda.storage.index_tables import BROKEN_STAMP, UserTables
from panda.storage.layout import Layout, turn_name
from panda.storage.names import turn_number


@dataclass(frozen=True)
class Difference:
    """Where index and files differ."""

    changed: Mapping[str, str]
    """Sources that are new or were written since, with their stamps."""
    removed: tuple[str, ...]
    """Sources that are gone."""
    turns: str
    """Stamp of the turns directory, taken before looking."""
    retried: frozenset[str]
    """Those of *changed* that could not be read the last time."""
    noted: tuple[Path, ...]
    """Files of the journal that this covers."""
    turns_known: str | None
    """Stamp of the turns directory that the index holds; None if it has never seen the user."""

    @property
    def count(self) -> int:
        """Number of sources that differ, those that cannot be read left out."""
        return len(self.changed) + len(self.removed) - len(self.retried)

    @property
    def turns_behind(self) -> int:
        """Number of turns among them."""
        sources = {*self.changed, *self.removed} - self.retried
        return len({turn_of(source) for source in sources} - {None})

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to write."""
        return not self.count and not self.retried and self.turns == self.turns_known and not self.noted


def note_turns(layout: Layout, user: str, numbers: Iterable[int]) -> None:
    """
    Write into the change journal that turns were saved or changed; to be called after their files are there.

    Args:
        layout: Where the store is.
        user: Whose turns.
        numbers: Turn numbers; none writes nothing.

    Raises:
        StoreError: The journal cannot be written.
    """
    names = [turn_name(number) for number in numbers]
    if names:
        write_atomic(layout.index_changes / f"{user}.{uuid4().hex}", "\n".join(names) + "\n")


def clear_notes(notes: Iterable[Path]) -> None:
    """Take files out of the journal whose changes are in the index."""
    for path in notes:
        with store_errors(path, "remove"):
            path.unlink(missing_ok=True)


def list_notes(layout: Layout) -> list[Path]:
    """All files of the change journal."""
    try:
        names = sorted(os.listdir(layout.index_changes))  # noqa: PTH208 - names alone
    except OSError:
        return []
    return [layout.index_changes / name for name in names if not name.startswith(".")]


def find_all(layout: Layout, user: str, tables: UserTables) -> Difference:
    """
    Every difference, by a look at every file.

    Args:
        layout: Where the store is.
        user: Whose files.
        tables: The user's rows.
    """
    notes = _notes_of(layout, user)
    stamp = turns_stamp(layout, user)
    known = tables.known()
    turns_known = known.pop(TURNS, None)
    return _difference(known, scan_sources(layout, user), stamp, notes, turns_known)


def find_likely(layout: Layout, user: str, tables: UserTables) -> Difference:
    """
    The differences that can be found without a look at every turn.

    Those are: turns that the journal names, directories that came or went, turns that were not saved or not
    readable when last seen, memory files, knowledge documents. Not found: a saved turn edited by hand.

    Args:
        layout: Where the store is.
        user: Whose files.
        tables: The user's rows; they must have been taken in once.
    """
    notes = _notes_of(layout, user)
    stamp = turns_stamp(layout, user)
    turns_known = tables.known_stamp(TURNS)
    suspects = {name for path in notes for name in _names_in(path)}
    suspects.update(turn for turn in map(turn_of, tables.unsettled()) if turn is not None)
    if stamp != turns_known:
        here = np.fromiter(turn_numbers(layout, user), np.int64)
        suspects.update(map(turn_name, np.setxor1d(here, tables.known_turns()).tolist()))
    known = tables.known_documents()
    for name in suspects:
        known.update(tables.known_below(name))
    on_disk = {**scan_documents(layout, user), **scan_turns(layout, user, sorted(suspects))}
    return _difference(known, on_disk, stamp, notes, turns_known)


def _difference(
    known: Mapping[str, str],
    on_disk: Mapping[str, str],
    stamp: str,
    notes: tuple[Path, ...],
    turns_known: str | None,
) -> Difference:
    changed = {source: on_disk[source] for source in on_disk if known.get(source) != on_disk[source]}
    return Difference(
        changed=changed,
        removed=tuple(source for source in known if source not in on_disk),
        turns=stamp,
        retried=frozenset(source for source in changed if known.get(source) == BROKEN_STAMP),
        noted=notes,
        turns_known=turns_known,
    )


def _notes_of(layout: Layout, user: str) -> tuple[Path, ...]:
    return tuple(path for path in list_notes(layout) if path.name.startswith(f"{user}."))


def _names_in(path: Path) -> list[str]:
    try:
        return [name for name in read_text(path).split() if turn_number(name)]
    except (FileFormatError, StoreError):  # gone: another process has taken it in
        return []
