"""What given turns were about."""

from collections.abc import Iterable
from pathlib import Path

from panda.storage.layout import INDEX_SUMMARY_JSON, METADATA_JSON, Layout
from panda.storage.records import load_object


def told_turns(layout: Layout, user: str, numbers: Iterable[int]) -> list[tuple[int, str]]:
    """
    Turns with what they were about.

    Args:
        layout: The store.
        user: Whose turns.
        numbers: Saved turns.

    Returns:
        (number, summary or else query), in the given order.

    Raises:
        FileFormatError: One of them is damaged.
    """
    return [(number, _told(layout.turn(user, number).directory)) for number in numbers]


def _told(directory: Path) -> str:
    path = directory / INDEX_SUMMARY_JSON
    summary = str(load_object(path).get("summary") or "") if path.is_file() else ""
    return summary or str(load_object(directory / METADATA_JSON).get("query") or "")
