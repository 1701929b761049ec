"""What clients of `panda mcp` can call and read: the actions of the commands, memory files and turns."""

import io
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from panda.actions.search import opened_meaning, search
from panda.actions.synthesis_facts import FactSource
from panda.actions.turn_run import TurnResult, ask, gather_query
from panda.addon_registry import mode_names
from panda.addons.serving.guard import json_bytes
from panda.addons.serving.mcp_server import Report, ServedText, ServedTool
from panda.cli.command import Invocation, LogHandler
from panda.cli.turn import read_query
from panda.documents.json_schema import find_violation
from panda.documents.record_codec import encode
from panda.documents.safe_text import visible
from panda.documents.times import time_text
from panda.errors import NotFoundError, UsageError
from panda.index.full_text import Index
from panda.memory.synthesis import SynthesisRequest, parse_request, synthesize
from panda.retrieval.ranking import POOL
from panda.session.file import newest_session
from panda.settings import Settings
from panda.store.files import read_text
from panda.store.layout import (
    CONFLICTS_JSONL,
    CONTEXT_MD,
    FACTS_MD,
    MEMORY_JSONL,
    PREFERENCES_MD,
    check_id,
)
from panda.store.turns import TurnRow, list_rows, read_turn_file

_POLL_SECONDS = 0.1
_SESSION = {"type": "string", "description": "Session id: 1 to 64 of a-z, 0-9, _ and -; a new one if absent."}
_CONTINUE = {"type": "boolean", "description": "Whether to go on with the newest session."}
_MOST = {"type": "integer", "minimum": 1, "maximum": POOL, "description": "Most turns; 10 if absent."}
_SYNTHESIZE = (
    "What is known now within a scope (local, team, company or public): for each entity and relation the "
    "most credible value, and where another fact says otherwise, contradicted with both values."
)
_SEARCH = "The saved turns that a query finds, best first; each can be read as a resource."
_GATHER = (
    "Begins a turn with a query and gathers its context: lines of memory and earlier turns with their nodes."
)
_RUN = (
    "Takes a query through all phases and gives the answer with its sources, or a question, or why not. "
    "outcome says what came of it: where that is unsure, nothing surely answers, and the passages under "
    "closest are no answer."
)
_MEMORY = "panda://memory/"
_TURNS = "panda://turns"
_MEMORY_FILES = {
    PREFERENCES_MD: "The user's preferences, as they are now.",
    FACTS_MD: "Facts that the user stated, as they are now.",
    MEMORY_JSONL: "Every assertion, oldest first.",
    CONFLICTS_JSONL: "Contradictions, and how they were settled.",
}
_MIME_TYPES = {"md": "text/markdown", "json": "application/json", "jsonl": "application/jsonl"}
_LISTED_TURNS = 50
_MOST_DIGITS = 12


