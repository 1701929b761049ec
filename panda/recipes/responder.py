"""What replies to a call of a recipe: a model that is sent a prompt, or the program itself without one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from panda.models.model_contract import ModelInfo
from panda.recipes.calls import CallWriter, Journal
from panda.recipes.recipe_file import Recipe
from panda.steps.request import Request
from panda.steps.step_contract import StepContract


@dataclass(frozen=True, kw_only=True)
class Call:
    """One attempt at a reply."""

    recipe: Recipe
    contract: StepContract[Any]  # of the step that the recipe serves
    request: Request  # what the phase gives
    journal: Journal  # the turn: recordings, seed
    writer: CallWriter  # writes the call down
    attempt: int  # from 1
    is_last: bool  # whether there is no further attempt
    error: str | None = None  # why the reply before was refused
    times_cut: int = 0  # how many replies before were cut for their length


@dataclass(frozen=True, kw_only=True)
class RawReply:
    """A reply before it is checked against schema and evidence."""

    values: Mapping[str, Any]
    received: str | None = None  # the reply as it came, for errors; None where it came as values
    error: str | None = None  # why it cannot be used; then there are no values
    is_cut: bool = False  # whether it was cut for its length
    measure: Callable[[], float | None] = lambda: None
    """Measures the probability of the value that decides; None where that is not known."""


class Responder(Protocol):
    """Replies to the calls of a layer."""

    @property
    def info(self) -> ModelInfo | None:
        """Return the model that replies, as calls.jsonl names it; None where nothing has to be named."""

    def attempts(self, recipe: Recipe) -> int:
        """Return how often it is asked at most; once where the same call always has the same reply."""

    def optional(self, recipe: Recipe, contract: StepContract[Any]) -> Sequence[str]:
        """Return the properties that its reply may lack although the recipe requires them."""

    def reply(self, call: Call) -> RawReply:
        """
        Reply to a call. Raises what asking a model raises, BudgetExceededError where inputs do not fit.
        """

    def unsupported(self, recipe: Recipe, contract: StepContract[Any]) -> str | None:
        """Return why it cannot reply to a recipe of this step, in words; None if it can."""
