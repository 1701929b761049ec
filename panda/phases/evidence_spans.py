"""What a turn has gathered so far, as pieces of evidence that a choice can pick from."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from panda.choosing.decision import Option
from panda.documents.text import one_line
from panda.documents.times import last_seen, parse_time, without_last_seen
from panda.language.reading import named_turns
from panda.language.words import split_words
from panda.memory.budget import is_usable
from panda.memory.confidence import claim_type
from panda.memory.gathered import CONSTRAINTS, node_caption
from panda.memory.node import Line, Node, line_title
from panda.memory.reader import NodeLoader, find_node
from panda.models.contract import Encoder
from panda.phases.pages import named_pages, read_anew
from panda.phases.turn import Turn
from panda.retrieval.relevance import folded_names, measure_closeness, share_of_words
from panda.store.records import GatheredContext, GatheredItem, GatheredSection, Step

TOLD = ("turn:", "research:")
"""Nodes that tell of things what was so then."""
_MOST_READ = 4
_MOST_JUDGED_BY = 8  # lines of one node beside an item that is judged
_WITHIN = 0.25
"""The answer is among the four closest of ten lines, no further below the first, in 98 of 100 cases."""
LOOKING_UP = ("memory.query", "doc.search")
"""Tools that only look into the store."""
_ADDRESS = re.compile(r"\burl https?://\S+\Z")


class ClosestLines:
    """Orders lines by how close they are to a query, each with what it stands below."""

    def __init__(self, reader: NodeLoader, encoder: Encoder | None) -> None:
        self._reader = reader
        self._encoder = encoder

    def best_lines(self, query: str, nodes: Sequence[Node]) -> dict[str, Option]:
        lines = [(node, item) for node in nodes for item in node.items if is_usable(item)]
        ranked = sorted(self.rate_lines(query, lines), key=lambda line: line.prior)
        best = {line.node_ids[0]: line for line in ranked}
        return dict(sorted(best.items(), key=lambda pair: pair[1].prior))

    def rate_lines(self, query: str, lines: Sequence[tuple[Node, Line]]) -> list[Option]:
        options = [
            Option(f"s{n}", item.text, (node.id,), 0.0, line_title(node, item))
            for n, (node, item) in enumerate(lines, 1)
        ]
        return self._rated(query, options)

    def rate(self, query: str, lines: Sequence[Option]) -> list[Option]:
        """The lines, closeness as prior and what they stand below as title; unreadable nodes stay."""
        nodes: dict[str, Node | None] = {}
        titled = []
        for line in lines:
            node_id = line.node_ids[0] if line.node_ids else ""
            if node_id not in nodes:
                nodes[node_id] = find_node(self._reader, node_id)
            titled.append(replace(line, title=_title_of(line.text, node_id, nodes[node_id], query)))
        return self._rated(query, titled)

    def closest(self, query: str, lines: Sequence[Option]) -> list[Option]:
        ranked = sorted(self.rate(query, lines), key=lambda line: -line.prior)
        return [line for line in ranked[:_MOST_READ] if line.prior >= ranked[0].prior - _WITHIN]

    def _rated(self, query: str, lines: Sequence[Option]) -> list[Option]:
        found = measure_closeness(query, [one.near for one in lines], self._encoder)
        return [replace(one, prior=value) for one, value in zip(lines, found, strict=True)]


def _title_of(text: str, node_id: str, node: Node | None, query: str) -> str:
    if node_id.startswith("turn:") and named_turns(query):
        return f"Turn {node_id.removeprefix('turn:')}"
    item = next((one for one in node.items if one.text == without_last_seen(text)), None) if node else None
    return line_title(node, item) if node and item else ""


def gathered_spans(turn: Turn) -> list[Option]:
    """
    The lines of §2, without the constraints, each with the nodes that it cites. Once a tool of this turn has
    looked at a page again, what was said earlier of its prices and stock no longer counts. The address of
    another page says nothing to a query that names one.
    """
    names_page, anew = bool(named_pages(turn)), _Anew(turn.steps(), turn.meant)
    return [
        span
        for span in evidence_of(turn.gathered)
        if not anew.outdates(span.text, span.node_ids) and not (names_page and _ADDRESS.search(span.text))
    ]


def evidence_of(sections: Sequence[GatheredSection]) -> list[Option]:
    items = {
        item.text: item.node_ids
        for section in reversed(sections)
        if section.title != CONSTRAINTS
        for item in reversed(section.items)
    }
    return [Option(f"g{n}", text, node_ids) for n, (text, node_ids) in enumerate(reversed(items.items()), 1)]


def without_addresses(turn: Turn, spans: Sequence[Option]) -> list[Option]:
    """The evidence of a question without addresses of pages, unless it asks for them: sources have them."""
    reading = turn.reading
    if reading.mood != "asks" or reading.details or reading.address:
        return [*spans]
    return [span for span in spans if not _ADDRESS.search(without_last_seen(span.text))]


class _Anew:
    def __init__(self, steps: Sequence[Step], query: str) -> None:
        self._node_ids = read_anew(steps)
        labels = " ".join(entity.label for step in steps for entity in step.entities)
        self._others = folded_names(query) - set(map(str.lower, split_words(labels)))

    def outdates(self, text: str, node_ids: Sequence[str]) -> bool:
        if not self._node_ids:
            return False
        changes = claim_type(text) in ("price", "availability")
        told = node_ids[0].startswith(TOLD)
        about_another = told and not self._others.isdisjoint(map(str.lower, split_words(text)))
        return bool(self._node_ids & set(node_ids)) or (told and changes and not about_another)


def tool_spans(turn: Turn, steps: Sequence[Step] | None = None) -> list[Option]:
    """
    What the tools of this turn found, or *steps* of it. A claim about the user's own words cites this turn,
    one that no node holds its step, as "step:2". What a search found of a page that was looked at again is
    left out, and to a query that names a page every address.
    """
    found: list[Option] = []
    meant, made = turn.meant, turn.steps() if steps is None else steps
    anew, names_page = _Anew(made, meant), bool(named_pages(turn))
    for step in made:
        own = f"turn:{turn.turn}" if step.tool == "memory.create" else f"step:{step.step}"
        for claim in step.claims:
            node_ids = (claim.node_id or own,)
            says_nothing = names_page and _ADDRESS.search(claim.text)
            stale = step.tool in LOOKING_UP and anew.outdates(claim.text, node_ids)
            if not says_nothing and not stale:
                prior = share_of_words(meant, claim.text)
                found.append(Option(f"t{len(found) + 1}", claim.text, node_ids, prior))
    return found


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
                titled = ((line_title(node, line), line.text) for line in node.items)
                lines = [f"{title}: {text}" if title else text for title, text in titled]
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
