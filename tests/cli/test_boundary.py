"""Every outcome as output and exit code."""

import os
import tempfile
from pathlib import Path

import pytest

from panda.cli.boundary import run
from tests.api import LAPTOPS, Panda
from tests.cli.programs import make_program, run_words


def test_answer_alone_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """The answer goes to stdout with a line end, and nothing goes to stderr."""
    ended = run_words(make_program(), ["echo", "hello"], capsys)
    assert (ended.code, ended.out, ended.err) == (0, "hello\n", "")


def test_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints one object with exactly the documented members."""
    ended = run_words(make_program(), ["echo", "hi", "--json"], capsys)
    assert list(ended.value) == ["ok", "exit_code", "command", "data", "error"]
    assert (ended.value["ok"], ended.value["exit_code"], ended.value["error"]) == (True, 0, None)
    assert ended.value["data"]["text"] == "hi"


def test_options_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """--root, --user and --wait stand after the command and set the settings."""
    words = ["echo", "x", "--user", "ann", "--wait", "3", "--root", "r", "--session", "s", "--json"]
    data = run_words(make_program(), words, capsys).value["data"]
    assert (data["user"], data["wait"], data["session"], data["given"]) == ("ann", 3, "s", "s")


def test_words_of_an_inner_command(capsys: pytest.CaptureFixture[str]) -> None:
    """A command of two words is named by both."""
    value = run_words(make_program(), ["inner", "echo", "x", "--json"], capsys).value
    assert value["command"] == value["data"]["command"] == "inner echo"


def test_error_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """An error is one line each of error, where and fix on stderr, and control characters are written out."""
    ended = run_words(make_program(), ["fail", "halt"], capsys)
    assert (ended.code, ended.out) == (20, "")
    assert ended.err == "error: line one line \\x1b[2Jtwo\nwhere: x.md:3\nfix: do that\n"


def test_error_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json an error is in the object, with type, message, where and fix."""
    ended = run_words(make_program(), ["fail", "plain", "--json"], capsys)
    assert (ended.code, ended.err) == (1, "")
    assert ended.value["error"] == {"type": "Problem", "message": "unknown", "where": None, "fix": None}
    assert ended.value["data"] is None


def test_answer_and_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A result that carries an error prints both and ends with the error's code."""
    ended = run_words(make_program(), ["fail", "shown"], capsys)
    assert (ended.code, ended.out) == (20, "the answer\n")
    assert ended.err == "error: halted\nwhere: x.md:3\n"
    value = run_words(make_program(), ["fail", "shown", "--json"], capsys).value
    assert (value["ok"], value["data"], value["error"]["type"]) == (False, {"seen": 1}, "HaltError")


def test_exit_code_without_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A result may end with a code of its own and no error."""
    ended = run_words(make_program(), ["stop", "--json"], capsys)
    assert (ended.code, ended.value["ok"], ended.value["exit_code"]) == (21, False, 21)
    assert ended.value["error"] is None


def test_bug_leaves_a_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An unexpected exception ends with 1, names a report for its user alone, and tells no value."""
    ended = run_words(make_program(), ["fail", "bug"], capsys, {"XDG_CACHE_HOME": str(tmp_path)})
    (report,) = (tmp_path / "panda" / "reports").iterdir()
    assert ended.code == 1
    first, second, *_ = ended.err.splitlines()
    assert first.startswith("error: panda has a bug: ZeroDivisionError in programs.py:")
    assert second == f"where: {report}"
    assert "Traceback" not in ended.err
    text = report.read_text(encoding="utf-8")
    assert "ZeroDivisionError" in text
    assert "in _invoke" in text
    assert "oh" not in text.split()
    assert "'fail'" not in text
    assert report.stat().st_mode & 0o777 == 0o600
    assert report.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("way", ["file", "link"])
