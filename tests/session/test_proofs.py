"""The thirteen proofs: what one turn learns, the next one knows (S4)."""

import signal
from typing import Any

import pytest

from tests.api import PRICE_QUESTION, ScriptedPanda
from tests.script import APPROVED, PRICE_NODE, Asked, Script, pick, step_of
from tests.session.conversations import (
    CALL,
    DONE,
    TOOLS,
    carried,
    load_carry,
    load_session,
    summary,
    write_session,
)
from tests.store_files import write_note

DISHES = ("Baked cod with lemon", "Cod curry", "Cod soup", "Salmon with rice")


def test_results_are_there_already(ann: ScriptedPanda) -> None:
    """1: what one turn read, the next one's planner sees as full and its coordinator whole; no tool runs."""
    first = ann.say(PRICE_QUESTION, planner=TOOLS, coordinator=[CALL, DONE])
    second = ann.say("And its weight?", planner=TOOLS, coordinator=DONE)
    assert "memory.query(query=How much is the Lenovo LOQ 15?), full" in carried(second, "planner")
    (step,) = first.steps
    claims = [claim["text"] for claim in step["claims"]]
    assert claims
    assert all(text in carried(second, "coordinator") for text in claims)
    assert [again["reused"] for again in second.steps] == [{"turn": 3, "step": 1}]
    assert second.steps[0]["claims"] == step["claims"]


def test_the_same_call_is_taken(ann: ScriptedPanda) -> None:
    """A call that an earlier turn made is not made again, unless something was remembered since."""
    query = PRICE_QUESTION
    ann.say(query, planner=TOOLS, coordinator=[CALL, DONE])
    again = ann.say(query, planner=TOOLS, coordinator=[CALL, DONE])
    assert again.steps[0]["reused"] == {"turn": 3, "step": 1}
    tea = "My favorite tea is Assam."
    answer = {"items": [{"text": tea, "node_ids": ["turn:5"]}]}
    ann.say(tea, planner=TOOLS, coordinator=[{"tool": "memory.create"}, DONE], answer=answer)
    anew = ann.say(query, planner=TOOLS, coordinator=[CALL, DONE])
    assert not anew.steps[0].get("reused")


def test_every_call_of_a_step_is_carried(ann: ScriptedPanda) -> None:
    """2: two calls of one round: both results are carried."""
    both = {"calls": [{"tool": "memory.query"}, {"tool": "doc.search"}]}
    ann.say(PRICE_QUESTION, planner=TOOLS, coordinator=[both, DONE])
    assert [step["tool"] for step in load_carry(ann)["step_cache"]] == ["memory.query", "doc.search"]
    second = ann.say("And its weight?")
    assert "memory.query(" in carried(second, "planner")
    assert "doc.search(" in carried(second, "planner")


def test_what_was_made_and_what_failed(ann: ScriptedPanda) -> None:
    """3: two things created and one failure stand in summary.json and in the next prompts."""
    query = "My favorite tea is Assam. My favorite cake is Sacher."
    bad = {"kind": "preference", "relation": "x", "value": "Earl Grey", "text": "never said"}
    tea = {"kind": "preference", "relation": "tea", "value": "Assam", "text": "My favorite tea is Assam."}
    cake = {"kind": "preference", "relation": "cake", "value": "Sacher", "text": "Sacher"}
    calls = {"calls": [{"tool": "memory.create", "arguments": fact} for fact in (tea, cake, bad)]}
    first = ann.say(
        query,
        analyzer={**APPROVED["analyzer"], "reading": {"clauses": [{"text": query, "mood": "orders"}]}},
        planner=TOOLS,
        coordinator=[calls, DONE],
        answer={"items": [{"text": "My favorite tea is Assam.", "node_ids": ["turn:3"]}]},
    )
    outcome = summary(first)
    assert len(outcome["entities_created"]) == 2
    assert len(outcome["errors"]) == 1
    assert (outcome["steps_completed"], outcome["steps_total"]) == (2, 3)
    second = ann.say(PRICE_QUESTION)
    for step in ("planner", "answer"):
        assert outcome["errors"][0] in carried(second, step)
        assert all(label in carried(second, step) for label in outcome["entities_created"])


