"""Files of a store, a run or a report that would lead a command elsewhere: none is followed, none is lost."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.api import Ended, Panda, tree
from tests.outside import SECRET, Outside, leaks, link


class Stranger:
    """A project with the recorded turns, and a tree beside it that no command may touch or tell of."""

    def __init__(self, place: Path, store: Path, run: Path | None = None) -> None:
        self._run = run
        self.panda = Panda(
            place / "project", store, user="demo", PANDA_TRUST="", XDG_STATE_HOME=str(place / "state")
        )
        self.outside = Outside(place / "outside", store)
        self.runs = self.panda.store / "runs"

    def replayed(self) -> Path:
        """The directory of a run over turn 813, which is put into the store."""
        assert self._run is not None
        return Path(shutil.copytree(self._run, self.runs / self._run.name))

    def check(self, *words: str, code: int | None = None, says: str = "") -> None:
        """Run a command: it ends as it should, and nothing outside was read or touched."""
        ended = self.panda(*words)
        assert code in (None, ended.code), ended.err
        assert says in ended.err
        assert leaks(self.panda, ended) == []
        assert self.outside.changes() == []


@pytest.fixture(scope="module")
def run(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run over turn 813, made once."""
    panda = Panda(tmp_path_factory.mktemp("replayed") / "project", recorded, user="demo")
    ended = panda("replay", "813", "--json")
    assert ended.code == 0, ended.out
    return Path(ended.data["directory"])


@pytest.fixture
def stranger(recorded: Path, run: Path, tmp_path: Path) -> Stranger:
    """The recorded turns, and a tree beside them."""
    return Stranger(tmp_path, recorded, run)


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
    """A path in the place of a user is told with file and key, and is not followed."""
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
    """A link that is not trusted ends the batch where items read it; nothing behind it comes into a run."""
    link(stranger.panda.store / "users/demo" / name, stranger.outside.place / "secret.md")
    stranger.panda.write("q.jsonl", '{"id": "one", "query": "What about tea?", "session": "s"}\n')
    if name == "facts.md":
        stranger.check("batch", "q.jsonl", "--jobs", "1", code=2, says="leads out of the store")
    else:  # items read neither
        stranger.check("batch", "q.jsonl", "--jobs", "1", code=0)


def test_a_run_whose_turns_lie_behind_a_link_empties_and_fills_nothing(stranger: Stranger) -> None:
    """Going on with a replay whose turns lie elsewhere judges none of them."""
    run = stranger.replayed()
    change_json(run / "run.json", finished_at=None, results=None)
    (run / "turns.jsonl").write_text("")
    link(run / "turns/demo", stranger.outside.store / "users/demo/turns")
    stranger.check("replay", "--resume", run.name, code=3, says="1 of 1 turn could not be judged")


def forget(stranger: Stranger, text: str) -> Ended:
    """Forget a text, in a cache of the test's own; nothing outside may change."""
    own = str(stranger.panda.home.with_name("cache"))
    ended = stranger.panda("forget", "--text", text, "--yes", XDG_CACHE_HOME=own)
    assert stranger.outside.changes() == []
    return ended


@pytest.mark.parametrize("name", ["runs", "logs"])
def test_forgetting_names_links_and_removes_nothing_behind_them(
    name: str, recorded: Path, tmp_path: Path
) -> None:
    """The starts of batches elsewhere stay if runs/ is a link, and the link is named."""
    start = Path(shutil.copytree(recorded, tmp_path / "stranger")) / "runs/other/start"
    start.mkdir(parents=True)
    (start / "mine.txt").write_text("mine")
    (tmp_path / "stranger/logs").mkdir(exist_ok=True)
    stranger = Stranger(tmp_path, tmp_path / "stranger")
    link(stranger.panda.store / name, stranger.outside.store / name)
    ended = forget(stranger, "Lenovo")
    assert ended.code == 3
    assert f"{stranger.panda.store / name}\tit cannot be looked at" in ended.out


def test_a_cache_that_only_the_project_names_is_left_alone(stranger: Stranger) -> None:
    """A cache that panda.toml names is neither swept nor looked through until that is trusted."""
    (stranger.panda.home / "panda.toml").write_text('cache_dir = "../outside"\n')
    stranger.check("memory", "set", "tea", "green", code=0)
    ended = forget(stranger, SECRET)
    assert ended.code == 2
    assert "(cache_dir)" in ended.err


def test_ids_that_a_stranger_made_up_are_replaced_nowhere(stranger: Stranger) -> None:
    """A page and an intervention with foreign ids lose the text; no other file is changed for their ids."""
    turn = stranger.panda.store / "users/demo/turns/turn_000813"
    page = turn / "webpage_cache/a"
    note = stranger.panda.store / "users/demo/knowledge/page.md"
    page.mkdir(parents=True)
    (page / "manifest.json").write_text(json.dumps({"visit_id": "e", "url": "https://x.example/kohlrabi"}))
    note.write_text("A note about the visit e.\n")
    foreign = {
        "id": "i",
        "created_at": "/x",
        "user_id": "../../a",
        "turn": 1,
        "phase": 1,
        "message": "kohlrabi",
    }
    (stranger.panda.store / "interventions").mkdir(exist_ok=True)
    (stranger.panda.store / "interventions/i.json").write_text(json.dumps(foreign))
    before = tree(turn.with_name("turn_000811"))
    assert forget(stranger, "kohlrabi").code == 0
    assert tree(turn.with_name("turn_000811")) == before
    assert note.read_text() == "A note about the visit e.\n"
    assert "kohlrabi" not in (stranger.panda.store / "interventions/i.json").read_text()


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("users/demo/turns/turn_999999", "other/users/demo/turns/turn_000813"),
        ("runs/0far", "other/runs/0far"),
        ("runs/0fed/queries.jsonl", "queries.jsonl"),
        ("runs/0fed/turns.jsonl", "other/runs/0far/turns.jsonl"),
        ("logs/executions.jsonl", "log.jsonl"),
    ],
)
def test_pages_show_nothing_from_behind_a_link(name: str, target: str, stranger: Stranger) -> None:
    """Neither a turn or run behind a link nor single lines of a file behind one stand on a page."""
    run = stranger.replayed()
    place = stranger.outside.place
    shutil.copytree(run, stranger.runs / "0fed")
    shutil.copytree(run, place / "other/runs/0far")
    lines = place / "other/runs/0far/turns.jsonl"
    lines.write_text(lines.read_text().replace("Lenovo", SECRET))
    plan = json.loads((run / "run.json").read_text())
    change_json(stranger.runs / "0fed/run.json", turns=[{**plan["turns"][0], "item": "one"}])
    (place / "queries.jsonl").write_text(json.dumps({"id": "one", "query": SECRET}) + "\n")
    record = {"timestamp": "2026-01-04T14:00:00Z", "recipe": SECRET, "user_id": "demo", "latency_ms": 1}
    (place / "log.jsonl").write_text(json.dumps(record) + "\n")
    stranger.outside.settle()
    link(stranger.panda.store / name, place / target)
    for words in (["view", "--out", "pages"], ["stats"], ["log"], ["list"], ["diff", "0fed", "last"]):
        stranger.check(*words)
