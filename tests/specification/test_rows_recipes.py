"""Rows of the specification about recipes, the log and the index: each test runs the tool."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.api import LAPTOPS, ROOT, VAGUE_QUESTION, ModelServer, Panda, models_at
from tests.loopback import reply
from tests.script import Asked, Request, Script

UNANSWERED = "What is my sister's name?"
"""A question of which phase 1 asks a model, as nothing near it is saved."""


@pytest.fixture
def laptops(tmp_path: Path, demo: Path) -> Panda:
    """The demo store: turn 811 is about laptops, with research on them."""
    return Panda(tmp_path / "project", demo, user="demo")


def test_s1_3_3_index_entries_have_intent_and_research(laptops: Panda) -> None:
    """The entry of a turn says its intent and research as columns, in a store of an older version too."""
    assert laptops("index", "search", "laptop").code == 0
    with closing(sqlite3.connect(laptops.store / "indexes" / "turn_index.db")) as index:
        index.execute("PRAGMA user_version = 11")
        index.execute("ALTER TABLE documents DROP COLUMN intent")
        index.commit()
    results = laptops.json("index", "search", "laptop")["results"]
    turns = {row["turn"]: (row["intent"], row["has_research"], row["research_topic"]) for row in results}
    assert turns[811] == ("commerce", True, "commerce.laptop")
    assert turns[807] == ("preference", False, None)
    with closing(sqlite3.connect(laptops.store / "indexes" / "turn_index.db")) as index:
        columns = "SELECT intent, has_research, research_topic FROM documents WHERE node_id = 'turn:811'"
        assert index.execute(columns).fetchall() == [("commerce", 1, "commerce.laptop")]


def test_s1_3_one_derived_database_whose_tables_are_documented(laptops: Panda) -> None:
    """docs/index.md names every table of the database that stands for both of S1's indexes."""
    assert laptops("index", "rebuild").code == 0
    with closing(sqlite3.connect(laptops.store / "indexes" / "turn_index.db")) as index:
        tables = {name for (name,) in index.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "research_index.db" in text
    assert not [name for name in tables if f"| `{name}` |" not in text]


def test_s1_9_corrupt_research_halts_with_its_file(laptops: Panda) -> None:
    """Research that does not read is named with file, line and fault, and not as missing."""
    laptops.turn_file(811, "research.json").write_text('{"topic": ', encoding="utf-8")
    ended = laptops.turn("which laptops did you find?")
    assert ended.code == 20, ended.out
    assert ended.error["where"].endswith("turn_000811/research.json:1")
    assert "not valid JSON" in ended.error["message"]


def test_s3_5_1_every_prompt_has_purpose_and_risk(laptops: Panda) -> None:
    """Every recipe in force has both, and a registry with gaps is refused with file, key and fix."""
    recipes = laptops.json("recipe", "list")["recipes"]
    assert [row["recipe"] for row in recipes if not (row["purpose"] and row["risk"])] == []
    text = (ROOT / "recipes" / "registry.yaml").read_text(encoding="utf-8")
    entry = "  purpose: a shorter wording of a passage from any other text\n  risk: medium\n"
    assert entry in text
    path = laptops.write("recipes/registry.yaml", text.replace(entry, "  purpose: words\n"))
    (fault,) = laptops("validate", "recipes", "--json").data["problems"]
    assert (fault["path"], fault["key"]) == (str(path), "compress_generic.risk")
    path.write_text(text, encoding="utf-8")
    own = laptops.write("recipes/pipeline/own.yaml", (ROOT / "recipes/eyes/describe_image.yaml").read_text())
    problems = laptops("validate", "recipes", "--json").data["problems"]
    own_problems = [row for row in problems if row["path"] == str(own) and "no purpose" in row["message"]]
    assert [str(path) in row["fix"] for row in own_problems] == [True]


@pytest.mark.asks_for("www.bestbuy.com")
def test_s3_5_3_routed_by_phase_and_intent(laptops: Panda) -> None:
    """A query that wants to go to a page is planned by the planner of that intent, another is not."""
    assert laptops.turn("open the page of the Lenovo LOQ 15").code == 0
    assert laptops.turn("How much is the Lenovo LOQ 15?").code == 0
    assert recipes_of(laptops, "3") == ["planner_navigation", "planner_chat"]
    text = (ROOT / "recipes" / "registry.yaml").read_text(encoding="utf-8")
    laptops.write("recipes/registry.yaml", text.replace("    navigation: ", "    navigaton: "))
    (fault,) = laptops("validate", "recipes", "--json").data["problems"]
    assert fault["key"] == "phase3_planner.recipes.navigaton"
    assert "navigation" in fault["fix"]


def recipes_of(panda: Panda, phase: str) -> list[str]:
    """Names of the recipes that ran in a phase, in the order of the log."""
    lines = panda.json("log", "-n", "0")["lines"]
    return [line["recipe"] for line in lines if str(line["phase"]) == phase]


class YamlWriter(Script):
    """Writes these texts, the last one again and again, where YAML is asked for."""

    def __init__(self, *texts: str) -> None:
        super().__init__()
        self.texts = [*texts]
        self.asked = list[str]()

    def __call__(self, asked: Asked) -> str | Exception:
        if "Reply with one YAML mapping of this form" not in asked.text:
            return super().__call__(asked)
        self.asked.append(asked.text)
        return self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]


