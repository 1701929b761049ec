"""Turns that stopped before their end: one taken out of the store for good, or all of them taken up again."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from panda.actions.turn_run import resume
from panda.app import App
from panda.documents.safe_text import count_noun
from panda.errors import (
    CheckError,
    FileFormatError,
    LockHeldError,
    ModelAwayError,
    NotApprovedError,
    NotFoundError,
    Problem,
    TryAgainError,
    UsageError,
)
from panda.index.full_text import Index
from panda.memory.assertion_log import MemoryLog
from panda.session.file import load_session
from panda.store.files import held_lock, held_temporary, store_errors, sync_path
from panda.store.interventions import list_interventions, resolve_intervention
from panda.store.layout import UserStore
from panda.store.records import ASKED_BACK, Intervention, Metadata
from panda.store.turns import TurnFolder

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DiscardedTurn:
    """What was taken out."""

    turn: int  # its number, which is never given again
    status: str  # how it stood
    session: str  # the session that it was begun in
    interventions: tuple[str, ...]  # ids of those that were open


def discard_turn(store: UserStore, number: int) -> DiscardedTurn:
    """
    Take a turn that has not ended, and that nothing knows yet, out of the store. Its open interventions are
    resolved, then its directory goes by one rename: killed before that, the turn is there as it was; killed
    after it, the next command that writes sweeps what is left.
    """
    folder = store.open(number)
    _check_unfinished(store, folder, folder.read_metadata())
    with _held_session(store, folder), store.numbering("panda turn --discard"):
        metadata = store.open(number).read_metadata()  # it may have gone on while this waited
        _check_unfinished(store, folder, metadata)
        store.raise_counter(store.highest())
        open_ones = [intervention.id for intervention in _open_interventions(store, number)]
        for id_ in open_ones:
            note = f"turn {number} was discarded"
            resolve_intervention(store, id_, note)
        place = folder.paths.directory
        with store_errors(place, "remove"), held_temporary(place, directory=True) as leaving:
            place.rename(leaving)
            sync_path(place.parent)
    index = Index(store)
    index.record(store.user, [number])
    index.close()
    return DiscardedTurn(number, metadata.status, metadata.session_id, tuple(open_ones))


def _check_unfinished(store: UserStore, folder: TurnFolder, metadata: Metadata) -> None:
    """Raises UsageError for a turn that something else rests on."""
    number = folder.number
    where = str(folder.paths.directory)
    if metadata.next is None:
        message = f"turn {number} has ended with status {metadata.status}"
        fix = f"panda forget {number} takes out all that was said in it"
        raise UsageError(message, where=where, fix=fix)
    ending = f"panda turn --resume {number} ends it"
    session = load_session(store, metadata.session_id, sealed=False)
    if session is not None and any(turn.turn == number for turn in session.turns):
        raise UsageError(
            f"turn {number} belongs to session {metadata.session_id} already", where=where, fix=ending
        )
    log = MemoryLog(store)
    log.refresh()
    if any(assertion.source_turn == number for assertion in log.assertions):
        fix = f"{ending}, then panda forget {number} takes it out with what was told"
        raise UsageError(f"what turn {number} told is remembered already", where=where, fix=fix)


@contextmanager
def _held_session(store: UserStore, folder: TurnFolder) -> Iterator[None]:
    """The lock of a turn's session; one that is held where the turn says it runs is not waited for."""
    metadata = folder.read_metadata()
    is_running = metadata.status == "running"
    lock = held_lock(
        store.session_lock(metadata.session_id),
        holder=f"panda turn --discard (pid {os.getpid()})",
        wait_seconds=0.0 if is_running else store.wait_seconds,
    )
    try:
        lock.__enter__()
    except LockHeldError as exc:
        if not is_running:
            raise
        message = f"turn {folder.number} cannot be discarded while its session runs: {exc.message}"
        raise LockHeldError(message, where=exc.where, fix="wait until that has ended, or end it") from exc
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


