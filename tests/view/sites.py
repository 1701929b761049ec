"""What pages say: their words, links, elements and marks; and runs for them to show."""

import json
import re
from collections.abc import Iterator, Mapping
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

from starlette.testclient import TestClient

from tests.api import Panda

SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)><a href=javascript:alert(1)>x</a>"
STEERING = "a\u202eb\u2066c\x1b[31m\u2028d"
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_EMPTY = {"meta", "link", "input", "br", "hr", "img"}


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


def assert_plain(html: str) -> None:
    """Nothing in a page runs, is styled inline, leads to a script, or steers a reader's eye."""
    page = Html(html)
    assert not [link for link in page.links if link.startswith("javascript")]
    assert not {tag for tag, _ in page.elements} & {"iframe", "object", "embed", "base", "style"}
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name == "style" or name.startswith("on")], (
            tag,
            attributes,
        )
        assert tag != "script" or "assets/" in str(attributes.get("src"))
    assert not _UNSAFE.search(html)


def crawl(pages: TestClient) -> dict[str, str]:
    """Every page that can be reached from the first one, by its path; fails where a link leads nowhere."""
    htmls: dict[str, str] = {}
    todo = ["/"]
    links: list[tuple[str, str]] = []
    while todo:
        path = todo.pop()
        if path in htmls:
            continue
        reply = pages.get(path)
        assert reply.status_code == 200, path
        htmls[path] = reply.text if reply.headers["content-type"].startswith("text/html") else ""
        for link in Html(htmls[path]).links:
            target, fragment = urldefrag(urljoin(path, link))
            assert not urlsplit(target).netloc, f"{path} leads away to {link}"
            links.append((target, fragment))
            todo.append(target)
    ids = {path: Html(html).text_in for path, html in htmls.items()}
    for target, fragment in links:
        assert not fragment or fragment in ids[target], f"{target} has no {fragment}"
    return htmls


def turn_numbers(panda: Panda) -> Iterator[int]:
    """The turns that the store holds of the user."""
    for path in sorted((panda.user_directory / "turns").glob("turn_*")):
        yield int(path.name[5:])


def change_json(path: Path, **changes: Any) -> None:
    """Change properties of a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}))


def outcome(turn: int, **changes: Any) -> dict[str, Any]:
    """What a turn of a run came to."""
    usual = {"turn": turn, "user": "demo", "query": f"Query {turn}?", "status": "approved", "answered": True}
    empty: dict[str, Any] = {"decisions": [], "sections": {}, "phases": [], "recipes": {}, "item": None}
    return {**usual, **empty, "answer": f"Answer {turn}.", **changes}


def run_line(panda: Panda, turn: int, **changes: Any) -> dict[str, Any]:
    """A line of a run's turns.jsonl."""
    directory = str(panda.turn_file(turn, "").parent)
    usual = {"turn": turn, "user": "demo", "directory": directory, "result": "same", "findings": []}
    return {**usual, "different": {}, "misses": [], "outcome": outcome(turn), **changes}


def add_line(run: Path, line: Mapping[str, Any]) -> None:
    """Add what a turn came to to a run."""
    with (run / "turns.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def write_run(
    panda: Panda, turns: Mapping[int, Mapping[str, Any]], *, planned: int = 0, mode: str = "rerun"
) -> Path:
    """
    Write a run and return its directory.

    Args:
        turns: What each turn came to, as changes of a turn that came out the same.
        planned: How many more were not run; without any the run has ended.
        mode: rerun, verify, simulate or batch.
    """
    place = len(list((panda.store / "runs").glob("*"))) + 1
    directory = panda.store / "runs" / f"20260201T120000Z-{mode}-{place}"
    directory.mkdir(parents=True)
    plan = [{"turn": number, "user": "demo", "root": None} for number in [*turns, *range(900, 900 + planned)]]
    value = {
        "schema": "panda.run/1",
        "id": directory.name,
        "mode": mode,
        "started_at": "2026-02-01T12:00:00Z",
        "finished_at": None if planned else "2026-02-01T12:01:00Z",
        "turns": plan,
        "fingerprint": {"panda": "0.1.0", "recipes": {}, "models": {"MIND": {"name": "m", "digest": "b"}}},
        "options": {"live": False, "selection": ["1"]},
        "results": None if planned else {"same": len(turns)},
        "reported": [],
    }
    (directory / "run.json").write_text(json.dumps(value))
    (directory / "turns.jsonl").touch()
    for number, changes in turns.items():
        add_line(directory, run_line(panda, number, **changes))
    return directory
