"""What somebody said, read strictly from JSON and from what was typed; clock readings and ids (S2 §16)."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar

from msgspec import structs

from panda.documents.memory_file import render_value
from panda.documents.record_codec import decode
from panda.errors import FileFormatError, Location
from panda.store.fact_records import EPOCH, Assertion, Conflict, Fact, Scalar, Value, parse_hlc, read_time

_T = TypeVar("_T", Assertion, Fact, Conflict)
Kind = Literal["preference", "fact"]


def canonical_json(value: Value) -> str:
    """The one JSON text of a value that ties are broken by: no spaces, whole numbers without a point."""
    raw = value.to_json()
    if "v" in raw:
        raw["v"] = [_plain(v) for v in value.v] if isinstance(value.v, tuple) else _plain(value.v)
    return json.dumps(raw, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _plain(v: Scalar) -> Scalar:
    return int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 1e21 else v


def typed_value(raw: object) -> Value:
    """The value that somebody typed into a memory file; a mapping counts as the text that it is shown as."""
    if raw is None:
        return Value("null")
    if isinstance(raw, list | tuple):
        return Value("list", tuple(map(_scalar, raw)))
    value = _scalar(raw)
    if isinstance(value, bool):
        return Value("boolean", value)
    if isinstance(value, str):
        return Value("string", value)
    return Value("number", value)


def _scalar(raw: object) -> Scalar:
    return raw if raw is None or isinstance(raw, str | bool | int | float) else render_value(raw)


def file_value(value: Value) -> object:
    return list(value.v) if isinstance(value.v, tuple) else value.v


def tick(last: str | None, now_ms: int) -> str:
    """The reading after *last*: the wall clock if it moved on, else the next counter, which ends at 999."""
    milliseconds, counter = parse_hlc(last)
    if now_ms > milliseconds:
        return f"{now_ms}.000"
    return f"{milliseconds + 1}.000" if counter >= 999 else f"{milliseconds}.{counter + 1:03d}"


def asserted(assertion: Assertion, hlc: str, now: datetime) -> Assertion:
    """Return the assertion with an id and a clock reading of its own, written *now* unless it is dated."""
    at = (assertion.asserted_at if assertion.is_dated else now).replace(microsecond=0)
    fact = structs.replace(assertion, hlc=hlc, asserted_at=at)
    return structs.replace(fact, id=id_of(fact))


def anew(of: Assertion, **changes: Any) -> Assertion:
    """
    Return an assertion of the same thing that is yet to be made: without its id, times, end and turn, and
    with changes.
    """
    undated = {"id": "", "hlc": None, "valid_until": None, "source_turn": None, "asserted_at": EPOCH}
    return structs.replace(of, **{**undated, **changes})


def id_of(fact: Fact) -> str:
    parts = [*fact.subject, fact.value.to_json(), fact.confidence, fact.hlc, fact.source]
    return f"fact-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"


def known_part(cls: type[_T], raw: object, *, where: str, key: str = "") -> _T:
    """A fact or conflict of somebody else's document, without keys of theirs; *key* is its place there."""
    if not isinstance(raw, Mapping):
        raise FileFormatError(f"must be an object, not {type(raw).__name__}", where, key=key or None)
    value: dict[str, Any] = {name: raw[name] for name in cls.__struct_fields__ if name in raw}
    try:
        if isinstance(until := value.get("valid_until"), str):
            value["valid_until"] = read_time(until)
    except ValueError as exc:
        raise FileFormatError(str(exc), where, key=f"{key}.valid_until".lstrip(".")) from exc
    return decode(cls, value, where=where, key=key)


def parse_scope_facts(raw: object, *, where: str) -> tuple[list[Fact], list[Conflict]]:
    """
    The facts and conflicts of a document `{"facts": […], "conflicts": […]}`; its list of facts is emptied
    while it is read, so that a large one is not held twice. Two facts of one id that differ are a
    FileFormatError.
    """
    if not isinstance(raw, Mapping) or not isinstance(raw_facts := raw.get("facts"), list):
        raise FileFormatError("there is no list of facts", where, key="facts")
    if not isinstance(conflicts := raw.get("conflicts", []), list):
        raise FileFormatError("the conflicts are no list", where, key="conflicts")
    facts: list[Fact] = []
    facts_by_id: dict[str, Fact] = {}
    for index, raw_fact in enumerate(raw_facts):
        facts.append(known_part(Fact, raw_fact, where=where, key=f"facts[{index}]"))
        raw_facts[index] = None
    for index, fact in enumerate(facts):
        if facts_by_id.setdefault(fact.id, fact) != fact:
            message = f"another fact has the id {fact.id!r} and says something else"
            raise FileFormatError(message, Location(where, key=f"facts[{index}].id"))
    keyed = ((f"conflicts[{index}]", raw_conflict) for index, raw_conflict in enumerate(conflicts))
    return facts, [known_part(Conflict, raw_conflict, where=where, key=key) for key, raw_conflict in keyed]
