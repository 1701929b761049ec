"""session.json: what a session carries, written as a whole with every turn that ends, closed and verified."""

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count

from panda.documents.progress import progress
from panda.documents.record_codec import decode, encode
from panda.errors import FileFormatError, NotFoundError, Problem, StoreError, UsageError
from panda.index.full_text import Index
from panda.index.tables import IndexView
from panda.session.fold import carry_over
from panda.session.turn_files import TurnFiles, load_turn_files
from panda.store.carry import EMPTY
from panda.store.files import held_lock, read_json, store_errors, sweep, write_atomic, write_json
from panda.store.layout import METADATA_JSON, Layout, UserStore, turn_name
from panda.store.records import ClosedSession, Metadata, Session, SessionTurn, load
from panda.store.seals import SEAL, seal_value
from panda.store.turns import newest_rows
from panda.store.visit_records import SAVED_STATUSES, turn_directories

SESSION_SCHEMA = "panda.session/1"
MOST_TURNS = 2_400  # turns that session.json lists; of older ones it says how many there are
_WAIT_SECONDS = 60.0
_SHOWN_CHARS = 120
_FIX = "delete session.json: it is made again from the turns"


def load_session(store: UserStore, session: str, *, sealed: bool = True) -> Session | None:
    """A session as its file says it; if it has to be *sealed*, an altered one raises FileFormatError."""
    path = store.session(session)
    if not path.exists():
        return None
    value = read_json(path)
    seal = value.pop(SEAL, None) if isinstance(value, dict) else None
    saved = decode(Session, value, where=str(path))
    wrong = None
    if sealed and seal is not None and seal != seal_value(value):
        wrong = "it has changed since its last turn was saved"
    elif (saved.schema, saved.session_id, saved.user_id) != (SESSION_SCHEMA, session, store.user):
        wrong = f"it is the {saved.schema} of session {saved.session_id} of user {saved.user_id}"
    if wrong is not None:
        raise FileFormatError(wrong, where=str(path), fix=_FIX)
    return saved


def free_session_id(store: UserStore, index: Index, number: int) -> str:
    """The id of a session that begins with a turn, such as t000814; one more where that is taken."""
    for more in count(1):
        name = f"t{number:06}" + (f"-{more}" if more > 1 else "")
        is_taken = store.session_lock(name).parent.exists()
        if not is_taken and not index.read(store.user, partial(IndexView.session_turns, session=name)):
            return name
    raise AssertionError


def newest_session(store: UserStore, *, where: str) -> str:
    """The session of the user's newest turn, saved or killed right after it joined its session."""
    for row in newest_rows(store):
        if row.status in SAVED_STATUSES and row.session:
            return row.session
        session = load_session(store, row.session) if row.session else None
        if session is not None and session.head_turn == row.number:
            return session.session_id
    raise NotFoundError(
        f"user {store.user} has no session yet",
        where=where,
        fix="leave it out: a turn without it begins a session",
    )


def open_session(store: UserStore, session: str) -> Session | None:
    """The session as its file says it, or made of its saved turns if it has no file; None without turns."""
    return load_session(store, session) or rebuild_session(store, session)


def rebuild_session(store: UserStore, session: str, *, before_turn: int | None = None) -> Session | None:
    """A session made of its saved turns, those before a number if one is given; nothing is written."""
    numbers = saved_turns(store).get(session, [])
    return fold_turns(store, session, [n for n in numbers if before_turn is None or n < before_turn])


def fold_turns(store: UserStore, session: str, numbers: Iterable[int]) -> Session | None:
    folded: Session | None = None
    for number in sorted(numbers):
        files = load_turn_files(store.turn(number), number)
        folded = extend(folded, replace(files, session_id=session), store.user)
    return folded


def extend(session: Session | None, files: TurnFiles, user: str) -> Session:
    """A session with one more turn; None stands for one before its first turn."""
    entry = SessionTurn(turn=files.turn, directory=turn_name(files.turn))
    earlier = session.turns if session else ()
    over = max(0, len(earlier) + 1 - MOST_TURNS)
    return Session(
        session_id=files.session_id,
        user_id=user,
        created_at=session.created_at if session else files.at,
        last_active_at=files.at,
        head_turn=files.turn,
        turns=(*earlier[over:], entry),
        turns_cut=(session.turns_cut if session else 0) + over,
        carry=carry_over(session.carry if session else EMPTY, files),
    )


def commit_turn(store: UserStore, before: Session | None, number: int) -> Session:
    """
    The session with one more turn, of which all files are written: from the rename of session.json on it
    belongs there. *before* is as the turn found it, under its lock; one that has this turn already stays, one
    that has later turns is made anew.
    """
    held = [entry.turn for entry in before.turns] if before is not None else []
    if before is not None and number in held:
        return before
    if before is not None and before.head_turn > number:
        cut = saved_turns(store).get(before.session_id, []) if before.turns_cut else []
        after = fold_turns(store, before.session_id, {*cut, *held, number})
        assert after is not None
    else:
        after = extend(before, load_turn_files(store.turn(number), number), store.user)
    write_session(store, after)
    return after


