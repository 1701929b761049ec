"""
Questions about several things at once: the cheapest, the most, those within a bound, two side by side.

They are asked of all rows of a list, all claims of research or all pages that the closest lines belong to.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from panda.choosing.decision import Option
from panda.language.lists import shared_terms
from panda.language.ranks import adds_up, compares, judges, rows_meant, total_of
from panda.language.things import within
from panda.language.words import split_terms
from panda.memory.budget import is_usable
from panda.memory.node import Line, Node
from panda.memory.reader import NodeReader, find_node
from panda.phases.answer_text import MOST_ITEMS
from panda.phases.recall import lists_of, name_of
from panda.phases.turn import Turn
from panda.retrieval.candidates import planned_nodes
from panda.retrieval.relevance import find_query_words
from panda.session.registry import uses_excluded
from panda.store.records import GatheredItem, RetrievalPlan

_WITHIN = 0.15  # how far behind the first line another one's list still counts
_FEW = 4  # so many things are compared where the query names none of them
_KINDS = ("knowledge:", "research:", "visit:")


@dataclass(frozen=True)
class _Row:
    about: str  # what it stands under
    name: str  # what it is called
    text: str  # what is said of it
    items: tuple[GatheredItem, ...]  # the same as an answer quotes it


def asks_by_value(query: str) -> bool:
    return (
        compares(query)
        or adds_up(query)
        or within(query, [query]) is not None
        or rows_meant(query, []) is not None
    )


def ranked_items(
    turn: Turn, lines: Sequence[Option], reader: NodeReader, *, answered: bool
) -> list[GatheredItem]:
    """
    The rows that a question means by their values or sets side by side, of the first group that can be
    compared; else all of the group that the two closest lines belong to. Unless the closest line has
    *answered*, only things that the query names are compared, and a list that it names is told whole where no
    amount says what it wants (the nicest).
    """
    is_comparison = compares(turn.meant)
    if adds_up(turn.meant) and (added := _total(turn, lines, reader)):
        return added
    if not asks_by_value(turn.meant) or not (answered or is_comparison or judges(turn.meant)):
        return []
    asked = {term for word in find_query_words(f"{turn.query} {turn.meant}") for term in split_terms(word)}
    closest = _closest(lines)
    whole: list[GatheredItem] = []
    for place, rows in enumerate(_groups(turn, closest, reader, is_comparison=is_comparison)):
        if is_comparison:
            meant: Sequence[int] = _named(asked, rows, every=answered)
        else:
            meant = rows_meant(turn.meant, [row.text for row in rows]) or ()
            if len(meant) < len(rows):  # they can be compared
                held = _holding(asked, rows)
                ranked = rows_meant(turn.meant, [rows[at].text for at in held]) or ()
                meant = [held[at] for at in ranked]
        found = [item for at in meant for item in rows[at].items][:MOST_ITEMS]
        about = {term for row in rows for term in split_terms(f"{row.about} {row.name} {row.text}")}
        if found and (len(meant) < len(rows) or is_comparison) and (not place or asked & about):
            return _side_by_side([rows[at] for at in meant]) if is_comparison else found
        is_closest = sum(item.text == line.text for line in closest[:2] for item in found) > 1
        if not place and is_closest and (answered or asked & about):
            whole = found
    return whole


def _total(turn: Turn, lines: Sequence[Option], reader: NodeReader) -> list[GatheredItem]:
    groups = [*_groups(turn, _closest(lines), reader, is_comparison=False)]
    totals = [total_of(turn.meant, [row.text for row in rows]) for rows in groups]
    best = max(range(len(groups)), key=lambda at: one.named if (one := totals[at]) else -1, default=0)
    total = totals[best] if groups else None
    if total is None or not (total.named or shared_terms(turn.meant, groups[best][0].about)):
        return []
    items = [item for at in total.places for item in groups[best][at].items]
    nodes = dict.fromkeys(node_id for item in items for node_id in item.node_ids)
    return [GatheredItem(f"Together: {total.sum}", tuple(nodes)), *items][:MOST_ITEMS]


def _closest(lines: Sequence[Option]) -> list[Option]:
    ranked = sorted(lines, key=lambda line: -line.prior)
    return [line for line in ranked if line.prior >= ranked[0].prior - _WITHIN]


def _groups(
    turn: Turn, closest: Sequence[Option], reader: NodeReader, *, is_comparison: bool
) -> Iterator[list[_Row]]:
    plan = turn.folder.load(RetrievalPlan)
    planned = planned_nodes(plan)
    if is_comparison:  # of two that are named one may be all that is close
        planned += [one for one in planned_nodes(plan, chosen=False) if one.startswith("visit:")]
    ids = dict.fromkeys([*(line.node_ids[0] for line in closest), *planned])
    nodes = [node for id_ in ids if id_.startswith(_KINDS) and (node := find_node(reader, id_))]
    texts = {line.text for line in closest}
    near: list[list[_Row]] = []
    others: list[list[_Row]] = []
    for node in nodes:
        for one in lists_of(node) if node.source_type == "fact" else ():
            said = {
                *(line.text for line in node.items if line.heads == one.name),
                *(i.text for i in one.lines),
            }
            plain = [(line, line.text.removeprefix(line.carried)) for line in one.lines]
            rows = [_Row(one.about, name_of(line), text, _quoted(node, line)) for line, text in plain]
            (others if texts.isdisjoint(said) else near).append(rows)
        if node.source_type == "research_cache":
            claims = [item for item in node.items[1:] if is_usable(item)]
            others.append([_Row(node.title, one.text, one.text, _quoted(node, one)) for one in claims])
    pages = [node for node in nodes if node.source_type == "visit_record"]
    others.insert(0 if is_comparison else len(others), [_page(node, is_comparison) for node in pages])
    for group in (*others, *near) if is_comparison and len(pages) > 1 else (*near, *others):
        left = [row for row in group if row.text and not uses_excluded([row.text], turn.present_carry)]
        if len(left) > 1:
            yield left


def _page(node: Node, whole: bool) -> _Row:
    fields = [item for item in node.items if is_usable(item) and item.text.startswith(f"{node.title}: ")]
    fields.sort(key=lambda item: item.content_type != "price")
    kept = fields if whole else fields[:1]
    return _Row("", node.title, "; ".join(item.text for item in kept), _quoted(node, *kept))


def _quoted(node: Node, *lines: Line) -> tuple[GatheredItem, ...]:
    return tuple(GatheredItem(line.text, (node.id,)) for line in lines)


def _named(asked: set[str], rows: Sequence[_Row], *, every: bool) -> list[int]:
    """The rows that the query names by words of their own; with *every* all of a few where it names none."""
    counts = Counter(term for row in rows for term in set(split_terms(row.name)))
    apart = {term for term in asked if 0 < counts[term] < len(rows)}
    alone = {term for term in apart if counts[term] == 1} or apart
    found = [at for at, row in enumerate(rows) if alone.intersection(split_terms(row.name))]
    if len(found) > 1:
        return found
    return list(range(len(rows))) if every and not apart and len(rows) <= _FEW else []


def _holding(asked: set[str], rows: Sequence[_Row]) -> list[int]:
    """The rows with all words of the query by which rows differ: "with nvidia"; all where none has them."""
    terms = [set(split_terms(row.text)) for row in rows]
    apart = {term for term in asked if 0 < sum(term in own for own in terms) < len(rows)}
    return [at for at, own in enumerate(terms) if apart <= own] or list(range(len(rows)))


def _side_by_side(rows: Sequence[_Row]) -> list[GatheredItem]:
    if all(len(row.items) == 1 for row in rows):
        return [row.items[0] for row in rows][:MOST_ITEMS]
    told = [
        {item.text.removeprefix(f"{row.name}: ").partition(" ")[0]: item for item in reversed(row.items)}
        for row in rows
    ]
    shared = [field for field in reversed(told[0]) if field != "url" and all(field in one for one in told)]
    return [one[field] for field in shared for one in told][:MOST_ITEMS]
