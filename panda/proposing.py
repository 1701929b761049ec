"""`panda memory reflect`: what the last approved turns teach about the user."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from panda.app import App
from panda.compression.fitting import InputDocument
from panda.memory.fact import Assertion
from panda.memory.memory import Memory
from panda.memory.proposals import Proposal, load_proposals, save_proposals, settle, word_on
from panda.recipes.calls import NoTurn
from panda.recipes.messages import Request
from panda.storage.records import load_turn
from panda.tools.reflecting import Candidate, SaidTurn, choose_facts, find_candidates

LAST_TURNS = 10


@dataclass(frozen=True)
class Reflected:
    """What came of it."""

    turns: tuple[int, ...]
    """The turns that were read, oldest first."""
    proposals: tuple[Proposal, ...]
    """All proposals after it."""
    appended: tuple[Assertion, ...]
    """What memory was told."""


def reflect(
    app: App,
    memory: Memory,
    *,
    dry_run: bool,
    warn: Callable[[str], None],
    judging: Callable[[str], None],
) -> Reflected:
    """
    Read the user's last approved turns and settle what they propose.

    Args:
        app: Asks the recipes and has the turns.
        memory: The user's.
        dry_run: Whether nothing is written.
        warn: Told of what a model made up.
        judging: Told of each sentence before a model judges it.

    Raises:
        LockHeldError: Another process kept the memory.
        FileFormatError: A turn, the log or the proposals are damaged.
        HaltError: A model call failed.
    """
    turns = _last_turns(app)
    batch = tuple(turn.number for turn in turns)
    now, path = app.settings.clock(), app.layout.proposed_facts(memory.user)
    log, typed = memory.read()
    is_settled = word_on([*log.assertions, *typed], memory.user)
    offered = [one for one in find_candidates(turns) if not is_settled(_proposal(one, batch, app))]
    chosen = _choose(app, offered, turns, warn, judging) if offered else []
    found = [_proposal(one, batch, app) for one in chosen]
    if dry_run:
        return Reflected(batch, tuple(settle(load_proposals(path), found, batch, now, is_settled)), ())
    with memory.held() as held:
        before = load_proposals(path)
        after = settle(before, found, batch, now, word_on(held.assertions, memory.user))
        was_kept = [
            one for one, was in zip(after, before, strict=False) if one.status == "kept" != was.status
        ]
        appended = memory.assert_all([one.statement(memory.user) for one in was_kept])
        if after != before:
            save_proposals(path, after)
    return Reflected(batch, tuple(after), tuple(appended))


def _last_turns(app: App) -> list[SaidTurn]:
    found: list[SaidTurn] = []
    for number in reversed(app.store.numbers()):
        if len(found) == LAST_TURNS:
            break
        record = load_turn(app.store.open(number).paths, number)
        if record.status == "approved":
            found.append(SaidTurn(number, record.query, record.response))
    return found[::-1]


def _proposal(one: Candidate, batch: tuple[int, ...], app: App) -> Proposal:
    now = app.settings.clock().replace(microsecond=0)
    return Proposal(one.relation, one.value, one.text, one.turn, now, (batch,))


def _choose(
    app: App,
    offered: list[Candidate],
    turns: list[SaidTurn],
    warn: Callable[[str], None],
    judging: Callable[[str], None],
) -> list[Candidate]:
    executor, journal = app.executor, NoTurn(app.settings.user, app.settings.session)

    def execute(step: str, request: Request) -> Mapping[str, Any]:
        return executor.execute(executor.book.recipe_for(step, "chat").key, request, journal).values

    variables = {"mode": "chat", "session_id": app.settings.session}

    def ask(step: str, **given: Any) -> Mapping[str, Any]:
        documents = [InputDocument(name, text) for name, text in given["extra"].items()]
        query = "What do the last turns teach about the user?"
        return execute(step, Request(query, documents, given["options"], variables))

    writes = executor.writes(executor.book.recipe_for("memory_reflect", "chat").key)

    def lasts(one: Candidate) -> bool:
        if writes or one.sure:
            return True
        judging(one.text)
        request = Request(one.text, variables=variables)
        return bool(execute("phase4_memory_statement", request)["lasts"] == "lasting")

    return choose_facts(offered, turns, ask, lasts, warn)
