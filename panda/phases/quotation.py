"""Whole lines of the evidence that answer a query, with what belongs to them."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from panda.documents.context import ContextDocument, Phase
from panda.language.words import split_terms
from panda.memory.budget import is_usable
from panda.memory.gathered import answer_items
from panda.memory.node import Node, wanted_list
from panda.memory.reader import NodeReader
from panda.messages.list_items import terms_of
from panda.messages.questions import asked_step
from panda.phases.answer_text import MOST_ITEMS, list_name, without_doubles
from panda.phases.by_value import asks_by_value, by_value
from panda.phases.from_session import SessionAnswer, lists_of
from panda.phases.near_passages import near_passages, select_closest
from panda.phases.pages import OPENING, named_pages
from panda.phases.running_turn import Turn
from panda.phases.statements import told_since
from panda.phases.table_answer import answer_from_tables
from panda.phases.tool_outcome import is_undone, shortfall
from panda.phases.turn_evidence import (
    ClosestLines,
    gathered_lines,
    look_at,
    ordered_findings,
    reason,
    standing,
    tool_lines,
)
from panda.retrieval.passages import Passage, PassageRanker, RankedPassage, closest_items
from panda.retrieval.selection import Selection
from panda.session.registry import uses_excluded
from panda.store.node_id import NodeKind, kind_of
from panda.store.reason import Reason
from panda.store.records import Evidence, GatheredItem, Line

_MOST_CONTESTED = 2
_MAY_ANSWER = 0.3
"""Probability of the closest passages from which on the list that they belong to is read by its values."""
_OF_NAMED_PAGE = 0.2
"""Closeness from which on a line of a page that the query names answers it."""


@dataclass(frozen=True)
class AnswerParts:
    """What a reply consists of, beside what is said of the turn itself."""

    lines: Sequence[Line]
    read: Sequence[Line] = ()  # what was looked at for it, with what was left out
    leads: Mapping[GatheredItem, str] = field(default_factory=dict)  # what is said in front of a line
    lead: str = ""  # what is said in front of all
    note: str = ""  # what is said below
    closest: Sequence[RankedPassage] = ()  # what is shown where there are no lines
    is_quoted: bool = False  # whether its lines are quoted with what belongs to them


class LineQuoter:
    """Answers with whole lines of the evidence, and writes no word of its own."""

    def __init__(self, reader: NodeReader, closest: ClosestLines, ranker: PassageRanker) -> None:
        self._reader = reader
        self._closest = closest
        self._ranker = ranker

    def look_at_evidence(self, turn: Turn, *, quotes: bool, refused: Collection[str] = ()) -> list[Line]:
        """Return what phase 2 and the tools of this turn offer, each with what leaves it out."""
        if turn.analysis.intent == "greeting":
            return []
        lines = [*gathered_lines(turn), *tool_lines(turn, self._reader)]
        return look_at(turn, lines, quotes=quotes, refused=refused)

    def quote(self, turn: Turn, of_session: SessionAnswer | None, *, reads_evidence: bool) -> AnswerParts:
        """
        Return the lines that answer, best first; where none does, only what is closest.

        Args:
            of_session: What the session itself answers, if anything.
            reads_evidence: Whether the evidence is looked at; it is not where the answer stands already.
        """
        is_by_value = asks_by_value(turn.query)
        if is_by_value and not (turn.reading.recap or turn.reading.turns):
            of_session = None
        is_list = of_session is not None and of_session.is_list
        is_settled = of_session is not None and not is_list
        rejected = rejected_items(turn)
        if is_settled or turn.reading.only_tells or (is_undone(turn) and not is_by_value):
            reads_evidence = False
        read = []
        if reads_evidence:
            read = self.look_at_evidence(turn, quotes=True, refused={item.text for item in rejected})
        offered = self._closest.scored(turn.meant, standing(read))
        read = [*offered, *(line for line in read if line.left_out)]
        selection = self._select(turn, offered)
        nothing = AnswerParts((), read, closest=selection.passages, is_quoted=True)
        lines = self._answering_lines(turn, selection, offered, is_list=is_list)
        if lines is None:
            return nothing
        if turn.reading.mood == "orders" and turn.mode == "chat" and shortfall(turn):
            # What was ordered could not be done: stored lines are at most the closest.
            return nothing if selection.is_sure else dataclasses.replace(nothing, closest=())
        lines = [*contested_lines(turn, lines), *lines]
        if of_session and not lines:
            quoted_lines = without_doubles(without_rejected(rejected, of_session.lines))
            lead = of_session.left_out if quoted_lines == [*of_session.lines] else ""
            return dataclasses.replace(nothing, lines=quoted_lines, leads=of_session.leads, lead=lead)
        lines = without_doubles(without_rejected(rejected, lines))
        if any(Reason.FROM_DOCUMENT in line.why for line in lines):
            names = ", ".join(document.name for document in turn.documents)
            return dataclasses.replace(nothing, lines=lines, lead=f"Closest in {names}, word for word:")
        if not lines:
            return nothing
        since = told_since(turn, lines, self._reader, self._closest)
        cited_items = {line.item for line in lines}
        quoted_lines = [line for line in since.lines if line.item in cited_items or line.item not in rejected]
        return dataclasses.replace(nothing, lines=quoted_lines, leads=since.leads)

    def _answering_lines(
        self, turn: Turn, selection: Selection, offered: Sequence[Line], *, is_list: bool
    ) -> Sequence[Line] | None:
        """
        Return the lines that answer: rows of a table or list by their values, else what is closest; None
        where a table has the row but not the value.

        Args:
            is_list: Whether the session answers with a list, which the evidence only adds to where a document
                or a table does.
        """
        chosen = self._closest_lines(turn, selection, offered)
        table = answer_from_tables(turn, selection.passages, self._reader, self._ranker)
        if table is not None and table.is_absent and not is_list:
            return None
        if table is not None and table.lines:
            return table.lines
        if is_list:
            return ()
        may_answer = bool(chosen) or selection.probability >= _MAY_ANSWER
        rows = by_value(turn, offered, self._reader, answered=may_answer) if offered else []
        return rows or chosen

    def _closest_lines(self, turn: Turn, selection: Selection, offered: Sequence[Line]) -> list[Line]:
        """Return the lines of documents, else of passages, else of what is referred to or was found."""
        if of_documents := [line for line in offered if Reason.FROM_DOCUMENT in line.why]:
            return of_documents
        if selection.is_sure and (of_passages := self._of_passages(turn, selection, offered)):
            return of_passages
        if named := _of_references(turn, offered):
            return named
        found_ids = ordered_findings(turn, turn.steps())
        return [reason(line, Reason.FOUND_AS_ORDERED) for line in offered if line.node in found_ids]

    def _select(self, turn: Turn, offered: Sequence[Line]) -> Selection:
        """Return what answers of the passages of phase 2 and of what tools of this turn claimed."""
        if named := _of_named_pages(turn, offered):
            ranked = self._ranker.rank(turn.meant, [Passage((line,)) for line in named])
            selection = select_closest(turn.meant, ranked, self._ranker)
            return dataclasses.replace(selection, is_sure=ranked[0].closeness >= _OF_NAMED_PAGE)
        record = turn.folder.find(Evidence)
        ranked = near_passages(record, offered) if record else []
        gathered = {line.id for near in ranked for line in near.passage.lines}
        claimed = [line for line in offered if Reason.CLAIMED_BY_TOOL in line.why and line.id not in gathered]
        if claimed:
            passages = [*(near.passage for near in ranked), *(Passage((line,)) for line in claimed)]
            ranked = self._ranker.rank(turn.meant, passages)
        return select_closest(turn.meant, ranked, self._ranker)

    def _of_passages(self, turn: Turn, chosen_passages: Selection, offered: Sequence[Line]) -> list[Line]:
        """
        Return the lines of passages that answer, passage by passage; of a list that is asked for as a whole,
        or by a step or a part of it, the lines asked for.
        """
        first = chosen_passages.passages[0]
        best = [
            reason(near.best, Reason.ANSWERS) for near in chosen_passages.passages if list_name(near.best)
        ]
        listed = self._with_lists(turn, best, offered)
        lines: dict[str, Line] = {}
        listed_names: set[str] = set()
        if {line.id for line in listed} != {line.id for line in best}:
            lines = {line.id: line for line in listed}
            listed_names = {list_name(line) for line in listed}
        for near in chosen_passages.passages:
            for line in _meant_lines(turn, near.passage):
                if list_name(line) not in listed_names:
                    why = Reason.ANSWERS if near is first else Reason.IN_PASSAGE
                    lines.setdefault(line.id, reason(line, why))
        return [*lines.values()]

    def _with_lists(self, turn: Turn, chosen: Sequence[Line], offered: Sequence[Line]) -> list[Line]:
        """The chosen lines, each with what belongs to it: all of a page, or of its list what is asked for."""
        lines: dict[str, Line] = {}
        for line in chosen:
            together = [line]
            if turn.reading.details and kind_of(line.node) is NodeKind.VISIT:
                together += [other for other in offered if other.node_ids == line.node_ids]
            elif list_name(line):
                listed = [other for other in chosen if list_name(other) == list_name(line)]
                together = self._of_list(turn, line, listed, is_alone=len(chosen) == 1)
            for part in together:
                lines.setdefault(part.text, part)
        groups = groupby(lines.values(), key=lambda line: list_name(line) or line.text)
        return [line for _, group in groups for line in sorted(group, key=lambda line: line.line or 0)]

    def _of_list(self, turn: Turn, line: Line, listed: Sequence[Line], *, is_alone: bool) -> list[Line]:
        """
        Return what is quoted in the place of a line of a list: the whole list or the items that the query
        singles out, at most MOST_ITEMS; else the line itself.

        Args:
            listed: All chosen lines of that list.
            is_alone: Whether no line but this one is chosen.
        """
        query = turn.meant
        node = self._reader.load(line.node)
        are_several = len(listed) > 1
        wants_all = turn.reading.all or (are_several and _query_matches_no_single_item(query, listed, node))
        items = wanted_list(line, node.items, node.title, query, all_=wants_all)
        heads = [other for other in listed if other.heads]
        if not items and heads:
            items = wanted_list(heads[0], node.items, node.title, query, all_=wants_all)
        selected = _asked_for(query, line, node, items, are_several=are_several)
        wanted = items if selected is None else selected
        quoted = [
            part for part in wanted if is_usable(part) and not uses_excluded([part.text], turn.present_carry)
        ]
        most = MOST_ITEMS + sum(part.heads is not None for part in quoted)
        list_lines = [reason(part, Reason.LIST_OF_ANSWER) for part in quoted[:most]]
        if line.heads and not quoted and not is_alone:
            return []
        return (
            list_lines if selected or any(part.id == line.id for part in list_lines) else [line, *list_lines]
        )


def without_rejected(rejected: Sequence[GatheredItem], lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines that were not rejected; all of them, to be rejected again, if none is left."""
    return [line for line in lines if line.item not in rejected] or lines


