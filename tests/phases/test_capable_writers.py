"""What a model that writes well is given: room, sources with their age, schemas of tools, nothing twice."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panda.documents.context import render_section
from panda.errors import ModelAwayError
from panda.models.cl100k import count_tokens
from panda.models.contract import GenerateParams
from panda.models.replies import compile_schema
from panda.recipes.book import RecipeBook
from panda.recipes.schema import plain_schema
from panda.store.layout import Layout, asset
from panda.tools.table import TOOLS
from tests.builders import file_of
from tests.loopback import Server
from tests.script import PRICE_NODE, Asked, Script, loaded_lines, offered, pick
from tests.scripted_model import Reply, ScriptedModel
from tests.scripted_turns import USER, Ran, laptop_store, run_turn
from tests.served_turns import Served
from tests.stores import NOW, write_visit

COLOURS = ["green", "red", "blue", "brown", "grey", "pink", "black", "white", "yellow", "purple"]
WINDOW = 16_384


@pytest.fixture
def server() -> Iterator[Server]:
    """A model server on loopback."""
    running = Server()
    yield running
    running.close()


def bikes(root: Path) -> Layout:
    """The laptop store with a note on forty bikes, a paragraph of four sentences each."""
    layout = laptop_store(root)
    said = [
        f"Shop {n} keeps the bike of size {n} in the back room behind the counter. The owner, who came from "
        f"village {n * 7} long ago, painted its frame {COLOURS[n % 10]} and its wheels "
        f"{COLOURS[(n * 3 + 1) % 10]}. A {COLOURS[(n * 7 + 2) % 10]} bell and {n + 2} spare tubes come "
        f"along. Its price there is ${n}99 with the lights included."
        for n in range(40)
    ]
    note = layout.of(USER).home / "knowledge" / "bikes.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("# Bikes\n\n" + "\n\n".join(said) + "\n", encoding="utf-8")
    return layout


class Drafting(Script):
    """Drafts every loaded paragraph of the note, an item each, and shortens passages as told."""

    def __init__(self, shorten: Any) -> None:
        item = {"text": "The price in shop 3 is $399.", "node_ids": ["knowledge:bikes.md#bikes"]}
        super().__init__(retrieval={"relevant": pick("bikes")}, answer={"items": [item]})
        self._shorten = shorten

    def __call__(self, asked: Asked) -> str | Exception:
        schema = getattr(asked.params, "schema", None)
        if schema is None:
            reply = self._shorten(asked)
            assert isinstance(reply, str | Exception)
            return reply
        if "sections" not in schema["properties"]:
            return super().__call__(asked)
        items: list[dict[str, Any]] = []
        for node_id, line in loaded_lines(asked):
            if line.startswith("Shop"):
                items.append({"text": line, "node_ids": [node_id]})
            elif items and items[-1]["node_ids"] == [node_id]:
                items[-1]["text"] += f" {line}"
        parts = [items[at : at + 12] for at in range(0, len(items), 12)]
        return json.dumps({"sections": [{"title": "Forever Memory Knowledge", "items": p} for p in parts]})


def room_of(asked: Asked) -> int:
    """How many tokens the reply may have."""
    assert isinstance(asked.params, GenerateParams)
    return asked.params.max_tokens


def in_short(asked: Asked) -> str:
    """Shop and price of a passage."""
    (number,) = re.findall(r"Shop (\d+)", asked.text)[:1] or ["?"]
    return f"Shop {number} has it at ${number}99."


def wrongly(asked: Asked) -> str:
    """Another price than the passage has."""
    return "The bike costs $1,234,567 in this shop here."


def away(asked: Asked) -> Reply:
    """No server."""
    return ModelAwayError("the server is away")


def run_bikes(root: Path, shorten: Any) -> Ran:
    """A turn about the price in shop 3, with a model that shortens passages as told."""
    model = ScriptedModel(Drafting(shorten), writes=True, scores=False, n_ctx=WINDOW)
    return run_turn(bikes(root), "How much is the bike of shop 3?", model=model)


def log_of(ran: Ran, document: str) -> dict[str, Any]:
    """The line of the log that says how a document was compressed."""
    lines = [json.loads(line) for line in ran.layout.executions_log.read_text().splitlines()]
    (found,) = [line for line in lines if line.get("event") and line["document"] == document]
    return dict(found)


def test_a_long_draft_is_shortened_by_nerves(tmp_path: Path) -> None:
    """2.2 may write 5,000 tokens; §2 is brought to its budget by NERVES, each source kept, and logged so."""
    ran = run_bikes(tmp_path, in_short)
    assert ran.error is None, ran.error
    assert [room_of(one) for one in ran.asked("synthesis")] == [5000]
    section = ran.folder.read_context().section(2)
    assert section is not None
    assert count_tokens(render_section(section)) <= 2000
    assert "- Shop 9 has it at $999. [1]" in section.text
    line = log_of(ran, "§2")
    assert (line["method"], line["model"], line["model_layer"]) == ("rewrite", "scripted", "NERVES")
    calls = [call for call in ran.folder.load_calls() if call.recipe == "compress/compress_context"]
    assert {call.phase for call in calls} == {2}
    assert len(calls) > 25  # they do not count as executions of the turn
    assert ran.metadata.status == "approved"
    assert ran.problems == []


@pytest.mark.parametrize("shorten", [wrongly, away], ids=["wrong", "away"])
def test_a_wording_that_fails_is_not_used(tmp_path: Path, shorten: Any) -> None:
    """Where NERVES adds a number or is away, whole sentences stand in §2, and the log names no model."""
    ran = run_bikes(tmp_path, shorten)
    assert ran.error is None, ran.error
    assert "1,234,567" not in ran.body(2)
    assert "Its price there is $399" in ran.body(2)
    line = log_of(ran, "§2")
    assert (line["method"], line["model"], line["model_layer"]) == ("lexical", None, None)
    assert ran.metadata.status == "approved"


def test_a_draft_that_is_cut_is_asked_for_again(tmp_path: Path, server: Server) -> None:
    """The second attempt is told how much it may have at most."""
    drafted = {"lines": pick("price $697.00")}
    model = Served(server, Script(synthesis=["cut", drafted]))
    ran = run_turn(laptop_store(tmp_path), model=model)
    model.close()
    first, second = [body for body in server.asked if "sections" in json.dumps(body.get("response_format"))]
    assert first["max_tokens"] == second["max_tokens"] == 5000
    assert "5,000 tokens" in second["messages"][-1]["content"]
    assert "5,000 tokens" not in first["messages"][-1]["content"]
    assert ran.metadata.status == "approved"


def test_thinking_takes_no_room_of_a_recipe(tmp_path: Path, server: Server) -> None:
    """Each call of a model that thinks has its recipe's room and that for thinking beside it."""
    plain = Served(server, Script())
    run_turn(laptop_store(tmp_path / "a"), model=plain)
    rooms = [body["max_tokens"] for body in server.asked]
    server.asked.clear()
    thinking = Served(server, Script(), thinking_tokens=3000)
    ran = run_turn(laptop_store(tmp_path / "b"), model=thinking)
    plain.close()
    thinking.close()
    assert rooms[0] == 800
    assert [body["max_tokens"] for body in server.asked] == [room + 3000 for room in rooms]
    assert ran.metadata.status == "approved"


