"""Visits of pages during a turn: read or refreshed, written, and told with their claims."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from msgspec import structs

from panda.documents.record_codec import decode
from panda.documents.times import render_time, with_last_seen
from panda.errors import MemoryNodeError, WebError
from panda.memory.node import Node, visit_lines
from panda.retrieval.relevance import share_of_words
from panda.store.layout import CONTENT_MD, EXTRACTED_JSON, MANIFEST_JSON
from panda.store.node_id import NodeKind
from panda.store.records import Extracted, Line, Manifest, StepEntity, ToolClaim
from panda.store.visit_records import Visit, place_visit, write_visit
from panda.tools.memory_tools import best_items, claims_of, entities_of
from panda.tools.tool_contract import ToolContext, ToolResult
from panda.web.addresses import parse_url
from panda.web.client import Validators, WebClient
from panda.web.page import Page
from panda.web.page_worker import read_page

_MOST_LINES = 12


def visit_page(url: str, context: ToolContext, *, max_age_minutes: float = 0) -> ToolResult:
    """
    The result of reading a page; if it cannot be had, of what it said when it was last seen. A visit that is
    no older than so many minutes is used as it is; 0 always asks the server.
    """
    url = str(parse_url(url))
    earlier_visit = context.reader.visits([url]).get(url)
    age = timedelta(minutes=max_age_minutes)
    if earlier_visit is not None and age and context.store.clock() - earlier_visit.manifest.visited_at <= age:
        return _result(earlier_visit, context, origin="cache")
    try:
        visit, origin = refresh_visit(url, earlier_visit, context)
    except WebError as exc:
        if earlier_visit is None:
            raise
        visit_id = earlier_visit.manifest.visit_id
        place = f" ({exc.where})" if exc.where else ""
        seen = f"the page was last seen {render_time(earlier_visit.manifest.visited_at)}"
        claims = tuple(last_seen_claims(visit_id, context))
        entity = StepEntity(NodeKind.VISIT.id(visit_id), "visit", earlier_visit.title)
        error = f"web.fetch: {exc.message}{place}; {seen}"
        return ToolResult("error", error=error, claims=claims, entities=(entity,))
    return _result(visit, context, origin=origin)


def refresh_visit(
    url: str, earlier_visit: Visit | None, context: ToolContext, *, anew: bool = False
) -> tuple[Visit, str]:
    """
    Read a page, unless the known visit of it still holds, and write it as a visit of the running turn; with
    where its content comes from: "server" or "unchanged". With *anew* the whole page is sent again.
    """
    validators = None
    if (
        earlier_visit is not None
        and not anew
        and (earlier_visit.manifest.etag or earlier_visit.manifest.last_modified)
    ):
        was = earlier_visit.manifest
        validators = Validators(was.final_url or was.url, was.etag, was.last_modified)
    page = client_of(context).fetch(url, validators)
    if page.text is None and earlier_visit is not None:
        visit_id, directory = place_visit(context.store.turn(context.turn), url)
        manifest = structs.replace(
            earlier_visit.manifest,
            visit_id=visit_id,
            visited_at=context.store.clock(),
            refreshes=earlier_visit.manifest.visit_id,
            unchanged=True,
        )
        visit = replace(earlier_visit, manifest=manifest)
    else:
        visit, directory = make_visit(page, earlier_visit, context)
    if context.folder is not None:  # a tool that is run by hand has no turn to keep anything in
        write_visit(directory, visit)
    return visit, "unchanged" if visit.manifest.unchanged else "server"


def client_of(context: ToolContext) -> WebClient:
    if context.web is None:
        raise WebError("this command reads no pages")
    return context.web()


def _result(visit: Visit, context: ToolContext, *, origin: str) -> ToolResult:
    """Return what a visit says, with the lines that share most words with the query as claims."""
    manifest = visit.manifest
    data = {
        "visit_id": manifest.visit_id,
        "url": manifest.url,
        "final_url": manifest.final_url or manifest.url,
        "visited_at": render_time(manifest.visited_at),
        "from": origin,
        "refreshes": manifest.refreshes,
        "page_type": manifest.page_type or "",
        "extraction_quality": manifest.extraction_quality,
        "title": visit.title,
        "fields": visit.details,
    }
    if context.folder is None and origin != "cache":  # it is kept nowhere
        lines = visit_lines(visit, context.store.clock())
        items = sorted(lines, key=lambda item: -share_of_words(context.query or "", item.text))[:_MOST_LINES]
        claims = tuple(ToolClaim(item.text, round(item.confidence, 2), manifest.url) for item in items)
        return ToolResult("success", data=data, claims=claims)
    node = context.reader.load(NodeKind.VISIT.id(manifest.visit_id))
    return ToolResult(
        "success",
        data=data,
        claims=tuple(claims_of(node, _telling_items(node, manifest.url, context.query))),
        entities=entities_of([node]),
        artifacts=() if origin == "cache" else files_of(node),
    )


def files_of(node: Node) -> tuple[str, ...]:
    """The files of a visit that the running turn has made, relative to the turn's directory."""
    directory = node.provenance.rpartition("/")[0].rpartition("webpage_cache/")[2]
    return tuple(f"webpage_cache/{directory}/{name}" for name in (CONTENT_MD, EXTRACTED_JSON, MANIFEST_JSON))


def _telling_items(node: Node, url: str, query: str, *, expired: bool = False) -> list[Line]:
    own = bool(url) and url in query
    items = best_items(node, query, limit=_MOST_LINES + own, expired=expired)
    return [item for item in items if not (own and item.text.endswith(f" {url}"))][:_MOST_LINES]


def make_visit(page: Page, earlier_visit: Visit | None, context: ToolContext) -> tuple[Visit, Path]:
    """A page as a visit of the running turn, with the directory for it; nothing is written."""
    visit_id, directory = place_visit(context.store.turn(context.turn), page.url)
    extraction = read_page(page)
    manifest = Manifest(
        visit_id=visit_id,
        url=page.url,
        final_url=page.final_url,
        page_type=extraction.page_type,
        extraction_quality=extraction.quality,
        refreshes=earlier_visit.manifest.visit_id if earlier_visit else None,
        title=extraction.title,
        visited_at=context.store.clock(),
        etag=page.etag,
        last_modified=page.last_modified,
        unchanged=False,
    )
    extracted = decode(Extracted, Extracted.upgrade(extraction.fields), where=page.url)
    return Visit(manifest, extracted, extraction.content), directory


def last_seen_claims(visit_id: str, context: ToolContext) -> list[ToolClaim]:
    """Return the lines of a page as it was last read, each with that date; [] if the visit cannot be read."""
    try:
        node = context.reader.load(NodeKind.VISIT.id(visit_id))
    except MemoryNodeError:
        return []
    items = _telling_items(node, node.url or "", context.query, expired=True)
    return [
        structs.replace(claim, text=with_last_seen(claim.text, node.at) if node.at else claim.text)
        for claim in claims_of(node, items)
    ]
