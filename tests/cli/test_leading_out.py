"""Files of a store, a run or a report that would lead a command elsewhere: none is followed, none is lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda
from tests.outside import SECRET, Outside, leaks, link


class Stranger:
    """A project with the recorded turns, and a tree beside it that no command may touch or tell of."""

    def __init__(self, place: Path, store: Path) -> None:
        self.panda = Panda(
            place / "project", store, user="demo", PANDA_TRUST="", XDG_STATE_HOME=str(place / "state")
        )
        self.outside = Outside(place / "outside", store)
        self.runs = self.panda.store / "runs"

    def replayed(self, *words: str) -> Path:
        """The directory of a new run over turn 813."""
        ended = self.panda("replay", "813", "--json", *words)
        assert ended.code == 0, ended.out
        return Path(ended.data["directory"])

    def check(self, *words: str, code: int | None = None, says: str = "") -> None:
        """Run a command: it ends as it should, and nothing outside was read or touched."""
        ended = self.panda(*words)
        assert code in (None, ended.code), ended.err
        assert says in ended.err
        assert leaks(self.panda, ended) == []
        assert self.outside.changes() == []


@pytest.fixture
def stranger(recorded: Path, tmp_path: Path) -> Stranger:
    """The recorded turns, and a tree beside them."""
    return Stranger(tmp_path, recorded)


def change_json(path: Path, **changes: Any) -> None:
    """Put other values into a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def of_run(run: Path, **changes: Any) -> None:
    """Put other values into the turn that a run is of, and into its line, and leave the run unfinished."""
    plan = json.loads((run / "run.json").read_text())
    turn = {**plan["turns"][0], **{key: changes[key] for key in changes if key != "directory"}}
    change_json(run / "run.json", turns=[turn])
    line = json.loads((run / "turns.jsonl").read_text())
    own = {key: changes[key] for key in changes if key in line}
    (run / "turns.jsonl").write_text(json.dumps({**line, **own}) + "\n")


COMMANDS = (
    ("diff", "saved", "last"),
    ("diff", "last", "last", "--html", "page.html"),
    ("view", "--out", "pages"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_run_that_names_another_store_is_not_followed(words: tuple[str, ...], stranger: Stranger) -> None:
    """The turns of another store are neither compared nor shown, whatever of a run names them."""
    run = stranger.replayed()
    other = stranger.outside.store
    of_run(run, root=str(other), directory=str(other / "users/demo/turns/turn_000813"))
    if words[0] == "view":
        stranger.check(*words)
    else:
        stranger.check(*words, code=2, says="(turns[0].root)")


def test_the_directory_of_a_line_is_only_told(stranger: Stranger) -> None:
    """A line of turns.jsonl says where a turn was; what is read is a turn of the store of the run."""
    run = stranger.replayed()
    of_run(run, directory=str(stranger.outside.store / "users/demo/turns/turn_000813"))
    stranger.check("diff", "saved", "last", code=0)


def test_a_run_of_another_store_is_not_gone_on_with(stranger: Stranger) -> None:
    """Nothing of another store is copied by --resume unless the user trusts the run; then it goes on."""
    run = stranger.replayed()
    of_run(run, root=str(stranger.outside.store))
    (run / "turns.jsonl").unlink()
    change_json(run / "run.json", finished_at=None, results=None)
    stranger.check("replay", "--resume", run.name, code=2, says="fix: look at it with panda trust")
    trusted = stranger.panda("trust", "--dry-run")
    assert str(stranger.outside.store) in trusted.out
    assert stranger.panda("trust").code == 0
    assert stranger.panda("replay", "--resume", run.name).code != 2


@pytest.mark.parametrize("user", ["../../../outside/other/users/demo", "/etc", "..", "de/mo", "demo\n", ""])
def test_a_run_names_users_not_paths(user: str, stranger: Stranger) -> None:
    """What stands where a user should is told with file and key, and no path is made of it."""
    run = stranger.replayed()
    of_run(run, user=user)
    change_json(run / "run.json", finished_at=None)
    for words in (["diff", "saved", "last"], ["replay", "--resume", run.name], ["diff", "last", "last"]):
        stranger.check(*words, code=2, says="(turns[0].user)")
    stranger.check("view", "--out", "pages")


def test_a_run_of_another_store_that_the_user_names_is_guarded(stranger: Stranger, tmp_path: Path) -> None:
    """A run named by its directory is of the store it lies in, whose links are not followed either."""
    run = stranger.replayed()
    place = tmp_path / "elsewhere"
    stranger.panda.store.rename(place)
    stranger.panda.json("init")
    link(place / "users/demo/turns/turn_000813/context.md", stranger.outside.place / "secret.md")
    stranger.check("diff", "saved", str(place / "runs" / run.name))


def test_no_secret_stands_in_the_store(stranger: Stranger) -> None:
    """The tests here would see what they look for."""
    assert SECRET in (stranger.outside.place / "secret.md").read_text()
    assert leaks(stranger.panda, stranger.panda("list")) == []
    link(stranger.panda.store / "users/demo/facts.md", stranger.outside.place / "secret.md")
    assert (
        SECRET
        in stranger.panda("validate", "--trust", str(stranger.panda.store)).err
        + (stranger.panda.store / "users/demo/facts.md").read_text()
    )


@pytest.mark.parametrize("name", ["facts.md", "notes.txt", "sessions/s/session.json"])
def test_a_batch_copies_nothing_from_behind_a_link(name: str, stranger: Stranger) -> None:
    """A link that is not trusted ends the batch before an item runs; nothing behind it comes into the run."""
    link(stranger.panda.store / "users/demo" / name, stranger.outside.place / "secret.md")
    stranger.panda.write("q.jsonl", '{"id": "one", "query": "What about tea?", "session": "s"}\n')
    stranger.check("batch", "q.jsonl", "--jobs", "1", code=2, says="leads out of the store")
