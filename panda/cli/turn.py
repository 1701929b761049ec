"""`panda turn`, `gather`, `list` and `show`."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from panda.addon_registry import mode_names
from panda.cli.command import (
    ALLOW,
    SEED_DEFAULT,
    SESSION_DEFAULT,
    Continue,
    Invocation,
    Markdown,
    NewUser,
    OutputDocument,
    OutputTable,
    Raw,
    Result,
    argument,
    excludes,
    flag,
    option,
)
from panda.cli.completion import (
    complete_models,
    complete_sessions,
    complete_turns,
    complete_unfinished_turns,
    complete_ungathered_turns,
)
from panda.cli.output_text import clipped, read_argument
from panda.cli.standard_input import read_piped
from panda.documents.record_codec import encode
from panda.documents.safe_text import nearest
from panda.documents.times import time_text
from panda.errors import CheckError, NotApprovedError, NotFoundError, UsageError
from panda.store.layout import CONTEXT_MD, RESPONSE_MD, UserStore
from panda.store.outcome import TurnOutcome, outcome_of
from panda.store.records import ASKED_BACK, Evidence
from panda.store.turns import (
    TurnFolder,
    TurnRow,
    find_turn,
    list_rows,
    load_picture,
    read_row,
    read_section,
    read_turn_file,
)

if TYPE_CHECKING:
    from panda.actions.turn_run import TurnResult, Until
    from panda.app import App
    from panda.store.turn_documents import DocumentText

With = Annotated[
    list[str] | None,
    option(
        "A document of this turn: a file, a page or standard input; may be repeated.",
        "FILE|URL|-",
        "--with",
        show_default="none",
    ),
]
NoStdin = Annotated[bool, flag("Leave standard input alone.", "--no-stdin")]
"""The options of commands that begin a turn with documents."""
_RESUMED = "leave it out: --resume uses the query, session and seed of that turn"
_HAS_DOCUMENTS = "leave it out: a turn that goes on has the documents that it was given"
_OWN = "leave it out: a turn that exists has its own"
_PLAN_COLUMNS = ("node", "chosen", "by", "score", "index")
_QUERY_CHARS = 60


@excludes("resume", ["query", "continue_", "session", "mode", "seed", "image", "dry_run"], fix=_RESUMED)
@excludes("chosen_models", ["resume", "resume_all", "discard"], fix=_RESUMED)
@excludes("resume", ["with_"], fix=_HAS_DOCUMENTS)
@excludes("resume_all", ["query", "continue_", "mode", "seed", "image", "with_", "dry_run"], fix=_RESUMED)
@excludes("resume_all", ["resume"])
@excludes(
    "discard", ["query", "resume", "resume_all", "session", "mode", "seed", "image", "with_", "dry_run"]
)
@excludes("require_answer", ["resume_all", "discard", "dry_run"])
@excludes("continue_", ["session", "discard"])
def turn(
    invocation: Invocation,
    query: Annotated[str | None, argument("The query; - reads it from standard input.", "QUERY|-")] = None,
    session: Annotated[
        str | None,
        option(
            f"Session of the turn.  {SESSION_DEFAULT}", "ID", complete=complete_sessions, show_default=False
        ),
    ] = None,
    continue_: Continue = False,
    new_user: NewUser = False,
    mode: Annotated[str, option("chat, or code to work on the project.", "MODE")] = "chat",
    seed: Annotated[
        int | None, option(f"Seed of every model call.  {SEED_DEFAULT}", "N", show_default=False)
    ] = None,
    resume: Annotated[
        str | None,
        option(
            "Go on with a turn that stopped; last is the newest that did.",
            "TURN",
            complete=complete_unfinished_turns,
            show_default="none",
        ),
    ] = None,
    resume_all: Annotated[
        bool, flag("Go on with all that stopped, of --session if it is given.", "--resume-all")
    ] = False,
    discard: Annotated[
        int | None,
        option(
            "Remove a turn that stopped, for good.",
            "TURN",
            complete=complete_unfinished_turns,
            show_default="none",
            min=1,
        ),
    ] = None,
    image: Annotated[
        Path | None,
        option("An image that the layer EYES describes: PNG or JPEG.", "FILE", show_default="none"),
    ] = None,
    with_: With = None,
    no_stdin: NoStdin = False,
    web_allow: Annotated[str | None, ALLOW] = None,
    chosen_models: Annotated[
        list[str] | None,
        option(
            "The model of this turn, or of one of its layers; may be repeated.",
            "NAME|LAYER=NAME",
            "--model",
            "-m",
            complete=complete_models,
            show_default="those of models.yaml",
        ),
    ] = None,
    dry_run: Annotated[
        bool, flag("Only tell what would be done; in code mode, show the diff.", "--dry-run")
    ] = False,
    require_answer: Annotated[
        bool,
        flag("End with 3 if nothing surely answers, or an order is not carried out.", "--require-answer"),
    ] = False,
) -> Result:
    """
    Answer a query from the store. Without --session or -c it begins a session of its own.

    Example: panda turn -c "How much does the Lenovo LOQ 15 cost?" --user demo

    What standard input holds beside a query is a document of the turn, as what --with names:

    \b
    cat contract.md | panda turn "Summarise the risks"
    panda turn --with contract.pdf --with https://example.org/terms "When may I cancel?"
    while read -r q; do panda turn --no-stdin "$q"; done < questions.txt
    panda turn -m qwen3-4b --model VOICE=large "What did we decide?"
    panda turn --require-answer "When does the lease end?" || echo "ask a colleague"

    --resume-all ends with 3 if any turn did not end well, and with 75 if a model server was away each time.
    """
    from panda.actions.turn_run import ask

    _check_usage(query, resume or discard or resume_all, mode)
    if query is None:
        return _take_up(invocation, resume, session, discard, require_answer=require_answer)
    picture = load_picture(image) if image is not None else None
    only_plan = dry_run and mode == "chat"
    store = invocation.store() if only_plan else invocation.store_for_writing()
    app = _app(invocation, store, goes_on=continue_, models_by_layer=read_models(chosen_models or ()))
    tell = invocation.reporter.step
    text = read_query(query, invocation.stdin)
    documents = _read_documents(invocation, app, query, text, with_ or (), no_stdin=no_stdin)
    if only_plan:
        return _show_plan(app, text, mode, with_image=picture is not None)
    done = ask(app, text, mode, dry_run=dry_run, picture=picture, documents=documents)
    result = turn_result(done, tell, require_answer=require_answer)
    return _tell_how_to_answer(invocation, app, result)


def read_query(argument: str, stdin: BinaryIO) -> str:
    """The query as given; from standard input without the line break at its end."""
    text = read_argument(argument, stdin)
    return text.removesuffix("\n").removesuffix("\r") if argument == "-" else text


def _read_documents(
    invocation: Invocation,
    app: "App",
    argument: str,
    query: str,
    sources: Sequence[str],
    *,
    no_stdin: bool,
) -> "Sequence[DocumentText]":
    """
    Return what is handed over with a query: what --with names and standard input holds.

    Args:
        argument: The query as it was given; with "-" standard input holds it, and no document.
    """
    from panda.actions.handed_over import MAX_BYTES, gather_documents
    from panda.phases.running_turn import check_query
    from panda.tools.visits import client_of

    other = None
    if argument == "-":
        other = '"-" as the query'
    elif no_stdin:
        other = "--no-stdin"
    if "-" in sources and other is not None:
        raise UsageError(f"--with - does not go with {other}", where="--with", fix="leave one of them out")
    check_query(query)  # before something is waited for or fetched
    piped = None
    tell = invocation.reporter.step
    if other is None:
        piped = read_piped(invocation.stdin, tell, most_bytes=MAX_BYTES)
    return gather_documents(sources, piped, lambda: client_of(app.tools), tell=tell)


def _take_up(
    invocation: Invocation,
    word: str | None,
    session: str | None,
    discard: int | None,
    *,
    require_answer: bool,
) -> Result:
    """One turn that is there taken to its end or out of the store; without a number, all that stopped."""
    from panda.actions.turn_run import resume
    from panda.actions.unfinished_turns import find_unfinished

    store = invocation.store_for_writing()
    tell = invocation.reporter.step
    if discard is not None:
        return _discard(invocation, store, discard)
    app = _app(invocation, store)
    if word is None:
        return _resume_all(app, session, tell)
    done = resume(app, find_unfinished(app.store, word))
    asked = turn_result(done, tell, require_answer=require_answer)
    return _tell_how_to_answer(invocation, app, asked, is_new=False)


def read_models(words: Sequence[str]) -> dict[str, str]:
    """
    Return what --model says, by layer: a NAME serves all that read and write, and LAYER=NAME one layer.

    Raises:
        UsageError: A layer gets two models.
    """
    from panda.models.models_file import LAYERS, USUAL_LAYERS

    single: dict[str, str] = {}
    usual: list[str] = []
    for word in words:
        layer, equals, name = word.partition("=")
        if equals and layer.upper() in LAYERS:
            if single.setdefault(layer.upper(), name) != name:
                fix = "give each layer one"
                raise UsageError(f"{layer.upper()} gets two models", where="--model", fix=fix)
        elif equals and layer.isalpha():
            fix = nearest(layer.upper(), LAYERS)
            raise UsageError(f"there is no layer {layer!r:.40}", where="--model", fix=fix)
        else:
            usual.append(word)
    if len(set(usual)) > 1:
        message = f"{' and '.join(usual)} cannot both serve all layers"
        raise UsageError(message, where="--model", fix="say which layer one serves, as in --model VOICE=NAME")
    return {**dict.fromkeys(USUAL_LAYERS, *usual[:1]), **single} if usual else single


def _app(
    invocation: Invocation,
    store: UserStore,
    *,
    goes_on: bool = False,
    models_by_layer: Mapping[str, str] | None = None,
) -> "App":
    """The program on the store; with *goes_on* its session is the user's newest."""
    from panda.session.file import newest_session

    settings = replace(invocation.settings, models_by_layer=models_by_layer or {})
    if goes_on:
        newest = newest_session(store, where="--continue")
        settings = replace(settings, session=newest)
    return invocation.open_app(store, settings=settings)


