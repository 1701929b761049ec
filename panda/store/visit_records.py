"""What saved turns and visits say: the records of their files and their texts, put together."""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from panda.documents.context import Phase, parse_context
from panda.errors import FileFormatError, StoreError
from panda.store.files import read_text, write_atomic
from panda.store.layout import CONTENT_MD, CONTEXT_MD, MANIFEST_JSON, RESPONSE_MD, TurnPaths
from panda.store.node_id import NodeKind
from panda.store.records import (
    Extracted,
    FileRecord,
    IndexSummary,
    Manifest,
    Metadata,
    QueryAnalysis,
    Research,
    StagedMemory,
    load,
    parse,
    save,
)

SAVED_STATUSES = frozenset({"approved", "imported", "clarify", "failed"})
"""Statuses of turns that later turns may draw on."""

_F = TypeVar("_F", bound=FileRecord)
_STEP = "step:"  # how a result of a turn's own tools is cited that no node holds


@dataclass(frozen=True)
class TurnRecord:
    """What a saved turn says."""

    number: int  # turn number
    status: str  # as in metadata.json
    session: str  # session id
    at: datetime  # when the turn was claimed
    query: str  # the raw query
    response: str  # the answer with its citation marks; "" if there is none, or the turn was not saved
    summary: str  # summary for the index; "" if none is written yet
    topics: tuple[str, ...]  # topics for the index
    research_topic: str | None  # topic of the research that ran in this turn or that its summary names
    statements: tuple[str, ...] = ()
    """The parts of the query that told something and are not kept as nodes; the whole query if unread."""
    own_answer: str = ""  # what of the answer is said nowhere else; the whole if its sources are not recorded
    quotes: tuple[tuple[str, str], ...] = ()
    """What the turn quoted or noted, each with the id of the node that says it."""
    answered: bool = True
    """False if the turn ended without an answer: then what it replied is no evidence of anything."""
    intent: str | None = None  # that of its summary


def load_turn(
    paths: TurnPaths,
    number: int,
    *,
    names: Collection[str] | None = None,
    read: Callable[[str], str] = read_text,
) -> TurnRecord:
    """
    Return the record of a turn; *names* are those of its files, if they are known, and *read* gives their
    content.
    """
    directory = str(paths.directory)  # paths of text: this is done for thousands of turns
    path = f"{directory}/{Metadata.FILE}"
    saved = parse(Metadata, read(path), where=path)
    names = os.listdir(directory) if names is None else names  # noqa: PTH208

    def find(cls: type[_F]) -> _F | None:
        path = f"{directory}/{cls.FILE}"
        return parse(cls, read(path), where=path) if cls.FILE in names else None

    if saved.turn != number:
        message = f"turn is {saved.turn}, not {number} as the directory"
        raise FileFormatError(message, where=path, key="turn")
    index = find(IndexSummary)
    analysis = find(QueryAnalysis)
    staged = find(StagedMemory)
    topic = index.research_topic if index else None
    if not topic and (research := find(Research)) is not None:
        topic = research.topic
    is_pasted = analysis is not None and analysis.reading.pasted  # its lines stand in the query alone
    clauses = analysis.reading.clauses if analysis and not is_pasted else ()
    statements = (
        tuple(clause.text for clause in clauses if clause.mood == "tells") if clauses else (saved.query,)
    )
    if analysis is not None and analysis.reading.talk:
        statements = ()
    answer, own, quotes = ("", "", ()) if saved.status not in SAVED_STATUSES else _answer(directory, read)
    if saved.answered is False:
        quotes = ()
    staged_values = staged.staged if staged else ()
    noted = [
        (value.text, NodeKind.FACT.id(value.relation))
        for value in staged_values
        if value.kind == "statement" and value.action == "sets"
    ]
    return TurnRecord(
        number=number,
        status=saved.status,
        session=saved.session_id,
        at=saved.created_at,
        query=saved.query,
        response=answer,
        summary=(index.summary if index else None) or "",
        topics=index.topics if index else (),
        research_topic=topic or None,
        statements=statements,
        own_answer=own,
        quotes=(*quotes, *noted),
        answered=saved.answered is not False,
        intent=index.intent if index else None,
    )


def _answer(directory: str, read: Callable[[str], str]) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """The answer, what of it rests on no other node, and what it quotes with the node of each."""
    path = f"{directory}/{CONTEXT_MD}"
    document = parse_context(read(path), where=path)
    synthesis = document.section(Phase.SYNTHESIZER)
    if synthesis is None or not synthesis.text:
        response = Path(directory, RESPONSE_MD)
        text = read_text(response) if response.exists() else ""
        return text, text, ()
    items: Any = synthesis.meta.get("items")
    if items is None:  # imported, or older than the record of sources
        return synthesis.text, synthesis.text, ()
    own_node = NodeKind.TURN.id(document.front.turn)
    quotes = [
        (str(item["text"]), str(node_id))
        for item in items
        for node_id in item["node_ids"]
        if node_id != own_node and not node_id.startswith(_STEP)
    ]
    quoted = {text for text, _ in quotes}
    own = "\n\n".join(str(item["text"]) for item in items if item["text"] not in quoted)
    return synthesis.text, own, tuple(quotes)


