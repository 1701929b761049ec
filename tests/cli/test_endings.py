"""How `panda turn` ends: exit code, stdout, status and JSON."""

from pathlib import Path
from typing import Any

import pytest

from tests.api import PRICE_QUESTION, Panda, ScriptedPanda
from tests.script import PRICE, PRICE_NODE, Script

PLACE = "turns/turn_000001/webpage_cache/page-visit_loq/extracted.json"
ANSWER = f"The Lenovo LOQ 15 costs $697. [1]\n\nSources:\n- [1] {PRICE_NODE}, {PLACE}"
QUESTION = "Which laptop do you mean?"
WRONG = "The Lenovo LOQ 15 costs $5."
REFUSED = {
    "refused": [WRONG],
    "sources": [{"node_id": PRICE_NODE, "provenance": PLACE, "quote": PRICE}],
}
ENDINGS: dict[int, tuple[dict[str, Any], str, str, dict[str, Any]]] = {
    0: ({}, ANSWER, "approved", {"answered": True, "response": ANSWER, "question": None}),
    20: ({"answer": "no JSON"}, "", "halted", {"answered": None, "response": None, "question": None}),
    21: (
        {"planner": {"tools": [], "next_step": "clarify", "question": QUESTION}},
        QUESTION,
        "clarify",
        {"answered": False, "response": None, "question": QUESTION},
    ),
    22: (
        {"answer": {"items": [{"text": WRONG, "node_ids": [PRICE_NODE]}]}},
        "",
        "failed",
        {"answered": False, "response": None, "question": None, **REFUSED},
    ),
}
"""By exit code: what the model replies, stdout, the status, and a part of the data of --json."""
ERRORS = {
    20: ("ReplyError", "no valid reply in 3 attempts: not JSON"),
    22: ("NotApprovedError", f"$5 in '{WRONG}' is not in {PRICE_NODE}"),
}
"""By exit code: type of the error, and a part of its message."""


def interventions(ann: ScriptedPanda) -> list[str]:
    """Return the names of the interventions."""
    return [path.stem for path in (ann.store / "interventions").glob("*.json")]


@pytest.mark.parametrize("code", ENDINGS)
def test_plain_output(ann: ScriptedPanda, code: int) -> None:
    """stdout has the answer or the question and nothing else; what went wrong is on stderr, with a fix."""
    replies, out, status, _ = ENDINGS[code]
    ann.server.script = Script(**replies)
    ended = ann("turn", PRICE_QUESTION)
    assert (ended.code, ended.out.removesuffix("\n")) == (code, out)
    assert f'"status": "{status}"' in ann.turn_file(3, "metadata.json").read_text(encoding="utf-8")
    lines = ended.err.splitlines()
    if code in ERRORS:
        assert [line.partition(":")[0] for line in lines[-3:]] == ["error", "where", "fix"]
        assert ERRORS[code][1] in lines[-3]
    else:
        assert "error: " not in ended.err
    refused = [f"refused: {WRONG}", f"evidence: {PRICE} [{PRICE_NODE}]"]
    reported = [line for line in lines if line.startswith(("refused: ", "evidence: "))]
    assert reported == (refused if code == 22 else [])
    assert [line for line in lines if line.startswith("halted: ")] == [
        f"halted: panda intervention show {name} tells more" for name in interventions(ann)
    ]
    assert len(interventions(ann)) == (code == 20)


@pytest.mark.parametrize("code", ENDINGS)
def test_json_output(ann: ScriptedPanda, code: int) -> None:
    """stdout is one object that says the same as the exit code and the turn's files."""
    replies, _, status, data = ENDINGS[code]
    turn = ann.turn(script=Script(**replies))
    value = turn.value
    assert (turn.code, value["exit_code"], value["ok"], value["command"]) == (code, code, code == 0, "turn")
    assert (turn.number, turn.data["status"], turn.status) == (3, status, status)
    assert {name: turn.data[name] for name in data} == data
    kind, message = ERRORS.get(code, (None, ""))
    error = value["error"] or {"type": None, "message": ""}
    assert error["type"] == kind
    assert message in error["message"]
    assert interventions(ann) == ([turn.data["intervention"]] if code == 20 else [])


NOTED = "Noted: my favorite hamster is Syrian [1]\n- favorite_hamster: Syrian\n\n"


@pytest.mark.parametrize(
    ("query", "code", "out", "status"),
    [
        (
            "my favorite hamster is Syrian",
            0,
            f"{NOTED}Sources:\n- [1] turn:1, §0.raw_query\n",
            "approved",
        ),
        (
            "And the blue one?",
            21,
            "What do you mean by “And the blue one?”? Please name the thing that it is about.\n",
            "clarify",
        ),
    ],
)
def test_the_embedded_model(tmp_path: Path, query: str, code: int, out: str, status: str) -> None:
    """As a process out of the box, a statement is kept, and a query that refers to nothing is asked back."""
    panda = Panda(tmp_path)
    panda("init")
    ended = panda.process("turn", query)
    assert (ended.code, ended.out) == (code, out)
    assert panda.json("list")["turns"][0]["status"] == status
