"""`panda memory`."""

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from panda.cli.command import Invocation, Result, Table, argument, excludes, flag, option
from panda.cli.completion import complete_memory_keys
from panda.cli.text import clipped, read_argument, read_instant, time_text
from panda.documents.memory_file import render_value
from panda.documents.text import one_line
from panda.errors import CheckError, FileFormatError, LockHeldError, NotFoundError, StoreError, UsageError
from panda.memory.confidence import MISSING, SAID_BY_USER, level
from panda.memory.conflicts import Contradiction, Finding, find_contradictions, lint_memory, resolve
from panda.memory.fact import SCOPES, Assertion, Statement, Subject, read_scope
from panda.memory.files import Projection, split_key
from panda.memory.memory import Memory, Remembered, load_remembered
from panda.memory.merge import merge_files
from panda.memory.value import (
    VALUE_TYPES,
    FactValue,
    Kind,
    entity_name,
    file_value,
    is_system,
    parse_value,
    typed_value,
)
from panda.storage.files import parse_json
from panda.storage.layout import Layout

if TYPE_CHECKING:
    from panda.actions.reflection import Proposal

_FIELDS = ("key", "value", "kind", "scope", "entity", "type", "valid_until")
LIST_COLUMNS = ("key", "value", "confidence", "level", "since", "source", "kind", "scope", "note")
HISTORY_COLUMNS = ("time", "value", "confidence", "source", "until", "clock", "id")
CONFLICT_COLUMNS = ("id", "scope", "key", "holds", "confidence", "against", "its confidence", "facts")
LINT_COLUMNS = ("rule", "scope", "key", "finding")
_VALUE_CHARS = 60
_READER_WAIT_SECONDS = 2.0
_AT_ONCE = 20
_KindOption = Annotated[str | None, option("preference or fact.", "KIND")]
Scope = Annotated[str | None, option("local, team, company or public.", "SCOPE")]
Entity = Annotated[str | None, option("Whom or what it is about; the user if left out.", "NAME")]
Key = Annotated[str, argument("A key such as budget, or entity#key.", "KEY", complete=complete_memory_keys)]
_COLUMNS = ("status", "key", "value", "turn", "batches", "until")


@dataclass(frozen=True)
class Given:
    """The options of a statement as given; None where one is not."""

    kind: str | None = None
    scope: str | None = None  # local, team, company or public
    entity: str | None = None  # whom or what it is about
    type: str | None = None  # type of the value
    valid_until: str | None = None  # the last instant at which it holds


def find_subject(key: str, given: Given, user: str, where: str = "KEY") -> Subject:
    """
    Scope, entity and relation of a key.

    Args:
        key: A relation, or `entity#relation`.
        given: Its scope and entity, if given.
        user: Whose memory; the entity if no other is named.

    Raises:
        UsageError: A blank key or entity, one of panda's own, or no scope.
    """
    try:
        scope = read_scope(given.scope or "local")
        if given.entity is not None:
            entity, relation = entity_name(given.entity), one_line(key)
        else:
            entity, relation = split_key(one_line(key), _kind(given, key, user), user)
    except ValueError as exc:
        fix = f"scopes are {', '.join(SCOPES)}; an entity names who or what it is about"
        raise UsageError(str(exc), where=where, fix=fix) from exc
    if not relation or is_system(relation) or is_system(entity):
        raise UsageError(f"{relation!r} is no key for a memory", where=where, fix="use a word such as budget")
    return Subject(scope, entity, relation)


def _kind(given: Given, key: str, user: str) -> Kind:
    """The kind as given; else a preference if it is about the user in the local scope."""
    if given.kind is not None:
        return cast(Kind, given.kind)
    about_user = given.entity is None and split_key(one_line(key), "fact", user)[0] == f"user:{user}"
    return "preference" if about_user and given.scope in (None, "local") else "fact"


def make_statement(
    key: str, value: FactValue, given: Given, user: str, *, where: str | None = None
) -> Statement:
    """
    What the user says, as memory takes it.

    Args:
        given: The options.
        where: Line of a file, for errors; None names the option.

    Raises:
        UsageError: As for find_subject; a preference of somebody else, or an end that is no date.
    """
    kind = _kind(given, key, user)
    if kind not in ("preference", "fact"):
        raise UsageError(f"{kind!r} is no kind", where=where or "--kind", fix="preference or fact")
    scope, entity, relation = find_subject(key, given, user, where or "KEY")
    if kind == "preference" and entity != f"user:{user}":
        raise UsageError(
            f"a preference is the user's own, not one of {entity}",
            where=where or "--kind",
            fix="use --kind fact",
        )
    return Statement(
        kind=kind,
        entity=entity,
        relation=relation,
        value=value,
        source=f"user:{user}",
        confidence=SAID_BY_USER,
        scope=scope,
        valid_until=read_instant(given.valid_until, where or "--valid-until"),
    )