YAML = "```yaml\ndecision: PROCEED\nquestion: ''\nreasoning: \"It names the thing: a laptop.\"\n```"


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("decision: [PROCEED", "not valid YAML"),
        ("- PROCEED", "not a YAML mapping"),
        ("decision: MAYBE\nquestion: ''", "'MAYBE' is not one of"),
        ("decision: !!python/name:os.system PROCEED\nquestion: ''", "tag"),
    ],
)
def test_s3_13_1_yaml_is_parsed_checked_and_retried(tmp_path: Path, first: str, reason: str) -> None:
    """A reply in YAML is read safely, held to the schema, and asked for again with what is wrong with it."""
    panda = yaml_project(tmp_path)
    writer = YamlWriter(first, YAML)
    server = ModelServer(writer)
    panda.write("models.yaml", server.models())
    ended = panda.turn(VAGUE_QUESTION)
    server.close()
    assert ended.code == 0, ended.out
    assert len(writer.asked) == 2
    assert reason in writer.asked[1].partition("Your last reply was refused")[2]
    assert panda.problems() == []


@pytest.mark.asks_for("shop.example")
def test_s3_15_6_yaml_that_stays_wrong_halts(tmp_path: Path) -> None:
    """After all retries the turn halts and says why; the embedded default chooses without any YAML."""
    panda = yaml_project(tmp_path)
    assert panda("validate", "recipes").code == 0
    assert panda.turn(UNANSWERED).data["status"] == "approved"
    assert recipes_of(panda, "1") == ["reflection"]
    server = ModelServer(YamlWriter("decision: MAYBE\nquestion: ''"))
    panda.write("models.yaml", server.models())
    ended = panda.turn(VAGUE_QUESTION)
    server.close()
    assert (ended.code, ended.error["type"]) == (20, "ReplyError")
    assert "3 attempts: $.decision: 'MAYBE' is not one of" in ended.error["message"]


def yaml_project(tmp_path: Path) -> Panda:
    """A project whose reflection is asked for YAML."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    text = (ROOT / "recipes" / "pipeline" / "phase1_reflection.yaml").read_text(encoding="utf-8")
    panda.write("recipes/pipeline/phase1_reflection.yaml", text.replace("t: json", "t: yaml"))
    return panda


def test_s3_12_1_ticket_md_is_the_plan(tmp_path: Path) -> None:
    """A recipe may read ticket.md, the task plan of the planner, as markdown beside toolresults.md."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    asked = list[str]()
    text = (ROOT / "recipes" / "pipeline" / "phase5_synthesizer_chat.yaml").read_text(encoding="utf-8")
    docs = "input_docs: [carry, ticket.md, toolresults.md]"
    text = text.replace('["§0", "§3"]', '["§0"]').replace("input_docs: [carry, tool_results]", docs)
    panda.write("recipes/pipeline/phase5_synthesizer_chat.yaml", text)
    goals = [{"goal": "Tell the price"}]
    plan = {"tools": [], "next_step": "synthesis", "goals": goals, "tasks": ["Look at the page"]}
    script = Script(planner=plan)

    def write(request: Asked) -> str | Exception:
        asked.append(request.text)
        return script(request)

    server = ModelServer(write)
    panda.write("models.yaml", server.models())
    assert panda("validate", "recipes").code == 0
    assert panda.turn("How much is the Lenovo LOQ 15?").code == 0
    server.close()
    (ticket,) = [prompt for prompt in asked if "===== ticket.md =====" in prompt]
    ticket = ticket.partition("===== ticket.md =====\n")[2].partition("\n=====")[0]
    assert ticket.startswith("**Next step:** synthesis\n\n**Goals:**\n- G1 (priority 1): Tell the price")
    assert "- Look at the page" in ticket
    rendered = panda("recipe", "render", "pipeline/phase5_synthesizer_chat", "--turn", "3").out
    assert "===== ticket.md =====\n**Next step:** synthesis" in rendered


