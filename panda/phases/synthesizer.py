"""Phase 5: the answer, item by item, each item with the nodes it rests on (S3 §16.3)."""

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

from msgspec import structs

from panda.documents.context import ContextDocument, Meta, Phase, Section, Text
from panda.documents.evidence import check_evidence
from panda.documents.record_codec import encode
from panda.documents.safe_text import one_line
from panda.errors import MemoryNodeError, ReplyError
from panda.language.words import split_terms
from panda.memory.budget import is_usable
from panda.memory.gathered import answer_items, numbered_text
from panda.memory.node import Node, wanted_list
from panda.memory.reader import NodeReader, find_node
from panda.messages.list_items import terms_of
from panda.messages.questions import asked_step
from panda.messages.reading import Reading
from panda.messages.wording import without_greeting
from panda.phases.answer_text import MOST_ITEMS, cited_paragraphs, list_name, render_answer, without_doubles
from panda.phases.by_value import asks_by_value, by_value
from panda.phases.cited import Cited
from panda.phases.ending import decide_outcome
from panda.phases.from_session import lists_of, session_answer
from panda.phases.item_repair import repair_of
from panda.phases.kept import NOT_STORED, answer_to_forgetting
from panda.phases.near_passages import near_passages, select_closest
from panda.phases.pages import OPENING, named_pages
from panda.phases.phase_contract import PhaseResult
from panda.phases.recipe_request import ask
from panda.phases.running_turn import Turn
from panda.phases.statements import Noting, render_noted, told_since
from panda.phases.table_answer import answer_from_tables
from panda.phases.tool_outcome import (
    attachments,
    is_empty_search,
    is_undone,
    kept_again,
    render_response,
    render_unclaimed,
    shortfall,
)
from panda.phases.turn_evidence import (
    ClosestLines,
    as_options,
    chosen_lines,
    gathered_lines,
    label_lines,
    line_of,
    look_at,
    ordered_findings,
    reason,
    standing,
    tool_lines,
)
from panda.recipes.executor import RecipeExecutor
from panda.recipes.reply import Reply
from panda.recipes.schema import asks_at
from panda.retrieval.passages import Passage, PassageRanker, RankedPassage
from panda.retrieval.selection import Selection
from panda.session.registry import uses_excluded
from panda.steps.all_steps import ANSWER, TOOL_RESULTS
from panda.steps.inputs import AnswerInputs, quoted_items
from panda.steps.lazy import Lazy
from panda.steps.options import Option
from panda.steps.reply_contents import AnswerReply, ComputedReply
from panda.store.layout import RESPONSE_MD, step_name
from panda.store.node_id import NodeKind, kind_of
from panda.store.outcome import ANSWERED, TurnOutcome
from panda.store.reason import Reason
from panda.store.records import ClosestPassage, Computed, Evidence, GatheredItem, Line

_MOST_CONTESTED = 2
_MAY_ANSWER = 0.3
"""Probability of the closest passages from which on the list that they belong to is read by its values."""
_OF_NAMED_PAGE = 0.2
"""Closeness from which on a line of a page that the query names answers it."""
_ADDED = frozenset(("price", "quantity", "url"))
"""Kinds of claims that nobody can name as missing without having them from somewhere."""
_PASTED = (
    "Nothing of this text was kept: it reads as a document, and nothing is asked of it. To ask about it, hand"
    " it over beside a question, as in `panda turn --with FILE QUERY`; to have every turn find it, save it as"
    " a note below knowledge/."
)


@dataclass(frozen=True)
class _Answer:
    lines: Sequence[Line]
    read: Sequence[Line] = ()  # what was looked at for it, with what was left out
    leads: Mapping[GatheredItem, str] = field(default_factory=dict)  # what is said in front of a line
    lead: str = ""  # what is said in front of all
    note: str = ""  # what is said below
    closest: Sequence[RankedPassage] = ()  # what is shown where there are no lines
    is_quoted: bool = False  # whether its lines are quoted with what belongs to them


