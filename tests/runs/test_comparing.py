"""Two runs compared: what flipped, where it began, what it cost."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from panda.errors import Verdict
from panda.runs.compare import Side, Thresholds, compare_runs, find_regressions
from panda.runs.ledger import Decision, Outcome, PhaseCost, TurnKey
from panda.runs.reports import write_diff_junit, write_diff_page

REFLECTION = "pipeline/phase1_reflection"
PLANNER = "pipeline/phase3_planner_chat"


def outcome(
    turn: int, *, decision: str = "PROCEED", step: str = "synthesis", answer: str = "$697"
) -> Outcome:
    """What a turn came to."""
    return Outcome(
        turn=turn,
        user="ann",
        query="How much <b>is</b> it?\x1b[31m",
        status="approved",
        answered=True,
        answer=answer,
        decisions=(
            Decision(1, REFLECTION, "decision", decision),
            Decision(3, PLANNER, "next_step", step),
        ),
        sections={0: "a", 1: decision, 3: step, 5: answer},
        phases=(PhaseCost(1, (REFLECTION,), 2, 100, 0.5), PhaseCost(3, (PLANNER,), 1, 50, 0.25)),
        recipes={REFLECTION: {"version": "v1", "model": "m1"}, PLANNER: {"version": "w1", "model": "m1"}},
    )


def side(*outcomes: Outcome) -> Side:
    """A finished run of these turns."""
    return Side("run", outcomes, {})


def test_same_runs_have_no_difference() -> None:
    """Two runs with the same outcomes differ in nothing and are no regression."""
    diff = compare_runs(side(outcome(1), outcome(2)), side(outcome(1), outcome(2)))
    assert diff.verdict is Verdict.SOUND
    assert diff.turns == 2
    assert find_regressions(diff, Thresholds()) == []


def test_an_items_own_number_is_no_difference() -> None:
    """A batch numbers its turns by what the store holds: what is told of the turn itself is the same."""
    said = "Noted: “My car is red.” [1]\n\nSources:\n- [1] turn:{n}, turns/turn_{n:06d}/context.md"
    one, two = (replace(outcome(n, answer=said.format(n=n)), item="q1") for n in (815, 1816))
    assert compare_runs(side(one), side(two)).verdict is Verdict.SOUND
    other = replace(two, answer=said.format(n=815))
    assert compare_runs(side(one), side(other)).verdict is Verdict.UNSOUND


def test_the_first_flip_names_the_recipe() -> None:
    """Of several flips in a turn, the first is where the change began; the regression names its recipe."""
    diff = compare_runs(
        side(outcome(1)), side(outcome(1, decision="CLARIFY", step="coordinator", answer="What?"))
    )
    assert [(flip.recipe, flip.first) for flip in diff.flips] == [(REFLECTION, True), (PLANNER, False)]
    assert [(change.phase, change.recipe) for change in diff.answers] == [(1, REFLECTION)]
    found = find_regressions(diff, Thresholds())
    assert len(found) == 2
    assert all(REFLECTION in one and PLANNER not in one for one in found)


def test_thresholds_allow() -> None:
    """As many flips and changed answers as are allowed are no regression."""
    diff = compare_runs(side(outcome(1)), side(outcome(1, step="coordinator", answer="$1")))
    assert find_regressions(diff, Thresholds(flips=1, answers=1)) == []
    assert len(find_regressions(diff, Thresholds(flips=0, answers=1))) == 1


@pytest.mark.parametrize(("most", "found"), [(99.0, 1), (100.0, 0)])
def test_growth_of_tokens(most: float, found: int) -> None:
    """Tokens are compared over the turns that both runs hold."""
    dear = replace(outcome(1), phases=(PhaseCost(1, (REFLECTION,), 2, 300, 0.5),))
    diff = compare_runs(side(outcome(1), outcome(2)), side(dear))
    assert len(find_regressions(diff, Thresholds(tokens=most, missing=True))) == found
    assert [one.turn for one in diff.not_judged] == [2]
    assert diff.verdict is Verdict.NOT_JUDGED


def test_unknown_tokens_stay_unknown() -> None:
    """Where one turn's tokens are unknown, their sum is; it is not 0."""
    unknown = replace(outcome(1), phases=(PhaseCost(1, (REFLECTION,), 2, None, 0.5),))
    cost = compare_runs(side(outcome(1)), side(unknown)).phases[0]
    assert (cost.tokens_before, cost.tokens_after) == (100, None)