def test_a_blocked_turn(ann: ScriptedPanda) -> None:
    """4: why a turn was blocked reaches the next planner; its reply claims nothing that did not happen."""
    bad = {"calls": [{"tool": "memory.create", "arguments": {"kind": "preference"}}]}
    first = ann.say(
        PRICE_QUESTION,
        planner=TOOLS,
        coordinator=[bad, bad, bad, bad],
        answer={"items": [{"text": "I have saved your preference.", "node_ids": [PRICE_NODE]}]},
        validator={"verdict": "APPROVE"},
    )
    assert summary(first)["blocked_reason"]
    assert first.status == "failed"
    second = ann.say(PRICE_QUESTION)
    assert summary(first)["blocked_reason"][:60] in carried(second, "planner")


def list_dishes(ann: ScriptedPanda) -> None:
    """Run a turn that lists four dishes."""
    menu = "I found: " + ", ".join(DISHES[:-1]) + " and " + DISHES[-1] + "."
    write_note(ann.user_directory, "dishes.md", f"# Dishes\n\n{menu}\n")
    turn = ann.say(
        "What can I cook?",
        retrieval={"relevant": pick("knowledge:dishes.md")},
        synthesis={"lines": pick("I found")},
        answer={"items": [{"text": menu, "node_ids": ["knowledge:dishes.md"]}]},
    )
    assert turn.status == "approved", turn.body(6)
    carry = load_carry(ann)
    labels = {record["ref"]: record["label"] for record in carry["registry"]["records"]}
    assert tuple(labels[ref] for ref in carry["recent_turns"][-1]["entities_mentioned"]) == DISHES


def records(ann: ScriptedPanda) -> dict[str, dict[str, Any]]:
    """Return the entities of the session by their labels."""
    return {record["label"]: record for record in load_carry(ann)["registry"]["records"]}


def test_what_is_named_again_is_of_that_turn(ann: ScriptedPanda) -> None:
    """Query and reply each name a dish of the list: both are of the turn, the reply's is mentioned."""
    list_dishes(ann)
    write_note(ann.user_directory, "curry.md", "The Cod curry is spicy.\n")
    ann.say(
        "Is the Cod soup spicy?",
        retrieval={"relevant": pick("knowledge:curry.md")},
        synthesis={"lines": pick("spicy")},
        answer={"items": [{"text": "The Cod curry is spicy.", "node_ids": ["knowledge:curry.md"]}]},
    )
    assert {label: record["turns"] for label, record in records(ann).items() if label in DISHES} == {
        "Baked cod with lemon": [3],
        "Cod curry": [3, 4],
        "Cod soup": [3, 4],
        "Salmon with rice": [3],
    }
    mentioned = load_carry(ann)["recent_turns"][-1]["entities_mentioned"]
    assert records(ann)["Cod curry"]["ref"] in mentioned
    ann.say("Is the last one cheap?", answer={"items": []})
    assert records(ann)["Salmon with rice"]["turns"] == [3, 5]


def test_exclusion_holds_at_once(ann: ScriptedPanda) -> None:
    """5: "no cod" demotes three dishes: the same turn's planner has them as exclusions, no plan uses one."""
    list_dishes(ann)
    bad = {"tools": [], "next_step": "synthesis", "tasks": ["Cook the Cod curry"]}
    good = {"tools": [], "next_step": "synthesis", "tasks": ["Cook the Salmon with rice"]}
    ran = ann.say("no cod please", planner=[bad, good])
    shown = carried(ran, "planner", 0)
    excluded, _, active = shown.partition("Entities that are being talked about")
    assert all(f"({dish}): demoted, the user said “no cod”" in excluded for dish in DISHES[:3])
    assert "cod" not in active.partition("The conversation")[0].lower()
    assert "Your last plan was refused" in ran.asked("planner")[1].text
    assert ran.file("plan.json")["tasks"] == good["tasks"]
    assert "demoted, the user said “no cod”" in carried(ran, "planner")
    stubborn = ann.turn("What is quick?", "--session", "talk", script=Script(planner=bad))
    assert stubborn.code == 20
    assert stubborn.status == "halted"


