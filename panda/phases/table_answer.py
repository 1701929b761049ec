"""What tables and lists of notes say to a question: some rows, a count, a sum, the first by a value, days."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from panda.language.words import split_terms
from panda.memory.reader import NodeReader, find_node
from panda.phases.answer_text import MOST_ITEMS
from panda.phases.running_turn import Turn
from panda.retrieval.candidates import planned_nodes
from panda.retrieval.note_tables import NoteTable, read_tables
from panda.retrieval.operations import OPERATIONS, Operation
from panda.retrieval.passages import PassageRanker, RankedPassage
from panda.retrieval.table_questions import Question, TableAnswer, answer_from_table, rank_tables
from panda.session.registry import uses_excluded
from panda.store.node_id import NodeKind, kind_of
from panda.store.reason import Reason
from panda.store.records import Computed, Line, RetrievalPlan

_LEAST = 0.35
"""Probability from which on a figure is worked out: the rows that it is of stand below it."""
_LEAST_ROW = 0.5
"""Probability from which on one row is picked out, as the largest or the next: the others are not shown."""
_SURELY_WORKED_OUT = 0.6
"""Probability from which on a table is used of which no line is among the closest passages."""
_LEAST_SHARE = 0.5
"""Least share of the query's words that such a table holds."""
_LEAST_COUNT_PROBABILITY = 0.1
"""Probability from which on the selected rows are counted; they are shown below the count in any case."""
_OF_ONE_ROW = ("days", "rows")
"""Operations that use the table of the closest passage; for others, tables are compared as a whole."""
_KINDS = (NodeKind.KNOWLEDGE, NodeKind.DOCUMENT)
_LEADS: Mapping[Operation, str] = {
    "count": "Count: ",
    "sum": "Together: ",
    "mean": "On average: ",
    "compare": "Difference: ",
    "days": "",
}


@dataclass(frozen=True)
class FromTable:
    """What a table answers, or that none of its rows meets the conditions of the question."""

    lines: tuple[Line, ...]
    is_absent: bool = False


def answer_from_tables(
    turn: Turn, ranked_passages: Sequence[RankedPassage], reader: NodeReader, ranker: PassageRanker
) -> FromTable | None:
    """
    Return what the table of the closest passages says to a query, or where it surely wants something worked
    out, the table that is closest as a whole; None where nothing is to be done with the rows of either.
    """
    goes_on = turn.analysis.content_reference is not None
    probabilities = ranker.read_operations(turn.query if goes_on else turn.meant) if ranked_passages else {}
    if not probabilities:
        return None
    operation = max(OPERATIONS, key=lambda name: probabilities[name] if name != "rows" else 0.0)
    if probabilities[operation] < (_LEAST if operation in _LEADS else _LEAST_ROW):
        operation = "rows"
    question = Question(turn.meant, operation, turn.context.front.created_at)
    if operation != "rows" and (from_list := _answer_from_shown(turn, question, reader, ranker)):
        return from_list
    nearest = rank_tables(question, _tables(turn, ranked_passages, reader), ranker.closeness)
    near = _by_passages(nearest, ranked_passages, keep_order=operation not in _OF_ONE_ROW)
    surely = probabilities[operation] >= _SURELY_WORKED_OUT
    if not near and operation not in _OF_ONE_ROW and surely:
        near = [table for table in nearest[:1] if question.share_in(table) >= _LEAST_SHARE]
    least_share = max(_LEAST_SHARE, ranked_passages[0].words)
    for table in near:
        answer = answer_from_table(question, table, ranker.closeness)
        if answer is None or not _is_meant(
            answer,
            ranked_passages,
            is_nearest=table is nearest[0],
            is_worked_out=surely
            and (
                table is nearest[0]
                or question.share_in(table) >= least_share
                or _names_only_row(question, answer)
            ),
        ):
            continue
        if answer.operation == "rows" and probabilities["count"] >= _LEAST_COUNT_PROBABILITY:
            counted = answer_from_table(replace(question, operation="count"), table, ranker.closeness)
            answer = counted or answer
        lines = tuple(_lines(answer)[:MOST_ITEMS])
        return FromTable(lines, is_absent=not lines)
    return None


