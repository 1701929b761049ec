"""§2 Gathered Context as values: built from what was drafted and loaded, and rendered (S0 §4, design §4)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from panda.documents.context import Meta, Section, Text
from panda.documents.escaping import escape_item
from panda.memory.confidence import EXPIRED_BELOW, age_days, mean_by_recency
from panda.memory.nodes import Item, Node, SourceType

TITLES: Mapping[SourceType, str] = {
    "preference": "Session Preferences",
    "turn_summary": "Relevant Prior Turns",
    "fact": "Forever Memory Knowledge",
    "research_cache": "Cached Research",
    "visit_record": "Visit Data",
}
CONSTRAINTS = "Constraints"
RAW_QUERY = "§0.raw_query"
"""Provenance of what the query itself says."""

_AGING: tuple[SourceType, ...] = ("research_cache", "visit_record")
_HOURS_A_DAY = 24


@dataclass(frozen=True)
class GatheredItem:
    """One line of §2."""

    text: str
    """The line; what it claims stands in its nodes."""
    node_ids: tuple[str, ...]
    """Nodes it comes from; empty for what the query itself says."""


@dataclass(frozen=True)
class DraftSection:
    """What 2.2 wants in one part of §2."""

    title: str
    """As drafted; whether it is a canonical one is checked later."""
    items: tuple[GatheredItem, ...]
    """Its lines."""
    confidence_avg: float | None = None
    """What the draft claims; code computes its own."""


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


def draft_of_lines(lines: Sequence[tuple[Node, Item]]) -> list[DraftSection]:
    """
    The draft that quotes these lines, one part a source type, in the order of TITLES.

    Args:
        lines: Lines with their nodes, in the order to show them.
    """
    draft = []
    for source_type, title in TITLES.items():
        mine = [(node, item) for node, item in lines if node.source_type == source_type]
        if mine:
            draft.append(
                DraftSection(title, tuple(GatheredItem(item.text, (node.id,)) for node, item in mine))
            )
    return draft


def build_sections(
    draft: Sequence[DraftSection],
    nodes: Mapping[str, Node],
    stated: Sequence[str],
    now: datetime,
    *,
    by_rule: Collection[str] = (),
) -> list[GatheredSection]:
    """
    The parts of §2 that a draft asks for, and Constraints last.

    Args:
        draft: Titled lines; parts without lines are left out.
        nodes: The loaded nodes, by id.
        stated: Constraints that the query states.
        now: The instant that confidences are computed for.
        by_rule: Nodes that a rule put here and not a choice.

    Returns:
        Parts with what code knows of their nodes: a node that is not loaded has no provenance. A confidence
        that the draft claims is kept, to be checked. Constraints hold what the query states and the
        preferences shown.
    """
    sections = []
    order = list(TITLES.values())
    for part in sorted(draft, key=lambda one: order.index(one.title) if one.title in order else len(order)):
        if not part.items or part.title == CONSTRAINTS:
            continue
        node_ids = tuple(dict.fromkeys(node_id for item in part.items for node_id in item.node_ids))
        known = [nodes[node_id] for node_id in node_ids if node_id in nodes]
        own = next((kind for kind, title in TITLES.items() if title == part.title), None)
        source_type = own or (known[0].source_type if known else "fact")
        average = part.confidence_avg
        sections.append(
            GatheredSection(
                part.title,
                source_type,
                part.items,
                mean_confidence(part.items, nodes, now) if average is None else average,
                node_ids,
                tuple(node.provenance for node in known),
                "always_include" if node_ids and set(node_ids) <= set(by_rule) else None,
            )
        )
    drafted = [item for part in draft if part.title == CONSTRAINTS for item in part.items]
    return [*sections, _constraints(sections, drafted, nodes, stated)]


def _constraints(
    sections: Sequence[GatheredSection],
    drafted: Sequence[GatheredItem],
    nodes: Mapping[str, Node],
    stated: Sequence[str],
) -> GatheredSection:
    items = [GatheredItem(text, ()) for text in stated]
    items += [item for section in sections if section.source_type == "preference" for item in section.items]
    items = list(dict.fromkeys([*items, *drafted]))
    node_ids = tuple(dict.fromkeys(node_id for item in items for node_id in item.node_ids))
    kinds = dict.fromkeys(nodes[node_id].source_type for node_id in node_ids if node_id in nodes)
    provenance = (RAW_QUERY, *dict.fromkeys(nodes[one].provenance for one in node_ids if one in nodes))
    source_type = (*kinds, "user_query") if kinds else "user_query"
    return GatheredSection(CONSTRAINTS, source_type, tuple(items), None, node_ids, provenance)


def with_own_confidence(
    sections: Sequence[GatheredSection], nodes: Mapping[str, Node], now: datetime
) -> list[GatheredSection]:
    """The parts with the confidence that code computes, whatever a draft claimed."""
    return [
        section
        if section.title == CONSTRAINTS
        else replace(section, confidence_avg=mean_confidence(section.items, nodes, now))
        for section in sections
    ]


def mean_confidence(items: Sequence[GatheredItem], nodes: Mapping[str, Node], now: datetime) -> float | None:
    """
    The confidence_avg of a part: each node counts with the mean of its items that are shown.

    Args:
        items: Lines of the part.
        nodes: The loaded nodes, by id; what is not among them does not count.
        now: The instant that recency is counted from.

    Returns:
        Two decimals; None if no line cites a loaded node. Where a line is worded anew, its node counts with
        all items that are not expired.

    Source:
        S0 §4.3; design §4.
    """
    shown: dict[str, list[float]] = {}
    for item in items:
        for node_id in item.node_ids:
            node = nodes.get(node_id)
            if node is not None and node.items:
                same = [line.confidence for line in node.items if line.text == item.text]
                live = [line.confidence for line in node.items if line.confidence >= EXPIRED_BELOW]
                rest = live or [line.confidence for line in node.items]
                shown.setdefault(node_id, []).append(max(same) if same else sum(rest) / len(rest))
    if not shown:
        return None
    means = [(sum(values) / len(values), nodes[node_id].at) for node_id, values in shown.items()]
    return mean_by_recency(means, now)


def render_gathered(
    sections: Sequence[GatheredSection], nodes: Mapping[str, Node] | None = None, now: datetime | None = None
) -> Section:
    """
    §2 as it stands in context.md: a title, a `_meta` block and the lines of each part.

    Args:
        sections: The parts.
        nodes: The loaded nodes, for the age of what was found on the web; None shows none.
        now: The instant that ages are counted to.
    """
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
        lines = [render_line(item, section, nodes or {}, now) for item in section.items] or ["- none stated"]
        blocks += [Text(f"### {section.title}"), Meta(meta), Text("\n".join(lines))]
    return Section(2, tuple(blocks))


def render_line(
    item: GatheredItem, section: GatheredSection, nodes: Mapping[str, Node], now: datetime | None
) -> str:
    """
    A line of §2 as it stands in context.md: with the marks of its nodes, the turn's number, the page's age.

    Args:
        item: The line.
        section: Its part; a mark counts in its nodes from 1.
        nodes: The loaded nodes.
        now: The instant that ages are counted to; None shows none.
    """
    marks = "".join(f" [{section.node_ids.index(node_id) + 1}]" for node_id in item.node_ids)
    turns = [node_id.removeprefix("turn:") for node_id in item.node_ids if node_id.startswith("turn:")]
    cited = [nodes[node_id] for node_id in item.node_ids if node_id in nodes]
    age = freshness(cited[0], now) if now and cited and section.title != CONSTRAINTS else ""
    text = escape_item(item.text)
    return f"- {f'Turn {turns[0]}: ' if turns else ''}{text}{marks}{f' ({age})' if age else ''}"


def freshness(node: Node, now: datetime) -> str:
    """
    How old research or a visited page is, and whether it should be fetched again; "" for other nodes.

    Args:
        node: A loaded node.
        now: The present.

    Source:
        S1 §10 "Freshness check"; S0 §5.2.
    """
    if node.source_type not in _AGING or node.at is None:
        return ""
    hours = age_days(node.at, now) * _HOURS_A_DAY
    age = f"{hours:.1f}h ago" if hours < 2 * _HOURS_A_DAY else f"{hours / _HOURS_A_DAY:.0f} days ago"
    return f"{age}, stale: refresh before use" if is_stale(node, now) else age


def is_stale(node: Node, now: datetime) -> bool:
    """Whether a node is past the time at which its maker wanted it refreshed."""
    return node.expires_at is not None and node.expires_at <= now


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