def chosen_by(panda: Panda, number: int) -> set[str]:
    """Return what chose among the candidates of a turn's retrieval plan."""
    plan = json.loads(panda.turn_file(number, "retrieval_plan.json").read_text(encoding="utf-8"))
    return {candidate["by"] for candidate in plan["candidates"]} - {"always_include"}


@pytest.mark.asks_for("shop.example")
def test_s3_27_the_log_names_what_ran_and_its_tokens(tmp_path: Path) -> None:
    """A line names the layer and the model that decided, with prompt, input, output and total tokens."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    ended = panda("turn", "How much is the Lenovo LOQ 15?")
    assert ended.code == 0
    assert "phase 2: context gatherer (encoder minilm-l6)\n" in ended.err
    assert chosen_by(panda, 3) == {"closeness"}
    lines = panda.json("log", "-n", "0")["lines"]
    assert {line["model"] for line in lines} == {"minilm-l6"}
    assert {line["model_layer"] for line in lines} == {"REFLEX", "MIND", "VOICE"}
    script = Script()
    server = ModelServer()
    usage = {"prompt_tokens": 4000, "completion_tokens": 20}
    server.answer = lambda body: reply(str(script(Request(body))), usage=usage)
    panda.write("models.yaml", server.models())
    ended = panda("turn", "How much is the Lenovo LOQ 15?")
    assert ended.code == 0
    assert "phase 2: context gatherer (MIND: scripted)\n" in ended.err
    assert chosen_by(panda, 4) == {"model"}
    server.close()
    for line in panda.json("log", "-n", "0", "--turn", "4")["lines"]:
        counts = line["tokens"]
        assert line["model"] == "scripted"
        assert counts["prompt"] > 0 < counts["input"]
        assert counts["prompt"] + counts["input"] + counts["output"] == counts["total"] == 4020


@pytest.mark.asks_for("shop.example")
def test_s3_5_4_metrics_by_model(tmp_path: Path) -> None:
    """`panda stats` and the history of a recipe tell its models apart."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    reflection = "pipeline/phase1_reflection"
    assert panda.turn(UNANSWERED).code == 0
    script = Script(reflection=["nothing", {"decision": "PROCEED", "question": ""}])
    server = ModelServer(script)
    panda.write("models.yaml", server.models())
    assert panda.turn(VAGUE_QUESTION).code == 0
    server.close()
    groups = panda.json("stats", "--by", "model")["groups"]
    assert set(groups) == {"minilm-l6", "scripted"}
    (version,) = panda.json("recipe", "history", reflection)["versions"]
    metrics = version["metrics"]
    assert {name: (row["executions"], row["valid"]) for name, row in metrics.items()} == {
        "minilm-l6": (1, 1.0),
        "scripted": (1, 1.0),
    }
    assert (metrics["minilm-l6"]["retries"], metrics["scripted"]["retries"]) == (0, 1)
    assert metrics["minilm-l6"]["confidence"] is None
    rows = panda("recipe", "history", reflection).rows
    assert [row.split("\t")[3:5] for row in rows] == [["minilm-l6", "1"], ["scripted", "1"]]


