"""Recipes, prompts and registry of a project: validate names each fault, and no turn begins with it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api import LAPTOPS, ROOT, VAGUE_QUESTION, Panda, ScriptedPanda, models_at, tree

REFLECTION = "pipeline/phase1_reflection"
TEXT = {"type": "string"}
BUDGET = {"total": 1000, "prompt": 300, "input": 500, "output": 100}
RECIPE: Mapping[str, Any] = {
    "description": "Judges.",
    "model_layer": "MIND",
    "token_budget": BUDGET,
    "prompt_files": ["tests/judge.md"],
    "output_format": "json",
    "output_schema": {
        "type": "object",
        "additionalProperties": False,
        "required": ["verdict", "why"],
        "properties": {"why": TEXT, "verdict": {"enum": ["yes", "no"]}},
    },
}
"""A recipe that is right, but for its name."""
Faults = list[dict[str, Any]]


class Project(Panda):
    """A project that may hide packaged recipes by its own, with a server as its model."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, LAPTOPS, user="ann")
        self.write("models.yaml", models_at("http://127.0.0.1:9/v1"))
        self.write("prompts/tests/judge.md", "You judge.\n\n# Task\nJudge.")

    def write_recipe(self, key: str, **changes: object) -> Path:
        """Write a recipe of its own; a key that is changed to None is left out."""
        return self.write_values(key, {"name": key.replace("/", "_"), **RECIPE, **changes})

    def change(self, key: str, **changes: object) -> Path:
        """Hide a packaged recipe by a changed one; a key that is changed to None is left out."""
        return self.write_values(key, {**packaged(key), **changes})

    def write_values(self, key: str, values: Mapping[str, Any]) -> Path:
        """Write a recipe with the values that are not None."""
        whole = {name: value for name, value in values.items() if value is not None}
        return self.write(f"recipes/{key}.yaml", json.dumps(whole, indent=1, ensure_ascii=False))

    def faults(self, *places: str) -> Faults:
        """Return what validate finds in recipes, prompts, registry and models, in its order."""
        ended = self("validate", *(places or ("recipes",)), "--json")
        assert ended.code in (0, 3), ended.out
        faults: Faults = ended.data["problems"]
        return faults


