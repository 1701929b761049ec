"""What a model that writes well is given: room, sources with their age, schemas of tools, nothing twice."""

import json
import re
from typing import Any

import pytest

from tests.api import ScriptedPanda, Turn
from tests.script import PRICE_NODE, Asked, Script, loaded_lines, offered, pick, step_of
from tests.store_files import write_note

COLOURS = ["green", "red", "blue", "brown", "grey", "pink", "black", "white", "yellow", "purple"]
BIKES = "\n".join(
    f"- Shop {n} keeps the bike of size {n} in the back room behind the counter. The owner, who came from "
    f"village {n * 7} long ago, painted its frame {COLOURS[n % 10]} and its wheels "
    f"{COLOURS[(n * 3 + 1) % 10]}. A {COLOURS[(n * 7 + 2) % 10]} bell and {n + 2} spare tubes come "
    f"along. Its price there is ${n}99 with the lights included."
    for n in range(40)
)
"""A note on forty bikes, an item of four sentences each."""


class Drafting(Script):
    """
    Chooses every line that is loaded.

    Args:
        shorten: Gives the wording of a passage that is to be shortened.
    """

    def __init__(self, shorten: Any) -> None:
        super().__init__(retrieval={"relevant": pick("bikes")})
        self._shorten = shorten

    def __call__(self, asked: Asked) -> str | Exception:
        if step_of(asked) == "rewording":
            return str(self._shorten(asked))
        if step_of(asked) == "answer":
            lines = [own_id for own_id, line in offered(asked, "lines").items() if "$399" in line]
            return json.dumps({"items": [{"text": "The price there is $399.", "lines": lines}]})
        if step_of(asked) != "synthesis":
            return super().__call__(asked)
        return json.dumps({"lines": [*loaded_lines(asked)]})


def in_short(asked: Asked) -> str:
    """Shop and price of each passage."""
    passages = asked.text.partition("_to_compress =====\n")[2].partition("\n\nUser query: ")[0]
    numbers = ((re.findall(r"Shop (\d+)", passage) or ["?"])[0] for passage in passages.split("\n\n"))
    return "\n\n".join(f"Shop {number} has it at ${number}99." for number in numbers)


def wrongly(asked: Asked) -> str:
    """Another price than the passage has."""
    return "The bike costs $1,234,567 in this shop here."


def hang_up(asked: Asked) -> str:
    """No reply."""
    raise ConnectionResetError


def ask_for_a_bike(ann: ScriptedPanda, shorten: Any) -> tuple[Turn, dict[str, Any]]:
    """A turn about the price in shop 3, and the line of the log that says how its §2 was compressed."""
    write_note(ann.user_directory, "bikes.md", f"# Bikes\n\n{BIKES}\n")
    turn = ann.turn("How much is the bike of shop 3?", script=Drafting(shorten))
    assert turn.status == "approved"
    text = (ann.store / "logs" / "executions.jsonl").read_text(encoding="utf-8")
    (entry,) = [entry for line in text.splitlines() if (entry := json.loads(line)).get("document") == "§2"]
    return turn, entry


def test_a_long_section_is_shortened_by_nerves(ann: ScriptedPanda) -> None:
    """However much 2.2 chooses, §2 is brought to its budget by NERVES, each source kept, and logged so."""
    turn, entry = ask_for_a_bike(ann, in_short)
    assert re.search(r"(?m)^- Shop \d+ has it at \$\d+99\. \[\d\]$", turn.body(2))
    assert ann.problems() == []  # what NERVES wrote stands in calls.jsonl
    assert (entry["method"], entry["model"], entry["model_layer"]) == ("rewrite", "scripted", "NERVES")
    calls = [call for call in turn.calls if call["recipe"] == "compress/compress_context"]
    assert {call["phase"] for call in calls} == {2}
    assert 1 < len(calls) < turn.body(2).count("has it at")  # several passages a call


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("shorten", [wrongly, hang_up])
def test_a_wording_that_fails_is_not_used(ann: ScriptedPanda, shorten: Any) -> None:
    """Where NERVES adds a number or is away, whole sentences stand in §2, and the log names no model."""
    turn, entry = ask_for_a_bike(ann, shorten)
    assert "1,234,567" not in turn.body(2)
    assert (entry["method"], entry["model"], entry["model_layer"]) == ("lexical", None, None)
    assert "### Constraints" in turn.body(2)
    assert ann.problems() == []  # each part keeps its heading, and so its nodes


