"""Interventions: what halted, and what a person can do about it (S1 §9, S3 §13.3, §18.1)."""

import hashlib
from collections.abc import Mapping

from panda.documents.times import Clock, render_time
from panda.errors import HaltError, PandaError
from panda.storage.files import write_json
from panda.storage.layout import Layout
from panda.storage.schemas import check_json

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


def write_intervention(
    layout: Layout,
    clock: Clock,
    error: PandaError,
    *,
    user: str,
    turn: int | None,
    phase: int | None,
    recipe: str | None,
    kind: str | None = None,
) -> str:
    """
    Write what halted to interventions/{id}.json.

    Args:
        layout: The store.
        clock: The present.
        error: What halted.
        user: Whose turn.
        turn: Its number; None if none was claimed.
        phase: Phase that halted.
        recipe: Recipe that was executed.
        kind: Type of the intervention; None takes the error's own.

    Returns:
        The id: time, user, turn and a short digest.

    Raises:
        StoreError: It cannot be written.
    """
    now = render_time(clock())
    halt = error if isinstance(error, HaltError) else None
    kind = kind or (halt.kind if halt else "config_error")
    digest = hashlib.sha256(f"{now}{user}{turn}{phase}{error.message}".encode()).hexdigest()[:8]
    id_ = f"{now.replace(':', '').replace('-', '').lower()}-{user}-{turn or 0}-{digest}"
    value = {
        "schema": INTERVENTION_SCHEMA,
        "id": id_,
        "created_at": now,
        "user_id": user,
        "turn": turn,
        "phase": phase,
        "recipe": recipe,
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
