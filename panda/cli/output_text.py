"""Text as it may reach a terminal or a pipe, and as it comes from one."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import BinaryIO

from panda.documents.safe_text import UNSAFE, escape_path, shorten, visible
from panda.errors import Problem, UsageError


def allows_color(environ: Mapping[str, str]) -> bool:
    """
    Return whether a terminal may be sent colours and bold type.

    >>> allows_color({}), allows_color({"NO_COLOR": "1"}), allows_color({"TERM": "dumb"})
    (True, False, False)
    """
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def one_line(text: str) -> str:
    r"""
    A text as one visible line.

    >>> one_line("choose from:\n\t a,  b")
    'choose from: a, b'
    """
    return " ".join(visible(text).split())


def clipped(text: str, width: int) -> str:
    """
    One line of at most *width* characters, with an ellipsis where something was cut.

    >>> clipped("what does it cost?", 10)
    'what does…'
    """
    return shorten(visible(text), width)


def render_error(error: Problem) -> str:
    """
    The lines that tell a user what went wrong.

    >>> render_error(Problem("no turn 7", fix="see `panda list`"))
    'error: no turn 7\\nfix: see `panda list`\\n'
    """
    parts = (("error", error.message), ("where", error.where), ("fix", error.fix))
    return "".join(f"{name}: {one_line(text)}\n" for name, text in parts if text)


def render_json(
    *, exit_code: int, command: str | None, data: Mapping[str, object] | None, error: Problem | None
) -> str:
    """The one object that `--json` prints (design §6); no command if none was recognised."""
    value = {
        "ok": exit_code == 0,
        "exit_code": exit_code,
        "command": command,
        "data": None if data is None else dict(data),
        "error": error and error.to_json(),
    }
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return UNSAFE.sub(_json_escape, text) + "\n"


def render_rows(rows: Sequence[Sequence[object]]) -> str:
    r"""
    Rows for a pipe: cells separated by tabs, one line a row.

    >>> render_rows([[811, None, "a\tb"]])
    '811\t\ta b\n'
    """
    return "".join("\t".join(one_line(cell_text(cell)) for cell in row) + "\n" for row in rows)


def quoted(text: str) -> str:
    """
    Return a text as one word of a command line.

    >>> print(quoted("who is the vet"), quoted("it costs $5"))
    "who is the vet" 'it costs $5'
    """
    return shlex.quote(text) if any(char in '"$`\\!' for char in text) else f'"{text}"'


def cell_text(cell: object) -> str:
    """
    A table cell as text.

    >>> cell_text(None), cell_text(1.5)
    ('', '1.5')
    """
    return "" if cell is None else str(cell)


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return escape_path(match[0]) if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def read_argument(argument: str, stdin: BinaryIO) -> str:
    r"""
    An argument that is a text, or `-` for all of stdin; UsageError if the bytes are not UTF-8.

    >>> from io import BytesIO
    >>> read_argument("-", BytesIO(b"what\n")), read_argument("why", BytesIO(b""))
    ('what\n', 'why')
    """
    if argument == "-":
        return _decoded(stdin.read(), "stdin")
    return _decoded(argument.encode("utf-8", errors="surrogateescape"), "command line")


def read_lines(stdin: BinaryIO) -> list[str]:
    r"""
    The lines of stdin, without their ends; UsageError if the bytes are not UTF-8.

    >>> from io import BytesIO
    >>> read_lines(BytesIO(b"a\nb\n"))
    ['a', 'b']
    """
    lines = _decoded(stdin.read(), "stdin").split("\n")
    return lines if lines[-1] else lines[:-1]


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        message = f"not UTF-8: byte {exc.start} is 0x{data[exc.start]:02x}"
        raise UsageError(message, where=where, fix="convert the text to UTF-8 first") from exc


MOST_PLACES = 10
"""How many places of one kind of finding are listed."""


def grouped_text(problems: Iterable[Problem], kind: str = "") -> str:
    """
    Return the problems of a check, each kind once: its message, the places where it occurs, and its fix.

    >>> print(grouped_text([Problem("no date", f"{name}.md", line=2) for name in "ab"]), end="")
    no date
      a.md:2
      b.md:2
    """
    places: dict[tuple[str, str | None], list[str]] = {}
    for problem in problems:
        places.setdefault((problem.message, problem.fix), []).append(one_line(problem.where or ""))
    lines = []
    for (message, fix), where in places.items():
        lines.append(f"{kind}{one_line(message)}")
        lines += [f"  {place}" for place in where[:MOST_PLACES]]
        if len(where) > MOST_PLACES:
            lines.append(f"  and {len(where) - MOST_PLACES} more; --json lists them all")
        if fix:
            lines.append(f"  fix: {one_line(fix)}")
    return "".join(f"{line}\n" for line in lines)


def problem_text(problem: Problem, kind: str = "") -> str:
    """A line for a problem, what *kind* it is in front, and its fix below it."""
    fix = f"  fix: {one_line(problem.fix)}\n" if problem.fix else ""
    return f"{one_line(problem.where or '')}: {kind}{one_line(problem.message)}\n{fix}"