def _tell_how_to_answer(invocation: Invocation, app: "App", asked: Result, *, is_new: bool = True) -> Result:
    """Return the result unchanged; where it is a question, tell the command that answers it."""
    if asked.code == ASKED_BACK and asked.data is not None:
        turn = app.store.open(int(str(asked.data["turn"]))).read_metadata()
        settings = invocation.settings
        session = "-c" if is_new else f"--session {turn.session_id}"
        options = {name: str(getattr(settings, name)) for name in ("root", "user")}
        words = [
            w
            for key, value in options.items()
            if settings.origin(key) == f"--{key}"
            for w in (f"--{key}", value)
        ]
        if turn.mode != "chat":
            words += ["--mode", turn.mode]
        for layer, name in (turn.models or {}).items():
            words += ["-m", f"{layer}={name}"]
        invocation.reporter.step(f'to answer: panda turn {session} "…" {shlex.join(words)}'.rstrip())
    return asked


def _discard(invocation: Invocation, store: UserStore, number: int) -> Result:
    from panda.actions.unfinished_turns import discard_turn

    done = discard_turn(store, number)
    invocation.reporter.step(f"turn {number} is taken out; it was {done.status}")
    return Result({"user": invocation.settings.user, **vars(done), "interventions": list(done.interventions)})


