"""`panda memory reflect`: as a user types it, and what a model that writes may add."""

import json
import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from panda.actions.reflection import Reflected, reflect, settle
from panda.documents.times import render_time
from panda.memory.memory import Memory
from panda.store.layout import Layout, UserStore
from panda.store.records import Proposal
from panda.store.visits import TurnRecord
from panda.tools.lessons import find_candidates
from tests.api import Ended, run_here
from tests.scripted_model import Asked, ScriptedModel
from tests.scripted_turns import scripted_app
from tests.stores import NOW, write_turn

CELLO = "I play the cello in a trio."


def run(layout: Layout, *words: str, at: datetime = NOW) -> Ended:
    """Run `panda memory …` with the embedded model."""
    arguments = ["memory", *words, "--root", str(layout.root), "--user", "ann"]
    return run_here(arguments, {"PANDA_NOW": render_time(at)})


def approve(layout: Layout, *queries: str, first: int = 1) -> None:
    """Approved turns, numbered from *first*."""
    for number, query in enumerate(queries, first):
        write_turn(layout, number, query=query, response="Nothing was found.", status="approved")


def test_kept_after_two_batches(tmp_path: Path) -> None:
    """A proposal becomes a fact of .60 with the second batch; the same turns twice count once."""
    layout = Layout(tmp_path)
    approve(layout, CELLO, "My train is late.", "What do I play?")
    dry = run(layout, "reflect", "--dry-run", "--json").value["data"]
    assert [(one["relation"], one["value"]) for one in dry["proposals"]] == [
        ("play_cello", "the cello in a trio")
    ]
    assert not layout.of("ann").proposed_facts.exists()
    for _ in range(2):
        rows = run(layout, "reflect").rows
        assert [row.split("\t")[:5] for row in rows] == [
            ["proposed", "play_cello", "the cello in a trio", "1", "1"]
        ]
    approve(layout, "How late is it?", first=4)
    kept = run(layout, "reflect", "--json").value["data"]
    assert [one["status"] for one in kept["proposals"]] == ["kept"]
    (fact,) = kept["appended"]
    assert (fact["kind"], fact["confidence"], fact["source_turn"]) == ("fact", 0.6, 1)
    assert run(layout, "get", "play_cello").out == "the cello in a trio\n"


def test_a_damaged_turn_is_left_out(tmp_path: Path) -> None:
    """The other turns are reflected on, and the damaged one is told with its fault."""
    layout = Layout(tmp_path)
    approve(layout, CELLO, "My train is late.", "What do I play?")
    layout.of("ann").turn(2).directory.joinpath("metadata.json").write_text("{", encoding="utf-8")
    ended = run(layout, "reflect", "--json")
    assert [one["relation"] for one in ended.value["data"]["proposals"]] == ["play_cello"]
    assert "turn 2 is left out" in ended.err
    assert "metadata.json:1" in ended.err


def test_what_memory_knows_is_not_proposed(tmp_path: Path) -> None:
    """What is held or was taken back is left alone, under whatever key."""
    layout = Layout(tmp_path)
    approve(layout, CELLO, "I keep bees.", "I collect old maps.")
    run(layout, "set", "instrument", "the cello in a trio")
    run(layout, "set", "keep_bees", "two hives")
    run(layout, "retract", "keep_bees")
    found = run(layout, "reflect", "--json").value["data"]["proposals"]
    assert [one["relation"] for one in found] == ["collect_maps"]


@pytest.mark.parametrize(
    ("query", "relation", "value"),
    [
        ("I drive an old Volvo V70 and it makes a noise.", "drive_v70", "an old Volvo V70"),
        ("We have two sheds. What roof is good?", "have_sheds", "two sheds"),
        ("I run a small bakery with my brother.", "run_bakery", "a small bakery with my brother"),
        ("I speak Norwegian and German.", "speak_norwegian", "Norwegian and German"),
    ],
)
def test_keys_are_what_a_sentence_is_about(query: str, relation: str, value: str) -> None:
    """The key names the thing, not its first adjective; the value ends where another clause begins."""
    (found,) = find_candidates([TurnRecord(1, "approved", "s", NOW, query, "", "", (), None)])
    assert (found.relation, found.value) == (relation, value)


def test_recalled_quoted_and_unapproved_text_is_not_proposed(tmp_path: Path) -> None:
    """What an answer said before, what is pasted, and turns that were not approved teach nothing."""
    layout = Layout(tmp_path)
    write_turn(layout, 1, query="Tell me.", response=f"It says: {CELLO}", status="approved")
    approve(layout, CELLO, "> I keep bees.\n\nWhat is that?", first=2)
    write_turn(layout, 4, query="I collect old maps.", response="", status="failed")
    ended = run(layout, "reflect", "--json").value["data"]
    assert (ended["turns"], ended["proposals"]) == ([1, 2, 3], [])


PROPOSED = Proposal("play_cello", "the cello", CELLO, 1, NOW, ((1, 2),))


@pytest.mark.parametrize(
    ("batch", "days", "status"),
    [((1, 2), 1, "proposed"), ((1,), 1, "proposed"), ((2, 3), 29, "kept"), ((2, 3), 30, "dropped")],
)
def test_second_batch(batch: tuple[int, ...], days: int, status: str) -> None:
    """Only a batch with a new turn agrees, and only within 30 days."""
    found = [structs.replace(PROPOSED, batches=(batch,))]
    (after,) = settle([PROPOSED], found, batch, NOW + timedelta(days=days), lambda one: False)
    assert after.status == status


def test_dropped_is_proposed_anew_only_if_said_anew() -> None:
    """An old sentence does not come back after it was dropped; saying it again does."""
    dropped = structs.replace(PROPOSED, status="dropped")
    again = structs.replace(PROPOSED, batches=((5, 6),))
    assert settle([dropped], [again], (5, 6), NOW, lambda one: False) == [dropped]
    said = structs.replace(again, source_turn=6)
    assert settle([dropped], [said], (5, 6), NOW, lambda one: False) == [dropped, said]


def reflect_writing(
    layout: Layout, caplog: pytest.LogCaptureFixture, *facts: dict[str, Any]
) -> tuple[Reflected, list[str]]:
    """Reflect with a model that writes and replies with these facts."""

    def answer(asked: Asked) -> str:
        return json.dumps({"facts": list(facts)})

    app = scripted_app(layout, ScriptedModel(answer, writes=True, scores=False))
    memory = Memory(UserStore(layout.root, "ann", lambda: NOW, 1.0))
    with caplog.at_level(logging.INFO, "panda"):
        done = reflect(app, memory, dry_run=False)
    return done, [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]


def test_a_writing_model_words_key_and_value(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its value counts if the sentence holds it; what it made up is refused and said so."""
    layout = Layout(tmp_path)
    approve(layout, CELLO, "I keep bees.")
    done, warnings = reflect_writing(
        layout,
        caplog,
        {"keep": "s1", "key": "instrument", "value": "cello"},
        {"keep": "s2", "key": "hives", "value": "seven hives"},
    )
    assert [(one.relation, one.value, one.source_turn) for one in done.proposals] == [
        ("instrument", "cello", 1)
    ]
    assert warnings == ["not proposed: 'seven hives' does not stand in turn 2"]


def test_what_a_turn_remembered_is_not_proposed(tmp_path: Path) -> None:
    """A sentence that memory has word for word needs no second batch."""
    layout = Layout(tmp_path)
    approve(layout, CELLO, "My train is late.")
    run(layout, "set", "said_t1_1", CELLO.rstrip("."), "--kind", "fact")
    assert run(layout, "reflect", "--json").value["data"]["proposals"] == []
