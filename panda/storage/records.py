"""What the files of the store say, as values: saved turns and research, read but never written."""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from panda.documents.context import parse_context
from panda.documents.times import parse_time
from panda.errors import FileFormatError, StoreError
from panda.storage.files import read_json, read_text
from panda.storage.layout import (
    CONTEXT_MD,
    INDEX_SUMMARY_JSON,
    METADATA_JSON,
    QUERY_ANALYSIS_JSON,
    RESEARCH_JSON,
    RESPONSE_MD,
    STAGED_MEMORY_JSON,
    TurnPaths,
)

SAVED_STATUSES = frozenset({"approved", "imported", "clarify", "failed"})
"""Statuses of turns that later turns may draw on."""

_STEP = "step:"
"""How a result of a turn's own tools is cited that no node holds."""


@dataclass(frozen=True)
class TurnRecord:
    """What a saved turn says."""

    number: int
    """Turn number."""
    status: str
    """As in metadata.json."""
    session: str
    """Session id."""
    at: datetime
    """When the turn was claimed."""
    query: str
    """The raw query."""
    response: str
    """The answer with its citation marks; "" if there is none, or the turn was not saved."""
    summary: str
    """Summary for the index; "" if none is written yet."""
    topics: tuple[str, ...]
    """Topics for the index."""
    research_topic: str | None
    """Topic of the research that ran in this turn or that its summary names."""
    statements: tuple[str, ...] = ()
    """The parts of the query that told something and are not kept as nodes; the whole query if unread."""
    own_answer: str = ""
    """What of the answer is said nowhere else; the whole if its sources are not recorded."""
    quotes: tuple[tuple[str, str], ...] = ()
    """What the turn quoted or noted, each with the id of the node that says it."""
    answered: bool = True
    """False if the turn ended without an answer: then what it replied is no evidence of anything."""


@dataclass(frozen=True)
class ResearchRecord:
    """One research.json; fields that it lacks are None or empty."""

    path: Path
    """The file."""
    topic: str
    """Its topic, as "commerce.laptop"."""
    created_at: datetime | None
    """When the research ran."""
    expires_at: datetime | None
    """When it wants to be done again."""
    quality: float | None
    """quality_score."""
    summary: str
    """Summary, "" if none."""
    claims: tuple[dict[str, Any], ...]
    """Claims as in the file: claim, source, confidence."""
    visit_ids: tuple[str, ...]
    """Visits it rests on."""
    conflicts: tuple[dict[str, Any], ...] = ()
    """Claims that cannot all hold: text, and the claims."""


