"""Options that a command would ignore, and users that are not there, are wrong usage."""

from pathlib import Path

import pytest

from tests.api import COMMANDS, Panda
from tests.store_files import write_turn


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store with three turns of user demo; nobody is named."""
    panda = Panda(tmp_path / "project")
    for number in (1, 2, 3):
        write_turn(panda.store / "users/demo", number, query=f"Question {number}?", response="Answer.")
    return panda


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
def test_what_would_be_ignored_is_wrong_usage(panda: Panda, line: str, message: str) -> None:
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
def test_what_has_an_effect_is_taken(panda: Panda, line: str) -> None:
    """
    Options that are refused elsewhere count if they do something, and a setting from outside is no option.
    """
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
def test_a_user_that_is_not_there(panda: Panda, line: str) -> None:
    """Reading of a user whom the store does not have ends with 2 and the nearest names, however named."""
    for words, environ in (((*line.split(), "--user", "dmo"), {}), (line.split(), {"PANDA_USER": "dmo"})):
        ended = panda(*words, **environ)
        assert ended.code == 2
        assert "there is no user 'dmo'" in ended.err
        assert "fix: did you mean demo?" in ended.err


def test_the_user_by_default_may_be_new(panda: Panda) -> None:
    """Nobody named the default user, so that it has nothing yet is no mistake."""
    ended = panda("list")
    assert (ended.code, ended.err) == (0, f"user default has no turns in {panda.store}\n")


def test_a_table_in_a_pipe_has_heads(panda: Panda) -> None:
    """A piped table begins with the names of its columns; an empty one prints nothing."""
    assert panda("list", "--user", "demo").out.splitlines()[0] == "turn\ttime\tsession\toutcome\tquery"
    assert panda("session", "list").out == ""


def test_a_list_that_is_cut_says_so(panda: Panda) -> None:
    """A list that a limit cuts tells that there are more turns; one that holds all tells nothing."""
    cut = panda("list", "--user", "demo", "--limit", "2")
    assert cut.err == "the newest 2, and at least 1 more: --limit 0 shows all\n"
    assert [row.split("\t")[0] for row in cut.rows] == ["2", "3"]
    assert panda("list", "--user", "demo", "--limit", "3").err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_shows_defaults_and_an_example(command: str, panda: Panda) -> None:
    """The help of every command gives an example, and says what holds without the options that all have."""
    text = panda(*command.split(), "--help").out
    assert f"Example: panda {command}" in text
    plain = "".join(text.split())  # lines are wrapped anywhere
    for words in (
        "[env: PANDA_ROOT; default: ./panda-system-docs]",
        "[env: PANDA_USER; default: default]",
        "[env: PANDA_WAIT_SECONDS; default: 600]",
        "[env: PANDA_TRUST]",
    ):
        assert "".join(words.split()) in plain


@pytest.mark.parametrize("command", ["turn", "gather"])
def test_settings_of_turns_name_their_variable(command: str, panda: Panda) -> None:
    """The help says which variable stands for an option, and what holds without both."""
    text = " ".join(panda(command, "--help").out.split())
    for name in ("SESSION", "SEED"):
        assert f"[env: PANDA_{name}; default: " in text