def test_a_choice_that_is_cut_is_asked_for_again(ann: ScriptedPanda) -> None:
    """The second attempt is told how much it may have at most."""
    turn = ann.turn(script=Script(synthesis=["cut", {"lines": pick("price $697.00")}]))
    first, second = (request.body for request in turn.asked("synthesis"))
    assert first["max_tokens"] == second["max_tokens"] == 600
    assert "600 tokens" in second["messages"][-1]["content"]
    assert "600 tokens" not in first["messages"][-1]["content"]
    assert turn.status == "approved"


def test_thinking_takes_no_room_of_a_recipe(ann: ScriptedPanda) -> None:
    """Each call of a model that thinks has its recipe's room and that for thinking beside it."""
    rooms = [request.body["max_tokens"] for request in ann.turn().prompts]
    models = ann.server.models().replace("json_schema}", "json_schema, thinking_tokens: 3000}")
    ann.write("models.yaml", models)
    turn = ann.turn()
    assert rooms[0] == 800
    assert [request.body["max_tokens"] for request in turn.prompts] == [room + 3000 for room in rooms]
    assert turn.status == "approved"


def test_candidates_tell_what_they_are(ann: ScriptedPanda) -> None:
    """Each candidate carries kind, date, age, quality of the source and confidence."""
    (request,) = ann.turn().asked("retrieval")
    shown = offered(request, "relevant")
    assert shown[PRICE_NODE].startswith(
        "visit record, 2026-01-04, 0.0h ago, quality 0.92, confidence 0.92: Lenovo LOQ 15: "
    )
    assert shown["turn:2"].startswith(
        "turn summary, 2026-01-03, 28.5h ago, confidence 0.70: I drink tea. Assam it is."
    )
    assert shown["memory:budget"].startswith("preference, 2026-01-03, ")


def test_nothing_is_sent_twice(ann: ScriptedPanda) -> None:
    """A line of §2 or of a result stands once in a prompt; the ids to choose from are there all the same."""
    calls = {"calls": [{"tool": "memory.query", "arguments": {"query": "Lenovo"}}]}
    plan = {"tools": ["memory.query"], "next_step": "coordinator"}
    turn = ann.turn(script=Script(planner=plan, coordinator=[calls, {"tool": "done"}]))
    for step in ("context", "planner", "coordinator", "answer", "validator"):
        for request in turn.asked(step):
            lists = set(re.findall(r"===== Options: (\w+) =====", request.text))
            assert lists.isdisjoint({"evidence", "results", "answer", "named", "told"}), step
    lines = offered(turn.asked("answer")[0], "lines")
    assert any(PRICE_NODE in line for line in lines.values())
    assert len(set(lines.values())) == len(lines)
    assert turn.asked("planner")[0].text.count("price $697.00") == 1


def test_arguments_have_the_schema_of_their_tool(ann: ScriptedPanda) -> None:
    """A reply holds what the chosen tool takes; what a server lets pass all the same is a failed step."""
    wrong = {"calls": [{"tool": "memory.query", "arguments": {"text": "tea"}}]}
    right = {"calls": [{"tool": "memory.query", "arguments": {"query": "Lenovo price"}}]}
    plan = {"tools": ["memory.query"], "next_step": "coordinator"}
    turn = ann.turn(script=Script(planner=plan, coordinator=[wrong, right, {"tool": "done"}]))
    schema = turn.asked("coordinator")[0].body["response_format"]["json_schema"]["schema"]
    variants = schema["properties"]["calls"]["items"]["anyOf"]
    by_tool = {one["properties"]["tool"]["enum"][0]: one["properties"] for one in variants}
    assert set(by_tool["memory.query"]["arguments"]["properties"]) == {"query"}
    assert "arguments" not in by_tool["done"]
    assert "internet.research" not in by_tool  # there is no search provider
    assert [step["status"] for step in turn.steps] == ["error", "success"]
    assert turn.status == "approved"
