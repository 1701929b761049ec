"""Phase 5: the answer, item by item, each item with the nodes it rests on (S3 §16.3)."""

import dataclasses
import re
from collections.abc import Callable, Collection, Sequence
from functools import partial

from msgspec import structs

from panda.documents.context import Meta, Phase, Section, Text
from panda.documents.evidence import check_evidence
from panda.documents.record_codec import encode
from panda.documents.safe_text import one_line
from panda.errors import MemoryNodeError, ReplyError
from panda.memory.gathered import numbered_text
from panda.memory.reader import NodeReader, find_node
from panda.messages.reading import Reading
from panda.messages.wording import without_greeting
from panda.phases.answer_text import cited_paragraphs, list_name, render_answer, without_doubles
from panda.phases.cited import Cited
from panda.phases.ending import decide_outcome
from panda.phases.from_session import session_answer
from panda.phases.item_repair import repair_of
from panda.phases.kept import NOT_STORED, answer_to_forgetting
from panda.phases.phase_contract import PhaseResult
from panda.phases.quotation import AnswerParts, LineQuoter, contested_lines, rejected_items, without_rejected
from panda.phases.recipe_request import ask
from panda.phases.running_turn import Turn
from panda.phases.statements import Noting, render_noted
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
    as_options,
    chosen_lines,
    label_lines,
    line_of,
    reason,
    standing,
    tool_lines,
)
from panda.recipes.executor import RecipeExecutor
from panda.recipes.reply import Reply
from panda.recipes.schema import asks_at
from panda.retrieval.passages import RankedPassage
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

_ADDED = frozenset(("price", "quantity", "url"))
"""Kinds of claims that nobody can name as missing without having them from somewhere."""
_PASTED = (
    "Nothing of this text was kept: it reads as a document, and nothing is asked of it. To ask about it, hand"
    " it over beside a question, as in `panda turn --with FILE QUERY`; to have every turn find it, save it as"
    " a note below knowledge/."
)


class Synthesizer:
    """Writes §5, response.md and what evidence.json offers."""

    number = Phase.SYNTHESIZER
    layer = "VOICE"

    def __init__(
        self,
        executor: RecipeExecutor,
        reader: NodeReader,
        quoter: LineQuoter,
        noting: Noting,
        left_by_forgetting: Callable[[Reading], Sequence[str]],
    ) -> None:
        self._executor = executor
        self._noting = noting
        self._quoter = quoter
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

    def _answer(self, turn: Turn, noted_lines: Sequence[Line], drafts: Sequence[str]) -> AnswerParts:
        """
        Return what the reply says; of a revision only what was refused is written anew. One that quotes what
        code would quote is composed like that, with what belongs to its lines.
        """
        items = [line.item for line in noted_lines]
        rejected = rejected_items(turn)
        refused = {item.text for item in rejected}
        evidence = [] if drafts else self._quoter.look_at_evidence(turn, quotes=False)
        looked_at = [*evidence, *noted_lines, *_step_lines(turn)]
        read = [
            line if line.place > 0 else structs.replace(line, place=-n) for n, line in enumerate(looked_at, 1)
        ]
        last = Cited(self._reader, turn)  # the answer before this one, with the lines that it cites
        repair = repair_of(turn, items)
        standing_lines = [last.line(item) for item in repair.standing] if repair else []
        if repair and repair.leaves_out:
            return AnswerParts(standing_lines, read, note=repair.left_out_note)
        offered = standing(read)
        guidance = repair.guidance if repair else _guidance(turn, refused)
        answered = session_answer(turn, self._reader)
        quoting = Lazy(lambda: self._quoter.quote(turn, answered, reads_evidence=not drafts))
        session = answered.lines if answered else ()
        if not session and all(line.item in items for line in offered):
            return quoting()  # there is nothing to answer from but what is told, which code confirms
        try:
            reply, sources = self._ask(turn, offered, session, quoting, guidance)
        except ReplyError as exc:
            if repair is None:
                raise
            turn.warn(f"no item was written anew; what stands is the answer: {exc.message}")
            return AnswerParts(standing_lines, read, note=repair.left_out_note)
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
        lines = without_rejected(rejected, [*contested_lines(turn, written), *written])
        if repair and all(line.item in repair.standing for line in lines):  # nothing new came of it
            note = repair.left_out_note
        return AnswerParts(without_doubles(lines), read, note=note)

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

    def _ask(
        self,
        turn: Turn,
        offered: Sequence[Line],
        session_lines: Sequence[Line],
        quoting: Lazy[AnswerParts],
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


def _as_quoted(
    turn: Turn, reply: Reply[AnswerReply], quotation: AnswerParts, *, is_quoting: bool, is_repair: bool
) -> AnswerParts | None:
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
        return dataclasses.replace(quotation, lines=contested_lines(turn, ()), leads={}, lead="")
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
