"""What the context gatherer may choose from: the index's best nodes for a query (design §4 "Retrieval")."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from panda.documents.problems import Problem
from panda.memory.nodes import SourceType
from panda.retrieval.query_words import find_dates, find_names, find_query_words
from panda.storage.index import Index, IndexEntry

_POOL = 200
_NAME_BONUS = 0.10
_DATE_BONUS = 0.20
_MEMORY_SHARE = 3


@dataclass(frozen=True)
class Candidate:
    """One node that may be relevant."""

    node_id: str
    """As "turn:811"."""
    source_type: SourceType
    """Kind of source."""
    header: str
    """Short line, as "Turn 811: Compared RTX 4050 laptops under $1000"."""
    at: datetime | None
    """When it was said or seen."""
    score: float
    """Higher is better; 0 if no word of the query is in it."""
    session: str | None
    """Session of a turn; None for everything else."""


class Retriever:
    """
    Ranks the nodes of one user.

    Args:
        index: The store's index.
        user: Whose nodes.
    """

    def __init__(self, index: Index, user: str) -> None:
        self._index = index
        self._user = user
        self.problems: tuple[Problem, ...] = ()
        """Files that the last find could not take in."""

    def find(
        self, query: str, *, limit: int = 30, must_include: Sequence[str] = (), before_turn: int | None
    ) -> list[Candidate]:
        """
        The candidates for a query, best first.

        Args:
            query: The query as resolved; may be any text.
            limit: Most candidates, at least 1; more only if must_include alone has more.
            must_include: Node ids that are candidates whatever their score. Ids of nodes that do not exist
                are left out: the caller sees that by comparing.
            before_turn: Turns from this number on are no candidates; None for no bound.

        Returns:
            Turns, memory keys, research, visits and knowledge documents merged by score. Keys of
            preferences and facts need no shared word, but take at most a third of the places unless
            places are left over.
        """
        self.problems = self._index.sync(self._user).problems
        words = find_query_words(query)
        hits = self._index.search(self._user, words, limit=_POOL, before_turn=before_turn)
        ranked = {entry.node_id: entry for entry in self._rerank(query, hits)}
        forced = [
            ranked.get(entry.node_id, entry)
            for entry in _newest_of_each(self._index.entries(self._user, must_include))
        ]
        chosen = {entry.node_id: entry for entry in forced}
        keys = [ranked.get(entry.node_id, entry) for entry in self._index.memory_keys(self._user)]
        keys.sort(key=lambda entry: -entry.score)
        for entry in keys[: max(1, limit // _MEMORY_SHARE)]:
            _add(chosen, entry, limit)
        for entry in [*ranked.values(), *keys]:
            _add(chosen, entry, limit)
        return [_candidate(entry) for entry in sorted(chosen.values(), key=lambda entry: -entry.score)]

    def _rerank(self, query: str, hits: list[IndexEntry]) -> list[IndexEntry]:
        names, dates = find_names(query), find_dates(query)
        rated = []
        for entry in _newest_of_each(hits):
            bonus = 1.0
            if names:
                bonus += _NAME_BONUS * sum(name in entry.body for name in names) / len(names)
            if entry.at is not None and any(hint.matches(entry.at) for hint in dates):
                bonus += _DATE_BONUS
            rated.append(replace(entry, score=entry.score * bonus))
        return sorted(rated, key=lambda entry: -entry.score)


def _add(chosen: dict[str, IndexEntry], entry: IndexEntry, limit: int) -> None:
    if len(chosen) < limit:
        chosen.setdefault(entry.node_id, entry)


def _newest_of_each(entries: list[IndexEntry]) -> list[IndexEntry]:
    """One entry a node id, the newest where several files hold it, in the order of the best of each."""
    newest: dict[str, IndexEntry] = {}
    for entry in entries:
        other = newest.get(entry.node_id)
        if other is None or (entry.at is not None and (other.at is None or entry.at > other.at)):
            newest[entry.node_id] = entry
    return list(newest.values())


def _candidate(entry: IndexEntry) -> Candidate:
    return Candidate(
        node_id=entry.node_id,
        source_type=cast(SourceType, entry.source_type),
        header=entry.header,
        at=entry.at,
        score=round(entry.score, 4),
        session=entry.session,
    )
