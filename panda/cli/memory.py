"""`panda memory`."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

from panda.actions.remember import StatementOptions, find_subject, make_statement, read_statements, read_value
from panda.cli.command import Invocation, NewUser, OutputTable, Result, argument, excludes, flag, option
from panda.cli.completion import complete_memory_keys
from panda.cli.output_text import clipped, read_argument
from panda.documents.memory_file import render_value
from panda.documents.record_codec import encode
from panda.documents.safe_text import count_noun
from panda.documents.times import time_text
from panda.errors import CheckError, LockHeldError, NotFoundError, StoreError, UsageError
from panda.memory.confidence import level
from panda.memory.conflicts import Contradiction, find_contradictions, lint_memory, merge_files, resolve
from panda.memory.fact_reader import file_value
from panda.memory.markdown_files import Projection
from panda.memory.user_memory import Memory, Remembered, load_remembered
from panda.store.fact_records import Assertion, Value
from panda.store.layout import UserStore

_LIST_COLUMNS = ("key", "value", "confidence", "level", "since", "source", "kind", "scope", "note")
_LIST_EXTRA = ("scope", "level", "kind", "source", "note")
_HISTORY_COLUMNS = ("time", "value", "confidence", "source", "until", "clock", "id")
_CONFLICT_COLUMNS = ("id", "scope", "key", "holds", "confidence", "against", "its confidence", "facts")
_LINT_COLUMNS = ("rule", "scope", "key", "finding")
_PROPOSAL_COLUMNS = ("status", "key", "value", "turn", "batches", "until")
_VALUE_CHARS = 60
_AT_ONCE = 20
_KINDS = "preference or fact."
_SCOPES = "local, team, company or public."
_Scope = Annotated[str | None, option(_SCOPES, "SCOPE", show_default="local")]
_Entity = Annotated[str | None, option("Whom or what it is about.", "NAME", show_default="the user")]
_Key = Annotated[str, argument("A key such as budget, or entity#key.", "KEY", complete=complete_memory_keys)]


def _clip(value: Value) -> str:
    return clipped(render_value(file_value(value)), _VALUE_CHARS)


def _list_row(remembered: Remembered, now: datetime) -> tuple[object, ...]:
    confidence = remembered.confidence(now)
    rival = remembered.alternative
    note = None
    if remembered.expired:
        note = "expired"
    elif rival is not None:
        note = f"contradicted: {_clip(rival.value)} ({rival.confidence:.2f}, {rival.source})"
    elif not remembered.fact.id:
        note = "typed by hand, not taken in yet"
    cells = (
        clipped(remembered.text, _VALUE_CHARS),
        f"{confidence:.2f}",
        level(confidence),
        time_text(remembered.at),
    )
    return remembered.key, *cells, remembered.fact.source, remembered.kind, remembered.subject.scope, note


def _remembered_data(remembered: Remembered, now: datetime) -> dict[str, object]:
    confidence = remembered.confidence(now)
    fact = remembered.fact
    rival = remembered.alternative
    return {
        "key": remembered.key,
        "kind": remembered.kind,
        **remembered.subject._asdict(),
        "value": file_value(fact.value),
        "type": fact.value.type,
        "confidence": round(confidence, 4),
        "level": level(confidence),
        "start_confidence": remembered.start,
        "content_type": fact.content_type,
        "updated_at": time_text(remembered.at),
        "source": fact.source,
        "source_turn": fact.source_turn,
        "valid_until": time_text(fact.valid_until),
        "hlc": fact.hlc,
        "id": fact.id or None,
        "expired": remembered.expired,
        "contradicted": rival is not None,
        "alt_value": file_value(rival.value) if rival else None,
        "alt_confidence": rival.confidence if rival else None,
    }


def _lines(assertions: Iterable[Assertion], user: str) -> list[dict[str, object]]:
    """Assertions as plain JSON values: each its line in the log, and its key."""
    return [{"key": assertion.subject.key(user), **assertion.to_json()} for assertion in assertions]


@contextmanager
def _memory_of(invocation: Invocation, store: UserStore | None = None) -> Iterator[Memory]:
    """The user's memory, for writing; in a store that is open already, or that of the settings."""
    yield (memory := Memory(store or invocation.store_for_writing()))
    if memory.unshown is not None:
        invocation.reporter.warn(
            f"it is remembered; {memory.unshown.message}: the next `panda memory` writes it there"
        )


