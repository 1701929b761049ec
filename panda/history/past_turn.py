"""What a saved turn is exported from: its metadata, what the user saw, the summary, what was cited."""

from dataclasses import dataclass

from panda.errors import Problem
from panda.memory.gathered import answer_items
from panda.store.layout import INDEX_SUMMARY_JSON, RESPONSE_MD
from panda.store.records import Metadata
from panda.store.turns import TurnFolder
from panda.store.visits import SAVED_STATUSES


@dataclass(frozen=True)
class PastTurn:
    """One turn as its files say it."""

    metadata: Metadata  # number, user, session, query, status, times
    reply: str  # what the user saw; "" if nothing was answered, or the answer was not approved
    summary: str | None  # summary for the index; None if none is written
    topics: tuple[str, ...]  # topics for the index
    cited: frozenset[str]  # ids of the nodes that the answer cites

    @property
    def key(self) -> tuple[str, int]:
        """User and number."""
        return self.metadata.user_id, self.metadata.turn

    @property
    def is_saved(self) -> bool:
        """Whether it has ended, and is not forgotten."""
        return self.metadata.status in SAVED_STATUSES


@dataclass(frozen=True)
class LeftOut:
    """A turn that is not exported."""

    user: str  # whose turn it is
    turn: int  # its number
    reason: str  # why
    fix: str | None = None  # what can be done about it
    is_damage: bool = False  # whether a file of it does not say what it must


def load_past_turn(folder: TurnFolder) -> PastTurn:
    """A turn from its files. Raises FileFormatError: one of them is damaged."""
    metadata = folder.read_metadata()
    has_reply = folder.has(RESPONSE_MD) and metadata.status in SAVED_STATUSES - {"failed"}
    index = folder.read_json(INDEX_SUMMARY_JSON) if folder.has(INDEX_SUMMARY_JSON) else {}
    items = answer_items(folder.read_context().section(5)) if metadata.status == "approved" else ()
    return PastTurn(
        metadata=metadata,
        reply=folder.read_text(RESPONSE_MD) if has_reply else "",
        summary=index.get("summary"),
        topics=tuple(index.get("topics") or ()),
        cited=frozenset(node_id for item in items for node_id in item.node_ids),
    )


def damaged_turn(user: str, number: int, error: Problem) -> LeftOut:
    """What is told of a turn that does not read."""
    where = f" ({error.where})" if error.where else ""
    return LeftOut(user, number, f"{error.message}{where}", error.fix, is_damage=True)
