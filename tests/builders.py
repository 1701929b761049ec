"""Shared builders: a clock that stands still, and a store with a user and a few turns."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from panda.exchange.intake import import_turns
from panda.store.layout import Layout
from panda.store.turns import TurnFolder

NOW = datetime(2026, 1, 4, 14, 30, tzinfo=UTC)


def still_clock() -> datetime:
    """The present of all tests."""
    return NOW


def import_line(**changes: object) -> dict[str, object]:
    """A valid line of an import file, less keys that are given as None."""
    line: dict[str, object] = {
        "user": "demo",
        "session": "default",
        "at": "2026-01-03T10:00:00Z",
        "query": "Which laptop did you find?",
        "response": "The Lenovo LOQ 15 at $697.00.",
    }
    return {key: value for key, value in {**line, **changes}.items() if value is not None}


def build_store(root: Path, *lines: Mapping[str, object]) -> Layout:
    """A store with the turns of these import lines; without lines, user demo with turns 1 to 3."""
    given = lines or [
        import_line(turn=n, at=f"2026-01-03T1{n}:00:00Z", query=f"Question {n}?", response=f"Answer {n}.")
        for n in (1, 2, 3)
    ]
    layout = Layout(root)
    import_turns([json.dumps(line) for line in given], layout, still_clock)
    return layout


def tree(root: Path) -> dict[str, bytes]:
    """Content of every file below a directory, by relative path."""
    return {
        str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


def file_of(folder: TurnFolder, name: str) -> Any:
    """What a JSON file of a turn holds."""
    return json.loads((folder.paths / name).read_text(encoding="utf-8"))
