"""`panda import`."""

from pathlib import Path
from typing import Annotated

import typer

from panda.cli.contract import Invocation, Result
from panda.cli.input_text import read_lines
from panda.cli.meaning import fill_imported
from panda.session.session_file import write_imported
from panda.storage.importing import import_turns
from panda.storage.index_rebuild import index_imported


def import_file(
    invocation: Invocation,
    file: Annotated[str, typer.Argument(help="JSON lines; - for stdin.", metavar="FILE.jsonl")],
) -> Result:
    """
    Save turns from a file of JSON lines.

    A line is {"user", "turn"?, "session", "at", "query", "response", "summary"?, "topics"?}. Everything is
    checked first: a wrong line, or a number that another turn has, changes nothing. Turns that are there
    already stay as they are.

    Example: panda import turns.jsonl
    """
    layout = invocation.store_for_writing()
    invocation.reporter.detail(f"reading {'stdin' if file == '-' else file}")
    source = read_lines(invocation.stdin) if file == "-" else Path(file)
    report = import_turns(source, layout, invocation.settings.clock)
    invocation.reporter.step(f"{report.created} saved, {report.unchanged} there already")
    index_imported(layout, report)
    fill_imported(invocation, sorted({turn.user for turn in report.turns if turn.created}))
    write_imported(layout, {(turn.user, turn.session) for turn in report.turns if turn.created})
    turns = [{"user": turn.user, "turn": turn.turn, "created": turn.created} for turn in report.turns]
    return Result({"created": report.created, "unchanged": report.unchanged, "turns": turns})
