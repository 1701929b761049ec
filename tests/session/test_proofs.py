"""
The thirteen proofs: what one turn learns, the next one knows (S4).

Those that ask for `talk` run every turn as a process; the others open the store anew for every turn.
"""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from panda.errors import HaltError
from panda.session.file import load_session, verify_session
from panda.store.records import Reused
from tests.builders import file_of
from tests.script import PRICE_NODE, Script, pick
from tests.scripted_model import Asked
from tests.scripted_turns import USER
from tests.session.conversations import (
    CALL,
    DONE,
    SESSION,
    TOOLS,
    Talk,
    carried,
    summary,
)
from tests.session.processes import FreshTalk, fresh_talk


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[FreshTalk]:
    """A conversation in which every turn is a process of its own."""
    with fresh_talk(tmp_path) as one:
        yield one


DISHES = ("Baked cod with lemon", "Cod curry", "Cod soup", "Salmon with rice")


def test_results_are_there_already(talk: FreshTalk) -> None:
    """1: what one turn read, the next one's planner sees as full and its coordinator whole; no tool runs."""
    first = talk.say("How much is the Lenovo LOQ 15?", planner=TOOLS, coordinator=[CALL, DONE])
    assert len(first.folder.load_steps()) == 1
    second = talk.say("And its weight?", planner=TOOLS, coordinator=DONE)
    assert "memory.query(query=How much is the Lenovo LOQ 15?), full" in carried(second, "planner")
    claims = [claim.text for claim in first.folder.load_steps()[0].claims]
    assert claims
    assert all(text in carried(second, "coordinator") for text in claims)
    assert [step.reused for step in second.folder.load_steps()] == [Reused(3, 1)]
    assert second.folder.load_steps()[0].claims == first.folder.load_steps()[0].claims


def test_the_same_call_is_taken(tmp_path: Path) -> None:
    """A call that an earlier turn made is not made again, unless something was remembered since."""
    talk = Talk(tmp_path)
    query = "How much is the Lenovo LOQ 15?"
    talk.say(query, planner=TOOLS, coordinator=[CALL, DONE])
    again = talk.say(query, planner=TOOLS, coordinator=[CALL, DONE])
    assert again.turn.steps()[0].reused == Reused(3, 1)
    tea = "My favorite tea is Assam."
    answer = {"items": [{"text": tea, "node_ids": ["turn:5"]}]}
    talk.say(tea, planner=TOOLS, coordinator=[{"tool": "memory.create"}, DONE], answer=answer)
    anew = talk.say(query, planner=TOOLS, coordinator=[CALL, DONE])
    assert not anew.turn.steps()[0].reused


def test_every_call_of_a_step_is_carried(tmp_path: Path) -> None:
    """2: two calls of one round: both results are carried."""
    talk = Talk(tmp_path)
    both = {"calls": [{"tool": "memory.query"}, {"tool": "doc.search"}]}
    talk.say("How much is the Lenovo LOQ 15?", planner=TOOLS, coordinator=[both, DONE])
    assert [one.tool for one in talk.carry.step_cache] == ["memory.query", "doc.search"]
    second = talk.say("And its weight?")
    assert "memory.query(" in carried(second, "planner")
    assert "doc.search(" in carried(second, "planner")


def test_what_was_made_and_what_failed(talk: FreshTalk) -> None:
    """3: two things created and one failure stand in summary.json and in the next prompts."""
    query = "My favorite tea is Assam. My favorite cake is Sacher."
    bad = {"kind": "preference", "relation": "x", "value": "Earl Grey", "text": "never said"}
    tea = {"kind": "preference", "relation": "tea", "value": "Assam", "text": "My favorite tea is Assam."}
    cake = {"kind": "preference", "relation": "cake", "value": "Sacher", "text": "Sacher"}
    calls = {"calls": [{"tool": "memory.create", "arguments": one} for one in (tea, cake, bad)]}
    first = talk.say(
        query,
        planner=TOOLS,
        coordinator=[calls, DONE],
        answer={"items": [{"text": "My favorite tea is Assam.", "node_ids": ["turn:3"]}]},
    )
    made = summary(first)
    assert len(made["entities_created"]) == 2
    assert len(made["errors"]) == 1
    assert (made["steps_completed"], made["steps_total"]) == (2, 3)
    second = talk.say("How much is the Lenovo LOQ 15?")
    for step in ("planner", "answer"):
        assert made["errors"][0] in carried(second, step)
        assert all(label in carried(second, step) for label in made["entities_created"])