def _schema(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of arguments with a query and what else may be given."""
    query = {"type": "string", "description": "Any text."}
    named = {"query": query, **properties}
    return {"type": "object", "properties": named, "required": ["query"], "additionalProperties": False}


_SEARCH_SCHEMA = _schema(
    limit=_MOST,
    session={**_SESSION, "description": "Only turns of this session."},
    since={"type": "string", "description": "Only turns from this date on."},
)
_TURN_SCHEMA = _schema(
    session=_SESSION,
    **{"continue": _CONTINUE},
    mode={"type": "string", "enum": mode_names(), "description": "chat if absent."},
    seed={"type": "integer", "minimum": 0, "maximum": 2**32 - 1, "description": "Of the models."},
)


@dataclass(frozen=True)
class ActionTools:
    """What clients can do with one user's store."""

    invocation: Invocation  # the run of `panda mcp`
    source: FactSource  # the facts of synthesize_scope
    model_lock: threading.Lock  # held by whoever asks a model: one at a time

    def listed(self) -> Sequence[ServedTool]:
        """All tools."""
        request_schema = msgspec.json.schema_components([SynthesisRequest])[1]["SynthesisRequest"]
        return (
            ServedTool("synthesize_scope", _SYNTHESIZE, request_schema, self._synthesize),
            ServedTool("search_turns", _SEARCH, _SEARCH_SCHEMA, self._search),
            ServedTool("gather_context", _GATHER, _TURN_SCHEMA, self._of_turn(gather_query), read_only=False),
            ServedTool("run_turn", _RUN, _TURN_SCHEMA, self._of_turn(ask), read_only=False),
        )

    def _synthesize(self, arguments: Mapping[str, Any], report: Report) -> TurnResult:
        asked = parse_request(arguments)
        now = self.invocation.settings.clock()
        return TurnResult(encode(synthesize(*self.source.load(), asked, now=now)))

    def _search(self, raw_arguments: Mapping[str, Any], report: Report) -> TurnResult:
        arguments = _read_arguments(raw_arguments, _SEARCH_SCHEMA)
        own = self.invocation
        settings = self._settings(arguments)
        LogHandler.caller.set(partial(_tell, report))  # of this thread
        index = Index(own.store(), wait_seconds=settings.wait_seconds)
        with opened_meaning(settings, own.store(), index, own.environ, own.layers) as meaning:
            about: dict[str, Any] = {name: arguments.get(name) for name in ("query", "session", "since")}
            data = search(settings, index, meaning, limit=POOL, **about)[0]
        results = [
            {**result, "uri": f"{_TURNS}/{result['turn']}"}
            for result in data["results"]
            if result["source_type"] == "turn_summary"
        ]
        return TurnResult({**data, "results": results[: arguments.get("limit", 10)]})

    def _of_turn(self, act: Callable[..., TurnResult]) -> Callable[..., TurnResult]:
        """Return the function that a client calls to do something that asks models."""

        def run(raw_arguments: Mapping[str, Any], report: Report) -> TurnResult:
            arguments = _read_arguments(raw_arguments, _TURN_SCHEMA)
            if "session" in arguments and arguments.get("continue"):
                raise UsageError(
                    "session and continue name two sessions", where="continue", fix="leave one out"
                )
            own = self.invocation
            settings = self._settings(arguments)
            LogHandler.caller.set(partial(_tell, report))  # of this thread
            if not self.model_lock.acquire(blocking=False):
                report("waiting for another turn of this server")
                while not self.model_lock.acquire(timeout=_POLL_SECONDS):
                    pass  # in steps: a call that waits can be cancelled
            try:
                layout = own.store_for_writing()
                if arguments.get("continue"):
                    store = layout
                    settings = replace(settings, session=newest_session(store, where="continue"))
                app = own.open_app(layout, settings=settings)
                query = read_query(
                    "-", io.BytesIO(arguments["query"].encode("utf-8", errors="surrogatepass"))
                )
                return act(app, query, arguments.get("mode", "chat"), client="mcp")
            finally:
                self.model_lock.release()

        return run

    def _settings(self, arguments: Mapping[str, Any]) -> Settings:
        """The settings with what the arguments set."""
        overrides = {name: arguments[name] for name in ("session", "seed") if name in arguments}
        if "session" in overrides:
            check_id(overrides["session"], what="session", where="session")
        return replace(self.invocation.settings, **overrides)


def _tell(report: Report, text: str) -> None:
    for line in visible(text).splitlines():
        report(line)


def _read_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the arguments of a tool, whole numbers as int: to JSON Schema 5.0 is an integer like 5. Raises
    UsageError where they are not what the tool takes.
    """
    broken = find_violation(schema, arguments)
    if broken is not None:
        where = ".".join(map(str, broken.path)) or "arguments"
        raise UsageError(broken.message[:200], where=where, fix="see the tool's input schema")
    kinds = {name: part.get("type") for name, part in schema["properties"].items()}
    return {name: int(value) if kinds[name] == "integer" else value for name, value in arguments.items()}


class UserResources:
    """The resources of one user."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation

    def listed(self) -> Sequence[ServedText]:
        """The memory files that there are, the list of turns, the newest turns."""
        directory = self._invocation.store().home
        memory = [
            ServedText(_MEMORY + name, name, what, _mime_type(name))
            for name, what in _MEMORY_FILES.items()
            if (directory / name).is_file()
        ]
        every = ServedText(_TURNS, "turns", "All saved turns, newest last.", "application/json")
        rows = list_rows(self._invocation.store(), session=None, limit=_LISTED_TURNS)
        return [*memory, every, *(_listed(row) for row in reversed(rows))]

    def templates(self) -> Sequence[ServedText]:
        """Any turn, and any file of one."""
        return [
            ServedText(f"{_TURNS}/{{turn}}", CONTEXT_MD, "The document of a turn.", "text/markdown"),
            ServedText(f"{_TURNS}/{{turn}}/{{+file}}", "file", "A file of a turn.", "text/plain"),
        ]

    def read(self, uri: str) -> tuple[str, str]:
        """Kind and text of a resource. Raises NotFoundError: there is none of that address."""
        if uri == _TURNS:
            rows = list_rows(self._invocation.store(), session=None, limit=None)
            return "application/json", json_bytes({"turns": [_value(row) for row in rows]}).decode("utf-8")
        name = uri.removeprefix(_MEMORY)
        if name in _MEMORY_FILES and uri.startswith(_MEMORY):
            path = self._invocation.store().home / name
            if path.is_file():
                return _mime_type(name), read_text(path)
        number, _, file = uri.removeprefix(f"{_TURNS}/").partition("/")
        is_number = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
        if not (uri.startswith(f"{_TURNS}/") and is_number):
            raise NotFoundError(f"there is no resource {uri[:200]}", fix="list the resources")
        content = read_turn_file(self._invocation.store().open(int(number)), file or CONTEXT_MD)
        return _mime_type(file or CONTEXT_MD), content.decode("utf-8", errors="replace")


def _listed(row: TurnRow) -> ServedText:
    what = " ".join((row.query or row.status).split())[:200]
    return ServedText(f"{_TURNS}/{row.number}", f"turn {row.number}", what, "text/markdown")


def _value(row: TurnRow) -> dict[str, object]:
    noted = {"session": row.session, "status": row.status, "outcome": row.outcome, "query": row.query}
    return {"turn": row.number, "uri": f"{_TURNS}/{row.number}", "time": time_text(row.at), **noted}


def _mime_type(name: str) -> str:
    return _MIME_TYPES.get(name.rpartition(".")[2], "text/plain")
