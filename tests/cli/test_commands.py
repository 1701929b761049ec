"""init, list, show, import and models, run in this process."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from tests.api import ROOT, Panda
from tests.loopback import Server, reply


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project whose store does not exist yet."""
    return Panda(tmp_path / "project")


@pytest.fixture
def filled(panda: Panda) -> Panda:
    """A store with three turns of the default user, in two sessions, of lines.jsonl."""
    panda("init")
    panda.write_lines(
        "lines.jsonl",
        *(
            {
                "user": "default",
                "turn": number,
                "session": session,
                "at": f"2026-01-0{number}T10:00:00Z",
                "query": f"q{number} " * 30,
                "response": "r",
            }
            for number, session in ((1, "a"), (2, "b"), (4, "a"))
        ),
    )
    assert panda("import", "lines.jsonl").code == 0
    return panda


def test_init_creates(panda: Panda) -> None:
    """`init` makes an empty store and says where; twice changes nothing."""
    kinds = "Markdown, text, CSV, JSON and HTML files"
    notes = f"notes of your own: {kinds} in {panda.store}/users/default/knowledge\n"
    assert panda("init").err == f"created: {panda.store}\n{notes}"
    assert list(panda.store.iterdir()) == [panda.store / "users"]
    assert panda("init").err == f"already there: {panda.store}\n{notes}"


def test_init_in_the_wrong_place(panda: Panda) -> None:
    """`init` refuses a directory that holds something else."""
    panda.write("store/letter.txt", "")
    ended = panda("init")
    assert (ended.code, ended.err.splitlines()[1]) == (2, f"where: {panda.store}")


def test_init_demo(panda: Panda) -> None:
    """`init --demo` gives the user demo turns, the newest 1.2 hours old; a store that has them refuses."""
    assert panda.json("init", "--demo")["user"] == "demo"
    turns = panda.json("list", "--user", "demo", "--limit", "0")["turns"]
    assert max(turn["time"] for turn in turns) == "2026-01-04T13:18:00Z"
    assert panda("init", "--demo").code == 2


def test_the_demo_of_the_checkout_is_not_written(panda: Panda) -> None:
    """Commands that write refuse the packaged demo store and say what to do."""
    panda.write("empty.jsonl", "")
    ended = panda("import", "empty.jsonl", "--root", str(ROOT / "panda-system-docs"), "--json")
    assert (ended.code, ended.error["type"]) == (2, "ReadOnlyStoreError")
    assert "panda init --demo" in ended.error["fix"]


@pytest.mark.parametrize("words", [["list"], ["show", "1"], ["import", "-"]])
def test_no_store(panda: Panda, words: list[str]) -> None:
    """Without a store every command says how to make one."""
    ended = panda(*words, "--json")
    assert (ended.code, ended.error["type"]) == (2, "NotFoundError")
    assert "panda init" in ended.error["fix"]


def test_list(filled: Panda) -> None:
    """`list` shows number, time, session, status and a clipped query, newest last; --json has it whole."""
    rows = [row.split("\t") for row in filled("list").rows]
    assert [row[0] for row in rows] == ["1", "2", "4"]
    assert rows[-1][:4] == ["4", "2026-01-04T10:00:00Z", "a", "imported"]
    assert rows[-1][4].endswith("…")
    assert len(rows[-1][4]) <= 60
    turns = filled.json("list", "--session", "a")["turns"]
    assert [turn["turn"] for turn in turns] == [1, 4]
    assert turns[0]["query"] == "q1 " * 30


def test_list_damaged(filled: Panda) -> None:
    """A turn whose metadata.json is damaged is listed as unreadable, and a warning says why."""
    filled.turn_file(2, "metadata.json").write_text("{", encoding="utf-8")
    ended = filled("list")
    assert ended.rows[1].split("\t")[3] == "unreadable"
    assert ended.err.startswith("warning: turn 2: ")