def _read_memory(invocation: Invocation) -> Projection:
    """The user's memory, for reading: edits by hand are taken in first where the store can be written."""
    store = invocation.store()
    if store.home.is_dir() and not store.read_only_mark.exists():
        memory = Memory(store)
        with suppress(StoreError, LockHeldError):  # then they are shown without
            edits = {
                assertion.subject.key(store.user): assertion.confidence > 0 for assertion in memory.take_in()
            }
            for key, typed in edits.items():
                invocation.reporter.step(f"taken in: {key}, {'typed' if typed else 'deleted'} by hand")
    state = Projection(store)
    state.refresh()
    return state


def list_all(
    invocation: Invocation,
    kind: Annotated[str | None, option(_KINDS, "KIND", show_default="both")] = None,
    scope: Annotated[str | None, option(_SCOPES, "SCOPE", show_default="all")] = None,
    entity: _Entity = None,
) -> Result:
    """
    List what is remembered: values, how far they are to be believed, since when.

    Example: panda memory list --kind preference --user demo
    """
    settings = invocation.settings
    now = settings.clock()
    if kind not in (None, "preference", "fact"):
        raise UsageError(f"{kind!r} is no kind", where="--kind", fix="preference or fact")
    about = find_subject("any", StatementOptions(scope=scope, entity=entity), settings.user, "--scope").entity
    memories = [
        remembered
        for remembered in load_remembered(_read_memory(invocation), now)
        if kind in (None, remembered.kind)
        and scope in (None, remembered.subject.scope)
        and (entity is None or remembered.subject.entity == about)
    ]
    if not memories:
        invocation.reporter.step(f"nothing is remembered of user {settings.user} in {settings.root}")
    data = {"user": settings.user, "memory": [_remembered_data(remembered, now) for remembered in memories]}
    return Result(
        data, OutputTable(_LIST_COLUMNS, [_list_row(remembered, now) for remembered in memories], _LIST_EXTRA)
    )


def get(invocation: Invocation, key: _Key, scope: _Scope = None, entity: _Entity = None) -> Result:
    """
    Print the value that is remembered under a key.

    Example: panda memory get budget --user demo
    """
    settings = invocation.settings
    now = settings.clock()
    subject = find_subject(key, StatementOptions(scope=scope, entity=entity), settings.user)
    state = _read_memory(invocation)
    for remembered in load_remembered(state, now):
        if remembered.subject == subject and not remembered.expired:
            value = remembered.fact.value.v
            return Result(
                _remembered_data(remembered, now), value if isinstance(value, str) else remembered.text
            )
    raise NotFoundError(
        f"nothing is remembered under {key} in scope {subject.scope}",
        where=key,
        fix="see `panda memory list`",
    )


def set_value(
    invocation: Invocation,
    key: Annotated[
        str,
        argument(
            "A key such as budget, or entity#key; - reads JSON lines from standard input.",
            "KEY|-",
            complete=complete_memory_keys,
        ),
    ],
    value: Annotated[list[str] | None, argument("The value; several make a list.", "VALUE…")] = None,
    kind: Annotated[
        str | None, option(_KINDS, "KIND", show_default="preference of what is about the user, else fact")
    ] = None,
    scope: _Scope = None,
    entity: _Entity = None,
    type_: Annotated[
        str | None,
        option(
            "string, text, number, boolean, datetime, ref, null or list.",
            "TYPE",
            "--type",
            show_default="by the value",
        ),
    ] = None,
    valid_until: Annotated[
        str | None, option("The last instant at which it holds.", "TIME", show_default="for good")
    ] = None,
    new_user: NewUser = False,
) -> Result:
    """
    Remember a value. An earlier value that you gave is retracted first.

    Example: panda memory set budget 900 --type number --valid-until 2026-12-31 --user demo

    With - each line of standard input is an object with key and value, and kind, scope, entity, type and
    valid_until if need be.
    """
    user = invocation.settings.user
    options = StatementOptions(kind, scope, entity, type_, valid_until)
    if key == "-":
        if value:
            raise UsageError(
                "- reads lines, and takes no value", where="VALUE", fix="give the lines on stdin"
            )
        statements = read_statements(read_argument("-", invocation.stdin), options, user)
    else:
        words = [read_argument(word, invocation.stdin) for word in value or ()]
        statements = [make_statement(key, read_value(words, type_), options, user)]
    appended = _assert_all(invocation, statements)
    invocation.reporter.step(f"remembered: {len(statements)}")
    return Result({"user": user, "appended": _lines(appended, user)})


