"""The typed inputs of steps, beside what is rendered for a prompt."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from panda.retrieval.passages import RankedPassage
from panda.session.message import UserMessage
from panda.steps.options import Option
from panda.store.records import Line

_MAX_ITEMS = 60
"""Items that an answer quotes, as many as the packaged recipe allows."""
_MAX_CITED = 8
"""Nodes that an item of it cites."""
NO_ANSWER_GATHERED = "nothing that was gathered seems to answer the query"
"""What is missing where §2 holds nothing that surely answers."""


@dataclass(frozen=True, kw_only=True)
class QueryInputs:
    message: UserMessage  # the query beside its session


@dataclass(frozen=True, kw_only=True)
class ReflectionInputs:
    quoted: str  # the query, shortened to be quoted in a question
    history: Sequence[str]  # what the last turns were about, oldest first


@dataclass(frozen=True, kw_only=True)
class RetrievalInputs:
    ranked: Callable[[], Sequence[RankedPassage]]  # gives the passages of all candidates, closest first


@dataclass(frozen=True, kw_only=True)
class SynthesisInputs:
    passages: Callable[[], Sequence[RankedPassage]]  # gives the closest passages of what was loaded
    document_lines: Callable[[], Sequence[Line]]
    """Gives what answers a request about documents that were handed over; empty if it is none."""
    ids: Mapping[str, str]  # what the reply calls each line of the loaded documents, by the line's own id


@dataclass(frozen=True, kw_only=True)
class ContextInputs:
    is_answered: Callable[[], bool]  # whether the closest passages of §2 surely answer


@dataclass(frozen=True, kw_only=True)
class PlanningInputs:
    mode: str  # chat or code
    tools: Sequence[str]  # names of the tools that can be used
    evidence: Callable[[], Sequence[Option]]  # gives the closest gathered lines
    pages: Sequence[Option]  # pages to look at, with how well they fit by words
    opens_page: bool  # whether the query names a page
    is_told: bool  # whether the message asks for nothing
    is_answered: Callable[[], bool]  # whether the session, or a document that was handed over, answers
    wants_new: bool  # whether an order hangs on how things are now, so that it is looked for anew
    is_researched: bool  # whether fresh research is to be used in full
    is_enough: Callable[[], bool]  # whether the closest passages of §2 surely answer


@dataclass(frozen=True, kw_only=True)
class CoordinationInputs:
    mode: str  # chat or code
    planned: Sequence[str]  # tools of the plan, in order
    waiting: Sequence[str]  # tools that have a call left that was not made yet
    tried: Sequence[str]  # tools that were called in this round of the plan
    pages: Sequence[Option]  # pages to look at, with how well they fit by words
    results: Callable[[], Sequence[Option]]  # gives what tools claimed so far


@dataclass(frozen=True, kw_only=True)
class AnswerInputs:
    quoted: Callable[[], Sequence[Line]]
    """Gives the lines that answer, or what the session answers, with what belongs to them; empty if none
    surely does."""


def quoted_items(lines: Sequence[Line]) -> list[tuple[str, tuple[str, ...]]]:
    """Return text and nodes of the items that quote these lines."""
    return [(line.text, line.node_ids[:_MAX_CITED]) for line in lines[:_MAX_ITEMS]]


@dataclass(frozen=True, kw_only=True)
class FactsInputs:
    lasts: Callable[[str], bool]  # says of a statement, by the id of its option, whether it is meant to last


@dataclass(frozen=True, kw_only=True)
class SummaryInputs:
    line: str  # the answer's first item, or what came of the turn
    words: Sequence[Option]  # names in query and answer, with the share of the query that each is
