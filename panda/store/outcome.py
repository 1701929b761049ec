"""What a turn came to, told alike wherever it is told."""

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it imports this module
    from panda.store.records import Metadata


class TurnOutcome(StrEnum):
    """What a user has of a turn."""

    ANSWERED = "answered"
    UNSURE = "unsure"  # nothing surely answers; what is closest is shown
    NOTHING = "nothing"  # nothing that is saved has to do with it
    NOTED = "noted"  # what was told is kept, and nothing was asked
    FORGOTTEN = "forgotten"
    ASKED = "asked"  # it asks back
    REFUSED = "refused"  # no answer was approved
    NOT_DONE = "not_done"  # what was ordered could not be done
    TALK = "talk"
    HALTED = "halted"
    INTERRUPTED = "interrupted"


ANSWERED = frozenset({TurnOutcome.ANSWERED, TurnOutcome.NOTED, TurnOutcome.FORGOTTEN})
"""Outcomes of which metadata.json says `answered`."""
UNANSWERED = frozenset({TurnOutcome.UNSURE, TurnOutcome.NOTHING, TurnOutcome.NOT_DONE})
"""Outcomes of turns that ended well without an answer."""
_BY_STATUS = {
    "clarify": TurnOutcome.ASKED,
    "failed": TurnOutcome.REFUSED,
    "halted": TurnOutcome.HALTED,
    "interrupted": TurnOutcome.INTERRUPTED,
}


def outcome_of(metadata: "Metadata") -> TurnOutcome | None:
    """Return what a turn came to; None while it runs, and of what was imported or forgotten as a whole."""
    if metadata.status == "approved":
        if metadata.outcome is not None:
            return metadata.outcome
        was_answered = metadata.answered is not False  # an older turn says no more
        return TurnOutcome.ANSWERED if was_answered else TurnOutcome.NOTHING
    return _BY_STATUS.get(metadata.status)
