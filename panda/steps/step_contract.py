"""The contract of a step: what its phase gives, what a reply may hold, and what the phase reads of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from panda.steps.reply_contents import ReplyContent, TextReply

R = TypeVar("R", bound=ReplyContent)


@dataclass(frozen=True, kw_only=True)
class StepContract(Generic[R]):
    """
    What holds of every reply to a step, whoever gives it; recipes may ask for less, or for more.

    A place is a property of the reply, nested ones with dots and the items of a list with [], such as
    "items[].lines".
    """

    name: str
    reply: type[R]  # what the phase reads of a reply
    option_sets: tuple[str, ...] = ()  # names of the sets of options that the phase gives
    places: Mapping[str, str] = field(default_factory=dict)  # where the reply takes ids, and of which set
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Places of objects that hold an id, each with the property that does: the id's own schema is that of
    their property `arguments`."""
    only_with: Mapping[str, str] = field(default_factory=dict)
    """Places that a model is asked for only where a set of options, a document or a variable of this name
    is there and not empty."""
    variables: tuple[str, ...] = ()  # variables that the phase gives, besides BASE_VARIABLES
    documents: tuple[str, ...] = ()  # documents that it gives and that are no files of the turn
    tool: str | None = None  # tool or command that asks, and only while it runs; None for a phase
    of_image: bool = False  # whether it is asked of an image alone
    may_ask: bool = False  # whether its phase may ask the user back
    lenient: tuple[str, ...] = ()  # properties of which the phase leaves out what is wrong: no fault refuses
    from_text: Callable[[str | None], R] | None = None
    """Makes the reply of markdown or text, None where nothing could word it; None if it must be an object."""
    is_dispensable: bool = False  # whether its phase goes on where nothing can reply

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Return the names of the properties that the phase cannot do without."""
        return tuple(part.name for part in msgspec.structs.fields(self.reply) if part.required)

    @cached_property
    def optional(self) -> tuple[str, ...]:
        """Return the names of the properties that it reads where they are there."""
        return tuple(sorted(self.properties.difference(self.required)))

    @cached_property
    def properties(self) -> frozenset[str]:
        """Return the names of the properties that the contract knows."""
        return frozenset(self.reply.__struct_fields__)

    @cached_property
    def decides(self) -> Mapping[str, tuple[str, ...]]:
        """Return the properties that say how the turn goes on, with the values that the phase acts upon."""
        literals = {name: form for name, form in self._types.items() if get_origin(form) is Literal}
        return {name: get_args(form) for name, form in literals.items()}

    @property
    def may_be_text(self) -> bool:
        """Return whether the reply may be markdown or text in the place of an object."""
        return self.from_text is not None or self.reply is TextReply

    @cached_property
    def _types(self) -> Mapping[str, Any]:
        return get_type_hints(self.reply)

    def to_json(self) -> dict[str, object]:
        """Return the contract as `panda recipe show --json` has it."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        del values["reply"], values["from_text"]
        names = ("required", "optional", "decides", "may_be_text")
        return {**values, **{name: getattr(self, name) for name in names}}

    def read(self, values: Mapping[str, Any]) -> R:
        """
        Return the typed reply. A property that the phase can do without and that has another type is left
        out. Raises ValueError: a property that it needs is missing or has another type.
        """
        content: dict[str, Any] = {}
        for name, form in self._types.items():
            if name not in values:
                continue
            try:
                content[name] = msgspec.convert(values[name], form, strict=False)
            except msgspec.ValidationError as exc:
                if name in self.required:
                    raise ValueError(f"$.{name}: {exc}") from exc
        missing = [name for name in self.required if name not in content]
        if missing:
            raise ValueError(f"{missing[0]!r} is missing, which the phase of this recipe reads")
        return self.reply(**content)


NO_CONTRACT = StepContract(name="", reply=ReplyContent)
"""That of a recipe which serves no step."""
