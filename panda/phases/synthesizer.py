"""Phase 5: the answer, item by item, each item with the nodes it rests on (S3 §16.3)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from panda.documents.antecedents import parts_about_one_thing
from panda.documents.context import ContextDocument, Meta, Section, Text
from panda.documents.escaping import escape_quote
from panda.documents.evidence import Proof, find_claims, find_proofs
from panda.documents.last_seen import with_last_seen
from panda.documents.questions import asks_for_several
from panda.documents.sentences import one_line
from panda.errors import MemoryNodeError
from panda.language.stemming import split_terms
from panda.memory.gathered import GatheredItem, answer_items
from panda.memory.items import claim_type
from panda.memory.nodes import NodeReader
from panda.phases.asking import ask
from panda.phases.carry_document import present_carry
from panda.phases.contract import Advance
from panda.phases.evidence_spans import LEAST_SHARE, TOLD, cited_text, gathered_spans, introduces, tool_spans
from panda.phases.pages import named_pages, read_anew
from panda.phases.recalling import recalled_items
from panda.phases.tool_outcome import attachments, kept_again, render_response, shortfall
from panda.phases.turn import Turn
from panda.recipes.choices import Option
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.overlap import share_of_words
from panda.retrieval.rules import asks_for_details
from panda.session.curating import uses_excluded
from panda.session.words import without_greeting
from panda.storage.layout import GATHERED_CONTEXT_JSON, QUERY_ANALYSIS_JSON, RESPONSE_MD, step_name

_PAGE = "visit:"
_CURRENT = (_PAGE, "research:")
_LISTING = ("turn:", "knowledge:")
_ALIKE = 0.8
_MOST_CONTESTED = 2
_SAME_THING = 2
"""How many words two prices share that are of the same thing; a budget shares fewer with a price."""


class Synthesizer:
    """
    Writes §5 and response.md.

    Args:
        executor: Asks the recipe.
        reader: Gives the sources' files.
    """

    number = 5
    name = "synthesizer"
    layer = "VOICE"

    def __init__(self, executor: RecipeExecutor, reader: NodeReader) -> None:
        self._executor = executor
        self._reader = reader

    def run(self, turn: Turn) -> Advance:
        """Answer with evidence, quotations citing their nodes; if nothing answers, say what was searched."""
        rejected = [item for document in turn.superseded() for item in _rejected(document)]
        texts = {item.text for item in rejected}
        kept = kept_again(turn)
        recalled = recalled_items(turn)
        quotes = not self._executor.writes(
            self._executor.book.recipe_for("phase5_synthesizer", turn.mode).key
        )
        spans = [] if recalled and quotes else self._spans(turn, kept)
        spans = [span for span in spans if span.text not in texts]
        reply = ask(
            self._executor,
            "phase5_synthesizer",
            turn,
            options={"answer": spans, "named": of_named_pages(turn, spans), "sources": _sources(spans)},
            guidance=turn.reason,
        )
        origin = {span.text: span.node_ids for span in spans}
        written = [
            GatheredItem(text, origin.get(text) or tuple(dict.fromkeys(item["node_ids"])))
            for item in reply.values["items"]
            if (text := self._ungreeted(turn, one_line(item["text"])))
        ]
        written = self._with_lists(turn, written, spans)
        written += _asked_on(turn.meant, written, spans) if quotes else []
        written = [*(one for one in _contested(turn) if one not in written), *written] or recalled
        fresh = [item for item in written if item not in rejected]
        items = without_doubles(
            fresh or written
        )  # what is said again is refused again: it may not pass as nothing
        node_ids = list(dict.fromkeys(node_id for item in items for node_id in item.node_ids))
        provenance = [self._provenance(turn, node_id) for node_id in node_ids]
        attached = [*attachments(turn), *kept]
        proofs = self._proofs(turn, [item for item in items if item.text not in origin])
        said = render_answer(items, node_ids, provenance, proofs) if items else self._nothing(turn, kept)
        body = "\n\n".join([said, *shortfall(turn)])
        meta = {
            "answered": bool(items or attached),
            "items": [{"text": item.text, "node_ids": list(item.node_ids)} for item in items],
            "node_ids": node_ids,
            "provenance": provenance,
        }
        turn.folder.write_text(RESPONSE_MD, render_response(body, attached))
        return Advance(Section(5, (Meta(meta), Text(body))), answered=bool(items or attached))

    def _proofs(self, turn: Turn, items: Sequence[GatheredItem]) -> list[Proof]:
        """How the numbers follow that no cited node holds."""
        steps = turn.steps()
        return [
            proof
            for item in items
            for proof in find_proofs(
                item.text, [cited_text(self._reader, turn, steps, one) for one in item.node_ids]
            )
        ]

    def _with_lists(
        self, turn: Turn, items: Sequence[GatheredItem], spans: Sequence[Option]
    ) -> list[GatheredItem]:
        """The items with what belongs to them, as far as it is on offer: to the head of a list its items, to
        a detail of a page all others, if the query wants details."""
        offered = {(span.text, span.node_ids) for span in spans}
        meant = turn.meant
        several, detailed = asks_for_several(meant), asks_for_details(meant)
        found: list[GatheredItem] = []
        for item in items:
            found += [item] if item not in found else []
            node_id = item.node_ids[0]
            if detailed and node_id.startswith(_PAGE) and (item.text, item.node_ids) in offered:
                same = [GatheredItem(s.text, s.node_ids) for s in spans if s.node_ids == item.node_ids]
                found += [one for one in same if one not in found]
                continue
            saved = node_id.startswith(_LISTING) and node_id != f"turn:{turn.turn}"
            if (item.text, item.node_ids) not in offered or not saved:
                continue
            lines = self._reader.load(node_id).items
            quoted = next((line for line in lines if line.text == item.text), None)
            for line in quoted.whole_list(lines, as_member=several) if quoted else ():
                one = GatheredItem(line.text, item.node_ids)
                if one not in found and (one.text, one.node_ids) in offered:
                    found.append(one)
        return found

    def _ungreeted(self, turn: Turn, text: str) -> str:
        """The text without a greeting, if the session was greeted before."""
        return without_greeting(text) if turn.carry.flow.greeted else text

    def _spans(self, turn: Turn, kept: Sequence[str]) -> list[Option]:
        """Evidence on offer, less what the user ruled out; no told price of what has another price by now."""
        analysis = turn.read(QUERY_ANALYSIS_JSON)
        if kept or analysis["intent"] == "greeting":
            return []
        found: dict[str, Option] = {}
        for span in [*gathered_spans(turn), *tool_spans(turn)]:
            found.setdefault(span.text, span)
        carry = present_carry(turn)
        spans = [span for span in found.values() if not uses_excluded([span.text], carry)]
        spans = self._dated(turn, _of_one_thing(turn.meant, spans))
        detailed = asks_for_details(turn.meant)
        details = [span for span in spans if detailed and span.node_ids[0].startswith(_PAGE)]
        if details or not analysis["data_requirements"]["needs_current_prices"]:
            return details or spans
        current = [span for span in spans if span.node_ids[0].startswith(_CURRENT) and _prices(span)]
        return [s for s in spans if introduces(turn.meant, s.text) or not _is_outdated(s, current)]

    def _dated(self, turn: Turn, spans: Sequence[Option]) -> list[Option]:
        """The evidence, what was told of prices and stock with its date, once a page was looked at again."""
        anew = read_anew(turn.steps())
        dated = []
        for span in spans:
            changes = claim_type(span.text) in ("price", "availability")
            told = anew and changes and span.node_ids[0].startswith(TOLD)
            at = self._time_of(span.node_ids[0]) if told else None
            dated.append(replace(span, text=with_last_seen(span.text, at)) if at else span)
        return dated

    def _time_of(self, node_id: str) -> datetime | None:
        try:
            return self._reader.load(node_id).at
        except MemoryNodeError:
            return None  # where it stands is told as missing

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
        if turn.read(QUERY_ANALYSIS_JSON)["intent"] == "greeting":
            text = self._executor.book.recipe_for("phase5_synthesizer", turn.mode).variables["greeting"]
            return without_greeting(text) if turn.carry.flow.greeted else text
        searched = turn.read(GATHERED_CONTEXT_JSON)["sections"]
        names = [node_id for section in searched for node_id in section["node_ids"]]
        names += [span.node_ids[0] for span in tool_spans(turn)]
        where = ", ".join(dict.fromkeys(names)) or "the index of saved turns, memory, research and visits"
        return f"Nothing that is saved answers this. Searched: {where}."


def _contested(turn: Turn) -> list[GatheredItem]:
    """Contradictions that this turn's research found: an answer shows them whatever else it says."""
    return [
        GatheredItem(text, (f"research:{step['data']['topic']}",))
        for step in turn.steps()
        if step["tool"] == "internet.research" and step["status"] == "success"
        for text in step["data"]["conflicts"][:_MOST_CONTESTED]
    ]


