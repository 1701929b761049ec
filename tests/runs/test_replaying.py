"""`panda replay`, `panda diff` and the versions of recipes, through the command line on recorded turns."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panda.cli.main import build_program
from panda.documents.times import parse_time
from panda.store.layout import Layout, asset
from tests.api import tree
from tests.cli.programs import run_words
from tests.record_replays import FIRST_TURN, QUESTIONS, RECORDED_AT

Panda = Callable[..., dict[str, Any]]
TURN = str(FIRST_TURN)
ALL = f"{FIRST_TURN}-{FIRST_TURN + len(QUESTIONS) - 1}"


@pytest.fixture
def store(recorded: Path, tmp_path: Path) -> Layout:
    """The demo store with the recorded turns in it."""
    return Layout(shutil.copytree(recorded, tmp_path / "store"))


@pytest.fixture
def panda(store: Layout, capsys: pytest.CaptureFixture[str]) -> Panda:
    """Run a command with --json and give its object."""

    def run(*words: str) -> dict[str, Any]:
        ended = run_words(
            build_program(), [*words, "--json", "--root", str(store.root), "--user", "demo"], capsys
        )
        found: dict[str, Any] = json.loads(ended.out)
        return found

    return run


def turn_of(store: Layout) -> Path:
    return store.of("demo").turn(FIRST_TURN).directory


def test_a_run_is_kept(store: Layout, panda: Panda) -> None:
    """The run has a plan, a line a turn and results; the turns are sound, and untouched."""
    before = tree(store.users)
    assert panda("validate", ALL)["exit_code"] == 0
    found = panda("replay", ALL)
    assert found["exit_code"] == 0
    assert found["data"]["results"] == {"same": len(QUESTIONS)}
    run = store.runs / found["data"]["run"]
    plan = json.loads((run / "run.json").read_text())
    assert [one["turn"] for one in plan["turns"]] == [FIRST_TURN + n for n in range(len(QUESTIONS))]
    assert plan["fingerprint"]["models"]["MIND"]["name"] == "smollm2-135m"
    assert len((run / "turns.jsonl").read_text().splitlines()) == len(QUESTIONS)
    assert tree(store.users) == before


def unseal(turn: Path) -> None:
    """Take the seal off a turn, as turns of older stores have none and a forger would."""
    metadata = json.loads((turn / "metadata.json").read_text(encoding="utf-8"))
    metadata.pop("seal", None)
    (turn / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "old", "new", "finding"),
    [
        ("calls.jsonl", '"n": 2,', '"n": 7,', "a line is missing"),
        ("calls.jsonl", "[fit ", "[Fit ", "is not the text of its hash"),
        ("context.md", "verdict: APPROVE", "verdict: REVISE", "§6 says REVISE"),
        ("context.md", "**Next step:**", "**Next step:** " + "word " * 900, "more than its budget of 800"),
        ("response.md", "Sources:", "Sources :", "is not the answer of §5"),
        ("reflection.json", "PROCEED", "CLARIFY", "does not lead to status approved"),
    ],
)
def test_validate_finds(store: Layout, panda: Panda, name: str, old: str, new: str, finding: str) -> None:
    """What was changed behind the turn's back is found, also without a seal, and exit is 3."""
    edit(turn_of(store) / name, old, new)
    assert panda("validate", TURN)["exit_code"] == 3
    unseal(turn_of(store))
    found = panda("validate", TURN)
    assert found["exit_code"] == 3
    assert any(finding in one["message"] for one in found["data"]["problems"])


def test_validate_judges_the_evidence(store: Layout, panda: Panda) -> None:
    """A number in an approved item that no source of the turn holds is found, in answer and reply alike."""
    said = (turn_of(store) / "response.md").read_text(encoding="utf-8").partition(" [1]")[0].splitlines()[-1]
    for name in ("context.md", "response.md"):
        path = turn_of(store) / name
        before, five, after = path.read_text(encoding="utf-8").rpartition("## 5. Synthesis")
        path.write_text(before + five + after.replace(said, f"{said} for $597.00"), encoding="utf-8")
    unseal(turn_of(store))
    found = panda("validate", TURN)
    assert found["exit_code"] == 3
    told = [one["message"] for one in found["data"]["problems"]]
    assert any("$597.00" in one and "is not in" in one for one in told)


def test_to_judge_is_to_validate(panda: Panda) -> None:
    """What used to be a mode of replay names the command that does it."""
    found = panda("replay", ALL, "--mode", "verify")
    assert found["exit_code"] == 2
    assert f"panda validate {ALL}" in found["error"]["fix"]


