"""`panda gather`: phase 2 by itself."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from panda.cli.completion import complete_sessions, complete_ungathered_turns
from panda.cli.contract import Document, Invocation, Result, Table
from panda.cli.option_rules import excludes
from panda.cli.turn import CLARIFY, read_query, waiting, watching
from panda.errors import FileFormatError, HaltError, PandaError, UsageError

if TYPE_CHECKING:  # imported when a turn runs: help must not wait for the phases
    from panda.app import App
    from panda.gathering import Look, Until
    from panda.phases.turn import Turn

_PLAN_COLUMNS = ("node", "chosen", "by", "score", "index")


@excludes("turn", "query", "session", "mode", "seed", fix="leave it out: a turn that is there has its own")
@excludes("plan", "draft", fix="--plan stops before the draft: leave one of the two out")
def gather(
    invocation: Invocation,
    turn: Annotated[
        int | None,
        typer.Argument(
            help="A turn whose context is not gathered yet.",
            min=1,
            metavar="TURN",
            autocompletion=complete_ungathered_turns,
        ),
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="Begin a new turn with this query; - reads it.", metavar="TEXT|-")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print the retrieval plan and stop.")] = False,
    draft: Annotated[bool, typer.Option("--draft", help="Print §2 without committing it.")] = False,
    session: Annotated[
        str | None,
        typer.Option(help="Session of a new turn.", metavar="ID", autocompletion=complete_sessions),
    ] = None,
    mode: Annotated[str, typer.Option(help="chat or code, for a new turn.", metavar="MODE")] = "chat",
    seed: Annotated[int | None, typer.Option(help="Seed of every model call.", metavar="N")] = None,
) -> Result:
    """
    Gather the context of a turn and stop; `panda turn --resume TURN` goes on.

    Example: panda gather --query "what were the specs on that Lenovo?" --user demo
    """
    from panda.app import build
    from panda.gathering import check_gatherable

    _check_given(turn, query)
    store = invocation.store_for_writing()
    app = build(invocation.settings, store, invocation.environ, invocation.layers)
    until: Until = "plan" if plan else "draft" if draft else "commit"
    if turn is None:
        text = read_query(query or "", invocation.stdin)
        with app.hold_session(invocation.settings.session, waiting(invocation)):
            return _run(invocation, app, app.start_turn(text, mode), until)
    check_gatherable(app, turn)
    with app.hold_session(app.store.open(turn).read_metadata().session_id, waiting(invocation)):
        check_gatherable(app, turn)
        return _run(invocation, app, app.resume_turn(turn), until)


def _check_given(turn: int | None, query: str | None) -> None:
    if turn is None and query is None:
        fix = 'as in panda gather --query "What …?"'
        raise UsageError("give a TURN or --query, one of the two", where="TURN", fix=fix)


def _run(invocation: Invocation, app: "App", running: "Turn", until: "Until") -> Result:
    from panda.gathering import gather as gather_turn

    watch = watching(invocation, running)
    error: PandaError | None = None
    look: Look | None = None
    started = time.monotonic()
    try:
        look = gather_turn(app, running, until, watch)
    except (HaltError, FileFormatError) as exc:
        error = exc
    seconds = round(time.monotonic() - started, 3)
    for warning in running.warnings:
        invocation.reporter.warn(warning)
    return _result(_data(running, look, seconds), look, error)


def _data(running: "Turn", look: "Look | None", seconds: float) -> dict[str, Any]:
    metadata = running.folder.read_metadata()
    gathered = (look.gathered if look else None) or {}
    verdict = gathered.get("verdict") or {}
    return {
        "turn": running.turn,
        "turn_dir": str(running.folder.paths.directory),
        "status": metadata.status,
        "plan": look.plan if look else None,
        "documents": gathered.get("documents"),
        "section": look.section if look else None,
        "sections": gathered.get("sections"),
        "verdict": verdict.get("status"),
        "issues": verdict.get("issues", []),
        "gaps": gathered.get("gaps"),
        "stale": gathered.get("stale"),
        "metrics": gathered.get("metrics"),
        "question": metadata.question,
        "warnings": running.warnings,
        "intervention": metadata.intervention,
        "seconds": seconds,
    }


def _result(data: dict[str, Any], look: "Look | None", error: PandaError | None) -> Result:
    if error is not None or look is None:
        return Result(data, error=error)
    if data["status"] == "clarify":
        return Result(data, str(data["question"]), exit_code=CLARIFY)
    if look.section is not None:
        return Result(data, Document((look.section + "\n").encode("utf-8")))
    rows = [
        (one["node_id"], "yes" if one["chosen"] else "", one["by"], one["score"], one.get("index"))
        for one in (look.plan or {}).get("candidates", ())
    ]
    return Result(data, Table(_PLAN_COLUMNS, rows))
