"""One section or one file of a saved turn."""

import os
from pathlib import Path

from panda.documents.context import render_section
from panda.errors import NotFoundError, UsageError
from panda.storage.files import read_bytes
from panda.storage.layout import CONTEXT_MD
from panda.storage.links import check_links
from panda.storage.turns import TurnFolder


def read_section(turn: TurnFolder, number: int) -> str:
    """
    Heading and body of one section of context.md, as they stand on disk.

    Raises:
        NotFoundError: The turn has no such section.
        DocumentError: Its context.md is damaged.
    """
    document = turn.read_context()
    section = document.section(number)
    if section is None:
        there = ", ".join(str(other.number) for other in document.sections)
        raise NotFoundError(
            f"turn {turn.number} has no section {number}",
            where=str(turn.paths / CONTEXT_MD),
            fix=f"its sections are {there}" if there else "it has no section yet",
        )
    return render_section(section) + "\n"


def read_turn_file(turn: TurnFolder, name: str) -> bytes:
    """
    One file of the turn directory, byte for byte.

    Args:
        turn: The turn.
        name: Path below the turn directory, e.g. "steps/step_01.json".

    Raises:
        UsageError: The path leads out of the turn directory.
        NotFoundError: There is no such file.
        StoreError: It cannot be read.
    """
    check_links(turn.paths.directory)
    directory = Path(os.path.realpath(turn.paths.directory))  # Path.resolve fails on circles
    path = Path(os.path.realpath(directory / name))
    if not path.is_relative_to(directory):
        message = f"{name!r} leads out of the turn directory"
        raise UsageError(message, where=str(directory), fix=_there(directory))
    if not path.is_file():
        message = f"turn {turn.number} has no file {name!r}"
        raise NotFoundError(message, where=str(directory), fix=_there(directory))
    return read_bytes(path)


def _there(directory: Path) -> str:
    files = sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())
    return f"its files are {', '.join(files)}" if files else "the turn has no file yet"
