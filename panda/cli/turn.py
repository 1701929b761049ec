"""`panda turn`: answer a query from the store."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from panda.cli.completion import complete_sessions, complete_unfinished_turns
from panda.cli.contract import Invocation, Markdown, Result, Table
from panda.cli.input_text import read_argument
from panda.cli.option_rules import excludes
from panda.errors import FileFormatError, HaltError, NotApprovedError, PandaError, UsageError
from panda.storage.layout import IMAGE_JSON, METRICS_JSON, RESPONSE_MD, STAGED_MEMORY_JSON
from panda.storage.turn_folder import TurnFolder
from panda.storage.turn_images import load_picture

if TYPE_CHECKING:  # imported when a turn runs: help must not wait for the phases
    from panda.app import App
    from panda.phases.contract import Phase
    from panda.phases.turn import Turn

CLARIFY = 21
_MODES = ("chat", "code")
_RESUMED = "leave it out: a turn that goes on has its own"


@excludes("resume", "query", "session", "mode", "seed", "image", "dry_run", fix=_RESUMED)
def turn(
    invocation: Invocation,
    query: Annotated[
        str | None, typer.Argument(help="The query; - reads it from standard input.", metavar="QUERY|-")
    ] = None,
    session: Annotated[
        str | None, typer.Option(help="Session of the turn.", metavar="ID", autocompletion=complete_sessions)
    ] = None,
    mode: Annotated[str, typer.Option(help="chat, or code to work on the project.", metavar="MODE")] = "chat",
    seed: Annotated[int | None, typer.Option(help="Seed of every model call.", metavar="N")] = None,
    resume: Annotated[
        int | None,
        typer.Option(
            help="Go on with a turn that stopped.",
            min=1,
            metavar="TURN",
            autocompletion=complete_unfinished_turns,
        ),
    ] = None,
    image: Annotated[
        Path | None, typer.Option(help="An image that the layer EYES describes: PNG or JPEG.", metavar="FILE")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would be done; in code mode, show the diff.")
    ] = False,
) -> Result:
    """
    Answer a query from the store.

    Example: panda turn "How much does the Lenovo LOQ 15 cost?" --user demo
    """
    from panda.app import build

    _check_usage(query, resume, mode)
    picture = load_picture(image) if image is not None else None
    only_plan = dry_run and mode == "chat"
    store = invocation.store(new_user=True) if only_plan else invocation.store_for_writing()
    app = build(invocation.settings, store, invocation.environ, invocation.layers)
    if resume is not None:
        return _resume(invocation, app, resume)
    text = read_query(query or "", invocation.stdin)
    if only_plan:
        return _show_plan(app, text, mode, with_image=picture is not None)
    with app.hold_session(invocation.settings.session, waiting(invocation)):
        return run_turn(invocation, app, app.start_turn(text, mode, dry_run=dry_run, picture=picture))


def read_query(argument: str, stdin: BinaryIO) -> str:
    """The query as given; from standard input without the line break at its end."""
    text = read_argument(argument, stdin)
    return text.removesuffix("\n").removesuffix("\r") if argument == "-" else text


def _check_usage(query: str | None, resume: int | None, mode: str) -> None:
    if mode not in _MODES:
        raise UsageError(f"there is no mode {mode!r}", where="--mode", fix=f"use {' or '.join(_MODES)}")
    if (query is None) == (resume is None):
        raise UsageError(
            "give a query or --resume TURN, one of the two", where="QUERY|-", fix='as in panda turn "What …?"'
        )


def watching(invocation: Invocation, running: "Turn") -> "Callable[[Phase], None]":
    """Tells where the turn is; gives what tells of each phase before it runs."""

    def watch(phase: "Phase") -> None:
        invocation.reporter.step(f"phase {phase.number}: {phase.name} ({phase.layer})")

    invocation.reporter.step(f"turn {running.turn} in {running.folder.paths.directory}")
    return watch


def waiting(invocation: Invocation) -> Callable[[str], None]:
    """Tells who holds the lock that is waited for."""
    return lambda holder: invocation.reporter.step(f"waiting for {holder}")


def _resume(invocation: Invocation, app: "App", number: int) -> Result:
    session = app.store.open(number).read_metadata().session_id
    with app.hold_session(session, waiting(invocation)):
        return run_turn(invocation, app, app.resume_turn(number))


def _show_plan(app: "App", query: str, mode: str, *, with_image: bool) -> Result:
    from panda.dry_run import PLAN_COLUMNS, plan_turn

    plan = plan_turn(app, query, mode, with_image=with_image)
    rows = [
        [" ".join(map(str, v)) if isinstance(v := row[c], list) else v for c in PLAN_COLUMNS] for row in plan
    ]
    return Result({"query": query, "mode": mode, "calls": plan}, Table(PLAN_COLUMNS, rows))


def run_turn(invocation: Invocation, app: "App", running: "Turn") -> Result:
    """Take a turn to its end, telling of each phase, and give what came of it."""
    watch = watching(invocation, running)
    error: PandaError | None = None
    try:
        app.run_turn(running, watch)
    except (HaltError, FileFormatError) as exc:
        error = exc
    if (image := running.described_image) is not None:
        invocation.reporter.step(f"{image['file']}, as {image['model']} describes it: {image['description']}")
    for warning in running.warnings:
        invocation.reporter.warn(warning)
    return _result(invocation, turn_data(running.folder), error)


def turn_data(folder: TurnFolder) -> dict[str, Any]:
    """What `turn --json` says of a turn, from its files."""
    metadata = folder.read_metadata()
    answer = folder.read_context().section(5)
    meta: Mapping[str, Any] = answer.meta if answer else {}
    places = dict(zip(meta.get("node_ids", ()), meta.get("provenance", ()), strict=True))
    phases = folder.read_json(METRICS_JSON)["phases"] if folder.has(METRICS_JSON) else []
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
        "noted": folder.read_json(STAGED_MEMORY_JSON).get("noted", [])
        if folder.has(STAGED_MEMORY_JSON)
        else [],
        "changes": file_changes(folder),
        "image": folder.read_json(IMAGE_JSON) if folder.has(IMAGE_JSON) else None,
        "phases": [{"recipe" if key == "recipes" else key: row[key] for key in row} for row in phases],
        "reason": metadata.reason,
        "intervention": metadata.intervention,
    }


def file_changes(folder: TurnFolder) -> list[dict[str, Any]]:
    """The files of the project that a turn changed, with the diff of each change, in order."""
    made = [
        step["data"] for step in folder.steps() if step["kind"] == "write" and step["status"] == "success"
    ]
    return [{key: one[key] for key in ("path", "diff", "dry_run")} for one in made if "diff" in one]


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
        return Result(data, str(data["question"]), exit_code=CLARIFY)
    if data["status"] == "failed":
        for source in data["sources"]:
            invocation.reporter.step(f"evidence: {source['quote']} [{source['node_id']}]")
        for change in data["changes"]:
            said = "would change" if change["dry_run"] else "changed"
            invocation.reporter.step(f"{said}: {change['path']}")
            for line in change["diff"].splitlines() if change["dry_run"] else ():
                invocation.reporter.step(line)
        return Result(data, error=_not_approved(data))
    return Result(data, Markdown(data["response"]))
