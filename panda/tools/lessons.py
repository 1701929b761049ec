"""What a user's own sentences in some turns teach: found by rules, chosen by a recipe."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from panda.documents.safe_text import one_line
from panda.language.text import split_sentences
from panda.messages.clauses import find_statements, read_habit
from panda.messages.questions import is_question
from panda.steps.all_steps import MEMORY_REFLECTION
from panda.steps.inputs import FactsInputs
from panda.steps.options import Option
from panda.store.node_id import NodeKind
from panda.store.visit_records import TurnRecord
from panda.tools.tool_contract import Ask

_MOST = 10
_FOREIGN = re.compile(r"(?ms)^```.*?(?:^```|\Z)|^>.*?$")


@dataclass(frozen=True)
class LessonCandidate:
    relation: str  # key, of the user's words
    value: str  # verbatim
    text: str  # the sentence, one line
    turn: int  # turn in which it was said
    sure: bool  # whether rules are sure that it is meant to last


def find_candidates(turns: Sequence[TurnRecord]) -> list[LessonCandidate]:
    """
    The newest ten things that the user states of himself in turns, oldest first: no question, no quote,
    nothing an answer had said; what is said twice stands where it was said first.
    """
    candidates: dict[tuple[str, str], LessonCandidate] = {}
    recalled = ""
    for turn in turns:
        for sentence in split_sentences(_FOREIGN.sub("", turn.query)):
            text = one_line(sentence)
            candidate = None if text.rstrip(" .!").lower() in recalled else _candidate(text, turn.number)
            if candidate is not None:
                candidates.setdefault((candidate.relation, candidate.value.lower()), candidate)
        recalled += "\n" + one_line(turn.response).lower()
    return list(candidates.values())[-_MOST:]


def _candidate(text: str, turn: int) -> LessonCandidate | None:
    if is_question(text):
        return None
    for statement in find_statements([text]):
        if statement.key is not None:
            value = ", ".join(statement.value) if isinstance(statement.value, tuple) else str(statement.value)
            return (
                LessonCandidate(statement.key, value, text, turn, sure=True)
                if statement.entity is None
                else None
            )
    habit = read_habit(text.rstrip(" .!…"))
    return LessonCandidate(*habit, text, turn, sure=False) if habit else None


def choose_facts(
    candidates: Sequence[LessonCandidate],
    turns: Sequence[TurnRecord],
    ask: Ask,
    lasts: Callable[[LessonCandidate], bool],
    warn: Callable[[str], None],
) -> list[LessonCandidate]:
    """
    Return the candidates that are worth proposing, in the order of the reply.

    Args:
        ask: Its reply may word key and value anew, if the value stands in the sentence.
        lasts: Says whether a candidate is meant to last.
        warn: Is told of what was refused.
    """
    by_id = {f"s{n}": candidate for n, candidate in enumerate(candidates, 1)}
    options = [
        Option(id_, candidate.text, (NodeKind.TURN.id(candidate.turn),)) for id_, candidate in by_id.items()
    ]
    queries = "\n".join(f"Turn {turn.number}: {one_line(turn.query)}" for turn in turns)
    reply = ask(
        MEMORY_REFLECTION,
        options={"keep": options},
        extra={"turns": queries},
        inputs=FactsInputs(lasts=lambda id_: lasts(by_id[id_])),
    )
    chosen: dict[str, LessonCandidate] = {}
    for fact in reply.facts:
        candidate = by_id[fact.keep]
        value = one_line(fact.value or candidate.value)
        if value.lower() not in candidate.text.lower():
            warn(f"not proposed: {value!r} does not stand in turn {candidate.turn}")
            continue
        chosen.setdefault(fact.keep, replace(candidate, relation=fact.key or candidate.relation, value=value))
    return list(chosen.values())