def test_curation_over_turns(ann: ScriptedPanda) -> None:
    """6: what was kept, dropped and cleared is quoted with its reason in the next prompts."""
    list_dishes(ann)
    ref = records(ann)[DISHES[3]]["ref"]
    curation = [{"ref": ref, "action": "retain", "reason": "still in the running for Friday"}]
    ann.say("Which is quick?", reflection={"decision": "PROCEED", "question": "", "curation": curation})
    second = ann.say("forget the cod soup")
    assert f"retain {ref}: still in the running for Friday" in carried(second, "planner")
    third = ann.say("What else is there?")
    assert "the user said “forget the cod soup”" in carried(third, "planner")
    states = {label: (record["state"], record["retained"]) for label, record in records(ann).items()}
    assert states[DISHES[2]] == ("dropped", False)
    assert states[DISHES[3]] == ("active", True)
    ann.say("let's start over")
    last = ann.say("What can I drink?")
    assert "clear_all all: the user said “start over”" in carried(last, "planner")
    assert {record["state"] for record in records(ann).values()} == {"dropped"}


def test_notes_last_three_turns(ann: ScriptedPanda) -> None:
    """7: a note and a conclusion of a step are in the next three turns' prompts, and gone in the fourth."""
    noting = {**CALL, "note": "The shop closes on Sunday", "conclusion": "The LOQ is the best buy"}
    ann.say(PRICE_QUESTION, planner=TOOLS, coordinator=[noting, DONE])
    for number in (2, 3, 4, 5):
        ran = ann.say("And its weight?", planner=TOOLS, coordinator=DONE)
        for step in ("planner", "coordinator"):
            shown = carried(ran, step).partition("Notes from earlier steps:")[2].partition(":\n")[0]
            assert ("The shop closes on Sunday" in shown) == (number < 5), number
            assert ("The LOQ is the best buy" in shown) == (number < 5), number


def test_flow(ann: ScriptedPanda) -> None:
    """8: browsing, excluding, proposing, agreeing, looking back are told apart; an idiom excludes nothing."""
    list_dishes(ann)
    propose = {
        "tools": [],
        "next_step": "clarify",
        "question": "Shall I plan the salmon for Friday?",
        "question_kind": "proposal",
        "tasks": ["Buy salmon", "Cook rice"],
    }
    flows = [load_carry(ann)["flow"]["phase"]]
    for query in ("no cod", "Plan my Friday.", "yes", "what did we do?"):
        replies = {"planner": propose} if query.startswith("Plan") else {}
        ann.say(query, **replies)
        flows.append(load_carry(ann)["flow"]["phase"])
    assert flows == ["exploring", "narrowing", "confirming", "executing", "reflecting"]
    before = records(ann)
    ann.say("no problem, save it")
    after = records(ann)
    assert {label: after[label]["state"] for label in before} == {
        label: record["state"] for label, record in before.items()
    }


def test_a_whole_proposal(ann: ScriptedPanda) -> None:
    """9: a long proposal comes back whole with its steps, and the answered question is not asked again."""
    text = ("We cook six dishes over the week, one a day, and shop on Monday and Thursday. " * 30)[
        :1790
    ] + " Agreed?"
    propose = {
        "tools": [],
        "next_step": "clarify",
        "question": text,
        "question_kind": "proposal",
        "tasks": ["Shop on Monday", "Shop on Thursday"],
    }
    first = ann.say("Plan the 6 dinners of the week.", planner=propose)
    assert first.status == "clarify"
    again = {"tools": [], "next_step": "synthesis", "goal": "Four dinners"}
    second = ann.say(
        "yes, but 4 not 6", planner=[propose, again], reflection={"decision": "CLARIFY", "question": "What?"}
    )
    shown = carried(second, "planner", 0)
    assert text in shown
    assert "step 1: Shop on Monday" in shown
    assert "step 2: Shop on Thursday" in shown
    assert second.status == "approved"
    assert "do not ask again" in second.asked("planner")[1].text
    limits = [(limit["key"], limit["value"], limit["active"]) for limit in load_carry(ann)["constraints"]]
    assert limits == [("count:dinners", 6, False), ("count:dinners", 4, True)]


