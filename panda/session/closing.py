"""Closing a session: a mark beside session.json, after which no turn is asked in it."""

from panda.errors import NotFoundError, UsageError
from panda.storage.files import read_json, store_errors, write_json
from panda.storage.layout import Layout

CLOSED_SCHEMA = "panda.closed/1"


def close_session(layout: Layout, user: str, session: str, at: str, head_turn: int) -> None:
    """
    Mark a session as closed.

    Args:
        layout: The store.
        user: User id.
        session: A session with at least one turn; its lock is held.
        at: The present instant.
        head_turn: Its newest turn.
    """
    value = {"schema": CLOSED_SCHEMA, "session_id": session, "closed_at": at, "head_turn": head_turn}
    write_json(layout.session_closed(user, session), value)


def reopen_session(layout: Layout, user: str, session: str) -> None:
    """
    Take the mark away.

    Raises:
        NotFoundError: The session is not closed.
    """
    path = layout.session_closed(user, session)
    if not path.exists():
        raise NotFoundError(f"session {session} is not closed", where=str(path.parent))
    with store_errors(path, "remove"):
        path.unlink()


def closed_at(layout: Layout, user: str, session: str) -> str | None:
    """When a session was closed; None if it is open."""
    path = layout.session_closed(user, session)
    return str(read_json(path)["closed_at"]) if path.exists() else None


def check_open(layout: Layout, user: str, session: str) -> None:
    """
    Raises UsageError for a closed session.
    """
    at = closed_at(layout, user, session)
    if at is not None:
        raise UsageError(
            f"session {session} was closed at {at}",
            where=str(layout.session_closed(user, session)),
            fix=f"use another session, or `panda session close {session} --reopen`",
        )