def packaged(key: str) -> dict[str, Any]:
    """The values of a packaged recipe, or of the registry."""
    values: dict[str, Any] = yaml.safe_load((ROOT / "recipes" / f"{key}.yaml").read_text(encoding="utf-8"))
    return values


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project without recipes of its own."""
    return Project(tmp_path / "project")


def schema(**properties: object) -> dict[str, Any]:
    """Changes of a recipe: an output schema with these properties alone."""
    return {"output_schema": {"type": "object", "required": list(properties), "properties": properties}}


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"quality_gate": {}}, "quality_gate", "unknown key"),
    ({"name": ""}, "name", "must be a text"),
    ({"description": None}, "description", "missing"),
    ({"model_layer": "mind"}, "model_layer", "'mind'"),
    ({"model_layer": ["MIND"]}, "model_layer", "['MIND']"),
    ({"system_prompt": "x"}, "system_prompt, prompt_files", "either"),
    ({"prompt_files": None}, "system_prompt, prompt_files", "either"),
    ({"prompt_files": "tests/judge.md"}, "prompt_files", "a list of texts"),
    ({"prompt_files": ["tests/gone.md"]}, "prompt_files", "tests/gone.md"),
    ({"prompt_files": [""]}, "prompt_files", "is not there"),
    ({"prompt_files": ["tests"]}, "prompt_files", "is not there"),
    ({"prompt_files": ["x" * 5000]}, "prompt_files", "is not there"),
    ({"prompt_files": ["../models.yaml"]}, "prompt_files", "leads out of prompts/"),
    ({"prompt_files": ["tests/../../models.yaml"]}, "prompt_files", "leads out of prompts/"),
    ({"prompt_files": ["/etc/hostname"]}, "prompt_files", "leads out of prompts/"),
    ({"prompt_files": ["prompts//etc/hostname"]}, "prompt_files", "leads out of prompts/"),
    ({"prompt_files": ["a\0b"]}, "prompt_files", "leads out of prompts/"),
    ({"prompt_files": ["tests/out.md"]}, "prompt_files", "is a link that leads out of prompts/"),
    ({"prompt_files": ["linked/models.yaml"]}, "prompt_files", "is a link that leads out of prompts/"),
    ({"token_budget": 7}, "token_budget", "a mapping"),
    ({"token_budget": {**BUDGET, "prompt": "x"}}, "token_budget.prompt", "a whole number"),
    ({"token_budget": {**BUDGET, "prompt": -1}}, "token_budget.prompt", "a whole number"),
    ({"token_budget": {**BUDGET, "outptu": 1}}, "token_budget.outptu", "unknown key"),
    ({"token_budget": {**BUDGET, "response_reserve": 250}}, "token_budget", "1150 tokens, 150 more"),
    ({"token_budget": {**BUDGET, "prompt": 10}}, "token_budget.prompt", "more than the prompt budget of 10"),
    (
        {"token_budget": {"total": 90_000, "prompt": 600, "input": 0, "output": 40_000}},
        "token_budget",
        "more than the window of 32768",
    ),
    ({"output_format": "xml"}, "output_format", "'xml'"),
    ({"output_format": "markdown"}, "output_format", "'verdict' is to be chosen"),
    ({"output_schema": []}, "output_schema", "a mapping"),
    ({"output_schema": None}, "output_schema", "needs an output_schema"),
    ({"mode": 0}, "mode", "mode is 0"),
    ({"temperature": 3}, "temperature", "a number from 0 to 2"),
    ({"temperature": True}, "temperature", "a number from 0 to 2"),
    ({"input_sections": ["§9"]}, "input_sections[0]", "'§9'"),
    ({"quality_gates": {"max_retries": 1.5}}, "quality_gates.max_retries", "a whole number"),
    ({"quality_gates": {"timeout_ms": 0}}, "quality_gates.timeout_ms", "at least 1"),
    ({"quality_gates": {"schema_validation": "yes"}}, "quality_gates.schema_validation", "true or false"),
    ({"quality_gates": {"below_threshold": "stop"}}, "quality_gates.below_threshold", "'stop'"),
    ({"compression": {"model_layer": "X"}}, "compression.model_layer", "'X'"),
    ({"variables": {"a": 1}}, "variables.a", "must be a text"),
    ({"templates": {}}, "templates", "templates are not read any more"),
    ({"tools_available": ["doc.serach"]}, "tools_available", "'doc.serach'"),
    (schema(a={"not": {}}), "output_schema", '"not"'),
    (schema(a={"type": "strng"}), "output_schema.properties.a.type", "Invalid enum value 'strng'"),
    (schema(a={"type": "string", "pattern": "(?=a)"}), "output_schema.properties.a.pattern", "linear time"),
    *(
        (schema(a={"type": "array", key: value}), f"output_schema.properties.a.{key}", "not read any more")
        for key, value in (
            ("x-options", "spans"),
            ("x-from", "lines"),
            ("x-many", {"max": 1}),
            ("x-decide", []),
            ("x-written", ["b"]),
            ("x-lenient", True),
            ("x-arguments", "tool"),
        )
    ),
    (schema(a={"anyOf": [{"x-decide": []}]}), "output_schema.properties.a.anyOf.x-decide", "not read"),
    (schema(a={"enum": "x"}), "output_schema.properties.a.enum", "enum is not valid"),
    (schema(a=[]), "output_schema.properties.a", "a schema is a mapping"),
    ({"output_schema": {"properties": {}, "required": ["x"]}}, "output_schema.required", "'x' is no"),
]  # fmt: skip
"""Faults that are seen in a recipe whatever asks it: changes, the key that is named, part of the message."""

NO_RECIPES = [
    "",
    "[]",
    "3",
    "null",
    "text",
    "a: [",
    "a: &a [*a]",
    "\ufeff",
    "name: 1\n" * 2,
    "[" * 9999,
    "1: 2",
]


@pytest.fixture(scope="module")
def wrong_faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Faults]:
    """Return what validate finds in a project with all of WRONG and NO_RECIPES, by name of the recipe."""
    project = Project(tmp_path_factory.mktemp("wrong") / "project")
    (project.home / "prompts/tests/out.md").symlink_to(project.home / "models.yaml")
    (project.home / "prompts/linked").symlink_to(project.home)
    for number, (changes, _, _) in enumerate(WRONG):
        project.write_recipe(f"wrong/case{number}", **changes)
    for number, text in enumerate(NO_RECIPES):
        project.write(f"recipes/wrong/none{number}.yaml", text)
    by_name: dict[str, Faults] = {}
    for fault in project.faults():
        by_name.setdefault(Path(fault["path"]).stem, []).append(fault)
    return by_name


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_fault_is_named_by_its_key(number: int, wrong_faults: dict[str, Faults]) -> None:
    """A broken recipe is a problem with its key, what is wrong, and what to do."""
    _, key, message = WRONG[number]
    faults = [fault for fault in wrong_faults[f"case{number}"] if fault["key"] == key]
    assert any(message in fault["message"] for fault in faults), wrong_faults[f"case{number}"]
    assert all(fault["fix"] for fault in faults)


@pytest.mark.parametrize("key", ["templates", "x-options", "x-many", "x-decide", "x-lenient"])
def test_a_key_that_is_not_read_any_more_is_named_with_line_and_fix(project: Project, key: str) -> None:
    """
    A key that earlier versions read is an error of its line; the fix names the command that tells what holds.
    """
    text = (ROOT / f"recipes/{REFLECTION}.yaml").read_text(encoding="utf-8")
    if key == "templates":
        text += "templates: {}\n"
    else:
        assert "    decision:\n" in text
        text = text.replace("    decision:\n", f"    decision:\n      {key}: []\n")
    path = project.write(f"recipes/{REFLECTION}.yaml", text)
    (fault,) = project.faults(str(path))
    assert text.splitlines()[fault["line"] - 1].strip().startswith(f"{key}:")
    assert f"panda recipe show {REFLECTION}" in fault["fix"]
    ended = project.turn("Which tea?")
    assert (ended.code, ended.error["where"]) == (2, f"{path}:{fault['line']} ({fault['key']})"), ended.out


def test_a_file_that_is_no_recipe_is_named(wrong_faults: dict[str, Faults]) -> None:
    """Whatever a file holds, it is a problem of that file and nothing else."""
    assert [number for number in range(len(NO_RECIPES)) if not wrong_faults.get(f"none{number}")] == []


def test_a_recipe_may_leave_out_what_has_a_default(project: Project) -> None:
    """Keys that a recipe leaves out have the documented defaults; the temperature is the layer's."""
    project.write_recipe("tests/judge")
    recipe = project.json("recipe", "show", "tests/judge")
    assert (recipe["temperature"], recipe["mode"], recipe["token_budget"]["response_reserve"]) == (
        0.5,
        None,
        0,
    )
    gates = recipe["quality_gates"]
    assert (gates["max_retries"], gates["timeout_ms"], gates["below_threshold"]) == (2, 300_000, "proceed")
    assert recipe["compression"]["model_layer"] == "NERVES"