def of_named_pages(turn: Turn, spans: Sequence[Option]) -> list[Option]:
    """
    The lines of the pages that the query names, as this turn has read them.

    Args:
        turn: The running turn.
        spans: All evidence on offer.
    """
    wanted = named_pages(turn.query)
    read = [s for s in turn.steps() if s["tool"] == "web.fetch" and s["arguments"].get("url") in wanted]
    nodes = {claim["node_id"] for step in read for claim in step["claims"]}
    return [span for span in spans if nodes & set(span.node_ids)]


def _sources(spans: Sequence[Option]) -> list[Option]:
    return [Option(node_id, node_id) for node_id in dict.fromkeys(n for span in spans for n in span.node_ids)]


def _prices(span: Option) -> set[str]:
    return {claim.value for claim in find_claims(span.text) if claim.kind == "price"}


def _is_outdated(span: Option, current: Sequence[Option]) -> bool:
    """Whether a turn told a price that is not confirmed, of what *current* knows the price of by now."""
    confirmed = {price for one in current for price in _prices(one)}
    if not span.node_ids[0].startswith("turn:") or _prices(span) <= confirmed:
        return False
    words = set(split_terms(span.text))
    return any(len(words & set(split_terms(one.text))) >= _SAME_THING for one in current)


def _of_one_thing(query: str, spans: Sequence[Option]) -> Sequence[Option]:
    """
    The evidence without pages of other things, where the query goes on to ask about "it" of one that it says.

    Which one that is stands in the lines that have most words of the clause which introduces it; if they
    speak of no page on offer, all stay.
    """
    parts = parts_about_one_thing(query)
    shares = [share_of_words(parts[0], span.text) for span in spans] if parts else []
    if max(shares, default=0.0) < LEAST_SHARE:
        return spans
    said = " ".join(span.text for span, share in zip(spans, shares, strict=True) if share == max(shares))
    titles = {span.id: span.text.partition(": ")[0] for span in spans if span.node_ids[0].startswith(_PAGE)}
    others = {id_ for id_, title in titles.items() if share_of_words(title, said) < LEAST_SHARE}
    return spans if len(others) == len(titles) else [span for span in spans if span.id not in others]


