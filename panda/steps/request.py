"""What a phase gives to whoever replies to one call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from panda.compression.fit import InputDocument
from panda.documents.pictures import Picture
from panda.errors import ReplyError
from panda.messages.wording import PAGE_ADDRESS
from panda.steps.options import Option
from panda.steps.step_contract import StepContract

T = TypeVar("T")
Options: TypeAlias = Sequence[Option] | Callable[[], Sequence[Option]]
"""A set of options, or what makes it for a prompt."""
Ids: TypeAlias = Sequence[str] | Callable[[], Sequence[str]]
"""Ids of a set of options, or what gives them once there is a reply."""
Documents: TypeAlias = Sequence[InputDocument] | Callable[[], Sequence[InputDocument]]
"""Documents of the turn, most important first, or what renders them for a prompt."""

GUIDANCE = "guidance"
"""The name of a part of a prompt that stands only where a call has guidance."""


@dataclass(frozen=True)
class Request:
    """The inputs of one call. What is given as a function is made only for a prompt, and once."""

    query: str  # the user's original query; every call gets it
    documents: Documents = ()
    options: Mapping[str, Options] = field(default_factory=dict)
    """Sets of options by name; the step's contract says where the reply takes their ids."""
    variables: Mapping[str, str] = field(default_factory=dict)  # values for {{name}}
    guidance: str | None = None  # what an earlier judgement asks to do differently
    meant: str | None = None
    """The query with names for what it refers to, if it refers to anything."""
    pictures: tuple[Picture, ...] = ()  # what the model is shown; only the layer EYES sees
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Schemas of what goes with an option, as the arguments of a tool, by the option's id."""
    ids: Mapping[str, Ids] = field(default_factory=dict)
    """Ids of sets whose options are made for a prompt alone, and may be fewer there."""
    inputs: object = None
    """The typed inputs of the step, for a responder that reads no prompt."""

    def inputs_as(self, inputs_type: type[T]) -> T:
        """Return the typed inputs. Raises ReplyError: there are none, as outside a turn."""
        if not isinstance(self.inputs, inputs_type):
            raise ReplyError(
                "this step can be replied to only within a turn, or by a language model",
                where=inputs_type.__name__,
                fix="give its layer a model in models.yaml, or measure another step",
            )
        return self.inputs

    @property
    def asked(self) -> str:
        """The query as it is meant; an address is "the page", as its letters would outweigh the rest."""
        return PAGE_ADDRESS.sub("the page", self.meant or self.query)

    @cached_property
    def shown_documents(self) -> Sequence[InputDocument]:
        """The documents, rendered."""
        return self.documents() if callable(self.documents) else self.documents

    @cached_property
    def shown_options(self) -> Mapping[str, Sequence[Option]]:
        """All sets of options, made."""
        return {name: self.options_of(name) for name in self.options}

    def options_of(self, name: str) -> Sequence[Option]:
        """Return a set of options; empty if it was not given."""
        options = self.options.get(name, ())
        if not callable(options):
            return options
        computed = self.__dict__.setdefault("_made", {})
        if name not in computed:
            computed[name] = options()
        return computed[name]  # type: ignore[no-any-return]

    def gives(self, name: str) -> bool:
        """Return whether it has a set of options, a document or a variable of a name, or guidance."""
        if name == GUIDANCE:
            return bool(self.guidance)
        if name in self.options:
            return bool(self._ids_of(name))
        if name in self.variables:
            return bool(self.variables[name])
        return any(
            document.name.partition(", ")[0] == name and document.text for document in self.shown_documents
        )

    def option_ids(self, contract: StepContract[Any]) -> dict[str, list[str]]:
        """Return the ids of the sets that a reply takes ids of, by name."""
        names = [name for name in dict.fromkeys(contract.places.values()) if name in self.options]
        return {name: list(self._ids_of(name)) for name in names}

    def _ids_of(self, name: str) -> Sequence[str]:
        ids = self.ids.get(name)
        if ids is None:
            return [option.id for option in self.options_of(name)]
        return ids() if callable(ids) else ids
