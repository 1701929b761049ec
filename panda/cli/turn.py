"""`panda turn`: answer a query from the store."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from panda.cli.contract import Invocation, Markdown, Result
from panda.cli.input_text import read_argument
from panda.errors import HaltError, NotApprovedError, PandaError
from panda.storage.layout import METRICS_JSON, RESPONSE_MD
from panda.storage.turn_folder import TurnFolder

if TYPE_CHECKING:  # imported when a turn runs: help must not wait for the phases
    from panda.app import App
    from panda.phases.contract import Phase
    from panda.phases.turn import Turn

_CLARIFY = 21


def turn(
    invocation: Invocation,
    query: Annotated[
        str, typer.Argument(help="The query; - reads it from standard input.", metavar="QUERY|-")
    ],
    session: Annotated[str | None, typer.Option(help="Session of the turn.", metavar="ID")] = None,
    mode: Annotated[str, typer.Option(help="chat; code comes with its recipes.", metavar="MODE")] = "chat",
    seed: Annotated[int | None, typer.Option(help="Seed of every model call.", metavar="N")] = None,
) -> Result:
    """
    Answer a query from the store.

    Example: panda turn "How much does the Lenovo LOQ 15 cost?" --user demo
    """
    from panda.app import build

    text = read_argument(query, invocation.stdin)
    text = text.rstrip("\r\n") if query == "-" else text
    app = build(invocation.settings, invocation.store_for_writing(), invocation.environ)
    running = app.start_turn(text, mode)
    invocation.reporter.step(f"turn {running.turn} in {running.folder.paths.directory}")
    return run_turn(invocation, app, running)


def run_turn(invocation: Invocation, app: "App", running: "Turn") -> Result:
    """Take a turn to its end, telling of each phase, and give what came of it."""

    def watch(phase: "Phase") -> None:
        invocation.reporter.step(f"phase {phase.number}: {phase.name} ({phase.layer})")

    error: PandaError | None = None
    try:
        app.pipeline.run(running, watch)
    except HaltError as exc:
        error = exc
    for warning in running.warnings:
        invocation.reporter.warn(warning)
    return _result(invocation, turn_data(running.folder), error)


def turn_data(folder: TurnFolder) -> dict[str, Any]:
    """What `turn --json` says of a turn, from its files."""
    metadata = folder.read_metadata()
    answer = folder.read_context().section(5)
    meta: Mapping[str, Any] = answer.meta if answer else {}
    places = dict(zip(meta.get("node_ids", ()), meta.get("provenance", ()), strict=True))
    ended = metadata.next is None
    return {
        "turn": metadata.turn,
        "turn_dir": str(folder.paths.directory),
        "status": metadata.status,
        "answered": metadata.answered,
        "response": folder.read_text(RESPONSE_MD).rstrip("\n") if metadata.status == "approved" else None,
        "question": metadata.question,
        "sources": [
            {"node_id": node_id, "provenance": places[node_id], "quote": item["text"]}
            for item in meta.get("items", ())
            for node_id in item["node_ids"]
        ],
        "phases": folder.read_json(METRICS_JSON)["phases"] if ended else [],
        "reason": metadata.reason,
        "intervention": metadata.intervention,
    }


def _not_approved(data: Mapping[str, Any]) -> NotApprovedError:
    reason = data["reason"] or "it does not answer the query"
    return NotApprovedError(
        f"the answer of turn {data['turn']} was not approved: {reason}",
        where=f"{data['turn_dir']}/context.md (§6)",
        fix="ask more precisely, or look at the evidence above",
    )


def _result(invocation: Invocation, data: dict[str, Any], error: PandaError | None) -> Result:
    if error is not None:
        return Result(data, error=error)
    if data["status"] == "clarify":
        return Result(data, str(data["question"]), exit_code=_CLARIFY)
    if data["status"] == "failed":
        for source in data["sources"]:
            invocation.reporter.step(f"evidence: {source['quote']} [{source['node_id']}]")
        return Result(data, error=_not_approved(data))
    return Result(data, Markdown(data["response"]))
