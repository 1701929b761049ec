"""Loading what a search found, and the lines of it that speak of the query."""

from collections.abc import Callable, Sequence

from panda.errors import MemoryNodeError
from panda.language.sentences import is_question
from panda.memory.confidence import EXPIRED_BELOW
from panda.memory.node import Item, Node
from panda.retrieval.relevance import share_of_words
from panda.tools.contract import Entity, ToolClaim, ToolContext


def load_found(
    query: str, context: ToolContext, wanted: Callable[[str], bool], *, limit: int
) -> tuple[list[Node], list[str]]:
    """
    The wanted nodes that a query finds by a shared word, best first, and one line for each that is corrupt.

    Only turns before the running one are found; in the place of one that only quoted comes what it quoted.
    """
    candidates = context.retriever.find(query, limit=200, before_turn=context.turn)
    nodes: dict[str, Node] = {}
    faults = [f"{problem.where}: {problem.message}" for problem in context.retriever.problems]
    waiting = [one.node_id for one in candidates if one.score > 0 and wanted(one.node_id)]
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
        if any(map(_stands, node.items)):
            nodes[node_id] = node
        quoted.update(origins := [one for one in node.origins if wanted(one)])
        waiting[:0] = origins
    return list(nodes.values()), faults


def _stands(item: Item) -> bool:
    """Whether a line states something, and does not only repeat another node."""
    return item.origin is None and not is_question(item.text)


def best_items(node: Node, query: str, *, limit: int, expired: bool = False) -> list[Item]:
    """The lines of a node that share most words with the query, in its order; the first ones if none does."""
    usable = [one for one in node.items if _stands(one) and (expired or one.confidence >= EXPIRED_BELOW)]
    order = sorted(range(len(usable)), key=lambda i: -share_of_words(query, usable[i].text))
    return [usable[i] for i in sorted(order[:limit])]


def claims_of(node: Node, items: Sequence[Item]) -> list[ToolClaim]:
    """One claim for each line, with the node's file as its source."""
    expires = node.expires_at.isoformat().replace("+00:00", "Z") if node.expires_at else None
    return [
        ToolClaim(item.text, round(item.confidence, 2), node.provenance, node.id, expires) for item in items
    ]


def entities_of(nodes: Sequence[Node]) -> tuple[Entity, ...]:
    """The nodes as what a tool read, each once."""
    return tuple(
        dict.fromkeys(Entity(node.id, node.id.partition(":")[0], node.title or node.id) for node in nodes)
    )
