"""The lines of an import file as values."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from panda.documents.json_text import may_hold_halves
from panda.documents.times import parse_time
from panda.errors import FileFormatError, ImportFileError
from panda.storage.files import parse_json, read_text
from panda.storage.schemas import json_problems

IMPORT_LINE = "import.jsonl"


@dataclass(frozen=True)
class ImportLine:
    """One turn to import."""

    where: str
    """File and line, for errors."""
    user: str
    """User id."""
    turn: int | None
    """Turn number, if the line gives one."""
    session: str
    """Session id."""
    at: datetime
    """When it was said; whole seconds."""
    query: str
    """What the user said."""
    response: str
    """What was answered; may be empty."""
    summary: str | None
    """Summary for the index, if given."""
    topics: tuple[str, ...] | None
    """Topics for the index, if given."""

    @property
    def has_summary(self) -> bool:
        """Whether the line says anything for the index."""
        return self.summary is not None or bool(self.topics)


def read_import_lines(source: Path | Iterable[str], *, name: str = "<stdin>") -> list[ImportLine]:
    """
    All turns of an import file; blank lines are skipped.

    Args:
        source: The file, or its lines.
        name: Name for errors, if *source* is lines.

    Raises:
        ImportFileError: A line is not what it must be; names it.
        StoreError: The file cannot be read.

    Source:
        issue 2, import.
    """
    if isinstance(source, Path):
        name = str(source)
        try:
            lines: Iterable[str] = read_text(source, pipe=True).removeprefix("\ufeff").split("\n")
        except FileFormatError as exc:
            raise ImportFileError(exc.message, where=exc.where, fix=exc.fix) from exc
    else:
        lines = source
    return [_parse_line(text, f"{name}:{i}") for i, text in enumerate(lines, 1) if text.strip()]


def _parse_line(text: str, where: str) -> ImportLine:
    try:
        value = parse_json(text.strip(), where=where)
    except FileFormatError as exc:
        raise ImportFileError(exc.message, where=where, fix="write one JSON object a line") from exc
    if may_hold_halves(text) and json.loads(text) != value:
        raise ImportFileError("the line holds half a surrogate pair", where=where)
    for problem in json_problems(IMPORT_LINE, value, path=where):
        raise ImportFileError(problem.message, where=problem.where)
    try:
        at = parse_time(value["at"]).replace(microsecond=0)
    except (ValueError, OverflowError) as exc:
        raise ImportFileError(
            f"{value['at'][:80]!r} is not an ISO 8601 time", where=f"{where} (at)", fix="2026-01-04T14:30:00Z"
        ) from exc
    topics = value.get("topics")
    return ImportLine(
        where=where,
        user=value["user"],
        turn=value.get("turn"),
        session=value["session"],
        at=at,
        query=value["query"],
        response=value["response"],
        summary=value.get("summary"),
        topics=tuple(topics) if topics is not None else None,
    )
