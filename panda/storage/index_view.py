"""Reading the index: postings, statistics and entries, all as of one moment."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from panda.documents.times import parse_time
from panda.storage.index_blocks import Integers, Positions, Statistics, unpack_numbers, unpack_rows
from panda.storage.index_tables import Execute
from panda.storage.layout import FACTS_MD, PREFERENCES_MD
from panda.storage.research_rows import ResearchEntry, read_research_entry

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class IndexEntry:
    """One row as the index knows it."""

    row: int
    """Row id: of a turn its number."""
    node_id: str
    """As "turn:811"."""
    source_type: str
    """Kind of source, in S0's names."""
    header: str
    """Short line for a list of candidates."""
    at: datetime | None
    """When it was said or seen."""
    session: str | None
    """Session of a turn."""
    number: int | None
    """Number of a turn."""
    summary: str
    """Text of the column summary."""
    topics: str
    """Text of the column topics."""
    names: str
    """Text of the column names."""
    query: str
    """Text of the column query."""
    response: str
    """Text of the column response."""

    @property
    def body(self) -> str:
        """Query and answer of a turn, content of anything else."""
        return f"{self.query}\n{self.response}" if self.query else self.response


class IndexView:
    """
    The rows of one user, within one read transaction.

    Args:
        execute: Runs SQL on an open connection.
        user: Whose rows.
        statistics: Those of an earlier view of the same rows; None reads them.
    """

    def __init__(self, execute: Execute, user: str, statistics: Statistics | None = None) -> None:
        self._execute = execute
        self._user = user
        self.statistics = statistics or self._read_statistics()
        """Lengths, times and neighbours of all rows."""

    def _read_statistics(self) -> Statistics:
        query = "SELECT numbers FROM blocks WHERE user = ?"
        return unpack_numbers(row["numbers"] for row in self._execute(query, (self._user,)))

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
        if not found:
            return np.empty(0, np.intp), np.empty(0, np.float32)
        rows = np.concatenate([unpack_rows(one["block"], one["rows"]) for one in found])
        counts = np.concatenate([np.frombuffer(one["counts"], np.uint8) for one in found])
        return self.statistics.positions(rows), counts.astype(np.float32)

    def entries(self, rows: Iterable[int]) -> dict[int, IndexEntry]:
        """The entries of some rows, by row id."""
        query = "SELECT * FROM entries WHERE user = ? AND row = ?"
        found = (self._execute(query, (self._user, row)).fetchone() for row in rows)
        return {row["row"]: _entry(row) for row in found if row is not None}

    def nodes(self, node_ids: Iterable[str]) -> list[IndexEntry]:
        """The entries of some nodes, those that the index does not hold left out."""
        found: list[IndexEntry] = []
        for node_id in dict.fromkeys(node_ids):
            kind, _, rest = node_id.partition(":")
            if kind == "turn" and rest.isascii() and rest.isdigit():
                found += self.entries([int(rest)]).values() if len(rest) < 18 else ()
            else:
                query = "SELECT * FROM entries WHERE user = ? AND node_id = ? AND number IS NULL"
                found += [_entry(row) for row in self._execute(query, (self._user, node_id))]
        return found

    def memory_keys(self) -> list[IndexEntry]:
        """The entries of all keys of preferences.md, then of facts.md, by node id."""
        query = """
            SELECT * FROM entries WHERE user = ? AND source = ? AND number IS NULL ORDER BY node_id"""
        return [
            _entry(row)
            for name in (PREFERENCES_MD, FACTS_MD)
            for row in self._execute(query, (self._user, name))
        ]

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
        found = self._execute(documents, (self._user, PREFERENCES_MD, FACTS_MD, limit)).fetchall()
        found += self._execute(turns, (self._user, before_turn, most_turns)).fetchall()
        return [_entry(row) for row in found]

    def session_rows(self, session: str) -> Integers:
        """Numbers of all turns of a session."""
        query = "SELECT row FROM entries WHERE user = ? AND session = ?"
        return np.array([row["row"] for row in self._execute(query, (self._user, session))], np.int64)

    def research(self, topic: str | None = None) -> list[ResearchEntry]:
        """
        Research files, newest first, whatever their age and quality.

        Args:
            topic: Only this topic; None for all.
        """
        query = "SELECT * FROM research.research WHERE user = ? AND topic = ifnull(?, topic)"
        found = [read_research_entry(row) for row in self._execute(query, (self._user, topic))]
        return sorted(found, key=lambda one: (one.created_at is not None, one.created_at), reverse=True)

    def count_rows(self) -> dict[str, int]:
        """Number of rows of each source type; a knowledge document has one for each section."""
        query = "SELECT source_type, count(*) AS n FROM entries WHERE user = ? GROUP BY 1 ORDER BY 1"
        return {row["source_type"]: row["n"] for row in self._execute(query, (self._user,))}


def _entry(row: Any) -> IndexEntry:
    return IndexEntry(
        row=row["row"],
        node_id=row["node_id"],
        source_type=row["source_type"],
        header=row["header"],
        at=parse_time(row["at"]) if row["at"] else None,
        session=row["session"],
        number=row["number"],
        summary=row["summary"],
        topics=row["topics"],
        names=row["names"],
        query=row["query"],
        response=row["response"],
    )
