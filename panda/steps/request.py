"""What a phase gives to whoever replies to one call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from panda.compression.fit import InputDocument
from panda.documents.pictures import Picture
from panda.language.text import PAGE_ADDRESS
from panda.steps.options import Option


@dataclass(frozen=True)
class Request:
    """The inputs of one call."""

    query: str  # the user's original query; every call gets it
    documents: Sequence[InputDocument] = ()  # documents of the turn, most important first
    options: Mapping[str, Sequence[Option]] = field(default_factory=dict)
    """Sets of options by name; the step's contract says where the reply takes their ids."""
    variables: Mapping[str, str] = field(default_factory=dict)  # values for {{name}}
    guidance: str | None = None  # what an earlier judgement asks to do differently
    meant: str | None = None
    """The query with names for what it refers to, if it refers to anything."""
    pictures: tuple[Picture, ...] = ()  # what the model is shown; only the layer EYES sees
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Schemas of what goes with an option, as the arguments of a tool, by the option's id."""

    inputs: object = None
    """The typed inputs of the step, for a responder that reads no prompt."""

    @property
    def asked(self) -> str:
        """The query as it is meant; an address is "the page", as its letters would outweigh the rest."""
        return PAGE_ADDRESS.sub("the page", self.meant or self.query)

    @property
    def option_ids(self) -> dict[str, list[str]]:
        return {name: [option.id for option in options] for name, options in self.options.items()}

    def document(self, name: str) -> str:
        """Return the text of a document, whatever its file ending; "" if it was not given."""
        texts = (one.text for one in self.documents if one.name.partition(".")[0] == name)
        return next(texts, "")
