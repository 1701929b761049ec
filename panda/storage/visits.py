"""Visits: pages as they were read, one directory each below a turn's webpage_cache (S1 §3.6, design §3)."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from panda.documents.times import render_time
from panda.errors import FileFormatError, StoreError
from panda.storage.files import read_text, write_atomic, write_json
from panda.storage.layout import CONTENT_MD, EXTRACTED_JSON, MANIFEST_JSON, TurnPaths
from panda.storage.records import instant_of, load_object, share_of, text_of, visit_directories
from panda.storage.schemas import check_json

_SLUG_CHARS = 40
_AGAIN = re.compile(r"(-[0-9a-f]{10})-\d+\Z")
"""Ending of the directory of a page that a turn has read more than once."""


@dataclass(frozen=True)
class PageZone:
    """One part of a visited page."""

    type: str
    """pricing, product_info, reviews, navigation or other."""
    confidence: float
    """How sure that is, and that it belongs to the page's own subject."""
    items: tuple[str, ...]
    """Its lines."""

    @property
    def is_quotable(self) -> bool:
        """Whether its lines may be quoted: no menus, nothing that is likely about something else."""
        return self.type != "navigation" and self.confidence >= 0.5


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One visit as its files hold it."""

    visit_id: str
    """Unique among the user's visits."""
    url: str
    """As it was asked for."""
    final_url: str
    """The URL that answered, after redirects."""
    visited_at: datetime
    """When it was read, or found to be unchanged."""
    page_type: str
    """product, listing, article, page or data; "" if unknown."""
    extraction_quality: float | None
    """Computed, 0 to 1; None in files of other hands that lack it."""
    title: str
    """Title of the page or product."""
    etag: str | None
    """For asking whether it has changed."""
    last_modified: str | None
    """The same."""
    fields: Mapping[str, Any]
    """Content of extracted.json."""
    content: str
    """Content of content.md; "" where that was not read."""
    refreshes: str | None = None
    """Id of the visit that this one replaces."""
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
        Parts of the page by what they are about.

        Raises:
            FileFormatError: A zone is no object with items and a confidence from 0 to 1.
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
        raise FileFormatError("a zone is no object with items", where=f"{EXTRACTED_JSON} (zones)")
    confidence = value.get("confidence", 0.5)
    if not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise FileFormatError("confidence is no number from 0 to 1", where=f"{EXTRACTED_JSON} (zones)")
    items = tuple(item for item in value["items"] if isinstance(item, str))
    return PageZone(str(value.get("type") or "other"), float(confidence), items)


def load_visit(directory: Path) -> Visit:
    """
    One visit directory, without its content.md.

    Raises:
        StoreError: manifest.json or extracted.json is missing or cannot be read.
        FileFormatError: A file is corrupt, or a field is missing or has an impossible value.
    """
    path = directory / MANIFEST_JSON
    manifest, fields = load_object(path), load_object(directory / EXTRACTED_JSON)
    visited_at = instant_of(manifest, "visited_at", path)
    if visited_at is None or not text_of(manifest, "visit_id", path):
        key = "visit_id" if visited_at else "visited_at"
        raise FileFormatError(f"{key} is missing", where=f"{path} ({key})")
    url = text_of(manifest, "url", path)
    return Visit(
        visit_id=manifest["visit_id"],
        url=url,
        final_url=text_of(manifest, "final_url", path) or url,
        visited_at=visited_at,
        page_type=text_of(manifest, "page_type", path),
        extraction_quality=share_of(manifest, "extraction_quality", path),
        title=text_of(manifest, "title", path) or str(_extracted(fields).get("title") or ""),
        etag=text_of(manifest, "etag", path) or None,
        last_modified=text_of(manifest, "last_modified", path) or None,
        fields=fields,
        content="",
        refreshes=text_of(manifest, "refreshes", path) or None,
        unchanged=bool(manifest.get("unchanged")),
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
    """
    A free directory for a visit and the id that goes with it, the same whenever the turn is run again.
    """
    slug = visit_slug(url)
    name, n = slug, 1
    while (paths.webpage_cache / name / MANIFEST_JSON).exists():
        n += 1
        name = f"{slug}-{n}"
    owner = "/".join(paths.directory.parts[-3:])
    digest = hashlib.sha256(f"{owner}/{name}".encode()).hexdigest()
    return f"visit_{digest[:12]}", paths.webpage_cache / name


def write_visit(directory: Path, visit: Visit) -> None:
    """
    Write a visit; its manifest comes last, so that a visit without one is no visit.

    Raises:
        StoreError: It cannot be written.
        FileFormatError: A value does not fit its schema.
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