def test_a_report_has_a_directory_of_its_own(
    way: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the cache cannot be made, or leads elsewhere, a report lies in a new private directory."""
    cache, elsewhere, temporary = tmp_path / "cache", tmp_path / "elsewhere", tmp_path / "tmp"
    for folder in (cache, elsewhere, temporary):
        folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    if way == "file":
        (cache / "panda").write_text("no directory")
    else:
        (cache / "panda").mkdir()
        (cache / "panda" / "reports").symlink_to(elsewhere)
    ended = run_words(make_program(), ["fail", "bug"], capsys, {"XDG_CACHE_HOME": str(cache)})
    (report,) = temporary.glob("panda-reports-*/panda-bug-*.txt")
    assert ended.err.splitlines()[1] == f"where: {report}"
    assert report.stat().st_mode & 0o777 == 0o600
    assert report.parent.stat().st_mode & 0o777 == 0o700
    assert list(elsewhere.iterdir()) == []


def test_forget_reaches_reports(tmp_path: Path) -> None:
    """What an older report holds of a text goes with it, wherever the report lies."""
    panda = Panda(tmp_path / "project", store=LAPTOPS, user="ann", TMPDIR=str(tmp_path))
    folder = tmp_path / f"panda-reports-{os.getuid()}-old"
    folder.mkdir(mode=0o700)
    report = folder / "panda-bug-1.txt"
    report.write_text("arguments: ['turn', 'my locker code is 4711-blue']")
    ended = panda.process("forget", "--text", "4711-blue", "--yes")
    assert ended.code in (0, 2), ended.err
    assert not report.exists() or "4711-blue" not in report.read_text()


def test_system_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that the system refuses ends with 74 and names it."""
    ended = run_words(make_program(), ["fail", "file"], capsys)
    assert (ended.code, ended.err) == (74, "error: Permission denied\nwhere: /some/file\n")


@pytest.mark.parametrize(("how", "code"), [("interrupt", 130), ("terminate", 143)])
def test_signals(capsys: pytest.CaptureFixture[str], how: str, code: int) -> None:
    """Ctrl-C ends with 130 and SIGTERM with 143, as one JSON object if asked."""
    assert run_words(make_program(), ["fail", how], capsys).code == code
    assert run_words(make_program(), ["fail", how, "--json"], capsys).value["exit_code"] == code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "missing command"),
        (["inner"], "missing command"),
        (["ecko"], "no such command 'ecko'. Did you mean 'echo'?"),
        (["echo"], "missing argument 'TEXT'"),
        (["echo", "a", "b"], "unexpected argument: b"),
        (["echo", "a", "--tims", "2"], "no such option: --tims (Possible options: --times, --trust)"),
        (["echo", "a", "--times"], "option '--times' requires an argument"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    """Wrong usage ends with 2 and tells what is wrong, in the same form as every error."""
    ended = run_words(make_program(), words, capsys)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[0].lower() == f"error: {message}".lower()
    assert ended.err.splitlines()[2].startswith("fix: ")


@pytest.mark.parametrize(
    "words", [["echo"], ["nothing"], [], ["echo", "x", "--times", "0"], ["inner", "echo"]]
)
def test_wrong_usage_as_json(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """With --json wrong usage is one object on stdout, too."""
    ended = run_words(make_program(), [*words, "--json"], capsys)
    assert (ended.code, ended.err) == (2, "")
    assert (ended.value["ok"], ended.value["error"]["type"]) == (False, "UsageError")


def test_option_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """An option of every command that stands before the command is told where it belongs."""
    ended = run_words(make_program(), ["--user", "ann", "echo", "x"], capsys)
    assert (ended.code, ended.err.splitlines()[2]) == (
        2,
        "fix: put --user after the command: panda COMMAND --user",
    )


def test_double_dash(capsys: pytest.CaptureFixture[str]) -> None:
    """After -- everything is an argument, even --json."""
    assert run_words(make_program(), ["echo", "--", "--json"], capsys).out == "--json\n"


def test_wrong_setting(capsys: pytest.CaptureFixture[str]) -> None:
    """A setting that cannot be used ends with 2 and names where it was given."""
    ended = run_words(make_program(), ["echo", "x", "--json"], capsys, {"PANDA_USER": "A B"})
    assert (ended.code, ended.value["error"]["where"]) == (2, "PANDA_USER")


def test_json_keeps_strays_off_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """What a library prints during a command does not spoil the one JSON object."""
    ended = run_words(make_program(), ["work", "--json", "-q"], capsys)
    assert (ended.value["data"], ended.err) == ({"done": True}, "")


def test_reports_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """Steps, warnings and tables of work go to stderr; details only with -v, a bar only on a terminal."""
    assert run_words(make_program(), ["work"], capsys).err == "step\\x07\nwarning: careful\nhead\ncell\n"
    assert "detail\n" in run_words(make_program(), ["work", "-v"], capsys).err
    assert run_words(make_program(), ["work", "--quiet"], capsys).err == ""


def test_table_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """A piped table has one line a row, cells separated by tabs, control characters written out."""
    assert run_words(make_program(), ["table"], capsys).out == "n\ttext\n1\ta\\x1b[31m b\n20\t\n"


def test_markdown_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """A piped answer in Markdown is its text, control characters written out."""
    assert run_words(make_program(), ["answer"], capsys).out == "**697**\\x1b[2J\n"


def test_strays_are_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """What a library prints during a command is not taken for the answer."""
    assert run_words(make_program(), ["work", "-q"], capsys).out == ""


def test_help_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """--help with --json is one object, too."""
    value = run_words(make_program(), ["echo", "--help", "--json"], capsys).value
    assert value["ok"]
    assert "Usage: panda echo" in value["data"]["text"]


def test_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """A command's help has its docstring, its own options and those of every command."""
    text = run_words(make_program(), ["echo", "--help"], capsys).out
    assert all(
        word in text
        for word in ("Echo a text.", "Arguments:\n  text  ", "--times", "--root", "--json", "--wait")
    )


@pytest.mark.parametrize(
    ("words", "out"),
    [(["document"], b"# Title\r\n\\x1b[31m\\xff\n"), (["document", "--raw"], b"# Title\r\n\x1b[31m\xff\n")],
)
def test_document_in_a_pipe(words: list[str], out: bytes, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A piped document has its control characters written out, which is told; --raw gives the bytes."""
    assert run(make_program(), words, {"HOME": "/nowhere"}) == 0
    ended = capfdbinary.readouterr()
    assert ended.out == out
    assert (b"--raw gives the bytes" in ended.err) == (words == ["document"])