def test_every_key_of_a_recipe_is_read(project: Project) -> None:
    """All keys of the schema come out of `recipe show` as they were written."""
    values = {
        "input_sections": ["§0", "§2"],
        "input_docs": ["context.md", "plan.json"],
        "variables": {"tone": "{{mode}}"},
        "quality_gates": {"confidence_threshold": 0.7, "below_threshold": "halt", "evidence_required": True},
        "compression": {"enabled": False, "preserve": ["section_0", "tool_errors"]},
        "mode": "code",
        "tools_available": ["doc.search"],
        "temperature": 0,
        "examples": ["{}"],
    }
    project.write_recipe("tests/judge", **values)
    recipe = project.json("recipe", "show", "tests/judge")
    for name, value in values.items():
        if isinstance(value, dict):
            assert {key: recipe[name][key] for key in value} == value
        elif name != "input_sections":
            assert recipe[name] == value
    assert [str(section).strip("§") for section in recipe["input_sections"]] == ["0", "2"]


def test_parts_over_the_total_are_named_with_their_line(project: Project) -> None:
    """A budget whose parts are over its total is named with both numbers, file and line."""
    path = project.write_recipe("tests/judge", token_budget={**BUDGET, "response_reserve": 250})
    ended = project("validate", str(path))
    line = path.read_text(encoding="utf-8").partition('"token_budget"')[0].count("\n") + 1
    assert f"{path}:{line} (token_budget): " in ended.out
    assert "1150 tokens, 150 more than its total of 1000" in " ".join(ended.out.split())


