"""init, list, show, import and models, run in this process."""

import json
from pathlib import Path
from typing import Any

import pytest

from panda.store.layout import asset
from panda.store.records import Evidence, Line, save
from tests.api import Ended, run_here
from tests.loopback import Server, reply

NOW = {"PANDA_NOW": "2026-01-05T00:00:00Z"}


class Session:
    """Runs commands on one store and remembers nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, *words: str) -> Ended:
        environ = {**NOW, "XDG_CACHE_HOME": str(self.root.parent / "cache")}
        return run_here([*words, "--root", str(self.root)], environ)

    def data(self, *words: str) -> Any:
        return self(*words, "--json").value["data"]


@pytest.fixture
def panda(tmp_path: Path) -> Session:
    """Commands on a store that does not exist yet."""
    return Session(tmp_path / "store")


@pytest.fixture
def filled(panda: Session, tmp_path: Path) -> Session:
    """Commands on a store with three turns of the default user, in two sessions."""
    panda("init")
    lines = [
        {"user": "default", "turn": n, "session": s, "at": f"2026-01-0{n}T10:00:00Z", "query": f"q{n} " * 30}
        for n, s in ((1, "a"), (2, "b"), (4, "a"))
    ]
    file = tmp_path / "turns.jsonl"
    file.write_text("".join(json.dumps({**line, "response": "r"}) + "\n" for line in lines), encoding="utf-8")
    assert panda("import", str(file)).code == 0
    return panda


def test_init_creates(panda: Session) -> None:
    """`init` makes an empty store and says where; twice changes nothing."""
    notes = f"notes of your own: Markdown and text files in {panda.root}/users/default/knowledge\n"
    assert panda("init").err == f"created: {panda.root}\n{notes}"
    assert list(panda.root.iterdir()) == [panda.root / "users"]
    assert panda("init").err == f"already there: {panda.root}\n{notes}"


def test_init_in_the_wrong_place(panda: Session) -> None:
    """`init` refuses a directory that holds something else."""
    panda.root.mkdir()
    (panda.root / "letter.txt").touch()
    ended = panda("init")
    assert (ended.code, ended.err.splitlines()[1]) == (2, f"where: {panda.root}")


def test_init_demo(panda: Session) -> None:
    """`init --demo` gives the user demo turns, the newest 1.2 hours old."""
    assert panda.data("init", "--demo")["user"] == "demo"
    turns = panda.data("list", "--user", "demo", "--limit", "0")["turns"]
    assert max(turn["time"] for turn in turns) == "2026-01-04T22:48:00Z"


def test_init_demo_twice(panda: Session) -> None:
    """`init --demo` refuses a store that has the user demo."""
    panda("init", "--demo")
    assert panda("init", "--demo").code == 2


def test_demo_of_the_checkout(tmp_path: Path) -> None:
    """Commands that write refuse the packaged demo store and say what to do."""
    file = tmp_path / "empty.jsonl"
    file.touch()
    words = ["import", str(file), "--root", str(asset("panda-system-docs"))]
    ended = run_here([*words, "--json"])
    assert (ended.code, ended.value["error"]["type"]) == (2, "ReadOnlyStoreError")
    assert "panda init --demo" in ended.value["error"]["fix"]


@pytest.mark.parametrize("words", [["list"], ["show", "1"], ["import", "-"]])
def test_no_store(panda: Session, words: list[str]) -> None:
    """Without a store every command says how to make one."""
    ended = panda(*words, "--json")
    assert (ended.code, ended.value["error"]["type"]) == (2, "NotFoundError")
    assert "panda init" in ended.value["error"]["fix"]


def test_list(filled: Session) -> None:
    """`list` shows number, time, session, status and a clipped query, newest last."""
    lines = filled("list").rows
    assert [line.split("\t")[0] for line in lines] == ["1", "2", "4"]
    number, time, session, status, query = lines[-1].split("\t")
    assert (number, time, session, status) == ("4", "2026-01-04T10:00:00Z", "a", "imported")
    assert query.endswith("…")
    assert len(query) <= 60


def test_list_limit(filled: Session) -> None:
    """--limit keeps the newest."""
    assert [turn["turn"] for turn in filled.data("list", "--limit", "2")["turns"]] == [2, 4]


def test_list_session(filled: Session) -> None:
    """--session keeps the turns of one session, and --json has whole queries."""
    turns = filled.data("list", "--session", "a")["turns"]
    assert [turn["turn"] for turn in turns] == [1, 4]
    assert turns[0]["query"] == "q1 " * 30


def test_list_damaged(filled: Session) -> None:
    """A turn whose metadata.json is damaged is listed as unreadable, and a warning says why."""
    (filled.root / "users/default/turns/turn_000002/metadata.json").write_text("{", encoding="utf-8")
    ended = filled("list")
    assert ended.rows[1].split("\t")[3] == "unreadable"
    assert ended.err.startswith("warning: turn 2: ")


def test_show_section(filled: Session) -> None:
    """`show --section` gives heading and body of one section."""
    assert filled("show", "1", "--section", "5").out == "## 5. Synthesis\n\nr\n"


def test_show_missing_section(filled: Session) -> None:
    """A section that the turn lacks is an error that names those it has."""
    ended = filled("show", "1", "--section", "2")
    assert (ended.code, ended.err.splitlines()[2]) == (2, "fix: its sections are 0, 5")


def test_show_file(filled: Session) -> None:
    """`show --file` gives another file of the turn."""
    assert filled.data("show", "1", "--file", "response.md")["text"] == "r"


@pytest.mark.parametrize("name", ["../turn_000002/context.md", "/etc/passwd", "nothing.md", "."])
def test_show_other_file(filled: Session, name: str) -> None:
    """A file outside of the turn, or none at all, is an error that names the files there are."""
    ended = filled("show", "1", "--file", name)
    assert (ended.code, ended.out) == (2, "")
    assert "response.md" in ended.err


def test_show_section_of_another_file(filled: Session) -> None:
    """--section goes with context.md only."""
    assert filled("show", "1", "--section", "0", "--file", "response.md").code == 2


def test_show_why(filled: Session) -> None:
    """`show --why` tells of each line what brought it in or left it out; a turn without evidence says so."""
    ended = filled("show", "1", "--why")
    assert (ended.code, "turn 1 has no evidence.json" in ended.err) == (2, True)
    lines = (
        Line("The heater is on.", node="knowledge:a.md", place=1, score=0.5, why=("closest", "answers")),
        Line("It was off.", node="turn:2", place=1, left_out="others answer better"),
    )
    save(Evidence((), lines), filled.root / "users/default/turns/turn_000001/evidence.json")
    rows = [row.split("\t") for row in filled("show", "1", "--why").out.splitlines()]
    assert rows[1:] == [
        ["knowledge:a.md", "0.50", "closest, answers", "The heater is on."],
        ["turn:2", "", "left out: others answer better", "It was off."],
    ]
    assert [line["node"] for line in filled.data("show", "1", "--why")["offered"]] == [
        "knowledge:a.md",
        "turn:2",
    ]


@pytest.mark.parametrize("words", [("--section", "0"), ("--file", "response.md"), ("--raw",)])
def test_show_why_goes_alone(filled: Session, words: tuple[str, ...]) -> None:
    """What --why would pass over is refused."""
    assert filled("show", "1", "--why", *words).code == 2


def test_show_no_turn(filled: Session) -> None:
    """A turn that does not exist is an error that names it."""
    ended = filled("show", "3")
    assert (ended.code, ended.err.splitlines()[0]) == (2, "error: user default has no turn 3")


def test_import_again(filled: Session, tmp_path: Path) -> None:
    """Importing the same file again changes nothing and says so."""
    data = filled.data("import", str(tmp_path / "turns.jsonl"))
    assert (data["created"], data["unchanged"]) == (0, 3)


def test_import_wrong_line(filled: Session, tmp_path: Path) -> None:
    """A wrong line ends with 2 and names file and line."""
    file = tmp_path / "wrong.jsonl"
    file.write_text("\n{}\n", encoding="utf-8")
    ended = filled("import", str(file))
    assert (ended.code, ended.err.splitlines()[1]) == (2, f"where: {file}:2 (user)")


def test_validate_turn(filled: Session) -> None:
    """`validate PATH` checks only what lies there, and ends with 0 if all is well."""
    ended = filled("validate", str(filled.root / "users/default/turns/turn_000001"))
    assert (ended.code, ended.out, ended.err) == (0, "", "no problems found\n")


def test_validate_damaged(filled: Session) -> None:
    """A damaged file ends with 3: one line on stdout with the place, and the number of problems on stderr."""
    context = filled.root / "users/default/turns/turn_000001/context.md"
    context.write_text(context.read_text("utf-8") + "\n## 5. Synthesis\n\nagain\n", encoding="utf-8")
    ended = filled("validate", str(filled.root / "users"))
    assert ended.code == 3
    assert ended.out.startswith(f"{context}:")
    assert ended.err.startswith("error: problems: 1, in files: 1\n")
    problems = filled.data("validate", str(context))["problems"]
    assert [problem["path"] for problem in problems] == [str(context)]


def test_validate_missing_path(filled: Session) -> None:
    """A path that does not exist is an error, not a clean check."""
    assert filled("validate", "nowhere").code == 2


def test_models_list(panda: Session) -> None:
    """`models list` names each model with the layers it serves, without a store."""
    listed = panda.data("models", "list")
    model, encoder = listed["models"]
    assert model["name"] == "smollm2-135m"
    assert "MIND" in model["layers"]
    assert model["error"] is None
    assert (listed["encoder"], encoder["embeds"], encoder["layers"]) == ("minilm-l6", True, ["encoder"])
    assert encoder["error"] is None


def test_models_list_says_what_is_asked_for(panda: Session) -> None:
    """Of the packaged models the encoder makes all choices; the language model is for `panda compress`."""
    listed = panda.data("models", "list")
    assert listed["served_by"] == {
        "REFLEX": ["minilm-l6"],
        "NERVES": ["smollm2-135m"],
        "MIND": ["minilm-l6"],
        "VOICE": ["minilm-l6"],
        "EYES": [],
    }
    model, encoder = listed["models"]
    assert (model["recipes"], model["asked_for"]) == ([], "weights of sentences in panda compress")
    assert encoder["asked_for"].startswith("choices of recipes: REFLEX ")
    recipes = {one["recipe"]: one["decides"] for one in panda.data("recipe", "list")["recipes"]}
    assert set(encoder["recipes"]) == {key for key, decides in recipes.items() if "encoder" in decides}


def test_models_check(panda: Session, tmp_path: Path) -> None:
    """`models check` ends with 3 if a model cannot be loaded, and names it."""
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(100))
    models_file = tmp_path / "models.yaml"
    models_file.write_text(
        "models:\n  mine: {backend: llama_cpp, location: broken.gguf, n_ctx: 512, writes: true}\n"
        "layers: {REFLEX: mine, NERVES: mine, MIND: mine, VOICE: mine, EYES: null}\nencoder: null\n",
        encoding="utf-8",
    )
    words = ["models", "check", "--json"]
    ended = run_here(words, {"PANDA_MODELS_FILE": str(models_file)})
    assert (ended.code, ended.value["error"]["message"]) == (3, "1 of 1 models cannot be used")
    assert "mine" in ended.value["data"]["models"][0]["name"]
    assert ended.value["data"]["models"][0]["error"]


def test_models_of_a_list_of_servers(panda: Session, tmp_path: Path) -> None:
    """`models list` and `check` show each server of a list; a fleet of which one is dead ends with 3."""
    alive = Server()
    alive.answer = lambda _: reply('{"colour": "blue"}', usage={"completion_tokens": 50})
    urls = [alive.url, "http://127.0.0.1:9/v1"]
    models_file = tmp_path / "models.yaml"
    keys = f"location: [{', '.join(urls)}], model: m, n_ctx: 4096, writes: true, parallel: 4"
    entry = f"{{backend: openai, {keys}}}"
    models_file.write_text(f"models: {{m: {entry}}}\nlayers: {{MIND: m}}\nencoder: null\n", encoding="utf-8")
    environ = {"PANDA_MODELS_FILE": str(models_file), "PANDA_CACHE_DIR": str(tmp_path / "cache")}
    try:
        listed = run_here(["models", "list", "--json"], environ)
        checked = run_here(["models", "check", "--json"], environ)
        rows = run_here(["models", "check"], environ).rows
    finally:
        alive.close()
    (model,) = listed.value["data"]["models"]
    assert (model["location"], model["width"], model["error"]) == (urls, 8, None)
    assert checked.code == 3
    message = "1 of 1 models cannot be used, or not on all of their servers"
    assert checked.value["error"]["message"] == message
    first, second = checked.value["data"]["models"][0]["servers"]
    assert (first["location"], first["structured"], first["error"]) == (urls[0], "json_schema", None)
    assert (second["location"], second["structured"]) == (urls[1], None)
    assert "does not answer" in second["error"]
    assert [row.split("\t")[0] for row in rows] == ["m", "m"]


def test_validate_of_a_turn_that_is_not_there(panda: Session) -> None:
    """A number that no turn has is named as one."""
    assert panda("init").code == 0
    ended = panda("validate", "77")
    assert (ended.code, "error: user default has no turn 77\n" in ended.err) == (2, True)
    assert "fix: `panda list` shows the turns" in ended.err


@pytest.mark.parametrize("words", [("validate", "9-3"), ("replay", "9-3")])
def test_a_range_that_runs_backwards(panda: Session, words: tuple[str, ...]) -> None:
    """It is said how to write it."""
    assert panda("init").code == 0
    ended = panda(*words)
    assert (ended.code, "fix: write 3-9" in ended.err) == (2, True), ended.err


def test_notes_are_no_turns(panda: Session, tmp_path: Path) -> None:
    """Who imports a note is told where notes belong."""
    assert panda("init").code == 0
    note = tmp_path / "bees.md"
    note.write_text("# Bees\n\nColony 2 swarmed on 14 May.\n", encoding="utf-8")
    ended = panda("import", str(note))
    assert ended.code == 2
    assert "notes are no turns: put them into users/USER/knowledge/" in ended.err
