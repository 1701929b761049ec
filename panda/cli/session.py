"""`panda session`: what a session carries from turn to turn."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from panda.cli.command import Invocation, Result, Table, argument, flag, option
from panda.cli.completion import complete_sessions
from panda.cli.text import clipped
from panda.documents.records import encode
from panda.documents.times import render_time
from panda.errors import CheckError, NotFoundError, Problem
from panda.session.file import (
    close_session,
    closed_at,
    fold_turns,
    load_session,
    newest_session,
    open_session,
    reopen_session,
    saved_turns,
    session_ids,
    verify_session,
)
from panda.session.render import field_rows
from panda.store.carry import FIELDS
from panda.store.files import held_lock
from panda.store.layout import Layout, check_id
from panda.store.records import Session

_ABOUT_CHARS = 60
_COLUMNS = ("session", "turns", "head", "last active", "status", "about")
_Session = Annotated[str, argument("Session id.", "SESSION", complete=complete_sessions)]


def list_all(
    invocation: Invocation,
    limit: Annotated[int, option("The newest so many; 0 for all.", "N", min=0)] = 20,
) -> Result:
    """
    List the sessions of a user by their newest turns: the last one is what -c goes on with.

    Example: panda session list --limit 5 --user demo
    """
    layout, user = invocation.store(), invocation.settings.user
    known, numbers = set(session_ids(layout, user)), saved_turns(layout, user)
    names = sorted(known | numbers.keys(), key=lambda name: (numbers.get(name, [0])[-1], name))
    if more := limit and len(names) > limit:
        invocation.reporter.step(f"the newest {limit} of {len(names)}: --limit 0 shows all")
        names = names[-limit:]
    rows = [_row(invocation, layout, name, numbers.get(name, [])) for name in names]
    found = [row for row in rows if row is not None]
    if not found:
        invocation.reporter.step(f"user {user} has no sessions in {layout.root}")
    cells = [
        (
            row["session_id"],
            row["turns"],
            row["head_turn"],
            row["last_active_at"],
            "closed" if row["closed_at"] else "open",
            clipped(str(row["about"]), _ABOUT_CHARS),
        )
        for row in found
    ]
    return Result({"user": user, "sessions": found, "more": bool(more)}, Table(_COLUMNS, cells))


def show(
    invocation: Invocation,
    session: Annotated[
        str | None, argument("Session id; none: the newest.", "SESSION", complete=complete_sessions)
    ] = None,
) -> Result:
    """
    Show what the next turn of a session will know, field by field, with where it came from.

    Example: panda session show pets --user demo
    """
    layout = invocation.store()
    if session is None:
        session = newest_session(invocation.turns(), where="SESSION")
        invocation.reporter.step(f"session {session}")
    found = _open(invocation, layout, session)
    data: dict[str, Any] = encode(found)
    data["closed_at"] = closed_at(layout, found.user_id, session)
    user = layout.of(found.user_id).home
    rows = field_rows(found.carry, lambda name: (user / name).exists())
    data["shown"] = [dict(zip(("field", "value", "from"), row, strict=True)) for row in rows]
    data["fields"] = {
        name: {"what": field.what, "read_by": list(field.read_by), "limit": field.limit}
        for name, field in FIELDS.items()
    }
    return Result(data, Table(("field", "what the next turn will know", "from"), rows))


def close(
    invocation: Invocation,
    session: _Session,
    reopen: Annotated[bool, flag("Open it again.", "--reopen")] = False,
) -> Result:
    """
    Close a session: no turn can be asked in it any more, until it is opened again.

    Example: panda session close kitchen --user demo
    """
    layout, user = invocation.store_for_writing(), invocation.settings.user
    found = _open(invocation, layout, session)
    at = render_time(invocation.settings.clock())
    with held_lock(
        layout.of(user).session_lock(session),
        holder="panda session close",
        wait_seconds=invocation.settings.wait_seconds,
    ):
        if reopen:
            reopen_session(layout, user, session)
        else:
            close_session(layout, user, session, at, found.head_turn)
    invocation.reporter.step(f"session {session} is {'open' if reopen else 'closed'}")
    return Result({"session_id": session, "closed_at": None if reopen else at})


def verify(
    invocation: Invocation,
    session: Annotated[
        str | None, argument("Session id; none: all.", "SESSION", complete=complete_sessions)
    ] = None,
) -> Result:
    """
    Make sessions again from the files of their turns and compare; ends with 3 if anything differs.

    Example: panda session verify pets --user demo
    """
    layout, user = invocation.store(), invocation.settings.user
    if session is not None and not layout.of(user).session(session).exists():
        _open(invocation, layout, session)
    names = session_ids(layout, user) if session is None else [session]
    problems: list[Problem] = []
    with invocation.reporter.progress("verifying", len(names)) as advance:
        for name in names:
            problems += verify_session(layout, user, name)
            advance()
    data = {"sessions": names, "problems": [{**one.finding(), "where": one.where} for one in problems]}
    if not problems:
        invocation.reporter.step(f"sessions: {len(names)}, nothing differs")
        return Result(data)
    error = CheckError(
        f"differences: {len(problems)}", fix=next((one.fix for one in problems if one.fix), None)
    )
    return Result(data, "".join(f"{one.where}: {one.message}\n" for one in problems), error=error)


def _open(invocation: Invocation, layout: Layout, session: str) -> Session:
    """The session (NotFoundError if it has no turns)."""
    user = invocation.settings.user
    check_id(session, what="session")
    found = open_session(layout, user, session)
    if found is None:
        raise NotFoundError(
            f"user {user} has no session {session}",
            where=str(layout.of(user).session(session)),
            fix="`panda session list` shows the sessions",
        )
    return found


def _row(
    invocation: Invocation, layout: Layout, name: str, turns: Sequence[int]
) -> Mapping[str, object] | None:
    """A session at a glance, made of its turns where it has no file yet; a damaged one is a warning."""
    user = invocation.settings.user
    try:
        found = load_session(layout, user, name) or fold_turns(layout, user, name, turns)
    except Problem as exc:
        invocation.reporter.warn(f"session {name}: {exc.message}")
        return None
    if found is None:
        return None
    return {
        "session_id": name,
        "turns": len(found.turns) + found.turns_cut,
        "head_turn": found.head_turn,
        "created_at": found.created_at,
        "last_active_at": found.last_active_at,
        "closed_at": closed_at(layout, user, name),
        "about": found.carry.engagement_summary.text,
    }
