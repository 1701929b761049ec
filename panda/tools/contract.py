"""What every tool offers, and the one shape of its result."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from panda.documents.times import Clock
from panda.memory.nodes import NodeReader
from panda.retrieval.candidates import Retriever
from panda.storage.layout import Layout

if TYPE_CHECKING:  # loaded with the first page
    from panda.web.client import WebClient

Status = Literal["success", "error", "blocked"]


@dataclass(frozen=True)
class ToolClaim:
    """One statement that a tool found."""

    text: str
    """One line, quotable as it stands."""
    confidence: float | None
    """As of now; None if unknown."""
    source: str
    """File it comes from, relative to the user's directory; never empty."""
    node_id: str | None
    """Node that holds it."""
    expires_at: str | None = None
    """Instant, None if never said."""


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
    entities: tuple[str, ...] = ()
    """Names of what was found."""
    artifacts: tuple[str, ...] = ()
    """Files that were made; relative to the turn's directory."""
    seconds: float | None = None
    """Wall clock; None if it was not measured."""

    def to_json(self, *, step: int, tool: str, arguments: Mapping[str, object]) -> dict[str, object]:
        """
        The content of steps/step_NN.json.

        Args:
            step: Number of the step, from 1.
            tool: Name as called.
            arguments: Arguments as given.
        """
        return {
            "step": step,
            "tool": tool,
            "arguments": dict(arguments),
            "status": self.status,
            "data": self.data,
            "error": self.error,
            "claims": [asdict(claim) for claim in self.claims],
            "entities": list(self.entities),
            "artifacts": list(self.artifacts),
            "seconds": self.seconds,
        }


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
    web: "Callable[[], WebClient] | None" = None
    """Gives what reads pages; None where the web is not to be reached."""


class Tool(Protocol):
    """One tool. It writes nothing outside the turn's directory."""

    @property
    def name(self) -> str:
        """As plans call it, e.g. "memory.query"."""
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
