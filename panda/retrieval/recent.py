"""The newest saved turns of a session."""

from collections.abc import Sequence
from pathlib import Path

from panda.storage.layout import INDEX_SUMMARY_JSON, METADATA_JSON, Layout
from panda.storage.records import SAVED_STATUSES, load_object


def recent_turns(layout: Layout, user: str, numbers: Sequence[int], *, limit: int) -> list[tuple[int, str]]:
    """
    The last saved turns of a session with what they were about.

    Args:
        layout: The store.
        user: Whose turns.
        numbers: The session's turns, oldest first.
        limit: Most turns.

    Returns:
        (number, summary or else query), oldest first.

    Raises:
        FileFormatError: A turn on the way is damaged.
    """
    found: list[tuple[int, str]] = []
    for number in reversed(numbers):
        if len(found) == limit:
            break
        directory = layout.turn(user, number).directory
        metadata = load_object(directory / METADATA_JSON)
        if metadata.get("status") in SAVED_STATUSES:
            found.append((number, _summary(directory) or str(metadata.get("query") or "")))
    return found[::-1]


def _summary(directory: Path) -> str:
    path = directory / INDEX_SUMMARY_JSON
    return str(load_object(path).get("summary") or "") if path.is_file() else ""