def _resume_all(app: "App", session: str | None, tell: Callable[[str], None]) -> Result:
    from panda.actions.unfinished_turns import error_of, resume_all

    done = resume_all(app, session)
    if not done:
        tell("no turn has stopped before its end")
    rows = [
        (
            resumed.turn,
            resumed.session,
            resumed.before,
            resumed.status,
            resumed.exit_code,
            resumed.error and resumed.error.message,
        )
        for resumed in done
    ]
    table = OutputTable(("turn", "session", "was", "status", "exit code", "what is wrong"), rows)
    data = {"user": app.settings.user, "turns": [resumed.to_json() for resumed in done]}
    return Result(data, table, error=error_of(done))


def _check_usage(query: str | None, taken_up: str | int | bool, mode: str) -> None:
    """Raises UsageError unless there is a query, or else what is done with a turn that is there."""
    if mode != "chat" and mode not in mode_names():
        fix = f"use {' or '.join(mode_names())}"
        raise UsageError(f"there is no mode {mode!r}", where="--mode", fix=fix)
    if (query is None) == (not taken_up):
        raise UsageError(
            "give a query, --resume TURN, --resume-all or --discard TURN, one of them",
            where="QUERY|-",
            fix='as in panda turn "What …?"',
        )


def _show_plan(app: "App", query: str, mode: str, *, with_image: bool) -> Result:
    from panda.actions.turn_run import plan_turn

    plan = plan_turn(app, query, mode, with_image=with_image)
    columns = [name for name in plan[0] if not name.endswith("_budget")] if plan else []
    rows = [[" ".join(map(str, v)) if isinstance(v := row[c], list) else v for c in columns] for row in plan]
    table = OutputTable(columns, rows, ("files", "window", "reads", "static", "input", "output"))
    return Result({"query": query, "mode": mode, "calls": plan}, table)


