"""recipe list, show and render, and validate on recipes, run in this process."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from panda.cli.main import build_program
from panda.models.contract import GenerateParams, Message
from panda.store.layout import asset
from tests.cli.programs import Ended, run_words
from tests.loopback import reply
from tests.models.conftest import Server

PLANNER = "pipeline/phase3_planner_chat"


class Project:
    """Runs commands in a project directory of its own."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.capsys = capsys
        self("init", "--demo")

    def __call__(self, *words: str) -> Ended:
        words = (*words, "--root", str(self.root / "store"))
        environ = {"PANDA_NOW": "2026-01-05T00:00:00Z", "XDG_CACHE_HOME": str(self.root / "cache")}
        return run_words(build_program(), words, self.capsys, environ)

    def write(self, name: str, text: str) -> Path:
        """Put a file into the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def panda(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    """Commands in a project with a copy of the demo store."""
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, capsys)


@pytest.fixture
def server() -> Iterator[Server]:
    """A model server on loopback."""
    running = Server()
    yield running
    running.close()


def packaged(key: str) -> str:
    """Text of a packaged recipe."""
    return (asset("recipes") / f"{key}.yaml").read_text(encoding="utf-8")


def test_list(panda: Project) -> None:
    """`recipe list` has a row a recipe: name, layer, mode, budgets, risk and purpose."""
    rows = [line.split("\t") for line in panda("recipe", "list").rows]
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    (row,) = [row for row in rows if row[0] == PLANNER]
    assert row[1:3] == ["MIND", "chat"]
    assert sum(int(part) for part in row[4:7]) <= int(row[3])
    assert (row[7], row[9]) == ("high", "encoder + encoder head")


def test_list_data(panda: Project) -> None:
    """--json says which file and step it is, too."""
    recipes = panda("recipe", "list", "--json").value["data"]["recipes"]
    (found,) = [recipe for recipe in recipes if recipe["recipe"] == PLANNER]
    assert (found["step"], found["token_budget"]["response_reserve"]) == ("phase3_planner", 0)
    assert Path(found["path"]).is_file()


def test_list_with_a_broken_recipe(panda: Project) -> None:
    """A broken recipe is a warning, and the others are listed."""
    panda.write(f"recipes/{PLANNER}.yaml", "name: [")
    ended = panda("recipe", "list")
    assert ended.code == 0
    assert PLANNER not in ended.out
    assert "pipeline/phase6_validator" in ended.out
    assert f"recipes/{PLANNER}.yaml" in ended.err


def test_show(panda: Project) -> None:
    """`recipe show` prints the file, then as comments how each kind of model is asked; --json the values."""
    out = panda("recipe", "show", PLANNER).out
    assert out.startswith(packaged(PLANNER))
    assert yaml.safe_load(out) == yaml.safe_load(packaged(PLANNER))
    assert "# A model that writes and scores:\n" in out
    assert "#   next_step         written, its probability is the confidence\n" in out
    data = panda("recipe", "show", PLANNER, "--json").value["data"]
    assert (data["mode"], data["quality_gates"]["max_retries"]) == ("chat", 2)
    assert data["output_schema"]["properties"]["next_step"]["enum"] == ["coordinator", "synthesis", "clarify"]


def test_show_own(panda: Project) -> None:
    """A project's own recipe is shown instead of the packaged one, even if it is broken."""
    panda.write(f"recipes/{PLANNER}.yaml", "name: [\n")
    ended = panda("recipe", "show", PLANNER)
    assert (ended.code, ended.out) == (0, "name: [\n")


@pytest.mark.parametrize("command", ["show", "render"])
def test_unknown_recipe(panda: Project, command: str) -> None:
    """An unknown name is an error that names the nearest recipe."""
    ended = panda("recipe", command, "phase3_planner_chat")
    assert (ended.code, ended.out) == (2, "")
    assert f"fix: did you mean {PLANNER}?" in ended.err


def test_render_without_turn(panda: Project) -> None:
    """`recipe render` shows the messages with placeholders, and their size against the budget on stderr."""
    ended = panda("recipe", "render", PLANNER)
    assert ended.code == 0
    assert ended.out.startswith("===== system =====\n")
    for part in (
        "<section 2 of context.md>",
        "User query: <query>",
        "<options of pages, given by the phase>",
    ):
        assert part in ended.out
    assert ended.err.startswith("prompt: ")
    assert "of 1540 tokens" in ended.err


def test_render_turn(panda: Project) -> None:
    """With --turn the documents are those of a saved turn."""
    words = ["recipe", "render", PLANNER, "--turn", "811", "--user", "demo"]
    ended = panda(*words)
    assert "## 2. Gathered Context" in ended.out
    assert "User query: Compare RTX 4050 laptops" in ended.out
    data = panda(*words, "--json").value["data"]
    assert [message["role"] for message in data["messages"]] == ["system", "user"]
    assert 0 < data["prompt_tokens"] <= data["token_budget"]["prompt"]
    assert data["cuts"] == []


@pytest.mark.parametrize("path", sorted((asset("recipes") / "pipeline").glob("*.yaml")), ids=lambda p: p.stem)
def test_render_all(panda: Project, path: Path) -> None:
    """Every packaged recipe can be rendered, with and without a turn."""
    name = f"pipeline/{path.stem}"
    assert panda("recipe", "render", name).code == 0
    assert panda("recipe", "render", name, "--turn", "811", "--user", "demo").code == 0


MODELS = """\
models:
  served: {{backend: openai, location: "{url}/v1", model: m, n_ctx: 16384, writes: true{more}}}
layers: {{REFLEX: served, NERVES: served, MIND: served, VOICE: served}}
encoder: null
"""