def test_show_parts(filled: Panda) -> None:
    """`show` gives one section with its heading, or another file; of what is missing it names the others."""
    assert filled("show", "1", "--section", "5").out == "## 5. Synthesis\n\nr\n"
    assert filled.json("show", "1", "--file", "response.md")["text"] == "r"
    missing = filled("show", "1", "--section", "2")
    assert (missing.code, missing.err.splitlines()[2]) == (2, "fix: its sections are 0, 5")


@pytest.mark.parametrize("name", ["../turn_000002/context.md", "/etc/passwd", "nothing.md", "."])
def test_show_other_file(filled: Panda, name: str) -> None:
    """A file outside of the turn, or none at all, is an error that names the files there are."""
    ended = filled("show", "1", "--file", name)
    assert (ended.code, ended.out) == (2, "")
    assert "response.md" in ended.err


def test_show_why(filled: Panda) -> None:
    """`show --why` tells of each line what brought it in or left it out; a turn without evidence says so."""
    ended = filled("show", "1", "--why")
    assert (ended.code, "turn 1 has no evidence.json" in ended.err) == (2, True)
    line = {"text": "The heater is on.", "node": "knowledge:a.md", "place": 1}
    left_out = {"text": "It was off.", "node": "turn:2", "place": 1, "left_out": "others answer better"}
    offered = [{**line, "score": 0.5, "why": ["closest", "answers"]}, left_out]
    filled.turn_file(1, "evidence.json").write_text(json.dumps({"gathered": [], "offered": offered}))
    rows = [row.split("\t") for row in filled("show", "1", "--why").rows]
    assert rows == [
        ["knowledge:a.md", "0.50", "closest, answers", "The heater is on."],
        ["turn:2", "", "left out: others answer better", "It was off."],
    ]
    assert [line["node"] for line in filled.json("show", "1", "--why")["offered"]] == [
        "knowledge:a.md",
        "turn:2",
    ]


@pytest.mark.parametrize("words", ["--why --section 0", "--why --file response.md", "--why --raw"])
def test_show_why_goes_alone(filled: Panda, words: str) -> None:
    """An option that --why would pass over is refused; so is a section of another file than context.md."""
    assert filled("show", "1", *words.split()).code == 2
    assert filled("show", "1", "--section", "0", "--file", "response.md").code == 2


def test_show_no_turn(filled: Panda) -> None:
    """A turn that does not exist is an error that names it."""
    ended = filled("show", "3")
    assert (ended.code, ended.err.splitlines()[0]) == (2, "error: user default has no turn 3")


def test_import_again(filled: Panda) -> None:
    """Importing the same file again changes nothing and says so; a wrong line is named."""
    data = filled.json("import", "lines.jsonl")
    assert (data["created"], data["unchanged"]) == (0, 3)
    filled.write("wrong.jsonl", "\n{}\n")
    ended = filled("import", "wrong.jsonl")
    assert (ended.code, ended.err.splitlines()[1]) == (2, "where: wrong.jsonl:2 (user)")
    note = filled.write("bees.md", "# Bees\n\nColony 2 swarmed on 14 May.\n")
    ended = filled("import", str(note))
    assert ended.code == 2
    assert "notes are no turns: put them into users/USER/knowledge/" in ended.err


def test_validate_a_place(filled: Panda) -> None:
    """`validate PATH` checks only what lies there; a path that does not exist is an error."""
    ended = filled("validate", str(filled.turn_file(1, "")))
    assert (ended.code, ended.out, ended.err) == (0, "", "no problems found\n")
    assert filled("validate", "nowhere").code == 2
    ended = filled("validate", "77")
    assert (ended.code, "error: user default has no turn 77\n" in ended.err) == (2, True)
    assert "fix: `panda list` shows the turns" in ended.err


