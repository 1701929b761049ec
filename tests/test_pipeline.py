"""The loop over phases, with phases that only give outcomes."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from panda.compression.budgets import Limits
from panda.documents.context import Meta, Phase, Section, Text
from panda.errors import FileFormatError, HaltError, MemoryNodeError, Problem, StoreError
from panda.phases.contract import Advance, PhaseOutcome, PipelinePhase, Retry, Stop
from panda.phases.turn import Turn
from panda.pipeline import Pipeline
from panda.store.interventions import list_interventions
from panda.store.layout import Apart, UserStore
from panda.store.records import Intervention
from panda.store.turns import claim_turn
from tests.builders import NOW, still_clock


class Giving:
    """A phase that gives prepared outcomes, one a run; the last one stays."""

    layer = "MIND"

    def __init__(self, number: int, *outcomes: PhaseOutcome | Exception) -> None:
        self.number = Phase(number)
        self._outcomes = list(outcomes)

    def run(self, turn: Turn) -> PhaseOutcome:
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def section(number: int, text: str = "text") -> Section:
    """A section of one line."""
    return Section(number, (Text(text),))


def plain_phases(**others: PipelinePhase) -> list[PipelinePhase]:
    """Phases 0 to 7 that write their section and go on, other than those given as p0 … p7."""
    phases: list[PipelinePhase] = [Giving(n, Advance(section(n))) for n in range(7)]
    phases.append(Giving(7, Advance()))
    return [others.get(f"p{n}", phase) for n, phase in enumerate(phases)]


@pytest.fixture
def turn(tmp_path: Path) -> Turn:
    """A claimed turn."""
    store = UserStore(tmp_path, "ann", still_clock)
    return Turn(claim_turn(store, "default", "chat", "Why?"), store)


def test_what_a_tool_asks_counts_once(turn: Turn) -> None:
    """A research of a dozen recipes is one execution of the 25 that a turn has."""
    with turn.as_one_execution():
        for _ in range(30):
            turn.count_execution("research/strategy")
    for _ in range(24):
        turn.count_execution("pipeline/phase4_coordinator_chat")
    with pytest.raises(HaltError, match="more than 25 recipe executions"):
        turn.count_execution("pipeline/phase5_synthesizer_chat")


def made(phases: list[PipelinePhase]) -> Pipeline:
    """A pipeline of these phases."""
    return Pipeline(phases, Limits())


def test_phases_run_in_order(turn: Turn, caplog: pytest.LogCaptureFixture) -> None:
    """Every phase runs once, in order, and is logged before; after the last the turn is saved."""
    caplog.set_level(logging.INFO, "panda")
    made(plain_phases()).run(turn)
    metadata = turn.folder.read_metadata()
    assert caplog.messages == [f"phase {phase}: {phase.label} (MIND)" for phase in Phase]
    assert metadata.route == tuple(range(8))
    assert (metadata.status, metadata.next, metadata.saved_at) == ("approved", None, NOW)
    assert [s.number for s in turn.folder.read_context().sections] == list(range(7))


def test_phases_of_a_run_are_not_told(turn: Turn, caplog: pytest.LogCaptureFixture) -> None:
    """Of a turn that lies apart from the store, as in a replay, no phase is logged."""
    caplog.set_level(logging.INFO, "panda")
    apart = Apart(turn.store.root, {turn.turn: turn.folder.paths.directory})
    made(plain_phases()).run(Turn(turn.folder, replace(turn.store, apart=apart)))
    assert (turn.folder.read_metadata().status, caplog.messages) == ("approved", [])


def test_phase_is_skipped(turn: Turn) -> None:
    """A phase may name the one to go on with."""
    made(plain_phases(p3=Giving(3, Advance(section(3), to=Phase(5))))).run(turn)
    assert turn.folder.read_metadata().route == (0, 1, 2, 3, 5, 6, 7)


@pytest.mark.parametrize("status", ["clarify", "failed"])
def test_stop_goes_to_the_save(turn: Turn, status: str) -> None:
    """A phase that stops the turn leaves its question and reason; only the save runs after it."""
    stop = Stop(status, section(1), question="Which?", reason="unclear")  # type: ignore[arg-type]
    made(plain_phases(p1=Giving(1, stop))).run(turn)
    metadata = turn.folder.read_metadata()
    assert metadata.route == (0, 1, 7)
    assert (metadata.status, metadata.question, metadata.reason) == (status, "Which?", "unclear")
    assert metadata.answered is False


def test_stop_without_a_section(turn: Turn) -> None:
    """A phase that stops without a section is not on the route: its section is not expected."""
    made(plain_phases(p2=Giving(2, Stop("clarify", question="Which?")))).run(turn)
    assert turn.folder.read_metadata().route == (0, 1, 7)


def test_retry_of_the_phase_before(turn: Turn) -> None:
    """Going back one phase counts as an attempt, and keeps what is superseded with the judgement."""
    answers = Giving(5, Advance(section(5, "one")), Advance(section(5, "two")))
    judge = Giving(6, Retry(Phase(5), "again", section(6, "no")), Advance(section(6, "yes")))
    made(plain_phases(p5=answers, p6=judge)).run(turn)
    assert turn.folder.read_metadata().route == (0, 1, 2, 3, 4, 5, 6, 5, 6, 7)
    (kept,) = turn.folder.superseded()
    assert kept.sections == (section(5, "one"), section(6, "no"))
    assert (turn.folder.paths / "attempts" / "1" / "context.md").is_file()
    assert turn.folder.read_context().sections[-2:] == (section(5, "two"), section(6, "yes"))


def judgement(*issues: str) -> Section:
    """A judgement that asks for another answer: with issues because a check failed."""
    return Section(6, (Meta({"issues": list(issues)}), Text("no")))


class Answering(Giving):
    """A phase that writes response.md, too, with the text of its section."""

    def run(self, turn: Turn) -> PhaseOutcome:
        outcome = super().run(turn)
        assert outcome.section is not None
        turn.folder.write_text("response.md", outcome.section.text)
        return outcome


@pytest.mark.parametrize(("to", "failing"), [(5, 5), (3, 3), (3, 4), (3, 5)])
def test_what_passed_outlives_a_retry_that_halts(turn: Turn, to: int, failing: int) -> None:
    """An answer that passed its checks comes back when one that is to be better halts; it is judged again."""
    halts = HaltError("the reply was cut")
    answers = [Advance(section(5, "one")), halts if failing == 5 else Advance(section(5, "two"))]
    phases: dict[str, PipelinePhase] = {"p5": Answering(5, *answers)}
    if failing < 5:
        phases[f"p{failing}"] = Giving(failing, Advance(section(failing, "one")), halts)
    judge = Giving(6, Retry(Phase(to), "better", judgement()), Advance(section(6, "yes")))
    made(plain_phases(p6=judge, **phases)).run(turn)
    assert turn.folder.read_metadata().status == "approved"
    assert turn.folder.read_context().section(failing) == section(failing, "one")
    assert turn.folder.read_context().section(5) == section(5, "one")
    assert turn.folder.read_text("response.md") == "one"
    assert "the reply was cut" in turn.warnings[-1]


def test_the_last_that_passed_comes_back(turn: Turn) -> None:
    """Of an answer that passed and one that failed its checks the first comes back, with its own text."""
    halt = HaltError("gone")
    answers = Answering(5, Advance(section(5, "one")), Advance(section(5, "two")), halt)
    judge = Giving(
        6,
        Retry(Phase(5), "better", judgement()),
        Retry(Phase(5), "mend", judgement("$9")),
        Advance(section(6)),
    )
    made(plain_phases(p5=answers, p6=judge)).run(turn)
    assert turn.folder.read_context().section(5) == section(5, "one")
    assert turn.folder.read_text("response.md") == "one"


def test_what_failed_its_checks_does_not_come_back(turn: Turn) -> None:
    """A retry that halts after a check failed halts the turn."""
    answers = Answering(5, Advance(section(5, "one")), HaltError("gone"))
    judge = Giving(6, Retry(Phase(5), "mend", judgement("$9 stands nowhere")), Advance(section(6)))
    with pytest.raises(HaltError, match="gone"):
        made(plain_phases(p5=answers, p6=judge)).run(turn)
    assert turn.folder.read_metadata().status == "halted"


def test_retry_of_an_earlier_phase(turn: Turn) -> None:
    """Going back further counts as a round; everything from that phase on is superseded, nothing before."""
    seen: list[tuple[int, int, str | None]] = []

    class Planning(Giving):
        def run(self, turn: Turn) -> PhaseOutcome:
            seen.append((turn.round, turn.attempt, turn.reason))
            return super().run(turn)

    judge = Giving(6, Retry(Phase(3), "other tools", section(6)), Advance(section(6)))
    made(plain_phases(p3=Planning(3, Advance(section(3))), p6=judge)).run(turn)
    assert seen == [(0, 0, None), (1, 0, "other tools")]
    (kept,) = turn.folder.superseded()
    assert [s.number for s in kept.sections] == [3, 4, 5, 6]


def test_every_attempt_is_kept(turn: Turn) -> None:
    """Attempts are numbered from 1 in the order in which they were superseded."""
    answers = Giving(5, *(Advance(section(5, text)) for text in ("one", "two", "three", "four")))
    back, far = Retry(Phase(5), "again", section(6)), Retry(Phase(3), "other", section(6))
    made(plain_phases(p5=answers, p6=Giving(6, back, far, back, Advance(section(6))))).run(turn)
    texts = [kept.section(5) for kept in turn.folder.superseded()]
    assert [s.text for s in texts if s] == ["one", "two", "three"]


def halting(turn: Turn, error: Exception) -> tuple[Problem, list[Intervention]]:
    """What came out of a pipeline whose phase 2 raises, and the interventions that it left."""
    with pytest.raises(Problem) as caught:
        made(plain_phases(p2=Giving(2, error))).run(turn)
    left = list_interventions(turn.store)
    assert not any(isinstance(one, Problem) for one in left)
    return caught.value, [one for one in left if isinstance(one, Intervention)]


def test_halt(turn: Turn) -> None:
    """A phase that cannot go on leaves an intervention, the status halted and where to go on."""
    error = HaltError("no way")
    raised, (left,) = halting(turn, error)
    metadata = turn.folder.read_metadata()
    assert raised is error
    assert (left.turn, left.phase, left.message) == (turn.turn, 2, "no way")
    assert (metadata.status, metadata.intervention, metadata.route) == ("halted", left.id, (0, 1))
    assert metadata.next is not None
    assert metadata.next.phase == 2
    assert metadata.saved_at is None
    assert turn.folder.has("metrics.json")


def test_damaged_file_halts(turn: Turn) -> None:
    """A file of the store that does not read halts the turn as a memory error."""
    raised, (left,) = halting(turn, FileFormatError("not JSON", where="x.json"))
    assert isinstance(raised, MemoryNodeError)
    assert raised.where == "x.json"
    assert left.type == "memory_error"


def test_disk_that_fails_interrupts(turn: Turn) -> None:
    """A disk that fails is no halt: the turn is interrupted and can be resumed."""
    raised, left = halting(turn, StoreError("disk full"))
    assert isinstance(raised, StoreError)
    assert left == []
    assert turn.folder.read_metadata().status == "interrupted"


def test_halted_turn_goes_on(turn: Turn) -> None:
    """A pipeline takes a turn up where its metadata says."""
    halting(turn, HaltError("no way"))
    made(plain_phases()).run(turn)
    metadata = turn.folder.read_metadata()
    assert (metadata.status, metadata.route) == ("approved", tuple(range(8)))
