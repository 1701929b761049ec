"""Checks without a model: every kind of broken recipe is a problem with file, key and fix."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from panda.documents.context import HEADINGS
from panda.errors import (
    Problem,
    PromptNotFoundError,
    RecipeBudgetError,
    RecipeError,
    RecipeKeyError,
    RecipeNotFoundError,
    RecipeSchemaError,
)
from panda.models.contract import ModelInfo
from panda.recipes.book import RecipeBook
from panda.recipes.checks import check_recipes, check_recipes_of_mode
from panda.recipes.steps import STEPS
from panda.store.layout import asset
from panda.tools.table import TOOLS
from tests.recipes.books import PROMPTS, schema_of

REFLECTION = "pipeline/phase1_reflection"
CLASSES = {"scorer": "cosine", "prompt": "tests/classes.md"}


class Project:
    """The packaged recipes, and a project's own ones that hide some of them."""

    def __init__(self, root: Path) -> None:
        self.recipes = root / "recipes"
        self.prompts = root / "prompts"
        self.models = root / "models.yaml"
        self.models.write_bytes(asset("models.yaml").read_bytes())
        (self.prompts / "tests").mkdir(parents=True)
        for name, text in PROMPTS.items():
            (self.prompts / "tests" / name).write_text(text, encoding="utf-8")
        self.book = RecipeBook([self.recipes, asset("recipes")], [self.prompts, asset("prompts")])

    def write(self, key: str, text: str) -> Path:
        """Put a file into the project's recipes."""
        path = self.recipes / f"{key}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def change(self, key: str, **changes: object) -> Path:
        """Hide a packaged recipe by a changed one; a key that is given as None is left out."""
        values = yaml.safe_load((asset("recipes") / f"{key}.yaml").read_text(encoding="utf-8"))
        changed = {name: value for name, value in {**values, **changes}.items() if value is not None}
        return self.write(key, yaml.safe_dump(changed, allow_unicode=True))

    def problems(self) -> list[Problem]:
        """What a check of everything finds."""
        folders = [self.recipes, asset("recipes")] if self.recipes.is_dir() else [asset("recipes")]
        found = check_recipes(folders, [self.prompts, asset("prompts")], self.models, TOOLS)
        return [one for one in found if "S3 §11.2" not in one.message]  # two recipes are over by decision

    def first_fault(self, n_ctx: int = 8192) -> None:
        """What is looked at before a turn of chat mode."""
        info = ModelInfo("m", "0", n_ctx, writes=False, scores=True)
        check_recipes_of_mode(self.book, "chat", model_of=lambda layer: info, tools=TOOLS)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project without recipes of its own."""
    return Project(tmp_path)


def test_packaged_recipes(project: Project) -> None:
    """Nothing is wrong with what comes with panda."""
    assert project.problems() == []
    project.first_fault()


def reflection(**properties: object) -> dict[str, Any]:
    """Changes of the reflection recipe: another decision, further properties."""
    return {"output_schema": schema_of(question={"type": "string"}, **properties)}


BROKEN: list[tuple[dict[str, Any], type[RecipeError], str, str]] = [
    ({"quality_gate": {}}, RecipeKeyError, "quality_gate", "unknown key"),
    ({"model_layer": "REFLX"}, RecipeKeyError, "model_layer", "'REFLX'"),
    (
        {"token_budget": {"total": 9, "prompt": 600, "input": 0, "output": 0}},
        RecipeBudgetError,
        "token_budget",
        "add up to 600 tokens",
    ),
    (
        {"token_budget": {"total": 2000, "prompt": 10, "input": 0, "output": 0}},
        RecipeBudgetError,
        "token_budget.prompt",
        "more than the prompt budget of 10",
    ),
    (
        {"token_budget": {"total": 9000, "prompt": 600, "input": 0, "output": 7000}},
        RecipeBudgetError,
        "token_budget",
        "need 8600 tokens, 408 more than the window of 8192",
    ),
    ({"prompt_files": ["tests/gone.md"]}, PromptNotFoundError, "prompt_files", "tests/gone.md"),
    ({"prompt_files": ["../models.yaml"]}, RecipeKeyError, "prompt_files", "leads out of prompts/"),
    ({"prompt_files": ["/etc/hostname"]}, RecipeKeyError, "prompt_files", "leads out of prompts/"),
    (
        {"prompt_files": ["tests/judge.md"], "variables": {"a": "{{b}}"}},
        RecipeKeyError,
        "variables.a",
        "{{b}}",
    ),
    ({"prompt_files": None, "system_prompt": "{{mod}}"}, RecipeKeyError, "system_prompt", "{{mod}}"),
    ({"prompt_files": None, "system_prompt": "{{ mode }}"}, RecipeKeyError, "system_prompt", "{{ mode }}"),
    ({"templates": {"question": "{{x}}"}}, RecipeKeyError, "templates.question", "{{x}}"),
    (
        {"templates": {"question": "?", "querstion": "x"}},
        RecipeKeyError,
        "templates.querstion",
        "no text property",
    ),
    (
        {"templates": {"question": {"spans": "decision"}}},
        RecipeKeyError,
        "templates.question.spans",
        "no choice",
    ),
    ({"templates": {"question": 7}}, RecipeKeyError, "templates.question", "a template is"),
    ({"tools_available": ["doc.serach"]}, RecipeKeyError, "tools_available", "'doc.serach'"),
    ({"input_docs": ["plan.jsn"]}, RecipeKeyError, "input_docs", "'plan.jsn'"),
    (reflection(decision={"not": {}}), RecipeSchemaError, "output_schema", '"not"'),
    (
        reflection(decision={"type": "strng"}),
        RecipeSchemaError,
        "output_schema.properties.decision.type",
        "type is not valid: Invalid enum value 'strng'",
    ),
    (
        reflection(decision={"type": "string", "pattern": "(?=a)"}),
        RecipeSchemaError,
        "output_schema.properties.decision.pattern",
        "linear time",
    ),
    (
        reflection(decision={"type": "boolean", "x-deside": []}),
        RecipeKeyError,
        "output_schema.properties.decision.x-deside",
        "unknown key",
    ),
    (
        reflection(decision={"type": "string", "x-options": "candidates"}),
        RecipeKeyError,
        "output_schema.properties.decision",
        "no phase gives options called 'decision'",
    ),
    (
        reflection(decision={"enum": ["a"], "x-decide": [{"scorer": "cosine", "over": "evidnce"}]}),
        RecipeKeyError,
        "output_schema.properties.decision.x-decide[0].over",
        "'evidnce'",
    ),
    (
        reflection(decision={"enum": ["yes", "no"], "x-decide": [{**CLASSES, "prompt": "tests/judge.md"}]}),
        RecipeKeyError,
        "output_schema.properties.decision.x-decide[0].prompt",
        "no line that begins|examples of",
    ),
    (
        reflection(decision={"enum": ["yes", "maybe"], "x-decide": [CLASSES]}),
        RecipeKeyError,
        "output_schema.properties.decision.x-decide[0].prompt",
        "examples of 1 classes|class 'no'",
    ),
    (
        reflection(decision={"enum": ["a"], "x-decide": [{**CLASSES, "class": "maybe", "choose": "a"}]}),
        RecipeKeyError,
        "output_schema.properties.decision.x-decide[0].class",
        "no class 'maybe'",
    ),
    ({"output_format": "markdown"}, RecipeKeyError, "output_format", "choices need"),
    (
        {"output_schema": None, "templates": None},
        RecipeSchemaError,
        "output_schema",
        "needs an output_schema",
    ),
    (
        {"output_schema": {"properties": {}, "required": ["x"]}, "templates": None},
        RecipeKeyError,
        "output_schema.required",
        "'x' is no property",
    ),
]


@pytest.mark.parametrize(("changes", "kind", "key", "says"), BROKEN)
def test_broken_recipe(
    project: Project, changes: dict[str, Any], kind: type[RecipeError], key: str, says: str
) -> None:
    """A broken recipe is a problem with file and key, and the same fault stops a turn before it starts."""
    path = project.change(REFLECTION, **changes)
    found = [problem for problem in project.problems() if problem.key == key]
    assert [problem.path for problem in found] == [str(path)] * len(found)
    assert any(says_one in problem.message for problem in found for says_one in says.split("|"))
    with pytest.raises(RecipeError) as caught:
        project.first_fault()
    assert type(caught.value) is kind


def test_fixes(project: Project) -> None:
    """Every problem says what to do."""
    for changes, *_ in BROKEN[:3]:
        project.change(REFLECTION, **changes)
        assert all(problem.fix for problem in project.problems())


def test_all_problems(project: Project) -> None:
    """All problems of all files are reported, by file; of one whose keys are wrong the first."""
    project.change(REFLECTION, tools_available=["x", "y"], temperature=1)
    project.change("pipeline/phase6_validator", prompt_files=["a.md", "b.md"])
    found = [(Path(problem.path).stem, problem.key) for problem in project.problems()]
    assert found == [
        ("phase1_reflection", "tools_available"),
        ("phase1_reflection", "tools_available"),
        ("phase6_validator", "prompt_files"),
        ("phase6_validator", "prompt_files"),
    ]


@pytest.mark.parametrize(
    "text", ["", "[]", "a: [", "a: &a [*a]", "\ufeff", "name: 1\n" * 2, "[" * 9999, "1: 2"]
)
def test_not_a_recipe(project: Project, text: str) -> None:
    """A file that holds no recipe at all is a problem, and an error before a turn."""
    path = project.write(REFLECTION, text)
    assert {problem.path for problem in project.problems()} == {str(path)}
    with pytest.raises(RecipeError):
        project.first_fault()


@pytest.mark.parametrize("value", [None, -1, "{{a}}", [1], {"a": {"b": []}}])
@pytest.mark.parametrize(
    "key", sorted(yaml.safe_load((asset("recipes") / f"{REFLECTION}.yaml").read_bytes()))
)
def test_any_value(project: Project, key: str, value: object) -> None:
    """Whatever stands under a key, checking ends with problems and nothing else."""
    text = (asset("recipes") / f"{REFLECTION}.yaml").read_text(encoding="utf-8")
    path = project.write(REFLECTION, yaml.safe_dump({**yaml.safe_load(text), key: value}))
    assert {problem.path for problem in project.problems()} <= {str(path)}


@pytest.mark.parametrize("value", [None, 1, "x", [1], {"a": 1}])
@pytest.mark.parametrize(
    "place",
    [
        ("properties",),
        ("required",),
        ("type",),
        ("properties", "decision"),
        ("properties", "decision", "enum"),
    ]
    + [("properties", "decision", key) for key in ("x-decide", "x-options", "x-many", "x-from", "type")],
)
def test_any_schema(project: Project, place: tuple[str, ...], value: object) -> None:
    """The same for every place of an output schema."""
    text = (asset("recipes") / f"{REFLECTION}.yaml").read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    part = values["output_schema"]
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    path = project.write(REFLECTION, yaml.safe_dump(values))
    assert {problem.path for problem in project.problems()} <= {str(path)}


def registry() -> dict[str, Any]:
    """The packaged registry."""
    found = yaml.safe_load((asset("recipes") / "registry.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("step", "entry", "key", "says"),
    [
        (
            "phase9",
            {"recipes": {"any": REFLECTION}, "purpose": "x", "risk": "low"},
            "phase9",
            "no step phase9",
        ),
        (
            "phase1_reflection",
            {"recipes": {"any": "a/b"}, "purpose": "x", "risk": "low"},
            "phase1_reflection.recipes.any",
            "no recipe a/b",
        ),
        (
            "phase1_reflection",
            {"recipes": {"code": REFLECTION}, "purpose": "x", "risk": "low"},
            "phase1_reflection.recipes",
            "no recipe for chat mode",
        ),
        (
            "phase3_planner",
            {"recipes": {"any": "pipeline/phase3_planner_chat"}, "purpose": "x", "risk": "low"},
            "phase3_planner.recipes.any",
            "is a recipe for chat mode",
        ),
        ("phase1_reflection", {"recipes": {}, "purpose": "x", "risk": "x"}, "phase1_reflection.risk", "'x'"),
    ],
)
def test_broken_registry(project: Project, step: str, entry: object, key: str, says: str) -> None:
    """A step that is unknown, or leads to no fitting recipe is a problem of the registry."""
    entries = {name: value for name, value in {**registry(), step: entry}.items() if value is not None}
    path = project.write("registry", yaml.safe_dump(entries))
    found = [problem for problem in project.problems() if (problem.path, problem.key) == (str(path), key)]
    assert any(says in problem.message for problem in found)


def test_missing_recipe_stops_a_turn(project: Project) -> None:
    """A registry that leads nowhere is an error before a turn."""
    entries = registry()
    entries["phase1_reflection"]["recipes"] = {"any": "a/b"}
    project.write("registry", yaml.safe_dump(entries))
    with pytest.raises(RecipeNotFoundError):
        project.first_fault()


def test_small_window_stops_a_turn(project: Project) -> None:
    """A model whose window a recipe does not fit is an error before a turn."""
    with pytest.raises(RecipeBudgetError, match="window of 1500"):
        project.first_fault(n_ctx=1500)


def test_broken_models_file(project: Project) -> None:
    """models.yaml is checked too, and the recipes all the same."""
    project.models.write_text("models: {}\nlayers: {MIND: gone}\n", encoding="utf-8")
    project.change(REFLECTION, extra=1)
    assert [(Path(p.path).name, p.key) for p in project.problems()] == [
        ("models.yaml", "layers.MIND"),
        ("phase1_reflection.yaml", "extra"),
    ]


def test_stray_files_and_names(project: Project) -> None:
    """A file that nobody reads and a name that two recipes have are problems."""
    copy = (asset("recipes") / f"{REFLECTION}.yaml").read_text(encoding="utf-8")
    project.write("pipeline/second", copy)
    stray = project.write("stray", copy)
    found = {(problem.path, problem.message) for problem in project.problems()}
    assert (str(stray), "this file is not read") in found
    assert any("also that of pipeline/phase1_reflection" in message for _, message in found)


def asks() -> Iterator[tuple[str, set[str], set[str], set[str]]]:
    """Step, options, variables and documents of every `ask(…)` and `choose(ask, …)` in phases and tools."""
    package = Path(__file__).parents[2] / "panda"
    for path in (*(package / "phases").glob("*.py"), *(package / "tools").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            named = [str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)]
            if node.func.id == "choose" and len(named) == 2:
                yield named[0], {named[1]}, set(), set()
            elif node.func.id == "ask" and named:  # else the step is another caller's
                given = {
                    keyword.arg: {
                        name
                        for key in keyword.value.keys
                        for name in ([ast.literal_eval(key)] if key is not None else HEADINGS)
                    }
                    for keyword in node.keywords
                    if isinstance(keyword.value, ast.Dict)
                }
                options, variables, documents = (
                    given.get(name, set()) for name in ("options", "variables", "extra")
                )
                yield named[0], options, variables, documents


def test_steps_are_what_phases_ask_for() -> None:
    """The table of steps says what the phases give: options, variables, and documents that are no files."""
    found = {step: given for step, *given in asks()}
    others = {step for step in STEPS if step.startswith("compress_")} | {"phase4_memory_statement"}
    assert set(found) == set(STEPS) - others
    for step, (options, variables, documents) in found.items():
        known = STEPS[step]
        assert (set(known.options), set(known.variables)) == (options, variables), step
        assert set(known.documents) == {name for name in documents if not name.endswith(".md")}, step


DECIDING = [
    ("phase1_reflection", "[PROCEED, CLARIFY]", "decision"),
    ("phase2_5_context_validator", "[pass, retry, clarify]", "verdict"),
    ("phase3_planner_chat", "[coordinator, synthesis, clarify]", "next_step"),
    ("phase3_planner_chat", "[question, proposal]", "question_kind"),
    ("phase6_validator", "[APPROVE, REVISE, RETRY, FAIL]", "verdict"),
]


def packaged(name: str, old: str, new: str) -> str:
    """A recipe of the pipeline with another wording of something in it."""
    text = (asset("recipes") / "pipeline" / f"{name}.yaml").read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(("name", "values", "key"), DECIDING)
def test_a_value_that_the_phase_does_not_know(project: Project, name: str, values: str, key: str) -> None:
    """A value of a deciding choice for which the phase does nothing is named."""
    project.write(f"pipeline/{name}", packaged(name, values, values.replace("]", ", MAYBE]")))
    place = f"output_schema.properties.{key}"
    told = [one.message for one in project.problems() if one.key == place]
    assert any("does nothing for the value 'MAYBE'" in message for message in told)


def test_values_that_no_step_chooses(project: Project) -> None:
    """Values that a model which only chooses can't reach are named as information, others are not."""

    def unreached() -> list[str]:
        return [f"{one.key}: {one.message}" for one in project.problems() if "no step chooses" in one.message]

    assert unreached() == []
    written = packaged("phase6_validator", "      x-written: [RETRY, FAIL]\n", "")
    project.write("pipeline/phase6_validator", written)
    key = "output_schema.properties.verdict"
    assert unreached() == [f"{key}: no step chooses RETRY, FAIL under a model that does not write"]
    project.models.write_text(project.models.read_text().replace("writes: false", "writes: true"))
    assert unreached() == []


@pytest.mark.parametrize(
    ("name", "old", "new", "key"),
    [
        ("phase3_planner_chat", "next_step:\n", "next_step_:\n", "output_schema.properties.next_step"),
        ("phase6_validator", "required: [verdict]", "required: []", "output_schema.required"),
        ("phase5_synthesizer_chat", "required: [items]", "required: []", "output_schema.required"),
        ("phase1_reflection", "output_format: json", "output_format: text", "output_format"),
    ],
)
def test_what_a_phase_reads_must_be_promised(
    project: Project, name: str, old: str, new: str, key: str
) -> None:
    """A schema without what its phase reads is an error of the check, not of the turn."""
    path = project.write(f"pipeline/{name}", packaged(name, old, new))
    assert key in [one.key for one in project.problems() if one.path == str(path)]


def test_steps_of_later_versions(project: Project) -> None:
    """What a project's own registry does not name is served as packaged: one from before goes on."""
    before = {name: value for name, value in registry().items() if not name.startswith("compress_")}
    project.write("registry", yaml.safe_dump(before))
    assert project.problems() == []
