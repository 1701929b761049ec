"""Reading the index: postings, statistics and entries, all as of one moment."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from panda.errors import FileFormatError
from panda.storage.index_blocks import (
    MOST_COUNT,
    Integers,
    Positions,
    Statistics,
    merge_numbers,
    unpack_numbers,
    unpack_rows,
)
from panda.storage.index_scan import turn_of
from panda.storage.index_sources import NOTES, IndexRow, memory_rows
from panda.storage.index_tables import (
    Execute,
    ResearchEntry,
    UserTables,
    count_terms,
    read_research_entry,
    row_numbers,
    row_values,
    rows_by_id,
)
from panda.storage.layout import FACTS_MD, PREFERENCES_MD, turn_name
from panda.storage.names import turn_number
from panda.storage.snapshot import Ranges

Floats = npt.NDArray[np.float32]

_BY_NODE = "entries INDEXED BY entries_node"
"""SQLite, which keeps no statistics here, would walk through all turns of the user."""


@dataclass(frozen=True)
class IndexEntry(IndexRow):
    """One row as the index knows it."""

    row: int = 0
    """Row id: of a turn its number."""

    @property
    def body(self) -> str:
        """Query and answer of a turn, content of anything else."""
        return f"{self.query}\n{self.response}" if self.query else self.response


@dataclass(frozen=True)
class AsOf:
    """What of the index counts for a turn: what was there when it began."""

    turns: Ranges
    """The turns that were saved, and the turn itself: what lies in other turns is left out."""
    memory: Mapping[str, str]
    """What the memory files said then, by name."""


class IndexView:
    """
    The rows of one user, within one read transaction.

    Args:
        execute: Runs SQL on an open connection.
        user: Whose rows.
        statistics: Those of all rows, of an earlier view of the same ones; None reads them.
        as_of: What counts of the rows; None for all.
    """

    def __init__(
        self,
        execute: Execute,
        user: str,
        statistics: Statistics | None = None,
        as_of: AsOf | None = None,
    ) -> None:
        self._execute = execute
        self._user = self.user = user
        """Whose rows."""
        self._as_of = as_of
        self.all_statistics = statistics or unpack_numbers(self._numbers())
        """Lengths, times and neighbours of all rows, whether or not they count."""
        self._gone = self._rows_since(as_of) if as_of else set()
        self._added: dict[int, IndexRow] = {}
        for name, text in as_of.memory.items() if as_of else ():
            self._set_back(name, text)
        self._counts = {row_id: count_terms(row) for row_id, row in self._added.items()}
        self._out = np.array(sorted(self._gone), np.int64)
        self.statistics = self._statistics_then() if self._gone or self._added else self.all_statistics
        """The same of the rows that count."""

    def _numbers(self) -> Iterator[bytes]:
        query = "SELECT numbers FROM blocks WHERE user = ?"
        return (row["numbers"] for row in self._execute(query, (self._user,)))

    def _rows_since(self, as_of: AsOf) -> set[int]:
        """Rows of turns that do not count, and of what lies in them."""
        turns = self.all_statistics.rows[self.all_statistics.sessions != 0]
        found = set(turns[~_within(turns, as_of.turns)].tolist())
        query = "SELECT row FROM entries WHERE user = ? AND number IS NULL AND source >= ? AND source < ?"
        after = 0
        for first, last in (*as_of.turns, (0, 0)):
            end = f"turns/{turn_name(first)}" if first else "turns0"
            if first != after + 1:
                values = (self._user, f"turns/{turn_name(after + 1)}", end)
                found.update(row["row"] for row in self._execute(query, values))
            after = last
        return found

    def _set_back(self, name: str, text: str) -> None:
        """Give a memory file the rows that it had."""
        now = UserTables(self._execute, self._user).rows_of(name)
        with suppress(FileFormatError):
            then = rows_by_id(name, memory_rows(name, text, where=name))
            if then != now:
                self._gone.update(now)
                self._added.update(then)

    def _statistics_then(self) -> Statistics:
        added = [row_numbers(at, row, self._counts[at].total()) for at, row in sorted(self._added.items())]
        merged = merge_numbers(b"".join(self._numbers()), self._gone, added)
        return unpack_numbers([merged or b""])

    @property
    def turns(self) -> Integers:
        """Numbers of the turns that count, ascending."""
        numbers: Integers = self.statistics.rows[self.statistics.sessions != 0]
        return numbers

    def note_digests(self) -> dict[str, str]:
        """Digest of each knowledge document, by its name below knowledge/."""
        query = "SELECT path, digest FROM sources WHERE user = ? AND path >= ? AND path < ?"
        found = self._execute(query, (self._user, NOTES, f"{NOTES[:-1]}0"))
        return {row["path"].removeprefix(NOTES): row["digest"] for row in found}

    def postings(self, term: str) -> tuple[Positions, Floats]:
        """
        Where a term stands.

        Args:
            term: As split_terms gives it.

        Returns:
            Positions in the statistics, ascending within turns, and how often it stands there.
        """
        query = "SELECT block, rows, counts FROM postings WHERE user = ? AND term = ?"
        found = self._execute(query, (self._user, term)).fetchall()
        then = {row_id: counts[term] for row_id, counts in self._counts.items() if term in counts}
        if not found and not then:
            return np.empty(0, np.intp), np.empty(0, np.float32)
        rows = np.concatenate(
            [*(unpack_rows(one["block"], one["rows"]) for one in found), np.array([*then], np.int64)]
        )
        numbers = [np.frombuffer(one["counts"], np.uint8) for one in found]
        counts = np.concatenate([*numbers, [min(count, MOST_COUNT) for count in then.values()]])
        if len(self._out):
            kept = ~np.isin(rows, self._out)
            kept[len(rows) - len(then) :] = True
            rows, counts = rows[kept], counts[kept]
        return self.statistics.positions(rows), counts.astype(np.float32)

    def entries(self, rows: Iterable[int]) -> dict[int, IndexEntry]:
        """The entries of some rows, by row id."""
        query = "SELECT * FROM entries WHERE user = ? AND row = ?"
        entries = {row: _entry_then(row, self._added[row]) for row in rows if row in self._added}
        stored = (row for row in rows if row not in self._gone and row not in entries)
        found = (self._execute(query, (self._user, row)).fetchone() for row in stored)
        return entries | {row["row"]: _entry(row) for row in found if row is not None}

    def _counting(self, rows: Iterable[Any], wanted: Callable[[IndexRow], bool]) -> list[IndexEntry]:
        """The entries of rows that count, then of those that are no more and did."""
        found = [_entry(row) for row in rows if row["row"] not in self._gone]
        return found + [_entry_then(at, row) for at, row in self._added.items() if wanted(row)]

    def nodes(self, node_ids: Iterable[str]) -> list[IndexEntry]:
        """The entries of some nodes, those that the index does not hold left out."""
        found: list[IndexEntry] = []
        for node_id in dict.fromkeys(node_ids):
            kind, _, rest = node_id.partition(":")
            if kind == "turn" and rest.isascii() and rest.isdigit():
                found += self.entries([int(rest)]).values() if len(rest) < 18 else ()
            else:
                query = f"SELECT * FROM {_BY_NODE} WHERE user = ? AND node_id = ? AND number IS NULL"
                rows = self._execute(query, (self._user, node_id))
                found += self._counting(rows, lambda row, node_id=node_id: row.node_id == node_id)  # type: ignore[misc]
        return found

    def turns_holding(self, node_id: str) -> list[int]:
        """Numbers of the turns in whose directories a research or visit of that id lies."""
        query = f"SELECT source FROM {_BY_NODE} WHERE user = ? AND node_id = ? AND number IS NULL"
        names = (turn_of(row["source"]) for row in self._execute(query, (self._user, node_id)))
        return [number for name in names if name and (number := turn_number(name))]

    def visits(self) -> list[tuple[int, str]]:
        """Turn and directory name of every visit, in no order."""
        query = "SELECT source FROM entries WHERE user = ? AND number IS NULL AND source GLOB ?"
        found = self._execute(query, (self._user, "turns/turn_*/webpage_cache/*"))
        parts = (row["source"].split("/") for row in found)
        return [(int(turn.removeprefix("turn_")), name) for _, turn, _, name in parts]

    def memory_keys(self) -> list[IndexEntry]:
        """The entries of all keys of preferences.md, then of facts.md, by node id."""
        query = """
            SELECT * FROM entries WHERE user = ? AND source = ? AND number IS NULL ORDER BY node_id"""
        found: list[IndexEntry] = []
        for name, kind in ((PREFERENCES_MD, "preference"), (FACTS_MD, "fact")):
            rows = self._execute(query, (self._user, name)).fetchall()
            entries = self._counting(rows, lambda row, kind=kind: row.source_type == kind)  # type: ignore[misc]
            found += sorted(entries, key=lambda entry: entry.node_id)
        return found

    def newest(self, limit: int, before_turn: int | None, *, most_turns: int) -> list[IndexEntry]:
        """
        The newest sources: knowledge documents, research and visits first, then turns.

        Args:
            limit: Most entries that are no turns.
            most_turns: Most turns.
            before_turn: Only turns with a smaller number; None for all.
        """
        documents = """
            SELECT * FROM entries WHERE user = ? AND number IS NULL AND source NOT IN (?, ?)
            ORDER BY at IS NULL, at DESC, row LIMIT ?"""
        turns = """
            SELECT * FROM entries WHERE user = ? AND number IS NOT NULL AND number < ifnull(?, number + 1)
            ORDER BY row DESC LIMIT ?"""
        more = len(self._gone)
        found = self._execute(documents, (self._user, PREFERENCES_MD, FACTS_MD, limit + more)).fetchall()
        last = self._execute(turns, (self._user, before_turn, most_turns + more)).fetchall()
        kept = ([_entry(row) for row in rows if row["row"] not in self._gone] for rows in (found, last))
        return [*next(kept)[:limit], *next(kept)[:most_turns]]

    def session_rows(self, session: str) -> Integers:
        """Numbers of all turns of a session."""
        query = "SELECT row FROM entries WHERE user = ? AND session = ?"
        rows = (row["row"] for row in self._execute(query, (self._user, session)))
        return np.array([row for row in rows if row not in self._gone], np.int64)

    def session_turns(self, session: str) -> list[int]:
        """Numbers of the saved turns of a session."""
        query = "SELECT row, number FROM entries WHERE user = ? AND session = ? AND number IS NOT NULL"
        rows = self._execute(query, (self._user, session))
        return [int(row["number"]) for row in rows if row["row"] not in self._gone]

    def research(self, topic: str | None = None) -> list[ResearchEntry]:
        """
        Research files, newest first, whatever their age and quality.

        Args:
            topic: Only this topic; None for all.
        """
        query = "SELECT * FROM research WHERE user = ? AND topic = ifnull(?, topic)"
        found = [read_research_entry(row) for row in self._execute(query, (self._user, topic))]
        if self._as_of is not None:
            found = [one for one in found if _counts_research(one, self._as_of)]
        return sorted(found, key=lambda one: (one.created_at is not None, one.created_at), reverse=True)

    def count_rows(self) -> dict[str, int]:
        """Number of rows of each source type; a knowledge document has one for each section."""
        query = "SELECT source_type, count(*) AS n FROM entries WHERE user = ? GROUP BY 1 ORDER BY 1"
        return {row["source_type"]: row["n"] for row in self._execute(query, (self._user,))}


def _within(numbers: Integers, ranges: Ranges) -> npt.NDArray[np.bool_]:
    """Which of some numbers lie in ranges."""
    if not ranges:
        return np.zeros(len(numbers), np.bool_)
    firsts, lasts = np.array(ranges, np.int64).T
    at = np.searchsorted(firsts, numbers, "right") - 1
    within: npt.NDArray[np.bool_] = (at >= 0) & (numbers <= lasts[at])
    return within


def _counts_research(one: ResearchEntry, as_of: AsOf) -> bool:
    turn = turn_of(one.source)
    return turn is None or any(first <= int(turn[5:]) <= last for first, last in as_of.turns)


def _entry_then(row_id: int, row: IndexRow) -> IndexEntry:
    return IndexEntry(**vars(row), row=row_id)


def _entry(row: Any) -> IndexEntry:
    values = (*row_values(row), row["row"])
    return IndexEntry(*values)
