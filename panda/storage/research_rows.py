"""What the research files of all users are about, and until when they hold."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from panda.documents.sentences import one_line
from panda.documents.times import parse_time, render_time
from panda.language.stemming import split_terms
from panda.storage.layout import RESEARCH_MD, Layout
from panda.storage.records import load_object, load_research

RESEARCH_SCHEMA = (
    "CREATE TABLE research (user TEXT, source TEXT, topic TEXT, keywords TEXT, quality REAL,"
    " created TEXT, expires TEXT, summary TEXT, paths TEXT, visits TEXT, PRIMARY KEY (user, source))"
    " WITHOUT ROWID",
    "CREATE INDEX research_topic ON research (user, topic)",
)


@dataclass(frozen=True)
class ResearchEntry:
    """One research file as the index knows it; expired and poor ones too."""

    source: str
    """Its research.json, relative to the user's directory."""
    topic: str
    """As "commerce.laptop"."""
    keywords: tuple[str, ...]
    """Terms of topic, cache key and summary, sorted."""
    quality: float | None
    """quality_score as written, before any decay."""
    created_at: datetime | None
    """When the research ran."""
    expires_at: datetime | None
    """When it wants to be done again."""
    summary: str
    """Its summary."""
    paths: tuple[str, ...]
    """Its files, relative to the user's directory."""
    visits: tuple[str, ...]
    """Ids of the visits it rests on."""


def load_research_row(layout: Layout, user: str, source: str) -> tuple[object, ...]:
    """
    The columns of one research file, after the user.

    Raises:
        StoreError: It is missing or cannot be read.
        FileFormatError: It is corrupt.
    """
    path = layout.user(user) / source
    research = load_research(path)
    key = str(load_object(path).get("cache_key") or "")
    words = f"{research.topic} {key} {research.summary}".replace("_", " ").replace("\0", " ")
    written = path.with_name(RESEARCH_MD)
    paths = [source, *([source.replace(path.name, RESEARCH_MD)] if written.exists() else [])]
    return (
        source,
        one_line(research.topic),
        " ".join(sorted(set(split_terms(words)))),
        research.quality,
        render_time(research.created_at) if research.created_at else None,
        render_time(research.expires_at) if research.expires_at else None,
        one_line(research.summary),
        json.dumps(paths),
        json.dumps(research.visit_ids),
    )


def read_research_entry(row: Any) -> ResearchEntry:
    """The entry that a row of the database holds."""
    return ResearchEntry(
        source=row["source"],
        topic=row["topic"],
        keywords=tuple(row["keywords"].split()),
        quality=row["quality"],
        created_at=parse_time(row["created"]) if row["created"] else None,
        expires_at=parse_time(row["expires"]) if row["expires"] else None,
        summary=row["summary"],
        paths=tuple(json.loads(row["paths"])),
        visits=tuple(json.loads(row["visits"])),
    )
