"""The draft of §2: lines on offer, and what 2.2 made of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panda.documents.questions import asks_for_several, named_turns
from panda.documents.sentences import one_line
from panda.memory.gathered import DraftSection, GatheredItem, draft_of_lines
from panda.memory.loading import LoadedDocument, is_usable
from panda.memory.nodes import Item, Node
from panda.phases.evidence_spans import title_of
from panda.recipes.choices import Option
from panda.retrieval.overlap import share_of_words
from panda.retrieval.rules import asks_for_details

_MOST_LINES = 40
_SPEC = "product_spec"
_MOST_TURNS = 3
_TURN_WITHIN = 0.25
"""How far below the best of the turns another may lie."""
_PLAN_WEIGHT = 0.3
"""What 2.1 found of a turn counts beside its best line and its share of the index's best score."""
_SUFFICES = 1.1
"""Score with which 2.5 takes a line for an answer; lines of sources that 2.1 left out need it."""


@dataclass(frozen=True)
class Line:
    """One line that may go into §2."""

    option: Option
    """As the choice sees it."""
    node: Node
    """Where it comes from."""
    item: Item
    """The line."""


@dataclass(frozen=True)
class Draft:
    """What 2.2 wants §2 to hold."""

    sections: tuple[DraftSection, ...]
    """Titled lines."""
    options: tuple[Option, ...]
    """The lines that were chosen from those on offer; () if the model worded its own."""


def line_options(query: str, documents: Sequence[LoadedDocument]) -> list[Line]:
    """
    The lines of the documents; where a turn repeats another source, the source is kept.

    Args:
        query: The user's query.
        documents: Loaded and fitted.

    Returns:
        At most 40 lines in the order of the documents: one of each document, then those with most words of
        the query, of equals the earlier.
    """
    found: list[Line] = []
    for document in documents:  # turns come last
        for item in document.items:
            prior = share_of_words(query, item.text)
            title = title_of(document.node.id, query)
            option = Option(f"s{len(found) + 1}", item.text, (document.node.id,), prior, title)
            found.append(Line(option, document.node, item))
    unique: dict[str, Line] = {}
    for line in found:
        unique.setdefault(line.item.text, line)
    ranked = sorted(unique.values(), key=lambda line: -line.option.prior)
    first = {line.node.id: line for line in reversed(ranked)}
    kept = [*first.values(), *(line for line in ranked if first[line.node.id] is not line)][:_MOST_LINES]
    return sorted(kept, key=lambda line: int(line.option.id[1:]))


def draft_of(
    query: str,
    values: Mapping[str, Any],
    lines: Sequence[Line],
    plan: Mapping[str, Any],
    scores: Mapping[str, float],
    further: Collection[str] = (),
) -> Draft:
    """
    The draft that a reply of 2.2 stands for.

    Args:
        query: The user's query.
        values: The reply: `sections` by a model that writes, else `lines`, ids of those on offer.
        lines: The lines on offer.
        plan: The retrieval plan.
        scores: How the lines were scored, by id; {} if they were not.
        further: Nodes that the plan left out and that are looked at all the same.

    Returns:
        The draft with what belongs into it by rule: a line of every candidate that the plan chose for
        itself, all details of a page when the query asks for them, and the whole list where a chosen line
        introduces one, or belongs to one and the query asks for all there are. Of the turns at most three
        that tell most, if the lines were scored.
    """
    best = _best_lines(lines, scores)
    if "sections" in values:
        written = tuple(_written(section) for section in values["sections"])
        cited = {node_id for part in written for item in part.items for node_id in item.node_ids}
        missing = [line for line in _by_rule(query, lines, plan, best) if line.node.id not in cited]
        extra = draft_of_lines([(line.node, line.item) for line in missing])
        return Draft(_merged([*written, *extra]), ())
    by_id = {line.option.id: line for line in lines}
    chosen = [
        line
        for line in (by_id[id_] for id_ in values["lines"])
        if line.node.id not in further or scores.get(line.option.id, _SUFFICES) >= _SUFFICES
    ]
    passed = _passed_over(plan, best, scores)
    chosen = [line for line in chosen if line.node.id not in passed]
    shown = {line.node.id for line in chosen}
    wanted = [str(one["node_id"]) for one in plan["candidates"] if one["chosen"]]
    wanted = [node_id for node_id in wanted if node_id not in passed]
    chosen += [best[node_id] for node_id in wanted if node_id in best and node_id not in shown]
    chosen += [line for line in _by_rule(query, lines, plan, best, shown) if line not in chosen]
    several = asks_for_several(query)
    shown_lines = [(line.node, line.item) for line in chosen]
    for node, item in list(shown_lines):
        usable = [one for one in item.whole_list(node.items, as_member=several) if is_usable(one)]
        shown_lines += [(node, one) for one in usable if (node, one) not in shown_lines]
    sections = draft_of_lines(shown_lines)
    return Draft(tuple(sections), tuple(line.option for line in chosen))


def evidence_of(query: str, draft: Draft) -> list[Option]:
    """The lines of a draft, as evidence that 2.5 looks at."""
    items = [item for section in draft.sections for item in section.items]
    return list(draft.options) or [
        Option(f"d{n}", item.text, item.node_ids, share_of_words(query, item.text))
        for n, item in enumerate(items, 1)
    ]


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


def _best_lines(lines: Sequence[Line], scores: Mapping[str, float]) -> dict[str, Line]:
    """The line of each node that fits the query best."""
    ranked = sorted(lines, key=lambda line: (scores.get(line.option.id, 0.0), line.option.prior))
    return {line.node.id: line for line in ranked}


def _passed_over(plan: Mapping[str, Any], best: Mapping[str, Line], scores: Mapping[str, float]) -> set[str]:
    """The turns that the plan chose for a look at their lines, and that tell less than the best of them."""
    turns = [one for one in plan["candidates"] if str(one["node_id"]).startswith("turn:")]
    top = max((one["index"] for one in turns), default=0.0)
    values = {
        str(one["node_id"]): scores[best[one["node_id"]].option.id]
        + (max(0.0, one["index"]) / top if top > 0 else 0.0)
        + _PLAN_WEIGHT * (one["score"] or 0.0)
        for one in turns
        if one["chosen"] and one["by"] == "model" and one["node_id"] in best
        if best[one["node_id"]].option.id in scores
    }
    bar = max(values.values(), default=0.0) - _TURN_WITHIN
    ranked = sorted((one for one in values if values[one] >= bar), key=lambda one: -values[one])
    return set(values) - set(ranked[:_MOST_TURNS])


def _by_rule(
    query: str,
    lines: Sequence[Line],
    plan: Mapping[str, Any],
    best: Mapping[str, Line],
    shown: Collection[str] = (),
) -> list[Line]:
    """A line of what a rule put into the plan or the query names; details of the page it asks about."""
    ruled = [str(one["node_id"]) for one in plan["candidates"] if one["by"] == "always_include"]
    ruled = list(dict.fromkeys([*ruled, *(f"turn:{number}" for number in named_turns(query))]))
    found = [best[node_id] for node_id in ruled if node_id in best and node_id not in shown]
    if asks_for_details(query):
        pages = {line.node.id: share_of_words(query, line.node.title) for line in lines if _is_detail(line)}
        pages |= dict.fromkeys((node_id for node_id in ruled if node_id in pages), 1.0)
        top = max(pages.values(), default=0.0)
        found += [line for line in lines if _is_detail(line) and top and pages[line.node.id] == top]
    return found


def _is_detail(line: Line) -> bool:
    return line.node.source_type == "visit_record" and line.item.content_type == _SPEC
