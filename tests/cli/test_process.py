"""The real `panda` as a process: start-up, terminals, pipes and signals."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api import Panda, on_terminal
from tests.store_files import import_line

HEAVY = (
    *("mcp", "starlette", "uvicorn", "rich", "llama_cpp", "numpy", "tiktoken", "jsonschema", "sqlite3"),
    *("yaml", "httpx", "llguidance"),
)
QUERY = "# Clear\x1b[2J the\tscreen\u202e"


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """The installed program, and a store with one turn whose query tries to steer the terminal."""
    panda = Panda(tmp_path / "project", user="ann")
    panda.user_directory.mkdir(parents=True)
    panda.write_lines("line.jsonl", import_line(user="ann", turn=7, query=QUERY, response="**no**"))
    assert panda("import", "line.jsonl").code == 0
    panda.program = (str(Path(sys.executable).with_name("panda")),)
    return panda


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["recipe", "--help"]])
def test_help_imports_little(words: list[str], panda: Panda) -> None:
    """Help and version import no heavy library, so they come at once."""
    code = "import sys\nfrom panda.cli.main import main\ntry: main()\n"
    code += f"except SystemExit: print('imported', *(set({HEAVY!r}) & set(sys.modules)))"
    panda.program = (sys.executable, "-c", code)
    assert panda.process(*words).out.splitlines()[-1] == "imported"


def test_help_names_every_command(panda: Panda) -> None:
    """`panda --help` lists the commands with a line each."""
    text = panda.process("--help").out
    names = ("init", "turn", "list", "show", "import", "validate", "recipe", "models")
    assert all(f"\n  {name} " in text for name in names)


def test_the_package_runs_as_a_module(panda: Panda) -> None:
    """`python -m panda` is the same program."""
    version = panda.process("--version").out
    panda.program = (sys.executable, "-m", "panda")
    assert panda.process("--version").out == version != ""


def test_bytes_that_are_no_text(panda: Panda) -> None:
    """Arguments that are not UTF-8 are wrong usage, not a traceback."""
    ended = panda.process("\udcff")
    assert (ended.code, "Traceback" in ended.err) == (2, False)


def test_terminal_is_not_steered(panda: Panda) -> None:
    """On a terminal a turn is rendered, and control characters in it are written out."""
    screen = on_terminal(panda, "show", "7", color=True)
    assert "\x1b[2J" not in screen
    assert "Clear\\x1b[2J" in screen
    assert "\u202e" not in screen
    assert "**no**" not in screen
    assert "\x1b[" in screen


@pytest.mark.parametrize("words", [["show", "7"], ["list"]])
@pytest.mark.parametrize("kind", ["NO_COLOR", "dumb"])
def test_some_terminals_get_no_escapes(kind: str, words: list[str], panda: Panda) -> None:
    """With NO_COLOR, or one that calls itself dumb, a terminal receives no escape sequence at all."""
    if kind == "dumb":
        panda.program = ("env", "TERM=dumb", "NO_COLOR=", *panda.program)
    screen = on_terminal(panda, *words)
    assert "\x1b" not in screen
    assert "Clear" in screen
    if words == ["list"]:
        assert screen.split()[:5] == ["turn", "time", "session", "outcome", "query"]


def test_piped_file_is_safe_or_exact(panda: Panda) -> None:
    """Piped, `show` gives the file with its control characters written out, and with --raw its bytes."""
    content = panda.turn_file(7, "context.md").read_text(encoding="utf-8")
    ended = panda.process("show", "7")
    assert ended.out == content.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e") != content
    assert ended.err.startswith("warning: control characters are written out here")
    assert panda.process("show", "7", "--raw").out == content
    answer = panda.process("show", "7", "--file", "response.md")
    assert (answer.out, answer.err) == ("**no**", "")
    assert panda.process("list").rows[0].endswith("# Clear\\x1b[2J the screen\\u202e")


def test_a_bar_on_a_terminal(panda: Panda) -> None:
    """On a terminal long work shows how far it is, how fast, and how much time is left."""
    lines = (import_line(user="ann", session="s", turn=n, query=f"Is it {n}?") for n in range(10, 310))
    panda.write_lines("lines.jsonl", *lines)
    screen = on_terminal(panda, "import", "lines.jsonl", color=True)
    parts = [screen.find(part) for part in ("importing", "indexing", "sessions", "vectors")]
    assert parts == sorted(parts), screen
    assert -1 not in parts
    screen = on_terminal(panda, "validate", width=100, color=True)
    assert re.search(r"checking .*━.*301/301.* (\d+\.\d/s )?.*0:00:00", screen)  # no rate of short work
    assert "judging" in screen
    panda.program = ("env", "TERM=dumb", *panda.program)
    assert on_terminal(panda, "validate").startswith("no problems found\n")


def test_reader_that_has_gone(panda: Panda) -> None:
    """A pipe that nobody reads is no error."""
    with panda.start("list") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize("words", ["list", "--help"])
def test_full_disk(words: str, panda: Panda) -> None:
    """An answer, and a help, that cannot be written ends with 74."""
    panda.program = ("/bin/sh", "-c", f"exec {panda.program[0]} {words} > /dev/full")
    ended = panda.process()
    assert (ended.code, ended.err.splitlines()[1]) == (74, "where: standard output")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(panda: Panda, number: signal.Signals, code: int) -> None:
    """Ctrl-C ends the process with 130 and SIGTERM with 143, without a traceback."""
    with panda.start("import", "-", "-v") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "reading stdin\n"
        process.send_signal(number)
        _, errors = process.communicate()
    assert process.returncode == code
    assert errors == ("error: interrupted\n" if code == 130 else "error: terminated\n")


def test_closed_streams(panda: Panda) -> None:
    """A command runs even if the shell has closed all its streams."""
    command = f"exec '{panda.program[0]}' list <&- >&- 2>&-"
    ended = subprocess.run(["/bin/sh", "-c", command], cwd=panda.home, env=panda.environ, check=False)
    assert ended.returncode == 0


def test_pipe_is_utf8(panda: Panda) -> None:
    """A pipe gets UTF-8 whatever the locale says."""
    ended = panda.process("list", "--user", "käthe", "--json", PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    assert "'käthe'" in json.loads(ended.out)["error"]["message"]