def _open_interventions(store: UserStore, number: int) -> Iterator[Intervention]:
    for entry in list_interventions(store):
        if (
            isinstance(entry, Intervention)
            and entry.is_open
            and (entry.user_id, entry.turn) == (store.user, number)
        ):
            yield entry


@dataclass(frozen=True, kw_only=True)
class ResumedTurn:
    """What came of one turn."""

    turn: int  # its number
    session: str | None  # its session; None if its metadata does not read
    before: str  # how it stood
    status: str  # how it stands now
    exit_code: int  # the one that panda turn --resume would have ended with
    error: Problem | None = None  # why it did not end well

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        value = {("was" if key == "before" else key): part for key, part in vars(self).items()}
        return {**value, "error": self.error and self.error.to_json()}


def resume_all(app: App, session: str | None) -> list[ResumedTurn]:
    """
    Take up every turn of the user, or of a session, that has not ended, in order of their numbers; what stops
    one does not stop the others.
    """
    return [_resumed(app, *unfinished) for unfinished in list(unfinished_turns(app.store, session))]


def unfinished_turns(store: UserStore, session: str | None) -> Iterator[tuple[int, Metadata | Problem]]:
    """Turns that have not ended; of all sessions, also those of which it is not known."""
    for number in store.numbers():
        try:
            metadata = store.open(number).read_metadata()
        except FileFormatError as exc:
            if session is None:
                yield number, exc
            continue
        if metadata.next is not None and session in (None, metadata.session_id):
            yield number, metadata


def find_unfinished(store: UserStore, word: str) -> int:
    """The number that a word means; "last" is the newest turn that has not ended, if there is one."""
    if word.isascii() and word.isdigit():
        return int(word)
    if word != "last":
        fix = "give its number, or last for the newest that stopped"
        raise UsageError(f"{word!r} is no number of a turn", where="--resume", fix=fix)
    numbers = [number for number, how in unfinished_turns(store, None) if isinstance(how, Metadata)]
    if not numbers:
        fix = "panda list shows the turns"
        raise NotFoundError("no turn has stopped before its end", where="--resume last", fix=fix)
    return numbers[-1]


def _resumed(app: App, number: int, before: Metadata | Problem) -> ResumedTurn:
    if isinstance(before, Problem):
        return ResumedTurn(
            turn=number,
            session=None,
            before="unreadable",
            status="unreadable",
            exit_code=before.exit_code,
            error=before,
        )
    data: Mapping[str, Any] = {}
    try:
        done = resume(app, number)
        error = done.error
        data = done.data or {}
    except Problem as exc:
        error = exc
        _log.info(f"turn {number}: {exc.message}")
    status = data.get("status")
    if status is None:
        status = before.status
        with suppress(Problem):
            status = app.store.open(number).read_metadata().status
    if error is None and status == "failed":
        error = NotApprovedError(f"the answer of turn {number} was not approved: {data['reason']}")
    code = 0
    if error is not None:
        code = error.exit_code
    elif status == "clarify":
        code = ASKED_BACK
    return ResumedTurn(
        turn=number,
        session=before.session_id,
        before=before.status,
        status=status,
        exit_code=code,
        error=error,
    )


def error_of(resumed: list[ResumedTurn]) -> Problem | None:
    """
    Return the error that the command ends with: 75 if a server was away each time, 3 if anything else did not
    end well; None if all ended well.
    """
    bad = [turn for turn in resumed if turn.exit_code]
    if not bad:
        return None
    where = ", ".join(f"turn {turn.turn}" for turn in bad[:20]) + (", …" if len(bad) > 20 else "")
    message = f"{len(bad)} of {count_noun(len(resumed), 'turn')} did not end well"
    if len(bad) == len(resumed) and all(isinstance(turn.error, ModelAwayError) for turn in bad):
        fix = "start the server, or name another one in models.yaml; then the same command goes on"
        return TryAgainError(f"{message}: no model server answered", where=where, fix=fix)
    return CheckError(message, where=where, fix="see the rows; panda turn --discard N takes one out")
