"""Words on a command line that cannot be used, told as plainly as `git` tells them; and words that can."""

import shutil
from contextlib import chdir, closing
from pathlib import Path

import pytest

from tests.api import LAPTOPS, ModelServer, Panda, run_here
from tests.script import Script

COMPARED = "recipe compare pipeline/phase6_validator pipeline/phase6_validator"


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project whose store has the turns 1 and 2 of ann."""
    return Panda(tmp_path, LAPTOPS, user="ann")


@pytest.mark.parametrize(
    ("words", "error", "where", "fix"),
    [
        (
            "turn who is the vet",
            "unexpected arguments: is the vet",
            "`panda turn`",
            'put it in quotes: panda turn "who is the vet"',
        ),
        (
            "index search best $5 tea",
            "unexpected arguments: $5 tea",
            "`panda index search`",
            "put it in quotes: panda index search 'best $5 tea'",
        ),
        ("show 1 2", "unexpected argument: 2", "`panda show`", "`panda show --help`"),
        ("show abc", "'abc' is no number of a turn", "TURN", "give its number, or last for the newest"),
        ("show last --section 9", "turn 2 has no section 9", "context.md", "its sections are 0, 5"),
        ("show last --section -1", "turn 2 has no section -1", "context.md", "its sections are 0, 5"),
        ("log --turn abc", "'abc' is no number of a turn", "--turn", "or last"),
        ("compress notes.md --budget abc", "'abc' is not a whole number", "--budget", "--help"),
        ("compress notes.md --budget 0", "'0' is less than 1", "--budget", "--help"),
        ("turn hello --seed x", "'x' is not a whole number", "--seed", "--help"),
        ("diff saved last --max-tokens x", "'x' is not a number", "--max-tokens", "--help"),
        ("serve --port 70000", "'70000' is more than 65535", "--port", "--help"),
        ("compress . --budget 5", "cannot read .: Is a directory", ".", "name a file in it"),
        ("compress notes.md/x --budget 5", "Not a directory", "notes.md/x", "a part of the path is a file"),
        (f"{COMPARED} --on 1,17", "user ann has no turn 17", "turn_000017", "`panda list`"),
        ("replay --status done", "there is no status 'done'", "--status", "use one of: running, "),
        ("replay 1,x", "'1,x' is no turn number, range or directory", "SELECTION", "805,811, last"),
        ("batch q.jsonl", "not valid JSON: Expecting ',' delimiter", "q.jsonl:2", "a comma between two"),
        ("show last --user bob", "user bob has no turn", "TURN last", "panda turn --user bob"),
    ],
)
def test_what_is_wrong_is_said_plainly(panda: Panda, words: str, error: str, where: str, fix: str) -> None:
    """The error names the word and what was expected, the place is the option, the fix can be typed."""
    panda.write("notes.md", "Tea is hot.\n")
    panda.write("q.jsonl", '{"id": "1", "query": "hi"}\n{"id": "2" "query": "hi"}\n')
    (panda.store / "users" / "bob").mkdir()
    ended = panda(*words.split())
    lines = dict(line.split(": ", 1) for line in ended.err.splitlines())
    assert ended.code in (2, 74)
    assert error in lines["error"]
    assert where in lines["where"]
    assert fix in lines["fix"]


def test_an_own_recipe_that_nothing_asks_is_told_where_to_be_named(panda: Panda) -> None:
    """The fix names the project's registry.yaml, not that of the installed program as the file to edit."""
    assert panda("recipe", "eject", "pipeline/phase1_reflection").code == 0
    own = panda.home / "recipes" / "pipeline" / "phase1_reflection.yaml"
    own.rename(own.with_name("mine.yaml"))
    problems = panda("validate", str(panda.home / "recipes"), "--json").data["problems"]
    fixes = [problem["fix"] for problem in problems if "no step of the registry names" in problem["message"]]
    assert [fix.partition(" of its step in ")[2].partition(",")[0] for fix in fixes] == [
        "recipes/registry.yaml of the project"
    ]


def test_a_replay_tells_one_line_a_turn(panda: Panda) -> None:
    """A difference is named on one line, and shown line by line with -v alone."""
    with closing(ModelServer()) as server:
        panda.write("models.yaml", server.models())
        assert panda.turn("How much is the Lenovo LOQ 15?").code == 0
        answer = panda.turn_file(3, "response.md")
        answer.write_text(answer.read_text(encoding="utf-8").replace("costs", "cost"), encoding="utf-8")
        short = panda("replay", "last")
        long = panda("replay", "last", "-v")
    lines = [line for line in short.err.splitlines() if line.startswith("turn 3")]
    assert (short.code, lines) == (3, ["turn 3: differs; other than saved: response.md"])
    assert "+The Lenovo LOQ 15 costs $697." in long.err
    assert "+The Lenovo" not in short.err


def test_a_replay_of_a_turn_that_halted_says_how_it_is_ended(panda: Panda) -> None:
    """The message names the command that takes it to its end."""
    with closing(ModelServer(Script(planner="no JSON"))) as server:
        panda.write("models.yaml", server.models())
        assert panda.turn("How much is the Lenovo LOQ 15?").code == 20
    ended = panda("replay", "last")
    assert ended.code == 3
    assert "turn 3 (halted) has not come to its end: panda turn --resume 3 --user ann" in ended.err


def test_last_is_the_newest_turn(panda: Panda) -> None:
    """`last` stands for the newest turn, and numbers may stand with commas between them."""
    assert panda.json("show", "last")["turn"] == 2
    assert panda("validate", "last").out == panda("validate", "2").out
    exported = panda("export", "1,2", "--as", "queries").out
    assert exported.splitlines() == [
        line for word in ("1", "last") for line in panda("export", word, "--as", "queries").out.splitlines()
    ]
    replayed = panda("replay", "last", "--json")
    assert [turn["turn"] for turn in replayed.data["turns"]] == [2]


def test_a_store_is_found_from_within(tmp_path: Path) -> None:
    """A shell within a store works on that store, as in git; its project is the directory above."""
    project = tmp_path / "project"
    store = project / "panda-system-docs"
    shutil.copytree(LAPTOPS, store)
    (project / "models.yaml").write_text("models: {}\nlayers: {}\n")
    inside = store / "users" / "ann" / "knowledge"
    inside.mkdir(exist_ok=True)
    for place in (store, inside):
        with chdir(place):
            listed = run_here(["list", "--json", "--user", "ann"])
            settings = run_here(["config", "show", "--json"]).data["settings"]
        assert [turn["turn"] for turn in listed.data["turns"]] == [1, 2]
        values = [settings[name]["value"] for name in ("root", "models_file")]
        assert values == [str(store), str(project / "models.yaml")]
    with chdir(tmp_path):
        assert run_here(["list"]).code == 2