MAPPED: list[tuple[str, dict[str, Any], str, str]] = [
    (REFLECTION, {"input_docs": ["plan.jsn"]}, "input_docs", "'plan.jsn'"),
    (
        REFLECTION,
        {"prompt_files": ["tests/judge.md"], "variables": {"a": "{{b}}"}},
        "variables.a",
        "{{b}}",
    ),
    (REFLECTION, {"prompt_files": None, "system_prompt": "{{mod}}"}, "system_prompt", "{{mod}}"),
    (REFLECTION, {"prompt_files": None, "system_prompt": "{{ mode }}"}, "system_prompt", "{{ mode }}"),
    (
        "pipeline/phase7_summarizer",
        {"quality_gates": {"below_threshold": "clarify"}},
        "quality_gates.below_threshold",
        "cannot ask the user back",
    ),
    (REFLECTION, schema(question=TEXT), "output_schema", "decision"),
    (REFLECTION, {"output_format": "text"}, "output_format", ""),
    ("pipeline/phase6_validator", schema(reason=TEXT), "output_schema", "verdict"),
    (
        "pipeline/phase5_synthesizer_chat",
        {"output_schema": {"type": "object", "required": []}},
        "output_schema",
        "",
    ),
    *(
        (key, {"output_schema": {"properties": {name: {"enum": [*values, "MAYBE"]}}}}, name, "'MAYBE'")
        for key, name, values in (
            (REFLECTION, "decision", ("PROCEED", "CLARIFY")),
            ("pipeline/phase2_5_context_validator", "verdict", ("pass", "retry", "clarify")),
            ("pipeline/phase3_planner_chat", "next_step", ("coordinator", "synthesis", "clarify")),
            ("pipeline/phase3_planner_chat", "question_kind", ("question", "proposal")),
            ("pipeline/phase6_validator", "verdict", ("APPROVE", "REVISE", "RETRY", "FAIL")),
        )
    ),
]  # fmt: skip
"""Faults that are seen by what the phase gives and reads: recipe, changes, the key that is named, message."""


@pytest.mark.parametrize(("recipe", "changes", "key", "message"), MAPPED)
def test_a_recipe_fits_its_phase(
    project: Project, recipe: str, changes: dict[str, Any], key: str, message: str
) -> None:
    """A recipe that asks for what its phase does not give, or lacks what it reads, is named."""
    path = project.change(recipe, **changes)
    faults = [fault for fault in project.faults(str(path)) if key in fault["key"]]
    assert any(message in fault["message"] for fault in faults)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"quality_gate": {}}, "RecipeKeyError"),
        ({"token_budget": {**BUDGET, "prompt": 600, "output": 400}}, "RecipeBudgetError"),
        ({"prompt_files": ["tests/gone.md"]}, "PromptNotFoundError"),
        (schema(question=TEXT, decision={"not": {}}), "RecipeSchemaError"),
        ({"input_docs": ["plan.jsn"]}, "RecipeKeyError"),
    ],
)
def test_a_fault_stops_a_turn_before_it_begins(project: Project, changes: dict[str, Any], kind: str) -> None:
    """These faults end a turn with 2, the recipe's file and an intervention; no number is taken."""
    path = project.change(REFLECTION, **changes)
    before = tree(project.user_directory)
    ended = project.turn("Which tea?")
    assert (ended.code, ended.error["type"]) == (2, kind), ended.out
    assert ended.error["where"].startswith(str(path))
    assert tree(project.user_directory) == before
    assert len(ended.interventions) == 1


