"""`panda replay`, `panda diff` and the versions of recipes, through the command line on recorded turns."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api import ROOT, Panda, ScriptedPanda, tree
from tests.record_replays import FIRST_TURN, QUESTIONS, RECORDED_AT

TURN = str(FIRST_TURN)
ALL = f"{FIRST_TURN}-{FIRST_TURN + len(QUESTIONS) - 1}"
ANALYZER = "pipeline/phase0_query_analyzer"
CONTEXT = "pipeline/phase2_5_context_validator"


@pytest.fixture
def panda(recorded: Path, tmp_path: Path) -> Panda:
    """A project with the demo store and the recorded turns in it."""
    return Panda(tmp_path / "project", recorded, user="demo")


def test_recorded_turns_come_out_the_same(panda: Panda) -> None:
    """Every document is byte for byte what it was, and the run is kept; else `make record`."""
    before = tree(panda.store / "users")
    assert panda("validate", ALL).code == 0
    data = panda.json("replay", ALL)
    assert [miss for turn in data["turns"] for miss in turn["misses"]] == []
    assert data["results"] == {"same": len(QUESTIONS)}
    run = panda.store / "runs" / data["run"]
    plan = json.loads((run / "run.json").read_bytes())
    numbers = [turn["turn"] for turn in plan["turns"]]
    assert numbers == [FIRST_TURN + n for n in range(len(QUESTIONS))]
    assert plan["fingerprint"]["models"]["MIND"]["name"] == "minilm-l6"
    assert len((run / "turns.jsonl").read_text(encoding="utf-8").splitlines()) == len(QUESTIONS)
    for number in numbers:
        (again,) = run.rglob(f"turn_{number:06d}/context.md")
        assert again.read_bytes() == panda.turn_file(number, "context.md").read_bytes()
    assert tree(panda.store / "users") == before


def unseal(panda: Panda, number: int = FIRST_TURN) -> None:
    """Take the seal off a turn, as turns of older stores have none and a forger would."""
    path = panda.turn_file(number, "metadata.json")
    metadata = json.loads(path.read_bytes())
    metadata.pop("seal", None)
    path.write_text(json.dumps(metadata), encoding="utf-8")


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text of a file once."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def messages_of(panda: Panda) -> list[str]:
    """Return what `panda validate` says of an unsound turn."""
    ended = panda("validate", TURN, "--json")
    assert ended.code == 3
    return [problem["message"] for problem in ended.data["problems"]]


@pytest.mark.parametrize(
    ("name", "old", "new", "finding"),
    [
        ("calls.jsonl", '"n": 2,', '"n": 7,', "a line is missing"),
        ("context.md", "verdict: APPROVE", "verdict: REVISE", "§6 says REVISE"),
        ("context.md", "**Next step:**", "**Next step:** " + "word " * 900, "more than its budget of 800"),
        ("response.md", "Sources:", "Sources :", "is not the answer of §5"),
        ("reflection.json", "PROCEED", "CLARIFY", "does not lead to status approved"),
    ],
)
def test_validate_finds(panda: Panda, name: str, old: str, new: str, finding: str) -> None:
    """A change behind the turn's back is found, also without a seal, and exit is 3."""
    edit(panda.turn_file(FIRST_TURN, name), old, new)
    assert messages_of(panda)
    unseal(panda)
    assert any(finding in message for message in messages_of(panda))


def test_validate_judges_the_evidence(panda: Panda) -> None:
    """A number in an approved item that no source of the turn holds is found, in answer and reply alike."""
    response = panda.turn_file(FIRST_TURN, "response.md").read_text(encoding="utf-8")
    item = response.partition(" [1]")[0].splitlines()[-1]
    for name in ("context.md", "response.md"):
        path = panda.turn_file(FIRST_TURN, name)
        before, heading, after = path.read_text(encoding="utf-8").rpartition("## 5. Synthesis")
        path.write_text(before + heading + after.replace(item, f"{item} for $597.00"), encoding="utf-8")
    unseal(panda)
    assert any("$597.00" in message and "is not in" in message for message in messages_of(panda))


def test_to_judge_is_to_validate(panda: Panda) -> None:
    """A former mode of replay names the command that does it."""
    ended = panda("replay", ALL, "--mode", "verify", "--json")
    assert ended.code == 2
    assert f"panda validate {ALL}" in ended.error["fix"]


def test_a_turn_of_the_project_s_own_store(panda: Panda) -> None:
    """A store in the current directory, named by nobody, is set back elsewhere without asking for trust."""
    panda.store.rename(panda.home / "panda-system-docs")
    for name in ("PANDA_ROOT", "PANDA_TRUST"):
        del panda.environ[name]
    assert panda.json("replay", TURN)["results"] == {"same": 1}


def test_a_changed_recipe_is_named(ann: ScriptedPanda) -> None:
    """A call that is made only since the recipe was changed is a miss that says so."""
    assert ann.turn().code == 0
    text = (ROOT / "recipes" / f"{ANALYZER}.yaml").read_text(encoding="utf-8")
    ann.write(f"recipes/{ANALYZER}.yaml", f"{text}temperature: 0.9\n")
    ended = ann("replay", "3", "--json")
    assert ended.code == 3, ended.out
    (turn,) = ended.data["turns"]
    assert [(miss["recipe"], miss["kind"], miss["cause"]) for miss in turn["misses"]] == [
        (ANALYZER, "generate", "recipe changed")
    ]


