"""Cached research with what has become of its quality; nothing is hidden for being old or poor."""

from dataclasses import dataclass
from datetime import datetime

from panda.language.stemming import query_terms
from panda.memory.confidence import EXPIRED_BELOW, age_days, decayed
from panda.retrieval.query_words import find_query_words
from panda.storage.index import IndexView
from panda.storage.research_rows import ResearchEntry


@dataclass(frozen=True)
class ResearchState:
    """One research file as it stands now."""

    entry: ResearchEntry
    """What the index holds."""
    quality: float | None
    """quality_score decayed to now; None if the file has none."""
    is_expired: bool
    """Whether its expires_at is past."""
    is_low: bool
    """Whether its quality has fallen below what may be used."""


def find_research(
    view: IndexView, now: datetime, *, topic: str | None = None, words: str | None = None
) -> list[ResearchState]:
    """
    Research by topic, by words, or all of it.

    Args:
        view: The user's rows.
        now: As of when quality and expiry are told.
        topic: Only this topic, as "commerce.laptop"; None for all.
        words: Only research that has one of these words as a keyword; None for all.

    Returns:
        Those with most of the words first, then the newest.
    """
    wanted = {term for word in find_query_words(words or "") for term in query_terms(word)}
    found = [(len(wanted & set(entry.keywords)), entry) for entry in view.research(topic)]
    kept = [pair for pair in found if words is None or pair[0]]
    return [_state(entry, now) for _, entry in sorted(kept, key=lambda pair: -pair[0])]


def _state(entry: ResearchEntry, now: datetime) -> ResearchState:
    quality = entry.quality
    if quality is not None and entry.created_at is not None:
        quality = decayed(quality, "default", age_days(entry.created_at, now))
    return ResearchState(
        entry=entry,
        quality=quality,
        is_expired=entry.expires_at is not None and entry.expires_at <= now,
        is_low=quality is not None and quality < EXPIRED_BELOW,
    )
