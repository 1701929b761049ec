"""What a user types wrong, told with what is wrong, where, and what to do."""

import subprocess
from pathlib import Path

import pytest

from panda.cli.main import build_program
from panda.tools.contract import ToolResult
from panda.tools.project import Project
from panda.tools.table import run_tool
from tests.cli.programs import Ended, run_words
from tests.code_mode import git
from tests.tools.test_limits import context_of


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A directory with a store in it."""
    monkeypatch.chdir(tmp_path)
    assert run_words(build_program(), ["init"], capsys).code == 0
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "words", "error", "where", "fix"),
    [
        (
            "q.jsonl",
            '{"id": "a", "query": "hi", "expct": {}}\n',
            "batch q.jsonl",
            "unknown key 'expct'",
            "q.jsonl:1 (expct)",
            "did you mean expect?",
        ),
        (
            "q.jsonl",
            '{"id": "a", "query": "hi", "expect": {"site": "x"}}\n',
            "batch q.jsonl",
            "unknown key 'site'",
            "q.jsonl:1 (expect.site)",
            "did you mean cites?",
        ),
        (
            "panda.toml",
            'user = "ann"\nseed == 3\n',
            "list",
            "not valid TOML: Invalid value",
            "panda.toml:2\n",
            'as in user = "ann"',
        ),
        ("panda.toml", 'user = "ann"\n# \udcff\n', "list", "not UTF-8", "panda.toml:2\n", "save it as UTF-8"),
        (
            "panda-system-docs/runs/r1-batch/run.json",
            '{"bad',
            "validate",
            "error: problems: 1",
            "",
            "mend them",
        ),
        (
            "models.yaml",
            'models:\n  a: {backend: "llama_cpp}\n',
            "models list",
            "a quote is never closed",
            "models.yaml:2\n",
            "line",
        ),
        (
            "panda-system-docs/users/default/preferences.md",
            '---\nbudget: 900\nname: "Ann\n---\n',
            "memory list",
            "a quote is never closed",
            "preferences.md:3\n",
            "mend that line",
        ),
        ("recipes/a/b.yaml", "name: [b\n", "recipe show a/b", "never closed", "b.yaml:1", "warning: "),
    ],
)
def test_wrong_files(
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    words: str,
    error: str,
    where: str,
    fix: str,
) -> None:
    """The error says what is wrong, in which line, and what to do."""
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    ended = run_words(build_program(), words.split(), capsys)
    told = ended.err
    assert error in told
    assert where in told
    assert fix in told


def test_a_broken_memory_file_halts(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A turn whose user's preferences.md does not read halts; line and fix are told, and it can go on."""
    user = directory / "panda-system-docs" / "users" / "default"
    (user / "preferences.md").write_text('---\nname: "Ann\n---\n')
    ended = run_words(build_program(), ["turn", "What is my name?"], capsys)
    assert (ended.code, f"where: {user / 'preferences.md'}:2\nfix: " in ended.err) == (20, True), ended.err
    assert (user / "turns" / "turn_000001" / "metadata.json").exists()


def test_notes_beside_the_knowledge_are_named(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A note in users/USER itself is not read: validate tells it as information, a turn as a warning."""
    note = directory / "panda-system-docs" / "users" / "default" / "bees.md"
    note.write_text("# Bees\n")
    ended = run_words(build_program(), ["validate"], capsys)
    fix = f"move it to {note.parent / 'knowledge'}"
    assert (ended.code, f"{note}: information: it is not read" in ended.out, fix in ended.out) == (
        0,
        True,
        True,
    )
    told = run_words(build_program(), ["turn", "hello"], capsys).err
    assert f"warning: {note}: it is not read: notes stand in knowledge/; {fix}" in told


def compress(capsys: pytest.CaptureFixture[str], budget: int) -> Ended:
    return run_words(build_program(), ["compress", "text.txt", "--budget", str(budget)], capsys)


@pytest.mark.parametrize(
    "text",
    [
        "The first one is long enough. The second as well, of course. So is it.\n",
        "".join(f"This is line number {n}\n" for n in range(1, 401)),
        "# Head\n\n" + "".join(f"| {n} | a long cell of the table |\n" for n in range(40)),
        '{"a": ' + str(["word"] * 200).replace("'", '"') + "}",
    ],
    ids=["sentences", "lines", "table", "json"],
)
def test_a_budget_for_nothing(directory: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    """A budget into which no part fits ends with 4 and says how large one must be; that one does."""
    (directory / "text.txt").write_text(text)
    ended = compress(capsys, 4)
    assert (ended.code, ended.out) == (4, "")
    least = int(ended.err.partition("a budget of at least ")[2].split()[0])
    assert least > 4
    assert compress(capsys, least).code == 0


def test_the_newest_turn_that_stopped_goes_on(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """turn --resume last takes the newest unfinished turn; without one, or by another word, it is told."""
    nothing = run_words(build_program(), ["turn", "--resume", "last"], capsys)
    assert (nothing.code, "no turn has stopped before its end" in nothing.err) == (2, True)
    for session in ("a", "b"):
        words = ["gather", "--query", "hello", "--session", session]
        assert run_words(build_program(), words, capsys).code == 0
    ended = run_words(build_program(), ["turn", "--resume", "last", "--json"], capsys)
    assert (ended.code, ended.value["data"]["turn"]) == (0, 2)
    ended = run_words(build_program(), ["turn", "--resume", "last", "--json"], capsys)
    assert (ended.code, ended.value["data"]["turn"]) == (0, 1)
    wrong = run_words(build_program(), ["turn", "--resume", "lst"], capsys)
    assert (wrong.code, "give its number, or last" in wrong.err) == (2, True)


def ask(root: Path, name: str, arguments: dict[str, object]) -> ToolResult:
    project = Project(root / "project", (root / "store",))
    return run_tool(name, arguments, context_of(root, project=project))


def test_a_repository_before_its_first_commit(tmp_path: Path) -> None:
    """git.diff shows what is staged for the first commit."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    git(project, "add", "a.txt")
    found = ask(tmp_path, "git.diff", {})
    assert (found.status, found.error) == ("success", None)
    assert "+one" in found.text
    assert [claim.text for claim in found.claims] == ["1 files are to be in the first commit"]


def test_lines_beyond_the_end_of_a_file(tmp_path: Path) -> None:
    """file.read of lines that are not there fails with how many there are, and claims nothing."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\ntwo\n")
    found = ask(tmp_path, "file.read", {"path": "a.txt", "first_line": 3})
    assert (found.status, found.claims) == ("error", ())
    assert "has 2 lines, none from 3 on" in str(found.error)
    assert ask(tmp_path, "file.read", {"path": "a.txt", "first_line": 2}).text == "two"