def turn_result(done: "TurnResult", tell: Callable[[str], None], *, require_answer: bool = False) -> Result:
    """
    Return what a turn ends with; of an answer that was not approved, its text, evidence and changes are told.

    Args:
        require_answer: Whether a turn that ended well without an answer ends with an error.
    """
    data = done.data or {}
    if done.error is not None or data["status"] == "clarify":
        return _halted_or_asked(done, tell)
    if data["status"] != "failed":
        from panda.actions.turn_run import render_closest

        parts = [data["response"], render_closest(data["closest"])]
        unanswered = _unanswered(data) if require_answer else None
        return Result(data, Markdown("\n\n".join(filter(None, parts))), error=unanswered)
    for text in data["refused"]:
        tell(f"refused: {text}")
    quotes = dict.fromkeys((source["node_id"], source["quote"]) for source in data["sources"])
    for node_id, quote in quotes:
        if quote is not None:
            tell(f"evidence: {quote} [{node_id}]")
    for change in data["changes"]:
        tell(f"{'would change' if change['dry_run'] else 'changed'}: {change['path']}")
        if change["dry_run"]:
            for line in change["diff"].splitlines():
                tell(line)
    reason = data["reason"] or "it does not answer the query"
    error = NotApprovedError(
        f"the answer of turn {data['turn']} was not approved: {reason}",
        where=f"{data['turn_dir']}/context.md (§6)",
        fix=f"ask more precisely, or see what its sources say: panda show {data['turn']} --why",
    )
    return Result(data, error=error)


def _unanswered(data: Mapping[str, Any]) -> CheckError | None:
    """Return the error of a turn that ended well without an answer; None for any other one."""
    number = data["turn"]
    texts = {
        TurnOutcome.UNSURE: (
            "nothing surely answers it",
            f"ask more precisely, or see what was read: panda show {number} --why",
        ),
        TurnOutcome.NOTHING: (
            "nothing that is saved is about it",
            "ask in other words, or add a note that answers it",
        ),
        TurnOutcome.NOT_DONE: ("it could not be done", f"see what was tried: panda show {number}"),
    }
    if data["outcome"] not in texts:
        return None
    message, fix = texts[data["outcome"]]
    where = f"{data['turn_dir']}/{RESPONSE_MD}"
    return CheckError(f"turn {number} has no answer: {message}", where=where, fix=fix)


