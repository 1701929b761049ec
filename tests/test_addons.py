"""Add-ons that are installed beside panda: what they add, and what happens where one is broken."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from tests.api import LAPTOPS, ROOT, ModelServer, Panda
from tests.installing import InstalledPanda, build, make_environment
from tests.script import Script

TOOL = "date.weekday"
MANIFEST = "from panda.addon_registry import Addon, CommandEntry\n"


@pytest.fixture(scope="module")
def example(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with panda and the add-on of docs/addons.md, built of the files that stand there."""
    source = tmp_path_factory.mktemp("example")
    text = (ROOT / "docs" / "addons.md").read_text(encoding="utf-8")
    files = re.findall(r"(?m)^`([\w./]+)`[^`]*(?:`[^`\n]+`[^`]*)*?```\w+\n(.*?)^```$", text, re.DOTALL | re.M)
    for name, content in files:
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(content, encoding="utf-8")
    assert {name for name, _ in files} == {
        "pyproject.toml",
        *(f"panda_weekday/{name}.py" for name in ("__init__", "command", "tools")),
    }
    addon = build(source, tmp_path_factory.mktemp("addon"), kind="wheel")
    return make_environment(tmp_path_factory.mktemp("with_addon") / "venv", [wheel, addon])


def test_the_command_of_the_example_stands_beside_those_of_panda(example: Path, tmp_path: Path) -> None:
    panda = InstalledPanda(tmp_path / "project", example, user="")
    assert "\n  weekday       Say on which weekday a date falls.\n" in panda.process("--help").out
    assert panda.process("weekday", "2026-01-04").out == "Sunday\n"
    wrong = panda.process("weekday", "tomorrow", "--json")
    assert (wrong.code, wrong.value["command"], wrong.error["where"]) == (2, "weekday", "DATE")


def test_the_tool_of_the_example_runs_by_hand(example: Path, tmp_path: Path) -> None:
    panda = InstalledPanda(tmp_path / "project", example, LAPTOPS, user="ann")
    assert TOOL in [tool["tool"] for tool in panda.data("tool", "list")["tools"]]
    ran = panda.data("tool", "run", TOOL, "--args", '{"date": "2026-01-04"}')
    assert ran["data"] == {"weekday": "Sunday"}
    assert [claim["source"] for claim in ran["claims"]] == ["calendar"]
    assert panda.process("tool", "run", TOOL, "--args", '{"date": "soon"}').code == 2


def test_a_plan_uses_the_tool_of_the_example_once_recipes_name_it(example: Path, tmp_path: Path) -> None:
    panda = InstalledPanda(tmp_path / "project", example, LAPTOPS, user="ann")
    for name in ("pipeline/phase3_planner_chat", "pipeline/phase4_coordinator_chat"):
        panda.data("recipe", "eject", name)
        path = panda.home / "recipes" / f"{name}.yaml"
        recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
        recipe["tools_available"].append(TOOL)
        path.write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")
    assert panda.process("validate").code == 0
    server = ModelServer(
        Script(
            planner={"tools": [TOOL], "next_step": "coordinator"},
            coordinator=[{"calls": [{"tool": TOOL, "arguments": {"date": "2026-01-04"}}]}, {"tool": "done"}],
        )
    )
    panda.write("models.yaml", server.models())
    try:
        turn = panda.data("turn", "On which weekday is 2026-01-04?")
    finally:
        server.close()
    (step,) = sorted((Path(turn["turn_dir"]) / "steps").iterdir())
    ran = json.loads(step.read_text(encoding="utf-8"))
    assert (ran["tool"], ran["status"], ran["data"]) == (TOOL, "success", {"weekday": "Sunday"})