def read_value(words: Sequence[str], type_: str | None) -> FactValue:
    """
    The value that words on the command line stand for.

    Args:
        words: One, several for a list, none for null.
        type_: Its type; None is a string, or a list of strings if there are several words.

    Raises:
        UsageError: No such type, or the words are none of that type.

    >>> read_value(["900"], "number").to_json(), read_value(["a", "b"], None).to_json()
    ({'type': 'number', 'v': 900}, {'type': 'list', 'v': ['a', 'b']})
    """
    kind = type_ or ("string" if len(words) == 1 else "list")
    if kind not in VALUE_TYPES:
        raise UsageError(f"{kind!r} is no type", where="--type", fix=f"one of {', '.join(VALUE_TYPES)}")
    if any(not word.strip() for word in words) or (not words and kind != "null"):
        raise UsageError("the value is blank", where="VALUE", fix="say what to remember")
    if (kind == "null") == bool(words) or (kind != "list" and len(words) > 1):
        fix = "leave the value out" if kind == "null" else "give one value, or --type list"
        raise UsageError(f"{len(words)} values for the type {kind}", where="VALUE", fix=fix)
    raw: dict[str, object] = {"type": kind}
    if kind != "null":
        raw["v"] = list(words) if kind == "list" else _plain(words[0], kind)
    try:
        return parse_value(raw)
    except ValueError as exc:
        raise UsageError(str(exc), where="VALUE", fix=f"give a {kind}, or another --type") from exc


def _plain(word: str, kind: str) -> object:
    if kind == "boolean":
        return {"true": True, "false": False}.get(word.lower(), word)
    if kind == "number":
        try:
            number = float(word)
        except ValueError:
            return word
        whole = word.lstrip("+-").isdecimal()
        return int(word) if whole else number if math.isfinite(number) else word
    return word


def read_statements(text: str, given: Given, user: str) -> list[Statement]:
    """
    Statements of JSON lines.

    Args:
        text: An object a line: key and value, and what the options of `panda memory set` are called. The
            value is a JSON value or a typed one, `{"type": "ref", "v": "…"}`.
        given: The options, for lines that do not say otherwise.

    Raises:
        UsageError: A line that says something impossible; names it.
        FileFormatError: A line that is no JSON.
    """
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"stdin:{number}"
            found.append(_read_line(parse_json(line, where="stdin", line=number), given, user, where))
    return found


def _read_line(raw: Any, given: Given, user: str, where: str) -> Statement:
    if not isinstance(raw, dict) or not isinstance(raw.get("key"), str) or "value" not in raw:
        raise UsageError("no object with key and value", where=where, fix='as {"key": "pet", "value": "cat"}')
    unknown = [name for name in raw if name not in _FIELDS]
    if unknown:
        raise UsageError(f"unknown field {unknown[0]!r}", where=where, fix=f"fields are {', '.join(_FIELDS)}")
    options = {name: raw.get(name) or getattr(given, name) for name in _FIELDS[2:]}
    for name, given_text in options.items():
        if given_text is not None and not isinstance(given_text, str):
            raise UsageError(f"{name} is no text: {given_text!r}", where=where)
    return make_statement(
        raw["key"], _json_value(raw["value"], options["type"], where), Given(**options), user, where=where
    )


def _json_value(raw: Any, type_: str | None, where: str) -> FactValue:
    try:
        if isinstance(raw, dict):
            return parse_value(raw)
        if type_ is not None and raw is not None:
            return parse_value({"type": type_, "v": raw})
        if isinstance(raw, list):
            return parse_value({"type": "list", "v": raw})
        value = typed_value(raw)
    except (ValueError, FileFormatError) as exc:
        raise UsageError(str(exc), where=where) from exc
    if isinstance(value.v, str) and not value.v.strip():
        raise UsageError("the value is blank", where=where, fix="say what to remember")
    return value


def _shown(value: FactValue) -> str:
    return clipped(render_value(file_value(value)), _VALUE_CHARS)


def list_row(one: Remembered, now: datetime) -> tuple[object, ...]:
    """A row of `panda memory list`."""
    confidence = one.confidence(now, missing=MISSING)
    return (
        one.key,
        clipped(one.text, _VALUE_CHARS),
        f"{confidence:.2f}",
        level(confidence),
        time_text(one.at),
        one.source,
        one.kind,
        one.subject.scope,
        _note(one),
    )


def _note(one: Remembered) -> str | None:
    if one.expired:
        return "expired"
    if one.alternative is not None:
        rival = one.alternative
        return f"contradicted: {_shown(rival.value)} ({rival.confidence:.2f}, {rival.source})"
    return "typed by hand, not taken in yet" if one.fact is None else None


