"""The real `panda` as a process: start-up, terminals, pipes and signals."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from panda.exchange.intake import import_turns
from panda.store.layout import Layout

PANDA = str(Path(sys.executable).with_name("panda"))
HEAVY = (
    "mcp",
    "starlette",
    "uvicorn",
    "rich",
    "llama_cpp",
    "numpy",
    "tiktoken",
    "jsonschema",
    "sqlite3",
    "yaml",
    "httpx",
    "llguidance",
)
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "TERM": "xterm", "COLUMNS": "100"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with one turn whose query tries to steer the terminal."""
    layout = Layout(tmp_path / "store")
    line = {"user": "ann", "turn": 7, "session": "s", "at": "2026-01-04T14:30:00Z", "response": "**no**"}
    query = "# Clear\x1b[2J the\tscreen\u202e"
    import_turns([json.dumps({**line, "query": query})], layout, lambda: datetime(2026, 1, 5, tzinfo=UTC))
    return layout.root


def panda(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PANDA, *words], input=stdin, capture_output=True, env=ENVIRON, check=False)


def panda_on_terminal(words: Sequence[str], environ: dict[str, str]) -> str:
    """What a terminal receives on stdout."""
    master, slave = pty.openpty()
    with subprocess.Popen([PANDA, *words], stdin=slave, stdout=slave, stderr=slave, env=environ) as process:
        os.close(slave)
        chunks = []
        try:
            while chunk := os.read(master, 65536):
                chunks.append(chunk)
        except OSError:  # Linux says so when the last writer has gone
            pass
        os.close(master)
        assert process.wait() == 0
    return b"".join(chunks).decode()


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["recipe", "--help"]])
def test_help_imports_little(words: list[str]) -> None:
    """Help and version import no heavy library, so they come at once."""
    code = f"import sys; sys.argv = ['panda', *{words!r}]\nfrom panda.cli.main import main\ntry: main()\n"
    code += f"except SystemExit: print('imported', *(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRON, check=True
    )
    assert done.stdout.splitlines()[-1] == "imported"


def test_help_names_every_command() -> None:
    """`panda --help` lists the commands with a line each."""
    text = panda("--help").stdout.decode()
    names = ("init", "turn", "list", "show", "import", "validate", "recipe", "models")
    assert all(f"\n  {name} " in text for name in names)


def test_unknown_command() -> None:
    """An unknown command ends the process with 2 and three lines."""
    done = panda("lst")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"error: no such command 'lst'. Did you mean 'list'?\n")


