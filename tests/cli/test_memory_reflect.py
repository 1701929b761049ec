"""`panda memory reflect`: as a user types it, and what a model that writes may add."""

from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda, ScriptedPanda
from tests.script import Script
from tests.store_files import write_turn

CELLO = "I play the cello in a trio."


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store in which ann has said nothing yet."""
    return Panda(tmp_path / "project", user="ann")


def approve(panda: Panda, *queries: str, first: int = 1) -> None:
    """Approved turns, numbered from *first*."""
    for number, query in enumerate(queries, first):
        write_turn(
            panda.user_directory, number, query=query, response="Nothing was found.", status="approved"
        )


def reflect(panda: Panda, *words: str, day: str = "2026-01-04") -> Any:
    """Return what is proposed on a day."""
    return panda.json("memory", "reflect", *words, PANDA_NOW=f"{day}T14:30:00Z")["proposals"]


def test_kept_after_two_batches(panda: Panda) -> None:
    """A proposal becomes a fact of .60 with the second batch; the same turns twice count once."""
    approve(panda, CELLO, "My train is late.", "What do I play?")
    dry = reflect(panda, "--dry-run")
    assert [(proposal["relation"], proposal["value"]) for proposal in dry] == [
        ("play_cello", "the cello in a trio")
    ]
    assert not (panda.user_directory / "proposed_facts.jsonl").exists()
    for _ in range(2):
        rows = panda("memory", "reflect").rows
        assert [row.split("\t")[:5] for row in rows] == [
            ["proposed", "play_cello", "the cello in a trio", "1", "1"]
        ]
    approve(panda, "How late is it?", first=4)
    data = panda.json("memory", "reflect")
    assert [proposal["status"] for proposal in data["proposals"]] == ["kept"]
    (fact,) = data["appended"]
    assert (fact["kind"], fact["confidence"], fact["source_turn"]) == ("fact", 0.6, 1)
    assert panda("memory", "get", "play_cello").out == "the cello in a trio\n"


@pytest.mark.parametrize(("day", "status"), [("2026-02-02", "kept"), ("2026-02-03", "dropped")])
def test_a_second_batch_counts_within_thirty_days(day: str, status: str, panda: Panda) -> None:
    """A dropped proposal is proposed anew only if it is said anew."""
    approve(panda, CELLO, "My train is late.")
    reflect(panda)
    approve(panda, "How late is it?", first=3)
    assert [proposal["status"] for proposal in reflect(panda, day=day)] == [status]
    if status == "dropped":
        approve(panda, "And the bus?", first=4)
        assert "proposed" not in [proposal["status"] for proposal in reflect(panda, day=day)]
        approve(panda, *["What is on today?"] * 10, CELLO, first=5)
        assert "proposed" in [proposal["status"] for proposal in reflect(panda, day=day)]


def test_a_damaged_turn_is_left_out(panda: Panda) -> None:
    """The other turns are reflected on, and the damaged one is told with its fault."""
    approve(panda, CELLO, "My train is late.", "What do I play?")
    panda.turn_file(2, "metadata.json").write_text("{", encoding="utf-8")
    ended = panda("memory", "reflect", "--json")
    assert [proposal["relation"] for proposal in ended.data["proposals"]] == ["play_cello"]
    assert "turn 2 is left out" in ended.err
    assert "metadata.json:1" in ended.err


def test_what_memory_knows_is_not_proposed(panda: Panda) -> None:
    """A value that is held, or noted word for word, or was taken back is left alone, under whatever key."""
    approve(panda, CELLO, "I keep bees.", "I collect old maps.", "I run a small bakery.")
    panda("memory", "set", "instrument", "the cello in a trio")
    panda("memory", "set", "keep_bees", "two hives")
    panda("memory", "retract", "keep_bees")
    panda("memory", "set", "said_t4_1", "I run a small bakery", "--kind", "fact")
    assert [proposal["relation"] for proposal in reflect(panda)] == ["collect_maps"]


def test_keys_are_what_a_sentence_is_about(panda: Panda) -> None:
    """The key names the thing, not its first adjective; the value ends where another clause begins."""
    expected = {
        "I drive an old Volvo V70 and it makes a noise.": ("drive_v70", "an old Volvo V70"),
        "We have two sheds. What roof is good?": ("have_sheds", "two sheds"),
        "I run a small bakery with my brother.": ("run_bakery", "a small bakery with my brother"),
        "I speak Norwegian and German.": ("speak_norwegian", "Norwegian and German"),
    }
    approve(panda, *expected)
    proposals = {(proposal["relation"], proposal["value"]) for proposal in reflect(panda)}
    assert proposals == set(expected.values())


def test_recalled_quoted_and_unapproved_text_is_not_proposed(panda: Panda) -> None:
    """Earlier answers, pasted text, and turns that were not approved teach nothing."""
    user = panda.user_directory
    write_turn(user, 1, query="Tell me.", response=f"It says: {CELLO}", status="approved")
    approve(panda, CELLO, "> I keep bees.\n\nWhat is that?", first=2)
    write_turn(user, 4, query="I collect old maps.", response="", status="failed")
    data = panda.json("memory", "reflect")
    assert (data["turns"], data["proposals"]) == ([1, 2, 3], [])


def test_a_writing_model_words_key_and_value(ann: ScriptedPanda) -> None:
    """Its value counts if the sentence holds it; what it made up is refused and told."""
    approve(ann, CELLO, "I keep bees.", first=3)
    facts = [
        {"keep": "s1", "key": "instrument", "value": "cello"},
        {"keep": "s2", "key": "hives", "value": "seven hives"},
    ]
    ann.server.script = Script(**{"another program": {"facts": facts}})
    ended = ann("memory", "reflect", "--json")
    proposals = [(fact["relation"], fact["value"], fact["source_turn"]) for fact in ended.data["proposals"]]
    assert proposals == [("instrument", "cello", 3)]
    assert "not proposed: 'seven hives' does not stand in turn 4" in ended.err