def _halted_or_asked(done: "TurnResult", tell: Callable[[str], None]) -> Result:
    if done.error is not None or done.data is None:
        if done.data and done.data.get("intervention"):
            tell(f"halted: panda intervention show {done.data['intervention']} tells more")
        return Result(done.data, error=done.error)
    return Result(done.data, str(done.data["question"]), exit_code=ASKED_BACK)


@excludes("turn", ["query", "continue_", "session", "mode", "seed", "with_"], fix=_OWN)
@excludes("continue_", ["session"])
@excludes("plan", ["draft"], fix="--plan stops before the draft: leave one of the two out")
def gather(
    invocation: Invocation,
    turn: Annotated[
        int | None,
        argument(
            "A turn whose context is not gathered yet.", "TURN", complete=complete_ungathered_turns, min=1
        ),
    ] = None,
    query: Annotated[
        str | None,
        option(
            "Begin a new turn with this query; - reads it from standard input.", "TEXT|-", show_default="none"
        ),
    ] = None,
    plan: Annotated[bool, flag("Print the retrieval plan and stop.", "--plan")] = False,
    draft: Annotated[bool, flag("Print §2 without committing it.", "--draft")] = False,
    session: Annotated[
        str | None,
        option(
            f"Session of a new turn.  {SESSION_DEFAULT}", "ID", complete=complete_sessions, show_default=False
        ),
    ] = None,
    continue_: Continue = False,
    new_user: NewUser = False,
    mode: Annotated[str, option("chat or code, for a new turn.", "MODE")] = "chat",
    seed: Annotated[
        int | None, option(f"Seed of every model call.  {SEED_DEFAULT}", "N", show_default=False)
    ] = None,
    with_: With = None,
    no_stdin: NoStdin = False,
) -> Result:
    """
    Gather the context of a turn and stop; `panda turn --resume TURN` goes on.

    Example: panda gather --query "what were the specs on that Lenovo?" --user demo
    """
    from panda.actions.turn_run import gather_again, gather_query

    if turn is None and query is None:
        fix = 'as in panda gather --query "What …?"'
        raise UsageError("give a TURN or --query, one of the two", where="TURN", fix=fix)
    store = invocation.store_for_writing()
    app = _app(invocation, store, goes_on=continue_)
    until: Until = "commit"
    if plan:
        until = "plan"
    elif draft:
        until = "draft"
    if turn is not None:
        done = gather_again(app, turn, until)
    else:
        text = read_query(query or "", invocation.stdin)
        documents = _read_documents(invocation, app, query or "", text, with_ or (), no_stdin=no_stdin)
        done = gather_query(app, text, mode, until, documents=documents)
    result = _gathered_result(done, invocation.reporter.step)
    return _tell_how_to_answer(invocation, app, result, is_new=turn is None)


def _gathered_result(done: "TurnResult", tell: Callable[[str], None]) -> Result:
    data = done.data or {}
    if done.error is not None or data["status"] == "clarify":
        return _halted_or_asked(done, tell)
    if data["section"] is not None:
        return Result(data, Markdown(data["section"] + "\n"))
    rows = [
        (
            candidate["node_id"],
            "yes" if candidate["chosen"] else "",
            candidate["by"],
            candidate["score"],
            candidate.get("index"),
        )
        for candidate in (data["plan"] or {}).get("candidates", ())
    ]
    return Result(data, OutputTable(_PLAN_COLUMNS, rows))


