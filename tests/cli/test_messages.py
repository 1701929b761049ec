"""What a user types wrong, told with what is wrong, where, and what to do."""

import json
from pathlib import Path

import pytest
import yaml

from tests.api import CASES, Ended, Panda
from tests.code_mode import git

WRONG_FILES = yaml.safe_load((CASES / "wrong_files.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with an empty store in its usual place."""
    panda = Panda(tmp_path / "project", PANDA_ROOT="")
    panda.store = panda.home / "panda-system-docs"
    assert panda("init").code == 0
    return panda


@pytest.mark.parametrize("fault", WRONG_FILES)
def test_wrong_files(panda: Panda, fault: str) -> None:
    """The error says what is wrong, in which line, and what to do."""
    case = WRONG_FILES[fault]
    panda.write(case["name"], case["text"].encode(case.get("encoding", "utf-8")))
    errors = panda(*case["words"].split()).err
    for part in case["told"]:
        assert part in errors


def test_a_broken_memory_file_halts(panda: Panda) -> None:
    """A turn whose user's preferences.md does not read halts; line and fix are told, and it can go on."""
    path = panda.user_directory / "preferences.md"
    path.write_text('---\nname: "Ann\n---\n')
    ended = panda("turn", "What is my name?")
    assert (ended.code, f"where: {path}:2\nfix: " in ended.err) == (20, True), ended.err
    assert panda.turn_file(1, "metadata.json").exists()


def test_notes_beside_the_knowledge_are_named(panda: Panda) -> None:
    """A note in users/USER itself is not read: validate tells it as information, a turn as a warning."""
    note = panda.user_directory / "bees.md"
    note.write_text("# Bees\n")
    fix = f"move it to {note.parent / 'knowledge'}"
    ended = panda("validate")
    assert ended.code == 0
    assert f"{note}: information: it is not read" in ended.out
    assert fix in ended.out
    warning = f"warning: {note}: it is not read: notes stand in knowledge/; {fix}"
    assert warning in panda("turn", "hello").err


@pytest.mark.parametrize(
    "text",
    [
        "The first one is long enough. The second as well, of course. So is it.\n",
        "".join(f"This is line number {n}\n" for n in range(1, 81)),
        "# Head\n\n" + "".join(f"| {n} | a long cell of the table |\n" for n in range(16)),
        '{"a": ' + str(["word"] * 60).replace("'", '"') + "}",
    ],
    ids=["sentences", "lines", "table", "json"],
)
def test_a_budget_for_nothing(panda: Panda, text: str) -> None:
    """A budget into which no part fits ends with 4 and says how large one must be; that one does."""
    panda.write("text.txt", text)
    ended = panda("compress", "text.txt", "--budget", "4")
    assert (ended.code, ended.out) == (4, "")
    least = int(ended.err.partition("a budget of at least ")[2].split()[0])
    assert least > 4
    assert panda("compress", "text.txt", "--budget", str(least)).code == 0


def test_the_newest_turn_that_stopped_goes_on(panda: Panda) -> None:
    """turn --resume last takes the newest unfinished turn; without one, or by another word, it is told."""
    nothing = panda("turn", "--resume", "last")
    assert (nothing.code, "no turn has stopped before its end" in nothing.err) == (2, True)
    for session in ("a", "b"):
        assert panda("gather", "--query", "hello", "--session", session).code == 0
    assert [panda.json("turn", "--resume", "last")["turn"] for _ in range(2)] == [2, 1]
    wrong = panda("turn", "--resume", "lst")
    assert (wrong.code, "give its number, or last" in wrong.err) == (2, True)


def run_tool(panda: Panda, name: str, **arguments: object) -> Ended:
    """A tool run by hand."""
    return panda("tool", "run", name, "--json", "--args", json.dumps(arguments))


def test_a_repository_before_its_first_commit(panda: Panda) -> None:
    """git.diff shows what is staged for the first commit."""
    panda.write("a.txt", "one\n")
    git(panda.home, "init", "-q")
    git(panda.home, "add", "a.txt")
    ended = run_tool(panda, "git.diff")
    assert ended.code == 0
    assert "+one" in ended.out
    assert "1 file is to be in the first commit" in ended.out


def test_lines_beyond_the_end_of_a_file(panda: Panda) -> None:
    """file.read of lines that are not there fails with how many there are, and claims nothing."""
    panda.write("a.txt", "one\ntwo\n")
    failed = run_tool(panda, "file.read", path="a.txt", first_line=3)
    assert failed.code == 3
    assert "has 2 lines, none from 3 on" in failed.out
    assert run_tool(panda, "file.read", path="a.txt", first_line=2).data["text"] == "two"
