"""The draft of §2: lines on offer, and what 2.2 made of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panda.choosing.decision import Option
from panda.documents.text import one_line
from panda.language.reading import Reading
from panda.memory.budget import LoadedDocument, is_usable
from panda.memory.gathered import DraftSection, GatheredItem, draft_of_lines
from panda.memory.node import Item, Node, wanted_list
from panda.retrieval.query_words import share_of_words

_MOST_LINES = 40
_MOST_LISTED = 12
_SPEC = "product_spec"
RateFunction = Callable[[Sequence[Option]], Sequence[Option]]
"""Maps lines to the same lines, rated by how close they are to a query."""


@dataclass(frozen=True)
class Line:
    """One line that may go into §2."""

    option: Option
    """As the choice sees it."""
    node: Node
    """Where it comes from."""
    item: Item
    """The line."""


def line_options(documents: Sequence[LoadedDocument], rate: RateFunction) -> list[Line]:
    """
    The lines of the documents; where a turn repeats another source, the source is kept.

    Args:
        documents: Loaded and fitted.
        rate: Gives the lines with what they stand below, and how close each is to the query.

    Returns:
        At most 40 lines in the order of the documents: one of each document, then the closest, of equals the
        earlier.
    """
    unique: dict[str, tuple[Node, Item]] = {}
    for document in documents:  # turns come last
        for item in document.items:
            unique.setdefault(item.text, (document.node, item))
    plain = [Option(f"s{n}", item.text, (node.id,)) for n, (node, item) in enumerate(unique.values(), 1)]
    found = [Line(one, *unique[one.text]) for one in rate(plain)]
    ranked = sorted(found, key=lambda line: -line.option.prior)
    first = {line.node.id: line for line in reversed(ranked)}
    kept = [*first.values(), *(line for line in ranked if first[line.node.id] is not line)][:_MOST_LINES]
    return sorted(kept, key=lambda line: int(line.option.id[1:]))


def draft_of(
    query: str, values: Mapping[str, Any], lines: Sequence[Line], plan: Mapping[str, Any], reading: Reading
) -> tuple[DraftSection, ...]:
    """
    The draft that a reply of 2.2 stands for.

    Args:
        query: The user's query.
        values: The reply: `sections` by a model that writes, else `lines`, ids of those on offer.
        lines: The lines on offer.
        plan: The retrieval plan.
        reading: What the query means.

    Returns:
        Titled lines, with what belongs into §2 by rule: a line of every candidate that a rule put into the
        plan, all details of a page when the query asks for them, and the whole list where a chosen line
        introduces one, or belongs to one and the query asks for all there are.
    """
    ranked = sorted(lines, key=lambda line: line.option.prior)
    best = {line.node.id: line for line in ranked}
    if "sections" in values:
        written = tuple(_written(section) for section in values["sections"])
        cited = {node_id for part in written for item in part.items for node_id in item.node_ids}
        missing = [line for line in _by_rule(query, reading, lines, plan, best) if line.node.id not in cited]
        extra = draft_of_lines([(line.node, line.item) for line in missing])
        return _merged([*written, *extra])
    by_id = {line.option.id: line for line in lines}
    chosen = [by_id[id_] for id_ in values["lines"]]
    shown = {line.node.id for line in chosen}
    chosen += [line for line in _by_rule(query, reading, lines, plan, best, shown) if line not in chosen]
    shown_lines = [(line.node, line.item) for line in chosen]
    for node, item in list(shown_lines):
        usable = [
            one
            for one in wanted_list(item, node.items, node.title, query, all_=reading.all)
            if is_usable(one)
        ]
        shown_lines += [(node, one) for one in usable[:_MOST_LISTED] if (node, one) not in shown_lines]
    return tuple(draft_of_lines(shown_lines))


def _written(section: Mapping[str, Any]) -> DraftSection:
    items = (
        GatheredItem(one_line(item["text"]), tuple(dict.fromkeys(item["node_ids"])))
        for item in section["items"]
    )
    return DraftSection(
        one_line(section["title"]), tuple(item for item in items if item.text), section.get("confidence_avg")
    )


def _merged(sections: Sequence[DraftSection]) -> tuple[DraftSection, ...]:
    """The sections, those that code added joined to the drafted ones of the same title."""
    merged: dict[str, DraftSection] = {}
    for section in sections:
        other = merged.get(section.title)
        items = (*other.items, *section.items) if other else section.items
        merged[section.title] = DraftSection(
            section.title, tuple(dict.fromkeys(items)), None if other else section.confidence_avg
        )
    return tuple(merged.values())


def _by_rule(
    query: str,
    reading: Reading,
    lines: Sequence[Line],
    plan: Mapping[str, Any],
    best: Mapping[str, Line],
    shown: Collection[str] = (),
) -> list[Line]:
    """A line of what a rule put into the plan or the query names; details of the page it asks about."""
    ruled = [str(one["node_id"]) for one in plan["candidates"] if one["by"] == "always_include"]
    ruled = list(dict.fromkeys([*ruled, *reading.turns]))
    found = [best[node_id] for node_id in ruled if node_id in best and node_id not in shown]
    if reading.details:
        pages = {line.node.id: share_of_words(query, line.node.title) for line in lines if _is_detail(line)}
        pages |= dict.fromkeys((node_id for node_id in ruled if node_id in pages), 1.0)
        top = max(pages.values(), default=0.0)
        found += [line for line in lines if _is_detail(line) and top and pages[line.node.id] == top]
    return found


def _is_detail(line: Line) -> bool:
    return line.node.source_type == "visit_record" and line.item.content_type == _SPEC
