"""A user's memory as it was before a turn, for running that turn again and for judging it."""

import json
from datetime import datetime

from panda.errors import MemoryNodeError
from panda.memory.assertions import Assertion
from panda.memory.nodes import Node, NodeReader
from panda.memory.projection import KINDS, Projection
from panda.memory.showing import Showing
from panda.storage.files import write_atomic
from panda.storage.layout import Layout
from panda.storage.temporaries import work_directory

_MEMORY = ("memory:", "fact:")


class PastNodes:
    """
    The nodes of a user as they were when a turn began; memory that has changed since is set back.

    Args:
        layout: The store.
        user: Whose memory.
        before: Number of the turn; what it or a later one said or researched does not count.
        at: When it began.
    """

    def __init__(self, layout: Layout, user: str, *, before: int, at: datetime) -> None:
        self._layout, self._user, self._before = layout, user, before
        self._reader = NodeReader(layout, user, lambda: at, before=before)
        self.at = at

    def load(self, node_id: str) -> Node:
        """
        A node as of then; pages and notes as they are now.

        Raises:
            MemoryNodeError: There was none, or it is corrupt.
            FileFormatError: The log or a memory file is corrupt.
            StoreError: A file cannot be read or written.
        """
        try:
            node = self._reader.load(node_id)
        except MemoryNodeError:
            if not node_id.startswith(_MEMORY):
                raise
            node = None
        if node is not None and not (node_id.startswith(_MEMORY) and self.has_changed(node)):
            return node
        with work_directory("past") as directory:
            past = Layout(directory / "panda-system-docs")
            set_memory_back(self._layout, past, self._user, turn=self._before, at=self.at)
            return NodeReader(past, self._user, lambda: self.at).load(node_id)

    def has_changed(self, node: Node) -> bool:
        """Whether a node says of itself that it was written after the turn began."""
        return node.at is not None and node.at > self.at


def set_memory_back(layout: Layout, past: Layout, user: str, *, turn: int, at: datetime) -> None:
    """
    Write a user's log and memory files, as they were when a turn began, to another store.

    Args:
        layout: The store; nothing is written to it.
        past: The other one.
        user: Whose memory.
        turn: Number of the turn; what it or a later one said is taken back.
        at: When it began; what was set or typed after that is taken back.

    Raises:
        StoreError: A file cannot be read or written.
        FileFormatError: The log or a memory file is corrupt.
    """
    state = Projection(layout, user)
    state.refresh()
    earlier = [one for one in state.log.assertions if _is_earlier(one, turn, at)]
    if state.log.assertions:
        _write_lines(past, user, state, earlier)
    then = Projection(past, user)
    then.refresh()
    showing = Showing(state)
    for triple in state.log.triples("local"):
        is_, was = (next(iter(one.log.contenders(triple, now=at)), None) for one in (state, then))
        if is_ != was:
            showing.show(triple, was)
    texts = showing.texts()
    for kind in KINDS:
        text = texts[kind]
        if text is not None and state.texts[kind] is not None:
            write_atomic(then.paths[kind], text)


def _is_earlier(one: Assertion, turn: int, at: datetime) -> bool:
    return one.source_turn < turn if one.source_turn is not None else one.asserted_at <= at


def _write_lines(past: Layout, user: str, state: Projection, earlier: list[Assertion]) -> None:
    ids = {one.fact.id for one in earlier}
    lines = "".join(json.dumps(one.to_json(), ensure_ascii=False) + "\n" for one in earlier)
    write_atomic(past.memory_log(user), lines.encode("utf-8", "backslashreplace"))
    records = [
        one for one in state.log.conflicts if one.resolution_fact is None or one.resolution_fact in ids
    ]
    if records:
        text = "".join(json.dumps(one.to_json(), ensure_ascii=False) + "\n" for one in records)
        write_atomic(past.conflicts_log(user), text)