def test_a_blocked_turn(tmp_path: Path) -> None:
    """4: why a turn was blocked reaches the next planner; its reply claims nothing that did not happen."""
    talk = Talk(tmp_path)
    bad = {"calls": [{"tool": "memory.create", "arguments": {"kind": "preference"}}]}
    first = talk.say(
        "How much is the Lenovo LOQ 15?",
        planner=TOOLS,
        coordinator=[bad, bad, bad, bad],
        answer={"items": [{"text": "I have saved your preference.", "node_ids": [PRICE_NODE]}]},
        validator={"verdict": "APPROVE"},
    )
    assert summary(first)["blocked_reason"]
    assert first.metadata.status == "failed"
    second = talk.say("How much is the Lenovo LOQ 15?")
    assert summary(first)["blocked_reason"][:60] in carried(second, "planner")


def listed(talk: Talk) -> None:
    """A turn that lists four dishes."""
    menu = "I found: " + ", ".join(DISHES[:-1]) + " and " + DISHES[-1] + "."
    lines = talk.layout.of(USER).home / "knowledge" / "dishes.md"
    lines.parent.mkdir(parents=True, exist_ok=True)
    lines.write_text(f"# Dishes\n\n{menu}\n", encoding="utf-8")
    ran = talk.say(
        "What can I cook?",
        retrieval={"relevant": pick("knowledge:dishes.md")},
        synthesis={"lines": pick("I found")},
        answer={"items": [{"text": menu, "node_ids": ["knowledge:dishes.md"]}]},
    )
    assert ran.metadata.status == "approved", ran.body(6)
    labels = {one.ref: one.label for one in talk.carry.registry.records}
    assert tuple(labels[ref] for ref in talk.carry.recent_turns[-1].entities_mentioned) == DISHES


def test_exclusion_holds_at_once(talk: FreshTalk) -> None:
    """5: "no cod" demotes three dishes: the same turn's planner has them as exclusions, no plan uses one."""
    listed(talk)
    bad = {"tools": [], "next_step": "synthesis", "goal": "Cook the Cod curry"}
    good = {"tools": [], "next_step": "synthesis", "goal": "Cook the Salmon with rice"}
    ran = talk.say("no cod please", planner=[bad, good])
    shown = carried(ran, "planner", 0)
    excluded, _, active = shown.partition("Entities that are being talked about")
    assert all(f"({dish}): demoted, the user said “no cod”" in excluded for dish in DISHES[:3])
    assert "cod" not in active.partition("The last turn")[0].lower()
    assert "Your last plan was refused" in ran.asked("planner")[1].text
    assert file_of(ran.folder, "plan.json")["goal"] == good["goal"]
    assert "demoted, the user said “no cod”" in carried(ran, "planner")
    stubborn = talk.ask("What is quick?", Script(planner=bad))
    assert stubborn.exit_code == 20
    assert stubborn.metadata.status == "halted"


def test_curation_over_turns(tmp_path: Path) -> None:
    """6: what was kept, dropped and cleared is quoted with its reason in the next reflection prompt."""
    talk = Talk(tmp_path)
    listed(talk)
    ref = next(one.ref for one in talk.carry.registry.records if one.label == DISHES[3])
    curation = [{"ref": ref, "action": "retain", "reason": "still in the running for Friday"}]
    talk.say("Which is quick?", reflection={"decision": "PROCEED", "question": "", "curation": curation})
    second = talk.say("forget the cod soup")
    assert f"retain {ref}: still in the running for Friday" in carried(second, "reflection")
    third = talk.say("What else is there?")
    assert "the user said “forget the cod soup”" in carried(third, "reflection")
    states = {one.label: (one.state, one.retained) for one in talk.carry.registry.records}
    assert states[DISHES[2]] == ("dropped", False)
    assert states[DISHES[3]] == ("active", True)
    talk.say("let's start over")
    last = talk.say("What can I drink?")
    assert "clear_all all: the user said “start over”" in carried(last, "reflection")
    assert {one.state for one in talk.carry.registry.records} == {"dropped"}


def test_notes_last_three_turns(talk: FreshTalk) -> None:
    """7: a note and a conclusion of a step are in the next three turns' prompts, and gone in the fourth."""
    said = {**CALL, "note": "The shop closes on Sunday", "conclusion": "The LOQ is the best buy"}
    talk.say("How much is the Lenovo LOQ 15?", planner=TOOLS, coordinator=[said, DONE])
    for number in (2, 3, 4, 5):
        ran = talk.say("And its weight?", planner=TOOLS, coordinator=DONE)
        for step in ("planner", "coordinator"):
            shown = carried(ran, step).partition("Notes from earlier steps:")[2].partition(":\n")[0]
            assert ("The shop closes on Sunday" in shown) == (number < 5), number
            assert ("The LOQ is the best buy" in shown) == (number < 5), number


