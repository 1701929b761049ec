"""§2 Gathered Context as values: built of a draft and loaded nodes, rendered, read back, checked (S0 §4)."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from panda.documents.context import Meta, Phase, Section, Text
from panda.documents.evidence import check_evidence
from panda.documents.record_codec import decode, encode
from panda.documents.safe_text import escape_item, one_line, unescape_item
from panda.memory.confidence import EXPIRED_BELOW, age_days, claim_type, level, mean_by_recency
from panda.memory.node import Node, SourceType, near_text
from panda.store.node_id import NodeKind, key_of, kind_of
from panda.store.records import GatheredItem, GatheredSection, Line

TITLES: Mapping[SourceType, str] = {
    "preference": "Session Preferences",
    "turn_summary": "Relevant Prior Turns",
    "fact": "Forever Memory Knowledge",
    "research_cache": "Cached Research",
    "visit_record": "Visit Data",
    "user_document": "Provided Documents",
}
CONSTRAINTS = "Constraints"
RAW_QUERY = "§0.raw_query"
"""Provenance of what the query itself says."""

_AGING: tuple[SourceType, ...] = ("research_cache", "visit_record")
_CHANGING = ("price", "availability")
_FADED = ("LOW", "EXPIRED")
_HOURS_A_DAY = 24
STALE = "stale: refresh before use"
"""Stands behind the age of what should be fetched again."""
CUT_MARK = "[…]"
"""Stands where something was cut."""
_LINE = re.compile(
    r"^(?:- )?(?:Turn \d+: )?(?P<text>.*?)(?P<marks>(?: \[\d{1,3}\])+)(?: \([^()]*\))?$", re.DOTALL
)
_PLAIN = re.compile(r"^(?:- )?(?:Turn \d+: )?(.*)$", re.DOTALL)
_OLD_TITLES = {
    "Cached Research Intelligence": TITLES["research_cache"],
    "Visit Record Data": TITLES["visit_record"],
    "User Preferences": TITLES["preference"],
}
_OLD_TYPES = {
    "preferences": "preference",
    "turn_context": "turn_summary",
    "research_cache": "research_cache",
    "visit_data": "visit_record",
}
_WITHOUT_NODES = {"Source References", "Context Assessment"}
"""Parts of S1's form that cite nothing by themselves."""


@dataclass(frozen=True)
class DraftSection:
    """What 2.2 wants in one part of §2."""

    title: str  # as drafted; whether it is a canonical one is checked later
    items: tuple[GatheredItem, ...]


def draft_of_lines(lines: Sequence[Line], nodes: Mapping[str, Node]) -> list[DraftSection]:
    """The draft that quotes these lines in their order, one part a source type, in the order of TITLES."""
    parts = {
        title: tuple(line.item for line in lines if nodes[line.node].source_type == kind)
        for kind, title in TITLES.items()
    }
    return [DraftSection(title, items) for title, items in parts.items() if items]


