"""A program of small commands, and ways to run one."""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import pytest
import typer
from typer.core import TyperGroup

from panda.cli.boundary import run
from panda.cli.command import Document, Invocation, Markdown, Raw, Result, Table
from panda.cli.main import Entry, LazyGroup, fill_group
from panda.errors import HaltError, Problem
from panda.store.files import Terminated
from tests.api import Ended as Ended


def run_words(
    program: TyperGroup,
    words: Sequence[str],
    capsys: pytest.CaptureFixture[str],
    environ: Mapping[str, str] | None = None,
) -> Ended:
    """Run one command line in this process."""
    code = run(program, words, {"HOME": "/nowhere", **(environ or {})})
    captured = capsys.readouterr()
    return Ended(code, captured.out, captured.err)


def make_program() -> TyperGroup:
    """A program with the commands of this module."""
    app = typer.Typer(cls=LazyGroup, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback()(_nothing)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    names = ("echo", "fail", "table", "document", "work", "stop", "answer")
    entries = tuple(Entry(name, f"{__name__}:{name}", f"Does {name}.") for name in names)
    fill_group(group, (*entries, Entry("inner echo", f"{__name__}:echo", "Echoes.")), {"inner": "Inner."})
    return group


def _nothing() -> None:
    pass


def echo(
    invocation: Invocation,
    text: str,
    session: str | None = None,
    times: Annotated[int, typer.Option(min=1)] = 1,
) -> Result:
    """Echo a text."""
    settings = invocation.settings
    data = {"text": text, "user": settings.user, "session": settings.session, "given": session}
    return Result({**data, "command": invocation.command, "wait": settings.wait_seconds}, text * times)


def fail(invocation: Invocation, how: str) -> Result:
    """Fail in the way asked for."""
    if how == "shown":
        return Result({"seen": 1}, "the answer", error=HaltError("halted", where="x.md:3"))
    failures: Mapping[str, BaseException] = {
        "halt": HaltError("line one\nline \x1b[2Jtwo", where="x.md:3", fix="do that"),
        "plain": Problem("unknown"),
        "bug": ZeroDivisionError("oh\x1b[2J"),
        "file": PermissionError(13, "Permission denied", "/some/file"),
        "interrupt": KeyboardInterrupt(),
        "terminate": Terminated(),
    }
    raise failures[how]


def table(invocation: Invocation) -> Result:
    """Show a table."""
    return Result({}, Table(("n", "text"), [(1, "a\x1b[31m\tb"), (20, None)]))


def document(invocation: Invocation, raw: Raw = False) -> Result:
    """Show a document."""
    return Result({}, Document(b"# Title\r\n\x1b[31m\xff\n", raw=raw))


def work(invocation: Invocation) -> Result:
    """Report on work."""
    invocation.reporter.step("step\x07")
    invocation.reporter.detail("detail")
    invocation.reporter.warn("careful")
    invocation.reporter.table(("head",), [("cell",)])
    with invocation.reporter.progress("things", 2) as advance:
        advance()
    print("stray", file=sys.stdout)  # noqa: T201  # what a careless library might do
    return Result({"done": True})


def stop(invocation: Invocation) -> Result:
    """End with a code and no error."""
    return Result({"question": "which?"}, "which?", exit_code=21)


def answer(invocation: Invocation) -> Result:
    """Answer in Markdown."""
    return Result({}, Markdown("**697**\x1b[2J"))
