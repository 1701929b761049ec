"""What a turn came to, as `turn`, `list`, `show` and `stats` tell it."""

from pathlib import Path

import pytest

from tests.api import Panda, on_terminal

UNSURE_QUERY = "How much does the Lenovo LOQ 15 cost?"
GARDEN = "# Garden\n\nThe tomatoes are watered on Monday.\n\nThe shed key hangs behind the door.\n"


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store whose notes have nothing to do with UNSURE_QUERY."""
    panda = Panda(tmp_path / "project")
    panda.write("store/users/default/knowledge/garden.md", GARDEN)
    panda.write("store/users/default/knowledge/trip.md", "# Trip\n\nThe flight to Lisbon leaves at 9:40.\n")
    return panda


def test_an_unsure_turn_ends_with_3_where_an_answer_is_required(panda: Panda) -> None:
    """The option changes the exit code and adds an error; the data is there all the same."""
    ended = panda.turn(UNSURE_QUERY)
    assert (ended.code, ended.data["outcome"]) == (0, "unsure")
    required = panda.turn(UNSURE_QUERY, "--require-answer")
    assert (required.code, required.data["outcome"]) == (3, "unsure")
    assert required.data["closest"]
    assert required.value["error"] == {
        "type": "CheckError",
        "message": "turn 2 has no answer: nothing surely answers it",
        "where": f"{required.directory}/response.md",
        "fix": "ask more precisely, or see what was read: panda show 2 --why",
    }
    as_text = panda("turn", "--require-answer", UNSURE_QUERY)
    assert as_text.code == 3
    assert "Closest:" in as_text.out
    assert "error: turn 3 has no answer: nothing surely answers it" in as_text.err


def test_a_turn_that_answers_ends_with_0_where_an_answer_is_required(panda: Panda) -> None:
    """The option leaves an answer as it is."""
    ended = panda.turn("When does the flight to Lisbon leave?", "--require-answer")
    assert (ended.code, ended.data["outcome"], ended.value["error"]) == (0, "answered", None)


def test_a_resumed_turn_can_be_required_to_answer(panda: Panda) -> None:
    """A turn whose context alone was gathered goes on to its end, which is no answer."""
    assert panda("gather", "--query", UNSURE_QUERY).code == 0
    ended = panda("turn", "--resume", "1", "--require-answer")
    assert ended.code == 3
    assert "turn 1 has no answer" in ended.err


@pytest.mark.parametrize("option", [["--resume-all"], ["--discard", "1"], ["--dry-run", "Hello?"]])
def test_an_answer_is_not_required_where_none_can_be_made(panda: Panda, option: list[str]) -> None:
    """The option is refused where it would be ignored."""
    ended = panda("turn", *option, "--require-answer")
    assert ended.code == 2
    assert "does not go with" in ended.err


def test_the_list_of_turns_tells_outcomes(panda: Panda) -> None:
    """A turn that has ended stands there with its outcome, another one with its status."""
    panda.turn(UNSURE_QUERY)
    panda.turn("When does the flight to Lisbon leave?")
    panda("gather", "--query", UNSURE_QUERY)
    turns = panda.json("list")["turns"]
    assert [turn["outcome"] for turn in turns] == ["unsure", "answered", None]
    ended = panda("list")
    assert ended.out.splitlines()[0].split("\t")[3] == "outcome"
    assert [row.split("\t")[3] for row in ended.rows] == ["unsure", "answered", "gathered"]


def test_show_tells_the_outcome_and_marks_what_was_shown_as_closest(panda: Panda) -> None:
    """`show` has it in its data; `--why` marks the lines of the closest passages."""
    unsure = panda.turn(UNSURE_QUERY)
    assert panda.json("show", "1")["outcome"] == "unsure"
    why = panda.json("show", "1", "--why")
    assert why["outcome"] == "unsure"
    assert why["closest"] == unsure.data["closest"]
    best = unsure.data["closest"][0]["best"]
    (row,) = (row for row in panda("show", "1", "--why").rows if best in row)
    assert "shown as closest, no answer" in row
    assert "shown as closest" in on_terminal(panda, "show", "1", "--why", width=140)


def test_stats_count_what_turns_came_to(panda: Panda) -> None:
    """`stats --by outcome` counts the turns that have ended, most first, and the others apart."""
    panda.turn(UNSURE_QUERY, PANDA_NOW="2026-01-02T10:00:00Z")
    for _ in range(2):
        panda.turn("When does the flight to Lisbon leave?")
    panda("gather", "--query", UNSURE_QUERY)
    assert panda.json("stats", "--by", "outcome") == {
        "by": "outcome",
        "turns": 3,
        "outcomes": {"answered": {"turns": 2, "share": 0.6667}, "unsure": {"turns": 1, "share": 0.3333}},
        "without_outcome": {"gathered": 1},
    }
    ended = panda("stats", "--by", "outcome", "--since", "2026-01-03")
    assert ended.out == "outcome\tturns\tshare of turns\nanswered\t2\t1.0\n"
    assert "without an outcome: 1 gathered" in ended.err
