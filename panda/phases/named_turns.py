"""Saved turns that a query names by number (S1 §9)."""

from collections.abc import Collection
from contextlib import suppress

from panda.errors import MemoryNodeError, Problem
from panda.messages.reading import Reading
from panda.messages.turn_numbers import MOST_NAMED_TURNS
from panda.store.layout import UserStore
from panda.store.node_id import key_of
from panda.store.visit_records import SAVED_STATUSES


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
    states = {int(key_of(node_id)): _state_of(int(key_of(node_id)), store) for node_id in missing}
    listed = ", ".join(f"{number} ({state})" if state else str(number) for number, state in states.items())
    message = f"the query names turns that are not saved: {listed}"
    if len(states) == 1:
        ((number, state),) = states.items()
        message = f"the query names turn {number}, which is {state or 'not saved'}"
    raise MemoryNodeError(
        message,
        where=where,
        fix=f"ask for turns that `panda list --user {store.user}` shows as saved, in a new turn",
        expected="saved turns of this user",
        details={"node_ids": missing},
    )


def _state_of(number: int, store: UserStore) -> str:
    """Return what became of a turn that is not saved, as "forgotten" or "halted"; "" if there is none."""
    with suppress(Problem):
        status = store.open(number).read_metadata().status
        if status not in SAVED_STATUSES:
            return status
    return ""
