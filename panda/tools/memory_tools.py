"""The tools memory.* and doc.search: what nodes say on a query, and what the user wants remembered."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from msgspec import UNSET, Meta, UnsetType

from panda.documents.markdown import spell_out_wikilinks
from panda.documents.record_codec import encode
from panda.documents.safe_text import one_line, unescape_path
from panda.documents.times import render_time
from panda.errors import MemoryNodeError, UsageError
from panda.memory.budget import LONGEST_LINE_CHARS, long_lines
from panda.memory.confidence import EXPIRED_BELOW
from panda.memory.node import Node
from panda.memory.user_memory import Plain, stage_value
from panda.messages.questions import is_question
from panda.retrieval.relevance import share_of_words
from panda.store.fact_records import Subject
from panda.store.files import read_text
from panda.store.records import Line, StepEntity, ToolClaim
from panda.tools.tool_contract import Arguments, QueryArguments, ToolContext, ToolResult, tool

_MEMORY_KINDS = ("memory:", "fact:", "research:", "visit:")
_MOST_MEMORY_NODES = 8
_MOST_MEMORY_LINES = 8
_DOC_KINDS = ("turn:", "knowledge:")
_MOST_DOC_NODES = 6
_MOST_DOC_LINES = 3
_KEY_CHARS = 40
_ALREADY_NOTED = "Already noted: what the user tells is remembered without this tool."
_Scalar = str | int | float | bool | None
_Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=r"\S")]


class _Match(TypedDict):
    node_id: str
    source_type: str
    title: str
    provenance: str
    at: str | None
    confidence: float
    items: list[str]


class _Matches(TypedDict):
    matches: list[_Match]
    faults: list[str]


class _CreateArguments(Arguments, frozen=True):
    kind: Literal["preference", "fact"]
    relation: _Name
    value: _Scalar | list[_Scalar]
    text: Annotated[str, Meta(min_length=1, pattern=r"\S")]
    entity: _Name | UnsetType = UNSET


class _Staged(TypedDict):
    staged: dict[str, Any] | None
    """None where the turn notes the text without the tool."""


class _Passage(TypedDict):
    node_id: str
    provenance: str
    line: int | None
    text: str
    confidence: float


class _Passages(TypedDict):
    passages: list[_Passage]
    faults: list[str]


@tool(
    "memory.query",
    "read",
    "Look up preferences, facts, cached research and visited pages that match a query.",
    _Matches,
    from_store=True,
)
def query_memory(arguments: QueryArguments, context: ToolContext) -> ToolResult:
    """Matches, best first; expired lines are left out, corrupt nodes are named under faults."""
    nodes, faults = _load_nodes(arguments.query, context, _MEMORY_KINDS, limit=_MOST_MEMORY_NODES)
    best = [(node, best_items(node, arguments.query, limit=_MOST_MEMORY_LINES)) for node in nodes]
    chosen = [(node, items) for node, items in best if items]
    matches = [
        _Match(
            node_id=node.id,
            source_type=node.source_type,
            title=node.title,
            provenance=node.provenance,
            at=render_time(node.at) if node.at else None,
            confidence=round(sum(item.confidence for item in items) / len(items), 2),
            items=[item.text for item in items],
        )
        for node, items in chosen
    ]
    return ToolResult(
        "success",
        data=_Matches(matches=matches, faults=faults),
        claims=tuple(claim for node, items in chosen for claim in claims_of(node, items)),
        entities=entities_of([node for node, _ in chosen]),
    )


@tool(
    "memory.create",
    "write",
    "Remember what the user states in this turn. text is a part of the query, word for word; value and entity"
    " are words of it; a preference has no entity.",
    _Staged,
    from_store=True,
)
def create_memory(arguments: _CreateArguments, context: ToolContext) -> ToolResult:
    """
    Return the staged value as staged_memory.json holds it; only what stands in the query can be staged. What
    the user told is noted without the tool, and not staged a second time.
    """
    value: Plain = tuple(arguments.value) if isinstance(arguments.value, list) else arguments.value
    query = one_line(context.query)
    text = one_line(arguments.text)
    if text not in query:
        raise UsageError("the text is not part of the user's query; only what the user says is remembered")
    claim = ToolClaim(arguments.text, None, "§0.raw_query")
    if any(text in one_line(statement) or one_line(statement) in text for statement in context.noted_texts):
        return ToolResult("success", data=_Staged(staged=None), claims=(claim,), text=_ALREADY_NOTED)
    entity = arguments.entity or None
    parts = value if isinstance(value, tuple) else (value,)
    stated = [("value", part) for part in parts]
    for name, part in (*stated, ("entity", entity)):
        if isinstance(part, str) and one_line(part).lower() not in query.lower():
            raise UsageError(f"the {name} {part!r} does not stand in the user's query")
    if entity is not None and arguments.kind == "preference":
        raise UsageError("a preference is the user's own", fix="use the kind fact for anybody else")
    staged = stage_value(
        user=context.store.user,
        kind=arguments.kind,
        relation=arguments.relation,
        value=value,
        text=arguments.text,
        source_turn=context.turn,
        entity=entity,
    )
    prefix = "memory" if arguments.kind == "preference" else "fact"
    key = Subject("local", staged.entity, staged.relation).key(context.store.user)
    entry = StepEntity(f"{prefix}:{key}", arguments.kind, key, "create")
    return ToolResult("success", data=_Staged(staged=encode(staged)), claims=(claim,), entities=(entry,))


@tool(
    "doc.search",
    "read",
    "Search earlier turns and the user's knowledge documents for passages on a query.",
    _Passages,
    from_store=True,
)
def search_documents(arguments: QueryArguments, context: ToolContext) -> ToolResult:
    """Passages that share most words with the query come first; corrupt nodes are named under faults."""
    nodes, faults = _load_nodes(arguments.query, context, _DOC_KINDS, limit=_MOST_DOC_NODES)
    best = [
        (node, item) for node in nodes for item in best_items(node, arguments.query, limit=_MOST_DOC_LINES)
    ]
    shares = {item.text: share_of_words(arguments.query, item.text) for _, item in best}
    pairs = sorted((pair for pair in best if shares[pair[1].text]), key=lambda pair: -shares[pair[1].text])
    place = context.store.place
    texts = {node.provenance: read_text(place(unescape_path(node.provenance))) for node, _ in pairs}
    passages = [
        _Passage(
            node_id=node.id,
            provenance=node.provenance,
            line=_find_line(texts[node.provenance], item.text),
            text=item.text,
            confidence=round(item.confidence, 2),
        )
        for node, item in pairs
    ]
    return ToolResult(
        "success",
        data=_Passages(passages=passages, faults=faults),
        claims=tuple(claim for node, item in pairs for claim in claims_of(node, [item])),
        entities=entities_of([node for node, _ in pairs]),
    )


def _find_line(text: str, passage: str) -> int | None:
    """The line of a file, from 1, on which a passage begins; None if it stands nowhere as it is."""
    numbers: list[int] = []
    joined = ""
    for number, line in enumerate(spell_out_wikilinks(text).split("\n"), 1):
        if piece := one_line(line):
            joined += piece + " "
            numbers += [number] * (len(piece) + 1)
    places = (joined.find(passage), joined.find(passage[:_KEY_CHARS]))
    return next((numbers[at] for at in places if at >= 0), None)


def _load_nodes(
    query: str, context: ToolContext, kinds: tuple[str, ...], *, limit: int
) -> tuple[list[Node], list[str]]:
    """
    The nodes of these kinds, of turns before the running one, that share a word with a query, best first,
    and a line for each that is corrupt; in the place of one that only quoted comes what it quoted.
    """
    candidates = context.retriever.find(query, limit=200, before_turn=context.turn)
    nodes: dict[str, Node] = {}
    faults = [f"{problem.where}: {problem.message}" for problem in context.retriever.problems]
    waiting = [c.node_id for c in candidates if c.score > 0 and c.node_id.startswith(kinds)]
    quoted: set[str] = set()
    while waiting and len(nodes) < limit:
        node_id = waiting.pop(0)
        if node_id in nodes:
            continue
        try:
            node = context.reader.load(node_id)
        except MemoryNodeError as exc:
            if node_id not in quoted:
                faults.append(f"{exc.where}: {exc.message}" if exc.where else exc.message)
            continue
        faults += long_lines(node)
        if any(map(_stands, node.items)):
            nodes[node_id] = node
        origins = [origin for origin in node.origins if origin.startswith(kinds)]
        quoted.update(origins)
        waiting[:0] = origins
    return list(nodes.values()), faults


def _stands(item: Line) -> bool:
    is_short = len(item.text) <= LONGEST_LINE_CHARS
    return is_short and item.origin is None and not is_question(item.text)


def best_items(node: Node, query: str, *, limit: int, expired: bool = False) -> list[Line]:
    """The lines of a node that share most words with the query, in its order; the first ones if none does."""
    usable = [line for line in node.items if _stands(line) and (expired or line.confidence >= EXPIRED_BELOW)]
    order = sorted(range(len(usable)), key=lambda i: -share_of_words(query, usable[i].text))
    return [usable[i] for i in sorted(order[:limit])]


def claims_of(node: Node, items: Sequence[Line]) -> list[ToolClaim]:
    expires = node.expires_at.isoformat().replace("+00:00", "Z") if node.expires_at else None
    return [
        ToolClaim(item.text, round(item.confidence, 2), node.provenance, node.id, expires) for item in items
    ]


def entities_of(nodes: Sequence[Node]) -> tuple[StepEntity, ...]:
    entities = (StepEntity(n.id, n.id.partition(":")[0], n.title or n.id) for n in nodes)
    return tuple(dict.fromkeys(entities))


MEMORY_TOOLS = (query_memory, create_memory, search_documents)