def test_bytes_that_are_no_text() -> None:
    """Arguments that are not UTF-8 are wrong usage, not a traceback."""
    done = subprocess.run([PANDA, b"\xff"], capture_output=True, env=ENVIRON, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_terminal_is_not_steered(root: Path) -> None:
    """On a terminal a turn is rendered, and control characters in it are written out."""
    shown = panda_on_terminal(["show", "7", "--root", str(root), "--user", "ann"], ENVIRON)
    assert "\x1b[2J" not in shown
    assert "Clear\\x1b[2J" in shown
    assert "\u202e" not in shown
    assert "**no**" not in shown
    assert "\x1b[" in shown


def test_no_color(root: Path) -> None:
    """With NO_COLOR a terminal receives no escape sequence at all."""
    words = ["show", "7", "--root", str(root), "--user", "ann"]
    shown = panda_on_terminal(words, {**ENVIRON, "NO_COLOR": "1"})
    assert "no" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("words", [["show", "7"], ["list"]])
def test_a_dumb_terminal_gets_no_escapes(root: Path, words: list[str]) -> None:
    """A terminal that calls itself dumb receives no escape sequence, bold heads included."""
    shown = panda_on_terminal([*words, "--root", str(root), "--user", "ann"], {**ENVIRON, "TERM": "dumb"})
    assert "\x1b" not in shown
    assert "Clear" in shown


def test_the_package_runs_as_a_module() -> None:
    """`python -m panda` is the same program."""
    done = subprocess.run(
        [sys.executable, "-m", "panda", "--version"], capture_output=True, env=ENVIRON, check=True
    )
    assert done.stdout == panda("--version").stdout


def test_table_on_terminal(root: Path) -> None:
    """On a terminal a table has a head."""
    shown = panda_on_terminal(["list", "--root", str(root), "--user", "ann"], {**ENVIRON, "NO_COLOR": "1"})
    assert shown.split()[:5] == ["turn", "time", "session", "status", "query"]


def test_piped_file_is_safe_or_exact(root: Path) -> None:
    """Piped, `show` gives the file with its control characters written out, and with --raw its bytes."""
    content = (root / "users/ann/turns/turn_000007/context.md").read_bytes()
    words = ["show", "7", "--root", str(root), "--user", "ann"]
    done = panda(*words)
    assert done.stdout == content.replace(b"\x1b", b"\\x1b").replace("\u202e".encode(), b"\\u202e") != content
    assert done.stderr.startswith(b"warning: control characters are written out here")
    assert panda(*words, "--raw").stdout == content
    answer = panda(*words, "--file", "response.md")
    assert (answer.stdout, answer.stderr) == (b"**no**", b"")


def test_a_bar_on_a_terminal(root: Path) -> None:
    """On a terminal long work shows how far it is, how fast, and how much time is left."""
    turn = {"user": "ann", "session": "s", "at": "2026-01-04T14:30:00Z", "response": "yes"}
    lines = [json.dumps({**turn, "turn": n, "query": f"Is it {n}?"}) for n in range(10, 310)]
    import_turns(lines, Layout(root), lambda: datetime(2026, 1, 5, tzinfo=UTC))
    shown = panda_on_terminal(["validate", "--root", str(root), "--user", "ann"], ENVIRON)
    assert re.search(
        r"checking .*━.*301/301.* (\d+\.\d/s )?.*0:00:00", shown
    )  # no rate of work that is short
    assert "judging" in shown
    dumb = panda_on_terminal(["validate", "--root", str(root), "--user", "ann"], {**ENVIRON, "TERM": "dumb"})
    assert dumb.startswith("no problems found\r\n")


def test_reader_that_has_gone(root: Path) -> None:
    """A pipe that nobody reads is no error."""
    process = subprocess.Popen(
        [PANDA, "list", "--root", str(root), "--user", "ann"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRON,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate()
    assert (process.returncode, errors) == (0, b"")


def test_full_disk(root: Path) -> None:
    """An answer that cannot be written ends with 74."""
    with Path("/dev/full").open("wb") as full:
        words = [PANDA, "list", "--root", str(root), "--user", "ann"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=ENVIRON, check=False)
    assert done.returncode == 74
    assert done.stderr.splitlines()[1] == b"where: standard output"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(root: Path, number: signal.Signals, code: int) -> None:
    """Ctrl-C ends the process with 130 and SIGTERM with 143, without a traceback."""
    words = [PANDA, "import", "-", "--root", str(root), "-v"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRON)
    assert process.stderr is not None
    assert process.stderr.readline() == b"reading stdin\n"
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == code
    assert errors == (b"error: interrupted\n" if code == 130 else b"error: terminated\n")


def test_help_to_a_full_disk() -> None:
    """Help that cannot be written ends with 74, too."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PANDA, "--help"], stdout=full, stderr=subprocess.PIPE, env=ENVIRON, check=False
        )
    assert (done.returncode, done.stderr.splitlines()[1]) == (74, b"where: standard output")


def test_closed_streams(root: Path) -> None:
    """A command runs even if the shell has closed all its streams."""
    command = f"exec '{PANDA}' list --root '{root}' --user ann <&- >&- 2>&-"
    assert subprocess.run(["/bin/sh", "-c", command], env=ENVIRON, check=False).returncode == 0


def test_pipe_is_utf8(root: Path) -> None:
    """A pipe gets UTF-8 whatever the locale says."""
    words = [PANDA, "list", "--root", str(root), "--user", "käthe", "--json"]
    environ = {**ENVIRON, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    done = subprocess.run(words, capture_output=True, env=environ, check=False)
    assert "'käthe'" in json.loads(done.stdout)["error"]["message"]


def test_completion() -> None:
    """A shell is offered the commands that begin with what was typed."""
    asked = {**ENVIRON, "_PANDA_COMPLETE": "complete_bash", "COMP_WORDS": "panda va", "COMP_CWORD": "1"}
    done = subprocess.run([PANDA], capture_output=True, text=True, env=asked, check=False)
    assert done.stdout.split() == ["validate"]
