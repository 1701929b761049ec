"""The documents of phase 2: loaded by id, links followed, within S1's budgets, under their headings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from panda.documents.context import CACHED, FOREVER, HEADINGS, PROVIDED, SESSION_MEMORY, STORED, TURNS
from panda.errors import MemoryNodeError
from panda.memory.confidence import EXPIRED_BELOW
from panda.memory.gathered import freshness, line_heading, numbered_text
from panda.memory.node import Node
from panda.memory.reader import NOTE, NodeReader
from panda.messages.questions import is_question
from panda.models.cl100k import count_tokens
from panda.store.node_id import key_of
from panda.store.records import Line

DOCUMENTS_TOKENS = 2_000
"""Budget tokens of all loaded documents together in a prompt; S1 §7.2 allows 3,000."""
DOCUMENT_TOKENS = 6_000
"""Budget tokens of one document that was handed over: some 200 lines, more than are compared in meaning."""
TURN_TOKENS = 1_500
"""Budget tokens of one earlier turn (S1 §4.2)."""
RESEARCH_CLAIMS = 5
"""Claims that research keeps beside its summary when documents do not fit (S1 §7.3)."""
LONGEST_LINE_CHARS = 1_000
"""Longer lines cannot be quoted."""

_EVENLY = (5**0.5 - 1) / 2
"""Whole multiples of it, modulo one, lie evenly between 0 and 1 however many they are."""
_FIRST = ("user_document", "preference", "fact", "research_cache", "visit_record")
_HEADINGS = {"user_document": PROVIDED, "preference": STORED, "fact": FOREVER, "turn_summary": TURNS}


@dataclass(frozen=True)
class LoadedDocument:
    node: Node  # as loaded, expired and cut lines included
    items: tuple[Line, ...]  # lines in their order: not expired, no questions, within budget
    tokens: int  # budget tokens of all lines that could be shown
    kept_tokens: int  # budget tokens of those that are

    @property
    def is_cut(self) -> bool:
        return self.kept_tokens < self.tokens


def load_nodes(reader: NodeReader, node_ids: Sequence[str]) -> list[Node]:
    """
    Nodes with what they lead to, each once, those asked for first: a turn's research, the visits of research,
    the notes that a note links to (once), and what a turn quoted that states nothing itself and may be gone
    (S1 §4.2, §6.2, §9). Notes that cannot be read, which are the user's own, are left out.
    """
    nodes: dict[str, Node] = {}
    waiting = list(node_ids)
    quoted = set[str]()
    while waiting:
        node_id = waiting.pop(0)
        if node_id not in nodes:
            try:
                nodes[node_id] = node = reader.load(node_id)
            except MemoryNodeError:
                if node_id not in quoted and not node_id.startswith(NOTE):
                    raise
                continue
            if node_id in node_ids or not node_id.startswith(NOTE):
                waiting += node.links
            if not any(map(is_usable, node.items)):
                waiting += node.origins
                quoted |= set(node.origins) - set(node_ids)
    return list(nodes.values())


def fit_nodes(
    nodes: Sequence[Node],
    *,
    fit: Callable[[str], float],
    budget_tokens: int,
) -> list[LoadedDocument]:
    """
    The lines of nodes, most relevant first, that may be shown within budget: one document a node, memory
    before research, visits, newer turns and older turns; lines that *fit* better stay. A turn keeps at most
    TURN_TOKENS; if all do not fit, research keeps its summary and best claims, then each document what is
    left (S1 §4.2, §7.3).
    """
    ordered = sorted(nodes, key=_rank)
    usable: list[Sequence[Line]] = [[line for line in node.items if is_usable(line)] for node in ordered]
    selected_lines: list[Sequence[Line]] = []
    room_tokens = _document_room(ordered, usable, budget_tokens)
    for node, lines in zip(ordered, usable, strict=True):
        if node.source_type == "turn_summary":
            selected_lines.append(_within(lines, TURN_TOKENS, fit))
        elif node.source_type == "user_document":
            selected_lines.append(_within(lines, room_tokens, fit, spread=True))
        else:
            selected_lines.append(lines)
    if sum(map(_tokens, selected_lines)) > budget_tokens:
        selected_lines = [
            _best_claims(lines) if node.source_type == "research_cache" else lines
            for node, lines in zip(ordered, selected_lines, strict=True)
        ]
    documents = []
    for node, all_lines, chosen in zip(ordered, usable, selected_lines, strict=True):
        lines = _within(chosen, budget_tokens, fit)
        documents.append(LoadedDocument(node, tuple(lines), _tokens(all_lines), _tokens(lines)))
        budget_tokens -= documents[-1].kept_tokens
    return documents


def _document_room(nodes: Sequence[Node], lines: Sequence[Sequence[Line]], budget_tokens: int) -> int:
    """Room for each document that was handed over: together what the others leave, or three quarters."""
    is_document = [node.source_type == "user_document" for node in nodes]
    others = [own for own, stays in zip(lines, is_document, strict=True) if not stays]
    room_tokens = max(3 * budget_tokens // 4, budget_tokens - sum(map(_tokens, others)))
    return min(DOCUMENT_TOKENS, room_tokens) // max(1, sum(is_document))


def _tokens(lines: Sequence[Line]) -> int:
    return sum(count_tokens(line.text) for line in lines)


def _within(
    lines: Sequence[Line], room_tokens: int, fit: Callable[[str], float], *, spread: bool = False
) -> Sequence[Line]:
    """
    The lines that fit best within the room, in their order; of equals the first ones, or with *spread* some
    of each part of the document.
    """
    tokens = [count_tokens(line.text) for line in lines]
    if sum(tokens) <= room_tokens:
        return lines
    fits = [fit(line.text) for line in lines]
    step = _EVENLY if spread else 0.0
    chosen_indexes: set[int] = set()
    for at in sorted(range(len(lines)), key=lambda at: (-fits[at], at * step % 1, at)):
        if tokens[at] <= room_tokens:
            chosen_indexes.add(at)
            room_tokens -= tokens[at]
    return [line for at, line in enumerate(lines) if at in chosen_indexes]


def _best_claims(lines: Sequence[Line]) -> Sequence[Line]:
    summary = [line for line in lines[:1] if line.content_type == "default"]
    claims = sorted(lines[len(summary) :], key=lambda line: -line.confidence)[:RESEARCH_CLAIMS]
    return [line for line in lines if line in [*summary, *claims]]


def _rank(node: Node) -> tuple[int, int]:
    if node.source_type in _FIRST:
        is_document = node.id.startswith(NOTE)
        return (len(_FIRST) if is_document else _FIRST.index(node.source_type)), 0
    return len(_FIRST) + 1, -int(key_of(node.id))


def long_lines(node: Node) -> list[str]:
    return [
        f"{node.id}: a line of {len(item.text):,} characters is too long to quote"
        f" ({node.provenance}{f':{item.line}' if item.line else ''})"
        for item in node.items
        if len(item.text) > LONGEST_LINE_CHARS
    ]


FORGOTTEN = "[forgotten"
"""How the mark begins that stands in the place of what was forgotten."""


def is_usable(item: Line) -> bool:
    return item.origin is None and not unquotable_for(item)


def unquotable_for(item: Line) -> str:
    if len(item.text) > LONGEST_LINE_CHARS:
        return f"it has {len(item.text):,} characters, at most {LONGEST_LINE_CHARS:,} can be quoted"
    if item.confidence < EXPIRED_BELOW:
        return f"its confidence is {item.confidence:.2f}, below {EXPIRED_BELOW:.2f}"
    if FORGOTTEN in item.text:
        return "something in it was forgotten"
    return "it is a question" if is_question(item.text) else ""


def group_documents(
    documents: Sequence[LoadedDocument],
    now: datetime,
    session_turns: Sequence[int],
    *,
    ids: Mapping[str, str],
) -> Mapping[str, str]:
    """
    Return the documents by heading, each line behind its id and below what it stands below in its document.

    Args:
        session_turns: What these turns said is session memory.
        ids: What a reply calls each line, by the line's own id.
    """
    groups: dict[str, list[str]] = {}
    for document in documents:
        if document.items:
            node = document.node
            heading = _HEADINGS.get(document.node.source_type, CACHED)
            if heading == STORED and node.source_turn in session_turns:
                heading = SESSION_MEMORY
            age = freshness(node, now)
            head = f"[{node.id}] {node.title}, confidence {node.confidence:.2f}{f', {age}' if age else ''}"
            lines = [head]
            above = ""
            for line in document.items:
                line_above = line_heading(line, line.heading)
                if line_above != above:
                    above = line_above
                    lines.append(f"# {above or node.title}")
                # What goes on below cannot pass for another line.
                lines.append(f"{ids[line.id]}: {numbered_text(line)}".replace("\n", "\n    "))
            if document.is_cut:
                lines.append("[…]")
            groups.setdefault(heading, []).append("\n".join(lines))
    return {name: "\n\n".join(groups[name]) for name in HEADINGS if name in groups}