def test_what_no_offline_reply_has_stops_a_turn_before_it_begins(tmp_path: Path) -> None:
    """A recipe that requires what its contract does not know needs a language model: the fix says so."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    values = packaged(REFLECTION)
    values["output_schema"]["properties"]["mood"] = {"type": "string", "maxLength": 40}
    path = panda.write(f"recipes/{REFLECTION}.yaml", yaml.safe_dump(values))
    assert panda.turn("Which tea?").code in (0, 22)
    values["output_schema"]["required"] += ["mood"]
    path = panda.write(f"recipes/{REFLECTION}.yaml", yaml.safe_dump(values))
    before = tree(panda.user_directory)
    ended = panda.turn("Which tea?")
    assert (ended.code, ended.error["type"]) == (2, "RecipeKeyError"), ended.out
    assert ended.error["where"].startswith(str(path))
    assert "'mood'" in ended.error["message"]
    assert "give REFLEX a model in models.yaml" in ended.error["fix"]
    assert tree(panda.user_directory) == before
    assert panda("validate", "recipes").code == 3
    panda.write("models.yaml", models_at("http://127.0.0.1:9/v1"))
    assert panda("validate", "recipes").code == 0


def test_a_window_that_is_too_small_stops_a_turn(project: Project) -> None:
    """A model whose window a recipe does not fit is an error before a turn."""
    project.write("models.yaml", models_at("http://127.0.0.1:9/v1").replace("32768", "1500"))
    ended = project.turn("Which tea?")
    assert (ended.code, ended.error["type"]) == (2, "RecipeBudgetError")
    assert "window of 1500" in ended.error["message"]


def test_all_faults_of_all_files_are_told(project: Project) -> None:
    """All problems of all files are reported, by file; those of models.yaml too."""
    assert project("validate").code == 0
    project.change(REFLECTION, tools_available=["x", "y"], temperature=1)
    project.change("pipeline/phase6_validator", prompt_files=["a.md", "b.md"])
    project.write("models.yaml", "models: {}\nlayers: {MIND: gone}\n")
    faults = [(Path(fault["path"]).stem, fault["key"]) for fault in project.faults(".")]
    assert faults == [
        ("models", "layers.MIND"),
        ("phase1_reflection", "tools_available"),
        ("phase1_reflection", "tools_available"),
        ("phase6_validator", "prompt_files"),
        ("phase6_validator", "prompt_files"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\n\tb: 2", 2, "not valid YAML"),
        ("a: 1\na: 2", 2, "the key 'a' stands in line 1 and again in line 2"),
        ("a: &x [1]\nb: *x", 2, "alias"),
        ("? [a]\n: b", 1, "is no text"),
        ("a: 1\n---\nb: 2", 2, "a second document"),
        ("a: !!python/object:os.system x", 1, "the tag"),
        ("a: !!bool x", 1, "the tag"),
        ("a: !!binary aGk=", 1, "the tag"),
        ("a: 1e999", 1, "not a finite number"),
        ("[" * 101 + "]" * 101, 1, "nested too deeply"),
        ("[" * 100_000, 1, "nested too deeply"),
        ("a: " + "9" * 5000, 1, "too large"),
        (b"a: 1\nb: \xff", 2, "not UTF-8"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_yaml_that_is_broken_or_clever_is_named_by_its_line(
    project: Project, text: str | bytes, line: int, message: str
) -> None:
    """YAML that is broken, clever or endless is one error with its line, and stops a turn."""
    path = project.write(f"recipes/{REFLECTION}.yaml", text)
    ended = project.turn("Which tea?")
    assert (ended.code, ended.error["where"]) == (2, f"{path}:{line}")
    assert message in ended.error["message"]


@pytest.mark.parametrize(
    "place",
    [
        *sorted(packaged(REFLECTION)),
        *("output_schema/properties", "output_schema/required", "output_schema/type"),
        *(f"output_schema/properties/decision{key}" for key in ("", "/enum", "/x-options", "/type")),
    ],
)
def test_whatever_stands_under_a_key_checking_ends(project: Project, place: str) -> None:
    """Any value under any key ends with problems of that file and nothing else."""
    values = packaged(REFLECTION)
    wrong: tuple[object, ...] = (None, -1, [1], {"a": {"b": []}})
    for value in wrong:
        *parents, key = place.split("/")
        part = values
        for name in parents:
            part = part[name]
        part[key] = value
        path = project.write(f"recipes/{REFLECTION}.yaml", yaml.safe_dump(values))
        assert {fault["path"] for fault in project.faults(str(path))} <= {str(path)}


ENTRY = {"recipes": {"any": REFLECTION}, "purpose": "x", "risk": "low"}


@pytest.mark.parametrize(
    ("step", "entry", "key", "message"),
    [
        ("phase9", ENTRY, "phase9", "no step phase9"),
        ("phase1_reflection", {**ENTRY, "recipes": {"any": "a/b"}}, "phase1_reflection.recipes.any", "a/b"),
        ("phase1_reflection", {**ENTRY, "recipes": {"any": "../b"}}, "phase1_reflection.recipes.any", ""),
        ("phase1_reflection", {**ENTRY, "recipes": {"any": ["a"]}}, "phase1_reflection.recipes.any", ""),
        ("phase1_reflection", {**ENTRY, "recipes": {"talk": "a/b"}}, "phase1_reflection.recipes.talk", ""),
        (
            "phase1_reflection",
            {**ENTRY, "recipes": {"code": REFLECTION}},
            "phase1_reflection.recipes",
            "for chat",
        ),
        (
            "phase3_planner",
            {**ENTRY, "recipes": {"any": "pipeline/phase3_planner_chat"}},
            "phase3_planner.recipes.any",
            "is a recipe for chat mode",
        ),
        ("phase1_reflection", {**ENTRY, "risk": "x"}, "phase1_reflection.risk", "'x'"),
        ("phase1_reflection", {**ENTRY, "extra": 1}, "phase1_reflection.extra", "unknown key"),
        ("phase1_reflection", 1, "phase1_reflection", ""),
    ],
)  # fmt: skip
def test_a_broken_registry_is_named(
    project: Project, step: str, entry: object, key: str, message: str
) -> None:
    """A step that is unknown, or leads to no fitting recipe is a problem of the registry."""
    path = project.write("recipes/registry.yaml", yaml.safe_dump({**packaged("registry"), step: entry}))
    faults = [fault for fault in project.faults(str(path)) if fault["key"] == key]
    assert any(message in fault["message"] for fault in faults), project.faults(str(path))


def test_a_missing_recipe_stops_a_turn(project: Project) -> None:
    """A registry that leads nowhere is an error before a turn, which names the nearest recipe."""
    entries = packaged("registry")
    entries["phase1_reflection"]["recipes"] = {"any": "pipeline/phase1_reflecton"}
    project.write("recipes/registry.yaml", yaml.safe_dump(entries))
    ended = project.turn("Which tea?")
    assert (ended.code, ended.error["type"]) == (2, "RecipeNotFoundError")
    assert ended.error["fix"] == f"did you mean {REFLECTION}?"


def test_a_registry_of_before_is_completed(project: Project) -> None:
    """A step that a project's own registry does not name is served as packaged: one from before goes on."""
    before = {name: value for name, value in packaged("registry").items() if not name.startswith("compress_")}
    project.write("recipes/registry.yaml", yaml.safe_dump(before))
    assert project("validate", "recipes").code == 0


