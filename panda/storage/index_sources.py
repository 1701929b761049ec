"""Which files of a user the index draws on, and the rows that each of them gives."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from panda.documents.front_matter import split_front_matter
from panda.documents.memory_file import parse_memory_file, render_value
from panda.documents.sentences import one_line, split_sentences, strip_citations
from panda.storage.files import read_text
from panda.storage.layout import (
    CONTEXT_MD,
    EXTRACTED_JSON,
    FACTS_MD,
    INDEX_SUMMARY_JSON,
    MANIFEST_JSON,
    METADATA_JSON,
    PREFERENCES_MD,
    RESEARCH_JSON,
    Layout,
    TurnPaths,
)
from panda.storage.records import SAVED_STATUSES, load_research, load_turn, load_visit

_HEADER_CHARS = 150


@dataclass(frozen=True)
class IndexRow:
    """One searchable node."""

    node_id: str
    """As "turn:811"."""
    source_type: str
    """Kind of source, in S0's names."""
    header: str
    """Short line for a list of candidates."""
    at: datetime | None
    """When it was said or seen."""
    session: str | None
    """Session of a turn; None for everything else."""
    number: int | None
    """Number of a turn; None for everything else."""
    summary: str
    """Text of the summary column."""
    topics: str
    """Text of the topics column."""
    body: str
    """Text of the body column."""


def scan_sources(layout: Layout, user: str) -> dict[str, str]:
    """
    Every file or directory that gives rows, with a stamp that changes when it is written.

    Args:
        layout: Where the store is.
        user: Whose files.

    Returns:
        Path relative to the user's directory → sizes and modification times of what is read from it.
    """
    root = str(layout.user(user))
    found: dict[str, str] = {}
    for name in (PREFERENCES_MD, FACTS_MD):
        stamp = _stamp(f"{root}/{name}")
        if stamp != "-":
            found[name] = stamp
    for path in sorted(layout.knowledge(user).rglob("*.md")):
        relative = path.relative_to(layout.user(user))
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            found[relative.as_posix()] = _stamp(str(path))
    for name in _directory_names(f"{root}/turns"):
        if not name.startswith("turn_") or not name[5:].isdigit():
            continue
        turn = f"turns/{name}"
        base = f"{root}/{turn}/"
        stamps = [_stamp(base + file) for file in (METADATA_JSON, CONTEXT_MD, INDEX_SUMMARY_JSON)]
        if stamps[:2] != ["-", "-"]:  # else it was claimed a moment ago
            found[turn] = " ".join(stamps)
        research = _stamp(base + RESEARCH_JSON)
        if research != "-":
            found[f"{turn}/{RESEARCH_JSON}"] = research
        for slug in _directory_names(f"{base}webpage_cache"):
            visit = f"{turn}/webpage_cache/{slug}"
            found[visit] = " ".join(
                _stamp(f"{root}/{visit}/{file}") for file in (MANIFEST_JSON, EXTRACTED_JSON)
            )
    return found


def _stamp(path: str) -> str:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of calls before each search
    except OSError:
        return "-"
    return f"{status.st_size}:{status.st_mtime_ns}"


