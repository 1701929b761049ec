"""`panda turn`, `gather`, `list` and `show`."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from panda.cli.command import Document, Invocation, Markdown, Result, Table, argument, excludes, flag, option
from panda.cli.completion import (
    complete_sessions,
    complete_turns,
    complete_unfinished_turns,
    complete_ungathered_turns,
)
from panda.cli.text import clipped, read_argument, time_text
from panda.documents.context import SECTIONS
from panda.errors import FileFormatError, HaltError, NotApprovedError, PandaError, UsageError
from panda.storage.layout import CONTEXT_MD, IMAGE_JSON, METRICS_JSON, RESPONSE_MD, STAGED_MEMORY_JSON
from panda.storage.turns import (
    TurnFolder,
    TurnRow,
    list_rows,
    load_picture,
    read_section,
    read_turn_file,
)

if TYPE_CHECKING:
    from panda.actions.turn import Look, Until
    from panda.app import App
    from panda.phases.contract import Phase
    from panda.phases.turn import Turn

CLARIFY = 21
_MODES = ("chat", "code")
_RESUMED = "leave it out: a turn that goes on has its own"
_PLAN_COLUMNS = ("node", "chosen", "by", "score", "index")
_QUERY_CHARS = 60


@excludes("resume", "query", "session", "mode", "seed", "image", "dry_run", fix=_RESUMED)
def turn(
    invocation: Invocation,
    query: Annotated[str | None, argument("The query; - reads it from standard input.", "QUERY|-")] = None,
    session: Annotated[str | None, option("Session of the turn.", "ID", complete=complete_sessions)] = None,
    mode: Annotated[str, option("chat, or code to work on the project.", "MODE")] = "chat",
    seed: Annotated[int | None, option("Seed of every model call.", "N")] = None,
    resume: Annotated[
        int | None,
        option("Go on with a turn that stopped.", "TURN", complete=complete_unfinished_turns, min=1),
    ] = None,
    image: Annotated[
        Path | None, option("An image that the layer EYES describes: PNG or JPEG.", "FILE")
    ] = None,
    dry_run: Annotated[
        bool, flag("Only tell what would be done; in code mode, show the diff.", "--dry-run")
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
    with app.hold_session(invocation.settings.session, invocation.reporter.waiting):
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


def _resume(invocation: Invocation, app: "App", number: int) -> Result:
    session = app.store.open(number).read_metadata().session_id
    with app.hold_session(session, invocation.reporter.waiting):
        return run_turn(invocation, app, app.resume_turn(number))


def _show_plan(app: "App", query: str, mode: str, *, with_image: bool) -> Result:
    from panda.actions.turn import PLAN_COLUMNS, plan_turn

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


@excludes("turn", "query", "session", "mode", "seed", fix="leave it out: a turn that is there has its own")
@excludes("plan", "draft", fix="--plan stops before the draft: leave one of the two out")
def gather(
    invocation: Invocation,
    turn: Annotated[
        int | None,
        argument(
            "A turn whose context is not gathered yet.", "TURN", complete=complete_ungathered_turns, min=1
        ),
    ] = None,
    query: Annotated[str | None, option("Begin a new turn with this query; - reads it.", "TEXT|-")] = None,
    plan: Annotated[bool, flag("Print the retrieval plan and stop.", "--plan")] = False,
    draft: Annotated[bool, flag("Print §2 without committing it.", "--draft")] = False,
    session: Annotated[str | None, option("Session of a new turn.", "ID", complete=complete_sessions)] = None,
    mode: Annotated[str, option("chat or code, for a new turn.", "MODE")] = "chat",
    seed: Annotated[int | None, option("Seed of every model call.", "N")] = None,
) -> Result:
    """
    Gather the context of a turn and stop; `panda turn --resume TURN` goes on.

    Example: panda gather --query "what were the specs on that Lenovo?" --user demo
    """
    from panda.actions.turn import check_gatherable
    from panda.app import build

    _check_turn_or_query(turn, query)
    store = invocation.store_for_writing()
    app = build(invocation.settings, store, invocation.environ, invocation.layers)
    until: Until = "plan" if plan else "draft" if draft else "commit"
    if turn is None:
        text = read_query(query or "", invocation.stdin)
        with app.hold_session(invocation.settings.session, invocation.reporter.waiting):
            return _run_gathering(invocation, app, app.start_turn(text, mode), until)
    check_gatherable(app, turn)
    with app.hold_session(app.store.open(turn).read_metadata().session_id, invocation.reporter.waiting):
        check_gatherable(app, turn)
        return _run_gathering(invocation, app, app.resume_turn(turn), until)


def _check_turn_or_query(turn: int | None, query: str | None) -> None:
    if turn is None and query is None:
        fix = 'as in panda gather --query "What …?"'
        raise UsageError("give a TURN or --query, one of the two", where="TURN", fix=fix)


def _run_gathering(invocation: Invocation, app: "App", running: "Turn", until: "Until") -> Result:
    from panda.actions.turn import gather as gather_turn

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
    return _gathered_result(_gathered_data(running, look, seconds), look, error)


def _gathered_data(running: "Turn", look: "Look | None", seconds: float) -> dict[str, Any]:
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


def _gathered_result(data: dict[str, Any], look: "Look | None", error: PandaError | None) -> Result:
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


def list_turns(
    invocation: Invocation,
    session: Annotated[str | None, option("Only this session.", "ID", complete=complete_sessions)] = None,
    limit: Annotated[int, option("The newest so many; 0 for all.", min=0)] = 20,
) -> Result:
    """
    List the saved turns of a user, newest last.

    Example: panda list --session default --limit 5
    """
    settings = invocation.settings
    store = invocation.turns()
    rows = list_rows(store, session=session, limit=limit + 1 if limit else None)
    more, rows = (True, rows[-limit:]) if limit and len(rows) > limit else (False, rows)
    if more:
        invocation.reporter.step(f"the newest {limit}, and at least 1 more: --limit 0 shows all")
    for row in rows:
        if row.problem:
            invocation.reporter.warn(f"turn {row.number}: {row.problem.message}")
    if not rows:
        invocation.reporter.step(f"user {settings.user} has no turns in {settings.root}")
    table = Table(
        ("turn", "time", "session", "status", "query"),
        [
            (r.number, time_text(r.at), r.session, r.status, clipped(r.query or "", _QUERY_CHARS))
            for r in rows
        ],
    )
    return Result({"user": settings.user, "turns": [_row_data(row) for row in rows], "more": more}, table)


def show(
    invocation: Invocation,
    turn: Annotated[int, argument("Number of the turn.", "TURN", complete=complete_turns, min=1)],
    section: Annotated[
        int | None, option("Only this section of context.md.", "N", min=0, max=len(SECTIONS) - 1)
    ] = None,
    file: Annotated[str, option("Another file of the turn, e.g. response.md.", "NAME")] = CONTEXT_MD,
) -> Result:
    """
    Show a turn: rendered on a terminal, exactly as it is on disk when piped.

    Example: panda show 813 --section 2 --user demo
    """
    if section is not None and file != CONTEXT_MD:
        raise UsageError("--section goes with context.md only", where=f"--file {file}", fix="leave one out")
    folder = invocation.turns().open(turn)
    if section is None:
        content = read_turn_file(folder, file)
    else:
        content = read_section(folder, section).encode("utf-8")
    document = Document(content, markdown=file.endswith(".md"))
    return Result({"turn": turn, "section": section, "file": file, "text": document.text}, document)


def _row_data(row: TurnRow) -> dict[str, object]:
    return {
        "turn": row.number,
        "time": time_text(row.at),
        "session": row.session,
        "status": row.status,
        "query": row.query,
        "problem": row.problem.message if row.problem else None,
    }