def remembered_data(one: Remembered, now: datetime) -> dict[str, object]:
    """What holds, as plain JSON values."""
    confidence = one.confidence(now, missing=MISSING)
    rival = one.alternative
    return {
        "key": one.key,
        "kind": one.kind,
        **one.subject._asdict(),
        "value": file_value(one.value),
        "type": one.value.type,
        "confidence": round(confidence, 4),
        "level": level(confidence),
        "start_confidence": one.start,
        "content_type": one.content_type,
        "updated_at": time_text(one.at),
        "source": one.source,
        "source_turn": one.source_turn,
        "valid_until": time_text(one.fact.valid_until) if one.fact else None,
        "hlc": one.fact.hlc if one.fact else None,
        "id": one.fact.id if one.fact else None,
        "expired": one.expired,
        "contradicted": rival is not None,
        "alt_value": file_value(rival.value) if rival else None,
        "alt_confidence": rival.confidence if rival else None,
    }


def assertion_data(one: Assertion, user: str) -> dict[str, object]:
    """An assertion as plain JSON values: its line in the log, and its key."""
    return {"key": one.subject.key(user), **one.to_json()}


def history_row(one: Assertion) -> tuple[object, ...]:
    """A row of `panda memory history`."""
    confidence = "retracted" if one.fact.confidence == 0 else f"{one.fact.confidence:.2f}"
    until = time_text(one.fact.valid_until)
    value = _shown(one.fact.value)
    return time_text(one.asserted_at), value, confidence, one.fact.source, until, one.fact.hlc, one.fact.id


def conflict_row(one: Contradiction, user: str) -> tuple[object, ...]:
    """A row of `panda memory conflicts`."""
    winner, rival = one.winner.fact, one.rival.fact
    return (
        one.conflict_id,
        one.subject[0],
        one.subject.key(user),
        _shown(winner.value),
        f"{winner.confidence:.2f}",
        _shown(rival.value),
        f"{rival.confidence:.2f}",
        f"{winner.id} {rival.id}",
    )


def conflict_data(one: Contradiction, user: str) -> dict[str, object]:
    """A contradiction as plain JSON values."""
    return {
        "conflict_id": one.conflict_id,
        "key": one.subject.key(user),
        "scope": one.subject[0],
        "fact_a": one.winner.to_json(),
        "fact_b": one.rival.to_json(),
    }


def finding_row(one: Finding) -> tuple[object, ...]:
    """A row of `panda memory lint`."""
    return one.rule, one.scope, one.key, one.message


def memory_of(invocation: Invocation, store: Layout | None = None) -> Memory:
    """The user's memory, for writing; in a store that is open already, or that of the settings."""
    settings = invocation.settings
    return Memory(
        store or invocation.store_for_writing(),
        settings.user,
        settings.clock,
        settings.wait_seconds,
        invocation.reporter.waiting,
    )


def read_memory(invocation: Invocation) -> Projection:
    """The user's memory, for reading: edits by hand are taken in first where the store can be written."""
    layout, settings = invocation.store(), invocation.settings
    if layout.user(settings.user).is_dir() and not layout.read_only_mark.exists():
        memory = Memory(layout, settings.user, settings.clock, _READER_WAIT_SECONDS)
        with suppress(StoreError, LockHeldError):  # then they are shown without
            said = {one.subject.key(settings.user): one.fact.confidence > 0 for one in memory.take_in()}
            for key, typed in said.items():
                invocation.reporter.step(f"taken in: {key}, {'typed' if typed else 'deleted'} by hand")
    state = Projection(layout, settings.user)
    state.refresh()
    return state


