"""`panda session`: what a session carries from turn to turn."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from panda.cli.command import Invocation, OutputTable, Result, argument, flag, option
from panda.cli.completion import complete_sessions
from panda.cli.output_text import clipped
from panda.documents.record_codec import encode
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
from panda.session.session_lines import field_rows
from panda.store.carry import FIELDS
from panda.store.files import held_lock
from panda.store.layout import UserStore, check_id
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
    store = invocation.store()
    user = invocation.settings.user
    ids = set(session_ids(store))
    numbers = saved_turns(store)
    names = sorted(ids | numbers.keys(), key=lambda name: (numbers.get(name, [0])[-1], name))
    if more := limit and len(names) > limit:
        invocation.reporter.step(f"the newest {limit} of {len(names)}: --limit 0 shows all")
        names = names[-limit:]
    rows = [_row(invocation, store, name, numbers.get(name, [])) for name in names]
    sessions = [row for row in rows if row is not None]
    if not sessions:
        invocation.reporter.step(f"user {store.user} has no sessions in {store.root}")
    cells = [
        (
            row["session_id"],
            row["turns"],
            row["head_turn"],
            row["last_active_at"],
            "closed" if row["closed_at"] else "open",
            clipped(str(row["about"]), _ABOUT_CHARS),
        )
        for row in sessions
    ]
    return Result({"user": user, "sessions": sessions, "more": bool(more)}, OutputTable(_COLUMNS, cells))


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
    store = invocation.store()
    if session is None:
        session = newest_session(invocation.store(), where="SESSION")
        invocation.reporter.step(f"session {session}")
    session_state = _open(store, session)
    data: dict[str, Any] = encode(session_state)
    data["closed_at"] = closed_at(store.of(session_state.user_id), session)
    user = store.of(session_state.user_id).home
    rows = field_rows(session_state.carry, lambda name: (user / name).exists())
    data["shown"] = [dict(zip(("field", "value", "from"), row, strict=True)) for row in rows]
    data["fields"] = {
        name: {"what": field.what, "read_by": list(field.read_by), "limit": field.limit}
        for name, field in FIELDS.items()
    }
    return Result(data, OutputTable(("field", "what the next turn will know", "from"), rows))


def close(
    invocation: Invocation,
    session: _Session,
    reopen: Annotated[bool, flag("Open it again.", "--reopen")] = False,
) -> Result:
    """
    Close a session: no turn can be asked in it any more, until it is opened again.

    Example: panda session close kitchen --user demo
    """
    store = invocation.store_for_writing()
    session_state = _open(store, session)
    at = render_time(invocation.settings.clock())
    with held_lock(
        store.session_lock(session),
        holder="panda session close",
        wait_seconds=invocation.settings.wait_seconds,
    ):
        if reopen:
            reopen_session(store, session)
        else:
            close_session(store, session, at, session_state.head_turn)
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
    store = invocation.store()
    if session is not None and not store.session(session).exists():
        _open(store, session)
    names = session_ids(store) if session is None else [session]
    problems: list[Problem] = []
    with invocation.reporter.progress("verifying", len(names)) as advance:
        for name in names:
            problems += verify_session(store, name)
            advance()
    data = {
        "sessions": names,
        "problems": [{**problem.finding(), "where": problem.where} for problem in problems],
    }
    if not problems:
        invocation.reporter.step(f"sessions: {len(names)}, nothing differs")
        return Result(data)
    error = CheckError(
        f"differences: {len(problems)}", fix=next((problem.fix for problem in problems if problem.fix), None)
    )
    return Result(data, "".join(f"{problem.where}: {problem.message}\n" for problem in problems), error=error)


def _open(store: UserStore, session: str) -> Session:
    """The session (NotFoundError if it has no turns)."""
    check_id(session, what="session")
    session_state = open_session(store, session)
    if session_state is None:
        raise NotFoundError(
            f"user {store.user} has no session {session}",
            where=str(store.session(session)),
            fix="`panda session list` shows the sessions",
        )
    return session_state


def _row(
    invocation: Invocation, store: UserStore, name: str, turns: Sequence[int]
) -> Mapping[str, object] | None:
    """A session at a glance, made of its turns where it has no file yet; a damaged one is a warning."""
    try:
        session_state = load_session(store, name) or fold_turns(store, name, turns)
    except Problem as exc:
        invocation.reporter.warn(f"session {name}: {exc.message}")
        return None
    if session_state is None:
        return None
    return {
        "session_id": name,
        "turns": len(session_state.turns) + session_state.turns_cut,
        "head_turn": session_state.head_turn,
        "created_at": session_state.created_at,
        "last_active_at": session_state.last_active_at,
        "closed_at": closed_at(store, name),
        "about": session_state.carry.engagement_summary.text,
    }