@pytest.mark.parametrize(("window", "room"), [(16_384, 5000), (4096, 500)])
def test_the_window_limits_the_draft(tmp_path: Path, window: int, room: int) -> None:
    """A draft gets what the window leaves, and never less than the recipe's output."""
    model = ScriptedModel(Script(), writes=True, scores=False, n_ctx=window)
    ran = run_turn(laptop_store(tmp_path), model=model)
    (asked,) = ran.asked("synthesis")
    assert room <= room_of(asked) <= 5000
    used = sum(len(message.content.split()) for message in asked.messages)
    assert used + room_of(asked) <= window


def test_candidates_tell_what_they_are(tmp_path: Path) -> None:
    """Each candidate carries kind, date, age, quality of the source and confidence."""
    (asked,) = run_turn(laptop_store(tmp_path)).asked("retrieval")
    shown = offered(asked, "relevant")
    assert shown[PRICE_NODE].startswith("visit record, 2026-01-04, 0.0h ago, quality 0.92, confidence 0.92: ")
    assert shown["turn:2"].startswith("turn summary, 2026-01-03, 28.5h ago, confidence 0.70: I drink tea.")
    assert shown["memory:budget"].startswith("preference, 2026-01-03, ")


def test_nothing_is_sent_twice(tmp_path: Path) -> None:
    """A line of §2 or of a result stands once in a prompt; the ids to choose from are there all the same."""
    calls = {"calls": [{"tool": "memory.query", "arguments": {"query": "Lenovo"}}]}
    ran = run_turn(
        laptop_store(tmp_path),
        answer=Script(
            planner={"tools": ["memory.query"], "next_step": "coordinator"},
            coordinator=[calls, {"tool": "done"}],
        ),
    )
    for step in ("context", "planner", "coordinator", "answer", "validator"):
        for asked in ran.asked(step):
            lists = set(re.findall(r"===== Options: (\w+) =====", asked.text))
            assert lists.isdisjoint({"evidence", "results", "answer", "named", "told"}), step
    lines = offered(ran.asked("answer")[0], "lines")
    assert sum(PRICE_NODE in line for line in lines.values()) > 0
    assert len(set(lines.values())) == len(lines)
    assert ran.asked("planner")[0].text.count("price $697.00") == 1