def _asked_on(query: str, items: Sequence[GatheredItem], spans: Sequence[Option]) -> list[GatheredItem]:
    """The line for what a query goes on to ask about "it", where the items do not speak of that; or none."""
    parts = parts_about_one_thing(query)
    if not parts or not items or any(share_of_words(parts[1], item.text) for item in items):
        return []
    current = [span for span in spans if span.node_ids[0].startswith(_CURRENT)]
    speaking = [s for s in (*current, *spans) if share_of_words(parts[1], s.text) >= LEAST_SHARE]
    return [GatheredItem(span.text, span.node_ids) for span in speaking[:1]]


def _rejected(attempt: ContextDocument) -> list[GatheredItem]:
    """The items of an earlier attempt that §6 refused; the same text may come back with other nodes."""
    judgement = attempt.section(6)
    texts: Any = judgement.meta.get("rejected", []) if judgement else []
    return [item for item in answer_items(attempt.section(5)) if item.text in texts]


def without_doubles(items: Sequence[GatheredItem]) -> list[GatheredItem]:
    """
    The items without those that say nearly the same as an earlier one.

    >>> without_doubles([GatheredItem("Price $697", ("a",)), GatheredItem("price $697", ("b",))])
    [GatheredItem(text='Price $697', node_ids=('a',))]
    """
    kept: list[GatheredItem] = []
    for item in items:
        words = set(item.text.lower().split())
        others = (set(other.text.lower().split()) for other in kept)
        if not any(len(words & other) / len(words | other) >= _ALIKE for other in others):
            kept.append(item)
    return kept


def render_answer(
    items: Sequence[GatheredItem],
    node_ids: Sequence[str],
    provenance: Sequence[str],
    proofs: Sequence[Proof] = (),
) -> str:
    """
    The answer as the user reads it: each item with its marks, then the list of sources and what was computed.

    >>> print(render_answer([GatheredItem("$697", ("visit:a",))], ["visit:a"], ["turns/x/manifest.json"]))
    $697 [1]
    <BLANKLINE>
    Sources:
    - [1] visit:a, turns/x

    Args:
        items: What is answered.
        node_ids: Every node that an item cites, each once.
        provenance: The file of each.
        proofs: How numbers follow that no node holds.
    """
    marks = ["".join(f" [{node_ids.index(n) + 1}]" for n in item.node_ids) for item in items]
    lines = [escape_quote(item.text) + mark for item, mark in zip(items, marks, strict=True)]
    places = zip(node_ids, provenance, strict=True)
    sources = [f"- [{n}] {node_id}, {_place(place)}" for n, (node_id, place) in enumerate(places, 1)]
    computed = [f"- {proof.text} = {proof.steps}" for proof in proofs]
    return "\n\n".join(lines) + "\n\nSources:\n" + "\n".join([*sources, *computed])


def _place(provenance: str) -> str:
    path = PurePosixPath(provenance)
    return path.parent.as_posix() if path.name == "manifest.json" else provenance
