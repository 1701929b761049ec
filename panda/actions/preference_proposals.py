"""What the last approved turns teach about the user: proposals, kept once two batches agree, or dropped."""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import structs

from panda.app import App
from panda.compression.fit import InputDocument
from panda.errors import Problem
from panda.memory.confidence import REFLECTED
from panda.memory.fact_reader import typed_value
from panda.memory.user_memory import Memory
from panda.recipes.calls import NoTurn
from panda.steps.all_steps import STATEMENT
from panda.steps.request import Request
from panda.steps.step_contract import R, StepContract
from panda.store.fact_records import Assertion
from panda.store.files import write_atomic
from panda.store.lines import load_lines
from panda.store.node_id import NodeKind
from panda.store.records import Proposal
from panda.store.visit_records import TurnRecord, load_turn
from panda.tools.lessons import LessonCandidate, choose_facts, find_candidates

_log = logging.getLogger(__name__)

LAST_TURNS = 10
_AGREEING = 2
_ENDS = " .!?…"


def settle(
    proposals: Sequence[Proposal],
    new_proposals: Sequence[Proposal],
    batch: tuple[int, ...],
    now: datetime,
    is_settled: Callable[[Proposal], bool],
) -> list[Proposal]:
    """
    The proposals after a batch, known ones first. A batch counts for a proposal only if it has a turn that no
    batch before had; what memory holds or was told to forget is settled.
    """
    after = []
    for proposal in proposals:
        seen = {turn for earlier in proposal.batches for turn in earlier}
        if proposal.status == "proposed" and (now >= proposal.expires_at or is_settled(proposal)):
            proposal = structs.replace(proposal, status="dropped")
        elif (
            proposal.status == "proposed" and set(batch) - seen and any(map(proposal.is_like, new_proposals))
        ):
            batches = (*proposal.batches, batch)
            proposal = structs.replace(
                proposal, batches=batches, status="kept" if len(batches) >= _AGREEING else "proposed"
            )
        after.append(proposal)
    for proposal in new_proposals:
        former = [other for other in after if other.is_like(proposal)]
        is_anew = all(
            other.status == "dropped" and other.source_turn < proposal.source_turn for other in former
        )
        if is_anew and not is_settled(proposal):
            after.append(proposal)
    return after


def word_on(assertions: Iterable[Assertion], user: str) -> Callable[[Proposal], bool]:
    """
    Return a function that says whether memory has an assertion, a retraction too, on a proposal's key, or its
    value under any key.
    """
    own = [assertion for assertion in assertions if assertion.entity == f"user:{user}"]
    keys = {assertion.relation for assertion in own}
    values = {str(assertion.value.v).lower() for assertion in own}
    stripped_values = {
        value.rstrip(_ENDS) for value in values
    }  # sentences that turns remembered are among them
    return lambda proposal: (
        proposal.relation in keys
        or proposal.value.lower() in values
        or proposal.text.lower().rstrip(_ENDS) in stripped_values
    )


@dataclass(frozen=True)
class Reflected:
    """What came of it."""

    turns: tuple[int, ...]  # the turns that were read, oldest first
    proposals: tuple[Proposal, ...]  # all proposals after it
    appended: tuple[Assertion, ...]  # what memory was told


def reflect(app: App, memory: Memory, *, dry_run: bool) -> Reflected:
    """Read the user's last approved turns and settle what they propose; with *dry_run* nothing is written."""
    turns = _last_turns(app)
    batch = tuple(turn.number for turn in turns)
    now = app.settings.clock()
    path = app.store.of(memory.user).proposed_facts
    log, typed = memory.read()
    is_settled = word_on([*log.assertions, *typed], memory.user)
    offered = [
        candidate for candidate in find_candidates(turns) if not is_settled(_proposal(candidate, batch, app))
    ]
    chosen = _choose(app, offered, turns) if offered else []
    new_proposals = [_proposal(candidate, batch, app) for candidate in chosen]
    if dry_run:
        return Reflected(
            batch, tuple(settle(load_lines(Proposal, path), new_proposals, batch, now, is_settled)), ()
        )
    with memory.held() as held:
        before = load_lines(Proposal, path)
        after = settle(before, new_proposals, batch, now, word_on(held.assertions, memory.user))
        was_kept = [
            proposal
            for proposal, was in zip(after, before, strict=False)
            if proposal.status == "kept" != was.status
        ]
        appended = memory.assert_all([_assertion(proposal, memory.user) for proposal in was_kept])
        if after != before:
            write_atomic(
                path, "".join(json.dumps(proposal.to_json(), ensure_ascii=False) + "\n" for proposal in after)
            )
    return Reflected(batch, tuple(after), tuple(appended))


def _last_turns(app: App) -> list[TurnRecord]:
    records: list[TurnRecord] = []
    for number in reversed(app.store.numbers()):
        if len(records) == LAST_TURNS:
            break
        try:
            record = load_turn(app.store.open(number).paths, number)
        except Problem as exc:
            _log.warning("turn %s is left out: %s", number, exc.told)
            continue
        if record.status == "approved":
            records.append(record)
    return records[::-1]


def _proposal(candidate: LessonCandidate, batch: tuple[int, ...], app: App) -> Proposal:
    now = app.settings.clock().replace(microsecond=0)
    return Proposal(
        candidate.relation,
        candidate.value,
        text=candidate.text,
        source_turn=candidate.turn,
        proposed_at=now,
        batches=(batch,),
    )


def _assertion(proposal: Proposal, user: str) -> Assertion:
    return Assertion(
        "",
        f"user:{user}",
        relation=proposal.relation,
        value=typed_value(proposal.value),
        source=NodeKind.TURN.id(proposal.source_turn),
        confidence=REFLECTED,
        scope="local",
        source_turn=proposal.source_turn,
    )


def _choose(app: App, candidates: list[LessonCandidate], turns: list[TurnRecord]) -> list[LessonCandidate]:
    executor = app.executor
    journal = NoTurn(app.settings.user, None)

    variables = {"mode": "chat", "session_id": ""}

    def ask(contract: StepContract[R], /, **request_fields: Any) -> R:
        documents = [InputDocument(name, text) for name, text in request_fields["extra"].items()]
        query = "What do the last turns teach about the user?"
        request = Request(
            query, documents, request_fields["options"], variables, inputs=request_fields["inputs"]
        )
        return executor.ask(contract, request, journal).content

    def lasts(candidate: LessonCandidate) -> bool:
        if candidate.sure:
            return True
        _log.info(f"judging: {candidate.text}")
        request = Request(candidate.text, variables=variables)
        return executor.ask(STATEMENT, request, journal).content.lasts == "lasting"

    return choose_facts(candidates, turns, ask, lasts, _log.warning)
