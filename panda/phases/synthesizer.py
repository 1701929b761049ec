"""Phase 5: the answer, item by item, each item with the nodes it rests on (S3 §16.3)."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from panda.choosing.decision import Option
from panda.documents.context import ContextDocument, Meta, Section, Text
from panda.documents.evidence import Proof, find_claims, find_proofs
from panda.documents.times import with_last_seen
from panda.errors import MemoryNodeError
from panda.language.dates import find_days
from panda.language.text import without_greeting
from panda.language.words import split_terms
from panda.memory.budget import is_usable
from panda.memory.confidence import claim_type
from panda.memory.gathered import answer_items
from panda.memory.node import Line, wanted_list
from panda.memory.reader import NodeReader, find_node
from panda.phases.answer_text import MOST_ITEMS, Quoted, cited_paragraphs, render_answer, without_doubles
from panda.phases.contract import Advance
from panda.phases.evidence_spans import (
    TOLD,
    ClosestLines,
    cited_texts,
    gathered_spans,
    tool_spans,
    without_addresses,
)
from panda.phases.item_repair import repair_of, standing_items
from panda.phases.kept import said_of_forgetting
from panda.phases.pages import named_pages, read_anew
from panda.phases.ranked import asks_by_value, ranked_items
from panda.phases.recall import follow_up, lines_asked_for, recalled_items, tells_none_apart
from panda.phases.request import ask
from panda.phases.statements import Noting, render_noted, told_since
from panda.phases.tool_outcome import attachments, is_undone, kept_again, render_response, shortfall
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor
from panda.recipes.reply import Reply
from panda.session.registry import uses_excluded
from panda.store.layout import RESPONSE_MD, step_name
from panda.store.records import GatheredItem

_PAGE = "visit:"
_CURRENT = (_PAGE, "research:")
_NOTED = ("knowledge:", "fact:")
_LISTING = ("turn:", "knowledge:")
_MOST_CONTESTED = 2
_LEFT_OUT = "Some of the answer was left out: its sources do not say it."
_SAME_THING = 2
"""How many words two prices share that are of the same thing; a budget shares fewer with a price."""


class Synthesizer:
    """Writes §5 and response.md."""

    number = 5
    name = "synthesizer"
    layer = "VOICE"

    def __init__(
        self, executor: RecipeExecutor, reader: NodeReader, closest: ClosestLines, noting: Noting
    ) -> None:
        self._executor = executor
        self._noting = noting
        self._closest = closest
        self._reader = reader

    def run(self, turn: Turn) -> Advance:
        if turn.reading.forgets:
            return self._forgotten(turn)
        noted = self._noting.of(turn)
        told = [GatheredItem(text, (f"turn:{turn.turn}",)) for text in dict.fromkeys(n.text for n in noted)]
        rejected = [item for document in turn.superseded() for item in _rejected(document)]
        texts = dict.fromkeys(item.text for item in rejected)
        kept = kept_again(turn)
        recipe = self._executor.book.recipe_for("phase5_synthesizer", turn.mode)
        quotes = not self._executor.writes(recipe.key)
        by_value = quotes and asks_by_value(turn.query)
        followed = follow_up(turn, self._reader) if quotes and not by_value else None
        recalled = recalled_items(turn) or list(followed.items if followed else ())
        only_tells = turn.reading.only_tells
        undone = quotes and not recalled and not by_value and is_undone(turn)
        spans = [] if quotes and (recalled or only_tells or undone) else self._spans(turn, kept)
        spans = [span for span in spans if span.text not in texts]
        spans = without_addresses(turn, spans) if quotes else spans
        if not quotes:  # a model that writes may speak of what it was told
            spans += [Option(f"n{n}", one.text, one.node_ids) for n, one in enumerate(told, 1)]
        rated = self._closest.rate(turn.meant, spans) if quotes else spans
        named = self._closest.rate(turn.meant, of_named_pages(turn, spans))
        repair = None if quotes else repair_of(turn, told)
        names = dict.fromkeys(node_id for span in spans for node_id in span.node_ids)
        sources = [Option(node_id, node_id) for node_id in names]
        if recipe.output_format != "json" and not quotes:  # paragraphs cite them by number
            sources = [replace(one, id=str(n)) for n, one in enumerate(sources, 1)]
        origin = {span.text: span.node_ids for span in spans}
        standing = None if quotes else standing_items(turn, told)
        written = standing or []
        if standing is None:
            reply = ask(
                self._executor,
                "phase5_synthesizer",
                turn,
                options={"answer": rated, "named": named, "sources": sources},
                guidance=repair.guidance if repair else _guidance(turn, () if quotes else texts),
            )
            for item in _said(reply, sources):
                text = _tidy(item.text)
                if text := without_greeting(text) if turn.carry.flow.greeted else text:
                    cited = origin.get(text) or tuple(dict.fromkeys(item.node_ids))
                    written.append(GatheredItem(text, cited))
        if repair and standing is None:
            written = repair.merged(written)
        if quotes:
            written = written or _of_references(turn, rated)
            ranked = ranked_items(turn, rated, self._reader, answered=bool(written)) if spans else []
            written = ranked or self._with_lists(turn, written, spans)
        written = [*(one for one in _contested(turn) if one not in written), *written] or recalled
        fresh = [item for item in written if item not in rejected]
        items = without_doubles(
            fresh or written
        )  # what is said again is refused again: it may not pass as nothing
        items = [item for item in items if item not in told]
        leads: Mapping[GatheredItem, str] = {}
        if quotes and not recalled:
            since = told_since(turn, items, self._reader, self._closest)
            items, leads = [one for one in since.items if one in items or one not in rejected], since.leads
        node_ids = list(dict.fromkeys(node_id for item in (*told, *items) for node_id in item.node_ids))
        provenance = [self._provenance(turn, node_id) for node_id in node_ids]
        attached = [*attachments(turn), *kept]
        proofs = self._proofs(turn, [item for item in items if item.text not in origin])
        lead = [render_noted(noted, " [1]")] if noted else []
        lead += [followed.left_out] if followed and followed.left_out and items == recalled else []
        lead += [] if items or (noted and only_tells) else [self._nothing(turn, kept)]
        said = render_answer(items, node_ids, provenance, proofs, self._quoted(turn, items), lead, leads)
        left_out = [_LEFT_OUT] if standing is not None else []
        body = "\n\n".join([said, *left_out, *shortfall(turn)])
        answered = bool(items or attached or (noted and only_tells))
        meta = {
            "answered": answered,
            "items": [{"text": item.text, "node_ids": list(item.node_ids)} for item in (*told, *items)],
            "node_ids": node_ids,
            "provenance": provenance,
        }
        turn.folder.write_text(RESPONSE_MD, render_response(body, attached))
        return Advance(Section(5, (Meta(meta), Text(body))), answered=answered)

    def _forgotten(self, turn: Turn) -> Advance:
        """What a wish to forget is answered: nothing of it is checked, and it is no evidence later."""
        body, node_id = said_of_forgetting(turn, self._reader), f"turn:{turn.turn}"
        meta = {"answered": True, "items": [], "node_ids": [node_id], "provenance": ["§0.raw_query"]}
        turn.folder.write_text(RESPONSE_MD, f"{body}\n")
        return Advance(Section(5, (Meta(meta), Text(body))), answered=True, to=7)

    def _proofs(self, turn: Turn, items: Sequence[GatheredItem]) -> list[Proof]:
        cited = cited_texts(self._reader, turn, items)
        proofs = (
            one for item, texts in zip(items, cited, strict=True) for one in find_proofs(item.text, texts)
        )
        return list(dict.fromkeys(proofs))

    def _with_lists(
        self, turn: Turn, items: Sequence[GatheredItem], spans: Sequence[Option]
    ) -> list[GatheredItem]:
        offered = {(span.text, span.node_ids) for span in spans}
        detailed, carry = turn.reading.details, turn.present_carry
        quoted = self._quoted(turn, [one for one in items if (one.text, one.node_ids) in offered])
        headed = {one.list_name for one in quoted.values() if one.line.heads}
        found: list[GatheredItem] = []
        for item in items:
            node_id = item.node_ids[0]
            together = [item]
            if (item.text, item.node_ids) in offered and detailed and node_id.startswith(_PAGE):
                together += [GatheredItem(s.text, s.node_ids) for s in spans if s.node_ids == item.node_ids]
            elif item in quoted:
                line, name = quoted[item].line, quoted[item].list_name
                mine = [one.line for one in quoted.values() if one.list_name == name]
                node, several = self._reader.load(node_id), len(mine) > 1
                all_ = turn.reading.all or (several and tells_none_apart(turn.meant, mine, node))
                whole = wanted_list(line, node.items, node.title, turn.meant, all_=all_)
                if not whole and name in headed:
                    head = next(one for one in node.items if one.heads == (line.heads or line.list_id))
                    whole = wanted_list(head, node.items, node.title, turn.meant, all_=all_)
                    together = [] if line.heads and not whole and len(items) > 1 else together
                asked = lines_asked_for(turn.meant, line, node, whole, several=several)
                whole = whole if asked is None else asked
                whole = [one for one in whole if is_usable(one) and not uses_excluded([one.text], carry)]
                heads = sum(one.heads is not None for one in whole)
                listed = [GatheredItem(one.text, item.node_ids) for one in whole[: MOST_ITEMS + heads]]
                together = listed if item in listed or asked else [item, *listed]
            found += [one for one in together if one not in found]
        return self._in_order(turn, found)

    def _in_order(self, turn: Turn, items: Sequence[GatheredItem]) -> list[GatheredItem]:
        quoted = self._quoted(turn, items)
        groups = groupby(items, key=lambda item: quoted[item].list_name if item in quoted else item.text)
        return [
            item
            for _, group in groups
            for item in sorted(group, key=lambda item: quoted[item].line.line or 0 if item in quoted else 0)
        ]

    def _lines(self, turn: Turn, node_id: str) -> Sequence[Line]:
        is_saved = node_id.startswith(_LISTING) and node_id != f"turn:{turn.turn}"
        return self._reader.load(node_id).items if is_saved else ()

    def _quoted(self, turn: Turn, items: Sequence[GatheredItem]) -> dict[GatheredItem, Quoted]:
        found: dict[GatheredItem, Quoted] = {}
        for node_id in dict.fromkeys(item.node_ids[0] for item in items):
            lines = self._lines(turn, node_id)
            mine = {item.text: item for item in items if item.node_ids[0] == node_id}
            for line in lines:
                if line.text in mine and (line.list_id or line.heads):
                    listed = [one for one in lines if line.list_id and one.list_id == line.list_id]
                    shown = sum(one.text in mine for one in listed)
                    left_out = len(listed) - shown if shown > 1 or turn.reading.all else 0
                    found[mine[line.text]] = Quoted(line, f"{node_id} {line.list_id or line.heads}", left_out)
        return found

    def _spans(self, turn: Turn, kept: Sequence[str]) -> list[Option]:
        analysis = turn.analysis
        if kept or analysis.intent == "greeting":
            return []
        found: dict[str, Option] = {}
        for span in [*gathered_spans(turn), *tool_spans(turn)]:
            found.setdefault(span.text, span)
        carry = turn.present_carry
        spans = [span for span in found.values() if not uses_excluded([span.text], carry)]
        spans = self._dated(turn, spans)
        detailed = turn.reading.details
        details = [span for span in spans if detailed and span.node_ids[0].startswith(_PAGE)]
        if details or not analysis.data_requirements.needs_current_prices:
            return details or spans
        current = [span for span in spans if span.node_ids[0].startswith(_CURRENT) and _prices(span)]
        return [span for span in spans if not _is_outdated(span, current)]

    def _dated(self, turn: Turn, spans: Sequence[Option]) -> list[Option]:
        told_by = TOLD if read_anew(turn.steps()) else ()
        if turn.analysis.data_requirements.needs_current_prices:
            told_by = (*told_by, *_NOTED)
        dated = []
        for span in spans:
            changes = claim_type(span.text) in ("price", "availability")
            told = changes and span.node_ids[0].startswith(told_by) and not find_days(span.text)
            node = find_node(self._reader, span.node_ids[0]) if told else None
            at = node.at if node else None
            dated.append(replace(span, text=with_last_seen(span.text, at)) if at else span)
        return dated

    def _provenance(self, turn: Turn, node_id: str) -> str:
        if node_id == f"turn:{turn.turn}":
            return "§0.raw_query"
        if node_id.startswith("step:"):
            return f"turns/{turn.folder.paths.directory.name}/{step_name(int(node_id[5:]))}"
        try:
            return self._reader.load(node_id).provenance
        except MemoryNodeError as exc:
            turn.warn(exc.message)
            return "missing"

    def _nothing(self, turn: Turn, kept: Sequence[str]) -> str:
        if kept:
            return "Word for word, as it was kept:"
        if turn.analysis.intent == "greeting":
            recipe = self._executor.book.recipe_for("phase5_synthesizer", turn.mode)
            text = recipe.variables.get("greeting", "Hello.")
            return without_greeting(text) if turn.carry.flow.greeted else text
        if turn.reading.only_tells:
            return "All right."
        if is_undone(turn):
            return "This can't be done here: no tool at hand carries it out. Nothing was changed or sent."
        names = [node_id for section in turn.gathered for node_id in section.node_ids]
        names += [span.node_ids[0] for span in tool_spans(turn)]
        where = ", ".join(dict.fromkeys(names)) or "the index of saved turns, memory, research and visits"
        return f"Nothing that is saved answers this. Searched: {where}."


def _contested(turn: Turn) -> list[GatheredItem]:
    """Contradictions that this turn's research found: an answer shows them whatever else it says."""
    return [
        GatheredItem(text, (f"research:{step.data['topic']}",))
        for step in turn.steps()
        if step.tool == "internet.research" and step.status == "success"
        for text in step.data["conflicts"][:_MOST_CONTESTED]
    ]


