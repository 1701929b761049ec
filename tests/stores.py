"""Small stores for tests of memory, index and tools, written as plain files."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from panda.documents.context import ContextDocument, FrontMatter, Meta, Section, Text, render_context
from panda.documents.times import render_time
from panda.store.layout import Layout, TurnPaths

NOW = datetime(2026, 1, 4, 14, 30, tzinfo=UTC)


def write_turn(
    layout: Layout,
    number: int,
    *,
    query: str,
    response: str,
    status: str = "imported",
    at: datetime = NOW,
    session: str = "default",
    summary: str = "",
    topics: tuple[str, ...] = (),
    user: str = "ann",
    items: Sequence[tuple[str, str]] | None = None,
    clauses: Sequence[tuple[str, str]] | None = None,
    noted: Sequence[tuple[str, str]] = (),
) -> TurnPaths:
    """
    Write the files of one saved turn.

    Args:
        items: Of the answer, each with the node that it quotes; None records no sources.
        clauses: Of the query, each with its mood; None if it was not read.
        noted: What is kept word for word, each with its node.
    """
    paths = layout.of(user).turn(number)
    paths.directory.mkdir(parents=True, exist_ok=True)
    answer: list[Text | Meta] = [Text(response)] if response else []
    if items is not None:
        answer.insert(0, Meta({"items": [{"text": text, "node_ids": [one]} for text, one in items]}))
    sections = (Section(0, (Text(query),)), Section(5, tuple(answer)))
    document = ContextDocument(FrontMatter("panda.context/1", number, user, session, "chat", at), sections)
    metadata: dict[str, Any] = {
        **dict.fromkeys(("next", "saved_at", "answered", "seed")),
        "schema": "panda.metadata/1",
        "mode": "chat",
        "route": [],
        "updated_at": render_time(at),
        "turn": number,
        "user_id": user,
        "session_id": session,
        "query": query,
        "status": status,
        "created_at": render_time(at),
    }
    (paths / "context.md").write_text(render_context(document), encoding="utf-8", newline="")
    (paths / "response.md").write_text(response, encoding="utf-8", newline="")
    _write_json(paths / "metadata.json", metadata)
    if clauses is not None:
        reading = {"clauses": [{"text": text, "mood": mood} for text, mood in clauses]}
        analysis: dict[str, Any] = {
            **dict.fromkeys(("user_purpose", "content_reference", "reasoning")),
            "original_query": query,
            "resolved_query": query,
            "entities": [],
            "reading": reading,
            "query_type": "informational",
            "intent": "query",
            "reference_resolution": {"status": "not_needed", "original_references": [], "resolved_to": None},
            "data_requirements": {"needs_current_prices": False, "needs_live_data": False, "freshness": None},
        }
        _write_json(paths / "query_analysis.json", analysis)
    if noted:
        said = [
            {
                "kind": "statement",
                "entity": f"user:{user}",
                "relation": one[5:],
                "value": {"type": "string", "v": text},
                "content_type": "general_fact",
                "source_turn": number,
                "text": text,
            }
            for text, one in noted
        ]
        _write_json(paths / "staged_memory.json", {"staged": said, "applied": True})
    if summary or topics:
        _write_json(
            paths / "index_summary.json",
            {
                "summary": summary,
                "topics": list(topics),
                "intent": "query",
                "has_research": False,
                "research_topic": None,
            },
        )
    return paths


def write_visit(
    layout: Layout,
    turn: int,
    visit_id: str,
    fields: dict[str, Any],
    *,
    quality: float,
    at: datetime = NOW,
    user: str = "ann",
) -> Path:
    """Write one visit directory and return it."""
    directory = layout.of(user).turn(turn).webpage_cache / f"page-{visit_id}"
    directory.mkdir(parents=True)
    manifest = {
        "visit_id": visit_id,
        "url": f"https://shop.example/{visit_id}",
        "visited_at": render_time(at),
        "page_type": "product",
        "extraction_quality": quality,
        "refreshes": None,
        "title": fields.get("title"),
    }
    _write_json(directory / "manifest.json", manifest)
    _write_json(directory / "extracted.json", fields)
    return directory


def write_research(layout: Layout, turn: int, fields: dict[str, Any], *, user: str = "ann") -> Path:
    """Write the research file of a turn and return its path."""
    path = layout.of(user).turn(turn) / "research.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_json(path, fields)
    return path


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def dump_vectors(layout: Layout) -> list[str]:
    """Every statement that would make vectors.db again, in one order."""
    with closing(sqlite3.connect(layout.vectors)) as connection:
        return sorted(connection.iterdump())