def test_a_turn_of_the_project_s_own_store(
    store: Layout, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store in the current directory, named by nobody, is set back elsewhere without asking for trust."""
    monkeypatch.chdir(store.root.rename(store.root.parent / "panda-system-docs").parent)
    ended = run_words(build_program(), ["replay", TURN, "--user", "demo", "--json"], capsys)
    assert ended.value["data"]["results"] == {"same": 1}


def test_a_changed_recipe_is_named(
    store: Layout, panda: Panda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked only since the recipe was changed is a miss that says so; the turn is not the same."""
    monkeypatch.chdir(tmp_path)
    key = "pipeline/phase1_reflection"
    text = asset("recipes").joinpath(f"{key}.yaml").read_text(encoding="utf-8")
    fitted = "{scorer: head, fit: clear, reads: [query, order, antecedents]}"
    assert fitted in text
    own = tmp_path / "recipes" / f"{key}.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(text.replace(fitted, "{scorer: cosine, prompt: shared/two.md}"), encoding="utf-8")
    prompt = tmp_path / "prompts" / "shared" / "two.md"
    prompt.parent.mkdir(parents=True)
    prompt.write_text("# PROCEED\n- How much is it?\n\n# CLARIFY\n- And that?\n", encoding="utf-8")
    found = panda("replay", TURN)
    assert found["exit_code"] == 3, found
    (turn,) = found["data"]["turns"]
    assert turn["result"] in ("differs", "halted")
    assert {miss["cause"] for miss in turn["misses"]} == {"recipe changed"}


def test_a_selection(store: Layout, panda: Panda) -> None:
    """Directories, sessions and times select; each turn is taken once; nothing selected is wrong usage."""
    found = panda("replay", TURN, str(turn_of(store)))
    assert [turn["turn"] for turn in found["data"]["turns"]] == [FIRST_TURN]
    found = panda("replay", "--since", RECORDED_AT, "--status", "approved")
    assert len(found["data"]["turns"]) == len(QUESTIONS)
    for words in ((), ("--session", "nobody"), ("99999",), ("x-y",), (TURN, "--mode", "walk")):
        found = panda("replay", *words)
        assert found["exit_code"] == 2
        assert found["error"]["fix"]


def test_a_run_and_the_saved_turns(store: Layout, panda: Panda, tmp_path: Path) -> None:
    """A run that found nothing has no difference from the saved turns; a changed answer is a regression."""
    panda("replay", TURN)
    assert panda("diff", "saved", "last")["exit_code"] == 0
    edit(turn_of(store) / "response.md", "Sources:", "From:")
    found = panda("diff", "last", "saved", "--junit", str(tmp_path / "r.xml"))
    assert found["exit_code"] == 3
    assert [change["turn"] for change in found["data"]["answers"]] == [FIRST_TURN]
    assert (tmp_path / "r.xml").is_file()
    assert panda("diff", "saved", "saved")["exit_code"] == 2
    assert panda("diff", "saved", "never")["exit_code"] == 2


def test_an_earlier_version_is_ejected(
    store: Layout, panda: Panda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --force it is written over what is there, byte for byte, and the version it replaced is kept."""
    from panda.recipes.book import RecipeBook
    from panda.recipes.versions import VersionStore, version_in_force

    monkeypatch.chdir(tmp_path)
    name = "pipeline/phase1_reflection"
    book = RecipeBook((asset("recipes"),), (asset("prompts"),))
    packaged = version_in_force(book, name)
    VersionStore(store.recipe_versions, lambda: parse_time(RECORDED_AT)).keep(packaged)
    own = tmp_path / "prompts" / "pipeline" / "phase1_reflection.md"
    own.parent.mkdir(parents=True)
    own.write_text(packaged.prompts["pipeline/phase1_reflection.md"] + "- Another.\n", encoding="utf-8")
    listed = panda("recipe", "history", name)["data"]["versions"]
    assert [one["in_force"] for one in listed] == [False, True]
    refused = panda("recipe", "eject", name, "--version", packaged.version[:10])
    assert (refused["exit_code"], refused["error"]["where"]) == (2, str(own))
    assert own.read_text(encoding="utf-8").endswith("- Another.\n")
    assert not (tmp_path / "recipes").exists()
    found = panda("recipe", "eject", name, "--version", packaged.version[:10], "--force")
    assert str(own) in found["data"]["written"]
    assert own.read_text(encoding="utf-8") == packaged.prompts["pipeline/phase1_reflection.md"]
    listed = panda("recipe", "history", name)["data"]["versions"]
    assert {one["version"] for one in listed if one["in_force"]} == {packaged.version}
    assert len(listed) == 2
    assert panda("recipe", "eject", name, "--version", "ffff0000")["exit_code"] == 2
