"""Recipes as the specification writes them load, are checked and run."""

from pathlib import Path
from typing import Any

import pytest

from panda.recipes.checks import check_recipes
from panda.store.layout import asset
from tests.builders import file_of
from tests.script import PRICE_NODE, Script
from tests.scripted_model import Asked
from tests.scripted_turns import Ran, laptop_store, run_turn

PLANNER = """name: planner_chat
description: Strategic planning for chat mode
model_layer: MIND
mode: chat
token_budget: {total: 5750, prompt: 1540, input: 2000, output: 2000}
system_prompt: You plan.
input_sections: ["§0", "§1", "§2"]
output_format: json
output_schema:
  type: object
  required: [next_step, confidence]
  properties:
    next_step: {type: string, enum: [coordinator, synthesis, clarify]}
    tasks: {type: array}
    confidence: {type: number}
quality_gates: {schema_validation: true, max_retries: 2}
tools_available: [internet.research, memory.query, memory.create, doc.search]
"""
SYNTHESIZER = """name: synthesizer_chat
description: Generate user-facing response
model_layer: VOICE
mode: chat
token_budget: {total: 10000, prompt: 1318, input: 5500, output: 3000}
system_prompt: You answer.
input_sections: ["§0", "§1", "§2", "§3", "§4"]
input_docs: [toolresults.md]
output_format: markdown
quality_gates: {evidence_required: true}
"""
ANSWER = "The Lenovo LOQ 15 costs $697 [1].\n\n- Lenovo LOQ 15\n- $697.00"


def project(tmp_path: Path, name: str, text: str) -> Path:
    """A project with one recipe of its own."""
    path = tmp_path / "project" / "recipes" / "pipeline" / f"{name}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


def problems(path: Path) -> list[tuple[str | None, str]]:
    """Keys and messages of what is wrong with a project's recipe."""
    tools = ["internet.research", "memory.query", "memory.create", "doc.search"]
    found = check_recipes([path.parents[1], asset("recipes")], [asset("prompts")], None, tools)
    return [(one.key, one.message) for one in found if one.path == str(path)]


def run(tmp_path: Path, script: Any) -> Ran:
    """One turn with the project's recipe."""
    return run_turn(laptop_store(tmp_path / "store"), answer=script, project=tmp_path / "project")


def test_the_planner_of_the_specification(tmp_path: Path) -> None:
    """A plan with nothing but a next step and a confidence is a plan; its tools are those it may use."""
    path = project(tmp_path, "phase3_planner_chat", PLANNER)
    assert problems(path) == []
    plan = {"next_step": "synthesis", "tasks": ["tell"], "confidence": 0.8}
    ran = run(tmp_path, planning(plan))
    assert ran.metadata.status == "approved", ran.error
    assert file_of(ran.folder, "plan.json")["tasks"] == ["tell"]


def planning(plan: dict[str, Any]) -> Any:
    """A script whose planner replies so."""
    script = Script(planner=plan)
    return lambda asked: script(asked)


def test_a_clarify_of_it_asks(tmp_path: Path) -> None:
    """Without a question in its schema a clarify asks one that quotes the query."""
    project(tmp_path, "phase3_planner_chat", PLANNER)
    ran = run(tmp_path, planning({"next_step": "clarify", "tasks": [], "confidence": 0.2}))
    assert ran.metadata.status == "clarify"
    assert "How much is the Lenovo LOQ 15?" in str(ran.metadata.question)


def writing(answer: str) -> Any:
    """A script that answers in markdown."""
    script = Script()

    def reply(asked: Asked) -> Any:
        is_free = not asked.is_score and getattr(asked.params, "schema", None) is None
        return answer if is_free else script(asked)

    return reply


def test_the_synthesizer_of_the_specification(tmp_path: Path) -> None:
    """An answer in markdown is split into paragraphs, each checked against what its marks name."""
    path = project(tmp_path, "phase5_synthesizer_chat", SYNTHESIZER)
    assert problems(path) == []
    ran = run(tmp_path, writing(ANSWER))
    assert ran.metadata.status == "approved", (ran.error, ran.body(6))
    items = ran.meta(5)["items"]
    assert items[0] == {"text": "The Lenovo LOQ 15 costs $697.", "node_ids": [PRICE_NODE]}
    assert items[1]["text"] == "- Lenovo LOQ 15\n- $697.00"
    assert ran.problems == []


DECIDING = [
    ("phase1_reflection", "[PROCEED, CLARIFY]", "decision"),
    ("phase2_5_context_validator", "[pass, retry, clarify]", "verdict"),
    ("phase3_planner_chat", "[coordinator, synthesis, clarify]", "next_step"),
    ("phase3_planner_chat", "[question, proposal]", "question_kind"),
    ("phase6_validator", "[APPROVE, REVISE, RETRY, FAIL]", "verdict"),
]


@pytest.mark.parametrize(("name", "values", "key"), DECIDING)
def test_a_value_that_the_phase_does_not_know(tmp_path: Path, name: str, values: str, key: str) -> None:
    """A value of a deciding choice for which the phase does nothing is named."""
    text = (asset("recipes") / "pipeline" / f"{name}.yaml").read_text(encoding="utf-8")
    assert values in text
    path = project(tmp_path, name, text.replace(values, values.replace("]", ", MAYBE]"), 1))
    (told,) = [message for where, message in problems(path) if where == f"output_schema.properties.{key}"]
    assert "'MAYBE'" in told


def unreached(path: Path, models: str) -> list[str]:
    """What is told of values that no step chooses, with this models.yaml."""
    file = path.parents[3] / "models.yaml"
    file.write_text(models, encoding="utf-8")
    found = check_recipes([path.parents[1], asset("recipes")], [asset("prompts")], file, ["memory.query"])
    return [f"{one.key}: {one.message}" for one in found if "no step chooses" in one.message]


def test_values_that_no_step_chooses(tmp_path: Path) -> None:
    """Values that a model which only chooses can't reach are named as information, others are not."""
    models = asset("models.yaml").read_text(encoding="utf-8")
    text = (asset("recipes") / "pipeline" / "phase6_validator.yaml").read_text(encoding="utf-8")
    path = project(tmp_path, "phase6_validator", text)
    assert unreached(path, models) == []
    path.write_text(text.replace("      x-written: [RETRY, FAIL]\n", ""), encoding="utf-8")
    key = "output_schema.properties.verdict"
    assert unreached(path, models) == [
        f"{key}: no step chooses RETRY, FAIL under a model that does not write"
    ]
    assert unreached(path, models.replace("writes: false", "writes: true")) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "key"),
    [
        ("phase3_planner_chat", "next_step:\n", "next_step_:\n", "output_schema.properties.next_step"),
        ("phase6_validator", "required: [verdict]", "required: []", "output_schema.required"),
        ("phase5_synthesizer_chat", "required: [items]", "required: []", "output_schema.required"),
        ("phase1_reflection", "output_format: json", "output_format: text", "output_format"),
    ],
)
def test_what_a_phase_reads_must_be_promised(tmp_path: Path, name: str, old: str, new: str, key: str) -> None:
    """A schema without what its phase reads is an error of the check, not of the turn."""
    text = (asset("recipes") / "pipeline" / f"{name}.yaml").read_text(encoding="utf-8")
    assert old in text
    path = project(tmp_path, name, text.replace(old, new, 1))
    assert key in [one for one, _ in problems(path)]
