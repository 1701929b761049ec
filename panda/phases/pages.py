"""Pages that a turn's gathered context rests on, and what of them this turn has read anew."""

from collections.abc import Sequence

from panda.documents.evidence import find_claims
from panda.errors import MemoryNodeError
from panda.language.words import split_words
from panda.memory.node import Node
from panda.memory.reader import NodeReader, find_node
from panda.phases.running_turn import Turn
from panda.retrieval.relevance import folded_names, share_of_words
from panda.steps.options import Option
from panda.store.node_id import NodeKind, key_of, kind_of
from panda.store.records import RetrievalPlan, Step
from panda.store.visit_records import visit_ids

OPENING = ("web.fetch", "internet.navigate")  # tools that begin at an address
_MOST_PAGES = 2
_LEAST_SHARE = 0.25


def live_pages(turn: Turn, reader: NodeReader) -> list[Option]:
    """
    Pages to look at that this turn has not asked for yet, each with its address as text: those that the query
    names; else, if it needs to know how things are now, at most two that its gathered context rests on. A
    page that fresh research rests on is none, unless the user orders to look (S1 §1, "fast path").
    """
    asked = {step.arguments.get("url") for step in turn.steps() if step.tool in OPENING}
    named = [Option(f"u{n}", url, (), 1.0) for n, url in enumerate(named_pages(turn), 1) if url not in asked]
    if named or not turn.analysis.data_requirements.needs_live_data:
        return named
    newest: dict[str, Node] = {}
    fresh = set() if turn.reading.mood == "orders" else fresh_visits(turn, reader)
    for node in _visits(turn, reader):
        held = newest.get(node.url or "")
        if node.url and (held is None or (held.at and node.at and node.at > held.at)):
            newest[node.url] = node
    meant = turn.meant
    pages = [
        node
        for url, node in newest.items()
        if url not in asked and node.id not in fresh and speaks_of(meant, f"{node.title} {url}")
    ]
    rated = sorted(((share_of_words(meant, n.title), n) for n in pages), key=lambda r: -r[0])
    return [
        Option(f"w{n}", str(node.url), (node.id,), share, node.title)
        for n, (share, node) in enumerate(rated[:_MOST_PAGES], 1)
        if share >= _LEAST_SHARE
    ]


def fresh_visits(turn: Turn, reader: NodeReader) -> set[str]:
    """The nodes of the visits that research rests on which 2.1 recommends to use in full."""
    plan = turn.folder.find(RetrievalPlan)
    match = plan.research_cache_match if plan else None
    if match is None or match.reuse_recommendation != "full":
        return set()
    research = find_node(reader, NodeKind.RESEARCH.id(match.topic))
    return set(research.links) if research else set()


def named_pages(turn: Turn) -> list[str]:
    """Addresses that a query asks about; one in what is told is none."""
    statements_text = " ".join(statement.text for statement in turn.reading.statements)
    urls = (c.text for c in find_claims(turn.query) if c.kind == "url" and "://" in c.text)
    return [url for url in dict.fromkeys(urls) if url not in statements_text]


def speaks_of(query: str, text: str) -> bool:
    """
    Return whether a text has one of the names that the query has, or the query has none.

    >>> speaks_of("What does the HP Victus 15 cost?", "Lenovo LOQ 15 Laptop")
    False
    >>> speaks_of("Is it cheaper than the Lenovo?", "Lenovo LOQ 15"), speaks_of("is it in stock", "Tents")
    (True, True)
    """
    names = folded_names(query)
    return not names or not names.isdisjoint(map(str.lower, split_words(text)))


def read_anew(steps: Sequence[Step]) -> set[str]:
    """Nodes of visits that this turn has looked at again: refreshed, or found to be away."""
    looked_at: set[str] = set()
    for step in steps:
        if step.tool not in (*OPENING, "internet.research"):
            continue
        if step.status != "success":
            looked_at |= {claim.node_id for claim in step.claims if claim.node_id}
            continue
        refreshed = step.data.get("refreshes") or []
        replaced = [refreshed] if isinstance(refreshed, str) else refreshed
        looked_at |= {NodeKind.VISIT.id(visit_id) for visit_id in (*replaced, *step.data.get("away", ()))}
    return looked_at


def _visits(turn: Turn, reader: NodeReader) -> list[Node]:
    waiting = [node_id for section in turn.gathered for node_id in section.node_ids]
    seen: set[str] = set()
    visits: list[Node] = []
    while waiting:
        node_id = waiting.pop(0)
        if node_id in seen or kind_of(node_id) not in (NodeKind.VISIT, NodeKind.RESEARCH, NodeKind.TURN):
            continue
        seen.add(node_id)
        try:
            node = reader.load(node_id)
        except MemoryNodeError as exc:
            turn.warn(exc.message)
            continue
        waiting += node.links
        if kind_of(node_id) is NodeKind.TURN:
            directory = turn.store.turn(int(key_of(node_id))).directory
            waiting += (NodeKind.VISIT.id(visit_id) for visit_id in visit_ids(directory))
        if kind_of(node_id) is NodeKind.VISIT:
            visits.append(node)
    return visits