def list_all(
    invocation: Invocation, kind: _KindOption = None, scope: Scope = None, entity: Entity = None
) -> Result:
    """
    List what is remembered: values, how far they are to be believed, since when.

    Example: panda memory list --kind preference
    """
    settings = invocation.settings
    now = settings.clock()
    if kind not in (None, "preference", "fact"):
        raise UsageError(f"{kind!r} is no kind", where="--kind", fix="preference or fact")
    about = find_subject("any", Given(scope=scope, entity=entity), settings.user, "--scope").entity
    found = [
        one
        for one in load_remembered(read_memory(invocation), now)
        if kind in (None, one.kind)
        and scope in (None, one.subject.scope)
        and (entity is None or one.subject.entity == about)
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
    subject = find_subject(key, Given(scope=scope, entity=entity), settings.user)
    state = read_memory(invocation)
    for one in load_remembered(state, now):
        if one.subject == subject and not one.expired:
            return Result(remembered_data(one, now), one.text)
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
    kind: _KindOption = None,
    scope: Scope = None,
    entity: Entity = None,
    type_: Annotated[
        str | None, option("string, text, number, boolean, datetime, ref, null or list.", "TYPE", "--type")
    ] = None,
    valid_until: Annotated[str | None, option("The last instant at which it holds.", "TIME")] = None,
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
    subject = find_subject(key, Given(scope=scope, entity=entity), user)
    memory = memory_of(invocation)
    with memory.held():
        retraction = memory.retract(subject, f"user:{user}")
    invocation.reporter.step(f"retracted: {key}")
    return Result({"user": user, "appended": [assertion_data(retraction, user)]})


def history(invocation: Invocation, key: Key, scope: Scope = None, entity: Entity = None) -> Result:
    """
    Show all that was ever said under a key, oldest first.

    Example: panda memory history budget
    """
    user = invocation.settings.user
    subject = find_subject(key, Given(scope=scope, entity=entity), user)
    found = read_memory(invocation).log.of(subject)
    if not found:
        raise NotFoundError(
            f"nothing was ever said under {key} in scope {subject.scope}",
            where=key,
            fix="see `panda memory list`",
        )
    data = {"user": user, "key": key, "history": [assertion_data(one, user) for one in found]}
    return Result(data, Table(HISTORY_COLUMNS, [history_row(one) for one in found]))


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


def conflicts(invocation: Invocation) -> Result:
    """
    List the contradictions that stand: what holds, and what speaks against it.

    Example: panda memory conflicts
    """
    settings = invocation.settings
    found = find_contradictions(read_memory(invocation).log, settings.clock())
    if not found:
        invocation.reporter.step("no contradictions")
    data = {"user": settings.user, "conflicts": [conflict_data(one, settings.user) for one in found]}
    return Result(data, Table(CONFLICT_COLUMNS, [conflict_row(one, settings.user) for one in found]))


@excludes("winner", "value", "type_")
def resolve_conflict(
    invocation: Invocation,
    conflict: Annotated[
        str, argument("Id of a contradiction or its beginning, or a key: all of that key.", "CONFLICT")
    ],
    winner: Annotated[str | None, option("Id of the fact that is right, or its beginning.", "ID")] = None,
    value: Annotated[list[str] | None, option("What is right instead; several make a list.", "V")] = None,
    type_: Annotated[
        str | None, option("Type of the value; that of the winner if left out.", "TYPE", "--type")
    ] = None,
) -> Result:
    """
    Settle a contradiction. Both facts stay in the history.

    Example: panda memory resolve conflict-0123456789ab --winner fact-89abcdef01234567
    """
    settings = invocation.settings
    if winner is None and not value:
        raise UsageError("give --winner or --value, one of the two", where="--winner", fix="see --help")
    chosen = partial(_value, value, type_) if value else None
    resolution, records = resolve(
        memory_of(invocation), conflict, settings.clock(), winner=winner, value=chosen
    )
    invocation.reporter.step(f"settled: {len(records)}")
    data = {
        "user": settings.user,
        "resolution": assertion_data(resolution, settings.user),
        "conflicts": [one.to_json() for one in records],
    }
    return Result(data)


def _value(words: Sequence[str], type_: str | None, one: Contradiction) -> FactValue:
    """The value that is right; of the winner's type unless a type is given, or it cannot be."""
    return read_value(words, type_ or (one.winner.fact.value.type if len(words) == 1 else None))


def lint(
    invocation: Invocation,
    within: Annotated[float, option("What expires within so many days is soon expiring.", "DAYS", min=0)] = 7,
) -> Result:
    """
    Check the memory: contradictions, what has expired or soon will, what a retraction left alone, references
    to nothing. Ends with 3 if it finds something.

    Example: panda memory lint --within 30
    """
    settings = invocation.settings
    state = read_memory(invocation)
    findings = lint_memory(state.log, settings.user, settings.clock(), within_days=within)
    data = {"user": settings.user, "findings": [vars(one) for one in findings]}
    if not findings:
        return Result(data)
    counts = ", ".join(f"{count} {rule}" for rule, count in Counter(one.rule for one in findings).items())
    error = CheckError(f"findings in the memory of {settings.user}: {counts}")
    return Result(data, Table(LINT_COLUMNS, [finding_row(one) for one in findings]), error=error)


def reflect(
    invocation: Invocation,
    dry_run: Annotated[bool, flag("Only show it; write nothing.", "--dry-run")] = False,
) -> Result:
    """
    Propose facts about the user from what they said in their last ten approved turns.

    A proposal becomes a fact of confidence .60 once a second batch, with a new turn in it, agrees; after 30
    days it is dropped. What memory holds or the user has taken back is not proposed.

    Example: panda memory reflect --dry-run
    """
    from panda.actions.reflection import reflect as reflect_on
    from panda.app import build

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


def _row(one: "Proposal") -> tuple[object, ...]:
    until = time_text(one.expires_at) if one.status == "proposed" else None
    return one.status, one.relation, one.value, one.source_turn, len(one.batches), until
