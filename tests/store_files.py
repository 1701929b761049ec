"""Files of a store as panda and its users leave them, written as plain text for tests to start from."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NOW = datetime(2026, 1, 4, 14, 30, tzinfo=UTC)
"""The present of the commands that tests run, as in tests.api."""


def render_instant(at: datetime) -> str:
    """Return an instant as the files have it, such as 2026-01-04T14:30:00Z."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def write_turn(
    user: Path,
    number: int,
    *,
    query: str,
    response: str,
    status: str = "imported",
    at: datetime = NOW,
    session: str = "default",
    summary: str = "",
    topics: Sequence[str] = (),
    items: Sequence[tuple[str, str]] | None = None,
    clauses: Sequence[tuple[str, str]] | None = None,
    noted: Sequence[tuple[str, str]] = (),
) -> Path:
    """
    Write the files of one saved turn and return its directory.

    Args:
        user: Directory of the user in the store.
        items: Of the answer, each with the node that it quotes; None records no sources.
        clauses: Of the query, each with its mood; None if it was not read.
        noted: Statements that the turn keeps word for word, each with its node id.
    """
    directory = user / "turns" / f"turn_{number:06d}"
    directory.mkdir(parents=True, exist_ok=True)
    instant = render_instant(at)
    answer = [response] if response else []
    if items is not None:
        cited = [{"text": text, "node_ids": [node_id]} for text, node_id in items]
        answer.insert(0, f"```yaml\n_meta:\n  items: {json.dumps(cited)}\n```")
    heading = [f"turn: {number}", f"user_id: {user.name}", f"session_id: {session}", "mode: chat"]
    front = ['schema: "panda.context/1"', *heading, f'created_at: "{instant}"']
    parts = [
        "\n".join(["---", *front, "---"]),
        "## 0. User Query",
        query,
        "## 5. Synthesis",
        *answer,
    ]
    (directory / "context.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8", newline="")
    (directory / "response.md").write_text(response, encoding="utf-8", newline="")
    metadata: dict[str, Any] = {
        **dict.fromkeys(("next", "saved_at", "answered", "seed")),
        "schema": "panda.metadata/1",
        "mode": "chat",
        "route": [],
        "updated_at": instant,
        "turn": number,
        "user_id": user.name,
        "session_id": session,
        "query": query,
        "status": status,
        "created_at": instant,
    }
    write_json(directory / "metadata.json", metadata)
    if clauses is not None:
        write_json(directory / "query_analysis.json", _analysis(query, clauses))
    if noted:
        statements = [
            {
                "kind": "statement",
                "entity": f"user:{user.name}",
                "relation": node_id.removeprefix("fact:"),
                "value": {"type": "string", "v": text},
                "content_type": "general_fact",
                "source_turn": number,
                "text": text,
            }
            for text, node_id in noted
        ]
        write_json(directory / "staged_memory.json", {"staged": statements, "applied": True})
    if summary or topics:
        described = {"summary": summary, "topics": list(topics), "intent": "query"}
        write_json(
            directory / "index_summary.json", {**described, "has_research": False, "research_topic": None}
        )
    return directory


def _analysis(query: str, clauses: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {
        **dict.fromkeys(("user_purpose", "content_reference", "reasoning")),
        "original_query": query,
        "resolved_query": query,
        "entities": [],
        "reading": {"clauses": [{"text": text, "mood": mood} for text, mood in clauses]},
        "query_type": "informational",
        "intent": "query",
        "reference_resolution": {"status": "not_needed", "original_references": [], "resolved_to": None},
        "data_requirements": {"needs_current_prices": False, "needs_live_data": False, "freshness": None},
    }


def write_visit(
    user: Path,
    turn: int,
    visit_id: str,
    fields: Mapping[str, Any],
    *,
    quality: float,
    at: datetime = NOW,
) -> Path:
    """Write one visit of a turn and return its directory."""
    directory = user / "turns" / f"turn_{turn:06d}" / "webpage_cache" / f"page-{visit_id}"
    directory.mkdir(parents=True)
    manifest = {
        "visit_id": visit_id,
        "url": f"https://shop.example/{visit_id}",
        "visited_at": render_instant(at),
        "page_type": "product",
        "extraction_quality": quality,
        "refreshes": None,
        "title": fields.get("title"),
    }
    write_json(directory / "manifest.json", manifest)
    write_json(directory / "extracted.json", fields)
    return directory


RESEARCH: Mapping[str, Any] = {
    "topic": "commerce.laptop",
    "created_at": "2026-01-04T13:00:00Z",
    "expires_at": "2026-01-05T13:00:00Z",
    "quality_score": 0.9,
    "summary": "Five laptops were compared",
    "claims": [{"claim": "Lenovo LOQ 15 @ $697", "source": "shop.example", "confidence": 0.9}],
    "webpage_cache": [],
}
"""A research.json about laptops that is one and a half hours old and still fresh."""


def write_research(user: Path, turn: int, **changes: Any) -> Path:
    """Write RESEARCH with changes into a turn and return the path of its research.json."""
    path = user / "turns" / f"turn_{turn:06d}" / "research.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {**RESEARCH, **changes})
    return path


def write_note(user: Path, name: str, text: str) -> Path:
    """Write a file below the user's knowledge/ and return its path."""
    path = user / "knowledge" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def write_json(path: Path, value: object) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(value), encoding="utf-8")


def import_line(**changes: object) -> dict[str, object]:
    """Return a valid line for `panda import`; a key that is changed to None is left out."""
    line: dict[str, object] = {
        "user": "demo",
        "session": "default",
        "at": "2026-01-03T10:00:00Z",
        "query": "Which laptop did you find?",
        "response": "The Lenovo LOQ 15 at $697.00.",
    }
    return {key: value for key, value in {**line, **changes}.items() if value is not None}


def dump_database(path: Path) -> list[str]:
    """Return every statement that would make a SQLite database again, in one order."""
    with closing(sqlite3.connect(path)) as connection:
        return sorted(connection.iterdump())