def _answer_from_shown(
    turn: Turn, question: Question, reader: NodeReader, ranker: PassageRanker
) -> FromTable | None:
    """Return what is worked out of the rows of the last list, where a query refers to all of them."""
    listing = turn.carry.registry.listing
    referred = {ref for reference in turn.reading.references for ref in reference.refs}
    if not listing.is_list or not referred.issuperset(listing.refs) or listing.turn is None:
        return None
    node = find_node(reader, NodeKind.TURN.id(listing.turn))
    lines = node.items if node else ()
    listed_lines = {(line.origin, line.text) for line in lines}
    origins = [find_node(reader, id_) for id_ in dict.fromkeys(id_ for id_, _ in listed_lines if id_)]
    for table in (table for origin in origins if origin for table in read_tables(origin)):
        rows = tuple(row for row in table.rows if (row.line.node, row.line.text) in listed_lines)
        if len(rows) > 1:
            within = NoteTable(table.node, table.name, table.about, rows)
            if answer := answer_from_table(question, _without_excluded(turn, within), ranker.closeness):
                lines = tuple(_lines(answer)[:MOST_ITEMS])
                return FromTable(lines) if lines else None
    return None


def _tables(turn: Turn, ranked_passages: Sequence[RankedPassage], reader: NodeReader) -> list[NoteTable]:
    """Return the tables of the nodes of passages, then of the retrieval plan."""
    planned = planned_nodes(turn.folder.load(RetrievalPlan))
    ids = dict.fromkeys([*(ranked.passage.node_id for ranked in ranked_passages), *planned])
    nodes = [node for id_ in ids if kind_of(id_) in _KINDS and (node := find_node(reader, id_))]
    tables = [_without_excluded(turn, table) for node in nodes for table in read_tables(node)]
    return [table for table in tables if len(table.rows) > 1]


def _is_meant(
    table_answer: TableAnswer,
    ranked_passages: Sequence[RankedPassage],
    *,
    is_nearest: bool,
    is_worked_out: bool,
) -> bool:
    """
    Return whether the question is about this table.

    It is if the table has the closest line or that introduces it, or if something is surely worked out of it.
    Selected rows count if one of them is the closest line, or if several are from the closest table and one
    is shown; a single row is shown as a passage instead.
    """
    closest = ranked_passages[0].best
    table = table_answer.table
    is_head = closest.node == table.node.id and closest.heads == table.name
    has_closest = is_head or any(row.line.id == closest.id for row in table.rows)
    if not table_answer.rows:
        return has_closest
    if table_answer.operation != "rows" or table_answer.is_limited:
        return has_closest or (is_worked_out and table_answer.operation != "rows")
    if len(table_answer.rows) == 1 and table_answer.rows[0].line.form == "row":
        return False
    ids = {row.line.id for row in table_answer.rows}
    if ranked_passages[0].best.id in ids:
        return True
    return is_nearest and len(ids) > 1 and any(ranked.best.id in ids for ranked in ranked_passages)


def _names_only_row(question: Question, table_answer: TableAnswer) -> bool:
    """Return whether an answer is about the one row that a question names."""
    names = frozenset(split_terms(table_answer.rows[0].name)) if len(table_answer.rows) == 1 else frozenset()
    return bool(names & question.out_of_vocabulary) and names <= question.terms


def _by_passages(
    tables: Sequence[NoteTable], ranked_passages: Sequence[RankedPassage], *, keep_order: bool
) -> list[NoteTable]:
    """Return tables with a row that is the best line of a passage, in their order or that of the passages."""
    places = {ranked.best.id: place for place, ranked in reversed([*enumerate(ranked_passages)])}
    first = [
        min((places[row.line.id] for row in table.rows if row.line.id in places), default=None)
        for table in tables
    ]
    near = [(place, table) for place, table in zip(first, tables, strict=True) if place is not None]
    if not keep_order:
        near.sort(key=lambda pair: pair[0])
    return [table for _, table in near]


def _without_excluded(turn: Turn, table: NoteTable) -> NoteTable:
    rows = [row for row in table.rows if not uses_excluded([row.line.text], turn.present_carry)]
    return NoteTable(table.node, table.name, table.about, tuple(rows))


def _lines(table_answer: TableAnswer) -> list[Line]:
    """Return what was worked out, and the rows that it is of."""
    why = Reason.ADDED_UP if table_answer.value else Reason.MATCHES_VALUE
    rows = [structs.replace(row.line, why=(why,)) for row in table_answer.rows]
    if not table_answer.value:
        return rows
    figure = Computed(table_answer.value, table_answer.expression, tuple(line.id for line in rows))
    text = f"{_LEADS[table_answer.operation]}{_told(table_answer)}"
    node = table_answer.table.node.id
    rests_on = tuple(line.id for line in rows)
    return [Line(text, node=node, computed=(figure,), rests_on=rests_on, why=(Reason.SUM,)), *rows]


def _told(table_answer: TableAnswer) -> str:
    if table_answer.operation in ("sum", "mean", "compare"):
        return f"{table_answer.expression} = {table_answer.value}"
    if table_answer.operation == "days":
        return f"{table_answer.rows[0].name}: {table_answer.value}"
    return table_answer.value