def test_models_are_tracked_apart() -> None:
    """A change of the model is no change of the recipe's version, and the other way round."""
    other = replace(
        outcome(1),
        recipes={REFLECTION: {"version": "v1", "model": "m2"}, PLANNER: {"version": "w2", "model": "m1"}},
    )
    diff = compare_runs(side(outcome(1)), side(other))
    assert diff.models_changed == {REFLECTION: ("m1", "m2")}
    assert diff.recipes_changed == {PLANNER: ("w1", "w2")}


def sides() -> tuple[Side, Side]:
    before, after = outcome(1), outcome(1, decision="CLARIFY", answer="</pre><script>x</script>")
    nowhere: dict[TurnKey, Path] = {("ann", 1): Path("/nonexistent")}
    return Side("saved", [before], nowhere), Side("run", [after], nowhere)


def test_junit(tmp_path: Path) -> None:
    """The XML has a case for each turn and a failure that names the recipe; nothing in it is no XML."""
    one, two = sides()
    write_diff_junit(tmp_path / "r.xml", compare_runs(one, two), one, two, Thresholds())
    suite = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert REFLECTION in str(failure.get("message"))


def test_page_escapes(tmp_path: Path) -> None:
    """No text of a query or answer is markup of the page; it loads nothing and describes its plots."""
    one, two = sides()
    write_diff_page(tmp_path / "r.html", compare_runs(one, two), one, two, ["worse"])
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "<b>is" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert text.count('role="img"') == 3


def test_turns_of_two_users(tmp_path: Path) -> None:
    """A flip in one user's turn fails that turn alone, though another user has one of the same number."""
    bob = replace(outcome(1), user="bob")
    places: dict[TurnKey, Path] = {("ann", 1): Path("/nonexistent"), ("bob", 1): Path("/nonexistent")}
    one = Side("saved", [outcome(1), bob], places)
    two = Side("run", [outcome(1, decision="CLARIFY"), bob], places)
    write_diff_junit(tmp_path / "r.xml", compare_runs(one, two), one, two, Thresholds())
    suite = ElementTree.parse(tmp_path / "r.xml").getroot()
    failed = [case.get("classname") for case in suite if case.find("failure") is not None]
    assert failed == ["ann"]


def suite_of(path: Path, before: Side, after: Side, thresholds: Thresholds) -> tuple[str | None, ...]:
    """Tests, failures, errors and skipped cases of a comparison as JUnit XML."""
    write_diff_junit(path, compare_runs(before, after), before, after, thresholds)
    suite = ElementTree.parse(path).getroot()
    return tuple(suite.get(name) for name in ("tests", "failures", "errors", "skipped"))


@pytest.mark.parametrize(
    "lacking",
    [
        Side("run", [outcome(1)], {}),
        Side("run", [outcome(1)], {}, {("ann", 2): "error: the model is away"}),
        Side("run", [outcome(1), outcome(2)], {}, {("ann", 2): "halted: no reply"}),
    ],
    ids=["missing", "failed", "halted"],
)
@pytest.mark.parametrize("first", [True, False])
def test_what_was_not_compared_is_not_equal(tmp_path: Path, lacking: Side, first: bool) -> None:
    """A turn that one side lacks, failed or did not end is a regression and a JUnit error, unless allowed."""
    whole = side(outcome(1), outcome(2))
    one, two = (lacking, whole) if first else (whole, lacking)
    diff = compare_runs(one, two)
    assert diff.verdict is Verdict.NOT_JUDGED
    assert find_regressions(diff, Thresholds()) == ["1 turn could not be compared: 2"]
    assert suite_of(tmp_path / "r.xml", one, two, Thresholds()) == ("3", "0", "1", "0")
    assert find_regressions(diff, Thresholds(missing=True)) == []
    assert suite_of(tmp_path / "a.xml", one, two, Thresholds(missing=True)) == ("3", "0", "0", "1")


def test_nothing_compared_is_never_allowed(tmp_path: Path) -> None:
    """Two runs of which no turn was compared are red, whatever is allowed."""
    empty = Side("run", [], {})
    for allowed in (Thresholds(), Thresholds(missing=True)):
        assert find_regressions(compare_runs(empty, empty), allowed) == ["no turn was compared"]
        assert suite_of(tmp_path / "r.xml", empty, empty, allowed) == ("1", "0", "1", "0")


def test_an_unknown_growth_is_no_growth_within_limits() -> None:
    """A limit on seconds that cannot be held against anything is not met."""
    timeless = replace(outcome(1), phases=())
    diff = compare_runs(side(timeless), side(timeless))
    assert find_regressions(diff, Thresholds()) == []
    assert len(find_regressions(diff, Thresholds(seconds=10))) == 1
