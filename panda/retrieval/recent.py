"""The newest saved turns of a session."""

from panda.storage.layout import METADATA_JSON, Layout, TurnPaths
from panda.storage.records import SAVED_STATUSES, load_object, load_turn, turn_directories


def recent_turns(
    layout: Layout, user: str, session: str, before_turn: int, *, limit: int
) -> list[tuple[int, str]]:
    """
    The last saved turns of a session with what they were about.

    Args:
        layout: The store.
        user: Whose turns.
        session: Session id.
        before_turn: Only turns with a lower number.
        limit: Most turns.

    Returns:
        (number, summary or else query), oldest first.

    Raises:
        FileFormatError: A turn on the way is damaged.
    """
    found: list[tuple[int, str]] = []
    for number, directory in reversed(turn_directories(layout.turns(user))):
        if len(found) == limit:
            break
        if number >= before_turn:
            continue
        metadata = load_object(directory / METADATA_JSON)
        if metadata.get("session_id") == session and metadata.get("status") in SAVED_STATUSES:
            record = load_turn(TurnPaths(directory), number)
            found.append((number, record.summary or record.query))
    return found[::-1]
