"""The one question to the user that a session may have open. Pure."""

from typing import Literal

from msgspec.structs import replace

from panda.language.text import split_sentences
from panda.language.words import split_terms
from panda.messages.clauses import is_talk
from panda.messages.reading import Reading
from panda.session.turn_files import TurnFiles
from panda.store.carry import MARK, Carry, Pending, PendingType, clip
from panda.store.records import Answered

_MESSAGE_CHARS = 2_000
_PART_CHARS = 200
_PARTS = 12
_MOST_OTHER_TURNS = 2
_SHORT_WORDS = 8


def answer_of(pending: Pending | None, query: str, reading: Reading) -> Answered | None:
    """
    Return what a query does to the open question: answered, or open if it is about something else; None if no
    question is open.
    """
    if pending is None or pending.status != "open":
        return None
    yes = reading.agreement == "agrees"
    terms = set(split_terms(query))
    is_short = pending.other_turns == 0 and len(query.split()) <= _SHORT_WORDS
    takes_up = bool(terms & set(split_terms(pending.message))) or is_short  # or is a statement right after it
    takes_up = takes_up and reading.mood != "asks" and not is_talk(query)
    answered = yes or reading.agreement == "declines" or takes_up
    answered = answered or any(set(split_terms(option)) <= terms for option in pending.options)
    return Answered(
        id=pending.id,
        status="answered" if answered else "open",
        answer=clip(query, _PART_CHARS * 2) if answered else None,
        agreed=answered and yes,
    )


def agreed_query(carry: Carry, answer: Answered | None, query: str) -> str | None:
    """
    Return what a bare "yes" asks for: the question with the answer behind it; None if the query says more.
    """
    pending = carry.pending_clarification
    if pending is None or answer is None or not answer.agreed or len(query.split()) > _SHORT_WORDS:
        return None
    return f"{clip(pending.message, _PART_CHARS)} {query}"


def raised_by(files: TurnFiles) -> Pending | None:
    summary = files.summary
    reflection = files.reflection
    plan = files.plan
    if summary is None or summary.outcome != "clarify":
        return None
    asked_by: Literal[1, 2, 3] = 2
    kind: PendingType = "question"
    message = summary.question or ""
    parts = list[str]()
    if reflection and reflection.decision == "CLARIFY":
        asked_by = 1
        message = str(reflection.question)
    elif plan and plan.next_step == "clarify":
        asked_by = 3
        kind = plan.question_kind or "question"
        message = plan.question or ""
        parts = [*plan.tasks, *(goal.goal for goal in plan.goals)]
    if len(message) > _MESSAGE_CHARS:
        message = message[: _MESSAGE_CHARS - len(MARK)] + MARK
    questions = [
        clip(sentence, _PART_CHARS) for sentence in split_sentences(message) if sentence.endswith("?")
    ]
    return Pending(
        id=f"q{files.turn}",
        asked_turn=files.turn,
        asked_by=asked_by,
        type=kind,
        message=message,
        questions=tuple(questions[:_PARTS]),
        plan=tuple(clip(part, _PART_CHARS) for part in parts[:_PARTS]),
    )


def take_answer(previous: Carry, files: TurnFiles) -> Pending | None:
    """The question as it stands once phase 0 of a turn has looked at it."""
    pending = previous.pending_clarification
    answer = files.analysis.pending if files.analysis else None
    if pending is None or answer is None or answer.id != pending.id or answer.status != "answered":
        return pending
    return replace(pending, status="answered", answer=answer.answer)


def carry_pending(previous: Carry, files: TurnFiles) -> Pending | None:
    """The question after a turn: the one it raised, or else what became of the earlier one."""
    raised = raised_by(files)
    if raised is not None:
        return raised
    pending = take_answer(previous, files)
    if pending is None or pending.status != "open":
        return pending
    others = pending.other_turns + 1
    return replace(pending, other_turns=others, status="dropped" if others >= _MOST_OTHER_TURNS else "open")


def fate_of(previous: Carry, files: TurnFiles) -> str | None:
    before = previous.pending_clarification
    if before is None or before.status != "open":
        return None
    if take_answer(previous, files) != before:
        return f"question {before.id} answered"
    if raised_by(files) is not None:
        return f"question {before.id} dropped for another one"
    after = carry_pending(previous, files)
    if after is not None and after.status == "dropped":
        return f"question {before.id} dropped after {_MOST_OTHER_TURNS} turns on other matters"
    return None