def load_object(path: Path) -> dict[str, Any]:
    """
    A JSON file that holds one object.

    Raises:
        StoreError: It is missing or cannot be read.
        FileFormatError: Not UTF-8, not JSON, or no object.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise FileFormatError(f"expected a JSON object, found {type(value).__name__}", where=f"{path}:1")
    return value


def load_turn(paths: TurnPaths, number: int, *, names: Collection[str] | None = None) -> TurnRecord:
    """
    What a turn says.

    Args:
        paths: Its directory.
        number: Its number.
        names: Names of its files, if they are known already.

    Raises:
        StoreError: A file is missing or cannot be read.
        FileFormatError: A file does not say what it must.
    """
    path, summary_path = paths / METADATA_JSON, paths / INDEX_SUMMARY_JSON
    metadata = load_object(path)
    names = os.listdir(paths.directory) if names is None else names  # noqa: PTH208 - thousands of calls
    if metadata.get("turn", number) != number:
        raise FileFormatError(
            f"turn is {metadata['turn']}, not {number} as the directory", where=f"{path} (turn)"
        )
    summary = load_object(summary_path) if INDEX_SUMMARY_JSON in names else {}
    topic = text_of(summary, "research_topic", summary_path)
    if not topic and RESEARCH_JSON in names:
        topic = text_of(load_object(paths / RESEARCH_JSON), "topic", paths / RESEARCH_JSON)
    status = text_of(metadata, "status", path)
    at = instant_of(metadata, "created_at", path)
    if at is None:
        raise FileFormatError("created_at is missing", where=f"{path} (created_at)")
    answer = _load_answer(paths) if status in SAVED_STATUSES else _Answer("", "", ())
    query, answered = text_of(metadata, "query", path), metadata.get("answered") is not False
    noted = _noted(paths) if STAGED_MEMORY_JSON in names else ()
    return TurnRecord(
        number=number,
        status=status,
        session=text_of(metadata, "session_id", path),
        at=at,
        query=query,
        response=answer.text,
        summary=text_of(summary, "summary", summary_path),
        topics=_texts(summary, "topics", summary_path),
        research_topic=topic or None,
        statements=_statements(paths if QUERY_ANALYSIS_JSON in names else None, query),
        own_answer=answer.own,
        quotes=(*(answer.quotes if answered else ()), *noted),
        answered=answered,
    )


@dataclass(frozen=True)
class _Answer:
    """What a turn answered."""

    text: str
    """All of it, with its citation marks."""
    own: str
    """What of it rests on no other node."""
    quotes: tuple[tuple[str, str], ...]
    """What it quotes, each with the id of the node."""


def _load_answer(paths: TurnPaths) -> _Answer:
    document = parse_context(read_text(paths / CONTEXT_MD), where=str(paths / CONTEXT_MD))
    synthesis = document.section(5)
    if synthesis is None or not synthesis.text:
        text = read_text(paths / RESPONSE_MD) if (paths / RESPONSE_MD).exists() else ""
        return _Answer(text, text, ())
    items: Any = synthesis.meta.get("items")
    if items is None:  # imported, or older than the record of sources
        return _Answer(synthesis.text, synthesis.text, ())
    own_node = f"turn:{document.front.turn}"
    quotes = [
        (str(item["text"]), str(node_id))
        for item in items
        for node_id in item["node_ids"]
        if node_id != own_node and not node_id.startswith(_STEP)
    ]
    quoted = {text for text, _ in quotes}
    own = "\n\n".join(str(item["text"]) for item in items if item["text"] not in quoted)
    return _Answer(synthesis.text, own, tuple(quotes))


def _statements(paths: TurnPaths | None, query: str) -> tuple[str, ...]:
    """The clauses of the query that tell something; the whole of one that was not read."""
    reading = load_object(paths / QUERY_ANALYSIS_JSON).get("reading") if paths is not None else None
    clauses = reading.get("clauses") if isinstance(reading, dict) else None
    if not isinstance(clauses, list):
        return (query,)
    told = (one for one in clauses if isinstance(one, dict) and one.get("mood") == "tells")
    return tuple(str(one.get("text")) for one in told)


def _noted(paths: TurnPaths) -> tuple[tuple[str, str], ...]:
    """The sentences that are kept word for word, each with its node."""
    staged = load_object(paths / STAGED_MEMORY_JSON).get("staged")
    known = (one for one in (staged if isinstance(staged, list) else ()) if isinstance(one, dict))
    kept = (one for one in known if one.get("kind") == "statement" and "action" not in one)
    return tuple((str(one.get("text")), f"fact:{one.get('relation')}") for one in kept)


def load_research(path: Path) -> ResearchRecord:
    """
    One research file; only its topic must be there.

    Raises:
        StoreError: It is missing or cannot be read.
        FileFormatError: It is corrupt, or a field has an impossible value.
    """
    raw = load_object(path)
    topic = text_of(raw, "topic", path)
    if not topic:
        raise FileFormatError("topic is missing", where=f"{path} (topic)")
    claims = raw.get("claims") or []
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise FileFormatError("claims is no list of objects", where=f"{path} (claims)")
    return ResearchRecord(
        path=path,
        topic=topic,
        created_at=instant_of(raw, "created_at", path),
        expires_at=instant_of(raw, "expires_at", path),
        quality=share_of(raw, "quality_score", path),
        summary=text_of(raw, "summary", path),
        claims=tuple(claims),
        visit_ids=_texts(raw, "webpage_cache", path),
        conflicts=tuple(conflict for conflict in raw.get("conflicts") or () if isinstance(conflict, dict)),
    )


def turn_directories(turns: Path) -> list[tuple[int, Path]]:
    """
    The turn directories below *turns*, by number ascending; [] if there is no such directory.

    Raises:
        StoreError: The directory cannot be read.
    """
    try:
        found = [path for path in turns.iterdir() if path.name.startswith("turn_")]
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise StoreError(f"cannot read the directory: {exc.strerror}", where=str(turns)) from exc
    return sorted(
        (int(path.name[5:]), path) for path in found if path.name[5:].isascii() and path.name[5:].isdigit()
    )


def visit_directories(turn: Path) -> Iterator[Path]:
    """The visit directories of one turn, by name."""
    cache = TurnPaths(turn).webpage_cache
    if cache.is_dir():
        yield from sorted(path for path in cache.iterdir() if path.is_dir())


def text_of(raw: dict[str, Any], key: str, path: Path) -> str:
    """The text of a key, "" if there is none (FileFormatError if it is no text)."""
    value = raw.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FileFormatError(f"{key} is no text", where=f"{path} ({key})")
    return value


def _texts(raw: dict[str, Any], key: str, path: Path) -> tuple[str, ...]:
    value = raw.get(key) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise FileFormatError(f"{key} is no list of texts", where=f"{path} ({key})")
    return tuple(value)


def share_of(raw: dict[str, Any], key: str, path: Path) -> float | None:
    """The number of a key, from 0 to 1; None if there is none (FileFormatError if it is another)."""
    value = raw.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise FileFormatError(f"{key} is no number from 0 to 1", where=f"{path} ({key})")
    return float(value)


def instant_of(raw: dict[str, Any], key: str, path: Path) -> datetime | None:
    """The instant of a key; None if there is none (FileFormatError if it is no date)."""
    value = text_of(raw, key, path)
    try:
        return parse_time(value) if value else None
    except ValueError as exc:
        raise FileFormatError(f"{key} {value!r} is no date", where=f"{path} ({key})") from exc
