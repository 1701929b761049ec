"""Where every outcome of a command becomes output and an exit code (design §6)."""

import logging
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from panda.cli.command import (
    COMMON_FLAGS,
    Markdown,
    OutputDocument,
    OutputTable,
    Result,
    Stream,
    Surroundings,
    parameter_name,
)
from panda.cli.output_text import allows_color, one_line, render_error, render_json, render_rows
from panda.cli.shells import VARIABLE, answer_shell
from panda.documents.progress import shown_by, unseen
from panda.documents.safe_text import shorten, visible
from panda.errors import BugError, Problem, SignalError, StoreError, UsageError
from panda.settings import default_cache_dir
from panda.store.bug_reports import program_path, write_report
from panda.store.files import Terminated, end_writing, private_files

_VALUE_CHARS = 80
_EXAMPLE = re.compile(r"^Example: (.+)$", re.MULTILINE)


def run(program: TyperGroup, arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """The exit code of one command line that was run; everything has been printed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json = "--json" in options
    try:
        if instruction := environ.get(VARIABLE):
            offers, code = answer_shell(program, instruction)
            return _print(Result(None, exit_code=code), offers, as_json=False)
        with private_files():
            outcome, answer = _attempt(program, arguments, environ, as_json=as_json)
            return _print(outcome, answer, as_json=as_json)
    except Terminated:
        return 143
    except KeyboardInterrupt:
        return 130
    finally:
        logging.getLogger("panda").handlers.clear()  # a program that goes on is told nothing any more
        shown_by.set(unseen)
        end_writing()


def _attempt(
    program: TyperGroup, arguments: Sequence[str], environ: Mapping[str, str], *, as_json: bool
) -> tuple[Result, str | bytes]:
    """Run a command and return its result, with the text of it for stdout."""

    def render(outcome: Result) -> str | bytes:
        if as_json:
            if isinstance(outcome.body, Stream):
                raise UsageError(
                    "rows without end are no JSON object", where="--json", fix="leave --json out"
                )
            words = _command_words(
                program, arguments
            )  # by now with the commands of add-ons, if they were wanted
            code = outcome.code
            data = outcome.data
            error = outcome.error
            return render_json(exit_code=code, command=words, data=data, error=error)
        if isinstance(outcome.body, Stream):
            _print_stream(outcome.body)
            return ""
        return _answer(outcome.body, color=allows_color(environ))

    try:
        outcome = _invoke(program, arguments, environ)
        return outcome, render(outcome)
    except Exception as exc:  # the only one: the boundary
        outcome = _failure(exc, environ)
    except Terminated:
        outcome = Result(None, exit_code=143, error=SignalError("terminated"))
    except KeyboardInterrupt:
        outcome = Result(None, exit_code=130, error=SignalError("interrupted"))
    return outcome, render(outcome) if as_json else ""


def _invoke(program: TyperGroup, arguments: Sequence[str], environ: Mapping[str, str]) -> Result:
    """Run the command. What --help and the like print is the answer; stray prints of a command are not."""
    surroundings = Surroundings(environ=environ, cwd=Path.cwd())
    printed = StringIO()
    code = 0
    try:
        with (
            redirect_stdout(printed),
            program.make_context("panda", list(arguments), obj=surroundings) as context,
        ):
            value = program.invoke(context)
            assert isinstance(value, Result), f"a command returned {type(value).__name__}, not a Result"
            return value
    except typer.Exit as exc:  # --help, --version
        code = exc.exit_code
    except SystemExit as exc:  # --install-completion
        code = exc.code if isinstance(exc.code, int) else 0
    return Result({"text": printed.getvalue()}, printed.getvalue(), exit_code=code)


def _failure(exc: Exception, environ: Mapping[str, str]) -> Result:
    if isinstance(exc, Problem):
        error = exc
    elif isinstance(exc, TyperException):
        error = _usage_error(exc)
    elif isinstance(exc, OSError) and exc.filename is not None:
        error = StoreError(f"{exc.strerror or type(exc).__name__}", where=str(exc.filename))
    else:
        report = write_report(exc, default_cache_dir(environ))
        message = f"panda has a bug: {type(exc).__name__}{_last_place(exc)}"
        where = str(report) if report else None
        error = BugError(message, where=where, fix="send that file with a report of what you did")
    return Result(None, error=error)


def _last_place(exc: Exception) -> str:
    """Return where an exception was raised; its message may hold anything, and is left out."""
    frames = traceback.extract_tb(exc.__traceback__)
    return f" in {program_path(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def _usage_error(exc: TyperException) -> UsageError:
    context = getattr(exc, "ctx", None)
    command = context.command_path if context else "panda"
    fix = f"`{command} --help` shows what can be given"
    if (wrong := _wrong_value(exc)) is not None:
        return UsageError(wrong, where=parameter_name(getattr(exc, "param", None)), fix=fix)
    message = one_line(exc.format_message()).rstrip(".")
    message = message[:1].lower() + message[1:]
    example = _EXAMPLE.search(context.command.help or "") if context else None
    if message.startswith("missing") and example is not None:
        fix = f"as in {example[1]}; {fix}"
    option = getattr(exc, "option_name", "")
    if command == "panda" and option in COMMON_FLAGS:
        fix = f"put {option} after the command: panda COMMAND {option}"
    return UsageError(message, where=f"command line of `{command}`", fix=fix)


def _wrong_value(exc: TyperException) -> str | None:
    """Say in plain words which value cannot be used and why; None if that is not what is wrong."""
    errors = getattr(exc.__cause__, "errors", None)  # of pydantic, by which typer reads values
    if errors is None or getattr(exc, "param", None) is None:
        return None
    fault = errors()[0]
    limits = fault.get("ctx", {})
    reasons = {
        "int_parsing": "is not a whole number",
        "int_from_float": "is not a whole number",
        "float_parsing": "is not a number",
        "greater_than_equal": f"is less than {limits.get('ge')}",
        "less_than_equal": f"is more than {limits.get('le')}",
    }
    reason = reasons.get(fault["type"])
    return reason and f"{shorten(repr(fault['input']), _VALUE_CHARS)} {reason}"


def _command_words(program: TyperGroup, arguments: Sequence[str]) -> str | None:
    """The words of the command that a command line names, None if it names none."""
    group = program
    words = []
    for argument in arguments:
        command = group.commands.get(argument)
        if command is None:
            return None
        words.append(argument)
        if not isinstance(command, TyperGroup):
            return " ".join(words)
        group = command
    return None


def _print(outcome: Result, answer: str | bytes, *, as_json: bool) -> int:
    is_read = True
    try:
        if isinstance(answer, bytes):
            sys.stdout.buffer.write(answer)
        else:
            sys.stdout.write(answer)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        is_read = False
    except OSError as exc:
        _forget_stdout()
        is_read = False
        error = StoreError(exc.strerror or "cannot be written", where="standard output")
        outcome = Result(None, error=error)
        as_json = False
    if outcome.error and not as_json:
        _print_error(outcome.error)
    if is_read and outcome.after_output is not None:
        try:
            outcome.after_output()
        except Problem as exc:
            _print_error(exc)
            return exc.exit_code
    return outcome.code


def _print_error(error: Problem) -> None:
    with suppress(BrokenPipeError):
        sys.stderr.write(render_error(error))
        sys.stderr.flush()


def _print_stream(stream: Stream) -> None:
    """Print rows as they come. A reader that has gone is told nothing."""
    for row in stream.rows:
        try:
            sys.stdout.write(render_rows([row]))
            sys.stdout.flush()
        except BrokenPipeError:
            _forget_stdout()
            return
        except OSError as exc:
            _forget_stdout()
            raise StoreError(exc.strerror or "cannot be written", where="standard output") from exc


def _answer(body: str | Markdown | OutputDocument | OutputTable, *, color: bool) -> str | bytes:
    terminal = sys.stdout.isatty()
    if isinstance(body, OutputDocument) and (body.raw or not terminal):
        return body.piped
    if terminal and (isinstance(body, Markdown) or (isinstance(body, OutputDocument) and body.markdown)):
        from panda.cli.render import markdown_text

        return markdown_text(body.text, stream=sys.stdout, color=color)
    if isinstance(body, OutputTable) and terminal:
        from panda.cli.render import table_text

        return table_text(
            body.columns,
            body.rows,
            extra=body.extra,
            keeps_words=body.keeps_words,
            stream=sys.stdout,
            color=color,
        )
    if isinstance(body, OutputTable):
        return render_rows([body.columns, *body.rows] if body.rows else [])
    text = visible(body if isinstance(body, str) else body.text)
    return text + "\n" if text and not text.endswith("\n") else text


def _forget_stdout() -> None:
    """Send what is still in stdout's buffer nowhere: its reader has gone."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
