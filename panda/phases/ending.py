"""What a turn that reached phase 5 came to."""

from panda.phases.running_turn import Turn
from panda.phases.tool_outcome import is_undone, shortfall
from panda.store.outcome import TurnOutcome
from panda.store.records import GatheredContext


def decide_outcome(turn: Turn, *, is_answered: bool, is_noted: bool, is_near: bool) -> TurnOutcome:
    """
    Return the outcome of a turn that ends approved.

    Args:
        turn: Its reading, plan and §2 count.
        is_answered: There are lines, drafts or changes to show.
        is_noted: Something that was told is kept.
        is_near: There are passages to show in the place of an answer.
    """
    reading = turn.reading
    is_order = reading.mood == "orders"
    if is_answered:
        return TurnOutcome.UNSURE if _asked_for_more(turn) else TurnOutcome.ANSWERED
    if is_noted and (reading.only_tells or (_is_all_kept(turn) and not is_near)):
        return TurnOutcome.NOTED
    if reading.talk or turn.analysis.intent == "greeting":
        return TurnOutcome.TALK
    if is_undone(turn) or (is_order and turn.mode == "chat" and shortfall(turn)):
        return TurnOutcome.NOT_DONE
    if is_near and not reading.only_tells:
        return TurnOutcome.UNSURE
    return TurnOutcome.TALK if reading.only_tells else TurnOutcome.NOTHING


def _is_all_kept(turn: Turn) -> bool:
    """Return whether every clause of the message is kept, also one that may ask."""
    texts = {statement.text for statement in turn.reading.statements}
    return all(clause.text in texts for clause in turn.reading.clauses)


def _asked_for_more(turn: Turn) -> bool:
    """Return whether phase 2.5 still asked for more after the second draft of §2."""
    gathered = turn.folder.find(GatheredContext)
    return gathered is not None and gathered.verdict.status == "retry"
