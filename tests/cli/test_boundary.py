"""Every outcome of a command as output and exit code."""

import os
import sys
from pathlib import Path

import pytest

from tests.api import LAPTOPS, Panda

BROKEN = """\
import os

def broken(*arguments):
    raise ZeroDivisionError("oh\\x1b[2J")

os.listdir = os.scandir = broken
import runpy
runpy.run_module("panda", run_name="__main__")
"""
"""A program in which looking into a directory fails as nothing ever should."""
CARELESS = """\
import sqlite3

connect = sqlite3.connect

def printing(*arguments, **options):
    print("stray")
    return connect(*arguments, **options)

sqlite3.connect = printing
import runpy
runpy.run_module("panda", run_name="__main__")
"""
"""A program with a library that prints."""


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with the turns 1 and 2 of ann."""
    return Panda(tmp_path / "project", LAPTOPS, user="ann")


def test_json_object(panda: Panda) -> None:
    """--json prints one object with exactly the documented members; two words of a command are its name."""
    value = panda("memory", "list", "--json").value
    assert list(value) == ["ok", "exit_code", "command", "data", "error"]
    assert (value["ok"], value["exit_code"], value["command"]) == (True, 0, "memory list")
    assert (value["data"]["user"], value["error"]) == ("ann", None)


def test_options_of_every_command(panda: Panda) -> None:
    """--root, --user and --wait stand after the command and set the settings."""
    (panda.store / "users/bob").mkdir()
    words = ("config", "show", "--root", "store", "--user", "bob", "--wait", "3")
    settings = panda.json(*words)["settings"]
    values = [settings[name]["value"] for name in ("root", "user", "wait_seconds")]
    assert values == [str(panda.store), "bob", 3.0]


def test_error_as_lines_and_as_json(panda: Panda) -> None:
    """An error is one line each of error, where and fix on stderr; with --json it is in the object."""
    plain = panda("show", "9")
    assert (plain.code, plain.out) == (2, "")
    assert [line.partition(": ")[0] for line in plain.err.splitlines()] == ["error", "where", "fix"]
    ended = panda("show", "9", "--json")
    assert (ended.code, ended.err, ended.data) == (2, "", None)
    assert (ended.value["ok"], ended.value["exit_code"]) == (False, 2)
    assert list(ended.error) == ["type", "message", "where", "fix"]
    lines = [f"{name}: {ended.error[key]}" for name, key in (("error", "message"), ("where", "where"))]
    assert plain.err.splitlines()[:2] == lines


def test_answer_and_error(panda: Panda) -> None:
    """A result that carries an error prints both and ends with the error's code."""
    panda.turn_file(1, "metadata.json").write_text("{", encoding="utf-8")
    ended = panda("validate", str(panda.store))
    assert (ended.code, ended.out != "", ended.err.startswith("error: problems: ")) == (3, True, True)
    value = panda("validate", str(panda.store), "--json").value
    assert (value["ok"], value["data"]["problems"] != [], value["error"] is None) == (False, True, False)


def run_broken(panda: Panda, cache: Path, **environ: str) -> list[str]:
    """The lines on stderr of a command with a bug."""
    panda.program = (sys.executable, "-c", BROKEN)
    ended = panda.process("list", "--user", "ann", XDG_CACHE_HOME=str(cache), **environ)
    assert ended.code == 1
    return ended.err.splitlines()


def test_bug_leaves_a_report(panda: Panda, tmp_path: Path) -> None:
    """An unexpected exception ends with 1, names a report for its user alone, and tells no value."""
    error, where, *others = run_broken(panda, tmp_path)
    (report,) = (tmp_path / "panda" / "reports").iterdir()
    assert error.startswith("error: panda has a bug: ZeroDivisionError in ")
    assert where == f"where: {report}"
    assert "Traceback" not in "".join(others)
    text = report.read_text(encoding="utf-8")
    assert "ZeroDivisionError" in text
    assert "oh" not in text.split()
    assert "'ann'" not in text
    assert report.stat().st_mode & 0o777 == 0o600
    assert report.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("way", ["file", "link"])
