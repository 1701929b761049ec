"""What turns do to their user's memory: before one begins, and once it is approved."""

from collections.abc import Sequence
from contextlib import suppress

from panda.documents.times import Clock
from panda.errors import FileFormatError
from panda.memory.assertions import Assertion, Statement
from panda.memory.confidence import SAID_BY_USER
from panda.memory.keys import typed_value
from panda.memory.log import MemoryLog
from panda.memory.projection import Projection
from panda.memory.remembering import Memory
from panda.memory.staging import StagedValue
from panda.storage.layout import Layout


def apply_staged(
    layout: Layout, user: str, staged: Sequence[StagedValue], clock: Clock, wait_seconds: float
) -> list[Assertion]:
    """
    Write staged values of an approved turn to the user's log and memory files.

    Args:
        layout: Where the store is.
        user: Whose memory.
        staged: What the turn staged.
        clock: Gives the instant of writing.
        wait_seconds: How long to wait for the user's memory lock.

    Returns:
        What was appended: for each value a retraction of the user's own earlier, different one, if there is
        one, then the assertion. Nothing for a value that this turn has asserted before.

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
        return memory.assert_all([s for s in map(_statement, staged) if not _was_said(log, s)])


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


def _statement(staged: StagedValue) -> Statement:
    return Statement(
        kind=staged.kind,
        entity=staged.entity,
        relation=staged.relation,
        value=typed_value(staged.value),
        source=f"turn:{staged.source_turn}",
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
