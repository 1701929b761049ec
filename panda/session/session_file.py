"""session.json: what a session carries, written as a whole with every turn that ends (design §7)."""

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from panda.errors import FileFormatError, StoreError
from panda.session.carrying import carry_over
from panda.session.decoding import decode, encode
from panda.session.turn_files import TurnFiles, load_turn_files
from panda.session.values import EMPTY, Carry
from panda.storage.files import held_lock, read_json, write_atomic
from panda.storage.layout import METADATA_JSON, Layout, turn_name
from panda.storage.records import SAVED_STATUSES, load_object, turn_directories
from panda.storage.sealing import SEAL, seal_value
from panda.storage.temporaries import sweep

_WAIT_SECONDS = 60.0
_FIX = "delete it: it is made again from the turns"
SESSION_SCHEMA = "panda.session/1"
MOST_TURNS = 2_400
"""Turns that session.json lists; of older ones it says how many there are."""


@dataclass(frozen=True, kw_only=True)
class SessionTurn:
    """One turn of a session."""

    turn: int
    """Turn number."""
    directory: str
    """Name of its directory."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """The value of session.json."""

    schema: str = SESSION_SCHEMA
    """Name and version of the format."""
    session_id: str
    """Session id."""
    user_id: str
    """Whose session."""
    created_at: str
    """When its first turn was claimed."""
    last_active_at: str
    """When its newest turn was claimed."""
    head_turn: int
    """Its newest turn."""
    turns: tuple[SessionTurn, ...]
    """Its turns, oldest first."""
    turns_cut: int = 0
    """How many older turns are not listed."""
    carry: Carry
    """What the next turn knows."""


def load_session(layout: Layout, user: str, session: str, *, sealed: bool = True) -> Session | None:
    """
    A session as its file says it; None if there is no file.

    Args:
        layout: The store.
        user: User id.
        session: Session id.
        sealed: Whether it must be as it was saved; not for a look at what was altered.

    Raises:
        FileFormatError: The file is damaged, was altered, or has a key that nothing knows.
        StoreError: It cannot be read.
    """
    path = layout.session(user, session)
    if not path.exists():
        return None
    value = read_json(path)
    seal = value.pop(SEAL, None) if isinstance(value, dict) else None
    found = decode(Session, value, where=str(path))
    if sealed and seal is not None and seal != seal_value(value):
        raise FileFormatError("it has changed since its last turn was saved", where=str(path), fix=_FIX)
    if found.schema != SESSION_SCHEMA or found.session_id != session or found.user_id != user:
        raise FileFormatError(
            f"it is the {found.schema} of session {found.session_id} of user {found.user_id}",
            where=str(path),
            fix=_FIX,
        )
    return found


def open_session(layout: Layout, user: str, session: str) -> Session | None:
    """The session as its file says it, or made of its saved turns if it has no file; None without turns."""
    return load_session(layout, user, session) or rebuild_session(layout, user, session)


def rebuild_session(
    layout: Layout, user: str, session: str, *, before_turn: int | None = None
) -> Session | None:
    """
    A session made of its saved turns; nothing is written.

    Args:
        layout: The store.
        user: User id.
        session: Session id.
        before_turn: Only turns with a lower number; None for all.
    """
    numbers = saved_turns(layout, user).get(session, [])
    return fold_turns(layout, user, session, [n for n in numbers if before_turn is None or n < before_turn])


def fold_turns(layout: Layout, user: str, session: str, numbers: Iterable[int]) -> Session | None:
    """
    A session made of given turns, one after the other; None without any.

    Raises:
        StoreError: A file of a turn cannot be read.
        FileFormatError: A file of a turn is damaged.
    """
    found: Session | None = None
    for number in sorted(numbers):
        files = load_turn_files(layout.turn(user, number), number)
        found = extend(found, replace(files, session_id=session), user)
    return found


def extend(session: Session | None, files: TurnFiles, user: str) -> Session:
    """
    A session with one more turn.

    Args:
        session: As it was; None before its first turn.
        files: The turn.
        user: Whose session.
    """
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


def commit_turn(layout: Layout, user: str, before: Session | None, number: int) -> Session:
    """
    Put a turn into its session: the rename of session.json is the moment from which it belongs there.

    Args:
        layout: The store.
        user: User id.
        before: The session as the turn found it; its lock is held. None before its first turn.
        number: A turn of which all files are written.

    Returns:
        The session with the turn.

    Raises:
        StoreError: It cannot be written.
    """
    after = extend(before, load_turn_files(layout.turn(user, number), number), user)
    write_session(layout, after)
    return after


def write_imported(layout: Layout, sessions: Collection[tuple[str, str]]) -> None:
    """
    Write the files of sessions that an import has added turns to, each made of all its turns.

    Args:
        layout: The store.
        sessions: User and session ids.
    """
    for user in sorted({user for user, _ in sessions}):
        numbers = saved_turns(layout, user)
        for name in sorted(name for owner, name in sessions if owner == user):
            with (
                held_lock(layout.session_lock(user, name), holder="panda import", wait_seconds=_WAIT_SECONDS),
                suppress(FileFormatError),
            ):  # without a file the next turn meets the damage, and tells it
                found = fold_turns(layout, user, name, numbers.get(name, []))
                if found is not None:
                    write_session(layout, found)


def write_session(layout: Layout, session: Session) -> None:
    """Replace session.json, and remove what a killed process left half written; its lock is held."""
    value = encode(session)
    sealed = {**value, SEAL: seal_value(value)}
    text = json.dumps(sealed, ensure_ascii=False, separators=(",", ":")) + "\n"
    path = layout.session(session.user_id, session.session_id)
    sweep(path.parent, is_locked=True)
    write_atomic(path, text)


def saved_turns(layout: Layout, user: str) -> dict[str, list[int]]:
    """
    Numbers of the saved turns of a user by session, ascending; turns that do not read belong to none.
    """
    found: dict[str, list[int]] = {}
    for number, directory in turn_directories(layout.turns(user)):
        metadata = _metadata(directory / METADATA_JSON)
        status, session = metadata.get("status"), metadata.get("session_id")
        if isinstance(status, str) and status in SAVED_STATUSES and isinstance(session, str):
            found.setdefault(session, []).append(number)
    return found


def _metadata(path: Path) -> Mapping[str, object]:
    try:
        return load_object(path)
    except (FileFormatError, StoreError):
        return {}


def session_ids(layout: Layout, user: str) -> list[str]:
    """The sessions of a user that have a file, by name."""
    folder = layout.user(user) / "sessions"
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if layout.session(user, path.name).is_file())
