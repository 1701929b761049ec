"""What every tool offers, and the one shape of its result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta, Struct

from panda.documents.record_codec import encode
from panda.memory.reader import NodeReader
from panda.retrieval.candidates import Retriever
from panda.steps.step_contract import R, StepContract
from panda.store.layout import UserStore
from panda.store.records import Step, StepEntity, ToolClaim

if TYPE_CHECKING:  # loaded with the first page
    from panda.web.client import WebClient

Status = Literal["success", "error", "blocked"]
Kind = Literal["read", "write", "generate", "analyze"]

_Given = TypeVar("_Given", bound=Struct)


@dataclass(frozen=True)
class ToolResult:
    """What one run of a tool gave; with number, tool and arguments it is a steps/step_NN.json."""

    status: Status  # blocked: the tool ran, but what it gave may not be used
    data: Any = None  # as the tool's result schema says; None unless success
    error: str | None = None  # one line that names the fault; None on success
    claims: tuple[ToolClaim, ...] = ()  # what the answer may rest on
    entities: tuple[StepEntity, ...] = ()  # what was found, made or changed
    artifacts: tuple[str, ...] = ()  # files that were made; relative to the turn's directory
    text: str = ""  # what a model should read besides the claims, such as a file's lines or a diff
    seconds: float | None = None  # wall clock; None if it was not measured

    def to_json(self) -> dict[str, object]:
        """The part of a steps/step_NN.json that the tool decides."""
        value: dict[str, object] = encode(self)
        return value


class Ask(Protocol):
    """Asks the recipe of a step, given options, variables and documents, for the content of its reply."""

    def __call__(self, contract: StepContract[R], /, **request_fields: Any) -> R: ...


Draft = Callable[[str, str], str]
"""Writes a draft: maps its kind and what it should say to its text."""


class Workspace(Protocol):
    """What tools of code mode work on: the files of a project."""

    @property
    def dry(self) -> bool:
        """Return whether changes stay in memory."""

    def settle_change(self, step: Step) -> Step | None:
        """Return the finished step of a change that a killed run had announced; None: it is to be made."""


@dataclass(frozen=True)
class ToolContext:
    store: UserStore  # of whose turn it is; its clock stands still while the turn runs
    turn: int  # its number
    query: str  # the raw query of the turn
    reader: NodeReader  # loads the user's nodes
    retriever: Retriever  # finds the user's nodes
    folder: Path | None = None  # where artifacts go: the turn's directory; None if there is no turn
    step: int = 1  # number of the step that the call is
    workspace: Workspace | None = None  # what tools of code mode work on; None in chat mode
    draft: Draft | None = None  # asks the model that writes drafts; None if there is no turn
    limit_seconds: float = 60.0  # how long git may take for one question
    intend: Callable[[ToolResult], None] = lambda result: None
    """Told of the result by a tool that is about to change a file, before it does."""
    web: "Callable[[], WebClient] | None" = None
    """Gives what reads pages; None where the web is not to be reached."""
    web_browser: bool = False  # whether pages that need scripts are opened in Chromium
    sees: bool = False  # whether a model of the layer EYES is set
    search_provider: str | None = None  # who searches the web, as the setting names it; None if nobody
    pages: tuple[str, ...] = ()  # pages that were read before and should be looked at again for this query
    noted_texts: tuple[str, ...] = ()  # sentences of the query that the turn notes without a tool
    ask: Ask | None = None  # asks recipes on behalf of a tool; None if there is no turn


ArgumentSource = Callable[[str, ToolContext], list[str]]
"""Gives the values that a query suggests for an argument, the likeliest first."""

_NO_SOURCES: Mapping[str, ArgumentSource] = {}


def _describe_no_more(context: ToolContext) -> str:
    return ""


@dataclass(frozen=True)
class Tool:
    """One tool. It writes nothing outside the turn's directory and, in code mode, the project's."""

    name: str  # as plans call it, e.g. "memory.query"
    kind: Kind  # what it does to the world; after a write the same read may give something else
    description: str  # one line for prompts
    arguments: type[Struct]  # what it takes
    result: type  # a typed dictionary: the data of a success
    run: Callable[[Any, ToolContext], ToolResult]
    """
    Does the work, given its arguments. A Problem says that it cannot be done and becomes an error result.
    """
    reaches_out: bool
    """Whether its result depends on more than the store: a replay takes what it gave when it ran."""
    uses_workspace: bool  # whether it works on the files of a project
    argument_sources: Mapping[str, ArgumentSource]
    """Where values of its arguments come from that a query suggests, beside those of panda/tools/table.py."""
    describe_more: Callable[[ToolContext], str]
    """Says what prompts are told beside the description."""

    @cached_property
    def argument_schema(self) -> Mapping[str, Any]:
        return _schema(self.arguments)

    @cached_property
    def result_schema(self) -> Mapping[str, Any]:
        return _schema(self.result)


def tool(
    name: str,
    kind: Kind,
    description: str,
    result: type,
    *,
    from_store: bool = False,
    uses_workspace: bool = False,
    argument_sources: Mapping[str, ArgumentSource] = _NO_SOURCES,
    describe_more: Callable[[ToolContext], str] = _describe_no_more,
) -> Callable[[Callable[[_Given, ToolContext], ToolResult]], Tool]:
    """
    A tool out of the function that does its work, whose first parameter's annotation says what it takes. One
    whose result depends on the store alone is run again by a replay. The others are as fields of Tool.
    """

    def make(run: Callable[[_Given, ToolContext], ToolResult]) -> Tool:
        takes = next(iter(run.__annotations__.values()))
        return Tool(
            name=name,
            kind=kind,
            description=description,
            arguments=takes,
            result=result,
            run=run,
            reaches_out=not from_store,
            uses_workspace=uses_workspace,
            argument_sources=argument_sources,
            describe_more=describe_more,
        )

    return make


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of a tool; of a tool that takes none as it stands."""


class QueryArguments(Arguments, frozen=True):
    """Arguments of a tool that takes a query and nothing else."""

    query: Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\S")]


def _schema(of: type) -> Mapping[str, Any]:
    schema = msgspec.json.schema(of)
    parts = schema.pop("$defs")
    top = parts.pop(schema["$ref"].rpartition("/")[2])
    top.pop("title")
    for name, hint in get_type_hints(of).items():
        if get_origin(hint) is Literal:  # msgspec sorts them; the first ones are the likely ones
            top["properties"][name]["enum"] = list(get_args(hint))
    return {**top, **({"$defs": parts} if parts else {})}