def write_imported(layout: Layout, sessions: Collection[tuple[str, str]]) -> None:
    """Make sessions' files of their turns; without one the next turn meets what is damaged, and tells it."""
    numbers = {user: saved_turns(layout.of(user)) for user, _ in sessions}
    with progress("sessions", len(sessions)) as advance:
        for user, session in sorted(sessions):
            store = layout.of(user)
            held = numbers[user].get(session, [])
            lock = held_lock(store.session_lock(session), holder="panda import", wait_seconds=_WAIT_SECONDS)
            with lock, suppress(FileFormatError):
                if folded := fold_turns(store, session, held):
                    write_session(store, folded)
            advance()


def write_session(layout: Layout, session: Session) -> None:
    """Replace session.json, and remove what a killed process left half written; its lock is held."""
    value = encode(session)
    path = layout.of(session.user_id).session(session.session_id)
    sealed = {**value, SEAL: seal_value(value)}
    sweep(path.parent)
    write_atomic(path, json.dumps(sealed, ensure_ascii=False, separators=(",", ":")) + "\n")


def saved_turns(store: UserStore) -> dict[str, list[int]]:
    """Numbers of the saved turns of a user by session, ascending; turns that do not read belong to none."""
    by_session: dict[str, list[int]] = {}
    for number, directory in turn_directories(store.turns):
        with suppress(FileFormatError, StoreError):
            metadata = load(Metadata, directory / METADATA_JSON)
            if metadata.status in SAVED_STATUSES:
                by_session.setdefault(metadata.session_id, []).append(number)
    return by_session


def session_ids(store: UserStore) -> list[str]:
    return sorted(
        path.parent.name for path in (store.home / "sessions").glob("*/session.json") if path.is_file()
    )


def close_session(store: UserStore, session: str, at: str, head_turn: int) -> None:
    closed = ClosedSession(session_id=session, closed_at=at, head_turn=head_turn)
    write_json(store.session_closed(session), closed.to_json())


def reopen_session(store: UserStore, session: str) -> None:
    path = store.session_closed(session)
    if not path.exists():
        raise NotFoundError(f"session {session} is not closed", where=str(path.parent))
    with store_errors(path, "remove"):
        path.unlink()


def closed_at(store: UserStore, session: str) -> str | None:
    path = store.session_closed(session)
    return load(ClosedSession, path).closed_at if path.exists() else None


def check_open(store: UserStore, session: str) -> None:
    """Raises UsageError for a closed session."""
    at = closed_at(store, session)
    if at is not None:
        raise UsageError(
            f"session {session} was closed at {at}",
            where=str(store.session_closed(session)),
            fix=f"use another session, or `panda session close {session} --reopen`",
        )


def verify_session(store: UserStore, session: str) -> list[Problem]:
    """
    Return the differences between a session's file and its turns: each field, and each saved turn that it
    lacks.
    """
    path = str(store.session(session))
    try:
        on_disk = load_session(store, session, sealed=False)
    except Problem as exc:
        return [exc]
    if on_disk is None:
        return []
    listed = [entry.turn for entry in on_disk.turns]
    saved = saved_turns(store).get(session, [])
    unlisted = [number for number in saved if number < min(listed)] if on_disk.turns_cut else []
    problems = [
        Problem(f"turn {number} is saved but not in the session", path, key="turns", fix=_FIX)
        for number in sorted({*saved} - {*listed} - {*unlisted})
    ]
    if len(unlisted) != on_disk.turns_cut:
        problems.append(
            Problem(f"{len(unlisted)} older turns, not {on_disk.turns_cut}", path, key="turns_cut")
        )
    try:
        problems += _differences(path, on_disk, fold_turns(store, session, [*unlisted, *listed]))
        if not problems:  # it says what its turns say, and may have been altered yet
            load_session(store, session)
    except Problem as exc:
        problems.append(exc)
    return problems


def _differences(path: str, on_disk: Session, again: Session | None) -> Iterator[Problem]:
    if again is None:
        yield Problem("it has no turns", path, key="turns")
        return
    before = encode(on_disk)
    after = encode(again)
    flow = before["carry"]["flow"]
    after["carry"]["flow"]["tone"] = flow["tone"]  # a model's, or a rule's of older versions
    pairs = [(name, before[name], after[name]) for name in before if name != "carry"]
    pairs += [(f"carry.{name}", value, after["carry"][name]) for name, value in before["carry"].items()]
    for key, saved_value, folded_value in pairs:
        if saved_value != folded_value:
            place, was, now = _first_difference(key, saved_value, folded_value)
            message = f"holds {was!r:.{_SHOWN_CHARS}}, the turns say {now!r:.{_SHOWN_CHARS}}"
            yield Problem(message, path, key=place, fix=_FIX)


def _first_difference(key: str, saved_value: object, folded_value: object) -> tuple[str, object, object]:
    if isinstance(saved_value, dict) and isinstance(folded_value, dict):
        for name in saved_value:
            if saved_value[name] != folded_value.get(name):
                return _first_difference(f"{key}.{name}", saved_value[name], folded_value.get(name))
    if (
        isinstance(saved_value, list)
        and isinstance(folded_value, list)
        and len(saved_value) == len(folded_value)
    ):
        for at, (saved_item, other) in enumerate(zip(saved_value, folded_value, strict=True)):
            if saved_item != other:
                return _first_difference(f"{key}[{at}]", saved_item, other)
    return key, saved_value, folded_value
