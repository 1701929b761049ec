"""A research from search phrases to claims: each step's choice is a recipe, what it chooses from is code."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import combinations

from panda.documents.evidence import check_evidence, find_claims
from panda.documents.safe_text import count_noun, one_line
from panda.documents.times import render_time
from panda.errors import ReplyError, UsageError, WebError
from panda.memory.confidence import EXPIRED_BELOW
from panda.memory.node import Node
from panda.retrieval.relevance import share_of_words
from panda.steps.all_steps import (
    PAGE_RELEVANCE,
    PAGE_ZONES,
    RESEARCH_CLAIMS,
    RESEARCH_CONFLICTS,
    RESEARCH_REPORT,
    RESEARCH_STRATEGY,
)
from panda.steps.options import Option
from panda.store.layout import RESEARCH_JSON, RESEARCH_MD
from panda.store.node_id import NodeKind
from panda.store.records import RatedSource, Research, ResearchClaim, ResearchConflict, ToolClaim, find
from panda.store.visit_records import Visit
from panda.tools.memory_tools import entities_of
from panda.tools.search_sources import (
    choose,
    choose_read_well,
    choose_sources,
    make_phrases,
    open_provider,
    site_of,
    subject_words,
)
from panda.tools.tool_contract import Ask, ToolContext, ToolResult
from panda.tools.visits import client_of, files_of, last_seen_claims, refresh_visit
from panda.web.addresses import parse_url

_HOLDS_HOURS = {"prices": 6, "comparison": 48, "facts": 24 * 14, "howto": 24 * 30, "news": 6}
_FIELDS = {"prices": "commerce", "comparison": "commerce"}
_MOST_LINES = 40
_LONG_PAGE_LINES = 60
_TOPIC_WORDS = 4
_KEY_CHARS = 80
_MODEL = re.compile(r"(?=\w*\d)\w+")


@dataclass(frozen=True)
class _Page:
    id: str  # p1, p2, …
    visit: Visit  # as written
    node: Node  # its node
    lines: list[ResearchClaim]  # what may be quoted of it

    def text_of(self, line: ResearchClaim) -> str:
        return line.claim.removeprefix(f"{self.node.title}: ")


def research(query: str, context: ToolContext) -> ToolResult:
    """Research a query and write what was found; a turn has one research."""
    ask = context.ask
    if context.folder is None or ask is None:
        message = "a research needs a turn: it is kept in the turn's directory"
        raise UsageError(message, fix='order it in a turn: panda turn "Research …"')
    turn = context.store.open(context.turn)
    if (done := find(Research, turn.paths.directory)) is not None:
        if done.query != query:
            raise UsageError("this turn has its research already", where=str(turn.paths / RESEARCH_JSON))
        return _result(done, context)
    search = open_provider(context.search_provider, client_of(context))
    kind = ask(RESEARCH_STRATEGY).kind
    phrases = make_phrases(query, kind, ask)
    results = [result for phrase in phrases for result in search(phrase)]
    sources = choose_sources(results, query, kind, context, ask)
    read, failed, away = _read(sources, context)
    pages, rejected = _usable(read, query, context, ask)
    failed += rejected
    claims = _choose_claims(pages, query, kind, ask)
    conflicts = _conflicts(claims, ask)
    refreshed = (page.visit.manifest.refreshes for page in read)
    names = [word.lower() for word in subject_words(query)]
    now = context.store.clock()
    record = Research(
        topic=f"{_FIELDS.get(kind, kind)}.{'_'.join(names[:_TOPIC_WORDS]) or 'general'}",
        cache_key="_".join(names)[:_KEY_CHARS],
        created_at=now,
        expires_at=now + timedelta(hours=_HOLDS_HOURS[kind]),
        quality_score=_quality(claims, conflicts),
        summary=_summary(query, claims, conflicts, ask),
        claims=tuple(claims),
        conflicts=tuple(conflicts),
        webpage_cache=tuple(page.visit.manifest.visit_id for page in pages),
        query=query,
        kind=kind,
        phrases=tuple(phrases),
        provider=context.search_provider or "",
        sources=tuple(sources),
        failed=tuple(failed),
        refreshes=tuple(visit_id for visit_id in refreshed if visit_id),
        away=tuple(away),
    )
    turn.write_text(RESEARCH_MD, render_research(record))
    turn.save(record)
    return _result(record, context)


def _result(record: Research, context: ToolContext) -> ToolResult:
    source = context.store.name_of(context.store.turn(context.turn) / RESEARCH_JSON)
    expires_at = render_time(record.expires_at) if record.expires_at else None
    contested = {claim.claim for conflict in record.conflicts for claim in conflict.claims}
    last_seen = [claim for visit_id in record.away for claim in last_seen_claims(visit_id, context)]
    claims = [
        ToolClaim(
            c.text,
            min(m.confidence or 0.0 for m in c.claims),
            source,
            NodeKind.RESEARCH.id(record.topic),
            expires_at,
        )
        for c in record.conflicts
    ]
    claims += [
        ToolClaim(c.claim, c.confidence, c.provenance or source, NodeKind.VISIT.id(c.visit_id), expires_at)
        for c in record.claims
        if c.claim not in contested
    ]
    if not claims:
        tried = f"; {len(record.failed)} could not be read: {record.failed[0]}" if record.failed else ""
        pages = count_noun(len(record.webpage_cache), "page")
        message = f"internet.research: nothing on the query in {pages}{tried}"
        return ToolResult("error", error=message, claims=tuple(last_seen))
    nodes = [context.reader.load(NodeKind.VISIT.id(visit_id)) for visit_id in record.webpage_cache]
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


def _read(
    sources: Sequence[RatedSource], context: ToolContext, *, anew: bool = False
) -> tuple[list[_Page], list[str], list[str]]:
    """The pages, a line for each that could not be read, and earlier visits of these."""
    pages: list[_Page] = []
    failed: list[str] = []
    away: list[str] = []
    for source in (source for source in sources if source.chosen):
        earlier_visit = None
        try:
            url = str(parse_url(source.url))
            earlier_visit = context.reader.visits([url]).get(url)
            visit, _ = refresh_visit(url, earlier_visit, context, anew=anew)
        except WebError as exc:
            failed.append(f"{source.url}: {exc.message}")
            if earlier_visit:
                away.append(earlier_visit.manifest.visit_id)
            continue
        visit_id = visit.manifest.visit_id
        url = visit.manifest.url
        node = context.reader.load(NodeKind.VISIT.id(visit_id))
        lines = [
            ResearchClaim(
                claim=item.text,
                source=site_of(url),
                confidence=round(item.confidence, 2),
                content_type=item.content_type,
                visit_id=visit_id,
                url=url,
                subject=node.title,
                provenance=node.provenance,
            )
            for item in node.items
            if item.confidence >= EXPIRED_BELOW and item.content_type != "site_pattern"
        ]
        pages.append(_Page(f"p{len(pages) + 1}", visit, node, lines))
    return pages, failed, away


def _usable(
    pages: Sequence[_Page], query: str, context: ToolContext, ask: Ask
) -> tuple[list[_Page], list[str]]:
    """The pages that are about the query and were read well enough, a line for each that was not."""

    def rated(page: _Page) -> tuple[Option, _Page]:
        quality = page.node.quality or 0
        return Option(page.id, f"{quality:.2f} {page.node.title}", (), quality), page

    def again(page: _Page) -> tuple[Option, _Page] | None:
        source = RatedSource(page.visit.manifest.url, page.node.title, 0.0, chosen=True)
        read, _, _ = _read([source], context, anew=True)
        return rated(replace(read[0], id=page.id)) if read else None

    about = []
    for page in pages:
        title = page.node.title
        sample = " ".join(map(page.text_of, page.lines[:3]))
        share = share_of_words(query, f"{title} {sample}")
        about.append((Option(page.id, f"{title}. {sample}"[:300], (), share), page))
    relevant = [rated(page) for page in choose(ask, PAGE_RELEVANCE, about, lambda reply: reply.pages)]
    well, rejected = choose_read_well(ask, relevant, again)
    return well, [f"{page.visit.manifest.url}: {missing}" for page, missing in rejected]


def _choose_claims(pages: Sequence[_Page], query: str, kind: str, ask: Ask) -> list[ResearchClaim]:
    lines = _told_lines(pages, ask)
    ranked = sorted(lines, key=lambda line: -share_of_words(query, line.claim))[:_MOST_LINES]
    options = [
        (Option(f"c{n}", c.claim, (NodeKind.VISIT.id(c.visit_id),), share_of_words(query, c.claim)), c)
        for n, c in enumerate(ranked, 1)
    ]
    claims = choose(ask, RESEARCH_CLAIMS, options, lambda reply: reply.claims)
    if kind in ("prices", "comparison"):
        starts = ("price ", "availability ", "lowest_price ")
        offers = [c for c in lines if c.claim.removeprefix(f"{c.subject}: ").startswith(starts)]
        claims = [*offers, *claims]
    return list(dict.fromkeys(claims))


def _told_lines(pages: Sequence[_Page], ask: Ask) -> list[ResearchClaim]:
    """The lines of the pages, of a long one those of the zones that are chosen."""
    zones = [
        (f"{page.id}z{n}", page.id, zone)
        for page in pages
        if len(page.lines) > _LONG_PAGE_LINES and len(page.visit.extracted.zones or ()) > 1
        for n, zone in enumerate(page.visit.extracted.zones or (), 1)
    ]
    options = [
        (Option(id_, f"{zone.type}: {' '.join(zone.items[:4])}"[:300], (), zone.confidence), (page_id, zone))
        for id_, page_id, zone in zones
        if zone.is_quotable
    ]
    chosen = choose(ask, PAGE_ZONES, options, lambda reply: reply.zones)
    chosen_items = {(page_id, item) for page_id, zone in chosen for item in zone.items}
    left_out = {(page_id, item) for _, page_id, zone in zones for item in zone.items} - chosen_items
    return [line for page in pages for line in page.lines if (page.id, page.text_of(line)) not in left_out]


def _conflicts(claims: Sequence[ResearchClaim], ask: Ask) -> list[ResearchConflict]:
    texts = [f"{claim.claim} ({claim.source})" for claim in claims]
    pairs = [
        (Option(f"x{n}", f"{texts[i]} / {texts[j]}", (), alike), (i, j))
        for n, (i, j, alike) in enumerate(_differing_pairs(claims), 1)
    ]
    return join_conflicts(claims, choose(ask, RESEARCH_CONFLICTS, pairs, lambda reply: reply.same))


def _differing_pairs(claims: Sequence[ResearchClaim]) -> Iterator[tuple[int, int, float]]:
    """Index, index and likeness (above 0) of claims of two pages with two prices."""
    priced = [(n, claim, price) for n, claim in enumerate(claims) if (price := _price_of(claim))]
    for (i, first, price), (j, second, other) in combinations(priced, 2):
        alike = _likeness(first.subject, second.subject)
        if first.url != second.url and price != other and alike:
            yield i, j, alike


def _price_of(claim: ResearchClaim) -> str | None:
    """The one price that a claim names, in normal form; None if it names none or several."""
    values = {part.value for part in find_claims(claim.claim) if part.kind == "price"}
    return values.pop() if len(values) == 1 and claim.content_type == "price" else None


def _likeness(*titles: str) -> float:
    """
    Return how likely two titles name one thing: the share of the shorter one's words; 0 for other models.
    """
    first, second = (set(re.findall(r"\w+", title.lower())) for title in titles)
    model, other = (set(_MODEL.findall(title.lower())) for title in titles)
    if not first or not second or (model and other and not (model <= other or other <= model)):
        return 0.0
    return round(len(first & second) / min(len(first), len(second)), 2)


def join_conflicts(
    claims: Sequence[ResearchClaim], pairs: Collection[tuple[int, int]]
) -> list[ResearchConflict]:
    """Conflicts from pairs of indices: what is connected is one, with every claim on that price."""
    groups: list[set[int]] = []
    for pair in pairs:
        joined = set(pair).union(*(group for group in groups if group & set(pair)))
        groups = [group for group in groups if not group & joined] + [joined]
    return [_conflict([claims[n] for n in sorted(group)]) for group in sorted(groups, key=min)]


def _conflict(claims: Sequence[ResearchClaim]) -> ResearchConflict:
    about = min((claim.subject for claim in claims), key=len)
    unique = {(_price_of(claim), claim.url): claim for claim in claims}.values()
    sites = [claim.source for claim in unique]
    places = sites if len(set(sites)) == len(sites) else [claim.url for claim in unique]
    prices = [next(c.text for c in find_claims(claim.claim) if c.kind == "price") for claim in unique]
    offers = " or ".join(f"{price} ({place})" for price, place in zip(prices, places, strict=True))
    return ResearchConflict(about, f"{about}: price {offers}; the sources disagree", tuple(claims))


def _quality(claims: Sequence[ResearchClaim], conflicts: Sequence[ResearchConflict]) -> float:
    if not claims:
        return 0.0
    mean = sum(claim.confidence or 0.0 for claim in claims) / len(claims)
    sites = {claim.source for claim in claims}
    return round(mean * (1.0 if len(sites) > 1 else 0.85) * (0.8 if conflicts else 1.0), 2)


def _summary(
    query: str, claims: Sequence[ResearchClaim], conflicts: Sequence[ResearchConflict], ask: Ask
) -> str:
    """A report if its evidence holds, else what code counts."""
    conflict_texts = [conflict.text for conflict in conflicts]
    counted = f"Nothing was found on: {query}"
    if sites := dict.fromkeys(claim.source for claim in claims):
        count = f"{len(sites)} site{'s' if len(sites) > 1 else ''}"
        counted = ". ".join([f"{len(claims)} findings from {count} ({', '.join(sites)})", *conflict_texts])
    findings = [*(f"{claim.claim} ({claim.source})" for claim in claims), *conflict_texts]
    listed = "\n".join(findings) or "nothing was found"
    try:
        reply = ask(RESEARCH_REPORT, variables={"counted": counted}, extra={"findings": listed})
    except ReplyError:  # what was found stands without a report
        return counted
    return counted if check_evidence(reply.summary, [*findings, counted]) else reply.summary


def render_research(record: Research) -> str:
    claims = [
        f"{_plain(c.claim)} ({c.source}, visit:{c.visit_id}, {c.confidence or 0:.2f})" for c in record.claims
    ]
    parts = {
        "Research Findings": claims or ["nothing was found"],
        "Conflicts": [_plain(conflict.text) for conflict in record.conflicts],
        "Sources": [
            *(
                f"{source.url} (quality {source.quality:.2f}, {'read' if source.chosen else 'not read'})"
                for source in record.sources
            ),
            *(f"not readable: {_plain(text)}" for text in record.failed),
        ],
    }
    lines = [f"# {one_line(record.query)}", "", record.summary, ""]
    for title, items in parts.items():
        if items or title == "Sources":
            lines += [f"## {title}", "", *(f"- {item}" for item in items), ""]
    return "\n".join([*lines, f"Searched {record.provider} for: {'; '.join(record.phrases)}", ""])


def _plain(text: str) -> str:
    return one_line(text).replace("`", "'")
