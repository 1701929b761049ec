"""The typed inputs of steps, beside what is rendered for a prompt."""

from collections.abc import Sequence
from dataclasses import dataclass

from panda.steps.options import Option


@dataclass(frozen=True)
class SummaryInputs:
    line: str  # the answer's first item, or what came of the turn
    words: Sequence[Option]  # names in query and answer, with the share of the query that each is
