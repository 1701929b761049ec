"""What the turns of a batch came to: expected, told and compared."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.api import Panda
from tests.batches.commands import begin_batch, item

UNSURE_QUERY = "How much does the Lenovo LOQ 15 cost?"
FLIGHT_QUERY = "When does the flight to Lisbon leave?"


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store whose notes have nothing to do with UNSURE_QUERY."""
    panda = Panda(tmp_path / "project")
    garden = "# Garden\n\nThe tomatoes are watered on Monday.\n\nThe shed key hangs behind the door.\n"
    panda.write("store/users/default/knowledge/garden.md", garden)
    panda.write("store/users/default/knowledge/trip.md", "# Trip\n\nThe flight to Lisbon leaves at 9:40.\n")
    return panda


def expecting(name: str, query: str = UNSURE_QUERY, **expect: Any) -> dict[str, Any]:
    """Return a line of a batch with what it expects."""
    return item(name, query, expect=expect)


def test_an_outcome_can_be_expected(panda: Panda) -> None:
    """A value or a list of values; what else the turn came to is a finding."""
    lines = [
        expecting("one", outcome="unsure"),
        expecting("several", outcome=["nothing", "unsure"]),
        expecting("wrong", outcome=["answered", "noted"]),
        expecting("code", outcome="unsure", exit_code=21),
    ]
    data = begin_batch(panda, lines)
    assert {row["item"]: (row["result"], row["findings"]) for row in data["items"]} == {
        "one": ("passed", []),
        "several": ("passed", []),
        "wrong": ("failed", ["its outcome is unsure, not answered or noted"]),
        "code": ("failed", ["it ended 0, not 21"]),
    }


def test_an_expected_outcome_stands_for_its_exit_code(panda: Panda) -> None:
    """A turn that asks back passes where that is expected, with no word of its exit code."""
    data = begin_batch(panda, [expecting("q", "Delete it.", outcome="asked")])
    assert [(row["result"], row["findings"]) for row in data["items"]] == [("passed", [])], data


@pytest.mark.parametrize(
    ("outcome", "where"), [("sure", "expect.outcome"), (["unsure", "sure"], "expect.outcome[1]")]
)
def test_an_unknown_outcome_is_refused(panda: Panda, outcome: Any, where: str) -> None:
    """The error names the key, and the word that is nearest."""
    line = json.dumps(expecting("q", outcome=outcome))
    ended = panda("batch", "-", "--json", stdin=line)
    assert ended.code == 2
    error = ended.value["error"]
    assert error["where"] == f"stdin:1 ({where})"
    assert "unsure" in error["fix"]


def test_the_closest_passages_are_no_answer(panda: Panda) -> None:
    """`contains` and `cites` do not see what is shown as closest; a line of --out has it."""
    first = expecting("q", contains="Lisbon", cites="knowledge:trip.md", outcome="unsure")
    begin_batch(panda, [first], "--out", "out.jsonl")
    line = json.loads((panda.home / "out.jsonl").read_text(encoding="utf-8"))
    assert line["outcome"] == "unsure"
    assert "knowledge:trip.md" in [passage["node_id"] for passage in line["closest"]]
    assert line["findings"] == [
        "the answer does not hold 'Lisbon'",
        "the answer does not cite 'knowledge:trip.md'",
    ]


def test_outcomes_stand_in_rows_and_reports(panda: Panda) -> None:
    """The table, JUnit and the page tell each item's outcome, and --resume as well."""
    panda.write_lines("q.jsonl", item("a", UNSURE_QUERY), item("b", FLIGHT_QUERY))
    ended = panda("batch", "q.jsonl", "--junit", "j.xml", "--html", "p.html")
    assert [row.split("\t")[:3] for row in ended.rows] == [
        ["a", "passed", "unsure"],
        ["b", "passed", "answered"],
    ]
    cases = ElementTree.parse(panda.home / "j.xml").getroot().iter("testcase")
    values = [case.findall("properties/property[@name='outcome']") for case in cases]
    assert [value.get("value") for (value,) in values] == ["unsure", "answered"]
    assert "<td>unsure</td>" in (panda.home / "p.html").read_text(encoding="utf-8")
    assert [row["outcome"] for row in panda.json("batch", "--resume", "last")["items"]] == [
        "unsure",
        "answered",
    ]


def test_a_changed_outcome_is_a_flip(panda: Panda) -> None:
    """Two batches with a note more between them: the comparison tells the outcome of the turn."""
    line = item("q", UNSURE_QUERY)
    begin_batch(panda, [line])
    panda.write("store/users/default/knowledge/shop.md", "# Shop\n\nThe Lenovo LOQ 15 costs $697.\n")
    begin_batch(panda, [line])
    runs = sorted(path.name for path in (panda.store / "runs").iterdir())
    ended = panda("diff", *runs, "--json")
    flips = {flip["name"]: (flip["before"], flip["after"]) for flip in ended.data["flips"]}
    assert (ended.code, flips["outcome"]) == (3, ("unsure", "answered"))
    assert panda("diff", runs[0], runs[0], "--json").data["flips"] == []


def test_a_replay_tells_a_changed_outcome(panda: Panda) -> None:
    """A turn whose note has changed since, run again live, has another outcome; that is a finding."""
    note = panda.write("store/users/default/knowledge/shop.md", "# Shop\n\nThe Lenovo LOQ 15 costs $697.\n")
    assert panda.turn(UNSURE_QUERY).data["outcome"] == "answered"
    note.write_text("# Shop\n\nThe counter opens at nine.\n", encoding="utf-8")
    ended = panda("replay", "1", "--mode", "rerun", "--json")
    (turn,) = ended.data["turns"]
    assert (turn["result"], turn["outcome"]) == ("differs", "unsure")
    assert "its outcome is unsure, and was answered" in turn["findings"]
    rows = panda("replay", "1", "--mode", "rerun").rows
    assert [row.split("\t")[:3] for row in rows] == [["1", "differs", "unsure"]]