def contested_lines(turn: Turn, lines: Sequence[Line]) -> list[Line]:
    """Contradictions that this turn's research found: an answer shows them whatever else it says."""
    contested = [
        Line(text, node=NodeKind.RESEARCH.id(step.data["topic"]), why=(Reason.CONTESTED,))
        for step in turn.steps()
        if step.tool == "internet.research" and step.status == "success"
        for text in step.data["conflicts"][:_MOST_CONTESTED]
    ]
    return [line for line in contested if line.item not in {other.item for other in lines}]


def _of_named_pages(turn: Turn, lines: Sequence[Line]) -> list[Line]:
    """Return the lines of pages that the query names and this turn has opened."""
    wanted = named_pages(turn)
    read = [s for s in turn.steps() if s.tool in OPENING and s.arguments.get("url") in wanted]
    nodes = {claim.node_id for step in read for claim in step.claims}
    return [line for line in lines if not nodes.isdisjoint(line.node_ids)]


def _naming_lines(turn: Turn, lines: Sequence[Line]) -> list[Line]:
    """Return the lines that name something that the query refers to."""
    refs = [ref for reference in turn.reading.references for ref in reference.refs]
    labels = [set(split_terms(entity.label)) for entity in turn.carry.registry.records if entity.ref in refs]
    return [line for line in lines if any(label <= set(split_terms(line.text)) for label in labels)]


