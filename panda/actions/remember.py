"""What a user says outside of any turn, read from words and JSON lines: keys, values and statements."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from panda.documents.record_codec import decode
from panda.documents.safe_text import one_line, shorten
from panda.documents.times import read_instant
from panda.errors import FileFormatError, UsageError
from panda.memory.confidence import SAID_BY_USER
from panda.memory.fact_reader import Kind, typed_value
from panda.memory.markdown_files import split_key
from panda.memory.synthesis import read_scope
from panda.store.fact_records import (
    SCOPES,
    VALUE_TYPES,
    Assertion,
    Scalar,
    Subject,
    Value,
    entity_name,
    is_system,
)
from panda.store.files import parse_json

_VALUE_CHARS = 60
_OPTIONS = ("kind", "scope", "entity", "type", "valid_until")
_FIELDS = ("key", "value", *_OPTIONS)
_DAY_CHARS = len("2026-01-04")


@dataclass(frozen=True)
class StatementOptions:
    """The options of a statement as given; None where one is not."""

    kind: str | None = None
    scope: str | None = None  # local, team, company or public
    entity: str | None = None  # whom or what it is about
    type: str | None = None  # type of the value
    valid_until: str | None = None  # the last instant at which it holds

    def kind_of(self, key: str, user: str) -> Kind:
        """The kind as given; else a preference if the key is about the user in the local scope."""
        if self.kind is not None:
            return cast(Kind, self.kind)
        about_user = self.entity is None and split_key(one_line(key), "fact", user)[0] == f"user:{user}"
        return "preference" if about_user and self.scope in (None, "local") else "fact"


def find_subject(key: str, options: StatementOptions, user: str, where: str = "KEY") -> Subject:
    """
    Scope, entity and relation of a key: a relation, or `entity#relation`; *user* if no entity is named.
    Raises UsageError: A blank key or entity, one of panda's own, or no scope.
    """
    try:
        scope = read_scope(options.scope or "local")
        if options.entity is not None:
            entity = entity_name(options.entity)
            relation = one_line(key)
        else:
            entity, relation = split_key(one_line(key), options.kind_of(key, user), user)
    except ValueError as exc:
        fix = f"scopes are {', '.join(SCOPES)}; an entity names who or what it is about"
        raise UsageError(str(exc), where=where, fix=fix) from exc
    if not relation or is_system(relation) or is_system(entity):
        raise UsageError(f"{relation!r} is no key for a memory", where=where, fix="use a word such as budget")
    return Subject(scope, entity, relation)


def make_statement(
    key: str, value: Value, options: StatementOptions, user: str, *, where: str | None = None
) -> Assertion:
    """
    Return the assertion of a value that the user gives; *where* is the line of a file, None names the option.
    """
    kind = options.kind_of(key, user)
    if kind not in ("preference", "fact"):
        raise UsageError(f"{kind!r} is no kind", where=where or "--kind", fix="preference or fact")
    scope, entity, relation = find_subject(key, options, user, where or "KEY")
    if kind == "preference" and entity != f"user:{user}":
        message = f"a preference is the user's own, not one of {entity}"
        raise UsageError(message, where=where or "--kind", fix="use --kind fact")
    until = read_instant(options.valid_until, where or "--valid-until")
    if until is not None and len(str(options.valid_until).strip()) == _DAY_CHARS:
        until = until.replace(hour=23, minute=59, second=59)  # a day ends with its last second
    return Assertion(
        "",
        entity,
        relation=relation,
        value=value,
        source=f"user:{user}",
        confidence=SAID_BY_USER,
        scope=scope,
        kind=kind,
        valid_until=until,
    )


def read_value(words: Sequence[str], type_: str | None) -> Value:
    """
    The value that words stand for: one, several for a list, none for null. Without a type it is a string.

    >>> read_value(["900"], "number").to_json(), read_value(["a", "b"], None).to_json()
    ({'type': 'number', 'v': 900}, {'type': 'list', 'v': ['a', 'b']})
    """
    kind = type_ or ("string" if len(words) == 1 else "list")
    if kind not in VALUE_TYPES:
        raise UsageError(f"{kind!r} is no type", where="--type", fix=f"one of {', '.join(VALUE_TYPES)}")
    if any(not word.strip() for word in words) or (not words and kind != "null"):
        fix = "say what to remember, as in panda memory set budget 900"
        raise UsageError("the value is blank", where="VALUE", fix=fix)
    if (kind == "null") == bool(words) or (kind != "list" and len(words) > 1):
        fix = "leave the value out" if kind == "null" else "give one value, or --type list"
        raise UsageError(f"{len(words)} values for the type {kind}", where="VALUE", fix=fix)
    plain: Scalar | tuple[Scalar, ...] = None
    if kind == "list":
        plain = tuple(words)
    elif words:
        plain = _plain(words[0], kind)
    try:
        return Value(kind, plain)
    except ValueError as exc:
        message = f"{shorten(repr(words[0]), _VALUE_CHARS)} is no {kind}"
        raise UsageError(message, where="VALUE", fix=f"give a {kind}, or another --type") from exc


def _plain(word: str, kind: str) -> Scalar:
    if kind == "boolean":
        return {"true": True, "false": False}.get(word.lower(), word)
    if kind == "number":
        try:
            number = float(word)
        except ValueError:
            return word
        if word.lstrip("+-").isdecimal():
            return int(word)
        return number if math.isfinite(number) else word
    return word


def read_statements(text: str, defaults: StatementOptions, user: str) -> list[Assertion]:
    """
    Statements of JSON lines: key, value (or a typed one, `{"type": "ref", "v": "…"}`), and what the options
    of `panda memory set` are called, which count for lines that do not say otherwise.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return [
        _read_line(parse_json(line, where="stdin", line=number), defaults, user, f"stdin:{number}")
        for number, line in lines
    ]


def _read_line(raw: Any, defaults: StatementOptions, user: str, where: str) -> Assertion:
    if not isinstance(raw, dict) or not isinstance(raw.get("key"), str) or "value" not in raw:
        raise UsageError("no object with key and value", where=where, fix='as {"key": "pet", "value": "cat"}')
    unknown = [name for name in raw if name not in _FIELDS]
    if unknown:
        raise UsageError(f"unknown field {unknown[0]!r}", where=where, fix=f"fields are {', '.join(_FIELDS)}")
    options = {name: raw.get(name) or getattr(defaults, name) for name in _OPTIONS}
    for name, text in options.items():
        if text is not None and not isinstance(text, str):
            raise UsageError(f"{name} is no text: {text!r}", where=where)
    value = _json_value(raw["value"], options["type"], where)
    return make_statement(raw["key"], value, StatementOptions(**options), user, where=where)


def _json_value(raw: Any, type_: str | None, where: str) -> Value:
    try:
        if type_ is not None and raw is not None and not isinstance(raw, dict):
            raw = {"type": type_, "v": raw}
        value = decode(Value, raw, where="") if isinstance(raw, dict) else typed_value(raw)
    except (ValueError, FileFormatError) as exc:
        raise UsageError(str(exc), where=where) from exc
    if isinstance(value.v, str) and not value.v.strip():
        raise UsageError("the value is blank", where=where, fix="say what to remember")
    return value
