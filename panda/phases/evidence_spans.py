"""What a turn has gathered so far, as pieces of evidence that a choice can pick from."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from panda.documents.antecedents import parts_about_one_thing
from panda.documents.last_seen import last_seen
from panda.documents.questions import named_turns
from panda.errors import MemoryNodeError
from panda.language.stemming import split_words
from panda.memory.items import claim_type
from panda.memory.nodes import Node
from panda.phases.pages import named_pages, read_anew
from panda.phases.turn import Turn
from panda.recipes.choices import Option
from panda.retrieval.overlap import share_of_words
from panda.retrieval.query_words import find_capitalised
from panda.storage.layout import GATHERED_CONTEXT_JSON

TOLD = ("turn:", "research:")
"""Nodes that tell of things what was so then."""
LEAST_SHARE = 0.5
"""How many of its words a line shares with what it is about."""
_LOOKING_UP = ("memory.query", "doc.search")
_ADDRESS = re.compile(r"\burl https?://\S+\Z")


def gathered_spans(turn: Turn) -> list[Option]:
    """
    The lines of §2, without the constraints, each with the nodes that it cites.

    Once a tool of this turn has looked at a page again, what an earlier visit of it said no longer counts,
    nor what turns and research told of its prices and stock: that was then. What says which thing the query
    is about stays. The address of another page says
    nothing to a query that names one.
    """
    names_page = bool(named_pages(turn.query))
    sections = turn.read(GATHERED_CONTEXT_JSON)["sections"]
    meant = turn.meant
    anew = _Anew(turn.steps(), meant)
    lines = [
        item
        for section in sections
        if section["title"] != "Constraints"
        for item in section["items"]
        if not anew.outdates(item["text"], item["node_ids"])
        and not (names_page and _ADDRESS.search(item["text"]))
    ]
    return [_span(f"g{n}", item["text"], tuple(item["node_ids"]), meant) for n, item in enumerate(lines, 1)]


class _Anew:
    """
    What tools have looked at again.

    Args:
        steps: Their steps.
        query: The user's query.
    """

    def __init__(self, steps: Sequence[Mapping[str, Any]], query: str) -> None:
        self._node_ids = read_anew(steps)
        labels = " ".join(entity["label"] for step in steps for entity in step["entities"])
        self._query = query
        self._others = find_capitalised(query) - set(map(str.lower, split_words(labels)))

    def outdates(self, text: str, node_ids: Sequence[str]) -> bool:
        """Whether a line is of an earlier visit, or tells the price or stock of the same thing."""
        if not self._node_ids:
            return False
        changes = claim_type(text) in ("price", "availability")
        told = node_ids[0].startswith(TOLD) and not introduces(self._query, text)
        about_another = told and not self._others.isdisjoint(map(str.lower, split_words(text)))
        return bool(self._node_ids & set(node_ids)) or (told and changes and not about_another)


def introduces(query: str, text: str) -> bool:
    """
    Whether a line says which one thing a query is about that goes on to ask about "it".

    >>> introduces("Which tent was the best, and is it in stock?", "The Ostra tent at $90 was the best")
    True
    >>> introduces("Is the tent in stock?", "The Ostra tent at $90 was the best")
    False
    """
    parts = parts_about_one_thing(query)
    return parts is not None and share_of_words(parts[0], text) >= LEAST_SHARE


def tool_spans(turn: Turn, steps: Sequence[Mapping[str, Any]] | None = None) -> list[Option]:
    """
    What the tools of this turn found.

    Args:
        turn: The running turn.
        steps: The steps to look at; None for all that are on disk.

    Returns:
        A claim about the user's own words cites this turn, one that no node holds its step, as "step:2".
        What a search in the store found of a page that this turn has looked at again is left out, and to a
        query that names a page every address.
    """
    found: list[Option] = []
    meant, made = turn.meant, turn.steps() if steps is None else steps
    anew, names_page = _Anew(made, meant), bool(named_pages(turn.query))
    for step in made:
        own = f"turn:{turn.turn}" if step["tool"] == "memory.create" else f"step:{step['step']}"
        for claim in step["claims"]:
            node_ids = (claim["node_id"] or own,)
            says_nothing = names_page and _ADDRESS.search(claim["text"])
            stale = step["tool"] in _LOOKING_UP and anew.outdates(claim["text"], node_ids)
            if not says_nothing and not stale:
                found.append(_span(f"t{len(found) + 1}", claim["text"], node_ids, meant))
    return found


class NodeLoader(Protocol):
    """Gives nodes by their ids."""

    def load(self, node_id: str) -> Node:
        """The node; raises MemoryNodeError."""
        ...


def cited_text(reader: NodeLoader, turn: Turn, steps: Sequence[Mapping[str, Any]], node_id: str) -> str:
    """
    Everything that an item may claim when it cites a node: its title, address, lines and time, and what the
    tools of this turn told of it.

    Args:
        reader: Loads nodes.
        turn: The running turn, or a saved one.
        steps: Its steps.
        node_id: Of a node, of a step, or of the turn itself, which stands for the query.
    """
    if node_id == f"turn:{turn.turn}":
        return turn.query
    told = step_texts(steps, node_id)
    if node_id.startswith("step:"):
        return told
    try:
        node = reader.load(node_id)
    except MemoryNodeError:
        return told
    seen = last_seen(node.at) if node.at else ""
    return "\n".join((node.title, node.url or "", node.text, seen, told))


def step_texts(steps: Sequence[Mapping[str, Any]], node_id: str) -> str:
    """
    What the tools of this turn told of a node; of a step, everything that it gave.

    Args:
        steps: The steps of the running turn.
        node_id: Of a node, or "step:2".
    """
    texts: list[str] = []
    for step in steps:
        own = node_id == f"step:{step['step']}" and step["status"] == "success"
        texts += [claim["text"] for claim in step["claims"] if own or claim["node_id"] == node_id]
        texts += [step["text"], *_strings(step["data"])] if own else []
    return "\n".join(texts)


def _strings(value: Any) -> list[str]:
    """Every text and number inside a value."""
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in _strings(part)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def title_of(node_id: str, query: str) -> str:
    """What a scorer is told of where a line comes from: the turn's number, if the query names turns."""
    number = node_id.removeprefix("turn:")
    return f"Turn {number}" if node_id.startswith("turn:") and named_turns(query) else ""


def _span(id_: str, text: str, node_ids: tuple[str, ...], query: str) -> Option:
    title = title_of(node_ids[0], query)
    return Option(id_, text, node_ids, share_of_words(query, text), title)
