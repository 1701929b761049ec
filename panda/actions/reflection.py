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
from panda.memory.fact import typed_value
from panda.memory.memory import Memory
from panda.recipes.calls import NoTurn
from panda.steps.all_steps import STATEMENT
from panda.steps.contract import R, StepContract
from panda.steps.request import Request
from panda.store.fact import Assertion
from panda.store.files import write_atomic
from panda.store.lines import load_lines
from panda.store.node_id import NodeKind
from panda.store.records import Proposal
from panda.store.visits import TurnRecord, load_turn
from panda.tools.lessons import Candidate, choose_facts, find_candidates

_log = logging.getLogger(__name__)

LAST_TURNS = 10
_AGREEING = 2
_ENDS = " .!?…"


def settle(
    known: Sequence[Proposal],
    found: Sequence[Proposal],
    batch: tuple[int, ...],
    now: datetime,
    is_settled: Callable[[Proposal], bool],
) -> list[Proposal]:
    """
    The proposals after a batch, known ones first. A batch counts for a proposal only if it has a turn that no
    batch before had; what memory holds or was told to forget is settled.
    """
    after = []
    for one in known:
        seen = {turn for earlier in one.batches for turn in earlier}
        if one.status == "proposed" and (now >= one.expires_at or is_settled(one)):
            one = structs.replace(one, status="dropped")
        elif one.status == "proposed" and set(batch) - seen and any(map(one.is_like, found)):
            batches = (*one.batches, batch)
            one = structs.replace(
                one, batches=batches, status="kept" if len(batches) >= _AGREEING else "proposed"
            )
        after.append(one)
    for one in found:
        former = [other for other in after if other.is_like(one)]
        is_anew = all(other.status == "dropped" and other.source_turn < one.source_turn for other in former)
        if is_anew and not is_settled(one):
            after.append(one)
    return after


def word_on(assertions: Iterable[Assertion], user: str) -> Callable[[Proposal], bool]:
    """Whether memory has a word of its own, a retraction too, on a proposal's key or value under any key."""
    own = [one for one in assertions if one.entity == f"user:{user}"]
    keys = {one.relation for one in own}
    values = {str(one.value.v).lower() for one in own}
    told = {value.rstrip(_ENDS) for value in values}  # sentences that turns remembered are among them
    return lambda one: (
        one.relation in keys or one.value.lower() in values or one.text.lower().rstrip(_ENDS) in told
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
    offered = [one for one in find_candidates(turns) if not is_settled(_proposal(one, batch, app))]
    chosen = _choose(app, offered, turns) if offered else []
    found = [_proposal(one, batch, app) for one in chosen]
    if dry_run:
        return Reflected(batch, tuple(settle(load_lines(Proposal, path), found, batch, now, is_settled)), ())
    with memory.held() as held:
        before = load_lines(Proposal, path)
        after = settle(before, found, batch, now, word_on(held.assertions, memory.user))
        was_kept = [
            one for one, was in zip(after, before, strict=False) if one.status == "kept" != was.status
        ]
        appended = memory.assert_all([_assertion(one, memory.user) for one in was_kept])
        if after != before:
            write_atomic(path, "".join(json.dumps(one.to_json(), ensure_ascii=False) + "\n" for one in after))
    return Reflected(batch, tuple(after), tuple(appended))


def _last_turns(app: App) -> list[TurnRecord]:
    found: list[TurnRecord] = []
    for number in reversed(app.store.numbers()):
        if len(found) == LAST_TURNS:
            break
        try:
            record = load_turn(app.store.open(number).paths, number)
        except Problem as exc:
            _log.warning("turn %s is left out: %s", number, exc.told)
            continue
        if record.status == "approved":
            found.append(record)
    return found[::-1]


def _proposal(one: Candidate, batch: tuple[int, ...], app: App) -> Proposal:
    now = app.settings.clock().replace(microsecond=0)
    return Proposal(one.relation, one.value, one.text, one.turn, now, (batch,))


def _assertion(one: Proposal, user: str) -> Assertion:
    said = (
        "",
        f"user:{user}",
        one.relation,
        typed_value(one.value),
        NodeKind.TURN.id(one.source_turn),
        REFLECTED,
    )
    return Assertion(*said, "local", source_turn=one.source_turn)


def _choose(app: App, offered: list[Candidate], turns: list[TurnRecord]) -> list[Candidate]:
    executor = app.executor
    journal = NoTurn(app.settings.user, None)

    variables = {"mode": "chat", "session_id": ""}

    def ask(contract: StepContract[R], /, **given: Any) -> R:
        documents = [InputDocument(name, text) for name, text in given["extra"].items()]
        query = "What do the last turns teach about the user?"
        request = Request(query, documents, given["options"], variables, inputs=given["inputs"])
        return executor.ask(contract, request, journal).content

    def lasts(one: Candidate) -> bool:
        if one.sure:
            return True
        _log.info(f"judging: {one.text}")
        request = Request(one.text, variables=variables)
        return executor.ask(STATEMENT, request, journal).content.lasts == "lasting"

    return choose_facts(offered, turns, ask, lasts, _log.warning)