@pytest.mark.parametrize(
    ("query", "ending", "status"),
    [
        ("The dinner is on Friday.", "question q3 answered", "answered"),
        ("Which laptop has the RTX 4050?", "question q3 dropped after 2 turns on other matters", "dropped"),
    ],
)
def test_a_question_ends_in_words(ann: ScriptedPanda, query: str, ending: str, status: str) -> None:
    """10: an open question outlives one turn on another matter, and is answered or dropped, not forgotten."""
    question = "For which day is the dinner?"
    ann.say("Plan a dinner.", planner={"tools": [], "next_step": "clarify", "question": question})
    other = ann.say(PRICE_QUESTION)
    assert load_carry(ann)["pending_clarification"]["status"] == "open"
    assert question in carried(other, "planner")
    assert summary(ann.say(query))["pending"] == ending
    assert load_carry(ann)["pending_clarification"]["status"] == status


def test_generated_content_comes_back(ann: ScriptedPanda) -> None:
    """11: a letter comes back word for word three turns later; writing again makes a new key."""
    letter = "Dear Ms Lund,\n\n  the LOQ is *fine*: 16 GB, $697.\n"
    call = {"tool": "content.generate", "arguments": {"type": "letter", "brief": "praise the laptop"}}
    writing: dict[str, Any] = {
        "planner": TOOLS,
        "coordinator": [{"calls": [call]}, DONE],
        "answer": {"items": [{"text": "a letter was written", "node_ids": ["step:1"]}]},
        "rewording": letter,
    }
    ann.say("Write a letter that praises the laptop.", **writing)
    for query in (PRICE_QUESTION, "And its weight?"):
        ann.say(query)
    again = ann.say("Show me the letter again.", answer={"items": []})
    assert letter.strip() in again.response
    ann.say("Write another letter that praises the laptop.", **writing)
    keys = [entry["key"] for entry in load_carry(ann)["content_archive"]["entries"]]
    assert keys == ["t3_s1_letter_1", "t7_s1_letter_1"]


def test_the_result_of_a_tool_is_no_content(ann: ScriptedPanda) -> None:
    """A query that says "research" does not name the file of that name, and that is never shown as it is."""
    ann.say(PRICE_QUESTION)
    session = load_session(ann)
    entry = {"turn": 3, "step": 1, "type": "read", "description": "gaming laptops", "chars": 9}
    path = "turns/turn_000003/response.md"
    session["carry"]["content_archive"]["entries"] = [{**entry, "key": "research", "path": path}]
    write_session(ann, session)
    turn = ann.turn("Show me the research again.", "--session", "talk", script=Script(answer={"items": []}))
    assert "The Lenovo LOQ 15 costs $697." not in turn.response


def killed_at_the_summary(ann: ScriptedPanda, query: str) -> int:
    """Run a turn whose process is killed when it asks for the summary; return its exit code."""
    script = Script()
    with ann.running("turn", query, "--session", "talk") as process:

        def reply(asked: Asked) -> Any:
            if step_of(asked) == "summary":
                process.kill()
            return script(asked)

        ann.server.script = reply
        process.communicate("")
        return process.returncode


def test_killed_between_reply_and_commit(ann: ScriptedPanda) -> None:
    """13: the head stays, --resume goes on, no number is given twice; who holds the session is told."""
    ann.say(PRICE_QUESTION)
    assert killed_at_the_summary(ann, "And its weight?") == -signal.SIGKILL
    assert ann.turn_file(4, "response.md").exists()
    assert load_session(ann)["head_turn"] == 3
    assert ann.sessions_differ("talk") == []
    resumed = ann.resume(4)
    assert (resumed.code, resumed.asked("answer"), load_session(ann)["head_turn"]) == (0, [], 4)
    killed_at_the_summary(ann, "And its price?")
    messages: list[str] = []

    def meanwhile(asked: Asked) -> Any:
        if not messages:
            ended = ann.process("turn", "Is it there?", "--session", "talk", "--wait", "0.1", "--json")
            messages.append(f"{ended.code} {ended.error['message']}")
        return Script()(asked)

    last = ann.turn("And its price now?", "--session", "talk", script=meanwhile)
    assert (last.code, last.number, load_session(ann)["head_turn"]) == (0, 6, 6)
    assert messages[0].startswith("75 ")
    assert "(pid " in messages[0]