def of_named_pages(turn: Turn, spans: Sequence[Option]) -> list[Option]:
    wanted = named_pages(turn)
    read = [s for s in turn.steps() if s.tool == "web.fetch" and s.arguments.get("url") in wanted]
    nodes = {claim.node_id for step in read for claim in step.claims}
    return [span for span in spans if nodes & set(span.node_ids)]


def _of_references(turn: Turn, spans: Sequence[Option]) -> list[GatheredItem]:
    refs = [ref for one in turn.reading.references for ref in one.refs]
    labels = [set(split_terms(one.label)) for one in turn.carry.registry.records if one.ref in refs]
    named = [span for span in spans if any(label <= set(split_terms(span.text)) for label in labels)]
    return [GatheredItem(one.text, one.node_ids) for one in sorted(named, key=lambda one: -one.prior)[:1]]


def _said(reply: Reply, sources: Sequence[Option]) -> list[GatheredItem]:
    if "items" not in reply.values:
        return cited_paragraphs(str(reply.values["text"]), [one.text for one in sources])
    return [GatheredItem(item["text"], tuple(item["node_ids"])) for item in reply.values["items"]]


def _guidance(turn: Turn, refused: Collection[str]) -> str | None:
    if turn.reason is None or not refused:
        return turn.reason
    return "\n".join(
        [turn.reason, "These were refused and are not given again:", *(f"- {t}" for t in refused)]
    )


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in text.strip().split("\n")))


def _prices(span: Option) -> set[str]:
    return {claim.value for claim in find_claims(span.text) if claim.kind == "price"}


def _is_outdated(span: Option, current: Sequence[Option]) -> bool:
    confirmed = {price for one in current for price in _prices(one)}
    if not span.node_ids[0].startswith("turn:") or _prices(span) <= confirmed:
        return False
    words = set(split_terms(span.text))
    return any(len(words & set(split_terms(one.text))) >= _SAME_THING for one in current)


def _rejected(attempt: ContextDocument) -> list[GatheredItem]:
    """The items of an earlier attempt that §6 refused; the same text may come back with other nodes."""
    judgement = attempt.section(6)
    texts: Any = judgement.meta.get("rejected", []) if judgement else []
    return [item for item in answer_items(attempt.section(5)) if item.text in texts]
