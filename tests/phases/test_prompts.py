"""What a model is sent in a turn: each thing once, what its step needs, nothing of what is not there."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from panda.models.cl100k import count_tokens
from tests.api import PRICE_QUESTION, ROOT, ScriptedPanda, Turn
from tests.script import APPROVED, Request, Script, offered, pick
from tests.store_files import write_note

HOUSE = """# House

Owner: Anna.

## Rooms

| Room | Size | Paint |
|---|---|---|
| Kitchen | 12 m² | white |
| Bath | 6 m² | blue |

Sockets:

- Kitchen: 8
- Bath: 2
"""
ROW = "Room: Kitchen; Size: 12 m²; Paint: white"
TEA = "My favorite tea is Assam."
TELLING = {
    **APPROVED["analyzer"],
    "intent": "preference",
    "reading": {"clauses": [{"text": TEA, "mood": "tells"}], "statements": [{"text": TEA}]},
}
MOST_TOKENS = 5_500
"""Of the prompts and schemas of a plain turn together."""


@pytest.fixture
def house(ann: ScriptedPanda) -> ScriptedPanda:
    """Ann has a note with a table and a list."""
    write_note(ann.user_directory, "house.md", HOUSE)
    return ann


def ask_for_kitchen(house: ScriptedPanda, **replies: Any) -> Turn:
    """Return a turn that is answered from two lines below different headings of the note."""
    script = Script(
        **{
            "retrieval": {"relevant": pick("house")},
            "synthesis": {"lines": pick("Size: 12", "Kitchen: 8")},
            "answer": {"items": [{"text": "The kitchen has 12 m².", "lines": ["L1"]}]},
            **replies,
        }
    )
    return house.turn("How big is the kitchen?", script=script)


def user_message(turn: Turn, step: str) -> str:
    """Return what follows the system message in the first prompt of a step."""
    return str(turn.asked(step)[0].messages[-1].content)


def schema_of(request: Request) -> Mapping[str, Any]:
    """Return the schema that is sent beside the messages."""
    schema: Mapping[str, Any] = request.body["response_format"]["json_schema"]["schema"]
    return schema


def tokens_sent(requests: Sequence[Request]) -> int:
    """Return the tokens of messages and schemas together."""
    texts = [message.content for request in requests for message in request.messages]
    texts += [json.dumps(schema_of(request), separators=(",", ":")) for request in requests]
    return sum(map(count_tokens, texts))


def test_a_plain_turn_stays_within_its_tokens(ann: ScriptedPanda) -> None:
    """Eight calls at most answer a question, and four take in what is told."""
    turn = ann.turn()
    assert turn.status == "approved"
    assert len(turn.calls) <= 8
    assert tokens_sent(turn.prompts) <= MOST_TOKENS
    telling = ann.turn(TEA, script=Script(analyzer=TELLING))
    assert telling.metadata["outcome"] == "noted"
    assert len(telling.calls) <= 4
    assert tokens_sent(telling.prompts) <= MOST_TOKENS // 2


def test_a_first_turn_is_asked_nothing_of_a_history(ann: ScriptedPanda) -> None:
    """Rules, form and schema of phase 0 speak of entities and earlier turns where there are any."""
    first = ann.say(PRICE_QUESTION).asked("analyzer")[0]
    second = ann.say("And how heavy is it?").asked("analyzer")[0]
    of_history = {"references", "exclusions", "clears", "recap"}
    assert of_history.isdisjoint(schema_of(first)["properties"]["reading"]["properties"])
    assert [word for word in of_history if word in first.messages[0].content] == []
    assert of_history <= set(schema_of(second)["properties"]["reading"]["properties"])
    assert [word for word in of_history if word not in second.messages[0].content] == []
    for request in (first, second):
        assert "agreement" not in request.text
        assert "agreement" not in json.dumps(schema_of(request))


def test_an_open_question_may_be_agreed_to(ann: ScriptedPanda) -> None:
    """While a question is open, phase 0 asks what the message says to it."""
    asking = {"tools": [], "next_step": "clarify", "question": "Shall I look at the shop's page?"}
    ann.turn(PRICE_QUESTION, "--session", "talk", script=Script(planner=asking))
    (request,) = ann.say("Yes.").asked("analyzer")
    assert "- agreement: " in request.messages[0].content
    assert "agreement" in schema_of(request)["properties"]["reading"]["properties"]


def test_system_messages_of_a_conversation_stay(ann: ScriptedPanda) -> None:
    """System messages are the same from turn to turn, so that servers take them from their caches."""
    ann.say(PRICE_QUESTION)
    second = ann.say("And how heavy is it?")
    third = ann.say("And how big is it?")
    pairs = [
        (before.messages[0].content, after.messages[0].content)
        for before, after in zip(second.prompts, third.prompts, strict=True)
    ]
    assert [before for before, after in pairs if before != after] == []


def test_what_stands_above_a_line_is_told(house: ScriptedPanda) -> None:
    """2.2 and 2.5 read a row below the heading of its table, and an item below that of its list."""
    turn = ask_for_kitchen(house)
    loaded = user_message(turn, "synthesis")
    assert re.search(rf"# House\. Rooms\nL\d+: {re.escape(ROW)}\n", loaded)
    assert re.search(r"# House\. Rooms\. Sockets\nL\d+: Kitchen: 8\n", loaded)
    judged = user_message(turn, "context")
    assert f"[knowledge:house.md] house. House. Rooms\n- {ROW}\n" in judged
    assert "[knowledge:house.md] house. House. Rooms. Sockets\n- Kitchen: 8\n" in judged


def test_a_source_is_named_once_for_its_lines(house: ScriptedPanda) -> None:
    """Lines below one heading of one source have one label in phase 5."""
    turn = ask_for_kitchen(house, synthesis={"lines": pick("m²", "Kitchen: 8")})
    lines = user_message(turn, "answer").partition("===== Options: lines =====\n")[2].partition("\n\n")[0]
    assert lines.split("\n") == [
        "[knowledge:house.md] house. House. Rooms",
        f"- L1 | {ROW}",
        "- L2 | Room: Bath; Size: 6 m²; Paint: blue",
        "[knowledge:house.md] house. House. Rooms. Sockets",
        "- L3 | Kitchen: 8",
    ]


def test_a_number_of_a_list_is_shown(ann: ScriptedPanda) -> None:
    """A step of a numbered list has its number in front, and what it stands below once above all."""
    write_note(ann.user_directory, "kiln.md", "# Firing\n\n1. Dry the clay.\n2. Heat the kiln.\n")
    turn = ann.turn("How is clay fired?", script=Script(retrieval={"relevant": pick("kiln")}))
    loaded = user_message(turn, "synthesis")
    assert "confidence 0.80\nL1: 1. Firing: Dry the clay.\nL2: 2. Firing: Heat the kiln.\n" in loaded


def test_the_day_is_known_where_the_answer_is_written_and_judged(ann: ScriptedPanda) -> None:
    """Phases 5 and 6 are told which day it is."""
    turn = ann.turn()
    assert "Today is Sunday, 2026-01-04." in user_message(turn, "answer")
    assert "Today is Sunday, 2026-01-04." in user_message(turn, "validator")


def test_whole_sources_are_not_offered_beside_lines(ann: ScriptedPanda) -> None:
    """Phase 5 is asked for lines alone; an item that cites a node all the same is taken."""
    turn = ann.turn()
    (request,) = turn.asked("answer")
    assert "node_ids" not in request.text
    assert "node_ids" not in json.dumps(schema_of(request))
    citing = Script()
    citing.cites_nodes = True
    assert ann.turn(script=citing).response.startswith("The Lenovo LOQ 15 costs $697. [1]")


def test_what_the_session_answers_from_can_be_cited(ann: ScriptedPanda) -> None:
    """The turns of a session that itself answers are offered as whole sources, and the prompt says so."""
    ann.say(PRICE_QUESTION)
    recalling = Script(answer={"items": [{"text": "We spoke of the Lenovo LOQ 15.", "node_ids": ["turn:3"]}]})
    recalling.cites_nodes = True
    turn = ann.turn("What did we talk about?", "--session", "talk", script=recalling)
    (request,) = turn.asked("answer")
    assert "node_ids cites them" in request.messages[0].content
    assert "- turn:3\n" in request.messages[1].content
    assert turn.response.startswith("We spoke of the Lenovo LOQ 15. [1]")


def test_the_judge_reads_each_line_once(house: ScriptedPanda) -> None:
    """Phase 6 has cited lines below their items, and the others apart; §2 and §4 are not sent beside them."""
    judged = user_message(ask_for_kitchen(house), "validator")
    assert "§2" not in judged
    assert judged.count(ROW) == 1
    items, _, others = judged.partition("===== other_lines =====\n")
    assert f"1. The kitchen has 12 m².\n   [knowledge:house.md] house. House. Rooms\n   - {ROW}\n" in items
    assert "Kitchen: 8" not in items
    assert others.startswith("[knowledge:house.md] house. House. Rooms. Sockets\n- Kitchen: 8\n")


def test_the_judge_knows_what_was_noted_and_what_is_missing(house: ScriptedPanda) -> None:
    """A goal of a sentence that was told counts as met; what the answer does not say is known."""
    query = f"{TEA} How big is the kitchen?"
    clauses = [{"text": TEA, "mood": "tells"}, {"text": "How big is the kitchen?", "mood": "asks"}]
    reading = {"clauses": clauses, "statements": [{"text": TEA}]}
    goals = [{"id": "G1", "goal": TEA}, {"id": "G2", "goal": "size of the kitchen"}]
    script = Script(
        analyzer={**APPROVED["analyzer"], "reading": reading},
        retrieval={"relevant": pick("house")},
        synthesis={"lines": pick("Size: 12")},
        planner={"tools": [], "next_step": "synthesis", "goals": goals},
        answer={"items": [{"text": "The kitchen has 12 m².", "lines": ["L1"]}], "missing": "its height"},
    )
    turn = house.turn(query, script=script)
    judged = user_message(turn, "validator")
    beside = judged.partition("===== beside_items =====\n")[2].partition("\n\n")[0]
    assert beside == f"Noted: {TEA}\nNot in the saved passages: its height."
    assert "beside_items" in turn.asked("validator")[0].messages[0].content
    assert turn.meta(6)["goals"] == {"G1": "met", "G2": "met"}


@pytest.mark.parametrize("missing", ["which of the two prices is current", "what Dr. Hansen asks on Monday"])
def test_what_is_missing_may_name_things(house: ScriptedPanda, missing: str) -> None:
    """What a model names as not said is told, unless it brings an amount of its own."""
    for text, is_told in ((missing, True), (f"{missing}, 45 €", False)):
        script = Script(
            retrieval={"relevant": pick("house")},
            synthesis={"lines": pick("Size: 12")},
            answer={"items": [{"text": "The kitchen has 12 m².", "lines": ["L1"]}], "missing": text},
        )
        response = house.turn("How big is the kitchen?", script=script).response
        assert (f"Not in the saved passages: {text}." in response) is is_told


def test_what_is_told_is_no_goal(ann: ScriptedPanda) -> None:
    """Without goals of a model each sentence is one, but for those that are noted."""
    clauses = [{"text": TEA, "mood": "tells"}, {"text": PRICE_QUESTION, "mood": "asks"}]
    reading = {"clauses": clauses, "statements": [{"text": TEA}]}
    turn = ann.turn(
        f"{TEA} {PRICE_QUESTION}", script=Script(analyzer={**APPROVED["analyzer"], "reading": reading})
    )
    assert [goal["goal"] for goal in turn.file("plan.json")["goals"]] == [PRICE_QUESTION]


@pytest.mark.parametrize("step", ["analyzer", "retrieval", "planner", "answer"])
def test_the_turn_before_is_told_once(ann: ScriptedPanda, step: str) -> None:
    """The carry has the last exchange; no summary of it and no list of its entities stands beside it."""
    ann.say(PRICE_QUESTION, summary={"summary": "Told what the LOQ costs.", "topics": []})
    turn = ann.say("And how heavy is it?")
    sent = user_message(turn, step)
    assert sent.count(PRICE_QUESTION) == 1
    assert "Told what the LOQ costs." not in sent
    assert sent.count("t3_item_1") == 1


def test_the_resolved_query_is_told_once(ann: ScriptedPanda) -> None:
    """A query with names for what it refers to stands behind the query, and not in §0 or among the goals."""
    resolved = "And how heavy is the Lenovo LOQ 15?"
    ann.say(PRICE_QUESTION)
    turn = ann.say("And how heavy is it?", analyzer={**APPROVED["analyzer"], "resolved_query": resolved})
    for step in ("retrieval", "synthesis", "context", "planner", "answer", "validator", "summary"):
        assert user_message(turn, step).count(resolved) == 1, step


def test_results_of_tools_are_told_once(ann: ScriptedPanda) -> None:
    """Claims of tools are lines of phase 5; a document of its own has the rest of what they gave."""
    write_note(ann.user_directory, "bikes.md", "# Bikes\n\n- Gazelle: €900\n")
    search = {"tool": "doc.search", "arguments": {"query": "Gazelle"}}
    wrong = {"tool": "memory.query", "arguments": {"text": "Gazelle"}}
    also_wrong = {"tool": "memory.query", "arguments": {"text": "Batavus"}}
    script = Script(
        planner={"tools": ["doc.search"], "next_step": "coordinator"},
        coordinator=[{"calls": [search, wrong, also_wrong]}, {"tool": "done"}],
        answer={"items": [{"text": "The Gazelle costs €900.", "node_ids": ["knowledge:bikes.md"]}]},
    )
    turn = ann.turn("What does the Gazelle cost?", script=script)
    sent = user_message(turn, "answer")
    assert sent.count("€900") == 1
    assert "Gazelle: €900" in offered(turn.asked("answer")[0], "lines")["L2"]
    assert "===== tool_results, earlier results =====\n## Step 2: memory.query (error)\n" in sent
    assert "===== tool_results, newest result =====\n## Step 3: memory.query (error)\n" in sent
    assert "The document tool_results is" in turn.asked("answer")[0].text
    assert "tool_results" not in ann.turn().asked("answer")[0].text


def test_tools_are_told_once(ann: ScriptedPanda) -> None:
    """The planner reads what each tool does, the coordinator its arguments too; neither a list of names."""
    script = Script(
        planner={"tools": ["doc.search"], "next_step": "coordinator"},
        coordinator=[{"calls": [{"tool": "doc.search", "arguments": {"query": "LOQ"}}]}, {"tool": "done"}],
    )
    turn = ann.turn(script=script)
    planned = turn.asked("planner")[0].text
    assert "- doc.search: Search earlier turns and the user's knowledge documents" in planned
    assert "Arguments: " not in planned
    called = turn.asked("coordinator")[0].text
    assert "Arguments: {query: string}" in called
    for text in (planned, called):
        assert "===== Options: tool" not in text
        assert "doc.search | doc.search" not in text


def test_nothing_is_missing_where_the_context_passed(ann: ScriptedPanda) -> None:
    """A pass of 2.5 leaves no gap, unless it names what is missing all the same."""
    turn = ann.turn("How tall is the tower of the town hall?", script=Script(answer={"items": []}))
    assert turn.file("gathered_context.json")["gaps"] == []
    assert "Gap: " not in turn.asked("planner")[0].text
    lacking = {"verdict": "pass", "guidance": "the height of the tower"}
    turn = ann.turn(
        "How tall is the tower of the church?", script=Script(context=lacking, answer={"items": []})
    )
    assert turn.file("gathered_context.json")["gaps"] == ["the height of the tower"]
    assert "Gap: the height of the tower" in turn.asked("planner")[0].text


def test_a_source_without_room_is_left_out_by_its_rank(ann: ScriptedPanda) -> None:
    """The plan says of sources that the prompt of 2.1 had no room for that no model judged them."""
    for number in range(28):
        write_note(
            ann.user_directory, f"tram_{number}.md", f"# Tram {number}\n\n{'The tram is late. ' * 20}\n"
        )
    turn = ann.turn("When is the tram late?", script=Script(retrieval={"relevant": pick("tram")}))
    judged = set(offered(turn.asked("retrieval")[0], "relevant"))
    candidates = turn.file("retrieval_plan.json")["candidates"]
    unseen = {row["node_id"] for row in candidates if row["by"] == "index"}
    assert unseen
    assert unseen.isdisjoint(judged)
    assert {row["node_id"] for row in candidates if row["by"] == "model"} <= judged


PROSE = [
    "The meeting is on Tuesday: she wants to see the plan and the budget before Friday.",
    "You told me about the boiler: it was serviced in March, and the valve drips when it is cold.",
    "Anna lives in Porto, collects teapots and plays the bassoon.",
]


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_cut_into_no_items(ann: ScriptedPanda, text: str) -> None:
    """A session carries names of an answer in prose, and no parts of sentences."""
    write_note(ann.user_directory, "told.md", f"# Notes\n\n{text}\n")
    script = {"retrieval": {"relevant": pick("told")}, "synthesis": {"lines": pick(text[:20])}}
    turn = ann.say("What did I write down?", **script, answer={"items": [{"text": text, "lines": ["L1"]}]})
    assert turn.response.startswith(text)
    session = json.loads((ann.user_directory / "sessions/talk/session.json").read_text(encoding="utf-8"))
    labels = {record["label"] for record in session["carry"]["registry"]["records"]}
    assert labels <= {"Anna"}


def test_what_is_told_is_stored_once(ann: ScriptedPanda) -> None:
    """A tool that is to remember what the turn notes anyway says so, and stores nothing beside it."""
    fact = {"kind": "preference", "relation": "tea", "value": "Assam", "text": TEA}
    script = Script(
        analyzer=TELLING,
        planner={"tools": ["memory.create"], "next_step": "coordinator"},
        coordinator=[{"calls": [{"tool": "memory.create", "arguments": fact}]}, {"tool": "done"}],
    )
    turn = ann.turn(TEA, script=script)
    (step,) = turn.steps
    assert step["status"] == "success"
    assert step["text"].startswith("Already noted: ")
    assert "Already noted: " in turn.asked("coordinator")[1].text
    staged = turn.file("staged_memory.json")["staged"]
    assert [value["relation"] for value in staged] == ["said_t3_1"]
    assert ann.problems() == []


def test_a_phase_that_asks_nobody_names_no_layer(ann: ScriptedPanda) -> None:
    """stderr says what serves a phase once it is asked."""
    err = ann.turn().err
    assert "phase 0: query analyzer (REFLEX: scripted)\n" in err
    assert "phase 1: reflection\n" in err
    assert "phase 2: context gatherer (MIND: scripted)\n" in err
    telling = ann.turn(TEA, script=Script(analyzer=TELLING)).err
    assert "phase 2: context gatherer\n" in telling
    assert "phase 5: synthesizer\n" in telling


def test_a_part_of_nothing_that_is_given_is_a_fault(ann: ScriptedPanda) -> None:
    """A part of a prompt names a set of options, a document or a variable of its step."""
    ann("recipe", "eject", "pipeline/phase3_planner_chat")
    path = ann.home / "prompts/pipeline/phase3_planner.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "{{#pagse}}\nLook at them.\n{{/pagse}}\n", encoding="utf-8")
    (fault,) = ann("validate", "recipes", "--json").data["problems"]
    assert fault["message"] == "no call gives 'pagse', on which a part depends"
    assert fault["fix"] == "did you mean pages?"
    path.write_text(text + "{{#pages}}\nLook at them.\n{{/pages}}\n", encoding="utf-8")
    assert ann("validate", "recipes").code == 0
    assert "Look at them." not in ann.turn().asked("planner")[0].text
    assert "Look at them." in ann("recipe", "render", "pipeline/phase3_planner_chat").out


def test_a_registry_of_removed_recipes_is_told_how_to_mend(ann: ScriptedPanda) -> None:
    """The entry of a step that is gone is to be deleted, and a recipe that is gone has a successor."""
    packaged = (ROOT / "recipes" / "registry.yaml").read_text(encoding="utf-8")
    gone = "  recipes: {any: pipeline/phase7_session}\n  purpose: what the session keeps\n  risk: low\n"
    path = ann.write("recipes/registry.yaml", f"{packaged}phase7_session:\n{gone}")
    (fault,) = ann("validate", "recipes", "--json").data["problems"]
    assert fault["message"] == "the pipeline has no step phase7_session"
    assert fault["fix"].startswith("delete its entry: ")
    assert ann.turn().status == "approved"  # it is asked for nothing
    renamed = packaged.replace("{any: pipeline/phase7_summarizer}", "{any: pipeline/phase7_session}")
    path.write_text(renamed, encoding="utf-8")
    error = ann.turn().error
    assert (
        error["message"]
        == "the recipe pipeline/phase7_session is gone, pipeline/phase7_summarizer does its work"
    )
    assert error["where"] == str(path)
    assert error["fix"] == "name pipeline/phase7_summarizer in its place in registry.yaml"