def test_a_report_has_a_directory_of_its_own(way: str, panda: Panda, tmp_path: Path) -> None:
    """If the cache cannot be made, or leads elsewhere, a report lies in a new private directory."""
    cache, elsewhere, temporary = (tmp_path / name for name in ("cache", "elsewhere", "tmp"))
    for folder in (cache, elsewhere, temporary):
        folder.mkdir()
    if way == "file":
        (cache / "panda").write_text("no directory")
    else:
        (cache / "panda").mkdir()
        (cache / "panda" / "reports").symlink_to(elsewhere)
    lines = run_broken(panda, cache, TMPDIR=str(temporary))
    (report,) = temporary.glob("panda-reports-*/panda-bug-*.txt")
    assert lines[1] == f"where: {report}"
    assert report.stat().st_mode & 0o777 == 0o600
    assert report.parent.stat().st_mode & 0o777 == 0o700
    assert list(elsewhere.iterdir()) == []


def test_forget_reaches_reports(panda: Panda, tmp_path: Path) -> None:
    """Forgetting a text takes it out of older reports too, wherever they lie."""
    folder = tmp_path / f"panda-reports-{os.getuid()}-old"
    folder.mkdir(mode=0o700)
    report = folder / "panda-bug-1.txt"
    report.write_text("arguments: ['turn', 'my locker code is 4711-blue']")
    ended = panda.process("forget", "--text", "4711-blue", "--yes", TMPDIR=str(tmp_path))
    assert ended.code in (0, 2), ended.err
    assert not report.exists() or "4711-blue" not in report.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "missing command"),
        (["memory"], "missing command"),
        (["lst"], "no such command 'lst'. Did you mean 'list'?"),
        (["show"], "missing argument 'TURN'"),
        (["list", "--limt", "2"], "no such option: --limt (Possible options: --limit, --quiet, --wait)"),
        (["list", "--limit"], "option '--limit' requires an argument"),
    ],
)
def test_wrong_usage(panda: Panda, words: list[str], message: str) -> None:
    """Wrong usage ends with 2 and tells what is wrong, in the same form as every error, also as JSON."""
    ended = panda(*words)
    assert (ended.code, ended.out) == (2, "")
    error, _, fix = ended.err.splitlines()
    assert error.lower() == f"error: {message}".lower()
    assert fix.startswith("fix: ")
    as_json = panda(*words, "--json")
    assert (as_json.code, as_json.error["type"]) == (2, "UsageError")


def test_option_before_the_command(panda: Panda) -> None:
    """An option of every command that stands before the command is told where it belongs."""
    ended = panda("--user", "ann", "list")
    fix = "fix: put --user after the command: panda COMMAND --user"
    assert (ended.code, ended.err.splitlines()[2]) == (2, fix)


def test_double_dash(panda: Panda) -> None:
    """After -- everything is an argument, even --json."""
    ended = panda("memory", "set", "flag", "--", "--json")
    assert (ended.code, panda("memory", "get", "flag").out) == (0, "--json\n")


def test_wrong_setting(panda: Panda) -> None:
    """A setting that cannot be used ends with 2 and names where it was given."""
    ended = panda("list", "--json", PANDA_USER="A B")
    assert (ended.code, ended.error["where"]) == (2, "PANDA_USER")


def test_what_a_library_prints_is_no_answer(panda: Panda) -> None:
    """Prints of a careless library spoil neither the one JSON object nor a table."""
    panda.program = (sys.executable, "-c", CARELESS)
    ended = panda.process("index", "search", "laptop", "--json", "-q")
    assert (ended.value["ok"], ended.err) == (True, "")
    assert "stray" not in panda.process("index", "search", "laptop").out


def test_reports_on_stderr(panda: Panda) -> None:
    """A command reports on stderr what it does; details only with -v, and nothing with -q."""
    panda.write_lines("lines.jsonl", {})
    assert "reading" not in panda("import", "lines.jsonl").err
    assert "reading lines.jsonl\n" in panda("import", "lines.jsonl", "-v").err
    assert panda("init").err != ""
    assert panda("init", "-q").err == ""


def test_help(panda: Panda) -> None:
    """A command's help has its docstring, its own options and those of every command; also as JSON."""
    text = panda("show", "--help").out
    for part in ("Usage: panda show", "Arguments:\n  TURN  ", "--section", "--root", "--json", "--wait"):
        assert part in text
    value = panda("show", "--help", "--json").value
    assert (value["ok"], value["data"]["text"]) == (True, text)