def list_turns(
    invocation: Invocation,
    session: Annotated[
        str | None, option("Only this session.", "ID", complete=complete_sessions, show_default="all")
    ] = None,
    limit: Annotated[int, option("The newest so many; 0 for all.", "N", min=0)] = 20,
) -> Result:
    """
    List the saved turns of a user, newest last.

    Example: panda list --limit 5 --user demo
    """
    settings = invocation.settings
    store = invocation.store()
    rows = list_rows(store, session=session, limit=limit + 1 if limit else None)
    more, rows = (True, rows[-limit:]) if limit and len(rows) > limit else (False, rows)
    if more:
        invocation.reporter.step(f"the newest {limit}, and at least 1 more: --limit 0 shows all")
    for row in rows:
        if row.problem:
            invocation.reporter.warn(f"turn {row.number}: {row.problem.message}")
    if not rows:
        where = f" of session {session}" if session else ""
        invocation.reporter.step(f"user {settings.user} has no turns{where} in {settings.root}")
    table = OutputTable(
        ("turn", "time", "session", "outcome", "query"),
        [
            (r.number, time_text(r.at), r.session, r.ending, clipped(r.query or "", _QUERY_CHARS))
            for r in rows
        ],
    )
    return Result({"user": settings.user, "turns": [_row_data(row) for row in rows], "more": more}, table)


def show(
    invocation: Invocation,
    turn: Annotated[
        str, argument("Number of the turn, or last for the newest.", "TURN", complete=complete_turns)
    ],
    section: Annotated[
        int | None,
        option("Only this section of context.md.", "N", show_default="all"),
    ] = None,
    file: Annotated[str, option("Another file of the turn, e.g. response.md.", "NAME")] = CONTEXT_MD,
    raw: Raw = False,
    why: Annotated[
        bool, flag("The lines that the answer may rest on, and what brought each in or left it out.", "--why")
    ] = False,
) -> Result:
    """
    Show a turn: rendered on a terminal, as it is on disk when piped, with control characters written out.

    Example: panda show 813 --section 2 --user demo
    """
    if section is not None and file != CONTEXT_MD:
        raise UsageError("--section goes with context.md only", where=f"--file {file}", fix="leave one out")
    if why and (section is not None or file != CONTEXT_MD or raw):
        message = "--why prints evidence.json, and goes with none of --section, --file and --raw"
        raise UsageError(message, where="--why", fix="leave one out")
    folder = find_turn(invocation.store(), turn, where="TURN")
    if why:
        return _why(folder)
    if section is None:
        content = read_turn_file(folder, file)
    else:
        content = read_section(folder, section).encode("utf-8")
    document = OutputDocument(content, markdown=file.endswith(".md"), raw=raw)
    row = read_row(invocation.store(), folder.number)
    data = {
        "turn": folder.number,
        "outcome": row.outcome if row else None,
        "section": section,
        "file": file,
        "text": document.text,
    }
    return Result(data, document)


def _why(folder: TurnFolder) -> Result:
    record = folder.find(Evidence)
    if record is None:
        reason = "it did not reach phase 2, or an earlier version wrote it"
        message = f"turn {folder.number} has no {Evidence.FILE}: {reason}"
        fix = "see `panda show` for what it holds"
        raise NotFoundError(message, where=str(folder.paths.directory), fix=fix)
    metadata = folder.read_metadata()
    answer = "refused answer" if metadata.status == "failed" else "answer"
    closest = {(passage.node_id, text) for passage in record.closest for text in passage.text.split("\n")}
    closeness = {id_: near.closeness for near in reversed(record.passages) for id_ in near.lines}
    rows = []
    for line in record.offered or record.gathered:
        why = f"left out: {line.left_out}" if line.left_out else ", ".join(line.why)
        if (line.node, line.text) in closest:
            why = "shown as closest, no answer"
        if line.rests_on:
            why = f"{answer}, from {', '.join(line.rests_on)}"
        near = closeness.get(line.id, line.score)  # a line counts as its passage does
        rows.append((line.node, None if near is None else f"{near:.2f}", why, line.text))
    data = {"turn": folder.number, "outcome": outcome_of(metadata), **encode(record)}
    return Result(data, OutputTable(("node", "closeness", "why", "line"), rows))


def _row_data(row: TurnRow) -> dict[str, object]:
    return {
        "turn": row.number,
        "time": time_text(row.at),
        "session": row.session,
        "status": row.status,
        "outcome": row.outcome,
        "query": row.query,
        "problem": row.problem.message if row.problem else None,
    }
