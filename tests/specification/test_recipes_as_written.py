"""Recipes that give only what the specification shows (S3 §10, §16) run as they are written."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api import LAPTOPS, VAGUE_QUESTION, Ended, ModelServer, Panda
from tests.script import PRICE_NODE, Asked, Script

QUERY = "How much is the Lenovo LOQ 15?"
ANALYZER = """\
name: query_analyzer
description: Classify user intent and extract entities
model_layer: REFLEX
token_budget: {total: 1500, prompt: 500, input: 700, output: 300}
prompt_files:
  - prompts/query_analyzer/analyze.md
input_docs:
  - raw_query
  - turn_summaries
output_format: json
output_schema:
  type: object
  required: [query_type, intent, entities, resolved_query]
  properties:
    query_type:
      type: string
      enum: [informational, transactional, navigation, commerce_search, comparison]
    intent:
      type: string
    entities:
      type: array
    resolved_query:
      type: string
"""
PLANNER = """\
name: planner_chat
description: Strategic planning for chat mode
model_layer: MIND
mode: chat
token_budget: {total: 5750, prompt: 1540, input: 2000, output: 2000, response_reserve: 200}
prompt_files:
  - prompts/planner/common.md
  - prompts/planner/strategic.md
input_sections: ["§0", "§1", "§2"]
output_format: json
output_schema:
  type: object
  required: [next_step, confidence]
  properties:
    next_step:
      type: string
      enum: [coordinator, synthesis, clarify]
    tasks:
      type: array
    confidence:
      type: number
quality_gates: {schema_validation: true, max_retries: 2}
tools_available: [internet.research, memory.query, memory.create, doc.search]
"""
SYNTHESIZER = """\
name: synthesizer_chat
description: Generate user-facing response
model_layer: VOICE
mode: chat
token_budget: {total: 10000, prompt: 1318, input: 5500, output: 3000}
prompt_files:
  - prompts/synthesis/common.md
  - prompts/synthesis/synthesize.md
input_sections: ["§0", "§1", "§2", "§3", "§4"]
input_docs:
  - toolresults.md
output_format: markdown
quality_gates:
  evidence_required: true
"""
COMPLETE = """\
name: planner_chat
description: Strategic planning for chat mode
model_layer: MIND
token_budget:
  total: 5750
  prompt: 1540
  input: 2000
  output: 2000
  response_reserve: 200
system_prompt: |
  You are the Planner...
input_docs:
  - context.md
  - query_analysis.json
input_sections:
  - "§0"
  - "§1"
  - "§2"
output_format: json
output_schema:
  type: object
  required:
    - next_step
    - tasks
  properties:
    next_step:
      type: string
      enum: [coordinator, synthesis, clarify]
    tasks:
      type: array
quality_gates:
  schema_validation: true
  confidence_threshold: 0.7
  evidence_required: false
  max_retries: 2
compression:
  enabled: true
  model_layer: NERVES
  preserve:
    - "section_0"
    - "tool_errors"
mode: chat
tools_available:
  - internet.research
  - memory.query
"""
MINIMAL = """\
name: reflection
description: PROCEED or CLARIFY gate
model_layer: REFLEX
token_budget:
  total: 2200
  prompt: 600
  input: 1200
  output: 400
prompt_files:
  - prompts/reflection.md
input_sections:
  - "§0"
  - "§1"
output_format: json
output_schema:
  type: object
  required: [decision, confidence]
  properties:
    decision:
      type: string
      enum: [PROCEED, CLARIFY]
    confidence:
      type: number
