"""Saved turns that a query names by number (S1 §9)."""

from collections.abc import Collection

from panda.errors import MemoryNodeError
from panda.language.reading import MOST_NAMED_TURNS, Reading
from panda.store.layout import UserStore
from panda.store.node_id import key_of


def check_named_turns(reading: Reading, there: Collection[str], store: UserStore) -> None:
    """
    Raise MemoryNodeError if a query asks for turns that are not saved, or for too many.

    Args:
        reading: How the query was read; its `turns` are those that it names.
        there: Ids of turns that are saved, at least those that are named.
        store: The store of the user, for the message.
    """
    named = reading.turns
    where = str(store.turns)
    if reading.mood == "tells":  # what is told of "turn 12" asks for nothing
        return
    if len(named) > MOST_NAMED_TURNS:
        message = f"the query names more than {MOST_NAMED_TURNS} turns"
        raise MemoryNodeError(message, where=where, fix="ask for fewer turns at once, in a new turn")
    missing = [node_id for node_id in named if node_id not in there]
    if not missing:
        return
    numbers = ", ".join(key_of(node_id) for node_id in missing)
    message = f"the query names turns that are not saved: {numbers}"
    if len(missing) == 1:
        message = f"the query names turn {numbers}, which is not saved"
    raise MemoryNodeError(
        message,
        where=where,
        fix=f"ask for turns that `panda list --user {store.user}` shows as saved, in a new turn",
        expected="saved turns of this user",
        details={"node_ids": missing},
    )