def test_flow(tmp_path: Path) -> None:
    """8: browsing, excluding, proposing, agreeing, looking back are told apart; an idiom excludes nothing."""
    talk = Talk(tmp_path)
    listed(talk)
    propose = {
        "tools": [],
        "next_step": "clarify",
        "question": "Shall I plan the salmon for Friday?",
        "question_kind": "proposal",
        "tasks": ["Buy salmon", "Cook rice"],
    }
    flows = [talk.carry.flow.phase]
    for query in ("no cod", "Plan my Friday.", "yes", "what did we do?"):
        talk.say(query, Script(planner=propose) if query.startswith("Plan") else Script())
        flows.append(talk.carry.flow.phase)
    assert flows == ["exploring", "narrowing", "confirming", "executing", "reflecting"]
    before = talk.carry.registry
    ran = talk.say("no problem, save it")
    assert "entity_curation" not in file_of(ran.folder, "reflection.json") or not [
        one for one in talk.carry.registry.records if one.state != "active" and one not in before.records
    ]


def test_a_whole_proposal(talk: FreshTalk) -> None:
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
    first = talk.say("Plan the 6 dinners of the week.", planner=propose)
    assert first.metadata.status == "clarify"
    again = {"tools": [], "next_step": "synthesis", "goal": "Four dinners"}
    second = talk.say(
        "yes, but 4 not 6", planner=[propose, again], reflection={"decision": "CLARIFY", "question": "What?"}
    )
    shown = carried(second, "planner", 0)
    assert text in shown
    assert "step 1: Shop on Monday" in shown
    assert "step 2: Shop on Thursday" in shown
    assert second.metadata.status == "approved"
    assert "do not ask again" in second.asked("planner")[1].text
    limits = {one.key: (one.value, one.active) for one in talk.carry.constraints}
    assert limits == {"count:dinners": (4, True)}


def test_a_question_ends_in_words(tmp_path: Path) -> None:
    """10: an open question outlives one turn on another matter, and is answered or dropped, not forgotten."""
    talk = Talk(tmp_path / "answered")
    ask = {"tools": [], "next_step": "clarify", "question": "For which day is the dinner?"}
    talk.say("Plan a dinner.", planner=ask)
    other = talk.say("How much is the Lenovo LOQ 15?")
    pending = talk.carry.pending_clarification
    assert pending is not None
    assert pending.status == "open"
    assert "For which day is the dinner?" in carried(other, "reflection")
    answered = talk.say("The dinner is on Friday.")
    assert summary(answered)["pending"] == "question q3 answered"
    other_talk = Talk(tmp_path / "dropped")
    other_talk.say("Plan a dinner.", planner=ask)
    other_talk.say("How much is the Lenovo LOQ 15?")
    dropped = other_talk.say("Which laptop has the RTX 4050?")
    assert summary(dropped)["pending"] == "question q3 dropped after 2 turns on other matters"
    pending = other_talk.carry.pending_clarification
    assert pending is not None
    assert pending.status == "dropped"


def test_generated_content_comes_back(talk: FreshTalk) -> None:
    """11: a letter comes back word for word three turns later; writing again makes a new key."""
    letter = "Dear Ms Lund,\n\n  the LOQ is *fine*: 16 GB, $697.\n"

    call = {"tool": "content.generate", "arguments": {"type": "letter", "brief": "praise the laptop"}}
    answer = {"items": [{"text": "a letter was written", "node_ids": ["step:1"]}]}

    def writing() -> Callable[[Asked], Any]:
        script = Script(planner=TOOLS, coordinator=[{"calls": [call]}, DONE], answer=answer)
        return lambda asked: script(asked) if getattr(asked.params, "schema", None) else letter

    talk.say("Write a letter that praises the laptop.", writing())
    for query in ("How much is the Lenovo LOQ 15?", "And its weight?"):
        talk.say(query)
    again = talk.say("Show me the letter again.", answer={"items": []})
    assert letter.strip() in again.folder.read_text("response.md")
    talk.say("Write another letter that praises the laptop.", writing())
    assert [one.key for one in talk.carry.content_archive.entries] == ["t3_s1_letter_1", "t7_s1_letter_1"]


