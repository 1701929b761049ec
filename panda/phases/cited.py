"""What the nodes that an answer cites say: everything that its items may claim, and the lines beside each."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from panda.documents.text import one_line
from panda.documents.times import last_seen, parse_time
from panda.memory.gathered import node_caption
from panda.memory.reader import NodeLoader, find_node
from panda.phases.turn import Turn
from panda.retrieval.relevance import share_of_words
from panda.store.records import GatheredContext, GatheredItem, Step

_MOST_JUDGED_BY = 8  # lines of one node beside an item that is judged


def cited_texts(reader: NodeLoader, turn: Turn, items: Sequence[GatheredItem]) -> list[list[str]]:
    """
    Everything that items may claim: for each a text for each node that it cites, with title, address, lines,
    time, its age as §2 shows it, and what the tools of this turn told of it.
    """
    steps = turn.steps()
    gathered = turn.folder.find(GatheredContext)
    at = parse_time(gathered.gathered_at) if gathered else None

    @cache
    def text_of(node_id: str) -> str:
        if node_id == f"turn:{turn.turn}":
            return turn.query
        told = step_texts(steps, node_id)
        if node_id.startswith("step:"):
            return f"{node_id.replace(':', ' ')}\n{told}" if told else ""
        node = find_node(reader, node_id)
        if node is None:
            return told
        seen = last_seen(node.at) if node.at else ""
        shown = node_caption(node, at) if at else ""
        return "\n".join((node.title, node.url or "", node.text, seen, shown, told))

    return [[text_of(node_id) for node_id in item.node_ids] for item in items]


def render_cited(reader: NodeLoader, turn: Turn, items: Sequence[GatheredItem]) -> str:
    """Each item with its number, and below it the lines nearest to it of each node that it cites."""
    steps, shown = turn.steps(), list[str]()
    for n, (item, texts) in enumerate(zip(items, cited_texts(reader, turn, items), strict=True), 1):
        shown.append(f"{n}. {one_line(item.text)}")
        for node_id, text in zip(item.node_ids, texts, strict=True):
            node = find_node(reader, node_id)
            lines = text.splitlines()
            if node is not None:
                lines = [f"{line.above}: {line.text}" if line.above else line.text for line in node.items]
                lines += step_texts(steps, node_id).splitlines()
            seen = f" {last_seen(node.at)}" if node and node.at else ""
            shown.append(f"   [{node_id}] {one_line(node.title) if node else ''}{seen}".rstrip())
            shares = {line: share_of_words(item.text, line) for line in lines if line.strip()}
            nearest = sorted(shares, key=lambda line: -shares[line])[:_MOST_JUDGED_BY]
            shown += [f"   - {one_line(line)}" for line in shares if line in nearest]
    return "\n".join(shown)


def step_texts(steps: Sequence[Step], node_id: str) -> str:
    """What the tools of this turn told of a node; of a step, as "step:2", everything that it gave."""
    texts: list[str] = []
    for step in steps:
        own = node_id == f"step:{step.step}" and step.status == "success"
        texts += [claim.text for claim in step.claims if own or claim.node_id == node_id]
        texts += [step.text, *_strings(step.data)] if own else []
    return "\n".join(texts)


def _strings(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in _strings(part)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
