"""Searching the index by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from panda.index.index import Index
from panda.index.sources import IndexEntry
from panda.index.tables import IndexView, SyncReport
from panda.memory.confidence import EXPIRED_BELOW, age_days, decayed
from panda.retrieval.meaning import Meaning
from panda.retrieval.ranking import Bounds, Ranked, matched_columns, rank_rows, searched_words


@dataclass(frozen=True)
class ResearchState:
    """One research file as it stands now."""

    entry: IndexEntry  # what the index holds
    quality: float | None  # quality_score decayed to now; None if the file has none
    is_expired: bool  # whether its expires_at is past
    is_low: bool  # whether its quality has fallen below what may be used


def find_research(view: IndexView, now: datetime) -> list[ResearchState]:
    """All research, the newest first."""
    states = []
    for entry in view.research():
        quality = entry.quality
        if quality is not None and entry.at is not None:
            quality = decayed(quality, "default", age_days(entry.at, now))
        is_low = quality is not None and quality < EXPIRED_BELOW
        is_expired = entry.expires_at is not None and entry.expires_at <= now
        states.append(ResearchState(entry, quality, is_expired, is_low))
    return states


@dataclass(frozen=True)
class Hit:
    """One node that was found."""

    ranked: Ranked  # its best row with its score
    columns: Mapping[str, Sequence[str]]  # column → words of the query that stand in it
    research: ResearchState | None  # quality and age, if it is research


def search_index(
    index: Index,
    user: str,
    query: str,
    *,
    now: datetime,
    limit: int,
    bounds: Bounds,
    meaning: Meaning | None = None,
) -> tuple[list[Hit], SyncReport]:
    """
    The nodes that a query finds, best first, and what was taken in before: with its *behind* above 0 the hits
    may be stale. "last week" counts from *now*.
    """
    report = index.freshen(user)
    hits: dict[str, Hit] = {}
    words = searched_words(query, now)

    def look(view: IndexView) -> None:
        hits.clear()
        states = {one.entry.node_id: one for one in reversed(find_research(view, now))}
        for ranked in rank_rows(view, query, now=now, bounds=bounds, meaning=meaning):
            node_id = ranked.entry.node_id
            if node_id not in hits and len(hits) < limit:
                columns = matched_columns(ranked.entry, words)
                hits[node_id] = Hit(ranked, columns, states.get(node_id))

    index.read(user, look)
    return list(hits.values()), report
