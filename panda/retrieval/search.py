"""Searching the index by hand: single queries, and files of questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from panda.documents.times import parse_time
from panda.errors import FileFormatError, UsageError
from panda.language.words import query_terms
from panda.memory.confidence import EXPIRED_BELOW, age_days, decayed
from panda.retrieval.meaning import Meaning
from panda.retrieval.ranking import Bounds, Ranked, matched_columns, rank_rows, searched_words
from panda.retrieval.relevance import find_query_words
from panda.storage.files import parse_json, read_text
from panda.storage.index import Index
from panda.storage.index_tables import IndexView, ResearchEntry, SyncReport
from panda.storage.layout import check_id


@dataclass(frozen=True)
class ResearchState:
    """One research file as it stands now."""

    entry: ResearchEntry  # what the index holds
    quality: float | None  # quality_score decayed to now; None if the file has none
    is_expired: bool  # whether its expires_at is past
    is_low: bool  # whether its quality has fallen below what may be used


def find_research(
    view: IndexView, now: datetime, *, topic: str | None = None, words: str | None = None
) -> list[ResearchState]:
    """
    Research by topic, by words, or all of it.

    Args:
        topic: Only this topic, as "commerce.laptop"; None for all.
        words: Only research that has one of these words as a keyword; None for all.

    Returns:
        Those with most of the words first, then the newest.
    """
    wanted = {term for word in find_query_words(words or "") for term in query_terms(word)}
    found = [(len(wanted & set(entry.keywords)), entry) for entry in view.research(topic)]
    kept = [pair for pair in found if words is None or pair[0]]
    states = []
    for _, entry in sorted(kept, key=lambda pair: -pair[0]):
        quality = entry.quality
        if quality is not None and entry.created_at is not None:
            quality = decayed(quality, "default", age_days(entry.created_at, now))
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


@dataclass(frozen=True)
class Question:
    """One line of a file of questions."""

    user: str  # whose turns
    text: str  # the question
    at: datetime | None  # from when "last week" counts


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
        states = {f"research:{one.entry.topic}": one for one in reversed(find_research(view, now))}
        for ranked in rank_rows(view, query, now=now, bounds=bounds, meaning=meaning):
            node_id = ranked.entry.node_id
            if node_id not in hits and len(hits) < limit:
                columns = matched_columns(ranked.entry, words)
                hits[node_id] = Hit(ranked, columns, states.get(node_id))

    index.read(user, look)
    return list(hits.values()), report


def answer_questions(
    index: Index, questions: Sequence[Question], *, limit: int, meaning: Meaning | None = None
) -> tuple[list[dict[str, Any]], dict[str, SyncReport]]:
    """
    The turns that each question finds.

    Returns:
        {"user", "question", "results": [{"turn", "score"}]} for each question in order, and what was taken
        in before, by user.
    """
    reports = {user: index.freshen(user) for user in sorted({one.user for one in questions})}
    bounds = Bounds(turns_only=True)
    answers = []
    for one in questions:
        search = partial(rank_rows, query=one.text, now=one.at, bounds=bounds, meaning=meaning)
        found = index.read(one.user, search)[:limit]
        results = [{"turn": ranked.entry.number, "score": round(ranked.score, 4)} for ranked in found]
        answers.append({"user": one.user, "question": one.text, "results": results})
    return answers, reports


def read_questions(path: Path) -> list[Question]:
    """
    The questions of a file of JSON lines {"user", "question", "at"?}; other keys are ignored. Raises
    FileFormatError: a line is not what it must be; names it.
    """
    found = []
    for number, line in enumerate(read_text(path).removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        value = parse_json(line, where=str(path), line=number)
        if not isinstance(value, dict):
            raise FileFormatError("not a JSON object", where=where, fix='write {"user": …, "question": …}')
        for key in ("user", "question"):
            if not isinstance(value.get(key), str):
                raise FileFormatError(f"{key} is missing or no text", where=f"{where} ({key})")
        try:
            check_id(value["user"], what="user", where=f"{where} (user)")
            at = parse_time(value["at"]) if value.get("at") is not None else None
        except UsageError as exc:
            raise FileFormatError(exc.message, where=exc.where, fix=exc.fix) from exc
        except (ValueError, TypeError, AttributeError, OverflowError) as exc:
            message = f"{str(value['at'])[:80]!r} is not an ISO 8601 time"
            raise FileFormatError(message, where=f"{where} (at)", fix="2026-01-04T14:30:00Z") from exc
        found.append(Question(value["user"], value["question"], at))
    return found