def build_sections(
    draft: Sequence[DraftSection],
    nodes: Mapping[str, Node],
    stated: Sequence[str],
    now: datetime,
    *,
    by_rule: Collection[str] = (),
) -> list[GatheredSection]:
    """
    The parts of §2 that a draft asks for, and last the Constraints: those *stated* in the query and the
    preferences shown. A node that is not loaded has no provenance. What nodes *by_rule* alone say was put
    here by a rule and not a choice.
    """
    sections = []
    order = list(TITLES.values())
    for part in sorted(
        draft,
        key=lambda draft_section: (
            order.index(draft_section.title) if draft_section.title in order else len(order)
        ),
    ):
        if not part.items or part.title == CONSTRAINTS:
            continue
        node_ids = tuple(dict.fromkeys(node_id for item in part.items for node_id in item.node_ids))
        loaded_nodes = [nodes[node_id] for node_id in node_ids if node_id in nodes]
        own = next((kind for kind, title in TITLES.items() if title == part.title), None)
        source_type = own or (loaded_nodes[0].source_type if loaded_nodes else "fact")
        sections.append(
            GatheredSection(
                title=part.title,
                source_type=source_type,
                items=part.items,
                confidence_avg=mean_confidence(part.items, nodes, now),
                node_ids=node_ids,
                provenance=tuple(node.provenance for node in loaded_nodes),
                source="always_include" if node_ids and set(node_ids) <= set(by_rule) else None,
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
    provenance = (
        RAW_QUERY,
        *dict.fromkeys(nodes[node_id].provenance for node_id in node_ids if node_id in nodes),
    )
    source_type = (*kinds, "user_query") if kinds else "user_query"
    return GatheredSection(
        title=CONSTRAINTS,
        source_type=source_type,
        items=tuple(items),
        confidence_avg=None,
        node_ids=node_ids,
        provenance=provenance,
    )


def mean_confidence(items: Sequence[GatheredItem], nodes: Mapping[str, Node], now: datetime) -> float | None:
    """
    The confidence_avg of a part, to two decimals: each loaded node counts with the mean of its items that are
    shown (S0 §4.3; design §4), where a line is worded anew with all that are not expired.
    """
    confidences: dict[str, list[float]] = {}
    for item in items:
        for node_id in item.node_ids:
            node = nodes.get(node_id)
            if node is not None and node.items:
                same = [line.confidence for line in node.items if line.text == item.text]
                live = [line.confidence for line in node.items if line.confidence >= EXPIRED_BELOW]
                rest = live or [line.confidence for line in node.items]
                confidences.setdefault(node_id, []).append(max(same) if same else sum(rest) / len(rest))
    if not confidences:
        return None
    means = [(sum(values) / len(values), nodes[node_id].at) for node_id, values in confidences.items()]
    return mean_by_recency(means, now)


def render_gathered(
    sections: Sequence[GatheredSection], nodes: Mapping[str, Node] | None = None, now: datetime | None = None
) -> Section:
    """§2 as it stands in context.md: title, `_meta` block and lines of each part; ages only with *nodes*."""
    blocks: list[Text | Meta] = []
    for section in sections:
        meta: dict[str, object] = {
            "source_type": encode(section.source_type),
            "node_ids": list(section.node_ids),
        }
        if section.confidence_avg is not None:
            meta["confidence_avg"] = section.confidence_avg
        meta["provenance"] = list(section.provenance)
        if section.source:
            meta["source"] = section.source
        lines = [render_line(item, section, nodes or {}, now) for item in section.items] or ["- none stated"]
        blocks += [Text(f"### {section.title}"), Meta(meta), Text("\n".join(lines))]
    return Section(Phase.CONTEXT_GATHERER, tuple(blocks))


def render_line(
    item: GatheredItem, section: GatheredSection, nodes: Mapping[str, Node], now: datetime | None
) -> str:
    """
    A line of §2 as it stands in context.md: with the marks of its nodes, counted from 1 in those of its part,
    the turn's number, unless *now* is None the page's age or the confidence of a preference.
    """
    marks = "".join(f" [{section.node_ids.index(node_id) + 1}]" for node_id in item.node_ids)
    turns = [key_of(node_id) for node_id in item.node_ids if kind_of(node_id) is NodeKind.TURN]
    cited = [nodes[node_id] for node_id in item.node_ids if node_id in nodes]
    remark = freshness(cited[0], now, item.text) if now and cited and section.title != CONSTRAINTS else ""
    if now and cited and section.source_type == "preference":
        remark = f"{level(cited[0].confidence).lower()} confidence"
    text = escape_item(item.text)
    return f"- {f'Turn {turns[0]}: ' if turns else ''}{text}{marks}{f' ({remark})' if remark else ''}"


def freshness(node: Node, now: datetime, text: str = "") -> str:
    """
    Return how old research or a visited page is, and whether to fetch it again, else "" (S1 §10; S0 §5.2).

    Args:
        node: Any node.
        now: The present.
        text: One line of the node, of which alone it is told; "" for the node as a whole.
    """
    if node.source_type not in _AGING or node.at is None:
        return ""
    age = _age(node.at, now)
    if is_stale(node, now) or (text and is_line_stale(node, text)):
        return f"{age}, {STALE}"
    if not text and any(map(has_faded, node.items)):
        return f"{age}, prices and stock {STALE}"
    return age


def has_faded(line: Line) -> bool:
    """
    Return whether a line tells of a price or of stock so long ago that it is little believed (design §4).
    """
    return line.at is not None and line.content_type in _CHANGING and level(line.confidence) in _FADED


def is_line_stale(node: Node, text: str) -> bool:
    """
    Return whether a line of research or of a visited page, or one worded after it, tells what has faded.
    """
    if node.source_type not in _AGING:
        return False
    same = [line for line in node.items if line.text == text]
    return any(map(has_faded, same or [line for line in node.items if line.content_type == claim_type(text)]))


def node_caption(node: Node, now: datetime) -> str:
    """Return the caption of a node wherever a model sees its lines: the words of its id, and its age."""
    return f"{node.id.replace(':', ' ')} {freshness(node, now)}"


def line_heading(line: Line, above: str) -> str:
    """
    Return what a line stands below, without what its own text says: its number in a list, and its beginning.

    Args:
        line: Any line.
        above: What it stands below: its `above` or, within its node, its `heading`.

    >>> line_heading(Line("Todo: Paint the wall.", number=2), "House. Rooms. Todo 2")
    'House. Rooms'
    """
    if line.number is not None:
        above = above.removesuffix(f" {line.number}")
    pieces = [piece.strip() for piece in one_line(above).rstrip(".:").split(". ")]
    return ". ".join(piece for piece in pieces if piece and not line.text.startswith(piece))


def numbered_text(line: Line) -> str:
    """
    Return the text of a line, behind its number if it is one of a numbered list.

    >>> numbered_text(Line("Paint the wall.", number=2)), numbered_text(Line("White."))
    ('2. Paint the wall.', 'White.')
    """
    return line.text if line.number is None else f"{line.number}. {line.text}"


def node_label(node: Node, now: datetime) -> str:
    parts = ["note" if kind_of(node.id) is NodeKind.KNOWLEDGE else node.source_type.replace("_", " ")]
    if node.at:
        parts += [f"{node.at:%Y-%m-%d}", _age(node.at, now)]
    if is_stale(node, now):
        parts.append("stale")
    if node.quality is not None:
        parts.append(f"quality {node.quality:.2f}")
    return ", ".join([*parts, f"confidence {node.confidence:.2f}"])


def _age(at: datetime, now: datetime) -> str:
    hours = age_days(at, now) * _HOURS_A_DAY
    return f"{hours:.1f}h ago" if hours < 2 * _HOURS_A_DAY else f"{hours / _HOURS_A_DAY:.0f} days ago"


def is_stale(node: Node, now: datetime) -> bool:
    return node.expires_at is not None and node.expires_at <= now


def answer_items(answer: Section | None) -> list[GatheredItem]:
    """The items of §5, as its `_meta` holds them; [] if there is no §5 or it answers nothing."""
    items: Any = answer.meta.get("items", []) if answer else []
    return [decode(GatheredItem, item, where="§5") for item in items]


@dataclass(frozen=True)
class ReadSection:
    section: GatheredSection  # as values, titles and types in S0's names
    is_old: bool  # whether it is of S1's form, which names no nodes
    lines: tuple[str, ...]  # the lines as they stand there, in the order of the section's items
    is_cut: bool  # whether something was cut from its lines
    faults: tuple[str, ...]  # what of `_meta` has an impossible form

    def pairs(self) -> Iterator[tuple[GatheredItem, str]]:
        return zip(self.section.items, self.lines, strict=True)


@dataclass
class _Part:
    title: str
    meta: Mapping[str, object] | None = None
    lines: list[str] = field(default_factory=list)


def read_gathered(section: Section) -> list[ReadSection]:
    """
    The titled parts of a §2 in order; lines before the first title are a part without one. Parts of the older
    form (S1 §5.2) that only list sources or judge the whole are left out.
    """
    return [_read(part) for part in _parts(section) if part.title not in _WITHOUT_NODES]


def _parts(section: Section) -> Iterator[_Part]:
    part = _Part("")
    for block in section.blocks:
        if isinstance(block, Meta):
            part.meta = block.values
            continue
        for line in block.text.split("\n"):
            if line.startswith("### "):
                if part.title or part.lines:
                    yield part
                part = _Part(line.removeprefix("### ").strip())
            elif line.strip() and line.strip() != "---":
                part.lines.append(line)
    if part.title or part.lines:
        yield part


def _read(part: _Part) -> ReadSection:
    meta = part.meta or {}
    is_old = "type" in meta and "source_type" not in meta
    faults: list[str] = []
    node_ids = _texts(meta, "node_ids", faults)
    raw_type = meta.get("source_type") if not is_old else _OLD_TYPES.get(str(meta.get("type")))
    kinds = tuple(map(str, raw_type)) if isinstance(raw_type, list | tuple) else str(raw_type or "")
    average = meta.get("confidence_avg")
    if average is not None and (isinstance(average, bool) or not isinstance(average, int | float)):
        faults.append(f"confidence_avg is {average!r}, no number")
        average = None
    title = _OLD_TITLES.get(part.title, part.title)
    if part.meta is None and not (title == CONSTRAINTS and part.lines == ["- none stated"]):
        faults.append("has no _meta")
    if title == CONSTRAINTS and isinstance(kinds, tuple) and len(kinds) == 1:
        kinds = kinds[0]
    item_lines = (
        [] if is_old else [(_item(line, node_ids, title), line) for line in part.lines if _says(line)]
    )
    item_lines = [(item, line) for item, line in item_lines if item.text]
    return ReadSection(
        GatheredSection(
            title=title,
            source_type=kinds,
            items=tuple(item for item, _ in item_lines),
            confidence_avg=None if average is None else float(average),
            node_ids=node_ids,
            provenance=_texts(meta, "provenance", faults),
        ),
        is_old,
        tuple(line for _, line in item_lines),
        any(CUT_MARK in line for line in part.lines),
        tuple(faults),
    )


def _says(line: str) -> bool:
    return line.strip() not in ("- none stated", CUT_MARK, f"- {CUT_MARK}")


def _item(line: str, node_ids: tuple[str, ...], title: str) -> GatheredItem:
    """A line with the nodes of its marks; one without marks cites all of the part, a constraint nothing."""
    match = _LINE.match(line)
    numbers = [int(number) for number in re.findall(r"\d+", match["marks"])] if match else []
    if match and numbers and all(1 <= number <= len(node_ids) for number in numbers):
        return GatheredItem(_bare(match["text"]), tuple(node_ids[number - 1] for number in numbers))
    plain = _PLAIN.match(line)
    text = _bare(plain[1] if plain else line)
    return GatheredItem(text, () if title == CONSTRAINTS else node_ids)


def _bare(text: str) -> str:
    return unescape_item(" ".join(text.replace(CUT_MARK, " ").split()))


def _texts(meta: Mapping[str, object], key: str, faults: list[str]) -> tuple[str, ...]:
    value = meta.get(key) or ()
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        faults.append(f"{key} is no list of texts")
        return ()
    return tuple(map(str, value))


NO_CONSTRAINTS = f"section {CONSTRAINTS} is missing"
UNKNOWN_NODE = "is no loaded node"
"""How the issue of a node that is not there ends."""
_TOLERANCE = 0.01 + 1e-9


def check_sections(
    sections: Sequence[GatheredSection], nodes: Mapping[str, Node], now: datetime, *, query: str
) -> list[str]:
    """Return what is wrong with §2 as built or read, one sentence each (S0 §4.1.1, §4.3, §6; design §4)."""
    issues: list[str] = []
    seen: set[str] = set()
    for section in sections:
        place = f"section {section.title}"
        if section.title not in (*TITLES.values(), CONSTRAINTS):
            issues.append(f"{place}: not a canonical title; use {', '.join((*TITLES.values(), CONSTRAINTS))}")
        if section.title in seen:
            issues.append(f"{place}: there is more than one")
        seen.add(section.title)
        issues += [f"{place}: {issue}" for issue in _node_issues(section, nodes)]
        issues += [
            f"{place}: {issue}"
            for item in section.items
            for issue in _item_issues(section, item, nodes, query, now)
        ]
        issues += [f"{place}: {issue}" for issue in _confidence_issues(section, nodes, now)]
    return issues if CONSTRAINTS in seen else [*issues, NO_CONSTRAINTS]


def _node_issues(section: GatheredSection, nodes: Mapping[str, Node]) -> list[str]:
    issues = [f"{node_id} {UNKNOWN_NODE}" for node_id in section.node_ids if node_id not in nodes]
    loaded_nodes = [nodes[node_id] for node_id in section.node_ids if node_id in nodes]
    wanted = tuple(node.provenance for node in loaded_nodes)
    if not section.provenance:
        issues.append("has no provenance")
    if section.title == CONSTRAINTS:
        named = {node.id: node.provenance for node in loaded_nodes}  # S0 §4.2 names a node by its id
        provenance = {named.get(source, source) for source in section.provenance}
        missing = [source for source in (RAW_QUERY, *wanted) if source not in provenance]
        foreign = sorted(provenance - {RAW_QUERY, *wanted})
        if section.provenance:
            issues += [f"provenance lacks {source}" for source in dict.fromkeys(missing)]
        issues += [f"provenance {source} is that of none of its nodes" for source in foreign]
        return issues
    if not section.items:
        issues.append("has no line")
    if not section.node_ids:
        issues.append("names no node")
    cited = {node_id for item in section.items for node_id in item.node_ids}
    issues += [
        f"names {node_id}, which no line cites" for node_id in section.node_ids if node_id not in cited
    ]
    if section.provenance and len(loaded_nodes) == len(section.node_ids) and section.provenance != wanted:
        issues.append(f"provenance is {', '.join(section.provenance)}, its nodes are in {', '.join(wanted)}")
    if not isinstance(section.source_type, str):
        issues.append(f"has more than one source type: {', '.join(section.source_type)}")
        return issues
    if section.title in TITLES.values() and TITLES.get(section.source_type) != section.title:  # type: ignore[call-overload]
        issues.append(f"its source_type is {section.source_type}")
    issues += [
        f"{node.id} is of source type {node.source_type} and belongs into {TITLES[node.source_type]}"
        for node in loaded_nodes
        if node.source_type != section.source_type
    ]
    return issues


def _item_issues(
    section: GatheredSection, item: GatheredItem, nodes: Mapping[str, Node], query: str, now: datetime
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
        wrong = [claim.text for claim in check_evidence(item.text, sources, about=_names_of(others))]
        return [f"{', '.join(wrong)} in {item.text!r:.60} is not in the query"] if wrong else []
    live = [line.text for node in cited for line in node.items if line.confidence >= EXPIRED_BELOW]
    all_texts = [line.text for node in cited for line in node.items]
    about = [query, *_names_of(cited)]
    names = ", ".join(item.node_ids)
    captions = [node_caption(node, now) for node in cited]
    near_texts = [node.text_near(item.text) for node in cited]
    missing = check_evidence(item.text, [*near_texts, *captions], about=about)
    if missing:
        return [f"{', '.join(claim.text for claim in missing)} in {item.text!r:.60} is not in {names}"]
    if (
        check_evidence(item.text, [near_text(live, item.text), *captions], about=about)
        or not live
        or (item.text in all_texts and item.text not in live)
    ):
        return [f"{item.text!r:.60} is expired in {names}"]
    return []


def _names_of(nodes: Sequence[Node]) -> list[str]:
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
