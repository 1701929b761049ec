"""What tables and lists of notes say to a question: some rows, a count, a sum, the first by a value, days."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from panda.memory.reader import NodeReader, find_node
from panda.phases.answer_text import MOST_ITEMS
from panda.phases.turn import Turn
from panda.retrieval.candidates import planned_nodes
from panda.retrieval.operations import OPERATIONS, Operation
from panda.retrieval.passages import PassageRanker, RankedPassage
from panda.retrieval.table_questions import Question, TableAnswer, answer_from_table, rank_tables
from panda.retrieval.tables import Table, read_tables
from panda.session.registry import uses_excluded
from panda.store.node_id import NodeKind, kind_of
from panda.store.reason import Reason
from panda.store.records import Computed, Line, RetrievalPlan

_LEAST = 0.35
"""Probability from which on an operation is carried out."""
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
    """What a table answers, or that the table that a question is about has nothing of what it names."""

    lines: tuple[Line, ...]
    is_absent: bool = False


def answer_from_tables(
    turn: Turn, near: Sequence[RankedPassage], reader: NodeReader, ranker: PassageRanker
) -> FromTable | None:
    """
    Return what the table of the closest passage says to a query; None where that is no part of the table that
    is closest as a whole, or where nothing is to be done with its rows.
    """
    probabilities = ranker.read_operations(turn.meant)
    if not near or not probabilities:
        return None
    operation = max(OPERATIONS, key=lambda one: probabilities[one] if one != "rows" else 0.0)
    if probabilities[operation] < _LEAST:
        operation = "rows"
    question = Question(turn.meant, operation, turn.context.front.created_at)
    ids = dict.fromkeys(
        [*(one.passage.node_id for one in near), *planned_nodes(turn.folder.load(RetrievalPlan))]
    )
    nodes = [node for id_ in ids if kind_of(id_) in _KINDS and (node := find_node(reader, id_))]
    tables = [_without_excluded(turn, table) for node in nodes for table in read_tables(node)]
    ranked = rank_tables(question, [table for table in tables if len(table.rows) > 1], ranker.closeness)
    if not ranked or all(row.line.id != near[0].best.id for row in ranked[0].rows):
        return None
    found = answer_from_table(question, ranked[0], ranker.closeness)
    if found is None:
        return None
    if not found.rows:
        return FromTable((), is_absent=True)
    return FromTable(tuple(_lines(found)[:MOST_ITEMS]))


def _without_excluded(turn: Turn, table: Table) -> Table:
    rows = [row for row in table.rows if not uses_excluded([row.line.text], turn.present_carry)]
    return Table(table.node, table.name, table.about, tuple(rows))


def _lines(found: TableAnswer) -> list[Line]:
    """Return what was worked out, and the rows that it is of."""
    why = Reason.ADDED_UP if found.value else Reason.MATCHES_VALUE
    rows = [replace(row.line, why=(why,)) for row in found.rows]
    if not found.value:
        return rows
    figure = Computed(found.value, found.expression, tuple(line.id for line in rows))
    text = f"{_LEADS[found.operation]}{_told(found)}"
    node = found.table.node.id
    rests_on = tuple(line.id for line in rows)
    return [Line(text, node=node, computed=(figure,), rests_on=rests_on, why=(Reason.SUM,)), *rows]


def _told(found: TableAnswer) -> str:
    if found.operation in ("sum", "mean", "compare"):
        return f"{found.expression} = {found.value}"
    if found.operation == "days":
        return f"{found.rows[0].name}: {found.value}"
    return found.value