class Synthesizer:
    """Writes §5, response.md and what evidence.json offers."""

    number = Phase.SYNTHESIZER
    layer = "VOICE"

    def __init__(
        self,
        executor: RecipeExecutor,
        reader: NodeReader,
        closest: ClosestLines,
        ranker: PassageRanker,
        noting: Noting,
        left_by_forgetting: Callable[[Reading], Sequence[str]],
    ) -> None:
        self._executor = executor
        self._noting = noting
        self._closest = closest
        self._ranker = ranker
        self._reader = reader
        self._left_by_forgetting = left_by_forgetting

    def run(self, turn: Turn) -> PhaseResult:
        if turn.reading.is_about_memory:
            return self._of_memory(turn)
        noted = self._noting.of(turn)
        drafts = kept_again(turn)
        noted_lines = [
            Line(text, node=NodeKind.TURN.id(turn.turn)) for text in dict.fromkeys(n.text for n in noted)
        ]
        answer = self._answer(turn, noted_lines, drafts)
        own = {line.item for line in noted_lines}
        lines = [line for line in answer.lines if line.item not in own]
        node_ids = dict.fromkeys(node_id for line in (*noted_lines, *lines) for node_id in line.node_ids)
        provenance = {node_id: self._provenance(turn, node_id) for node_id in node_ids}
        lead = shortfall(turn)
        if noted:
            lead.append(render_noted(noted, " [1]"))
        if turn.reading.not_stored:
            lead.append(NOT_STORED)
        if answer.lead:
            lead.append(answer.lead)
        attached = [*attachments(turn), *drafts]
        outcome = decide_outcome(
            turn,
            is_answered=bool(lines or attached),
            is_noted=bool(noted),
            is_near=bool(answer.closest),
        )
        if not lines and outcome is not TurnOutcome.NOTED:
            lead.append(self._nothing(turn, drafts, outcome))
        rendered = render_answer(
            lines,
            {node_id: place.removesuffix("/manifest.json") for node_id, place in provenance.items()},
            left_out=self._left_out(turn, lines) if answer.is_quoted else {},
            lead=[*filter(None, lead)],
            leads=answer.leads,
            line_numbers=_line_numbers(lines, answer.read),
        )
        body = f"{rendered}\n\n{answer.note}" if answer.note else rendered
        meta = {
            "answered": outcome in ANSWERED,
            "outcome": outcome,
            "items": [encode(line.item) for line in (*noted_lines, *lines)],
            "node_ids": [*provenance],
            "provenance": [*provenance.values()],
        }
        if answer.note:
            meta["note"] = answer.note
        turn.folder.write_text(RESPONSE_MD, render_response(body, attached))
        is_shown = outcome in (TurnOutcome.UNSURE, TurnOutcome.NOT_DONE)
        closest = [self._closest_passage(turn, near) for near in answer.closest if is_shown]
        files = (structs.replace(_evidence(turn, lines, answer.read), closest=tuple(closest)),)
        return PhaseResult(Section(Phase.SYNTHESIZER, (Meta(meta), Text(body))), files, outcome=outcome)

    def _answer(self, turn: Turn, noted_lines: Sequence[Line], drafts: Sequence[str]) -> _Answer:
        """
        Return what the reply says; of a revision only what was refused is written anew. One that quotes what
        code would quote is composed like that, with what belongs to its lines.
        """
        items = [line.item for line in noted_lines]
        rejected = _rejected(turn)
        refused = {item.text for item in rejected}
        looked_at = [*self._look_at(turn, drafts, (), quotes=False), *noted_lines, *_step_lines(turn)]
        read = [
            line if line.place > 0 else structs.replace(line, place=-n) for n, line in enumerate(looked_at, 1)
        ]
        last = Cited(self._reader, turn)  # the answer before this one, with the lines that it cites
        repair = repair_of(turn, items)
        standing_lines = [last.line(item) for item in repair.standing] if repair else []
        if repair and repair.leaves_out:
            return _Answer(standing_lines, read, note=repair.left_out_note)
        offered = standing(read)
        guidance = repair.guidance if repair else _guidance(turn, refused)
        quoting = Lazy(lambda: self._quoted(turn, drafts))
        answered = session_answer(turn, self._reader)
        session = answered.lines if answered else ()
        if not session and all(line.item in items for line in offered):
            return quoting()  # there is nothing to answer from but what is told, which code confirms
        try:
            reply, sources = self._ask(turn, offered, session, quoting, guidance)
        except ReplyError as exc:
            if repair is None:
                raise
            turn.warn(f"no item was written anew; what stands is the answer: {exc.message}")
            return _Answer(standing_lines, read, note=repair.left_out_note)
        note = _missing_note(turn, reply, read)
        is_quoting = quoting.is_made
        if is_quoting or self._is_verbatim(reply, [*offered, *session]):
            quoted = _as_quoted(turn, reply, quoting(), is_quoting=is_quoting, is_repair=repair is not None)
            if quoted is not None:
                return dataclasses.replace(quoted, note=note)
        written = _worded(turn, reply, sources, offered)
        if repair:
            anew = {line.item: line for line in written}
            written = [anew.get(item) or last.line(item) for item in repair.merged([*anew])]
        cited = Cited(self._reader, turn, answer_lines=written, read_lines=read)
        written = [cited.with_true_figures(line) for line in written]
        lines = _without(rejected, [*_contested(turn, written), *written])
        if repair and all(line.item in repair.standing for line in lines):  # nothing new came of it
            note = repair.left_out_note
        return _Answer(without_doubles(lines), read, note=note)

    def _quoted(self, turn: Turn, drafts: Sequence[str]) -> _Answer:
        """Whole lines of the evidence, or what the session itself answers."""
        rejected = _rejected(turn)
        is_by_value = asks_by_value(turn.query)
        is_session = turn.reading.recap or bool(turn.reading.turns) or not is_by_value
        session = session_answer(turn, self._reader) if is_session else None
        is_list = session is not None and session.is_list
        is_settled = session is not None and not is_list
        looks = not (is_settled or turn.reading.only_tells or (is_undone(turn) and not is_by_value))
        read = self._look_at(turn, drafts if looks else ["nothing"], {r.text for r in rejected}, quotes=True)
        offered = self._closest.scored(turn.meant, standing(read))
        read, ordered_ids = (
            [*offered, *(line for line in read if line.left_out)],
            ordered_findings(turn, turn.steps()),
        )
        selection = self._select(turn, offered)
        chosen = [line for line in offered if Reason.FROM_DOCUMENT in line.why]
        if not chosen and selection.is_sure:
            chosen = self._of_passages(turn, selection, offered)
        chosen = chosen or _of_references(turn, offered)
        chosen = chosen or [
            reason(line, Reason.FOUND_AS_ORDERED) for line in offered if line.node in ordered_ids
        ]
        may_answer = bool(chosen) or selection.probability >= _MAY_ANSWER
        table = answer_from_tables(turn, selection.passages, self._reader, self._ranker)
        if table is not None and table.is_absent and not is_list:
            return _Answer([], read, closest=selection.passages, is_quoted=True)
        lines = [*table.lines] if table else []
        if not is_list:
            if offered and not lines:
                lines = by_value(turn, offered, self._reader, answered=may_answer)
            lines = lines or chosen
        if turn.reading.mood == "orders" and turn.mode == "chat" and shortfall(turn):
            # What is known is not what was ordered, but may do.
            closest = selection.passages if selection.is_sure else ()
            return _Answer([], read, closest=closest, is_quoted=True)
        lines = [*_contested(turn, lines), *lines]
        if session and not lines:
            quoted_lines = without_doubles(_without(rejected, session.lines))
            lead = session.left_out if quoted_lines == [*session.lines] else ""
            return _Answer(
                quoted_lines, read, session.leads, lead, closest=selection.passages, is_quoted=True
            )
        lines = without_doubles(_without(rejected, lines))
        if any(Reason.FROM_DOCUMENT in line.why for line in lines):
            names = ", ".join(document.name for document in turn.documents)
            lead = f"Closest in {names}, word for word:"
            return _Answer(lines, read, lead=lead, closest=selection.passages, is_quoted=True)
        if not lines:
            return _Answer([], read, closest=selection.passages, is_quoted=True)
        since = told_since(turn, lines, self._reader, self._closest)
        cited_items = {line.item for line in lines}
        quoted_lines = [line for line in since.lines if line.item in cited_items or line.item not in rejected]
        return _Answer(quoted_lines, read, since.leads, closest=selection.passages, is_quoted=True)

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
            for line in _meant_lines(turn, near.passage.lines):
                if list_name(line) not in listed_names:
                    why = Reason.ANSWERS if near is first else Reason.IN_PASSAGE
                    lines.setdefault(line.id, reason(line, why))
        return [*lines.values()]

    def _closest_passage(self, turn: Turn, near_passage: RankedPassage) -> ClosestPassage:
        first = near_passage.passage.lines[0]
        return ClosestPassage(
            node_id=first.node,
            provenance=self._provenance(turn, first.node),
            text=near_passage.passage.text,
            best=near_passage.best.text,
            above=first.above,
            line=first.line,
        )

    def _look_at(
        self, turn: Turn, drafts: Sequence[str], refused: Collection[str], *, quotes: bool
    ) -> list[Line]:
        if drafts or turn.analysis.intent == "greeting":
            return []
        lines = [*gathered_lines(turn), *tool_lines(turn, self._reader)]
        return look_at(turn, lines, quotes=quotes, refused=refused)

    def _ask(
        self,
        turn: Turn,
        offered: Sequence[Line],
        session_lines: Sequence[Line],
        quoting: Lazy[_Answer],
        guidance: str | None,
    ) -> tuple[Reply[AnswerReply], Sequence[Option]]:
        """
        Return the reply, and the sources that it could cite; those of the session are among them. Where lines
        are all there is, a recipe that asks for them is not offered whole sources beside them.
        """
        names = dict.fromkeys(node_id for line in (*offered, *session_lines) for node_id in line.node_ids)
        recipe = self._executor.book.recipe_for(ANSWER.name, turn.mode, turn.intent)
        is_text = not recipe.is_object
        sources = [Option(str(n) if is_text else id_, id_) for n, id_ in enumerate(names, 1)]
        are_lines_enough = not session_lines and asks_at(recipe.output_schema, "items[].lines")

        def labelled() -> Sequence[Option]:
            label = label_lines(self._reader, turn.context.front.created_at)
            pairs = zip(as_options(offered), offered, strict=True)
            return [
                dataclasses.replace(option, label=label(line), shown=numbered_text(line))
                for option, line in pairs
            ]

        def cited() -> Sequence[str]:
            quoted = quoting().lines if quoting.is_made else ()
            ids = (node_id for line in quoted for node_id in line.node_ids)
            return list(dict.fromkeys([*(source.id for source in sources), *ids]))

        reply = ask(
            self._executor,
            ANSWER,
            turn,
            options={"sources": () if are_lines_enough else sources, "lines": labelled},
            ids={"sources": cited, "lines": [f"L{n}" for n, _ in enumerate(offered, 1)]},
            variables={"today": turn.today},
            extra={TOOL_RESULTS: partial(render_unclaimed, turn.steps())},
            guidance=guidance,
            inputs=AnswerInputs(quoted=lambda: quoting().lines),
        )
        return reply, sources

    def _is_verbatim(self, reply: Reply[AnswerReply], lines: Sequence[Line]) -> bool:
        """Return whether each item of a reply is one of some lines, or a line of a node that it cites."""
        texts = {line.text for line in lines}

        def is_line(text: str, node_ids: Sequence[str]) -> bool:
            nodes = (find_node(self._reader, node_id) for node_id in node_ids)
            return text in texts or any(node and text in {line.text for line in node.items} for node in nodes)

        return reply.recipe.is_object and all(is_line(*item) for item in _says(reply))

    def _of_memory(self, turn: Turn) -> PhaseResult:
        """Say what is forgotten or not stored: nothing of it is checked, and it is no evidence later."""
        noted = self._noting.of(turn)
        paragraphs = [render_noted(noted)] if noted else []
        if turn.reading.forgets:
            paragraphs.append(
                answer_to_forgetting(turn, self._reader, self._left_by_forgetting(turn.reading))
            )
        if turn.reading.not_stored:
            paragraphs.append(NOT_STORED)
        body = "\n\n".join(paragraphs)
        node_id = NodeKind.TURN.id(turn.turn)
        outcome = TurnOutcome.TALK  # nothing goes and nothing is kept
        if turn.reading.forget:
            outcome = TurnOutcome.FORGOTTEN
        elif noted:
            outcome = TurnOutcome.NOTED
        meta = {
            "answered": outcome in ANSWERED,
            "items": [],
            "node_ids": [node_id],
            "provenance": ["§0.raw_query"],
        }
        turn.folder.write_text(RESPONSE_MD, f"{body}\n")
        section = Section(Phase.SYNTHESIZER, (Meta(meta), Text(body)))
        return PhaseResult(section, outcome=outcome, to=Phase.SAVE)

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
        query = turn.meant
        node = self._reader.load(line.node)
        several = len(listed) > 1
        all_ = turn.reading.all or (several and _tells_none_apart(query, listed, node))
        whole = wanted_list(line, node.items, node.title, query, all_=all_)
        heads = [other for other in listed if other.heads]
        if not whole and heads:
            whole = wanted_list(heads[0], node.items, node.title, query, all_=all_)
        asked = _asked_for(query, line, node, whole, several=several)
        whole = whole if asked is None else asked
        whole = [
            part for part in whole if is_usable(part) and not uses_excluded([part.text], turn.present_carry)
        ]
        most = MOST_ITEMS + sum(part.heads is not None for part in whole)
        list_lines = [reason(part, Reason.LIST_OF_ANSWER) for part in whole[:most]]
        if line.heads and not whole and not is_alone:
            return []
        return list_lines if asked or any(part.id == line.id for part in list_lines) else [line, *list_lines]

    def _left_out(self, turn: Turn, lines: Sequence[Line]) -> dict[str, int]:
        """Return how many lines of each list are not quoted, by list name, where the answer has to say so."""
        counts = {}
        for line in lines:
            if (
                line.list_id
                and line.node != NodeKind.TURN.id(turn.turn)
                and (name := list_name(line)) not in counts
            ):
                quoted_count = sum(list_name(other) == name and not other.heads for other in lines)
                size = sum(other.list_id == line.list_id for other in self._reader.load(line.node).items)
                counts[name] = size - quoted_count if quoted_count > 1 or turn.reading.all else 0
        return counts

    def _provenance(self, turn: Turn, node_id: str) -> str:
        if node_id == NodeKind.TURN.id(turn.turn):
            return "§0.raw_query"
        if kind_of(node_id) is NodeKind.STEP:
            return f"turns/{turn.folder.paths.directory.name}/{step_name(int(node_id[5:]))}"
        try:
            return self._reader.load(node_id).provenance
        except MemoryNodeError as exc:
            turn.warn(exc.message)
            return "missing"

    def _nothing(self, turn: Turn, drafts: Sequence[str], came_to: TurnOutcome) -> str:
        if drafts:
            return "Word for word, as it was kept:"
        if turn.analysis.intent == "greeting":
            recipe = self._executor.book.recipe_for(ANSWER.name, turn.mode, turn.intent)
            text = recipe.variables.get("greeting", "Hello.")
            return without_greeting(text) if turn.carry.flow.greeted else text
        if turn.reading.pasted:
            return _PASTED
        if turn.reading.only_tells:
            return "All right."
        if is_undone(turn):
            return "This can't be done here: no tool at hand carries it out. Nothing was changed or sent."
        if came_to is TurnOutcome.NOT_DONE:
            return ""  # what is in front says why
        if came_to is TurnOutcome.UNSURE:
            return "Nothing surely answers this."
        names = [node_id for section in turn.gathered for node_id in section.node_ids]
        names += [line.node for line in tool_lines(turn, self._reader)]
        searched = [*turn.document_nodes, *(name for name in names if name not in turn.document_nodes)]
        if not names:
            searched.append("the index of saved turns, memory, research and visits")
        where = ", ".join(dict.fromkeys(searched))
        return f"Nothing that is saved answers this. Searched: {where}."


