"""One section or one file of a saved turn."""

from pathlib import Path, PurePosixPath

from panda.documents.context import render_section
from panda.documents.escaping import escape_path, unescape_path
from panda.documents.sentences import shorten
from panda.errors import NotFoundError, UsageError
from panda.storage.beneath import read_beneath
from panda.storage.layout import CONTEXT_MD
from panda.storage.links import check_links
from panda.storage.turns import TurnFolder

_NAME_CHARS = 200


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
        name: Path below the turn directory, e.g. "steps/step_01.json"; as it is, or as escape_path writes it.

    Raises:
        UsageError: The path leads out of the turn directory.
        NotFoundError: There is no such file.
        StoreError: It cannot be read.
    """
    check_links(turn.paths.directory)
    path = PurePosixPath(unescape_path(name))
    directory, parts = turn.paths.directory, path.parts
    if path.is_absolute() or ".." in parts:
        message = f"{name!r} leads out of the turn directory"
        raise UsageError(message, where=str(directory), fix=_there(directory))
    is_name = "\0" not in str(path) and not any(
        "\ud800" <= char < "\udc80" or "\udcff" < char <= "\udfff" for char in name
    )
    data = read_beneath(directory, parts, most_bytes=-1) if is_name and parts else None
    if data is None:
        message = f"turn {turn.number} has no file {shorten(repr(name), _NAME_CHARS)}"
        raise NotFoundError(message, where=str(directory), fix=_there(directory))
    return data


def _there(directory: Path) -> str:
    files = sorted(
        escape_path(str(path.relative_to(directory))) for path in directory.rglob("*") if path.is_file()
    )
    return f"its files are {', '.join(files)}" if files else "the turn has no file yet"
