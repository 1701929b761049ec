"""What the index finds for a query, by words and by meaning, as it is found and as plain values."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from panda.documents.times import read_instant, time_text
from panda.errors import ModelFileError, UntrustedError
from panda.index.full_text import Index
from panda.index.sources import IndexEntry
from panda.index.tables import IndexView, SyncReport
from panda.index.vectors import VectorStore
from panda.memory.confidence import EXPIRED_BELOW, age_days, decayed
from panda.models.kept_encoder import KeptEncoder
from panda.models.model_contract import Layers
from panda.retrieval.meaning import Meaning
from panda.retrieval.ranking import Bounds, Ranked, matched_columns, rank_rows, searched_words
from panda.settings import Settings
from panda.store.layout import Layout
from panda.trust import open_layers

_log = logging.getLogger(__name__)


@contextmanager
def opened_meaning(
    settings: Settings,
    layout: Layout,
    index: Index,
    environ: Mapping[str, str],
    layers: Layers | None = None,
) -> Iterator[Meaning | None]:
    """
    Yield what finds by meaning; None without an encoder, with a warning if there is one that may not be used.
    """
    with ExitStack() as stack:
        encoder = None
        try:
            encoder = (layers or stack.enter_context(open_layers(settings, environ))).encoder()
        except (UntrustedError, ModelFileError) as exc:
            _log.warning(f"by words alone, without an encoder: {exc.message}")
        if encoder is None:
            yield None
        else:
            yield Meaning(KeptEncoder(encoder, VectorStore(layout)), index, layout, settings.clock)


@dataclass(frozen=True)
class ResearchState:
    """One research file as it stands now."""

    entry: IndexEntry
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
        states = {research.entry.node_id: research for research in reversed(find_research(view, now))}
        for ranked in rank_rows(view, query, now=now, bounds=bounds, meaning=meaning):
            node_id = ranked.entry.node_id
            if node_id not in hits and len(hits) < limit:
                columns = matched_columns(ranked.entry, words)
                hits[node_id] = Hit(ranked, columns, states.get(node_id))

    index.read(user, look)
    return list(hits.values()), report


def search(
    settings: Settings,
    index: Index,
    meaning: Meaning | None,
    *,
    query: str,
    limit: int,
    session: str | None = None,
    since: str | None = None,
    why: bool = False,
) -> tuple[dict[str, Any], list[Hit]]:
    """
    Return what the index of the user finds, best first, as plain JSON values and as hits; with *why* each
    says why.
    """
    bounds = Bounds(session=session, since=read_instant(since, "--since"))
    user = settings.user
    now = settings.clock()
    hits, report = search_index(index, user, query, now=now, limit=limit, bounds=bounds, meaning=meaning)
    for problem in report.problems:
        _log.warning("not in the index: %s", problem.told)
    if report.behind:
        changes = "1 change" if report.behind == 1 else f"{report.behind} changes"
        _log.warning("the index is %s behind: another process is writing it", changes)
    results = [_value(hit, why=why) for hit in hits]
    return {"query": query, "user": user, "results": results, "behind": report.behind}, hits


def _value(hit: Hit, *, why: bool) -> dict[str, object]:
    entry = hit.ranked.entry
    ranked = hit.ranked
    research = hit.research
    value: dict[str, object] = {
        "node_id": entry.node_id,
        "source_type": entry.source_type,
        "turn": entry.number,
        "session": entry.session,
        "at": time_text(entry.at),
        "intent": entry.intent,
        "has_research": bool(entry.has_research),
        "research_topic": entry.research_topic,
        "score": round(ranked.score, 4),
        "header": entry.header,
    }
    if research:
        value["research"] = {
            "quality": None if research.quality is None else round(research.quality, 2),
            "expires_at": time_text(research.entry.expires_at),
            "expired": research.is_expired,
            "low": research.is_low,
        }
    if why:
        value["why"] = {
            "words": round(ranked.words, 4),
            "meaning": round(ranked.score - ranked.words, 4),
            "cosine": None if ranked.cosine is None else round(ranked.cosine, 4),
            "bm25": round(ranked.bm25, 4),
            "columns": dict(hit.columns),
            "bonuses": {name: round(bonus, 3) for name, bonus in ranked.bonuses.items()},
        }
    return value
