"""`panda memory list`, `get`, `set`, `retract`, `history` and `merge`."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from panda.cli.completion import complete_memory_keys
from panda.cli.contract import Invocation, Result, Table
from panda.cli.input_text import read_argument
from panda.cli.memory_statements import Given, find_triple, make_statement, read_statements, read_value
from panda.cli.memory_texts import (
    HISTORY_COLUMNS,
    LIST_COLUMNS,
    assertion_data,
    history_row,
    list_row,
    remembered_data,
)
from panda.errors import LockHeldError, NotFoundError, StoreError, UsageError
from panda.memory.assertions import Assertion, Statement
from panda.memory.keys import memory_key
from panda.memory.merging import merge_files
from panda.memory.projection import Projection
from panda.memory.remembered import load_remembered
from panda.memory.remembering import Memory
from panda.storage.layout import Layout

_READER_WAIT_SECONDS = 2.0
_AT_ONCE = 20

Kind = Annotated[str | None, typer.Option(help="preference or fact.", metavar="KIND")]
Scope = Annotated[str | None, typer.Option(help="local, team, company or public.", metavar="SCOPE")]
Entity = Annotated[
    str | None, typer.Option(help="Whom or what it is about; the user if left out.", metavar="NAME")
]
Key = Annotated[
    str,
    typer.Argument(
        help="A key such as budget, or entity#key.", metavar="KEY", autocompletion=complete_memory_keys
    ),
]


def memory_of(invocation: Invocation, store: Layout | None = None) -> Memory:
    """The user's memory, for writing; in a store that is open already, or that of the settings."""
    settings = invocation.settings
    return Memory(
        store or invocation.store_for_writing(),
        settings.user,
        settings.clock,
        settings.wait_seconds,
        lambda holder: invocation.reporter.step(f"waiting for {holder}"),
    )


def read_memory(invocation: Invocation) -> Projection:
    """The user's memory, for reading: edits by hand are taken in first where the store can be written."""
    layout, settings = invocation.store(), invocation.settings
    if layout.user(settings.user).is_dir() and not layout.read_only_mark.exists():
        memory = Memory(layout, settings.user, settings.clock, _READER_WAIT_SECONDS)
        with suppress(StoreError, LockHeldError):  # then they are shown without
            said = {
                memory_key(one.fact.entity, one.fact.relation, settings.user): one.fact.confidence > 0
                for one in memory.take_in()
            }
            for key, typed in said.items():
                invocation.reporter.step(f"taken in: {key}, {'typed' if typed else 'deleted'} by hand")
    state = Projection(layout, settings.user)
    state.refresh()
    return state


def list_all(
    invocation: Invocation,
    kind: Kind = None,
    scope: Scope = None,
    entity: Entity = None,
) -> Result:
    """
    List what is remembered: values, how far they are to be believed, since when.

    Example: panda memory list --kind preference
    """
    settings = invocation.settings
    now = settings.clock()
    if kind not in (None, "preference", "fact"):
        raise UsageError(f"{kind!r} is no kind", where="--kind", fix="preference or fact")
    about = find_triple("any", Given(scope=scope, entity=entity), settings.user, "--scope")[1]
    found = [
        one
        for one in load_remembered(read_memory(invocation), now)
        if kind in (None, one.kind) and scope in (None, one.scope) and (entity is None or one.entity == about)
    ]
    if not found:
        invocation.reporter.step(f"nothing is remembered of user {settings.user} in {settings.root}")
    data = {"user": settings.user, "memory": [remembered_data(one, now) for one in found]}
    return Result(data, Table(LIST_COLUMNS, [list_row(one, now) for one in found]))


def get(invocation: Invocation, key: Key, scope: Scope = None, entity: Entity = None) -> Result:
    """
    Print the value that is remembered under a key.

    Example: panda memory get budget
    """
    settings = invocation.settings
    now = settings.clock()
    triple = find_triple(key, Given(scope=scope, entity=entity), settings.user)
    state = read_memory(invocation)
    for one in load_remembered(state, now):
        if (one.scope, one.entity, one.relation) == triple and not one.expired:
            return Result(remembered_data(one, now), one.text)
    raise NotFoundError(
        f"nothing is remembered under {key} in scope {triple[0]}", where=key, fix="see `panda memory list`"
    )