def _assert_all(invocation: Invocation, statements: Sequence[Assertion]) -> list[Assertion]:
    """Assert some at a time, so that others who wait for the memory come in between."""
    appended = []
    progress = invocation.reporter.progress("remembering", len(statements))
    with _memory_of(invocation) as memory, progress as advance:
        for start in range(0, len(statements), _AT_ONCE):
            some = statements[start : start + _AT_ONCE]
            with memory.held():
                appended += memory.assert_all(some)
            for _ in some:
                advance()
    return appended


def retract(invocation: Invocation, key: _Key, scope: _Scope = None, entity: _Entity = None) -> Result:
    """
    Take back what is remembered under a key, whoever said it. The history stays.

    Example: panda memory retract budget --user demo
    """
    user = invocation.settings.user
    subject = find_subject(key, StatementOptions(scope=scope, entity=entity), user)
    with _memory_of(invocation) as memory, memory.held():
        retraction = memory.retract(subject, f"user:{user}")
    invocation.reporter.step(f"retracted: {key}")
    return Result({"user": user, "appended": _lines([retraction], user)})


def history(invocation: Invocation, key: _Key, scope: _Scope = None, entity: _Entity = None) -> Result:
    """
    Show all that was ever said under a key, oldest first.

    Example: panda memory history budget --user demo
    """
    user = invocation.settings.user
    subject = find_subject(key, StatementOptions(scope=scope, entity=entity), user)
    assertions = _read_memory(invocation).log.of(subject)
    if not assertions:
        raise NotFoundError(
            f"nothing was ever said under {key} in scope {subject.scope}",
            where=key,
            fix="see `panda memory list`",
        )
    rows = [
        (
            *(time_text(assertion.asserted_at), _clip(assertion.value)),
            f"{assertion.confidence:.2f}" if assertion.confidence else "retracted",
            *(assertion.source, time_text(assertion.valid_until), assertion.hlc, assertion.id),
        )
        for assertion in assertions
    ]
    data = {"user": user, "key": key, "history": _lines(assertions, user)}
    return Result(data, OutputTable(_HISTORY_COLUMNS, rows, ("clock", "id", "until")))


def merge(
    invocation: Invocation,
    files: Annotated[
        list[Path],
        argument(
            "memory.jsonl and conflicts.jsonl of another machine, or a document of facts.",
            "FILE…",
            exists=False,
        ),
    ],
    new_user: NewUser = False,
) -> Result:
    """
    Add another machine's facts, with the clock readings that they have there.

    Every machine that has the same facts picks the same winners. Merging twice changes nothing. A line that
    is no fact is refused, and then nothing is written.

    Example: panda memory merge other/users/ann/memory.jsonl other/users/ann/conflicts.jsonl --user demo
    """
    user = invocation.settings.user
    with _memory_of(invocation) as memory:
        merged = merge_files(memory, files)
    facts = count_noun(len(merged.assertions), "fact")
    records = count_noun(len(merged.conflicts), "conflict record")
    invocation.reporter.step(f"merged: {facts}, {records}; {merged.existing_count} known")
    data = {
        "user": user,
        "appended": _lines(merged.assertions, user),
        "conflicts": encode(merged.conflicts),
        "known": merged.existing_count,
    }
    return Result(data)


def conflicts(invocation: Invocation) -> Result:
    """
    List the contradictions that stand: what holds, and what speaks against it.

    Example: panda memory conflicts --user demo
    """
    settings = invocation.settings
    contradictions = find_contradictions(_read_memory(invocation).log, settings.clock())
    if not contradictions:
        invocation.reporter.step("no contradictions")
    data = []
    rows = []
    for contradiction in contradictions:
        winner = contradiction.winner
        rival = contradiction.rival
        about = {
            "conflict_id": contradiction.conflict_id,
            "key": contradiction.subject.key(settings.user),
            "scope": winner.scope,
        }
        data.append(
            {**about, "fact_a": contradiction.winner.to_json(), "fact_b": contradiction.rival.to_json()}
        )
        values = [text for fact in (winner, rival) for text in (_clip(fact.value), f"{fact.confidence:.2f}")]
        rows.append(
            (contradiction.conflict_id, winner.scope, about["key"], *values, f"{winner.id} {rival.id}")
        )
    return Result(
        {"user": settings.user, "conflicts": data},
        OutputTable(_CONFLICT_COLUMNS, rows, ("facts", "scope", "its confidence", "confidence")),
    )


