"""What is to be chosen, from what, and what was chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from panda.documents.records import Record
from panda.documents.times import without_last_seen

Scorer = Literal["cosine", "head", "options", "prior"]
SCORERS: tuple[Scorer, ...] = get_args(Scorer)
FITTED: tuple[Scorer, ...] = ("head", "options")  # those that need a fit, and are passed over without
PHRASES = "phrases"
PARTS = ("query", "wording", "order", "antecedents", "lines", PHRASES)  # what a head can read
VALUES = ("cosine", "partners", "lacking", "rest")  # what a fit of options can read, in this order


@dataclass(frozen=True)
class Many:
    """A choice of a subset."""

    max: Annotated[int, Meta(ge=1)]  # most options taken
    at_least: float  # lowest score that is taken
    within: Annotated[float, Meta(ge=0)]  # how far below the best score a further option may be
    share: Annotated[float, Meta(ge=0)] | None = None
    """What share of the best score a further option needs; at_least is then for the best alone."""


class Step(Record, frozen=True):
    """One step of a choice's decision list."""

    choose: str | bool | None = None  # value it stands for; None takes the best offered option
    scorer: Scorer = "cosine"  # how options are scored
    prompt: str | None = None  # prompt file of the scorer
    over: str | None = None  # name of the options looked at; None means the property's own
    class_: str | None = msgspec.field(default=None, name="class")
    """The class whose probability decides; None compares the offered options."""
    at_least: float | None = None  # lowest score that decides; None always decides
    prior: float = 0.0  # weight of the options' own prior
    many: Many | None = None  # bars of a subset, if not the property's
    fit: str | None = None  # name of the fit of a head or of options
    reads: tuple[str, ...] = ()  # what that fit reads, in order
    unfitted: bool = False  # whether it is passed over when a fit was there

    @property
    def scores(self) -> bool:
        """Whether a model is asked at all; a step that stands for a value and has no bar just decides."""
        return self.scorer != "prior" and (self.choose is None or self.at_least is not None)


@dataclass(frozen=True)
class ChoiceSpec:
    """How one choice property is made."""

    name: str  # the property
    values: tuple[str | bool, ...]  # values of an enum or boolean; empty when the options come with the call
    many: Many | None  # set when a subset is chosen
    steps: tuple[Step, ...]  # the decision list, at least one step


@dataclass(frozen=True)
class Option:
    id: str  # what the reply holds when it is chosen
    text: str  # what it says, one line
    node_ids: tuple[str, ...] = ()  # nodes it comes from
    prior: float = 0.0  # how well it fits by words, 0 to 1
    title: str = ""  # what the scorer sees before the text, as "Turn 809"; it is no part of what is quoted
    shown: str = ""  # what a model that reads all options at once is shown; empty means the text

    @property
    def near(self) -> str:
        """The text as the encoder reads it: keys as words, without the mark of when it was last seen."""
        text = without_last_seen(self.text).replace("_", " ")
        return f"{self.title}. {text}" if self.title else text


@dataclass(frozen=True)
class Choice:
    name: str  # property of the reply
    value: str | bool | tuple[str, ...] | None
    """What was chosen; ids for a subset, best first; None when there was nothing to choose from."""
    scores: Mapping[str, float]  # score by option id or value, of the step that decided
    confidence: float | None
    """Probability that the choice is right as the scorer sees it; None when nothing was scored."""
    scorer: str  # scorer of the step that decided
    fitted: bool = False  # whether the confidence comes from a fit to labelled cases


@dataclass(frozen=True)
class ChoiceInputs:
    """What the choices of one call look at."""

    query: str  # the user's query
    options: Mapping[str, Sequence[Option]]  # options by property name or by the name in `over`
    documents: Mapping[str, str] = field(default_factory=dict)  # documents of the turn by name


@dataclass(frozen=True)
class Question:
    """What one step of a decision list asks."""

    spec: ChoiceSpec  # the property
    step: Step  # the step
    options: Sequence[Option]
    """What is compared: options of the call, values of the property, or classes of the step's prompt."""
    inputs: ChoiceInputs  # what the choice looks at