def test_killed_between_reply_and_commit(talk: FreshTalk) -> None:
    """13: the head stays, --resume goes on, no number is given twice; who holds the session is told."""
    talk.say("How much is the Lenovo LOQ 15?")
    killed = talk.ask("And its weight?", Script(), dies_at="summary")
    assert killed.exit_code == -signal.SIGKILL
    assert killed.folder.has("response.md")
    assert talk.head == 3
    assert verify_session(talk.layout.of(USER), SESSION) == []
    resumed = talk.resume(4, Script())
    assert (resumed.exit_code, resumed.asked("answer"), talk.head) == (0, [], 4)
    talk.ask("And its price?", Script(), dies_at="summary")
    told: list[str] = []

    def meanwhile(asked: Asked) -> Any:
        if not told:
            code, value = talk.panda("turn", "Is it there?", "--session", SESSION, "--wait", "0.1")
            told.append(f"{code} {value['error']['message']}")
        return Script()(asked)

    last = talk.say("And its price now?", meanwhile)
    assert (last.folder.number, talk.head) == (6, 6)
    assert told[0].startswith("75 ")
    assert "panda turn (pid " in told[0]


def test_history(tmp_path: Path) -> None:
    """12: of nine turns three are recent, six in the history; where merging failed once, nothing is lost."""
    talk = Talk(tmp_path)
    merged = {"reply": "", "history": "Told prices up to turn 8.", "engagement": "Laptops."}
    for number in range(1, 10):
        session = "no object" if number == 6 else merged
        talk.say(f"How much is the Lenovo LOQ {number}?", session=session)
        if number == 6:
            assert talk.carry.history_summary.unmerged == (5,)
    carry = talk.carry
    assert [one.turn for one in carry.recent_turns] == [9, 10, 11]
    assert (carry.history_summary.through_turn, carry.history_summary.unmerged) == (8, ())
    assert (carry.history_summary.text, carry.history_summary.kind) == ("Told prices up to turn 8.", "model")


def test_merging_gets_what_failed_before(tmp_path: Path) -> None:
    """12: the next merge is given the turn that failed together with the one that leaves now."""
    talk = Talk(tmp_path)
    for number in range(1, 6):
        ran = talk.say("Is it cheap?", session=HaltError("away") if number == 4 else {"history": "x"})
    shown = ran.asked("session")[0].text
    assert "Turn 3: " in shown
    assert "Turn 4: " in shown
    unmerged = talk.say("Is it cheap?", session=HaltError("away"))
    assert talk.carry.history_summary.unmerged == (5,)
    assert "not in it yet, turn 5: Told the price" in carried(talk.say("And now?"), "planner")
    assert unmerged.metadata.status == "approved"


def test_long_replies_are_summarised(tmp_path: Path) -> None:
    """A reply over 400 characters is shown by the model's summary, marked as the model's, and kept whole."""
    talk = Talk(tmp_path)
    text = "The Lenovo LOQ 15 costs $697. " * 9
    items = [
        {"text": text.strip(), "node_ids": [PRICE_NODE]},
        {"text": "It costs $697.00, " * 9, "node_ids": [PRICE_NODE]},
    ]
    ran = talk.say(
        "How much is the Lenovo LOQ 15?",
        answer={"items": items},
        session={"reply": "Costs $697, all told."},
    )
    assert ran.metadata.status == "approved", ran.body(6)
    recent = talk.carry.recent_turns[-1]
    assert (recent.assistant_summary, recent.summary_kind) == ("Costs $697, all told.", "model")
    assert text.strip() in recent.assistant


@pytest.mark.parametrize("step", ["analyzer", "reflection", "retrieval", "planner", "answer", "validator"])
def test_a_first_turn_has_no_carry(tmp_path: Path, step: str) -> None:
    """In the first turn of a session no prompt says anything of it."""
    ran = Talk(tmp_path).say("How much is the Lenovo LOQ 15?")
    assert carried(ran, step) == ""
    assert load_session(ran.layout.of(USER), SESSION) is not None


def test_the_answer_leaves_out_what_is_excluded(tmp_path: Path) -> None:
    """Evidence that names what the user ruled out is not offered to the synthesizer."""
    talk = Talk(tmp_path)
    talk.say("How much is the Lenovo LOQ 15?")
    ran = talk.say("not the Lenovo, please", answer={"items": []})
    states = {one.label: one.state for one in talk.carry.registry.records}
    assert [label for label, state in states.items() if state == "dropped"] == ["Lenovo LOQ 15"], states
    assert "697" not in ran.asked("answer")[0].text.partition("Options: answer")[2]


def test_greets_once(tmp_path: Path) -> None:
    """A session is greeted once: a later answer that greets again is shown without it."""
    talk = Talk(tmp_path)
    hello = {"items": [{"text": "Hello there! The Lenovo LOQ 15 costs $697.", "node_ids": [PRICE_NODE]}]}
    assert "Hello there!" in talk.say("How much is the Lenovo LOQ 15?", answer=hello).response
    second = talk.say("How much is the Lenovo LOQ 15 now?", answer=hello)
    assert "Hello" not in second.response
    assert "The Lenovo LOQ 15 costs $697." in second.response
    assert "greeted already: do not greet again" in carried(second, "answer")