TOLD = {"summary": "Told the price.", "topics": []}


def test_history(ann: ScriptedPanda) -> None:
    """12: of nine turns three are recent, six in the history; where merging failed once, nothing is lost."""
    merged = {**TOLD, "history": "Told prices up to turn 8.", "engagement": "Laptops."}
    for number in range(1, 10):
        ann.say(f"How much is the Lenovo LOQ {number}?", summary="no object" if number == 6 else merged)
        if number == 6:
            assert load_carry(ann)["history_summary"]["unmerged"] == [5]
    carry = load_carry(ann)
    assert [turn["turn"] for turn in carry["recent_turns"]] == [9, 10, 11]
    assert carry["history_summary"] == {
        "text": "Told prices up to turn 8.",
        "kind": "model",
        "through_turn": 8,
        "unmerged": [],
    }


def test_merging_gets_what_failed_before(ann: ScriptedPanda) -> None:
    """12: the next merge is given the turn that failed together with the one that leaves now."""
    for number in range(1, 6):
        turn = ann.say("Is it cheap?", summary="no object" if number == 4 else {**TOLD, "history": "x"})
    merge = turn.asked("summary")[0].text
    assert "Turn 3: " in merge
    assert "Turn 4: " in merge
    unmerged = ann.say("Is it cheap?", summary="no object")
    assert load_carry(ann)["history_summary"]["unmerged"] == [5]
    assert "not in it yet, turn 5: Told the price" in carried(ann.say("And now?"), "planner")
    assert unmerged.status == "approved"


def test_long_replies_are_summarised(ann: ScriptedPanda) -> None:
    """A reply over 400 characters is shown by the model's summary, marked as the model's, and kept whole."""
    text = "The Lenovo LOQ 15 costs $697. " * 9
    items = [
        {"text": text.strip(), "node_ids": [PRICE_NODE]},
        {"text": "It costs $697.00, " * 9, "node_ids": [PRICE_NODE]},
    ]
    ran = ann.say(
        PRICE_QUESTION,
        answer={"items": items},
        summary={**TOLD, "reply": "Costs $697, all told."},
    )
    assert ran.status == "approved", ran.body(6)
    recent = load_carry(ann)["recent_turns"][-1]
    assert (recent["assistant_summary"], recent["summary_kind"]) == ("Costs $697, all told.", "model")
    assert text.strip() in recent["assistant"]


def test_a_first_turn_has_no_carry(ann: ScriptedPanda) -> None:
    """In the first turn of a session no prompt says anything of it."""
    turn = ann.say(PRICE_QUESTION)
    for step in ("analyzer", "retrieval", "planner", "answer", "validator"):
        assert carried(turn, step) == "", step


def test_the_answer_leaves_out_what_is_excluded(ann: ScriptedPanda) -> None:
    """Evidence that names what the user ruled out is not offered; without any other nobody is asked."""
    ann.say(PRICE_QUESTION)
    ran = ann.say("Which laptop is cheap? Not the Lenovo, please.", answer={"items": []})
    dropped = [label for label, record in records(ann).items() if record["state"] == "dropped"]
    assert dropped == ["Lenovo LOQ 15"]
    assert ran.asked("answer") == []
    assert "697" not in ran.response


def test_greets_once(ann: ScriptedPanda) -> None:
    """A session is greeted once: a later answer that greets again is shown without it."""
    hello = {"items": [{"text": "Hello there! The Lenovo LOQ 15 costs $697.", "node_ids": [PRICE_NODE]}]}
    assert "Hello there!" in ann.say(PRICE_QUESTION, answer=hello).response
    second = ann.say("How much is the Lenovo LOQ 15 now?", answer=hello)
    assert "Hello" not in second.response
    assert "The Lenovo LOQ 15 costs $697." in second.response
    assert "greeted already: do not greet again" in carried(second, "answer")