def _meant_lines(turn: Turn, passage: Passage) -> Sequence[Line]:
    """Return of a list those lines that the query refers to, else the items closest to it."""
    if all(line.list_id for line in passage.lines) and (naming := _naming_lines(turn, passage.lines)):
        return naming
    return passage.lines if turn.reading.all else closest_items(passage)


def _of_references(turn: Turn, offered: Sequence[Line]) -> list[Line]:
    named = _naming_lines(turn, offered)
    return [
        reason(line, Reason.NAMES_WHAT_IS_MEANT)
        for line in sorted(named, key=lambda line: -(line.score or 0))[:1]
    ]


def _asked_for(
    query: str, line: Line, node: Node, whole: Sequence[Line], *, are_several: bool
) -> list[Line] | None:
    """
    Return what is quoted of a list in the place of one of its lines: the step that is asked for by its place;
    of a list that is wanted (*whole*), or of which several lines are quoted, the lines that the query singles
    out. None where the query singles nothing out.
    """
    own = (candidate for candidate in lists_of(node) if candidate.name in (line.list_id, line.heads))
    if (note_list := next(own, None)) is None:
        return None
    step = asked_step(query)
    if step is not None and not step.is_relative and note_list.is_numbered:
        wanted = step.number(0, len(note_list.lines))
        return [part for part in note_list.lines if part.number == wanted] or None
    asked = note_list.asked_for(query)
    is_asked = any(part.id == line.id for part in asked)
    if (
        note_list.is_numbered
        or len(asked) == len(note_list.lines)
        or not (whole or (are_several and is_asked))
    ):
        return None
    return [part for part in whole if part.heads is not None] + asked


def _query_matches_no_single_item(query: str, lines: Sequence[Line], node: Node) -> bool:
    terms_by_line = {
        line.id: terms_of(line.text.removeprefix(line.carried)) for line in node.items if line.list_id
    }
    listed = [
        terms_by_line[line.id] for line in node.items if line.list_id and line.list_id == lines[0].list_id
    ]
    everywhere = set.intersection(*listed) if listed else set()
    return not any(terms_of(query) & terms_by_line.get(line.id, set()) - everywhere for line in lines)


def rejected_items(turn: Turn) -> list[GatheredItem]:
    """Return the items of earlier attempts that §6 refused; the same text may come back with other nodes."""
    return [item for attempt in turn.superseded() for item in _refused_in(attempt)]


def _refused_in(attempt: ContextDocument) -> list[GatheredItem]:
    judgement = attempt.section(Phase.VALIDATOR)
    texts: Any = judgement.meta.get("rejected", []) if judgement else []
    return [item for item in answer_items(attempt.section(Phase.SYNTHESIZER)) if item.text in texts]
