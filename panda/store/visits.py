"""What the files of the store say, as values: saved turns, research and visits."""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from panda.documents.context import parse_context
from panda.documents.records import decode
from panda.documents.times import parse_time, render_time
from panda.errors import FileFormatError, Location, StoreError
from panda.store.files import parse_json, read_json, read_text, write_atomic, write_json
from panda.store.layout import (
    CONTENT_MD,
    CONTEXT_MD,
    EXTRACTED_JSON,
    INDEX_SUMMARY_JSON,
    MANIFEST_JSON,
    METADATA_JSON,
    RESEARCH_JSON,
    RESPONSE_MD,
    STAGED_MEMORY_JSON,
    TurnPaths,
)
from panda.store.records import QueryAnalysis, check_json, load

SAVED_STATUSES = frozenset({"approved", "imported", "clarify", "failed"})
"""Statuses of turns that later turns may draw on."""

_T = TypeVar("_T")
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


@dataclass(frozen=True)
class ResearchRecord:
    """One research.json; fields that it lacks are None or empty."""

    path: Path  # the file
    topic: str  # its topic, as "commerce.laptop"
    cache_key: str  # the words of its subject
    created_at: datetime | None  # when the research ran
    expires_at: datetime | None  # when it wants to be done again
    quality: float | None  # quality_score
    summary: str  # summary, "" if none
    claims: tuple[dict[str, Any], ...]  # claims as in the file: claim, source, confidence
    visit_ids: tuple[str, ...]  # visits it rests on
    conflicts: tuple[dict[str, Any], ...] = ()  # claims that cannot all hold: text, and the claims


