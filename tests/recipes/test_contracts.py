"""The contracts of steps are those of the code: what phases give, where replies take ids, what is decided."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from panda.steps import all_steps
from panda.steps.step_contract import StepContract
from tests.api import ROOT, Panda, ScriptedPanda


def read_registries() -> dict[str, Any]:
    """Return the entries of the registry of panda, with the recipes that its add-ons add to them."""
    paths = [ROOT / "recipes" / "registry.yaml", *(ROOT / "panda" / "addons").glob("*/recipes/registry.yaml")]
    steps: dict[str, Any] = {}
    for path in paths:
        for step, entry in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            steps.setdefault(step, entry)["recipes"].update(entry["recipes"])
    return steps


REGISTRY: Mapping[str, Any] = read_registries()
ASKERS = ("phases", "tools", "actions")
"""Packages whose modules ask steps."""
OPTIONS = re.compile(r"(?m)^===== Options: (\w+) =====$")


@pytest.fixture(scope="module")
def contracts(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, dict[str, Any]]:
    """Return what `panda recipe show` says of each packaged recipe, by its name."""
    panda = Panda(tmp_path_factory.mktemp("contracts") / "project")
    keys = [key for entry in REGISTRY.values() for key in entry["recipes"].values()]
    return {key: panda.json("recipe", "show", key) for key in keys}


def texts_by_module() -> Mapping[Path, set[str]]:
    """Return the strings and attributes of each module that may ask a step, and the steps that it asks."""
    files = [path for package in ASKERS for path in (ROOT / "panda" / package).glob("*.py")]
    contracts = {name: step.name for name, step in vars(all_steps).items() if isinstance(step, StepContract)}
    by_module: dict[Path, set[str]] = {}
    for path in files:
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        texts = {
            node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        texts |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}  # "reply.sources"
        used = {node.id for node in nodes if isinstance(node, ast.Name)}
        by_module[path] = texts | {contracts[name] for name in used & contracts.keys()}
    return by_module


def test_each_set_of_options_is_given_by_the_code_that_asks(contracts: Mapping[str, dict[str, Any]]) -> None:
    """The module that names a step names every set of options and document of its contract."""
    modules = texts_by_module()
    missing = []
    for step, entry in REGISTRY.items():
        if step.startswith("compress_"):
            continue
        contract = contracts[next(iter(entry["recipes"].values()))]["contract"]
        asking = [texts for texts in modules.values() if step in texts]
        assert asking, step
        texts = set[str]().union(*asking)
        missing += [f"{step}: {name}" for name in contract["option_sets"] if name not in texts]
    assert missing == []


def test_each_place_is_one_of_a_recipe_and_takes_a_set_that_is_given(
    contracts: Mapping[str, dict[str, Any]],
) -> None:
    """A place leads to a property of a packaged recipe of the step, and its set is among the options."""
    for step, entry in REGISTRY.items():
        recipes = [contracts[key] for key in entry["recipes"].values()]
        contract = recipes[0]["contract"]
        assert set(contract["places"].values()) <= set(contract["option_sets"]), step
        for place in contract["places"]:
            assert any(leads_to(recipe["output_schema"], place) for recipe in recipes), f"{step}: {place}"


def leads_to(schema: Mapping[str, Any], place: str) -> bool:
    """Return whether a place such as "items[].lines" is one of a schema."""
    for name in place.split("."):
        depth = name.count("[]")
        schema = schema.get("properties", {}).get(name.removesuffix("[]" * depth), {})
        for _ in range(depth):
            schema = schema.get("items", {})
    return bool(schema)


def test_what_is_offered_is_in_the_contract(
    ann: ScriptedPanda, contracts: Mapping[str, dict[str, Any]]
) -> None:
    """Every set of options that a model is shown in a turn is one of the contract of the step."""
    turn = ann.turn()
    assert len(turn.calls) == len(turn.prompts)
    offered = {
        (call["recipe"], name)
        for call, prompt in zip(turn.calls, turn.prompts, strict=True)
        for name in OPTIONS.findall(prompt.text)
    }
    assert ("pipeline/phase5_synthesizer_chat", "lines") in offered
    assert [
        (key, name) for key, name in sorted(offered) if name not in contracts[key]["contract"]["option_sets"]
    ] == []


def tools_of(recipe: str) -> set[str]:
    """Return the tools that a packaged recipe offers, also one of an add-on."""
    paths = [ROOT / "recipes", *(ROOT / "panda" / "addons").glob("*/recipes")]
    files = (path / f"{recipe}.yaml" for path in paths)
    (text,) = (file.read_text(encoding="utf-8") for file in files if file.exists())
    return set(yaml.safe_load(text)["tools_available"])


@pytest.mark.parametrize("mode", sorted(REGISTRY["phase3_planner"]["recipes"]))
def test_each_tool_that_is_planned_can_be_called(mode: str) -> None:
    """The coordinator of a mode may call every tool that its planner offers."""
    coordinators = REGISTRY["phase4_coordinator"]["recipes"]
    coordinator = coordinators.get(mode, coordinators["chat"])
    planned = tools_of(REGISTRY["phase3_planner"]["recipes"][mode])
    assert planned <= tools_of(coordinator), f"tools_available of {coordinator}.yaml lacks a tool"
