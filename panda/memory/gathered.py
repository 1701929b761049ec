"""§2 Gathered Context as values: built from loaded nodes, rendered, and checked (S0 §4, design §4)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from panda.documents.context import Meta, Section, Text
from panda.documents.evidence import check_evidence
from panda.memory.confidence import EXPIRED_BELOW, mean_by_recency
from panda.memory.nodes import Item, Node, SourceType

TITLES: Mapping[SourceType, str] = {
    "preference": "Session Preferences",
    "turn_summary": "Relevant Prior Turns",
    "fact": "Forever Memory Knowledge",
    "research_cache": "Cached Research",
    "visit_record": "Visit Data",
}
CONSTRAINTS = "Constraints"


@dataclass(frozen=True)
class GatheredItem:
    """One line of §2."""

    text: str
    """The line, verbatim from its node."""
    node_ids: tuple[str, ...]
    """Nodes it comes from; empty for what the query itself says."""


@dataclass(frozen=True)
class GatheredSection:
    """One titled part of §2."""

    title: str
    """One of TITLES, or Constraints."""
    source_type: str | tuple[str, ...]
    """Kind of its nodes; several only for Constraints."""
    items: tuple[GatheredItem, ...]
    """Its lines."""
    confidence_avg: float | None
    """Mean confidence of its nodes, newer ones counting more; None without nodes."""
    node_ids: tuple[str, ...]
    """All nodes, each once; a line's [n] counts in this list from 1."""
    provenance: tuple[str, ...]
    """Where they are, in the order of node_ids; for the query "§0.raw_query"."""
    source: Literal["always_include"] | None = None
    """Set when a rule and not a choice put it here."""


def build_sections(
    chosen: Sequence[tuple[Node, Item]], stated: Sequence[str], now: datetime
) -> list[GatheredSection]:
    """
    The parts of §2, one a source type and Constraints last.

    Args:
        chosen: Lines with their nodes, in the order to show them.
        stated: Constraints that the query states.
        now: The instant that recency is counted from.

    Returns:
        Only parts that have lines, and always Constraints: what the query states and the preferences shown.
    """
    sections = []
    for source_type, title in TITLES.items():
        lines = [(node, item) for node, item in chosen if node.source_type == source_type]
        if lines:
            sections.append(_section(title, source_type, lines, now))
    preferences = [(node, item) for node, item in chosen if node.source_type == "preference"]
    items = [GatheredItem(text, ()) for text in stated]
    items += [GatheredItem(item.text, (node.id,)) for node, item in preferences]
    node_ids = tuple(dict.fromkeys(node.id for node, _ in preferences))
    kinds = ("preference", "user_query") if node_ids else "user_query"
    provenance = ("§0.raw_query", *dict.fromkeys(node.provenance for node, _ in preferences))
    return [*sections, GatheredSection(CONSTRAINTS, kinds, tuple(items), None, node_ids, provenance)]


def _section(
    title: str, source_type: str, lines: Sequence[tuple[Node, Item]], now: datetime
) -> GatheredSection:
    nodes = {node.id: node for node, _ in lines}
    shown = {node_id: [item for node, item in lines if node.id == node_id] for node_id in nodes}
    confidences = [
        (sum(item.confidence for item in items) / len(items), nodes[node_id].at)
        for node_id, items in shown.items()
    ]
    return GatheredSection(
        title,
        source_type,
        tuple(GatheredItem(item.text, (node.id,)) for node, item in lines),
        mean_by_recency(confidences, now),
        tuple(nodes),
        tuple(node.provenance for node in nodes.values()),
    )


def render_gathered(sections: Sequence[GatheredSection]) -> Section:
    """§2 as it stands in context.md: a title, a `_meta` block and the lines of each part."""
    blocks: list[Text | Meta] = []
    for section in sections:
        meta: dict[str, object] = {
            "source_type": section.source_type
            if isinstance(section.source_type, str)
            else list(section.source_type),
            "node_ids": list(section.node_ids),
        }
        if section.confidence_avg is not None:
            meta["confidence_avg"] = section.confidence_avg
        meta["provenance"] = list(section.provenance)
        if section.source:
            meta["source"] = section.source
        lines = [_line(item, section.node_ids) for item in section.items] or ["- none stated"]
        blocks += [Text(f"### {section.title}"), Meta(meta), Text("\n".join(lines))]
    return Section(2, _joined(blocks))


def _joined(blocks: Sequence[Text | Meta]) -> tuple[Text | Meta, ...]:
    joined: list[Text | Meta] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if isinstance(block, Text) and isinstance(last, Text):
            joined[-1] = Text(f"{last.text}\n\n{block.text}")
        else:
            joined.append(block)
    return tuple(joined)


def _line(item: GatheredItem, node_ids: Sequence[str]) -> str:
    marks = "".join(f" [{node_ids.index(node_id) + 1}]" for node_id in item.node_ids)
    turns = [node_id.removeprefix("turn:") for node_id in item.node_ids if node_id.startswith("turn:")]
    return f"- {f'Turn {turns[0]}: ' if turns else ''}{item.text}{marks}"


def check_sections(
    sections: Sequence[GatheredSection], nodes: Mapping[str, Node], now: datetime
) -> list[str]:
    """
    What is wrong with §2, one sentence each; [] if every line can be believed.

    Args:
        sections: The parts as built.
        nodes: The loaded nodes, by id.
        now: The instant that confidences are computed for.

    Source:
        S0 §4.1.1, §4.3, §6; design §4.
    """
    issues = []
    for section in sections:
        place = f"section {section.title}"
        if section.title not in (*TITLES.values(), CONSTRAINTS):
            issues.append(f"{place}: not a canonical title")
        if section.title != CONSTRAINTS and not section.items:
            issues.append(f"{place}: has no line")
        if not section.provenance:
            issues.append(f"{place}: has no provenance")
        unknown = [node_id for node_id in section.node_ids if node_id not in nodes]
        issues += [f"{place}: {node_id} is no loaded node" for node_id in unknown]
        for item in section.items:
            issues += _item_issues(place, section, item, nodes)
    return issues


def _item_issues(
    place: str, section: GatheredSection, item: GatheredItem, nodes: Mapping[str, Node]
) -> list[str]:
    if not set(item.node_ids) <= set(section.node_ids):
        return [f"{place}: a line cites a node that _meta does not name"]
    cited = [nodes[node_id] for node_id in item.node_ids if node_id in nodes]
    if not cited:
        return [] if section.title == CONSTRAINTS else [f"{place}: the line {item.text!r:.60} cites nothing"]
    issues = []
    missing = check_evidence(item.text, [node.text for node in cited])
    if missing:
        names = ", ".join(claim.text for claim in missing)
        issues.append(f"{place}: {names} in {item.text!r:.60} is not in {', '.join(item.node_ids)}")
    known = [line.confidence for node in cited for line in node.items if line.text == item.text]
    if known and max(known) < EXPIRED_BELOW:
        issues.append(f"{place}: {item.text!r:.60} is expired")
    return issues


def sections_to_json(sections: Sequence[GatheredSection]) -> list[dict[str, object]]:
    """The parts as gathered_context.json holds them."""
    return [_lists(asdict(section)) for section in sections]


def answer_items(answer: Section | None) -> list[GatheredItem]:
    """The items of §5, as its `_meta` holds them; [] if there is no §5 or it answers nothing."""
    items: Any = answer.meta.get("items", []) if answer else []
    return [GatheredItem(str(item["text"]), tuple(item["node_ids"])) for item in items]


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists(part) for key, part in value.items()}
    return [_lists(part) for part in value] if isinstance(value, list | tuple) else value
