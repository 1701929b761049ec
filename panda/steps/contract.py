"""The contract of a step: what its phase gives, what a reply may hold, and what the phase reads of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class StepContract:
    """
    What holds of every reply to a step, whoever gives it; recipes may ask for less, or for more.

    A place is a property of the reply, nested ones with dots and the items of a list with [], such as
    "items[].lines".
    """

    name: str = ""
    option_sets: tuple[str, ...] = ()  # names of the sets of options that the phase gives
    places: Mapping[str, str] = field(default_factory=dict)  # where the reply takes ids, and of which set
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Places of objects that hold an id, each with the property that does: the id's own schema is that of
    their property `arguments`."""
    variables: tuple[str, ...] = ()  # variables that the phase gives, besides BASE_VARIABLES
    documents: tuple[str, ...] = ()  # documents that it gives and that are no files of the turn
    tool: str | None = None  # tool or command that asks, and only while it runs; None for a phase
    of_image: bool = False  # whether it is asked of an image alone
    may_ask: bool = False  # whether its phase may ask the user back
    required: tuple[str, ...] = ()  # properties that the phase cannot do without
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What the phase reads besides, with what counts where a recipe does not ask for it."""
    optional: tuple[str, ...] = ()  # what it reads besides where it is there
    lenient: tuple[str, ...] = ()  # properties of which the phase leaves out what is wrong: no fault refuses
    may_be_text: bool = False  # whether the reply may be markdown or text instead of an object
    is_dispensable: bool = False  # whether its phase goes on where nothing can reply
    decides: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Properties that say how the turn goes on, with the values that the phase acts upon."""

    @property
    def properties(self) -> frozenset[str]:
        """Names of the properties that the contract knows."""
        placed = (place.partition(".")[0].removesuffix("[]") for place in self.places)
        names = (*self.required, *self.defaults, *self.optional, *self.lenient, *self.decides, *placed)
        return frozenset(names)