def test_stray_files_and_double_names_are_told(project: Project) -> None:
    """A file that nobody reads and a name that two recipes have are problems."""
    project.write_values("pipeline/second", packaged(REFLECTION))
    stray = project.write_values("stray", packaged(REFLECTION))
    faults = {(fault["path"], fault["message"]) for fault in project.faults()}
    assert (str(stray), "this file is not read") in faults
    assert any(f"also that of {REFLECTION}" in message for _, message in faults)


def test_links_within_prompts_may_stay(project: Project) -> None:
    """A prompt that is a link within its folder is read; a recipe or registry that leads out is refused."""
    (project.home / "prompts/tests/within.md").symlink_to("judge.md")
    path = project.write_recipe("tests/judge", prompt_files=["tests/within.md"])
    assert [fault["key"] for fault in project.faults(str(path)) if fault["key"] == "prompt_files"] == []
    outside = project.write("elsewhere/judge.yaml", path.read_text(encoding="utf-8"))
    path.unlink()
    path.symlink_to(outside)
    (project.home / "recipes/registry.yaml").symlink_to(outside)
    refused = {Path(fault["path"]).name for fault in project.faults(".") if "link" in fault["message"]}
    assert refused == {"judge", "registry.yaml"}


def test_a_recipe_is_chosen_by_phase_and_mode(ann: ScriptedPanda) -> None:
    """The registry leads each phase to its recipe of the mode; a project's own is asked in its place."""
    entries = packaged("registry")
    entries["phase1_reflection"]["recipes"] = {"chat": "own/reflection", "code": REFLECTION}
    ann.write("recipes/registry.yaml", yaml.safe_dump(entries))
    values = {**packaged(REFLECTION), "name": "own"}
    ann.write("recipes/own/reflection.yaml", yaml.safe_dump(values))
    turn = ann.turn(VAGUE_QUESTION)
    assert {call["recipe"] for call in turn.calls if call["phase"] == 1} == {"own/reflection"}
    turn = ann.turn(VAGUE_QUESTION, "--mode", "code")
    assert {call["recipe"] for call in turn.calls if call["phase"] == 1} == {REFLECTION}


def test_each_call_is_by_a_recipe(ann: ScriptedPanda) -> None:
    """Whatever the model is asked in a turn is a call of a recipe that there is, and is written down."""
    turn = ann.turn()
    assert len(turn.calls) == len(turn.prompts) > 5
    recipes = {row["recipe"] for row in ann.json("recipe", "list")["recipes"]}
    assert {call["recipe"] for call in turn.calls} <= recipes