def load_object(path: Path | str) -> dict[str, Any]:
    """A JSON file that holds one object. Raises FileFormatError: not UTF-8, not JSON, or no object."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise FileFormatError(
            f"expected a JSON object, found {type(value).__name__}", where=Location(path, line=1)
        )
    return value


class _ResearchFile(Struct):
    topic: Annotated[str, Meta(min_length=1)]
    cache_key: str | None = None
    created_at: str | None = None
    expires_at: str | None = None
    quality_score: Annotated[float, Meta(ge=0, le=1)] | None = None
    summary: str | None = None
    claims: tuple[dict[str, Any], ...] | None = None
    webpage_cache: tuple[str, ...] | None = None
    conflicts: tuple[Any, ...] | None = None


class _TurnFile(Struct):
    turn: int | None = None
    status: str | None = None
    session_id: str | None = None
    created_at: str | None = None
    query: str | None = None
    answered: bool | None = None


class _SummaryFile(Struct):
    summary: str | None = None
    topics: tuple[str, ...] | None = None
    research_topic: str | None = None


class _TopicFile(Struct):
    topic: str | None = None


class _ManifestFile(Struct):
    visit_id: Annotated[str, Meta(min_length=1)]
    visited_at: Annotated[str, Meta(min_length=1)]
    url: str | None = None
    final_url: str | None = None
    page_type: str | None = None
    extraction_quality: Annotated[float, Meta(ge=0, le=1)] | None = None
    title: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    refreshes: str | None = None
    unchanged: bool | None = None


def load_keys(cls: type[_T], path: Path | str, read: Callable[[str], str] = read_text) -> _T:
    """
    The keys of a JSON file that a Struct names, whatever else the file holds. Raises FileFormatError: not
    UTF-8, not JSON, or a key is missing or of another type; names it.
    """
    text = read(str(path))
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(text, type=cls)
    return decode(cls, parse_json(text, where=str(path)), where=str(path))  # it says what is wrong, and where


def load_turn(
    paths: TurnPaths,
    number: int,
    *,
    names: Collection[str] | None = None,
    read: Callable[[str], str] = read_text,
) -> TurnRecord:
    """
    What a turn says.

    Args:
        names: Names of its files, if they are known already.
        read: Gives the content of one of them.

    Raises:
        FileFormatError: A file does not say what it must.
    """
    directory = str(paths.directory)  # paths of text: this is done for thousands of turns
    path = f"{directory}/{METADATA_JSON}"
    saved = load_keys(_TurnFile, path, read)
    names = os.listdir(directory) if names is None else names  # noqa: PTH208
    if saved.turn not in (None, number):
        raise FileFormatError(
            f"turn is {saved.turn}, not {number} as the directory", where=Location(path, key="turn")
        )
    at = _instant(saved.created_at, "created_at", path)
    if at is None:
        raise FileFormatError("created_at is missing", where=Location(path, key="created_at"))
    summary = _SummaryFile()
    if INDEX_SUMMARY_JSON in names:
        summary = load_keys(_SummaryFile, f"{directory}/{INDEX_SUMMARY_JSON}", read)
    topic = summary.research_topic
    if not topic and RESEARCH_JSON in names:
        topic = load_keys(_TopicFile, f"{directory}/{RESEARCH_JSON}", read).topic
    answer = _load_answer(directory, read) if saved.status in SAVED_STATUSES else _Answer("", "", ())
    query, answered = saved.query or "", saved.answered is not False
    noted = _noted(paths) if STAGED_MEMORY_JSON in names else ()
    return TurnRecord(
        number=number,
        status=saved.status or "",
        session=saved.session_id or "",
        at=at,
        query=query,
        response=answer.text,
        summary=summary.summary or "",
        topics=summary.topics or (),
        research_topic=topic or None,
        statements=_statements(paths if QueryAnalysis.FILE in names else None, query),
        own_answer=answer.own,
        quotes=(*(answer.quotes if answered else ()), *noted),
        answered=answered,
    )


@dataclass(frozen=True)
class _Answer:
    """What a turn answered."""

    text: str  # all of it, with its citation marks
    own: str  # what of it rests on no other node
    quotes: tuple[tuple[str, str], ...]  # what it quotes, each with the id of the node


def _load_answer(directory: str, read: Callable[[str], str]) -> _Answer:
    path = f"{directory}/{CONTEXT_MD}"
    document = parse_context(read(path), where=path)
    synthesis = document.section(5)
    if synthesis is None or not synthesis.text:
        response = Path(directory, RESPONSE_MD)
        text = read_text(response) if response.exists() else ""
        return _Answer(text, text, ())
    items: Any = synthesis.meta.get("items")
    if items is None:  # imported, or older than the record of sources
        return _Answer(synthesis.text, synthesis.text, ())
    own_node = f"turn:{document.front.turn}"
    quotes = [
        (str(item["text"]), str(node_id))
        for item in items
        for node_id in item["node_ids"]
        if node_id != own_node and not node_id.startswith(_STEP)
    ]
    quoted = {text for text, _ in quotes}
    own = "\n\n".join(str(item["text"]) for item in items if item["text"] not in quoted)
    return _Answer(synthesis.text, own, tuple(quotes))


def _statements(paths: TurnPaths | None, query: str) -> tuple[str, ...]:
    """The clauses of the query that tell something; the whole of one that was not read."""
    clauses = load(QueryAnalysis, paths / QueryAnalysis.FILE).reading.clauses if paths is not None else ()
    return tuple(one.text for one in clauses if one.mood == "tells") if clauses else (query,)


def _noted(paths: TurnPaths) -> tuple[tuple[str, str], ...]:
    """The sentences that are kept word for word, each with its node."""
    staged = load_object(paths / STAGED_MEMORY_JSON).get("staged")
    known = (one for one in (staged if isinstance(staged, list) else ()) if isinstance(one, dict))
    kept = (one for one in known if one.get("kind") == "statement" and "action" not in one)
    return tuple((str(one.get("text")), f"fact:{one.get('relation')}") for one in kept)


def load_research(path: Path) -> ResearchRecord:
    """
    One research file; only its topic must be there. Raises FileFormatError: it is corrupt, or a field has an
    impossible value.
    """
    found = load_keys(_ResearchFile, path)
    return ResearchRecord(
        path=path,
        topic=found.topic,
        cache_key=found.cache_key or "",
        created_at=_instant(found.created_at, "created_at", path),
        expires_at=_instant(found.expires_at, "expires_at", path),
        quality=found.quality_score,
        summary=found.summary or "",
        claims=found.claims or (),
        visit_ids=found.webpage_cache or (),
        conflicts=tuple(conflict for conflict in found.conflicts or () if isinstance(conflict, dict)),
    )


def turn_directories(turns: Path) -> list[tuple[int, Path]]:
    """The turn directories below *turns*, by number ascending; [] if there is no such directory."""
    try:
        found = [path for path in turns.iterdir() if path.name.startswith("turn_")]
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise StoreError(f"cannot read the directory: {exc.strerror}", where=str(turns)) from exc
    return sorted(
        (int(path.name[5:]), path) for path in found if path.name[5:].isascii() and path.name[5:].isdigit()
    )


def visit_directories(turn: Path) -> Iterator[Path]:
    """The visit directories of one turn, by name."""
    cache = TurnPaths(turn).webpage_cache
    if cache.is_dir():
        yield from sorted(path for path in cache.iterdir() if path.is_dir())


def _instant(value: str | None, key: str, path: Path | str) -> datetime | None:
    try:
        return parse_time(value) if value else None
    except ValueError as exc:
        raise FileFormatError(f"{key} {value!r} is no date", where=Location(path, key=key)) from exc


_SLUG_CHARS = 40
_AGAIN = re.compile(r"(-[0-9a-f]{10})-\d+\Z")
"""Ending of the directory of a page that a turn has read more than once."""


@dataclass(frozen=True)
class PageZone:
    """One part of a visited page."""

    type: str  # pricing, product_info, reviews, navigation or other
    confidence: float  # how sure that is, and that it belongs to the page's own subject
    items: tuple[str, ...]  # its lines

    @property
    def is_quotable(self) -> bool:
        """Whether its lines may be quoted: no menus, nothing that is likely about something else."""
        return self.type != "navigation" and self.confidence >= 0.5


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One visit as its files hold it."""

    visit_id: str  # unique among the user's visits
    url: str  # as it was asked for
    final_url: str  # the URL that answered, after redirects
    visited_at: datetime  # when it was read, or found to be unchanged
    page_type: str  # product, listing, article, page or data; "" if unknown
    extraction_quality: float | None  # computed, 0 to 1; None in files of other hands that lack it
    title: str  # title of the page or product
    etag: str | None  # for asking whether it has changed
    last_modified: str | None  # the same
    fields: Mapping[str, Any]  # content of extracted.json
    content: str  # content of content.md; "" where that was not read
    refreshes: str | None = None  # id of the visit that this one replaces
    unchanged: bool = False
    """Whether the server said that the page is as at the visit that this one refreshes."""

    @property
    def quality(self) -> float:
        """The same; 0 where it is lacking."""
        return self.extraction_quality or 0.0

    @property
    def details(self) -> dict[str, Any]:
        """What was extracted, but for zones; any shape."""
        return {key: value for key, value in _extracted(self.fields).items() if key != "zones"}

    @property
    def zones(self) -> tuple[PageZone, ...]:
        """
        Parts of the page by what they are about. Raises FileFormatError: a zone is no object with items and a
        confidence from 0 to 1.
        """
        zones = _extracted(self.fields).get("zones")
        return tuple(map(_zone, zones)) if isinstance(zones, list) else ()

    def manifest(self) -> dict[str, object]:
        """Content of manifest.json."""
        names = ("visit_id", "url", "final_url", "page_type", "extraction_quality", "refreshes", "title")
        more = ("etag", "last_modified", "unchanged")
        return {
            **{name: getattr(self, name) for name in names},
            "visited_at": render_time(self.visited_at),
            **{name: getattr(self, name) for name in more},
        }