@excludes("winner", ["value", "type_"])
def resolve_conflict(
    invocation: Invocation,
    conflict: Annotated[
        str, argument("Id of a contradiction or its beginning, or a key: all of that key.", "CONFLICT")
    ],
    winner: Annotated[
        str | None, option("Id of the fact that is right, or its beginning.", "ID", show_default="none")
    ] = None,
    value: Annotated[
        list[str] | None, option("What is right instead; several make a list.", "V", show_default="none")
    ] = None,
    type_: Annotated[
        str | None, option("Type of the value.", "TYPE", "--type", show_default="that of the winner")
    ] = None,
) -> Result:
    """
    Settle a contradiction. Both facts stay in the history.

    Example: panda memory resolve budget --value 900 --user demo
    """
    settings = invocation.settings
    if winner is None and not value:
        raise UsageError("give --winner or --value, one of the two", where="--winner", fix="see --help")
    chosen = partial(_value, value, type_) if value else None
    with _memory_of(invocation) as memory:
        resolution, records = resolve(memory, conflict, settings.clock(), winner=winner, value=chosen)
    invocation.reporter.step(f"settled: {len(records)}")
    data = {
        "user": settings.user,
        "resolution": _lines([resolution], settings.user)[0],
        "conflicts": encode(records),
    }
    return Result(data)


def _value(words: Sequence[str], type_: str | None, contradiction: Contradiction) -> Value:
    """The value that is right; of the winner's type unless a type is given, or it cannot be."""
    return read_value(words, type_ or (contradiction.winner.value.type if len(words) == 1 else None))


def lint(
    invocation: Invocation,
    within: Annotated[float, option("What expires within so many days is soon expiring.", "DAYS", min=0)] = 7,
) -> Result:
    """
    Check the memory: contradictions, what has expired or soon will, what a retraction left alone, references
    to nothing. Ends with 3 if it finds something.

    Example: panda memory lint --within 30 --user demo
    """
    settings = invocation.settings
    state = _read_memory(invocation)
    findings = lint_memory(state.log, settings.user, settings.clock(), within_days=within)
    data = {"user": settings.user, "findings": [vars(finding) for finding in findings]}
    if not findings:
        invocation.reporter.step(f"nothing in the memory of {settings.user} needs a look")
        return Result(data)
    rows = [(finding.rule, finding.scope, finding.key, finding.message) for finding in findings]
    counts = ", ".join(
        f"{count} {rule}" for rule, count in Counter(finding.rule for finding in findings).items()
    )
    error = CheckError(f"findings in the memory of {settings.user}: {counts}")
    return Result(data, OutputTable(_LINT_COLUMNS, rows), error=error)


def reflect_on_turns(
    invocation: Invocation,
    dry_run: Annotated[bool, flag("Only show it; write nothing.", "--dry-run")] = False,
) -> Result:
    """
    Propose facts about the user from what they said in their last ten approved turns.

    A proposal becomes a fact of confidence .60 once a second batch, with a new turn in it, agrees; after 30
    days it is dropped. What memory holds or the user has taken back is not proposed.

    Example: panda memory reflect --dry-run --user demo
    """
    from panda.actions.preference_proposals import reflect

    reporter = invocation.reporter
    store = invocation.store() if dry_run else invocation.store_for_writing()
    app = invocation.open_app(store)
    with _memory_of(invocation, store) as memory:
        done = reflect(app, memory, dry_run=dry_run)
    reporter.step(f"read {count_noun(len(done.turns), 'turn')}; kept {len(done.appended)}")
    data = {
        "user": store.user,
        "dry_run": dry_run,
        "turns": list(done.turns),
        "proposals": encode(list(done.proposals)),
        "appended": _lines(done.appended, store.user),
    }
    rows = [
        (
            *(
                proposal.status,
                proposal.relation,
                proposal.value,
                proposal.source_turn,
                len(proposal.batches),
            ),
            time_text(proposal.expires_at) if proposal.status == "proposed" else None,
        )
        for proposal in done.proposals
    ]
    return Result(data, OutputTable(_PROPOSAL_COLUMNS, rows))
