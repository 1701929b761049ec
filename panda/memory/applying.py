"""What turns do to their user's memory: before one begins, and once it is approved."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from panda.documents.times import Clock
from panda.errors import FileFormatError
from panda.memory.assertions import Assertion, Statement
from panda.memory.confidence import SAID_BY_USER
from panda.memory.keys import typed_value
from panda.memory.log import MemoryLog
from panda.memory.projection import Projection
from panda.memory.remembering import Memory, retraction
from panda.memory.staging import Action, StagedValue, Value
from panda.storage.layout import Layout


def apply_staged(
    layout: Layout, user: str, staged: Sequence[StagedValue], clock: Clock, wait_seconds: float
) -> list[Assertion]:
    """
    Write staged values of a turn to the user's log and memory files.

    Args:
        layout: Where the store is.
        user: Whose memory.
        staged: What the turn staged.
        clock: Gives the instant of writing.
        wait_seconds: How long to wait for the user's memory lock.

    Returns:
        What was appended: for each value a retraction of the user's own earlier, different one, if there is
        one, then the assertion. Nothing for a value that this turn has asserted before. Values that
        are added to a list or taken from it leave the rest of the list as it is by then.

    Raises:
        LockHeldError: Another process kept the lock.
        FileFormatError: The log or a memory file is corrupt; nothing was written.
        StoreError: A file cannot be written.

    Source:
        Design §3, S2 "Contradiction".
    """
    if not staged:
        return []
    memory = Memory(layout, user, clock, wait_seconds)
    with memory.held() as log:
        statements = [_statement(one, log, clock()) for one in staged]
        return memory.assert_all([one for one in statements if one is not None and not _was_said(log, one)])


def take_in_edits(layout: Layout, user: str, clock: Clock, wait_seconds: float) -> Projection | None:
    """
    Make assertions of what a user edited by hand, before a turn begins. What is corrupt is left for the phase
    that reads it to tell.

    Args:
        layout: Where the store is.
        user: Whose memory.
        clock: Gives the instant of writing.
        wait_seconds: How long to wait for the user's memory lock.

    Returns:
        The memory as it is then, while the lock was held; None if it is corrupt.

    Raises:
        LockHeldError: Another process kept the lock.
        StoreError: A file cannot be written.
    """
    memory = Projection(layout, user)
    if not layout.user(user).is_dir():
        memory.refresh()
        return memory
    with suppress(FileFormatError), Memory(layout, user, clock, wait_seconds).held():
        memory.refresh()
        return memory
    return None


def listed(values: Value | None, staged: Value, action: Action) -> Value:
    """
    A list with values added to it, or without them.

    Args:
        values: What holds: a list, one value, or None for nothing.
        staged: What is added or removed.
        action: adds or removes.

    >>> listed(("nuts",), ("Nuts", "kiwi"), "adds"), listed("nuts", ("nuts",), "removes")
    (('nuts', 'kiwi'), ())
    """
    held = () if values is None else values if isinstance(values, tuple) else (values,)
    given = staged if isinstance(staged, tuple) else (staged,)
    if action == "adds":
        known = {str(one).casefold() for one in held}
        return (*held, *(one for one in given if str(one).casefold() not in known))
    gone = {str(one).casefold() for one in given}
    return tuple(one for one in held if str(one).casefold() not in gone)


def _statement(staged: StagedValue, log: MemoryLog, now: datetime) -> Statement | None:
    """What a staged value comes to as things stand; None if there is nothing left to do."""
    value, action, source = staged.value, staged.action, f"turn:{staged.source_turn}"
    winner = next(iter(log.contenders(("local", staged.entity, staged.relation), now=now)), None)
    if action in ("adds", "removes"):
        value = listed(winner.fact.value.v if winner else None, value, action)
        action = "sets" if value else "retracts"
    if action == "retracts":
        return retraction(winner, source, staged.source_turn) if winner is not None else None
    return Statement(
        kind=staged.kind,
        entity=staged.entity,
        relation=staged.relation,
        value=typed_value(value),
        source=source,
        confidence=SAID_BY_USER,
        source_turn=staged.source_turn,
        content_type=staged.content_type,
    )


def _was_said(log: MemoryLog, statement: Statement) -> bool:
    return any(
        one.fact.confidence > 0
        and one.fact.source == statement.source
        and one.fact.value.key == statement.value.key
        for one in log.of(statement.triple)
    )
