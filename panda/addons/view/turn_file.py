"""One file of a turn, as text."""

from types import SimpleNamespace

from panda.addons.view.shelf import PageQuery, Shelf
from panda.addons.view.shown_turn import find_shown_turn
from panda.documents.safe_text import unescape_path
from panda.errors import NotFoundError
from panda.store.files import look_beneath, read_beneath

_MOST_BYTES = 1_048_576


def load_turn_file(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """The page of a file, its first megabyte. Raises NotFoundError: the turn has no such file."""
    name = query.parameters["name"]
    shown_turn = find_shown_turn(shelf, query)
    folder = shown_turn.folder
    directory = folder.paths.directory
    parts = unescape_path(name).split("/")
    is_path = "\0" not in unescape_path(name) and not {"", ".", ".."}.intersection(parts)
    status = look_beneath(directory, parts) if is_path else None
    data = read_beneath(directory, parts, most_bytes=_MOST_BYTES) if status else None
    if status is None or data is None:
        raise NotFoundError(f"turn {folder.number} has no file {name[:200]}", where=str(directory))
    return SimpleNamespace(
        number=folder.number,
        turn_page=shown_turn.address(folder.number),
        name=name,
        path=str(directory / name),
        bytes=status.st_size,
        text=data.decode("utf-8", "replace"),
        is_binary=b"\0" in data,
    )