def _line_numbers(lines: Sequence[Line], read: Sequence[Line]) -> dict[str, list[int]]:
    """Return where in documents that were handed over the lines stand, by node: line numbers, ascending."""
    places = {line.id: line for line in read}
    numbers: dict[str, set[int]] = {}
    for line in lines:
        for cited in (line, *(places[id_] for id_ in line.rests_on if id_ in places)):
            if kind_of(cited.node) is NodeKind.DOCUMENT and cited.line is not None:
                numbers.setdefault(cited.node, set()).add(cited.line)
    return {node_id: sorted(own) for node_id, own in numbers.items()}


def _evidence(turn: Turn, lines: Sequence[Line], read: Sequence[Line]) -> Evidence:
    cited = {line.text for line in lines}
    others = (
        line if line.left_out else structs.replace(line, left_out=Reason.OTHERS_ANSWER_BETTER)
        for line in read
    )
    offered = (*lines, *(line for line in others if line.text not in cited))
    record = turn.folder.find(Evidence)
    return structs.replace(record, offered=offered) if record else Evidence((), offered)


def _without(rejected: Sequence[GatheredItem], lines: Sequence[Line]) -> Sequence[Line]:
    """The lines that were not refused; what is said again is refused again: it may not pass as nothing."""
    return [line for line in lines if line.item not in rejected] or lines