def _directory_names(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(
                entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")
            )
    except OSError:
        return []


def load_rows(layout: Layout, user: str, source: str) -> list[IndexRow]:
    """
    The rows that one source gives.

    Args:
        layout: Where the store is.
        user: Whose files.
        source: A key of scan_sources.

    Returns:
        One row for a turn, research or knowledge file or visit, one for each key of a memory file, none for
        a turn that was not saved.

    Raises:
        FileFormatError: A file does not say what it must.
        StoreError: A file is missing or cannot be read.
    """
    path = layout.user(user) / source
    if source in (PREFERENCES_MD, FACTS_MD):
        return list(_memory_rows(path))
    if source.startswith("knowledge/"):
        return [_knowledge_row(path, source.removeprefix("knowledge/"))]
    if path.name == RESEARCH_JSON:
        return [_research_row(path)]
    if "/webpage_cache/" in source:
        return [_visit_row(path)]
    return list(_turn_rows(path))


def _turn_rows(directory: Path) -> Iterator[IndexRow]:
    number = int(directory.name[5:])
    turn = load_turn(TurnPaths(directory), number)
    if turn.status not in SAVED_STATUSES:
        return
    sentences = split_sentences(turn.summary) or split_sentences(turn.query) or [""]
    date = f"{turn.at:%Y %B} {turn.at.day} {turn.at:%A}"
    yield IndexRow(
        node_id=f"turn:{number}",
        source_type="turn_summary",
        header=clip_header(f"Turn {number}: {sentences[0]}"),
        at=turn.at,
        session=turn.session,
        number=number,
        summary=turn.summary,
        topics=" ".join([*turn.topics, turn.research_topic or "", date]),
        body=f"{turn.query}\n{strip_citations(turn.response)}",
    )


def _memory_rows(path: Path) -> Iterator[IndexRow]:
    prefix, source_type = ("memory", "preference") if path.name == PREFERENCES_MD else ("fact", "fact")
    for entry in parse_memory_file(read_text(path), where=str(path)):
        yield IndexRow(
            node_id=f"{prefix}:{entry.key}",
            source_type=source_type,
            header=clip_header(f"{one_line(entry.key)}: {entry.text}"),
            at=entry.updated_at,
            session=None,
            number=None,
            summary=entry.key.replace("_", " "),
            topics="",
            body=entry.text,
        )


def _knowledge_row(path: Path, name: str) -> IndexRow:
    document = split_front_matter(read_text(path), where=str(path))
    title = one_line(str(document.values.get("title") or path.stem))
    tags = render_value(document.values.get("tags") or "")
    return IndexRow(
        node_id=f"knowledge:{name}",
        source_type="fact",
        header=clip_header(f"Knowledge {name}: {title}"),
        at=None,
        session=None,
        number=None,
        summary=title,
        topics=f"{name.replace('_', ' ').replace('/', ' ')} {tags}",
        body=document.body,
    )


def _research_row(path: Path) -> IndexRow:
    research = load_research(path)
    claims = "\n".join(f"{claim.get('claim') or ''} {claim.get('source') or ''}" for claim in research.claims)
    topic = one_line(research.topic)
    return IndexRow(
        node_id=f"research:{research.topic}",
        source_type="research_cache",
        header=clip_header(f"Research {topic}: {one_line(research.summary)}"),
        at=research.created_at,
        session=None,
        number=None,
        summary=research.summary,
        topics=topic.replace(".", " ").replace("_", " "),
        body=claims,
    )


def _visit_row(directory: Path) -> IndexRow:
    visit = load_visit(directory)
    site = urlsplit_host(visit.url)
    return IndexRow(
        node_id=f"visit:{visit.visit_id}",
        source_type="visit_record",
        header=clip_header(f"Visit of {site}: {one_line(visit.title)}"),
        at=visit.visited_at,
        session=None,
        number=None,
        summary=visit.title,
        topics=f"{visit.page_type} {site}",
        body="\n".join(_field_words(visit.fields)),
    )


def _field_words(fields: Mapping[str, object]) -> Iterator[str]:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield key.replace("_", " ")
            yield from _field_words(value)
        elif key != "title":
            yield f"{key.replace('_', ' ')} {render_value(value)}"


def urlsplit_host(url: str) -> str:
    """
    The host of a URL without "www.", or the text itself.

    >>> urlsplit_host("https://www.bestbuy.com/site/loq-15")
    'bestbuy.com'
    """
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    return (host or url).removeprefix("www.")


def clip_header(text: str) -> str:
    """
    A header short enough for a list of candidates.

    >>> len(clip_header("word " * 100)) <= 150
    True
    """
    if len(text) <= _HEADER_CHARS:
        return text.strip()
    return text[: _HEADER_CHARS - 1].rsplit(" ", 1)[0] + "…"
