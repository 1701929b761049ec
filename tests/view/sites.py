"""Sites over stores: a client without a socket, what a page links to, and its words by fragment."""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

from starlette.testclient import TestClient

from panda.store.layout import UserStore
from panda.view.application import ViewApplication
from panda.view.shelf import Shelf

_EMPTY = {"meta", "link", "input", "br", "hr", "img"}


def shelf_of(root: Path, user: str = "demo", selected: Mapping[str, list[int]] | None = None) -> Shelf:
    """A store for reading, as of now."""
    return Shelf(UserStore(root, user), selected)


def client_of(root: Path, user: str = "demo") -> TestClient:
    """Asks the pages over a store as a browser does."""
    application = ViewApplication(shelf_of(root, user)).application()
    return TestClient(application, base_url="http://127.0.0.1")


def page_words(html: str) -> str:
    """What the main part of a page says, its markup gone, with one space between words."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html.partition("<main")[2])).split())


class Html(HTMLParser):
    """What a page says: its links, its elements' names and attributes, and the text in each id."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text_in: dict[str, str] = {}
        self.marks: list[tuple[str, str]] = []
        """Words in a mark element, with the id of the figure that they stand in."""
        self._open: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, given))
        for name in ("href", "src", "action"):
            if given.get(name):
                self.links.append(str(given[name]))
        if tag not in _EMPTY:
            self._open.append((tag, given.get("id")))
        if given.get("id"):
            self.text_in.setdefault(str(given["id"]), "")

    def handle_endtag(self, tag: str) -> None:
        if any(name == tag for name, _ in self._open):
            while self._open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        for _, id_ in self._open:
            if id_:
                self.text_in[id_] += data
        if self._open and self._open[-1][0] == "mark":
            figure = next((id_ for tag, id_ in reversed(self._open) if tag == "figure" and id_), "")
            self.marks.append((figure, data))


def turn_numbers(root: Path, user: str = "demo") -> Iterator[int]:
    """The turns that a store holds of a user."""
    for path in sorted((root / "users" / user / "turns").glob("turn_*")):
        yield int(path.name[5:])
