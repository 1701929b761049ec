"""`panda list` and `panda show`."""

from typing import Annotated

import typer

from panda.cli.completion import complete_sessions, complete_turns
from panda.cli.contract import Document, Invocation, Result, Table
from panda.cli.plain_text import clipped
from panda.documents.sections import SECTIONS
from panda.documents.times import render_time
from panda.errors import UsageError
from panda.storage.layout import CONTEXT_MD
from panda.storage.turn_excerpts import read_section, read_turn_file
from panda.storage.turn_rows import TurnRow, list_rows
from panda.storage.turns import TurnStore

_QUERY_CHARS = 60


def list_turns(
    invocation: Invocation,
    session: Annotated[
        str | None, typer.Option(help="Only this session.", metavar="ID", autocompletion=complete_sessions)
    ] = None,
    limit: Annotated[int, typer.Option(help="The newest so many; 0 for all.", min=0)] = 20,
) -> Result:
    """
    List the saved turns of a user, newest last.

    Example: panda list --session default --limit 5
    """
    settings = invocation.settings
    store = TurnStore(invocation.store(), settings.user, settings.clock)
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
        [(r.number, _time(r), r.session, r.status, clipped(r.query or "", _QUERY_CHARS)) for r in rows],
    )
    return Result({"user": settings.user, "turns": [_data(row) for row in rows], "more": more}, table)


def show(
    invocation: Invocation,
    turn: Annotated[
        int,
        typer.Argument(help="Number of the turn.", min=1, metavar="TURN", autocompletion=complete_turns),
    ],
    section: Annotated[
        int | None,
        typer.Option(help="Only this section of context.md.", min=0, max=len(SECTIONS) - 1, metavar="N"),
    ] = None,
    file: Annotated[
        str, typer.Option(help="Another file of the turn, e.g. response.md.", metavar="NAME")
    ] = CONTEXT_MD,
) -> Result:
    """
    Show a turn: rendered on a terminal, exactly as it is on disk when piped.

    Example: panda show 813 --section 2 --user demo
    """
    settings = invocation.settings
    if section is not None and file != CONTEXT_MD:
        raise UsageError("--section goes with context.md only", where=f"--file {file}", fix="leave one out")
    folder = TurnStore(invocation.store(), settings.user, settings.clock).open(turn)
    if section is None:
        content = read_turn_file(folder, file)
    else:
        content = read_section(folder, section).encode("utf-8")
    document = Document(content, markdown=file.endswith(".md"))
    return Result({"turn": turn, "section": section, "file": file, "text": document.text}, document)


def _time(row: TurnRow) -> str | None:
    return render_time(row.at) if row.at else None


def _data(row: TurnRow) -> dict[str, object]:
    return {
        "turn": row.number,
        "time": _time(row),
        "session": row.session,
        "status": row.status,
        "query": row.query,
        "problem": row.problem.message if row.problem else None,
    }