def turn_directories(turns: Path) -> list[tuple[int, Path]]:
    """The turn directories below *turns*, by number ascending; [] if there is no such directory."""
    try:
        directories = [path for path in turns.iterdir() if path.name.startswith("turn_")]
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise StoreError(f"cannot read the directory: {exc.strerror}", where=str(turns)) from exc
    return sorted(
        (int(path.name[5:]), path)
        for path in directories
        if path.name[5:].isascii() and path.name[5:].isdigit()
    )


def visit_directories(turn: Path) -> Iterator[Path]:
    """The visit directories of one turn, by name."""
    cache = TurnPaths(turn).webpage_cache
    if cache.is_dir():
        yield from sorted(path for path in cache.iterdir() if path.is_dir())


_SLUG_CHARS = 40
_AGAIN = re.compile(r"(-[0-9a-f]{10})-\d+\Z")
"""Ending of the directory of a page that a turn has read more than once."""


@dataclass(frozen=True)
class Visit:
    """One visit as its files hold it."""

    manifest: Manifest
    extracted: Extracted
    content: str = ""  # of content.md; "" where that was not read

    @property
    def title(self) -> str:
        """Title of the page or product; "" if it has none."""
        return self.manifest.title or self.extracted.title or ""

    @property
    def details(self) -> dict[str, Any]:
        """Return the extracted fields, but for zones; any shape."""
        return {key: value for key, value in self.extracted.to_json().items() if key != "zones"}


def load_visit(directory: Path) -> Visit:
    """One visit directory, without its content.md."""
    return Visit(load(Manifest, directory / Manifest.FILE), load(Extracted, directory / Extracted.FILE))


def visit_slug(url: str) -> str:
    """
    Directory name of a page.

    >>> visit_slug("https://www.bestbuy.com/site/lenovo-loq-15-gaming-laptop/6580557.p")
    'bestbuy-com-site-lenovo-loq-15-gaming-la-1619b2f9d9'
    """
    parts = urlsplit(url)
    readable = re.sub(r"[^a-z0-9]+", "-", f"{parts.netloc.removeprefix('www.')}{parts.path}".lower())
    digest = hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{readable.strip('-')[:_SLUG_CHARS].strip('-') or 'page'}-{digest}"


def visited_page(name: str) -> str:
    """
    The visit_slug of the page that the directory of a visit is named after.

    >>> visited_page("shop-example-1619b2f9d9-2"), visited_page("shop-example-1619b2f9d9")
    ('shop-example-1619b2f9d9', 'shop-example-1619b2f9d9')
    """
    return _AGAIN.sub(r"\1", name)


def find_visits(turns: Iterable[Path], urls: Iterable[str]) -> dict[str, Visit]:
    """The newest whole visit of each URL that has one, in directories of turns, the newest first."""
    waiting = {visit_slug(url): url for url in urls}
    visits: dict[str, Visit] = {}
    for turn in turns:
        if not waiting:
            break
        for directory in visit_directories(turn):
            url = waiting.get(visited_page(directory.name))
            with suppress(FileFormatError, StoreError):
                visit = load_visit(directory) if url else None
                held = visits.get(url or "")
                if visit is None or visit.manifest.url != url:
                    continue
                if held is None or visit.manifest.visited_at >= held.manifest.visited_at:
                    content = read_text(directory / CONTENT_MD)
                    visits[url] = Visit(visit.manifest, visit.extracted, content)
        waiting = {slug: url for slug, url in waiting.items() if url not in visits}
    return visits


def visit_ids(turn: Path) -> list[str]:
    """The visits that lie in a turn; one whose manifest is missing or damaged is passed over."""
    ids = []
    for directory in visit_directories(turn):
        with suppress(FileFormatError, StoreError):
            ids.append(load(Manifest, directory / Manifest.FILE).visit_id)
    return ids


_NAMED = re.compile(r"\bvisit:(visit_\w+)|\b(visit_(?=\w*\d)\w+)")


def named_visits(text: str) -> Iterator[tuple[int, str]]:
    """
    Yield the visits that a text such as research.md names, each with its line from 1.

    >>> list(named_visits("# Laptops\\n- price $697 (shop.example, visit:visit_abc123, 0.92)"))
    [(2, 'visit_abc123')]
    """
    for number, line in enumerate(text.split("\n"), 1):
        for with_kind, bare in _NAMED.findall(line):
            yield number, with_kind or bare


def place_visit(paths: TurnPaths, url: str) -> tuple[str, Path]:
    """A free directory for a visit and the id that goes with it, the same whenever the turn is run again."""
    slug = visit_slug(url)
    name = slug
    n = 1
    while (paths.webpage_cache / name / MANIFEST_JSON).exists():
        n += 1
        name = f"{slug}-{n}"
    return visit_id(paths, name), paths.webpage_cache / name


def visit_id(paths: TurnPaths, name: str) -> str:
    """The id of the visit in a directory of that name."""
    owner = "/".join(paths.directory.parts[-3:])
    return f"visit_{hashlib.sha256(f'{owner}/{name}'.encode()).hexdigest()[:12]}"


def write_visit(directory: Path, visit: Visit) -> None:
    """Write a visit; its manifest comes last, so that a visit without one is no visit."""
    write_atomic(directory / CONTENT_MD, visit.content.rstrip() + "\n")
    save(visit.extracted, directory / Extracted.FILE)
    save(visit.manifest, directory / Manifest.FILE)
