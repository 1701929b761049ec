"""`panda diff` of two runs: what flipped, where it began, what it cost, and what was not compared."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.api import LAPTOPS, Ended, Panda
from tests.store_files import write_json

REFLECTION = "pipeline/phase1_reflection"
PLANNER = "pipeline/phase3_planner_chat"
VERSIONS = {REFLECTION: {"version": "v1", "model": "m1"}, PLANNER: {"version": "w1", "model": "m1"}}
DIFF = ("diff", "before", "after")
STARTED = "2026-01-04T14:30:00Z"


def cost(phase: int, recipe: str, tokens: int | None) -> dict[str, Any]:
    """Return what a phase took."""
    return {"phase": phase, "recipes": [recipe], "calls": 2, "tokens": tokens, "seconds": 0.5}


def outcome(
    turn: int, *, decision: str = "PROCEED", step: str = "synthesis", answer: str = "$697", **changes: Any
) -> dict[str, Any]:
    """Return what a turn came to."""
    return {
        "turn": turn,
        "user": "ann",
        "query": "How much <b>is</b> it?\x1b[31m",
        "status": "approved",
        "answered": True,
        "answer": answer,
        "decisions": [
            {"phase": 1, "recipe": REFLECTION, "name": "decision", "value": decision},
            {"phase": 3, "recipe": PLANNER, "name": "next_step", "value": step},
        ],
        "sections": {"0": "a", "1": decision, "3": step, "5": answer},
        "phases": [cost(1, REFLECTION, 100), cost(3, PLANNER, 50)],
        "recipes": VERSIONS,
        **changes,
    }


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with the store of ann."""
    return Panda(tmp_path / "project", LAPTOPS, user="ann")


def write_run(panda: Panda, name: str, *outcomes: dict[str, Any], failed: tuple[int, ...] = ()) -> None:
    """Write a finished run of these turns, of which some failed."""
    directory = panda.store / "runs" / name
    directory.mkdir(parents=True)
    keys = ("turn", "user", "item")
    planned = [{key: turn[key] for key in keys if key in turn} for turn in outcomes]
    planned += [{"turn": number, "user": "ann"} for number in failed]
    plan = {
        "schema": "panda.run/1",
        "id": name,
        "mode": "simulate",
        "started_at": STARTED,
        "finished_at": STARTED,
        "turns": planned,
        "fingerprint": {"panda": "0.1.0", "recipes": {}, "models": {}},
        "options": {},
        "results": {"same": len(outcomes), "error": len(failed)},
    }
    write_json(directory / "run.json", plan)
    lines: list[dict[str, Any]] = [
        {**key, "directory": "x", "result": "same", "outcome": turn}
        for key, turn in zip(planned, outcomes, strict=False)
    ]
    lines += [
        {"turn": number, "user": "ann", "directory": "x", "result": "error", "findings": ["it is away"]}
        for number in failed
    ]
    panda.write_lines(f"store/runs/{name}/turns.jsonl", *lines)


def compare(panda: Panda, before: list[dict[str, Any]], after: list[dict[str, Any]], *words: str) -> Ended:
    """Run `panda diff` on two runs of these outcomes."""
    write_run(panda, "before", *before)
    write_run(panda, "after", *after)
    return panda(*DIFF, "--json", *words)


def suite_of(panda: Panda, *words: str) -> tuple[ElementTree.Element, tuple[str | None, ...]]:
    """Compare the runs again; return their JUnit XML, and its tests, failures, errors and skipped cases."""
    panda(*DIFF, "--junit", "r.xml", *words)
    suite = ElementTree.parse(panda.home / "r.xml").getroot()
    return suite, tuple(suite.get(name) for name in ("tests", "failures", "errors", "skipped"))


def test_same_runs_have_no_difference(panda: Panda) -> None:
    """Two runs with the same outcomes differ in nothing and are no regression."""
    ended = compare(panda, [outcome(1), outcome(2)], [outcome(1), outcome(2)])
    assert ended.code == 0
    assert (ended.data["verdict"], ended.data["turns"], ended.data["regressions"]) == ("sound", 2, [])


@pytest.mark.parametrize(("cited", "verdict"), [(1816, "sound"), (815, "unsound")])
def test_an_items_own_number_is_no_difference(panda: Panda, cited: int, verdict: str) -> None:
    """A batch numbers its turns by what the store holds: what is told of the turn itself is the same."""
    answer = "Noted: “My car is red.” [1]\n\nSources:\n- [1] turn:{n}, turns/turn_{n:06d}/context.md"
    before = outcome(815, answer=answer.format(n=815), item="q1")
    after = outcome(1816, answer=answer.format(n=cited), item="q1")
    assert compare(panda, [before], [after]).data["verdict"] == verdict


def test_the_first_flip_names_the_recipe(panda: Panda) -> None:
    """Of several flips in a turn, the first is where the change began; the regression names its recipe."""
    flipped = outcome(1, decision="CLARIFY", step="coordinator", answer="What?")
    ended = compare(panda, [outcome(1)], [flipped])
    assert ended.code == 3
    flips = [(flip["recipe"], flip["first"]) for flip in ended.data["flips"]]
    assert flips == [(REFLECTION, True), (PLANNER, False)]
    (change,) = ended.data["answers"]
    assert (change["phase"], change["recipe"]) == (1, REFLECTION)
    assert len(ended.data["regressions"]) == 2
    assert all(REFLECTION in text and PLANNER not in text for text in ended.data["regressions"])
    suite, counts = suite_of(panda)
    assert counts == ("2", "1", "0", "0")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert REFLECTION in str(failure.get("message"))


