"""What every tool offers, and the one shape of its result."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from panda.documents.times import Clock
from panda.memory.reader import NodeReader
from panda.retrieval.candidates import Retriever
from panda.storage.layout import Layout
from panda.tools.project import Project

if TYPE_CHECKING:  # loaded with the first page
    from panda.web.client import WebClient

Status = Literal["success", "error", "blocked"]
Kind = Literal["read", "write", "generate", "analyze"]
Op = Literal["read", "create", "update", "delete"]


@dataclass(frozen=True)
class ToolClaim:
    """One statement that a tool found."""

    text: str
    """One line, quotable as it stands."""
    confidence: float | None
    """As of now; None if unknown."""
    source: str
    """File it comes from, relative to the user's directory or the project's; never empty."""
    node_id: str | None
    """Node that holds it; None if the step itself is the only record."""
    expires_at: str | None = None
    """Instant, None if never said."""


@dataclass(frozen=True)
class Entity:
    """One thing that a tool read, made or changed."""

    ref: str
    """Node id, or another name that means the same thing in every turn, as "file:src/app.py"."""
    type: str
    """What it is, as "visit", "preference" or "file"."""
    label: str
    """Its name for people."""
    op: Op = "read"
    """What the tool did to it."""


@dataclass(frozen=True)
class ToolResult:
    """What one run of a tool gave; with number, tool and arguments it is a steps/step_NN.json."""

    status: Status
    """blocked: the tool ran, but what it gave may not be used."""
    data: Any = None
    """As the tool's result schema says; None unless success."""
    error: str | None = None
    """One line that names the fault; None on success."""
    claims: tuple[ToolClaim, ...] = ()
    """What the answer may rest on."""
    entities: tuple[Entity, ...] = ()
    """What was found, made or changed."""
    artifacts: tuple[str, ...] = ()
    """Files that were made; relative to the turn's directory."""
    text: str = ""
    """What a model should read besides the claims, such as a file's lines or a diff."""
    seconds: float | None = None
    """Wall clock; None if it was not measured."""

    def to_json(self) -> dict[str, object]:
        """The part of a steps/step_NN.json that the tool decides."""
        return {
            "status": self.status,
            "data": self.data,
            "error": self.error,
            "claims": [asdict(claim) for claim in self.claims],
            "entities": [asdict(entity) for entity in self.entities],
            "artifacts": list(self.artifacts),
            "text": self.text,
            "seconds": self.seconds,
        }


Ask = Callable[..., Mapping[str, Any]]
"""Asks the recipe of a step: maps its name, options, variables and documents to the values of the reply."""

Draft = Callable[[str, str], str]
"""Writes a draft: maps its kind and what it should say to its text."""


@dataclass(frozen=True)
class ToolContext:
    """What a tool may touch."""

    layout: Layout
    """Where the store is."""
    user: str
    """Whose turn it is."""
    turn: int
    """Its number."""
    query: str
    """The raw query of the turn."""
    reader: NodeReader
    """Loads the user's nodes."""
    retriever: Retriever
    """Finds the user's nodes."""
    clock: Clock
    """Gives the present instant."""
    folder: Path | None = None
    """Where artifacts go: the turn's directory; None if there is no turn."""
    step: int = 1
    """Number of the step that the call is."""
    project: Project | None = None
    """The project's files; None in chat mode, where no tool may see them."""
    draft: Draft | None = None
    """Asks the model that writes drafts; None if there is no turn."""
    limit_seconds: float = 60.0
    """How long a tool may take."""
    intend: Callable[[ToolResult], None] = lambda result: None
    """Told of the result by a tool that is about to change a file, before it does."""
    web: "Callable[[], WebClient] | None" = None
    """Gives what reads pages; None where the web is not to be reached."""
    search_provider: str | None = None
    """Who searches the web, as the setting names it; None if nobody."""
    pages: tuple[str, ...] = ()
    """Pages that were read before and should be looked at again for this query."""
    ask: Ask | None = None
    """Asks recipes on behalf of a tool; None if there is no turn."""


class Tool(Protocol):
    """One tool. It writes nothing outside the turn's directory and, in code mode, the project's."""

    @property
    def name(self) -> str:
        """As plans call it, e.g. "memory.query"."""
        ...

    @property
    def kind(self) -> Kind:
        """What it does to the world; after a write the same read may give something else."""
        ...

    @property
    def description(self) -> str:
        """One line for prompts."""
        ...

    @property
    def argument_schema(self) -> Mapping[str, Any]:
        """JSON Schema (2020-12) of the arguments."""
        ...

    @property
    def result_schema(self) -> Mapping[str, Any]:
        """JSON Schema (2020-12) of the data of a success."""
        ...

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """
        Do the work, with arguments that satisfy the schema.

        Raises:
            PandaError: It cannot be done; becomes an error result.
        """
        ...
