"""
The evidence of a turn: one ordered list of lines, each with what brought it in or left it out.

The reasons act in this order. Phase 2 takes the closest lines of what it has read, those that a rule asks
for, the details of a page and the rest of a list (`gather`). Phase 5 looks at these again and at what the
tools claim, and leaves out what `_Filters.in_order` names; then the session itself (from_session.py), values
(by_value.py), lists (quotation.py) and what was told since (statements.py) have their say.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from itertools import groupby

from msgspec import structs

from panda.documents.evidence import find_claims
from panda.documents.safe_text import one_line
from panda.documents.times import with_last_seen, without_last_seen
from panda.language.dates import find_days
from panda.language.patterns import lazy_pattern
from panda.language.words import split_terms, split_words
from panda.memory.budget import LoadedDocument, is_usable
from panda.memory.confidence import claim_type
from panda.memory.gathered import CONSTRAINTS, freshness, has_faded, line_heading, numbered_text
from panda.memory.node import Node, is_statement_id, wanted_list
from panda.memory.reader import NodeLoader, find_node
from panda.messages.reading import Reading
from panda.models.kept_encoder import KeptEncoder
from panda.phases.pages import named_pages, read_anew
from panda.phases.running_turn import Turn
from panda.retrieval.relevance import folded_names, measure_centrality, measure_closeness, share_of_words
from panda.session.registry import uses_excluded
from panda.steps.options import Option
from panda.store.node_id import NodeKind, key_of, kind_of
from panda.store.reason import Reason
from panda.store.records import Evidence, GatheredItem, GatheredSection, Line, Step

LOOKING_UP = ("memory.query", "doc.search")  # tools that only look into the store
_TOLD = (NodeKind.TURN, NodeKind.RESEARCH)  # nodes that tell of things what was so then
_CURRENT = (NodeKind.VISIT, NodeKind.RESEARCH)
_NOTED = (NodeKind.KNOWLEDGE, NodeKind.FACT)
_SPEC = "product_spec"
_MOST_READ = 4
_MOST_LINES = 40
_MOST_LISTED = 12
_MOST_PASSAGES = 6
_LEAST_PASSAGES = 2  # of all documents that were handed over, and of each
_WITHIN = 0.25
"""The answer is among the four closest of ten lines, no further below the first, in 98 of 100 cases."""
_SAME_THING = 2
"""How many words two prices share that are of the same thing; a budget shares fewer with a price."""
_ADDRESS = lazy_pattern(r"\burl https?://\S+\Z")


class ClosestLines:
    """Orders lines by how close they are to a query, each with what it stands below."""

    def __init__(self, encoder: KeptEncoder | None) -> None:
        self._encoder = encoder

    def rate(self, query: str, options: Sequence[Option]) -> list[Option]:
        """The options with their closeness as prior."""
        near = measure_closeness(query, [option.near for option in options], self._encoder)
        return [dataclasses.replace(option, prior=value) for option, value in zip(options, near, strict=True)]

    def scored(self, query: str, lines: Sequence[Line]) -> list[Line]:
        """The lines with their closeness as score."""
        rated = self.rate(query, as_options(lines))
        return [structs.replace(line, score=option.prior) for line, option in zip(lines, rated, strict=True)]

    def best_lines(self, query: str, nodes: Sequence[Node]) -> list[Line]:
        """The closest usable line of each node, the closest first."""
        lines = self.scored(query, [line for node in nodes for line in node.items if is_usable(line)])
        best = {line.node: line for line in sorted(lines, key=score_of)}
        return sorted(best.values(), key=score_of, reverse=True)

    def passages(self, query: str, lines: Sequence[Line]) -> list[Line]:
        """
        Return what answers a request about documents that were handed over, in their order: of each the lines
        closest to the request, or where none has a word of it ("summarise this"), to the document as a whole.
        """
        documents: dict[str, list[Line]] = {}
        for line in lines:
            documents.setdefault(line.node, []).append(line)
        most = max(_LEAST_PASSAGES, _MOST_PASSAGES // max(1, len(documents)))
        passages: list[Line] = []
        for own in documents.values():
            ranked = self.scored(query, own)
            if not any(share_of_words(query, line.text) for line in own):
                values = measure_centrality([option.near for option in as_options(own)], self._encoder)
                ranked = [structs.replace(line, score=value) for line, value in zip(own, values, strict=True)]
            best = sorted(ranked, key=score_of, reverse=True)[:most]
            near = {line.id for line in best if score_of(line) >= score_of(best[0]) - _WITHIN}
            passages += [reason(line, Reason.FROM_DOCUMENT) for line in ranked if line.id in near]
        return passages

    def closest(self, query: str, lines: Sequence[Line]) -> list[Line]:
        """The four closest at most, none far behind the first."""
        ranked = sorted(self.scored(query, lines), key=score_of, reverse=True)
        return [line for line in ranked[:_MOST_READ] if score_of(line) >= score_of(ranked[0]) - _WITHIN]


def label_lines(reader: NodeLoader, now: datetime) -> Callable[[Line], str]:
    """Return what gives a line the label that stands above it in a prompt: its nodes, its place, its age."""
    load = cache(partial(find_node, reader))

    def label(line: Line) -> str:
        node = load(line.node)
        age = freshness(node, now) if node else ""
        place = ", ".join(filter(None, [line_heading(line, line.above), age]))
        return f"[{', '.join(line.node_ids)}] {place}".rstrip()

    return label


def render_lines(lines: Sequence[Line], label_of: Callable[[Line], str]) -> str:
    """Return lines below their labels; one that several in a row have stands once."""
    rendered: list[str] = []
    for label, group in groupby(lines, key=label_of):
        rendered.append(one_line(label))
        rendered += [f"- {one_line(numbered_text(line))}" for line in group]
    return "\n".join(rendered)


def as_options(lines: Sequence[Line]) -> list[Option]:
    """The lines as a choice sees them: L1 to Ln in their order, the score as prior."""
    return [
        Option(f"L{n}", line.text, line.node_ids, score_of(line), line.above)
        for n, line in enumerate(lines, 1)
    ]


def chosen_lines(lines: Sequence[Line], ids: Sequence[str]) -> list[Line]:
    """The lines that a choice among their options took, in its order."""
    return [lines[int(id_.removeprefix("L")) - 1] for id_ in ids]


def score_of(line: Line) -> float:
    return line.score or 0.0


def reason(line: Line, added: Reason) -> Line:
    """Return the line with one more reason that brought it in."""
    return line if added in line.why else structs.replace(line, why=(*line.why, added), left_out="")


# phase 2: what is read, and what of it comes into §2


def read_lines(query: str, documents: Sequence[LoadedDocument], closest: ClosestLines) -> list[Line]:
    """
    At most 40 lines in the order of the documents: one of each, then the closest, of equals the earlier;
    where a turn repeats another source, the source is kept.
    """
    unique: dict[str, Line] = {}
    for document in documents:  # turns come last
        for line in document.items:
            unique.setdefault(line.text, line)
    ranked = sorted(closest.scored(query, list(unique.values())), key=score_of, reverse=True)
    first = {line.node: line for line in reversed(ranked)}
    others = [line for line in ranked if first[line.node] is not line]
    chosen = {line.text: line for line in [*first.values(), *others][:_MOST_LINES]}
    return [chosen[text] for text in unique if text in chosen]


def gather(
    query: str,
    reading: Reading,
    read: Sequence[Line],
    *,
    chosen: Sequence[Line],
    nodes: Mapping[str, Node],
    ruled: Sequence[str],
) -> list[Line]:
    """
    The lines for §2: those *chosen*, one of each node that a rule put into the plan or the query names, all
    details of a page when it asks for them, and the whole list where a line introduces one, or belongs to one
    and the query asks for all there are.
    """
    lines = {line.id: reason(line, Reason.CLOSEST) for line in chosen}
    quoted = {line.node for line in chosen}
    for why, line in by_rule(query, reading, read, nodes=nodes, ruled=ruled, quoted=quoted):
        lines[line.id] = reason(lines.get(line.id, line), why)
    for line in list(lines.values()):
        node = nodes[line.node]
        whole = wanted_list(line, node.items, node.title, query, all_=reading.all)
        for other in [part for part in whole if is_usable(part)][:_MOST_LISTED]:
            lines[other.id] = reason(lines.get(other.id, other), Reason.REST_OF_LIST)
    return list(lines.values())


def by_rule(
    query: str,
    reading: Reading,
    read: Sequence[Line],
    *,
    nodes: Mapping[str, Node],
    ruled: Sequence[str],
    quoted: Collection[str],
) -> Iterator[tuple[Reason, Line]]:
    """Lines that come in whatever was chosen, each with the reason; *quoted* nodes have a line already."""
    best = {line.node: line for line in sorted(read, key=score_of)}
    asked = list(dict.fromkeys([*ruled, *reading.turns]))
    yield from ((Reason.ASKED_FOR, best[id_]) for id_ in asked if id_ in best and id_ not in quoted)
    if reading.details:
        details = [
            line for line in read if kind_of(line.node) is NodeKind.VISIT and line.content_type == _SPEC
        ]
        pages = {line.node: share_of_words(query, nodes[line.node].title) for line in details}
        pages |= {id_: 1.0 for id_ in asked if id_ in pages}
        top = max(pages.values(), default=0.0)
        yield from ((Reason.PAGE_DETAIL, line) for line in details if top and pages[line.node] == top)


# phase 5: what is offered to the answer


def gathered_lines(turn: Turn) -> list[Line]:
    """The lines of §2, as lines_of gives them."""
    record = turn.folder.find(Evidence)
    return lines_of(turn, turn.gathered, record.gathered if record else ())


def lines_of(turn: Turn, sections: Sequence[GatheredSection], gathered: Sequence[Line]) -> list[Line]:
    """
    Return the lines of §2, each text once, without the constraints; a line of a turn that the query names
    says which turn.
    """
    lines = {line.item: line for line in gathered}
    items = [item for part in sections if part.title != CONSTRAINTS for item in part.items]
    unique = {item.text: lines.get(item) or line_of(item) for item in reversed(items)}
    return [_named(turn, line) for line in reversed(unique.values())]


def line_of(item: GatheredItem) -> Line:
    """An item of §2 or of an answer that is no line of a node."""
    return Line(
        item.text,
        node=item.node_ids[0] if item.node_ids else "",
        also=item.node_ids[1:],
        computed=item.computed,
        why=(Reason.WORDED_BY_MODEL,),
    )


def _named(turn: Turn, line: Line) -> Line:
    is_named = turn.reading.turns and kind_of(line.node) is NodeKind.TURN
    return structs.replace(line, above=f"Turn {key_of(line.node)}") if is_named else line


def tool_lines(turn: Turn, reader: NodeLoader, steps: Sequence[Step] | None = None) -> list[Line]:
    """
    Return what the tools of this turn claimed, or *steps* of it. A claim about the user's own words cites
    this turn, one that no node holds cites its step, such as "step:2".
    """
    lines = []
    load = cache(partial(find_node, reader))
    if steps is None:
        steps = turn.steps()
    for step in steps:
        own = NodeKind.TURN.id(turn.turn) if step.tool == "memory.create" else NodeKind.STEP.id(step.step)
        why = Reason.FOUND_BY_TOOL if step.tool in LOOKING_UP else Reason.CLAIMED_BY_TOOL
        for claim in step.claims:
            node = load(claim.node_id) if claim.node_id else None
            same = (line for line in node.items if line.text == without_last_seen(claim.text)) if node else ()
            line = next(iter(same), Line("", node=claim.node_id or own))
            share = share_of_words(turn.meant, claim.text)
            lines.append(_named(turn, structs.replace(line, text=claim.text, score=share, why=(why,))))
    return lines


def ordered_findings(turn: Turn, steps: Sequence[Step]) -> set[str | None]:
    """
    The nodes that the research among the steps of this turn found, where the user orders one; or the
    documents that a request is about.
    """
    if turn.reading.of_documents:
        return {*turn.document_nodes}
    research_steps = [step for step in steps if step.tool == "internet.research" and step.status == "success"]
    ordered = turn.reading.mood == "orders"
    return {claim.node_id for step in research_steps for claim in step.claims} if ordered else set()


def standing(lines: Sequence[Line]) -> list[Line]:
    """Those that nothing left out."""
    return [line for line in lines if not line.left_out]


def look_at(turn: Turn, lines: Sequence[Line], *, quotes: bool, refused: Collection[str] = ()) -> list[Line]:
    """
    The lines, each text once, with what leaves them out; where the query asks for the details of a page, all
    that is not of one. A prompt has addresses, too.
    """
    unique: dict[str, Line] = {}
    for line in lines:
        unique.setdefault(line.text, line)
    filters = _Filters(turn, [*unique.values()], refused)
    for text, line in unique.items():
        left_out = next((why for why, leaves in filters.in_order(quotes=quotes) if leaves(line)), "")
        unique[text] = structs.replace(filters.dated(line), left_out=left_out)
    if turn.reading.details and any(
        kind_of(line.node) is NodeKind.VISIT for line in standing([*unique.values()])
    ):
        for text, line in unique.items():
            if not (line.left_out or kind_of(line.node) is NodeKind.VISIT):
                unique[text] = structs.replace(line, left_out=Reason.NO_PAGE_DETAIL)
    return [*unique.values()]


class _Filters:
    def __init__(self, turn: Turn, lines: Sequence[Line], refused: Collection[str]) -> None:
        steps = turn.steps()
        self._turn = turn
        self._refused = refused
        self._read_anew = read_anew(steps)
        labels = " ".join(entity.label for step in steps for entity in step.entities)
        self._others = folded_names(turn.meant) - set(map(str.lower, split_words(labels)))
        self._prices_now = turn.analysis.data_requirements.needs_current_prices
        self._current = [line for line in lines if kind_of(line.node) in _CURRENT and _prices(line)]
        self._found = ordered_findings(turn, steps)

    def in_order(self, *, quotes: bool) -> Iterator[tuple[Reason, Callable[[Line], bool]]]:
        reading = self._turn.reading
        carry = self._turn.present_carry
        if quotes and self._found:
            why = Reason.NOT_ORDERED
            if self._turn.reading.of_documents:
                why = Reason.NOT_IN_DOCUMENTS
            yield why, lambda line: line.node not in self._found
        if quotes and (documents := self._turn.document_nodes):
            yield (
                Reason.OF_EARLIER_DOCUMENT,
                lambda line: kind_of(line.node) is NodeKind.DOCUMENT and line.node not in documents,
            )
        yield Reason.READ_ANEW, self._is_stale
        if named_pages(self._turn):
            yield Reason.OTHER_PAGE_ADDRESS, self._is_address
        yield Reason.EXCLUDED_BY_USER, lambda line: bool(uses_excluded([line.text], carry))
        if self._prices_now:
            yield Reason.OLDER_PRICE, self._is_outdated
        if quotes and reading.mood == "asks" and not (reading.details or reading.address):
            yield Reason.ADDRESS, self._is_address
        yield Reason.REFUSED_BEFORE, lambda line: line.text in self._refused

    def dated(self, line: Line) -> Line:
        """With when it was seen, where a turn may know a newer price or stock, or that was long ago."""
        kinds: list[NodeKind] = []
        if self._read_anew:
            kinds += _TOLD
        if self._prices_now:
            kinds += _NOTED
        may_be_old = kind_of(line.node) in kinds and _changes(line)
        may_be_old = may_be_old or (kind_of(line.node) in _CURRENT and has_faded(line))
        if line.at is None or not may_be_old or find_days(line.text) or is_statement_id(line.node):
            return line
        return structs.replace(line, text=with_last_seen(line.text, line.at))

    def _is_address(self, line: Line) -> bool:
        return _ADDRESS.search(without_last_seen(line.text)) is not None

    def _is_stale(self, line: Line) -> bool:
        if not self._read_anew or Reason.CLAIMED_BY_TOOL in line.why:
            return False
        is_dated = kind_of(line.node) in _TOLD and _changes(line)
        of_another = not self._others.isdisjoint(map(str.lower, split_words(line.text)))
        return not self._read_anew.isdisjoint(line.node_ids) or (is_dated and not of_another)

    def _is_outdated(self, line: Line) -> bool:
        confirmed = {price for current in self._current for price in _prices(current)}
        if kind_of(line.node) is not NodeKind.TURN or _prices(line) <= confirmed:
            return False
        words = set(split_terms(line.text))
        return any(len(words & set(split_terms(current.text))) >= _SAME_THING for current in self._current)


def _changes(line: Line) -> bool:
    return claim_type(line.text) in ("price", "availability")


def _prices(line: Line) -> set[str]:
    return {claim.value for claim in find_claims(line.text) if claim.kind == "price"}
