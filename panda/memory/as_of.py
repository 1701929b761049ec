"""A user's nodes as they were when a turn began, for judging it."""

from datetime import datetime

from panda.errors import MemoryNodeError
from panda.memory.moment import Moment
from panda.memory.nodes import Node, NodeReader
from panda.storage.layout import Layout
from panda.storage.snapshot import Snapshot

_MEMORY = ("memory:", "fact:")


class PastNodes:
    """
    The nodes of a user as they were when a turn began; memory that has changed since is set back.

    Args:
        layout: The store.
        user: Whose memory.
        turn: Number of the turn.
        at: When it began.
        snapshot: What it recorded of what was there; None for a turn of before.
    """

    def __init__(
        self, layout: Layout, user: str, *, turn: int, at: datetime, snapshot: Snapshot | None
    ) -> None:
        now, past = Moment(layout, user), Moment(layout, user)
        now.pin(turn, snapshot, at, sets_back=False)
        past.pin(turn, snapshot, at)
        self._now, self._past = (NodeReader(layout, user, lambda: at, one) for one in (now, past))
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
            node = self._now.load(node_id)
        except MemoryNodeError:
            if not node_id.startswith(_MEMORY):
                raise
            node = None
        if node is not None and not (node_id.startswith(_MEMORY) and self.has_changed(node)):
            return node
        return self._past.load(node_id)

    def has_changed(self, node: Node) -> bool:
        """Whether a node says of itself that it was written after the turn began."""
        return node.at is not None and node.at > self.at
