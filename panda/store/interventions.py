"""Interventions: what halted, and what a person can do about it (S1 §9, S3 §13.3, §18.1)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panda.documents.times import Clock, render_time
from panda.errors import FileFormatError, HaltError, Location, NotFoundError, Problem, StoreError, UsageError
from panda.store.files import held_lock, read_json, store_errors, write_json
from panda.store.layout import Layout
from panda.store.records import check_json

INTERVENTION_SCHEMA = "panda.intervention/1"
_SEVERITY: Mapping[str, str] = {
    "memory_error": "critical",
    "config_error": "high",
    "model_timeout": "high",
    "budget_exceeded": "high",
    "invalid_reply": "high",
    "quality_gate": "medium",
    "halt": "high",
}


@dataclass(frozen=True)
class Intervention:
    """One file of interventions/."""

    path: Path  # the file
    value: Mapping[str, Any]  # what it holds, as its schema says

    @property
    def id(self) -> str:
        return str(self.value["id"])

    @property
    def user(self) -> str | None:
        """Whose turn halted."""
        user = self.value["user_id"]
        return None if user is None else str(user)

    @property
    def turn(self) -> int | None:
        """The turn that halted; None if none was claimed."""
        turn = self.value["turn"]
        return None if turn is None else int(turn)

    @property
    def is_open(self) -> bool:
        """Whether nobody has resolved it."""
        return str(self.value["status"]) == "open"

    @property
    def go_on(self) -> str | None:
        """The command that takes the turn up again; None if there is no turn."""
        return f"panda turn --resume {self.turn} --user {self.user}" if self.turn and self.user else None


@dataclass(frozen=True)
class DamagedIntervention:
    """A file of interventions/ that cannot be used."""

    path: Path  # the file
    error: Problem  # why


def write_intervention(
    layout: Layout,
    clock: Clock,
    error: Problem,
    *,
    user: str,
    turn: int | None,
    phase: int | None,
    recipe: str | None,
    version: str | None = None,
    kind: str | None = None,
) -> str:
    """
    Write what halted to interventions/{id}.json.

    Args:
        turn: Its number; None if none was claimed.
        version: Digest of its version; None if unknown.
        kind: Type of the intervention; None takes the error's own.

    Returns:
        The id: time, user, turn and a short digest.
    """
    now = render_time(clock())
    halt = error if isinstance(error, HaltError) else None
    kind = kind or (halt.kind if halt else "config_error")
    id_ = intervention_id(now, user, turn, phase, error.message)
    value = {
        "schema": INTERVENTION_SCHEMA,
        "id": id_,
        "created_at": now,
        "user_id": user,
        "turn": turn,
        "phase": phase,
        "recipe": recipe,
        "recipe_version": version,
        "type": kind,
        "severity": _SEVERITY.get(kind, "high"),
        "message": error.message,
        "where": error.where,
        "expected": halt.expected if halt else None,
        "received": halt.received if halt else None,
        "raw_output": halt.received if halt and kind == "invalid_reply" else None,
        "what_to_do": error.fix,
        "details": halt.details if halt else {},
        "status": "open",
        "resolved_at": None,
        "resolution": None,
    }
    path = layout.interventions / f"{id_}.json"
    check_json(f"interventions/{path.name}", value, str(path))
    write_json(path, value)
    return id_


def intervention_id(now: str, user: str | None, turn: int | None, phase: int | None, message: str) -> str:
    """The id of an intervention: time, user, turn and a short digest, also of its message."""
    digest = hashlib.sha256(f"{now}{user}{turn}{phase}{message}".encode()).hexdigest()[:8]
    return f"{now.replace(':', '').replace('-', '').lower()}-{user}-{turn or 0}-{digest}"


def list_interventions(layout: Layout) -> list[Intervention | DamagedIntervention]:
    """Every intervention of a store, newest last; damaged files first."""
    found = [_load(path) for path in _files(layout)]
    return sorted(found, key=lambda one: _age(one) if isinstance(one, Intervention) else ("", ""))


def load_intervention(layout: Layout, prefix: str) -> Intervention:
    """
    One intervention.

    Args:
        prefix: Its id, or a beginning that no other id has.

    Raises:
        NotFoundError: There is none.
        UsageError: Several ids begin like that.
        FileFormatError: Its file is damaged.
    """
    paths = {path.stem: path for path in _files(layout)}
    ids = [prefix] if prefix in paths else [id_ for id_ in paths if id_.startswith(prefix)]
    fix = "`panda intervention list --all` shows them all"
    if not ids or not prefix:
        raise NotFoundError(f"no intervention {prefix!r}", where=str(layout.interventions), fix=fix)
    if len(ids) > 1:
        message = f"{len(ids)} interventions begin with {prefix!r}: {', '.join(ids[:3])}"
        raise UsageError(message, where=str(layout.interventions), fix="give more of the id")
    found = _load(paths[ids[0]])
    if isinstance(found, DamagedIntervention):
        raise found.error
    return found


def resolve_intervention(
    layout: Layout, clock: Clock, prefix: str, note: str, *, wait_seconds: float
) -> Intervention:
    """
    Write down how an intervention was resolved, in one step.

    Args:
        prefix: As for load_intervention.
        note: What was done; not empty.

    Returns:
        The intervention as it is now.

    Raises:
        UsageError: The note is empty, it is resolved already, or several ids begin with *prefix*.
        NotFoundError: There is none.
        FileFormatError: Its file is damaged.
        LockHeldError: Another process resolves for too long.
    """
    if not note.strip():
        raise UsageError("the note is empty", where="--note", fix="say what was done")
    load_intervention(layout, prefix)
    with held_lock(layout.interventions_lock, holder="panda intervention resolve", wait_seconds=wait_seconds):
        found = load_intervention(layout, prefix)
        if not found.is_open:
            message = f"intervention {found.id} was resolved at {found.value['resolved_at']}"
            raise UsageError(f"{message}: {found.value['resolution']}", where=str(found.path))
        ending = {"status": "resolved", "resolved_at": render_time(clock()), "resolution": note}
        value = {**found.value, **ending}
        check_json(f"interventions/{found.path.name}", value, str(found.path))
        write_json(found.path, value)
    return Intervention(found.path, value)


def _files(layout: Layout) -> list[Path]:
    directory = layout.interventions
    if not directory.is_dir():
        return []
    with store_errors(directory, "list"):
        return sorted(directory.glob("*.json"))


def _load(path: Path) -> Intervention | DamagedIntervention:
    try:
        value = read_json(path)
        check_json(f"interventions/{path.name}", value, str(path))
        if value["id"] != path.stem:
            raise FileFormatError(
                f"its id {value['id']!r} is not its file name", where=Location(path, key="id")
            )
    except (FileFormatError, StoreError) as exc:
        return DamagedIntervention(path, exc)
    return Intervention(path, value)


def _age(one: Intervention) -> tuple[str, str]:
    return str(one.value["created_at"]), one.id
