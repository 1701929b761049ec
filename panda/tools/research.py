"""A research from search phrases to claims: each step's choice is a recipe, what it chooses from is code."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from panda.choosing.decision import Option
from panda.documents.evidence import check_evidence
from panda.documents.times import render_time
from panda.errors import ReplyError, UsageError, WebError
from panda.memory.confidence import EXPIRED_BELOW
from panda.memory.node import Node
from panda.retrieval.relevance import share_of_words
from panda.store.layout import RESEARCH_JSON, RESEARCH_MD
from panda.store.records import Claim, Research, ResearchClaim, ResearchConflict, Source, find
from panda.store.visits import Visit
from panda.tools.contract import Ask, ToolContext, ToolResult
from panda.tools.memory import entities_of
from panda.tools.research_record import differing_pairs, join_conflicts, new_research, write_research
from panda.tools.sources import choose, choose_sources, make_phrases, open_provider, site_of
from panda.tools.visits import client_of, files_of, last_seen_claims, refresh_visit
from panda.web.addresses import parse_url

_MOST_LINES = 40
_LONG_PAGE_LINES = 60


@dataclass
class _ReadPage:
    id: str  # p1, p2, …
    visit: Visit  # as written
    node: Node  # its node
    lines: list[ResearchClaim] = field(default_factory=list)  # what may be quoted of it


@dataclass
class _Read:
    pages: list[_ReadPage] = field(default_factory=list)  # those that could be read
    failed: list[str] = field(default_factory=list)  # a line for each that could not
    away: list[str] = field(default_factory=list)  # earlier visits of these


def research(query: str, context: ToolContext) -> ToolResult:
    """Research a query and write what was found; a turn has one research."""
    paths = context.store.turn(context.turn)
    if (done := find(Research, paths.directory)) is not None:
        if done.query != query:
            raise UsageError("this turn has its research already", where=str(paths / RESEARCH_JSON))
        return _result(done, context)
    provider = open_provider(context.search_provider, client_of(context))
    if context.ask is None:
        raise UsageError("a research needs a turn: its steps are chosen by recipes", fix="use panda turn")
    ask = context.ask
    kind = str(ask("phase4_research_strategy")["kind"])
    phrases = make_phrases(query, kind, ask)
    results = [result for phrase in phrases for result in provider.search(phrase)]
    sources = choose_sources(results, query, kind, context, ask)
    read = _read(sources, context)
    pages = _usable(read.pages, query, ask)
    claims = _choose_claims(pages, query, kind, ask)
    record = new_research(
        query,
        kind,
        claims,
        _conflicts(claims, ask),
        at=context.store.clock(),
        phrases=tuple(phrases),
        provider=provider.name,
        sources=tuple(sources),
        webpage_cache=tuple(page.visit.manifest.visit_id for page in pages),
        failed=tuple(read.failed),
        refreshes=tuple(
            page.visit.manifest.refreshes for page in read.pages if page.visit.manifest.refreshes
        ),
        away=tuple(read.away),
    )
    record = msgspec.structs.replace(record, summary=_summary(record, ask))
    write_research(context.store.open(context.turn), record)
    return _result(record, context)


def _result(record: Research, context: ToolContext) -> ToolResult:
    file = context.store.turn(context.turn) / RESEARCH_JSON
    source = context.store.name_of(file)
    node_id = f"research:{record.topic}"
    expires_at = render_time(record.expires_at) if record.expires_at else None
    contested = {claim.claim for conflict in record.conflicts for claim in conflict.claims}
    claims = [
        Claim(c.text, min(m.confidence or 0.0 for m in c.claims), source, node_id, expires_at)
        for c in record.conflicts
    ]
    claims += [
        Claim(c.claim, c.confidence, c.provenance or source, f"visit:{c.visit_id}", expires_at)
        for c in record.claims
        if c.claim not in contested
    ]
    last_seen = [claim for visit_id in record.away for claim in last_seen_claims(visit_id, context)]
    if not claims:
        tried = f"; {len(record.failed)} could not be read: {record.failed[0]}" if record.failed else ""
        message = f"internet.research: nothing on the query in {len(record.webpage_cache)} pages{tried}"
        return ToolResult("error", error=message, claims=tuple(last_seen))
    nodes = [context.reader.load(f"visit:{visit_id}") for visit_id in record.webpage_cache]
    return ToolResult(
        "success",
        data={
            "topic": record.topic,
            "summary": record.summary,
            "quality_score": record.quality_score,
            "visits": list(record.webpage_cache),
            "conflicts": [conflict.text for conflict in record.conflicts],
            "failed": list(record.failed),
            "refreshes": list(record.refreshes),
            "away": list(record.away),
        },
        claims=(*claims, *last_seen),
        entities=entities_of(nodes),
        artifacts=(RESEARCH_JSON, RESEARCH_MD, *(file for node in nodes for file in files_of(node))),
    )


def _read(sources: Sequence[Source], context: ToolContext) -> _Read:
    found = _Read()
    for source in (source for source in sources if source.chosen):
        known = None
        try:
            url = str(parse_url(source.url))
            known = context.reader.visits([url]).get(url)
            visit, _ = refresh_visit(url, known, context)
        except WebError as exc:
            found.failed.append(f"{source.url}: {exc.message}")
            found.away += [known.manifest.visit_id] if known else []
            continue
        node = context.reader.load(f"visit:{visit.manifest.visit_id}")
        page = _ReadPage(f"p{len(found.pages) + 1}", visit, node)
        page.lines = [
            ResearchClaim(
                claim=item.text,
                subject=node.title,
                source=site_of(visit.manifest.url),
                url=visit.manifest.url,
                visit_id=visit.manifest.visit_id,
                provenance=node.provenance,
                confidence=round(item.confidence, 2),
                content_type=item.content_type,
            )
            for item in node.items
            if item.confidence >= EXPIRED_BELOW and item.content_type != "site_pattern"
        ]
        found.pages.append(page)
    return found


def _usable(pages: Sequence[_ReadPage], query: str, ask: Ask) -> list[_ReadPage]:
    about = []
    for page in pages:
        title, sample = page.node.title, " ".join(_said(line, page) for line in page.lines[:3])
        about.append(
            Option(page.id, f"{title}. {sample}"[:300], (), share_of_words(query, f"{title} {sample}"))
        )
    relevant = choose(ask, "phase4_page_relevance", "pages", about)
    rated = [
        Option(p.id, f"{p.node.quality or 0:.2f} {p.node.title}", (), p.node.quality or 0)
        for p in pages
        if p.id in relevant
    ]
    accepted = choose(ask, "phase4_extraction_check", "accepted", rated)
    return [page for page in pages if page.id in accepted]


def _choose_claims(pages: Sequence[_ReadPage], query: str, kind: str, ask: Ask) -> list[ResearchClaim]:
    lines = _told_lines(pages, ask)
    ranked = sorted(lines, key=lambda line: -share_of_words(query, line.claim))[:_MOST_LINES]
    options = [
        Option(f"c{n}", line.claim, (f"visit:{line.visit_id}",), share_of_words(query, line.claim))
        for n, line in enumerate(ranked, 1)
    ]
    chosen = choose(ask, "phase4_research_claims", "claims", options)
    claims = [line for n, line in enumerate(ranked, 1) if f"c{n}" in chosen]
    if kind in ("prices", "comparison"):
        offers = [line for line in lines if _is_offer(line)]
        claims = [*offers, *(line for line in claims if line not in offers)]
    return list(dict.fromkeys(claims))


def _is_offer(line: ResearchClaim) -> bool:
    start = line.claim.removeprefix(f"{line.subject}: ")
    return start.startswith(("price ", "availability ", "lowest_price "))


def _told_lines(pages: Sequence[_ReadPage], ask: Ask) -> list[ResearchClaim]:
    zones = {
        f"{page.id}z{n}": (page.id, zone)
        for page in pages
        if len(page.lines) > _LONG_PAGE_LINES and len(page.visit.extracted.zones or ()) > 1
        for n, zone in enumerate(page.visit.extracted.zones or (), 1)
    }
    options = [
        Option(id_, f"{zone.type}: {' '.join(zone.items[:4])}"[:300], (), zone.confidence)
        for id_, (_, zone) in zones.items()
        if zone.is_quotable
    ]
    chosen = choose(ask, "phase4_page_zones", "zones", options)
    kept = {(zones[id_][0], item) for id_ in chosen for item in zones[id_][1].items}
    left_out = {(page_id, item) for page_id, zone in zones.values() for item in zone.items} - kept
    return [line for page in pages for line in page.lines if (page.id, _said(line, page)) not in left_out]


def _said(line: ResearchClaim, page: _ReadPage) -> str:
    return line.claim.removeprefix(f"{page.node.title}: ")


def _conflicts(claims: Sequence[ResearchClaim], ask: Ask) -> list[ResearchConflict]:
    pairs = {f"x{n}": pair for n, pair in enumerate(differing_pairs(claims), 1)}
    told = [f"{claim.claim} ({claim.source})" for claim in claims]
    options = [Option(id_, f"{told[i]} / {told[j]}", (), alike) for id_, (i, j, alike) in pairs.items()]
    same = choose(ask, "phase4_research_conflicts", "same", options)
    return join_conflicts(claims, [pairs[id_][:2] for id_ in same])


def _summary(record: Research, ask: Ask) -> str:
    findings = [f"{claim.claim} ({claim.source})" for claim in record.claims]
    findings += [conflict.text for conflict in record.conflicts]
    listed = "\n".join(findings) or "nothing was found"
    try:
        reply = ask(
            "phase4_research_report", variables={"counted": record.summary}, extra={"findings": listed}
        )
    except ReplyError:  # what was found stands without a report
        return record.summary
    summary = str(reply["summary"])
    return record.summary if check_evidence(summary, [*findings, record.summary]) else summary