"""
PROMPTS = (
    "reflection",
    "query_analyzer/analyze",
    "planner/common",
    "planner/strategic",
    "synthesis/common",
    "synthesis/synthesize",
)


def writes(asked: Asked, **replies: Any) -> object:
    """Return what a model writes to these recipes: a confidence of its own is not asked for."""
    schema = getattr(asked.params, "schema", None)
    properties = schema["properties"] if schema else {}
    assert "confidence" not in properties
    if "You are a test of synthesis/common" in asked.text:
        return replies.get("answer", "The Lenovo LOQ 15 costs $697.00.")
    if list(properties) == ["decision"]:
        return json.dumps({"decision": "PROCEED"})
    read = {"query_type": "informational", "intent": "find a price", "resolved_query": ""}
    plan = replies.get("plan", {"next_step": "synthesis", "tasks": ["tell"]})
    return Script(analyzer={**read, "entities": ["the LOQ"]}, planner=plan)(asked)


@pytest.fixture(params=["of §16", "of §10"])
def panda(tmp_path: Path, request: pytest.FixtureRequest) -> Panda:
    """A project with the recipes of the specification in place of the packaged ones."""
    project = Panda(tmp_path / "project", LAPTOPS, user="ann")
    recipes = {"phase0_query_analyzer": ANALYZER, "phase3_planner_chat": PLANNER}
    recipes |= {"phase5_synthesizer_chat": SYNTHESIZER}
    if request.param == "of §10":
        recipes |= {"phase3_planner_chat": COMPLETE, "phase1_reflection": MINIMAL}
    for name, text in recipes.items():
        project.write(f"recipes/pipeline/{name}.yaml", text)
    for name in PROMPTS:
        project.write(f"prompts/{name}.md", f"You are a test of {name}.\n")
    return project


def written(panda: Panda, query: str = QUERY, **replies: Any) -> Ended:
    """A turn with a model that writes."""
    server = ModelServer(lambda asked: writes(asked, **replies))
    panda.write("models.yaml", server.models())
    ended = panda.turn(query)
    server.close()
    return ended


def test_no_check_finds_fault(panda: Panda) -> None:
    """They pass the checks, with the embedded models."""
    ended = panda("validate", "recipes", "--json")
    assert ended.code == 0, ended.out


def test_the_embedded_default_runs_them(panda: Panda) -> None:
    """Properties that the program decides are replied, texts are left out, the answer is quoted."""
    ended = panda.turn(QUERY)
    assert (ended.code, ended.data["status"]) == (0, "approved"), ended.out
    assert "$697.00" in ended.data["response"]
    assert PRICE_NODE in [source["node_id"] for source in ended.data["sources"]]
    assert panda.problems() == []


def test_a_model_that_writes_runs_them(panda: Panda) -> None:
    """Its markdown is the answer, paragraph by paragraph; what the phases read beyond has its defaults."""
    ended = written(panda, answer="The Lenovo LOQ 15 costs $697 [1].\n\n- Lenovo LOQ 15\n- $697.00")
    assert (ended.code, ended.data["status"]) == (0, "approved"), ended.out
    assert "The Lenovo LOQ 15 costs $697. [1]\n\n- Lenovo LOQ 15\n- $697.00" in ended.data["response"]
    assert {source["node_id"] for source in ended.data["sources"]} == {PRICE_NODE}
    assert json.loads(panda.turn_file(3, "plan.json").read_text())["tasks"] == ["tell"]
    analysis = json.loads(panda.turn_file(3, "query_analysis.json").read_text())
    assert (analysis["entities"], analysis["intent"]) == (["the LOQ"], "query")
    assert panda.problems() == []


def test_a_vague_query_is_reflected_on(panda: Panda) -> None:
    """A model decides whether it is clear by a schema that has the decision alone."""
    assert written(panda, VAGUE_QUESTION).code == 0
    calls = panda.turn_file(3, "calls.jsonl").read_text(encoding="utf-8").splitlines()
    (call,) = [call for call in map(json.loads, calls) if call["recipe"] == "pipeline/phase1_reflection"]
    assert json.loads(call["output"])["decision"] == "PROCEED"
    assert panda.problems() == []


def test_a_clarify_of_it_asks(panda: Panda) -> None:
    """Without a question in its schema a clarify asks one that quotes the query."""
    ended = written(panda, plan={"next_step": "clarify", "tasks": []})
    assert (ended.code, ended.data["status"]) == (21, "clarify"), ended.out
    assert QUERY in ended.data["question"]


def test_what_is_shown_of_them(panda: Panda) -> None:
    """`recipe show` prints the contract of the step and what serves it, as `recipe list` does."""
    planner = panda.json("recipe", "show", "pipeline/phase3_planner_chat")
    assert planner["contract"]["required"] == ["next_step"]
    assert {"tasks", "question"} <= set(planner["contract"]["optional"])
    assert planner["served_by"] == "offline"
    listed = panda("recipe", "list", "--json").data["recipes"]
    servers = {recipe["recipe"]: recipe["served_by"] for recipe in listed}
    assert servers["pipeline/phase3_planner_chat"] == "offline"
    assert servers["compress/compress_generic"].startswith("nothing: ")


def test_the_log_names_what_answered(panda: Panda) -> None:
    """Each execution has its layer, how it was decided, and the encoder that was asked."""
    assert panda.turn(QUERY).code == 0
    lines = (panda.store / "logs" / "executions.jsonl").read_text(encoding="utf-8").splitlines()
    ran = [json.loads(line) for line in lines]
    assert {(line["method"], line["model"]) for line in ran} == {("offline", "minilm-l6")}
    assert {line["model_layer"] for line in ran} == {"REFLEX", "MIND", "VOICE"}
