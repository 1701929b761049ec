"""
Questions about several things at once: the cheapest, the most, those within a bound, two side by side.

They are asked of all rows of a list, all claims of research or all pages that the closest lines belong to.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from panda.language.words import split_terms
from panda.memory.budget import is_usable
from panda.memory.node import Node
from panda.memory.reader import NodeReader, find_node
from panda.messages.comparisons import compares, judges, rows_meant
from panda.messages.mentions import within
from panda.phases.answer_text import MOST_ITEMS
from panda.phases.from_session import lists_of, name_of
from panda.phases.running_turn import Turn
from panda.phases.turn_evidence import score_of
from panda.retrieval.candidates import planned_nodes
from panda.retrieval.relevance import find_query_words
from panda.session.registry import uses_excluded
from panda.store.node_id import NodeKind, kind_of
from panda.store.reason import Reason
from panda.store.records import Line, RetrievalPlan

_WITHIN = 0.15  # how far behind the first line another one's list still counts
_FEW = 4  # so many things are compared where the query names none of them
_KINDS = (NodeKind.KNOWLEDGE, NodeKind.RESEARCH, NodeKind.VISIT)


@dataclass(frozen=True)
class _ValueRow:
    about: str  # what it stands under
    name: str  # what it is called
    text: str  # what is said of it
    lines: tuple[Line, ...]  # as an answer quotes it


def asks_by_value(query: str) -> bool:
    is_bound = within(query, [query]) is not None
    return compares(query) or is_bound or rows_meant(query, []) is not None


def by_value(turn: Turn, offered: Sequence[Line], reader: NodeReader, *, answered: bool) -> list[Line]:
    """
    The rows that a question means by their values or sets side by side, of the first group that can be
    compared; else all of the group that the two closest lines belong to. Unless the closest line has
    *answered*, only things that the query names are compared, and a list that it names is told whole where no
    amount says what it wants (the nicest).
    """
    query = turn.meant
    is_comparison = compares(query)
    ranked = sorted(offered, key=score_of, reverse=True)
    closest = [line for line in ranked if score_of(line) >= score_of(ranked[0]) - _WITHIN]
    if not asks_by_value(query) or not (answered or is_comparison or judges(query)):
        return []
    asked = {term for word in find_query_words(f"{turn.query} {query}") for term in split_terms(word)}
    whole: list[Line] = []
    for place, rows in enumerate(_groups(turn, closest, reader, is_comparison=is_comparison)):
        meant = _named(asked, rows, every=answered) if is_comparison else _ranked(query, asked, rows)
        lines = [line for row in meant for line in row.lines][:MOST_ITEMS]
        about = {term for row in rows for term in split_terms(f"{row.about} {row.name} {row.text}")}
        is_named = not asked.isdisjoint(about)
        if lines and (len(meant) < len(rows) or is_comparison) and (not place or is_named):
            why = Reason.COMPARED if is_comparison else Reason.MATCHES_VALUE
            if is_comparison:
                lines = _side_by_side(meant)
            return [replace(line, why=(why,)) for line in lines]
        is_closest = sum(line.text == near.text for near in closest[:2] for line in lines) > 1
        if not place and is_closest and (answered or is_named):
            whole = [replace(line, why=(Reason.CLOSEST_LIST,)) for line in lines]
    return whole


def _ranked(query: str, asked: set[str], rows: Sequence[_ValueRow]) -> list[_ValueRow]:
    meant = rows_meant(query, [row.text for row in rows]) or ()
    if len(meant) < len(rows):  # they can be compared
        rows = _holding(asked, rows)
        meant = rows_meant(query, [row.text for row in rows]) or ()
    return [rows[at] for at in meant]


def _groups(
    turn: Turn, closest: Sequence[Line], reader: NodeReader, *, is_comparison: bool
) -> Iterator[list[_ValueRow]]:
    plan = turn.folder.load(RetrievalPlan)
    planned = planned_nodes(plan)
    if is_comparison:  # of two that are named one may be all that is close
        planned += [
            node_id for node_id in planned_nodes(plan, chosen=False) if kind_of(node_id) is NodeKind.VISIT
        ]
    ids = dict.fromkeys([*(line.node for line in closest), *planned])
    nodes = [node for id_ in ids if kind_of(id_) in _KINDS and (node := find_node(reader, id_))]
    texts = {line.text for line in closest}
    near = list[list[_ValueRow]]()
    others = list[list[_ValueRow]]()
    for node in nodes:
        lists = lists_of(node) if node.source_type == "fact" else ()
        for note_list in lists:
            rows = [
                _ValueRow(note_list.about, name_of(line), line.text.removeprefix(line.carried), (line,))
                for line in note_list.lines
            ]
            heads = (line for line in node.items if line.heads == note_list.name)
            list_texts = {line.text for line in (*heads, *note_list.lines)}
            (others if texts.isdisjoint(list_texts) else near).append(rows)
        if node.source_type == "research_cache":
            claims = [line for line in node.items[1:] if is_usable(line)]
            others.append([_ValueRow(node.title, line.text, line.text, (line,)) for line in claims])
    pages = [node for node in nodes if node.source_type == "visit_record"]
    others.insert(0 if is_comparison else len(others), [_page(node, is_comparison) for node in pages])
    groups = [*near, *others]
    if is_comparison and len(pages) > 1:
        groups = [*others, *near]
    for group in groups:
        left = [row for row in group if row.text and not uses_excluded([row.text], turn.present_carry)]
        if len(left) > 1:
            yield left


def _page(node: Node, whole: bool) -> _ValueRow:
    fields = [line for line in node.items if is_usable(line) and line.text.startswith(f"{node.title}: ")]
    fields.sort(key=lambda line: line.content_type != "price")
    quoted = fields if whole else fields[:1]
    return _ValueRow("", node.title, "; ".join(line.text for line in quoted), tuple(quoted))


def _named(asked: set[str], rows: Sequence[_ValueRow], *, every: bool) -> list[_ValueRow]:
    """The rows that the query names by words of their own; with *every* all of a few where it names none."""
    counts = Counter(term for row in rows for term in set(split_terms(row.name)))
    apart = {term for term in asked if 0 < counts[term] < len(rows)}
    alone = {term for term in apart if counts[term] == 1} or apart
    named = [row for row in rows if alone.intersection(split_terms(row.name))]
    if len(named) > 1:
        return named
    return [*rows] if every and not apart and len(rows) <= _FEW else []


def _holding(asked: set[str], rows: Sequence[_ValueRow]) -> Sequence[_ValueRow]:
    """The rows with all words of the query by which rows differ: "with nvidia"; all where none has them."""
    terms = [set(split_terms(row.text)) for row in rows]
    apart = {term for term in asked if 0 < sum(term in own for own in terms) < len(rows)}
    return [row for row, own in zip(rows, terms, strict=True) if apart <= own] or rows


def _side_by_side(rows: Sequence[_ValueRow]) -> list[Line]:
    if all(len(row.lines) == 1 for row in rows):
        return [row.lines[0] for row in rows][:MOST_ITEMS]
    rows_by_field = [
        {
            line.text.removeprefix(f"{row.name}: ").partition(" ")[0]: replace(line, above=row.name)
            for line in reversed(row.lines)
        }
        for row in rows
    ]
    shared = [
        field
        for field in reversed(rows_by_field[0])
        if field != "url" and all(field in own for own in rows_by_field)
    ]
    return [own[field] for field in shared for own in rows_by_field][:MOST_ITEMS]
