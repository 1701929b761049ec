"""What users said, from the staged value of a turn to the log and the memory files (design §3)."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from panda.documents.memory_edit import set_entry
from panda.documents.memory_file import parse_memory_file, render_value
from panda.documents.times import Clock, render_time
from panda.errors import FileFormatError
from panda.memory.confidence import SAID_BY_USER
from panda.memory.hlc import parse_hlc, tick
from panda.memory.staging import Kind, StagedValue, Value, memory_key, stage_value, tag_value, untag_value
from panda.storage.files import append_json_line, held_lock, read_json_lines, read_text, write_atomic
from panda.storage.layout import Layout

__all__ = ["Assertion", "StagedValue", "apply_assertions", "load_assertions", "stage_value"]

_SCOPE = "local"
_TITLES = {"preference": "Preferences", "fact": "Facts"}


@dataclass(frozen=True)
class Assertion:
    """One line of memory.jsonl."""

    id: str
    """Unique in the log."""
    entity: str
    """Normalised."""
    relation: str
    """Case-sensitive."""
    value: Value
    """What is asserted."""
    source: str | None
    """Who says so, as "turn:808"."""
    confidence: float
    """0 retracts every earlier assertion of the same entity, relation and scope."""
    scope: str
    """local, team, company or public."""
    hlc: str | None
    """Hybrid clock reading."""
    valid_until: str | None
    """Instant, None for ever."""
    kind: Kind
    """Which file shows it."""
    source_turn: int | None
    """Turn in which it was said."""
    asserted_at: str
    """Instant of writing."""
    content_type: str | None
    """How it ages."""

    def to_json(self) -> dict[str, object]:
        """As a line of memory.jsonl."""
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "value": tag_value(self.value),
        }


def load_assertions(path: Path) -> list[Assertion]:
    """
    The assertions of a memory.jsonl, in order; [] if there is no file.

    Raises:
        StoreError: It cannot be read.
        FileFormatError: A line is no assertion; names it.
    """
    if not path.exists():
        return []
    assertions = []
    for number, raw in enumerate(read_json_lines(path), 1):
        try:
            fields = {name: raw[name] for name in Assertion.__dataclass_fields__ if name != "value"}
            assertion = Assertion(**fields, value=untag_value(raw["value"]))
            parse_hlc(assertion.hlc)
        except (KeyError, TypeError, AttributeError, ValueError) as exc:
            raise FileFormatError(
                f"entry {number} is no assertion: {exc!r}", where=f"{path}:{number}"
            ) from exc
        assertions.append(assertion)
    return assertions


def apply_assertions(
    layout: Layout, user: str, assertions: Sequence[StagedValue], clock: Clock, wait_seconds: float
) -> list[Assertion]:
    """
    Write staged values of an approved turn to the user's log and memory files.

    Args:
        layout: Where the store is.
        user: Whose memory.
        assertions: What the turn staged.
        clock: Gives the instant of writing.
        wait_seconds: How long to wait for the user's memory lock.

    Returns:
        What was appended: for each value a retraction of the user's own earlier, different one, if there is
        one, then the assertion. Nothing for a value that this turn has asserted before.

    Raises:
        LockHeldError: Another process kept the lock.
        FileFormatError: The log or a memory file is corrupt; nothing was written for that value.
        StoreError: A file cannot be written.

    Source:
        Design §3, S2 "Contradiction".
    """
    if not assertions:
        return []
    appended: list[Assertion] = []
    with held_lock(
        layout.memory_lock(user), holder=f"memory of {user} (pid {os.getpid()})", wait_seconds=wait_seconds
    ):
        log = load_assertions(layout.memory_log(user))
        for staged in assertions:
            path = layout.preferences(user) if staged.kind == "preference" else layout.facts(user)
            text = read_text(path) if path.exists() else ""
            told = next((one for one in log if _is_same(one, staged)), None)
            if told is not None and not _still_to_show(log, told, staged, text, path, user):
                continue
            new = _new_assertions(log, staged, clock()) if told is None else []
            spoken_at = clock() if told is None else datetime.fromisoformat(told.asserted_at)
            changed = set_entry(
                text,
                key=memory_key(staged.entity, staged.relation, user),
                value=list(staged.value) if isinstance(staged.value, tuple) else staged.value,
                confidence=SAID_BY_USER,
                source_turn=staged.source_turn,
                updated_at=spoken_at,
                title=_TITLES[staged.kind],
                where=str(path),
            )
            for one in new:
                append_json_line(layout.memory_log(user), one.to_json())
            log += new
            appended += new
            if changed != text:
                write_atomic(path, changed)
    return appended


def _is_same(one: Assertion, staged: StagedValue) -> bool:
    return (
        one.confidence > 0
        and (one.source_turn, one.entity, one.relation)
        == (staged.source_turn, staged.entity, staged.relation)
        and tag_value(one.value) == tag_value(staged.value)
    )


def _is_own(one: Assertion) -> bool:
    """Whether the user said it, as against a tool or another person."""
    return one.source is None or one.source.partition(":")[0] in ("turn", "user", "file")


def _own_live(log: Sequence[Assertion], entity: str, relation: str) -> Assertion | None:
    """The user's own assertion that now stands for an entity and relation."""
    own = [
        one
        for one in log
        if (one.entity, one.relation, one.scope) == (entity, relation, _SCOPE) and _is_own(one)
    ]
    newest = max(own, key=lambda one: parse_hlc(one.hlc), default=None)
    return newest if newest is not None and newest.confidence > 0 else None


def _new_assertions(log: Sequence[Assertion], staged: StagedValue, now: datetime) -> list[Assertion]:
    reading = max((one.hlc for one in log if one.hlc), key=parse_hlc, default=None)
    milliseconds = int(now.timestamp() * 1000)
    new: list[Assertion] = []
    earlier = _own_live(log, staged.entity, staged.relation)
    if earlier is not None and tag_value(earlier.value) != tag_value(staged.value):
        reading = tick(reading, milliseconds)
        new.append(_assertion(staged, earlier.value, 0.0, reading, now))
    reading = tick(reading, milliseconds)
    new.append(_assertion(staged, staged.value, SAID_BY_USER, reading, now))
    return new


def _assertion(
    staged: StagedValue, value: Value, confidence: float, reading: str, now: datetime
) -> Assertion:
    named = json.dumps([staged.entity, staged.relation, tag_value(value), confidence, reading])
    return Assertion(
        id=f"fact-{hashlib.sha256(named.encode()).hexdigest()[:16]}",
        entity=staged.entity,
        relation=staged.relation,
        value=value,
        source=f"turn:{staged.source_turn}",
        confidence=confidence,
        scope=_SCOPE,
        hlc=reading,
        valid_until=None,
        kind=staged.kind,
        source_turn=staged.source_turn,
        asserted_at=render_time(now),
        content_type=staged.content_type,
    )


def _still_to_show(
    log: Sequence[Assertion], told: Assertion, staged: StagedValue, text: str, path: Path, user: str
) -> bool:
    """Whether a crash came between the log and the file: the file still shows what stood before."""
    if _own_live(log, staged.entity, staged.relation) != told:
        return False
    earlier = [
        one
        for one in log
        if (one.entity, one.relation) == (told.entity, told.relation)
        and parse_hlc(one.hlc) < parse_hlc(told.hlc)
    ]
    key = memory_key(staged.entity, staged.relation, user)
    shown = next((entry for entry in parse_memory_file(text, where=str(path)) if entry.key == key), None)
    if shown is None:
        return True
    return (
        bool(earlier)
        and shown.text == render_value(earlier[-1].value)
        and shown.source_turn != staged.source_turn
    )
