"""What the tool steps of a turn leave: records, cached results, notes, kept content. Pure."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from panda.documents.carry import Archive, ArchiveEntry, CachedStep, Carry, Note, StepRecord, StepType, clip
from panda.documents.text import one_line
from panda.session.turn_files import Json, TurnFiles
from panda.storage.layout import step_name

_NOTES, _NOTE_TURNS, _ENTRIES = 8, 3, 50
_KEPT_BYTES = 256 * 1024
_KEY = re.compile(r"t\d+_s\d+_(?P<type>\w+)_\d+")
_LINE_CHARS, _ASKED_CHARS, _NOTE_CHARS = 160, 120, 300
_TYPES: Mapping[str, StepType] = {
    "create": "write", "write": "write", "edit": "write", "update": "write", "delete": "write",
    "commit": "write", "save": "write", "generate": "generate", "analyze": "analyze", "compare": "analyze",
}  # fmt: skip
"""Kind of work by the last word of a tool's name; any other tool reads."""


def call_digest(tool: str, arguments: Mapping[str, object]) -> str:
    """
    What makes a tool call the same again.

    >>> call_digest("a.b", {"x": 1, "y": 2}) == call_digest("a.b", {"y": 2, "x": 1})
    True
    """
    text = json.dumps([tool, arguments], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def step_type(call: Json) -> StepType:
    """What kind of work a call did."""
    return call.get("kind") or _TYPES.get(str(call["tool"]).rpartition(".")[2], "read")


def step_records(files: TurnFiles) -> tuple[StepRecord, ...]:
    """The tool calls of a turn, in short."""
    return tuple(_record(files, number, call) for number, call in files.calls())


def _record(files: TurnFiles, number: int, call: Json) -> StepRecord:
    return StepRecord(
        step=number,
        tool=call["tool"],
        step_type=step_type(call),
        subdomain=str(call["tool"]).partition(".")[0],
        outcome=outcome_line(call),
        record_count=_count(call),
        entities=tuple(clip(label, _LINE_CHARS) for label, _ in entity_ops(call))[:8],
        note=_short(call.get("note")),
        conclusion=_short(call.get("conclusion")),
        result=f"{files.directory}/{step_name(number)}",
    )


def _short(text: str | None) -> str | None:
    return clip(text, _NOTE_CHARS) if text else None


def outcome_line(call: Json) -> str:
    """One line on what a call gave."""
    if call["status"] != "success":
        return clip(f"{call['status']}: {call['error']}", _LINE_CHARS)
    said = [one_line(claim["text"]) for claim in call["claims"]]
    return clip("; ".join(said), _LINE_CHARS) if said else "nothing found"


def _count(call: Json) -> int:
    return max(len(call["claims"]), len(call.get("entities", ()))) if call["status"] == "success" else 0


def entity_ops(call: Json) -> Iterator[tuple[str, str]]:
    """Label of every entity of a call, and what was done to it."""
    if call["status"] != "success":
        return
    for entity in call.get("entities", ()):
        if isinstance(entity, str):
            yield entity, "create" if step_type(call) == "write" else "read"
        else:
            yield str(entity["label"]), str(entity.get("op", "read"))


def errors_of(files: TurnFiles) -> tuple[str, ...]:
    """Every failed call with its error."""
    failed = (call for _, call in files.calls() if call["error"])
    return tuple(clip(f"{call['tool']}: {call['error']}", 2 * _LINE_CHARS) for call in failed)


def blocked_reason(files: TurnFiles) -> str | None:
    """Why a step could not be done; None if none was blocked."""
    found = (call["error"] for _, call in files.calls() if call["status"] == "blocked")
    progress = (files.plan or {}).get("progress") or {}
    given = progress.get("reason") if progress.get("ending") == "blocked" else None
    reason = given or next(found, None)
    return clip(reason, 2 * _LINE_CHARS) if reason else None


def carry_cache(previous: Carry, files: TurnFiles) -> tuple[CachedStep, ...]:
    """References to the results of the last two turns that executed anything, the newer in full."""
    if not files.steps:
        return previous.step_cache
    newest = max((cached.turn for cached in previous.step_cache), default=None)
    kept = [replace(cached, detail="summary") for cached in previous.step_cache if cached.turn == newest]
    return (*kept, *(_cached(files, number, call) for number, call in files.calls()))


def _cached(files: TurnFiles, number: int, call: Json) -> CachedStep:
    asked = ", ".join(f"{name}={value}" for name, value in call["arguments"].items())
    return CachedStep(
        turn=files.turn,
        step=number,
        tool=call["tool"],
        call=call_digest(call["tool"], call["arguments"]),
        asked=clip(asked, _ASKED_CHARS),
        outcome=outcome_line(call),
        record_count=_count(call),
        detail="full",
        path=f"{files.directory}/{step_name(number)}",
    )


def carry_notes(previous: Carry, files: TurnFiles) -> tuple[Note, ...]:
    """Notes and conclusions that three further turns see; a gap in the numbers of the session moves them."""
    gap = max(0, files.turn - previous.head - 1) if previous.head else 0
    kept = [replace(n, expires_after_turn=n.expires_after_turn + gap) for n in previous.carry_notes]
    kept = [note for note in kept if note.expires_after_turn > files.turn]
    for record in step_records(files):
        for kind, text in (("note", record.note), ("conclusion", record.conclusion)):
            if text:
                last = files.turn + _NOTE_TURNS
                note = Note(
                    kind="note" if kind == "note" else "conclusion",
                    text=text,
                    turn=files.turn,
                    step=record.step,
                    expires_after_turn=last,
                )
                kept += [note] if note not in kept else []
    return tuple(kept[-_NOTES:])


def carry_archive(previous: Carry, files: TurnFiles) -> Archive:
    """The index of kept content, with what the turn's steps made."""
    found = [
        _entry(files, number, call, name)
        for number, call in files.calls()
        if call["status"] == "success" and not call.get("reused")
        for name in call.get("artifacts", ())
        if name in files.artifacts
    ]
    entries = [*previous.content_archive.entries, *found]
    over = max(0, len(entries) - _ENTRIES)
    return Archive(entries=tuple(entries[over:]), evicted=previous.content_archive.evicted + over)


def _entry(files: TurnFiles, number: int, call: Json, name: str) -> ArchiveEntry:
    key = name.rpartition("/")[2].partition(".")[0]
    match = _KEY.fullmatch(key)
    arguments: Mapping[str, Any] = call["arguments"]
    texts = [value for value in arguments.values() if isinstance(value, str)]
    chars = files.artifacts[name]
    return ArchiveEntry(
        key=key,
        turn=files.turn,
        step=number,
        type=match["type"] if match else step_type(call),
        description=clip(max(texts, key=len, default=str(call["tool"])), _ASKED_CHARS),
        path=f"{files.directory}/{name}",
        chars=chars,
        cut=bool(isinstance(call["data"], Mapping) and call["data"].get("cut")) or chars > _KEPT_BYTES,
    )
