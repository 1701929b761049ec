"""Interventions: what halted, and what a person can do about it (S1 §9, S3 §13.3, §18.1)."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import structs

from panda.documents.times import render_time
from panda.errors import FileFormatError, HaltError, NotFoundError, Problem, StoreError, UsageError
from panda.store.files import held_lock, store_errors
from panda.store.layout import Layout, UserStore
from panda.store.records import Intervention, load, save

_SEVERITY: Mapping[str, Literal["critical", "high", "medium"]] = {
    "memory_error": "critical",
    "quality_gate": "medium",
}


def write_intervention(
    store: UserStore,
    error: Problem,
    *,
    turn: int | None,
    phase: int | None,
    recipe: str | None,
    version: str | None = None,
    kind: str | None = None,
) -> str:
    """Write what halted to interventions/{id}.json, and give its id; without a *kind* that is the error's."""
    now = render_time(store.clock())
    halt = error if isinstance(error, HaltError) else None
    kind = kind or (halt.kind if halt else "config_error")
    record = Intervention(
        id=intervention_id(now, store.user, turn, phase, error.message),
        created_at=now,
        user_id=store.user,
        turn=turn,
        phase=phase,
        recipe=recipe,
        recipe_version=version,
        type=kind,
        severity=_SEVERITY.get(kind, "high"),
        message=error.message,
        where=str(error.where) if error.where else None,
        expected=halt.expected if halt else None,
        received=halt.received if halt else None,
        raw_output=halt.received if halt and kind == "invalid_reply" else None,
        what_to_do=error.fix,
        details=halt.details if halt else {},
    )
    save(record, store.root / record.file_name)
    return record.id


def intervention_id(now: str, user: str | None, turn: int | None, phase: int | None, message: str) -> str:
    """The id of an intervention: time, user, turn and a short digest, also of its message."""
    digest = hashlib.sha256(f"{now}{user}{turn}{phase}{message}".encode()).hexdigest()[:8]
    return f"{now.replace(':', '').replace('-', '').lower()}-{user}-{turn or 0}-{digest}"


def list_interventions(layout: Layout, ids: str = "*") -> list[Intervention | Problem]:
    """Every intervention of a store, newest last; before them what is wrong with damaged files."""
    damaged: list[Problem] = []
    sound: list[Intervention] = []
    for path in _files(layout, ids):
        try:
            sound.append(_load(path))
        except (FileFormatError, StoreError) as exc:
            damaged.append(exc)
    return [*damaged, *sorted(sound, key=lambda record: (record.created_at, record.id))]


def load_intervention(layout: Layout, prefix: str) -> Intervention:
    """The intervention of an id, or of the beginning of one (NotFoundError: none, UsageError: several)."""
    paths = {path.stem: path for path in _files(layout, "*")}
    ids = [prefix] if prefix in paths else [id_ for id_ in paths if id_.startswith(prefix)]
    if not ids or not prefix:
        fix = "`panda intervention list --all` shows them all"
        raise NotFoundError(f"no intervention {prefix!r}", where=str(layout.interventions), fix=fix)
    if len(ids) > 1:
        message = f"{len(ids)} interventions begin with {prefix!r}: {', '.join(ids[:3])}"
        raise UsageError(message, where=str(layout.interventions), fix="give more of the id")
    return _load(paths[ids[0]])


def resolve_intervention(store: UserStore, prefix: str, note: str) -> Intervention:
    """
    Write down how an intervention was resolved, and give it as it is now. Raises as load_intervention, and
    UsageError: the note is empty, or it is resolved already.
    """
    if not note.strip():
        raise UsageError("the note is empty", where="--note", fix="say what was done")
    load_intervention(store, prefix)
    with held_lock(
        store.interventions_lock, holder="panda intervention resolve", wait_seconds=store.wait_seconds
    ):
        record = load_intervention(store, prefix)
        path = store.root / record.file_name
        if not record.is_open:
            message = f"intervention {record.id} was resolved at {record.resolved_at}: {record.resolution}"
            raise UsageError(message, where=str(path))
        now = render_time(store.clock())
        record = structs.replace(record, status="resolved", resolved_at=now, resolution=note)
        save(record, path)
    return record


def _files(layout: Layout, ids: str) -> list[Path]:
    directory = layout.interventions
    if not directory.is_dir():
        return []
    with store_errors(directory, "list"):
        return sorted(directory.glob(f"{ids}.json"))


def _load(path: Path) -> Intervention:
    record = load(Intervention, path)
    if record.id != path.stem:
        raise FileFormatError(f"its id {record.id!r} is not its file name", where=str(path), key="id")
    return record