def _extracted(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    nested = fields.get("extracted_data")  # of files that panda did not write
    return nested if isinstance(nested, dict) else fields


def _zone(value: object) -> PageZone:
    if not isinstance(value, dict) or not isinstance(value.get("items"), list):
        raise FileFormatError("a zone is no object with items", where=Location(EXTRACTED_JSON, key="zones"))
    confidence = value.get("confidence", 0.5)
    if not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise FileFormatError(
            "confidence is no number from 0 to 1", where=Location(EXTRACTED_JSON, key="zones")
        )
    items = tuple(item for item in value["items"] if isinstance(item, str))
    return PageZone(str(value.get("type") or "other"), float(confidence), items)


def load_visit(directory: Path) -> Visit:
    """
    One visit directory, without its content.md. Raises StoreError: manifest.json or extracted.json is missing
    or cannot be read. FileFormatError: a file is corrupt, or a field is missing or has an impossible value.
    """
    path = directory / MANIFEST_JSON
    manifest, fields = load_keys(_ManifestFile, path), load_object(directory / EXTRACTED_JSON)
    visited_at = _instant(manifest.visited_at, "visited_at", path)
    assert visited_at is not None  # a text that is not empty
    url = manifest.url or ""
    return Visit(
        visit_id=manifest.visit_id,
        url=url,
        final_url=manifest.final_url or url,
        visited_at=visited_at,
        page_type=manifest.page_type or "",
        extraction_quality=manifest.extraction_quality,
        title=manifest.title or str(_extracted(fields).get("title") or ""),
        etag=manifest.etag or None,
        last_modified=manifest.last_modified or None,
        fields=fields,
        content="",
        refreshes=manifest.refreshes or None,
        unchanged=bool(manifest.unchanged),
    )


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
    """
    The newest whole visit of each page that has one.

    Args:
        turns: Directories of the turns whose visits count, the newest first.
        urls: As they were asked for.

    Returns:
        Visits by URL. One whose files are missing or damaged is passed over: it cannot be reused.
    """
    waiting = {visit_slug(url): url for url in urls}
    found: dict[str, Visit] = {}
    for turn in turns:
        if not waiting:
            break
        for directory in visit_directories(turn):
            url = waiting.get(visited_page(directory.name))
            visit = _load(directory, url) if url else None
            held = found.get(visit.url) if visit else None
            if visit and (held is None or visit.visited_at >= held.visited_at):
                found[visit.url] = visit
        waiting = {slug: url for slug, url in waiting.items() if url not in found}
    return found


def visit_ids(turn: Path) -> list[str]:
    """The visits that lie in a turn; one whose manifest is missing or damaged is passed over."""
    found = []
    for directory in visit_directories(turn):
        with suppress(FileFormatError, StoreError):
            found.append(str(load_object(directory / MANIFEST_JSON).get("visit_id")))
    return found


def place_visit(paths: TurnPaths, url: str) -> tuple[str, Path]:
    """A free directory for a visit and the id that goes with it, the same whenever the turn is run again."""
    slug = visit_slug(url)
    name, n = slug, 1
    while (paths.webpage_cache / name / MANIFEST_JSON).exists():
        n += 1
        name = f"{slug}-{n}"
    return visit_id(paths, name), paths.webpage_cache / name


def visit_id(paths: TurnPaths, name: str) -> str:
    """The id of the visit in a directory of that name."""
    owner = "/".join(paths.directory.parts[-3:])
    return f"visit_{hashlib.sha256(f'{owner}/{name}'.encode()).hexdigest()[:12]}"


def write_visit(directory: Path, visit: Visit) -> None:
    """
    Write a visit; its manifest comes last, so that a visit without one is no visit. Raises FileFormatError: a
    value does not fit its schema.
    """
    check_json(EXTRACTED_JSON, visit.fields, str(directory / EXTRACTED_JSON))
    check_json(MANIFEST_JSON, visit.manifest(), str(directory / MANIFEST_JSON))
    write_atomic(directory / CONTENT_MD, visit.content.rstrip() + "\n")
    write_json(directory / EXTRACTED_JSON, dict(visit.fields))
    write_json(directory / MANIFEST_JSON, visit.manifest())


def _load(directory: Path, url: str) -> Visit | None:
    with suppress(FileFormatError, StoreError):
        visit = load_visit(directory)
        if visit.url == url:
            return replace(visit, content=read_text(directory / CONTENT_MD))
    return None
