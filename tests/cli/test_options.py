"""Options that a command would ignore, and users that are not there, are wrong usage."""

import inspect
import shlex
from importlib import import_module
from pathlib import Path
from typing import cast

import pytest
import typer
from typer.core import TyperOption

from panda.cli.command import Surroundings, build_command, check_options
from panda.cli.main import COMMANDS, Entry, build_program
from tests.builders import build_store
from tests.cli.programs import Ended, run_words


class Shell:
    """Runs commands on a store with the turns of user demo."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.capsys = capsys

    def __call__(self, *words: str, **environ: str) -> Ended:
        return run_words(build_program(), [*words, "--root", str(self.root)], self.capsys, environ)


@pytest.fixture
def panda(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Commands on a store with three turns of user demo."""
    build_store(tmp_path / "store")
    return Shell(tmp_path / "store", capsys)


IGNORED = (
    ("turn --resume 3 --mode code", "--mode does not go with --resume"),
    ("turn --resume 3 --session other", "--session does not go with --resume"),
    ("turn --resume 3 --seed 7", "--seed does not go with --resume"),
    ("turn --resume 3 --image x.png", "--image does not go with --resume"),
    ("turn --resume 3 --dry-run", "--dry-run does not go with --resume"),
    ("turn Why? --resume 3", "QUERY|- does not go with --resume"),
    ("gather 3 --session other", "--session does not go with TURN"),
    ("gather 3 --mode chat", "--mode does not go with TURN"),
    ("gather 3 --seed 1", "--seed does not go with TURN"),
    ("gather 3 --query Why?", "--query does not go with TURN"),
    ("gather --query Why? --plan --draft", "--draft does not go with --plan"),
    ("replay 1 --mode rerun --on-miss run", "--on-miss goes with --mode simulate"),
    ("index rebuild --limit 3", "--limit goes with --summaries"),
    ("index rebuild --max-seconds 3", "--max-seconds goes with --summaries"),
    ("index rebuild --full --user demo", "--user does not go with --full"),
    ("memory resolve c --winner a --value b", "--value does not go with --winner"),
    ("memory resolve c --winner a --type text", "--type does not go with --winner"),
    ("memory list --kind nonsense --user demo", "'nonsense' is no kind"),
    ("memory list --scope nonsense --user demo", "'nonsense' is no scope"),
    ("mcp --port 9", "--port goes with --http"),
    ("synthesize --scope local --facts f.json --user demo", "--user does not go with --facts"),
)


@pytest.mark.parametrize(("line", "message"), IGNORED)
def test_what_would_be_ignored_is_wrong_usage(panda: Shell, line: str, message: str) -> None:
    """An option without effect beside the others ends with 2, names both and says what to do."""
    ended = panda(*line.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert "\nfix: " in ended.err


@pytest.mark.parametrize(
    "line",
    [
        "memory list --kind fact --user demo",
        "index rebuild --full",
        "index search tea --session default --explain --user demo",
        "stats --by day",
        "list --session default --user demo",
    ],
)
def test_what_has_an_effect_is_taken(panda: Shell, line: str) -> None:
    """The same options count where they do something, and a setting from outside is no option given."""
    ended = panda(*line.split(), PANDA_SESSION="other", PANDA_SEED="3")
    assert (ended.code, ended.err.startswith("error")) == (0, False)


@pytest.mark.parametrize(
    "line",
    [
        "list",
        "show 1",
        "memory list",
        "memory get budget",
        "log",
        "stats",
        "session list",
        "intervention list",
    ],
)
def test_a_user_that_is_not_there(panda: Shell, line: str) -> None:
    """Reading of a user whom the store does not have ends with 2 and the nearest names, however named."""
    for words, environ in (((*line.split(), "--user", "dmo"), {}), (line.split(), {"PANDA_USER": "dmo"})):
        ended = panda(*words, **environ)
        assert ended.code == 2
        assert "there is no user 'dmo'" in ended.err
        assert "fix: did you mean demo?" in ended.err


def test_the_user_by_default_may_be_new(panda: Shell) -> None:
    """Nobody named the default user, so that it has nothing yet is no mistake."""
    ended = panda("list")
    assert (ended.code, ended.err) == (0, f"user default has no turns in {panda.root}\n")


def test_a_table_in_a_pipe_has_heads(panda: Shell) -> None:
    """A piped table begins with the names of its columns; an empty one prints nothing."""
    assert panda("list", "--user", "demo").out.splitlines()[0] == "turn\ttime\tsession\tstatus\tquery"
    assert panda("session", "list").out == ""


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.words)
def test_every_help_shows_defaults_and_an_example(panda: Shell, entry: Entry) -> None:
    """The help of every command says what the options that all have are by default, and gives an example."""
    text = run_words(build_program(), [*entry.words.split(), "--help"], panda.capsys).out
    plain = "".join(text.split())  # lines are wrapped anywhere
    for told in (
        f"Example: panda {entry.words}",
        "[env: PANDA_ROOT; default: ./panda-system-docs]",
        "[env: PANDA_USER; default: default]",
        "[env: PANDA_WAIT_SECONDS; default: 600]",
        "[env: PANDA_TRUST]",
    ):
        assert "".join(told.split()) in plain


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.words)
def test_every_option_says_what_holds_without_it(entry: Entry, tmp_path: Path) -> None:
    """Each option that takes a value is required or tells its default; settings name their variable too."""
    module, function = entry.target.split(":")
    command = build_command(entry.words, getattr(import_module(module), function))
    with command.make_context(
        entry.words, [], obj=Surroundings({}, tmp_path), resilient_parsing=True
    ) as context:
        for parameter in command.get_params(context):
            name, told = parameter.get_help_record(context) or ("", "")
            if not isinstance(parameter, TyperOption) or parameter.is_flag or parameter.count:
                continue
            assert "default: " in told or "required" in told, name
            if entry.words in ("turn", "gather", "batch") and parameter.name in ("session", "seed"):
                assert f"env: PANDA_{parameter.name.upper()}; " in told


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.words)
def test_every_example_can_be_typed(entry: Entry, tmp_path: Path) -> None:
    """No example names an option that its command lacks or refuses."""
    module, function = entry.target.split(":")
    marked = getattr(import_module(module), function)
    told = inspect.getdoc(marked) or ""
    (example,) = [line for line in told.splitlines() if line.startswith("Example: ")]
    words = shlex.split(example.removeprefix("Example: panda ").removeprefix(entry.words))
    command = build_command(entry.words, marked)
    with command.make_context(entry.words, words, obj=Surroundings(environ={}, cwd=tmp_path)) as context:
        check_options(marked, cast(typer.Context, context))


def test_a_list_that_is_cut_says_so(panda: Shell) -> None:
    """Where a limit leaves turns out, that there are more is told; where it does not, nothing is."""
    cut = panda("list", "--user", "demo", "--limit", "2")
    assert cut.err == "the newest 2, and at least 1 more: --limit 0 shows all\n"
    assert [row.split("\t")[0] for row in cut.rows] == ["2", "3"]
    assert panda("list", "--user", "demo", "--limit", "3").err == ""
