"""The pages written as files, which open from a disk without a server."""

from pathlib import Path

from panda.addons.view.shelf import Shelf
from panda.addons.view.site import ASSETS, Site, Written, file_name, read_asset
from panda.documents.progress import progress
from panda.errors import UsageError
from panda.store.files import store_errors, write_output


def check_target(directory: Path, shelf: Shelf) -> None:
    """
    Raises unless pages may be written into a directory.

    Raises:
        UsageError: It holds something already, is no directory, or lies in the store.
    """
    real = directory.resolve()
    if real.is_relative_to(shelf.store.root.resolve()):
        raise UsageError("pages are not written into the store", where=str(directory), fix="give another DIR")
    with store_errors(directory, "list"):
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise UsageError(
                f"{directory} is not an empty directory", where="--out", fix="give a new or an empty one"
            )


def write_site(directory: Path, shelf: Shelf) -> list[str]:
    """
    Write all pages of a shelf: the first one, and what pages lead to.

    Returns:
        The paths of the written files below it, in the order in which they were written.
    """
    links = Written(shelf)
    site = Site(shelf, links)
    written = []
    for name in ASSETS:
        written.append(f"assets/{name}")
        _write(directory / written[-1], read_asset(name))
    with progress("turns", sum(len(shelf.numbers(user)) for user in shelf.users())) as advance:
        for path in links.paths:  # it grows with each page
            html = site.render(path, {})
            written.append(file_name(path))
            _write(directory / written[-1], html.encode("utf-8", errors="replace"))
            if links.is_turn(path):
                advance()
    return written


def _write(path: Path, data: bytes) -> None:
    write_output(path, data)