def with_addon(panda: Panda, manifest: str) -> dict[str, str]:
    """Return the environment of a process in which an add-on `sketch` of such a manifest is installed."""
    panda.write("packages/sketch/__init__.py", MANIFEST + manifest)
    information = "packages/sketch-1.0.dist-info"
    panda.write(f"{information}/METADATA", "Metadata-Version: 2.1\nName: sketch\nVersion: 1.0\n")
    panda.write(f"{information}/entry_points.txt", "[panda.addons]\nsketch = sketch:ADDON\n")
    return {"PYTHONPATH": os.pathsep.join([str(panda.home / "packages"), panda.environ["PYTHONPATH"]])}


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("import a_module_that_is_not_there\n", "cannot be loaded: No module named"),
        ("", "cannot be loaded: module 'sketch' has no attribute 'ADDON'"),
        ("ADDON = {}\n", "is a dict, not an Addon"),
        ("ADDON = Addon(name='sketch', colour='red')\n", "cannot be loaded: Unexpected keyword argument"),
    ],
)
def test_a_broken_addon_is_named_and_stops_no_command(tmp_path: Path, manifest: str, message: str) -> None:
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    environ = with_addon(panda, manifest)
    helped = panda.process("--help", **environ)
    assert helped.code == 0
    text = " ".join(helped.out.split())
    assert f"the add-on sketch of sketch {message}" in text
    assert "pip uninstall sketch" in text
    turn = panda.process("turn", "What is my budget?", **environ)
    assert turn.code == 0, turn.err
    assert f"warning: sketch:ADDON: the add-on sketch of sketch {message}" in turn.err
    assert panda.process("export", "1-2", "--as", "queries", **environ).code == 0


@pytest.mark.parametrize("words", ["turn", "view"])
def test_an_addon_cannot_take_the_place_of_a_command(tmp_path: Path, words: str) -> None:
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    command = f"CommandEntry({words!r}, 'sketch:ADDON', 'Something else.')"
    environ = with_addon(panda, f"ADDON = Addon(name='sketch', commands=({command},))\n")
    helped = panda.process("--help", **environ)
    assert f"the add-on sketch adds `panda {words}`, which is there already" in " ".join(helped.out.split())
    assert "Something else." not in helped.out


def test_a_tool_that_is_there_already_is_left_out(tmp_path: Path) -> None:
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    environ = with_addon(panda, "ADDON = Addon(name='sketch', tools='panda.tools.web:WEB_TOOLS')\n")
    listed = panda.process("tool", "list", **environ)
    assert listed.code == 0
    assert "the add-on sketch adds 'web.fetch', which is there already" in listed.err
    assert listed.out.count("\nweb.fetch\t") == 1


PARTS = """
from typing import TypedDict
from msgspec import Struct
from panda.steps.step_contract import StepContract
from panda.store.records import ToolClaim
from panda.tools.tool_contract import Arguments, ToolContext, ToolResult, tool

class ColourReply(Struct, frozen=True):
    colour: str

COLOUR = StepContract(name="sketch_colour", reply=ColourReply, variables=("goal",), tool="sketch.colour")

class _Colour(TypedDict):
    colour: str

@tool("sketch.colour", "read", "Say which colour something has.", _Colour)
def find_colour(given: Arguments, context: ToolContext) -> ToolResult:
    reply = context.ask(COLOUR, variables={"goal": context.query})
    claim = ToolClaim(f"it is {reply.colour}", 1.0, "sketch")
    return ToolResult("success", data=_Colour(colour=reply.colour), claims=(claim,))

STEPS = (COLOUR,)
TOOLS = (find_colour,)
"""
RECIPE = """
name: sketch_colour
description: The colour of a thing
model_layer: MIND
token_budget: {total: 2000, prompt: 500, input: 800, output: 200}
system_prompt: Say which colour it has.
output_format: json
output_schema:
  type: object
  required: [colour]
  properties: {colour: {type: string}}
"""
REGISTRY = """
sketch_colour:
  recipes: {any: sketches/colour}
  purpose: which colour something has
  risk: low
"""


def test_a_tool_asks_the_recipe_that_its_addon_brings(tmp_path: Path) -> None:
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    targets = "tools='sketch.parts:TOOLS', steps='sketch.parts:STEPS'"
    directory = "recipe_directory=Path(__file__).parent / 'recipes'"
    manifest = f"from pathlib import Path\nADDON = Addon(name='sketch', {targets}, {directory})\n"
    environ = with_addon(panda, manifest)
    panda.write("packages/sketch/parts.py", PARTS)
    panda.write("packages/sketch/recipes/sketches/colour.yaml", RECIPE)
    panda.write("packages/sketch/recipes/registry.yaml", REGISTRY)
    listed = panda.process("recipe", "list", **environ)
    assert "which colour something has" in listed.out
    assert panda.process("validate", **environ).code == 0
    server = ModelServer(lambda asked: '{"colour": "blue"}')
    panda.write("models.yaml", server.models())
    try:
        words = ("tool", "run", "sketch.colour", "--query", "the bicycle", "--json")
        ran = panda.process(*words, **environ)
    finally:
        server.close()
    assert ran.data["data"] == {"colour": "blue"}
    assert "Say which colour it has." in str(server.asked[-1])