@pytest.mark.asks_for("shop.example")
def test_s0_7_constraints_and_coverage_add_up(tmp_path: Path) -> None:
    """Over all turns: how good the context was, which sources it had, and how often no constraint."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    assert panda.json("stats")["context"]["turns"] == 0
    for query in ("How much is the Lenovo LOQ 15?", "Which laptops are under $800?"):
        assert panda.turn(query).code == 0
    context = panda.json("stats")["context"]
    measured = [json.loads(panda.turn_file(n, "metrics.json").read_text())["context"] for n in (3, 4)]
    assert context["turns"] == 2
    assert context["constraints_missing"] == sum(metrics["constraints_missing"] for metrics in measured) == 1
    assert context["constraints"] == sum(metrics["constraints"] for metrics in measured) > 0
    visits = [metrics["coverage"]["visit"] for metrics in measured]
    assert context["coverage"]["visit"] == {"turns": sum(map(bool, visits)), "nodes": sum(visits)}
    rows = [row.split("\t") for row in panda("stats", "--by", "context").rows]
    assert ["no constraint", "1", "0.5", "0"] in rows


def test_s3_11_2_ceilings_are_told(laptops: Panda) -> None:
    """`panda validate` tells of recipes over S3's ceilings; of panda's own the decision has the numbers."""
    decision = (ROOT / "docs" / "decisions" / "0019-ceilings.md").read_text(encoding="utf-8")
    unreached = {Path(row["path"]).stem: row for row in laptops.json("validate")["unreached"]}
    assert set(unreached) == {"phase0_query_analyzer", "phase4_coordinator_code"}
    for name, row in unreached.items():
        assert "0019-ceilings.md" in row["fix"]
        (line,) = [line for line in decision.splitlines() if f"| {name} |" in line]
        over = re.findall(r"(?:total|prompt|input|output) ([\d,]+) of", row["message"])
        assert re.findall(r"\*\*([\d,]+)\*\*", line) == over
    text = (ROOT / "recipes" / "pipeline" / "phase1_reflection.yaml").read_text(encoding="utf-8")
    more = text.replace("total: 2200", "total: 2700").replace("output: 400", "output: 900")
    path = laptops.write("recipes/pipeline/phase1_reflection.yaml", more)
    unreached = {row["path"]: row for row in laptops.json("validate")["unreached"]}
    assert unreached[str(path)]["message"].endswith("S3 §11.2: total 2,700 of 2,200, output 900 of 400")
    own = "S3 §11.2: total 2,700 of 2,200"
    packaged = "phase4_coordinator_code.yaml"
    usual = laptops("validate").out
    assert (own in usual, packaged in usual) == (True, False)
    with_details = laptops("validate", "-v").out
    assert (own in with_details, packaged in with_details) == (True, True)


def test_s3_4_what_serves_a_step_is_told(laptops: Panda) -> None:
    """`panda recipe list` says of each recipe what serves it with the models that are set."""
    servers = {row["recipe"]: row["served_by"] for row in laptops.json("recipe", "list")["recipes"]}
    assert servers["pipeline/phase1_reflection"] == "offline"
    assert servers["pipeline/phase7_summarizer"] == "offline"
    assert servers["eyes/describe_image"] == "no model"
    assert servers["compress/compress_generic"] == "nothing: it is worded by a language model alone"
    laptops.write("models.yaml", models_at("http://127.0.0.1:1"))
    servers = {row["recipe"]: row["served_by"] for row in laptops.json("recipe", "list")["recipes"]}
    assert servers.pop("eyes/describe_image") == servers.pop("navigation/read_screen") == "no model"
    assert set(servers.values()) == {"scripted"}


def test_s3_9_each_category_has_what_does_its_work(laptops: Panda) -> None:
    """docs/recipes.md maps the categories of S3 §9 to recipes and prompts that are there."""
    part = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").partition("## Categories")[2]
    rows = [line for line in part.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    categories = ["pipeline", "research", "browser", "memory", "tools", "filtering", "reflection"]
    assert [row.split("`")[1] for row in rows] == [*categories, "navigation", "executor", "archive"]
    recipes = {row["recipe"] for row in laptops.json("recipe", "list")["recipes"]}
    named = set(re.findall(r"`(\w+/\w+)`", "".join(rows)))
    assert named <= recipes
    others = {name for name in recipes - named if not name.startswith(("pipeline/", "compress/"))}
    assert not others, "recipes that no category names"
