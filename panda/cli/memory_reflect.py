"""`panda memory reflect`."""

from typing import Annotated

import typer

from panda.cli.contract import Invocation, Result, Table
from panda.cli.memory import memory_of
from panda.cli.memory_texts import assertion_data
from panda.documents.times import render_time
from panda.memory.proposals import Proposal

_COLUMNS = ("status", "key", "value", "turn", "batches", "until")


def reflect(
    invocation: Invocation,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show it; write nothing.")] = False,
) -> Result:
    """
    Propose facts about the user from what they said in their last ten approved turns.

    A proposal becomes a fact of confidence .60 once a second batch, with a new turn in it, agrees; after 30
    days it is dropped. What memory holds or the user has taken back is not proposed.

    Example: panda memory reflect --dry-run
    """
    from panda.app import build
    from panda.proposing import reflect as reflect_on

    settings, reporter = invocation.settings, invocation.reporter
    store = invocation.store() if dry_run else invocation.store_for_writing()
    app = build(settings, store, invocation.environ, invocation.layers)
    done = reflect_on(
        app,
        memory_of(invocation, store),
        dry_run=dry_run,
        warn=reporter.warn,
        judging=lambda text: reporter.step(f"judging: {text}"),
    )
    reporter.step(f"read {len(done.turns)} turns; kept {len(done.appended)}")
    data = {
        "user": settings.user,
        "dry_run": dry_run,
        "turns": list(done.turns),
        "proposals": [one.to_json() for one in done.proposals],
        "appended": [assertion_data(one, settings.user) for one in done.appended],
    }
    return Result(data, Table(_COLUMNS, [_row(one) for one in done.proposals]))


def _row(one: Proposal) -> tuple[object, ...]:
    until = render_time(one.expires_at) if one.status == "proposed" else None
    return one.status, one.relation, one.value, one.source_turn, len(one.batches), until