def set_value(
    invocation: Invocation,
    key: Annotated[
        str,
        typer.Argument(
            help="A key such as budget, or entity#key; - reads JSON lines from standard input.",
            metavar="KEY|-",
            autocompletion=complete_memory_keys,
        ),
    ],
    value: Annotated[
        list[str] | None, typer.Argument(help="The value; several make a list.", metavar="VALUE…")
    ] = None,
    kind: Kind = None,
    scope: Scope = None,
    entity: Entity = None,
    type_: Annotated[
        str | None,
        typer.Option(
            "--type",
            help="string, text, number, boolean, datetime, ref, null or list.",
            metavar="TYPE",
        ),
    ] = None,
    valid_until: Annotated[
        str | None, typer.Option(help="The last instant at which it holds.", metavar="TIME")
    ] = None,
) -> Result:
    """
    Remember a value. An earlier value that you gave is retracted first.

    Example: panda memory set budget 900 --type number --valid-until 2026-12-31

    With - each line of standard input is an object with key and value, and kind, scope, entity, type and
    valid_until if need be.
    """
    user, given = invocation.settings.user, Given(kind, scope, entity, type_, valid_until)
    if key == "-" and not value:
        statements = read_statements(read_argument("-", invocation.stdin), given, user)
    else:
        words = [read_argument(word, invocation.stdin) for word in value or ()]
        statements = [make_statement(key, read_value(words, type_), given, user)]
    appended = _assert_all(invocation, statements)
    invocation.reporter.step(f"remembered: {len(statements)}")
    return Result({"user": user, "appended": [assertion_data(one, user) for one in appended]})


def _assert_all(invocation: Invocation, statements: Sequence[Statement]) -> list[Assertion]:
    """Assert some at a time, so that others who wait for the memory come in between."""
    memory = memory_of(invocation)
    appended = []
    with invocation.reporter.progress("remembering", len(statements)) as advance:
        for start in range(0, len(statements), _AT_ONCE):
            some = statements[start : start + _AT_ONCE]
            with memory.held():
                appended += memory.assert_all(some)
            for _ in some:
                advance()
    return appended


def retract(invocation: Invocation, key: Key, scope: Scope = None, entity: Entity = None) -> Result:
    """
    Take back what is remembered under a key, whoever said it. The history stays.

    Example: panda memory retract budget
    """
    user = invocation.settings.user
    triple = find_triple(key, Given(scope=scope, entity=entity), user)
    memory = memory_of(invocation)
    with memory.held():
        retraction = memory.retract(triple, f"user:{user}")
    invocation.reporter.step(f"retracted: {key}")
    return Result({"user": user, "appended": [assertion_data(retraction, user)]})


def history(invocation: Invocation, key: Key, scope: Scope = None, entity: Entity = None) -> Result:
    """
    Show all that was ever said under a key, oldest first.

    Example: panda memory history budget
    """
    user = invocation.settings.user
    triple = find_triple(key, Given(scope=scope, entity=entity), user)
    found = read_memory(invocation).log.of(triple)
    if not found:
        raise NotFoundError(
            f"nothing was ever said under {key} in scope {triple[0]}",
            where=key,
            fix="see `panda memory list`",
        )
    data = {"user": user, "key": key, "history": [assertion_data(one, user) for one in found]}
    return Result(data, Table(HISTORY_COLUMNS, [history_row(one) for one in found]))


def merge(
    invocation: Invocation,
    files: Annotated[
        list[Path],
        typer.Argument(
            help="memory.jsonl and conflicts.jsonl of another machine, or a document of facts.",
            metavar="FILE…",
            exists=False,
        ),
    ],
) -> Result:
    """
    Add another machine's facts, with the clock readings that they have there.

    Every machine that has the same facts picks the same winners. Merging twice changes nothing. A line that
    is no fact is refused, and then nothing is written.

    Example: panda memory merge other/users/ann/memory.jsonl other/users/ann/conflicts.jsonl
    """
    user = invocation.settings.user
    merged = merge_files(memory_of(invocation), files)
    counts = f"{len(merged.assertions)} facts, {len(merged.conflicts)} conflict records; {merged.known} known"
    invocation.reporter.step(f"merged: {counts}")
    data = {
        "user": user,
        "appended": [assertion_data(one, user) for one in merged.assertions],
        "conflicts": [one.to_json() for one in merged.conflicts],
        "known": merged.known,
    }
    return Result(data)