def test_arguments_have_the_schema_of_their_tool(tmp_path: Path) -> None:
    """A reply holds what the chosen tool takes; what a server lets pass all the same is a failed step."""
    wrong = {"calls": [{"tool": "memory.query", "arguments": {"text": "tea"}}]}
    right = {"calls": [{"tool": "memory.query", "arguments": {"query": "Lenovo price"}}]}
    script = Script(
        planner={"tools": ["memory.query"], "next_step": "coordinator"},
        coordinator=[wrong, right, {"tool": "done"}],
    )
    ran = run_turn(laptop_store(tmp_path), answer=script)
    schema = getattr(ran.asked("coordinator")[0].params, "schema", {})
    variants = schema["properties"]["calls"]["items"]["anyOf"]
    by_tool = {one["properties"]["tool"]["enum"][0]: one["properties"] for one in variants}
    assert by_tool["memory.query"]["arguments"] == TOOLS["memory.query"].argument_schema
    assert "arguments" not in by_tool["done"]
    assert "internet.research" not in by_tool  # there is no search provider
    assert [step.status for step in ran.turn.steps()] == ["error", "success"]
    assert ran.metadata.status == "approved"


@pytest.mark.parametrize("mode", ["chat", "code"])
def test_the_schemas_of_all_tools_compile(mode: str) -> None:
    """A grammar holds the arguments of every tool of a mode."""
    recipe = RecipeBook([asset("recipes")], [asset("prompts")]).recipe_for("phase4_coordinator", mode)
    names = recipe.tools_available
    schema = plain_schema(
        recipe.output_schema,
        only=["note", "calls"],
        options={"tool": [*names, "done"], "goal": ["G1"]},
        arguments={name: TOOLS[name].argument_schema for name in names},
    )
    assert len(schema["properties"]["calls"]["items"]["anyOf"]) == len(names) + 1
    assert compile_schema(schema)


def test_topics_are_its_own(tmp_path: Path) -> None:
    """Summary and topics of a turn are kept as the model wrote them."""
    said = {"summary": "The price of a gaming laptop.", "topics": ["gaming hardware", "prices"]}
    ran = run_turn(laptop_store(tmp_path), answer=Script(summary=said))
    kept = file_of(ran.folder, "index_summary.json")
    assert (kept["summary"], kept["topics"]) == (said["summary"], said["topics"])
    assert "===== Options:" not in ran.asked("summary")[0].text


TABLE = "\n".join(
    [
        "| Laptop | Price |",
        "| --- | --- |",
        *(f"| Lenovo LOQ 15 in a box of kind {'abcdefghijklmnopqrstuvwxyz'[n]} | $697 |" for n in range(26)),
    ]
)


def test_a_long_table_and_a_twin_of_another_price_stay(tmp_path: Path) -> None:
    """A table of over 1,000 characters keeps its lines; of two items that differ in the price none goes."""
    assert len(TABLE) > 1000
    other = "visit:visit_other"
    items = [
        {"text": TABLE, "node_ids": [PRICE_NODE]},
        {"text": "The Lenovo LOQ 15 in the shop costs $697.", "node_ids": [PRICE_NODE]},
        {"text": "The Lenovo LOQ 15 in the shop costs $749.", "node_ids": [other]},
    ]
    script = Script(
        retrieval={"relevant": pick(PRICE_NODE, other)},
        synthesis={"lines": pick("price $697.00", "price $749.00")},
        answer={"items": items},
    )
    layout, fields = laptop_store(tmp_path), {"title": "Lenovo LOQ 15", "price": "$749.00"}
    write_visit(layout, 1, "visit_other", fields, quality=0.9, at=NOW, user=USER)
    ran = run_turn(layout, answer=script)
    assert ran.error is None
    assert TABLE in ran.response
    assert "costs $697. [1]" in ran.response
    assert "costs $749. [" in ran.response