def rendered(panda: Project, dialect: str) -> dict[str, Any]:
    """What `recipe render --json` gives for a server of a dialect."""
    panda.write("models.yaml", MODELS.format(url="http://127.0.0.1:1", more=f", structured: {dialect}"))
    data: dict[str, Any] = panda("recipe", "render", PLANNER, "--trust", "--json").value["data"]
    return data


@pytest.mark.parametrize("dialect", ["json_schema", "json_object", "prompt"])
def test_render_shows_what_is_sent(panda: Project, server: Server, dialect: str) -> None:
    """The messages are those that the server gets: with the schema at their end where it is told in words."""
    plain, data = rendered(panda, "json_schema"), rendered(panda, dialect)
    assert (data["model"], data["structured"]) == ("served", dialect)
    messages = [Message(one["role"], one["content"]) for one in plain["messages"]]
    server.answer = lambda _: reply("{}")
    model = server.model(structured=dialect, n_ctx=16384)
    model.generate(messages, GenerateParams(0.0, 10, 1, 30, data["schema"]))
    (sent,) = server.asked
    assert sent["messages"] == data["messages"]
    assert sent.get("response_format", {}).get("type", "prompt") == dialect
    assert ("of this schema, and nothing else" in data["messages"][-1]["content"]) is (
        dialect != "json_schema"
    )


def test_render_knows_the_dialect_found_out(panda: Project, server: Server) -> None:
    """A dialect that was found out and remembered is the one that is shown."""
    panda.write("models.yaml", MODELS.format(url=server.url.removesuffix("/v1"), more=""))
    server.answer = lambda body: (400, b"no") if "response_format" in body else reply("{}")
    assert "by the first way that its server takes" in panda("recipe", "render", PLANNER, "--trust").err
    panda("models", "check", "--trust")
    ended = panda("recipe", "render", PLANNER, "--trust")
    assert "served is asked for JSON by prompt" in ended.err


def test_render_unknown_turn(panda: Project) -> None:
    """A turn that does not exist is an error."""
    assert panda("recipe", "render", PLANNER, "--turn", "5", "--user", "demo").code == 2


def test_render_cuts(panda: Project) -> None:
    """Documents over the input budget are cut as they would be, and a warning says so."""
    panda.write(f"recipes/{PLANNER}.yaml", packaged(PLANNER).replace("input: 2000", "input: 300"))
    ended = panda("recipe", "render", PLANNER, "--turn", "811", "--user", "demo")
    assert "[…]" in ended.out
    assert "§2 Gathered Context is cut from" in ended.err


def test_validate_recipes(panda: Project) -> None:
    """`validate` finds what is wrong with recipes in force, by file and key, and ends with 3."""
    path = panda.write(f"recipes/{PLANNER}.yaml", packaged(PLANNER) + "qualty_gates: {}\n")
    ended = panda("validate")
    assert ended.code == 3
    assert re.search(
        rf"{path}:\d+ \(qualty_gates\): unknown key .qualty_gates.\n  fix: did you mean", ended.out
    )


def test_validate_one_recipe(panda: Project) -> None:
    """`validate PATH` of one recipe leaves the others out."""
    path = panda.write(f"recipes/{PLANNER}.yaml", packaged(PLANNER))
    panda.write("recipes/pipeline/phase6_validator.yaml", "x: [")
    assert panda("validate", str(path)).code == 0
    assert panda("validate", str(panda.root / "recipes")).code == 3


def test_a_recipe_is_ejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Recipe and prompts come into the project as they are packaged; those that are never sent are named."""
    monkeypatch.chdir(tmp_path)
    name = "pipeline/phase0_query_analyzer"
    ended = run_words(build_program(), ["recipe", "eject", name], capsys)
    assert ended.code == 0
    written = [Path(line) for line in ended.out.splitlines()]
    assert written[0] == tmp_path / "recipes" / f"{name}.yaml"
    for path in written[1:]:
        assert path.read_bytes() == (asset("prompts") / path.relative_to(tmp_path / "prompts")).read_bytes()
    assert "never sent, since the model of REFLEX only chooses: " in ended.err
    assert "pipeline/phase0_query_analyzer.md" in ended.err
    again = run_words(build_program(), ["recipe", "eject", name], capsys)
    assert (again.code, again.out) == (0, "nothing to write: the project has that version\n")


def test_a_prompt_that_is_never_sent_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """validate names the project's prompts that the models which are set never see, as information."""
    monkeypatch.chdir(tmp_path)
    run_words(build_program(), ["init"], capsys)
    for name, is_sent in (("phase6_validator.md", False), ("phase4_code_tools.md", True)):
        path = tmp_path / "prompts" / "pipeline" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((asset("prompts") / "pipeline" / name).read_bytes())
        ended = run_words(build_program(), ["validate"], capsys)
        assert ended.code == 0
        assert (f"{path}: information: no model that is set is ever sent it" in ended.out) is not is_sent
    model = "{backend: openai, location: 'http://127.0.0.1:9/v1', model: m, n_ctx: 8192, writes: true}"
    layers = ", ".join(f"{layer}: one" for layer in ("REFLEX", "NERVES", "MIND", "VOICE"))
    (tmp_path / "models.yaml").write_text(f"models:\n  one: {model}\nlayers: {{{layers}}}\n")
    ended = run_words(build_program(), ["validate", "--trust"], capsys)
    assert (ended.code, "ever sent" in ended.out) == (0, False)