def _contested(turn: Turn, lines: Sequence[Line]) -> list[Line]:
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


def _meant_lines(turn: Turn, lines: Sequence[Line]) -> Sequence[Line]:
    """Return of a list those lines that the query refers to, else all lines."""
    return (_naming_lines(turn, lines) if all(line.list_id for line in lines) else ()) or lines


def _of_references(turn: Turn, offered: Sequence[Line]) -> list[Line]:
    named = _naming_lines(turn, offered)
    return [
        reason(line, Reason.NAMES_WHAT_IS_MEANT)
        for line in sorted(named, key=lambda line: -(line.score or 0))[:1]
    ]


def _asked_for(
    query: str, line: Line, node: Node, whole: Sequence[Line], *, several: bool
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
    if note_list.is_numbered or len(asked) == len(note_list.lines) or not (whole or (several and is_asked)):
        return None
    return [part for part in whole if part.heads is not None] + asked


def _tells_none_apart(query: str, lines: Sequence[Line], node: Node) -> bool:
    terms_by_line = {
        line.id: terms_of(line.text.removeprefix(line.carried)) for line in node.items if line.list_id
    }
    listed = [
        terms_by_line[line.id] for line in node.items if line.list_id and line.list_id == lines[0].list_id
    ]
    everywhere = set.intersection(*listed) if listed else set()
    return not any(terms_of(query) & terms_by_line.get(line.id, set()) - everywhere for line in lines)


def _as_quoted(
    turn: Turn, reply: Reply[AnswerReply], quotation: _Answer, *, is_quoting: bool, is_repair: bool
) -> _Answer | None:
    """
    Return what code quotes, as far as a reply gives it; None if the reply gives something else.

    Args:
        is_quoting: Whether the reply was made from it.
        is_repair: Whether the reply is a part of an answer alone.
    """
    if is_quoting and not reply.recipe.is_object and reply.content.text is None:
        return quotation  # a recipe for text, which nothing words
    replied = _says(reply)
    quotable = quoted_items(quotation.lines)
    if replied == quotable:
        return quotation
    if is_quoting and replied == quotable[: len(replied)]:  # a recipe may allow fewer items
        return dataclasses.replace(quotation, lines=quotation.lines[: len(replied)])
    if not replied and not is_repair:  # what is near is shown though it is no answer
        return dataclasses.replace(quotation, lines=_contested(turn, ()), leads={}, lead="")
    return None


def _missing_note(turn: Turn, reply: Reply[AnswerReply], read: Sequence[Line]) -> str:
    """Return what a reply names as not said by the lines; "" where it adds a figure or address of its own."""
    missing = one_line(reply.content.missing or "").rstrip(" .")
    sources = [turn.query, turn.meant, *(line.text for line in read)]
    if not missing or any(claim.kind in _ADDED for claim in check_evidence(missing, sources)):
        return ""
    return f"Not in the saved passages: {missing}."


def _says(reply: Reply[AnswerReply]) -> list[tuple[str, tuple[str, ...]]]:
    """Return text and nodes of each item of a reply."""
    return [(item.text, item.node_ids) for item in reply.content.items]


def _worded(
    turn: Turn, reply: Reply[AnswerReply], sources: Sequence[Option], offered: Sequence[Line]
) -> list[Line]:
    """Return what a reply says, each text that is one of a line as this line."""
    by_text = {line.text: line for line in offered}
    lines = []
    for line in _said(reply, sources, offered):
        text = _tidy(line.text)
        if turn.carry.flow.greeted:
            text = without_greeting(text)
        if text:
            lines.append(reason(by_text.get(text) or structs.replace(line, text=text), Reason.ANSWERS))
    return lines


def _said(reply: Reply[AnswerReply], sources: Sequence[Option], offered: Sequence[Line]) -> list[Line]:
    text = reply.content.text
    if text is not None:
        return [line_of(item) for item in cited_paragraphs(text, [source.text for source in sources])]
    lines = []
    for item in reply.content.items:
        cited = chosen_lines(offered, item.lines)
        node_ids = (*(node_id for line in cited for node_id in line.node_ids), *item.node_ids)
        computed = tuple(_computed(figure, offered) for figure in item.computed)
        line = line_of(GatheredItem(item.text, tuple(dict.fromkeys(node_ids)), computed))
        lines.append(structs.replace(line, rests_on=tuple(line.id for line in cited)))
    return lines


def _computed(figure: ComputedReply, offered: Sequence[Line]) -> Computed:
    ids = tuple(line.id for line in chosen_lines(offered, figure.lines))
    return Computed(figure.value, figure.expression, ids)


def _step_lines(turn: Turn) -> list[Line]:
    """Return a line for each step that returned something besides claims."""
    return [
        Line(f"{step.tool}: what step {step.step} gave", node=NodeKind.STEP.id(step.step))
        for step in turn.steps()
        if step.status == "success" and not (step.claims or is_empty_search(step))
    ]


def _guidance(turn: Turn, refused: Collection[str]) -> str | None:
    if turn.reason is None or not refused:
        return turn.reason
    return "\n".join(
        [
            f"Your answer was refused: {turn.reason}",
            "Fix: write each item anew as its lines say it, and cite the lines that say it.",
            "These texts are not given again:",
            *(f"- {text}" for text in refused),
        ]
    )


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in text.strip().split("\n")))


def _rejected(turn: Turn) -> list[GatheredItem]:
    """Return the items of earlier attempts that §6 refused; the same text may come back with other nodes."""
    return [item for attempt in turn.superseded() for item in _refused_in(attempt)]


def _refused_in(attempt: ContextDocument) -> list[GatheredItem]:
    judgement = attempt.section(Phase.VALIDATOR)
    texts: Any = judgement.meta.get("rejected", []) if judgement else []
    return [item for item in answer_items(attempt.section(Phase.SYNTHESIZER)) if item.text in texts]