@pytest.mark.parametrize(("flips", "code"), [("1", 0), ("0", 3)])
def test_thresholds_allow(panda: Panda, flips: str, code: int) -> None:
    """As many flips and changed answers as are allowed are no regression."""
    changed = outcome(1, step="coordinator", answer="$1")
    words = ("--max-flips", flips, "--max-answers", "1")
    assert compare(panda, [outcome(1)], [changed], *words).code == code


@pytest.mark.parametrize(("percent", "code"), [("99", 3), ("100", 0)])
def test_growth_of_tokens(panda: Panda, percent: str, code: int) -> None:
    """Tokens are compared over the turns that both runs hold."""
    dear = outcome(1, phases=[cost(1, REFLECTION, 300)])
    words = ("--max-tokens", percent, "--allow-missing")
    ended = compare(panda, [outcome(1), outcome(2)], [dear], *words)
    assert ended.code == code
    assert [turn["turn"] for turn in ended.data["not_judged"]] == [2]
    assert ended.data["verdict"] == "not judged"


def test_unknown_costs_stay_unknown(panda: Panda) -> None:
    """If one turn's tokens are unknown, their sum is; it is not 0."""
    unknown = outcome(1, phases=[cost(1, REFLECTION, None)])
    ended = compare(panda, [outcome(1)], [unknown])
    (phase, *_) = ended.data["phases"]
    assert (phase["tokens_before"], phase["tokens_after"]) == (100, None)
    assert ended.code == 0


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--max-seconds", "10"), 3)])
def test_an_unknown_growth_is_no_growth_within_limits(
    panda: Panda, words: tuple[str, ...], code: int
) -> None:
    """A limit on seconds that cannot be held against anything is not met."""
    assert compare(panda, [outcome(1, phases=[])], [outcome(1, phases=[])], *words).code == code


@pytest.mark.parametrize("is_first", [True, False])
def test_a_decision_that_one_run_lacks_is_a_flip(panda: Panda, is_first: bool) -> None:
    """A decision has no value on the side that lacks it; its recipe is that of the other side."""
    short = outcome(1)
    short["decisions"] = short["decisions"][:1]
    before, after = (short, outcome(1)) if is_first else (outcome(1), short)
    (flip,) = compare(panda, [before], [after]).data["flips"]
    values = (None, "synthesis") if is_first else ("synthesis", None)
    assert (flip["recipe"], flip["before"], flip["after"]) == (PLANNER, *values)


def test_costs_of_recipes_are_those_of_phases_that_each_serves_alone(panda: Panda) -> None:
    """A phase that asked two recipes counts as a phase alone."""
    both = {**cost(2, REFLECTION, 7), "recipes": [REFLECTION, PLANNER]}
    turn = outcome(1, phases=[cost(1, REFLECTION, 100), both])
    data = compare(panda, [turn], [turn]).data
    assert [(entry["name"], entry["tokens_after"]) for entry in data["phases"]] == [("1", 100), ("2", 7)]
    assert [(entry["name"], entry["tokens_after"]) for entry in data["recipes"]] == [(REFLECTION, 100)]


def test_models_are_tracked_apart(panda: Panda) -> None:
    """A change of the model is no change of the recipe's version, and the other way round."""
    versions = {REFLECTION: {"version": "v1", "model": "m2"}, PLANNER: {"version": "w2", "model": "m1"}}
    data = compare(panda, [outcome(1)], [outcome(1, recipes=versions)]).data
    assert data["models_changed"] == {REFLECTION: ["m1", "m2"]}
    assert data["recipes_changed"] == {PLANNER: ["w1", "w2"]}


def test_page_escapes(panda: Panda) -> None:
    """No text of a query or answer is markup of the page; it loads nothing and describes its plots."""
    hostile = outcome(7, decision="CLARIFY", answer="</pre><script>x</script>")
    compare(panda, [outcome(7)], [hostile], "--html", "r.html")
    text = (panda.home / "r.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;" in text
    for markup in ("<script", "<b>is", "http://", "https://"):
        assert markup not in text
    assert text.count('role="img"') == 3


def test_turns_of_two_users(panda: Panda) -> None:
    """A flip in one user's turn fails that turn alone, though another user has one of the same number."""
    bob = outcome(1, user="bob")
    compare(panda, [outcome(1), bob], [outcome(1, decision="CLARIFY"), bob])
    suite, _ = suite_of(panda)
    assert [case.get("classname") for case in suite if case.find("failure") is not None] == ["ann"]


@pytest.mark.parametrize("failed", [(), (2,)], ids=["missing", "failed"])
@pytest.mark.parametrize("is_first", [True, False])
def test_what_was_not_compared_is_not_equal(panda: Panda, failed: tuple[int, ...], is_first: bool) -> None:
    """A turn that one side lacks or that failed is a regression and a JUnit error, unless allowed."""
    names = ("before", "after") if is_first else ("after", "before")
    write_run(panda, names[0], outcome(1), failed=failed)
    write_run(panda, names[1], outcome(1), outcome(2))
    ended = panda("diff", "before", "after", "--json")
    assert (ended.code, ended.data["verdict"]) == (3, "not judged")
    assert ended.data["regressions"] == ["1 turn could not be compared: 2"]
    assert suite_of(panda)[1] == ("3", "0", "1", "0")
    assert panda(*DIFF, "--allow-missing").code == 0
    assert suite_of(panda, "--allow-missing")[1] == ("3", "0", "0", "1")


@pytest.mark.parametrize("words", [(), ("--allow-missing",)])
def test_nothing_compared_is_never_allowed(panda: Panda, words: tuple[str, ...]) -> None:
    """Two runs of which no turn was compared are red, whatever is allowed."""
    assert compare(panda, [], [], *words).data["regressions"] == ["no turn was compared"]
    assert suite_of(panda, *words)[1] == ("1", "0", "1", "0")