def test_validate_damaged(filled: Panda) -> None:
    """A damaged file ends with 3: one line on stdout with the place, and the number of problems on stderr."""
    context = filled.turn_file(1, "context.md")
    context.write_text(context.read_text("utf-8") + "\n## 5. Synthesis\n\nagain\n", encoding="utf-8")
    ended = filled("validate", str(filled.store / "users"))
    assert ended.code == 3
    assert ended.out.startswith(f"{context}:")
    assert ended.err.startswith("error: problems: 1, in files: 1\n")
    problems = filled("validate", str(context), "--json").data["problems"]
    assert [problem["path"] for problem in problems] == [str(context)]


def test_models_list(panda: Panda) -> None:
    """`models list` names each model with the layers it serves, without a store."""
    listed = panda.json("models", "list")
    (encoder,) = listed["models"]
    assert (listed["encoder"], encoder["embeds"], encoder["layers"]) == ("minilm-l6", True, ["encoder"])
    assert encoder["error"] is None


def test_models_list_says_what_is_asked_for(panda: Panda) -> None:
    """The layers of the packaged models.yaml are offline: the encoder makes all choices."""
    listed = panda.json("models", "list")
    assert listed["served_by"] == {
        "REFLEX": ["minilm-l6"],
        "NERVES": [],
        "MIND": ["minilm-l6"],
        "VOICE": ["minilm-l6"],
        "EYES": [],
    }
    (encoder,) = listed["models"]
    assert encoder["asked_for"].startswith("choices of recipes: MIND ")
    recipes = {recipe["recipe"]: recipe["served_by"] for recipe in panda.json("recipe", "list")["recipes"]}
    assert set(encoder["recipes"]) == {key for key, server in recipes.items() if server == "offline"}


def test_models_check(panda: Panda) -> None:
    """`models check` ends with 3 if a model cannot be loaded, and names it."""
    panda.write("broken.gguf", b"GGUF" + bytes(100))
    panda.write(
        "models.yaml",
        "models:\n  mine: {backend: llama_cpp, location: broken.gguf, n_ctx: 512}\n"
        "layers: {REFLEX: mine, NERVES: mine, MIND: mine, VOICE: mine, EYES: null}\nencoder: null\n",
    )
    ended = panda("models", "check", "--json")
    assert (ended.code, ended.error["message"]) == (3, "1 of 1 model cannot be used")
    (model,) = ended.data["models"]
    assert (model["name"], bool(model["error"])) == ("mine", True)


def test_models_of_a_list_of_servers(panda: Panda) -> None:
    """`models list` and `check` show each server of a list; a fleet of which one is dead ends with 3."""
    with closing(Server()) as alive:
        alive.answer = lambda _: reply('{"colour": "blue"}', usage={"completion_tokens": 50})
        urls = [alive.url, "http://127.0.0.1:9/v1"]
        keys = f"location: [{', '.join(urls)}], model: m, n_ctx: 4096, parallel: 4"
        models = f"models: {{m: {{backend: openai, {keys}}}}}\nlayers: {{MIND: m}}\nencoder: null\n"
        panda.write("models.yaml", models)
        (model,) = panda.json("models", "list")["models"]
        checked = panda("models", "check", "--json")
        rows = panda("models", "check").rows
    assert (model["location"], model["width"], model["error"]) == (urls, 8, None)
    message = "1 of 1 model cannot be used, or not on all of their servers"
    assert (checked.code, checked.error["message"]) == (3, message)
    first, second = checked.data["models"][0]["servers"]
    assert (first["location"], first["structured"], first["error"]) == (urls[0], "json_schema", None)
    assert (second["location"], second["structured"]) == (urls[1], None)
    assert "does not answer" in second["error"]
    assert [row.split("\t")[0] for row in rows] == ["m", "m"]


@pytest.mark.parametrize("words", [("validate", "9-3"), ("replay", "9-3")])
def test_a_range_that_runs_backwards(panda: Panda, words: tuple[str, ...]) -> None:
    """The error says how to write a range."""
    assert panda("init").code == 0
    ended = panda(*words)
    assert (ended.code, "fix: write 3-9" in ended.err) == (2, True), ended.err
