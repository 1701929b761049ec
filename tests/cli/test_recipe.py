"""recipe list, show, render and eject, and validate on recipes, run in this process."""

import re
from pathlib import Path

import pytest
import yaml

from tests.api import ROOT, Panda, ScriptedPanda, models_at
from tests.loopback import reply

PLANNER = "pipeline/phase3_planner_chat"
ANALYZER = "pipeline/phase0_query_analyzer"


@pytest.fixture
def panda(demo: Path, tmp_path: Path) -> Panda:
    """A project with a copy of the demo store."""
    return Panda(tmp_path / "project", demo, user="demo")


def packaged(key: str) -> str:
    """Text of a packaged recipe."""
    return (ROOT / "recipes" / f"{key}.yaml").read_text(encoding="utf-8")


def test_list(panda: Panda) -> None:
    """`recipe list` has a row a recipe: name, layer, mode, budgets, risk; --json file and step, too."""
    rows = [row.split("\t") for row in panda("recipe", "list").rows]
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    (row,) = [row for row in rows if row[0] == PLANNER]
    assert row[1:3] == ["MIND", "chat"]
    assert sum(int(part) for part in row[4:7]) <= int(row[3])
    assert (row[7], row[9]) == ("high", "offline")
    recipes = {recipe["recipe"]: recipe for recipe in panda.json("recipe", "list")["recipes"]}
    planner = recipes[PLANNER]
    assert (planner["step"], planner["token_budget"]["response_reserve"]) == ("phase3_planner", 0)
    assert Path(planner["path"]).is_file()


def test_a_broken_recipe_of_the_project(panda: Panda) -> None:
    """A broken recipe is a warning of the list, and shown instead of the packaged one."""
    panda.write(f"recipes/{PLANNER}.yaml", "name: [\n")
    ended = panda("recipe", "list")
    assert ended.code == 0
    assert PLANNER not in ended.out
    assert "pipeline/phase6_validator" in ended.out
    assert f"recipes/{PLANNER}.yaml" in ended.err
    printed = panda("recipe", "show", PLANNER)
    assert (printed.code, printed.out) == (0, "name: [\n")


def test_show(panda: Panda) -> None:
    """`recipe show` prints the file, then as comments the contract and what serves it; --json the values."""
    out = panda("recipe", "show", PLANNER).out
    assert out.startswith(packaged(PLANNER))
    assert yaml.safe_load(out) == yaml.safe_load(packaged(PLANNER))
    rows = dict(re.findall(r"(?m)^#   (.{15}) (.+)$", out.partition("\n# Contract\n")[2]))
    contract = {name.strip(): value for name, value in rows.items()}
    assert contract["step"] == "phase3_planner"
    assert contract["served by"] == "offline (MIND)"
    assert contract["ids at"] == "tools of tools"
    assert contract["needs"] == "next_step"
    assert "evidence" in contract["options"].split(", ")
    data = panda.json("recipe", "show", PLANNER)
    assert data["contract"]["required"] == ["next_step"]
    assert data["served_by"] == "offline"
    assert (data["mode"], data["quality_gates"]["max_retries"]) == ("chat", 2)
    assert data["output_schema"]["properties"]["next_step"]["enum"] == ["coordinator", "synthesis", "clarify"]


@pytest.mark.parametrize("command", ["show", "render"])
def test_unknown_recipe(panda: Panda, command: str) -> None:
    """An unknown name is an error that names the nearest recipe."""
    ended = panda("recipe", command, "phase3_planner_chat")
    assert (ended.code, ended.out) == (2, "")
    assert f"fix: did you mean {PLANNER}?" in ended.err


def test_render_without_turn(panda: Panda) -> None:
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
    assert panda("recipe", "render", PLANNER, "--turn", "5").code == 2


def test_render_turn(panda: Panda) -> None:
    """With --turn the documents are those of a saved turn, and only the sections that the recipe names."""
    words = ("recipe", "render", PLANNER, "--turn", "811")
    out = panda(*words).out
    gathered = out.partition("\n===== §2 Gathered Context =====\n")[2].partition("\n===== ")[0]
    assert "- budget: $500-800\n" in gathered
    assert "_meta" not in gathered
    assert "===== §5 Synthesis =====" not in out
    assert "User query: Compare RTX 4050 laptops" in out
    data = panda.json(*words)
    assert [message["role"] for message in data["messages"]] == ["system", "user"]
    assert 0 < data["prompt_tokens"] <= data["token_budget"]["prompt"]
    assert data["cuts"] == []