def test_a_changed_prompt_is_found(ann: ScriptedPanda) -> None:
    """A text of a call that is not the one of its hash is found by validate, also without a seal."""
    assert ann.turn().code == 0
    edit(ann.turn_file(3, "calls.jsonl"), "Reply with one JSON object", "Reply with two JSON objects")
    unseal(ann, 3)
    ended = ann("validate", "3", "--json")
    assert ended.code == 3
    assert any("is not the text of its hash" in problem["message"] for problem in ended.data["problems"])


def offline_calls(path: Path) -> list[tuple[Any, ...]]:
    """Return recipe, digest of the inputs, behaviour and reply of each line of a calls.jsonl."""
    calls = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert {call["kind"] for call in calls} == {"offline"}
    return [(call["recipe"], call["hashes"]["inputs"], call["behaviour"], call["reply"]) for call in calls]


def test_an_offline_call_is_written_down(panda: Panda) -> None:
    """A line of calls.jsonl has reply, behaviour, and digests of inputs, encoder and weights; no prompt."""
    text = panda.turn_file(FIRST_TURN, "calls.jsonl").read_text(encoding="utf-8")
    (call,) = [call for call in map(json.loads, text.splitlines()) if call["recipe"] == CONTEXT]
    assert (call["kind"], call["model"], call["attempt"]) == ("offline", "minilm-l6", 1)
    assert (call["behaviour"], call["reply"]) == (4, {"verdict": "pass"})
    assert {"inputs", "weights", "model", "recipe", "version"} <= set(call["hashes"])
    assert call["usage"] == {"prompt": 0, "reused": 0, "output": 0}
    assert not {"messages", "prefix", "options", "parameters"} & set(call)


def test_recorded_offline_replies_are_reproduced(panda: Panda) -> None:
    """Of the same inputs comes the same reply by the same behaviour: else raise its number, `make record`."""
    data = panda.json("replay", ALL)
    run = panda.store / "runs" / data["run"]
    for number in range(FIRST_TURN, FIRST_TURN + len(QUESTIONS)):
        (again,) = run.rglob(f"turn_{number:06d}/calls.jsonl")
        assert offline_calls(again) == offline_calls(panda.turn_file(number, "calls.jsonl"))


def test_an_offline_reply_that_is_another_is_told(panda: Panda) -> None:
    """A reply that the program does not give any more is a miss that says so, with the difference."""
    path = panda.turn_file(FIRST_TURN, "calls.jsonl")
    edit(path, '{"verdict": "pass"}', '{"verdict": "clarify"}')
    unseal(panda)
    ended = panda("replay", TURN, "--json")
    assert ended.code == 3, ended.out
    (turn,) = ended.data["turns"]
    (miss,) = turn["misses"]
    assert (miss["recipe"], miss["kind"]) == (CONTEXT, "offline")
    assert miss["cause"] == "behaves otherwise since"
    assert '-  "verdict": "clarify"' in miss["difference"]


def test_a_selection(panda: Panda) -> None:
    """Directories, sessions and times select; each turn is taken once; nothing selected is wrong usage."""
    data = panda.json("replay", TURN, str(panda.turn_file(FIRST_TURN, "")))
    assert [turn["turn"] for turn in data["turns"]] == [FIRST_TURN]
    data = panda.json("replay", "--since", RECORDED_AT, "--status", "approved")
    assert len(data["turns"]) == len(QUESTIONS)
    for words in ((), ("--session", "nobody"), ("99999",), ("x-y",), (TURN, "--mode", "walk")):
        ended = panda("replay", *words, "--json")
        assert ended.code == 2
        assert ended.error["fix"]


def test_a_run_and_the_saved_turns(panda: Panda) -> None:
    """A run that found nothing has no difference from the saved turns; a changed answer is a regression."""
    panda.json("replay", TURN)
    assert panda("diff", "saved", "last").code == 0
    edit(panda.turn_file(FIRST_TURN, "response.md"), "Sources:", "From:")
    ended = panda("diff", "last", "saved", "--junit", "r.xml", "--json")
    assert ended.code == 3
    assert [change["turn"] for change in ended.data["answers"]] == [FIRST_TURN]
    assert (panda.home / "r.xml").is_file()
    assert panda("diff", "saved", "saved").code == 2
    assert panda("diff", "saved", "never").code == 2


def test_an_earlier_version_is_ejected(panda: Panda) -> None:
    """With --force it is written over what is there, byte for byte, and the version it replaced is kept."""
    packaged = (ROOT / "prompts" / f"{ANALYZER}.md").read_text(encoding="utf-8")
    (version,) = list_versions(panda)
    assert (
        panda("batch", "-", "--save", stdin='{"id": "a", "query": "Who was Napoleon?"}\n').code == 0
    )  # keeps it
    own = panda.write(f"prompts/{ANALYZER}.md", packaged + "- Another.\n")
    assert list(list_versions(panda).values()) == [False, True]
    eject = ("recipe", "eject", ANALYZER, "--json", "--version")
    refused = panda(*eject, version[:10])
    assert (refused.code, refused.error["where"]) == (2, str(own))
    assert own.read_text(encoding="utf-8").endswith("- Another.\n")
    assert not (panda.home / "recipes").exists()
    assert str(own) in panda(*eject, version[:10], "--force").data["written"]
    assert own.read_text(encoding="utf-8") == packaged
    versions = list_versions(panda)
    assert len(versions) == 2
    assert versions[version]
    assert panda(*eject, "ffff0000").code == 2


def list_versions(panda: Panda) -> dict[str, bool]:
    """Return the versions of the recipe of phase 0 in order, and whether each is in force."""
    versions = panda.json("recipe", "history", ANALYZER)["versions"]
    return {version["version"]: version["in_force"] for version in versions}
