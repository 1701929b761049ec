"""How `panda turn` ends: exit code, stdout, status and JSON of a real process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panda.store.layout import UserStore
from tests.builders import still_clock
from tests.script import PRICE, PRICE_NODE
from tests.session.processes import FreshTalk, fresh_talk

QUERY = "How much is the Lenovo LOQ 15?"
ANSWER = (
    "The Lenovo LOQ 15 costs $697. [1]\n\nSources:\n"
    f"- [1] {PRICE_NODE}, turns/turn_000001/webpage_cache/page-visit_loq/extracted.json"
)
QUESTION = "Which laptop do you mean?"
WRONG = "The Lenovo LOQ 15 costs $5."
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
        {
            "answered": False,
            "response": None,
            "question": None,
            "refused": [WRONG],
            "sources": [
                {
                    "node_id": PRICE_NODE,
                    "provenance": "turns/turn_000001/webpage_cache/page-visit_loq/extracted.json",
                    "quote": PRICE,
                }
            ],
        },
    ),
}
"""By exit code: what the model replies, stdout, the status, and a part of the data of --json."""
ERRORS = {
    20: ("ReplyError", "no valid reply in 3 attempts: not JSON"),
    22: ("NotApprovedError", f"$5 in '{WRONG}' is not in {PRICE_NODE}"),
}
"""By exit code: type of the error, and a part of its message."""


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[FreshTalk]:
    """A store, and a loopback server that is its model."""
    with fresh_talk(tmp_path) as running:
        yield running


@pytest.mark.parametrize("code", ENDINGS)
def test_plain_output(talk: FreshTalk, code: int) -> None:
    """stdout has the answer or the question and nothing else; what went wrong is on stderr, with a fix."""
    replies, out, status, _ = ENDINGS[code]
    ended, stdout, stderr = talk.outputs(QUERY, replies, as_json=False)
    assert (ended, stdout.removesuffix("\n")) == (code, out)
    assert talk.newest.read_metadata().status == status
    if code not in ERRORS:
        assert "error: " not in stderr
        return
    lines = stderr.splitlines()[-3:]
    assert [line.partition(":")[0] for line in lines] == ["error", "where", "fix"]
    assert ERRORS[code][1] in lines[0]
    told = [line for line in stderr.splitlines() if line.startswith(("refused: ", "evidence: "))]
    refused = [f"refused: {WRONG}", f"evidence: {PRICE} [{PRICE_NODE}]"]
    assert told == (refused if code == 22 else [])
    halts = [path.stem for path in talk.layout.interventions.glob("*.json")]
    shown = [line for line in stderr.splitlines() if line.startswith("halted: ")]
    assert shown == [f"halted: panda intervention show {halt} tells more" for halt in halts]
    assert len(halts) == (code == 20)


@pytest.mark.parametrize("code", ENDINGS)
def test_json_output(talk: FreshTalk, code: int) -> None:
    """stdout is one object that says the same as the exit code and the turn's files."""
    replies, _, status, data = ENDINGS[code]
    ended, stdout, _ = talk.outputs(QUERY, replies, as_json=True)
    value = json.loads(stdout)
    assert (ended, value["exit_code"], value["ok"], value["command"]) == (code, code, code == 0, "turn")
    metadata = talk.newest.read_metadata()
    assert (value["data"]["turn"], value["data"]["status"], metadata.status) == (3, status, status)
    assert {name: value["data"][name] for name in data} == data
    error = value["error"] or {"type": None, "message": ""}
    kind, message = ERRORS.get(code, (None, ""))
    assert error["type"] == kind
    assert message in error["message"]
    assert (value["data"]["intervention"] is not None) == (code == 20)
    left = [path.stem for path in talk.layout.interventions.glob("*.json")]
    assert left == [value["data"]["intervention"]] * (code == 20)


@pytest.mark.parametrize(
    ("query", "code", "out", "status"),
    [
        (
            "my favorite hamster is Syrian",
            0,
            "Noted: my favorite hamster is Syrian [1]\n- favorite_hamster: Syrian\n\n"
            "Sources:\n- [1] turn:1, §0.raw_query\n",
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
    """Out of the box a statement is kept, and a query that nothing goes before is asked back."""
    panda, root = str(Path(sys.executable).with_name("panda")), str(tmp_path / "store")
    subprocess.run([panda, "init", "--quiet", "--root", root], check=True)
    done = subprocess.run([panda, "turn", query, "--root", root], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, out)
    metadata = UserStore(tmp_path / "store", "default", still_clock).open(1).read_metadata()
    assert metadata.status == status
