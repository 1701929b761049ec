"""What is wrong with §2: every line must be traced to a node that was loaded (S0 §4 and §6, design §4)."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from panda.documents.evidence import check_evidence, find_proofs
from panda.memory.confidence import EXPIRED_BELOW
from panda.memory.gathered import (
    CONSTRAINTS,
    RAW_QUERY,
    TITLES,
    GatheredItem,
    GatheredSection,
    mean_confidence,
)
from panda.memory.node import Node

NO_CONSTRAINTS = f"section {CONSTRAINTS} is missing"
UNKNOWN_NODE = "is no loaded node"
"""How the issue of a node that is not there ends."""
_TOLERANCE = 0.01 + 1e-9


def check_sections(
    sections: Sequence[GatheredSection], nodes: Mapping[str, Node], now: datetime, *, query: str
) -> list[str]:
    """
    What is wrong with §2, one sentence each; [] if every line can be believed.

    Args:
        sections: The parts as built or read.
        nodes: The loaded nodes, by id.
        now: The instant that confidences are computed for.
        query: The user's query, for constraints that it states.

    Source:
        S0 §4.1.1, §4.3, §6; design §4.
    """
    issues: list[str] = []
    seen: set[str] = set()
    for section in sections:
        place = f"section {section.title}"
        if section.title not in (*TITLES.values(), CONSTRAINTS):
            issues.append(f"{place}: not a canonical title; use {', '.join((*TITLES.values(), CONSTRAINTS))}")
        if section.title in seen:
            issues.append(f"{place}: there is more than one")
        seen.add(section.title)
        issues += [f"{place}: {one}" for one in _node_issues(section, nodes)]
        issues += [
            f"{place}: {one}" for item in section.items for one in _item_issues(section, item, nodes, query)
        ]
        issues += [f"{place}: {one}" for one in _confidence_issues(section, nodes, now)]
    return issues if CONSTRAINTS in seen else [*issues, NO_CONSTRAINTS]


def _node_issues(section: GatheredSection, nodes: Mapping[str, Node]) -> list[str]:
    issues = [f"{node_id} {UNKNOWN_NODE}" for node_id in section.node_ids if node_id not in nodes]
    known = [nodes[node_id] for node_id in section.node_ids if node_id in nodes]
    wanted = tuple(node.provenance for node in known)
    if not section.provenance:
        issues.append("has no provenance")
    if section.title == CONSTRAINTS:
        named = {node.id: node.provenance for node in known}  # S0 §4.2 names a node by its id
        given = {named.get(one, one) for one in section.provenance}
        missing = [one for one in (RAW_QUERY, *wanted) if one not in given]
        foreign = sorted(given - {RAW_QUERY, *wanted})
        issues += [f"provenance lacks {one}" for one in dict.fromkeys(missing)] if section.provenance else []
        issues += [f"provenance {one} is that of none of its nodes" for one in foreign]
        return issues
    if not section.items:
        issues.append("has no line")
    if not section.node_ids:
        issues.append("names no node")
    cited = {node_id for item in section.items for node_id in item.node_ids}
    issues += [f"names {one}, which no line cites" for one in section.node_ids if one not in cited]
    if section.provenance and len(known) == len(section.node_ids) and section.provenance != wanted:
        issues.append(f"provenance is {', '.join(section.provenance)}, its nodes are in {', '.join(wanted)}")
    if not isinstance(section.source_type, str):
        issues.append(f"has more than one source type: {', '.join(section.source_type)}")
        return issues
    if section.title in TITLES.values() and TITLES.get(section.source_type) != section.title:  # type: ignore[call-overload]
        issues.append(f"its source_type is {section.source_type}")
    issues += [
        f"{node.id} is of source type {node.source_type} and belongs into {TITLES[node.source_type]}"
        for node in known
        if node.source_type != section.source_type
    ]
    return issues


def _item_issues(
    section: GatheredSection, item: GatheredItem, nodes: Mapping[str, Node], query: str
) -> list[str]:
    if not set(item.node_ids) <= set(section.node_ids):
        return [f"the line {item.text!r:.60} cites a node that _meta does not name"]
    cited = [nodes[node_id] for node_id in item.node_ids if node_id in nodes]
    if not item.node_ids and section.title != CONSTRAINTS:
        return [f"the line {item.text!r:.60} cites nothing"]
    if item.node_ids and not cited:
        return []  # said of the node already
    if not cited:  # a constraint: from the query, or in the older form from a node of the section
        others = [nodes[node_id] for node_id in section.node_ids if node_id in nodes]
        sources = [query, *(node.text for node in others)]
        wrong = [one.text for one in check_evidence(item.text, sources, about=_names_of(others))]
        wrong += [proof.text for proof in find_proofs(item.text, sources)]  # a limit follows from nothing
        return [f"{', '.join(wrong)} in {item.text!r:.60} is not in the query"] if wrong else []
    live = [line.text for node in cited for line in node.items if line.confidence >= EXPIRED_BELOW]
    known = [line.text for node in cited for line in node.items]
    about = [query, *_names_of(cited)]
    names = ", ".join(item.node_ids)
    missing = check_evidence(item.text, [node.text for node in cited], about=about)
    if missing:
        return [f"{', '.join(one.text for one in missing)} in {item.text!r:.60} is not in {names}"]
    if (
        check_evidence(item.text, ["\n".join(live)], about=about)
        or not live
        or (item.text in known and item.text not in live)
    ):
        return [f"{item.text!r:.60} is expired in {names}"]
    return []


def _names_of(nodes: Sequence[Node]) -> list[str]:
    """Where nodes say what they are about, beside their lines."""
    return [text for node in nodes for text in (node.title, node.id, node.url or "")]


def _confidence_issues(section: GatheredSection, nodes: Mapping[str, Node], now: datetime) -> list[str]:
    if section.title == CONSTRAINTS:
        return []
    computed = mean_confidence(section.items, nodes, now)
    if computed is None:
        return []
    if section.confidence_avg is None:
        return [f"has no confidence_avg; it is {computed:.2f}"]
    if abs(section.confidence_avg - computed) > _TOLERANCE:
        return [f"confidence_avg is {section.confidence_avg:.2f}, its nodes give {computed:.2f}"]
    return []