def test_render_all(panda: Panda) -> None:
    """Every packaged recipe can be rendered, with and without a turn."""
    for path in sorted((ROOT / "recipes/pipeline").glob("*.yaml")):
        for words in ((), ("--turn", "811")):
            assert panda("recipe", "render", f"pipeline/{path.stem}", *words).code == 0, path


TOLD = "of this schema, and nothing else"
"""Stands before a schema that is told in words."""


@pytest.mark.parametrize("dialect", ["json_schema", "json_object", "prompt"])
def test_render_shows_what_is_sent(ann: ScriptedPanda, dialect: str) -> None:
    """The schema stands at the end of the last message for a server that is told it in words."""
    ann.write("models.yaml", ann.server.models().replace("json_schema", dialect))
    data = ann.json("recipe", "render", ANALYZER)
    assert (data["model"], data["structured"]) == ("scripted", dialect)
    last = data["messages"][-1]["content"]
    assert (TOLD in last) is (dialect != "json_schema")
    sent = ann.turn().prompts[0].body
    assert sent.get("response_format", {}).get("type", "prompt") == dialect
    schema = sent["messages"][-1]["content"].partition(TOLD)[2]
    assert schema[-100:] == last.partition(TOLD)[2][-100:]


def test_render_knows_the_dialect_found_out(ann: ScriptedPanda, tmp_path: Path) -> None:
    """A dialect that was found out and remembered is the one that is shown."""
    ann.environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    ann.write("models.yaml", ann.server.models().replace(",\n    structured: json_schema", ""))
    ann.server.answer = lambda body: (400, b"no") if "response_format" in body else reply("{}")
    assert "by the first way that its server takes" in ann("recipe", "render", PLANNER).err
    ann("models", "check")
    assert "scripted is asked for JSON by prompt" in ann("recipe", "render", PLANNER).err


def test_render_cuts(panda: Panda) -> None:
    """Documents over the input budget are cut as they would be, and a warning says so."""
    panda.write(f"recipes/{PLANNER}.yaml", packaged(PLANNER).replace("input: 2000", "input: 150"))
    ended = panda("recipe", "render", PLANNER, "--turn", "811")
    assert "[…]" in ended.out
    assert "§2 Gathered Context is cut from" in ended.err
    data = panda.json("recipe", "render", PLANNER, "--turn", "811")
    assert 0 < data["input_tokens"] <= data["token_budget"]["input"] == 150


def test_validate_recipes(panda: Panda) -> None:
    """`validate` finds what is wrong with recipes in force, by file and key, or with one of them."""
    path = panda.write(f"recipes/{PLANNER}.yaml", packaged(PLANNER) + "qualty_gates: {}\n")
    ended = panda("validate")
    assert ended.code == 3
    pattern = rf"{path}:\d+ \(qualty_gates\): unknown key .qualty_gates.\n  fix: did you mean"
    assert re.search(pattern, ended.out)
    panda.write(f"recipes/{PLANNER}.yaml", packaged(PLANNER))
    panda.write("recipes/pipeline/phase6_validator.yaml", "x: [")
    assert panda("validate", str(path)).code == 0
    assert panda("validate", str(panda.home / "recipes")).code == 3


def test_a_recipe_is_ejected(panda: Panda) -> None:
    """Recipe and prompts come into the project as they are packaged; those that are never sent are named."""
    ended = panda("recipe", "eject", ANALYZER)
    assert ended.code == 0
    written = [Path(line) for line in ended.out.splitlines()]
    assert written[0] == panda.home / "recipes" / f"{ANALYZER}.yaml"
    for path in written:
        assert path.read_bytes() == (ROOT / path.relative_to(panda.home)).read_bytes()
    assert "never sent, since REFLEX is offline: " in ended.err
    assert f"{ANALYZER}.md" in ended.err
    again = panda("recipe", "eject", ANALYZER)
    assert (again.code, again.out) == (0, "nothing to write: the project has that version\n")


def test_a_prompt_that_is_never_sent_is_told(panda: Panda) -> None:
    """Validate names the project's prompts that are never sent, their layer being offline, as information."""
    path = panda.write(
        "prompts/pipeline/phase6_validator.md", (ROOT / "prompts/pipeline/phase6_validator.md").read_bytes()
    )
    ended = panda("validate")
    assert ended.code == 0
    assert f"{path}: information: no model is sent it: MIND is offline" in ended.out
    panda.write("models.yaml", models_at("http://127.0.0.1:9/v1"))
    ended = panda("validate")
    assert (ended.code, "is sent it" in ended.out) == (0, False)
