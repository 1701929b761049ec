"""`panda intervention list`, `panda intervention show` and `panda intervention resolve`."""

import json
from collections.abc import Iterator
from typing import Annotated

from panda.cli.command import Invocation, OutputTable, Result, argument, flag, option
from panda.cli.completion import complete_interventions, complete_open_interventions
from panda.cli.output_text import clipped
from panda.errors import Problem
from panda.store.interventions import list_interventions, load_intervention, resolve_intervention
from panda.store.records import Intervention

_COLUMNS = ("id", "time", "turn", "phase", "recipe", "type", "severity", "message")
_EXTRA = ("severity", "time", "phase", "recipe")
_KEYS = ("id", "created_at", "turn", "phase", "recipe", "type", "severity", "message")
_MESSAGE_CHARS = 80
_ID_HELP = "Id of the intervention, or its beginning."


def list_all(
    invocation: Invocation, resolved: Annotated[bool, flag("Resolved ones too.", "--all")] = False
) -> Result:
    """
    List the open interventions of a user, newest last.

    Example: panda intervention list --all --user demo
    """
    user = invocation.settings.user
    interventions = list(_of_user(invocation, user, resolved=resolved))
    if not interventions:
        invocation.store()  # of a user that is not there nothing is open either
        invocation.reporter.step(f"no {'' if resolved else 'open '}interventions of user {user}")
    rows = [tuple(getattr(intervention, key) for key in _KEYS) for intervention in interventions]
    columns: tuple[str, ...] = _COLUMNS
    shown_rows: list[tuple[object, ...]] = [(*row[:-1], clipped(row[-1], _MESSAGE_CHARS)) for row in rows]
    if resolved:
        columns = (*_COLUMNS, "status")
        shown_rows = [
            (*row, intervention.status) for row, intervention in zip(shown_rows, interventions, strict=True)
        ]
    return Result(
        {"user": user, "interventions": [intervention.to_json() for intervention in interventions]},
        OutputTable(columns, shown_rows, _EXTRA),
    )


def show(
    invocation: Invocation, id_: Annotated[str, argument(_ID_HELP, "ID", complete=complete_interventions)]
) -> Result:
    """
    Show an intervention: what was expected, what came, and what can be done.

    Example: panda intervention show 20260105t143000z-demo-12
    """
    intervention = load_intervention(invocation.store(any_user=True), id_)
    if intervention.go_on:
        invocation.reporter.step(f"to go on: {intervention.go_on}")
    return Result({**intervention.to_json(), "go_on": intervention.go_on}, "\n".join(_lines(intervention)))


def resolve(
    invocation: Invocation,
    id_: Annotated[str, argument(_ID_HELP, "ID", complete=complete_open_interventions)],
    note: Annotated[str, option("What was done about it.", "TEXT")],
) -> Result:
    """
    Mark an intervention as resolved. Its turn goes on with `panda turn --resume N`.

    Example: panda intervention resolve 20260105t143000z-demo-12 --note "mended preferences.md"
    """
    intervention = resolve_intervention(invocation.store_for_writing(any_user=True), id_, note)
    invocation.reporter.step(f"resolved: {intervention.id}")
    if intervention.go_on:
        invocation.reporter.step(f"to go on: {intervention.go_on}")
    return Result({**intervention.to_json(), "go_on": intervention.go_on})


def _of_user(invocation: Invocation, user: str, *, resolved: bool) -> Iterator[Intervention]:
    for entry in list_interventions(invocation.store(any_user=True)):
        if isinstance(entry, Problem):
            invocation.reporter.warn(f"{entry.where}: {entry.message}")
        elif entry.user_id in (None, user) and (resolved or entry.is_open):
            yield entry


def _lines(intervention: Intervention) -> Iterator[str]:
    """A line each for what is there; a text of several lines is indented below its name."""
    for key, value in intervention.to_json().items():
        if value is None or value == {}:
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        if "\n" in text.strip():
            yield f"{key}:"
            yield from (f"  {line}" for line in text.strip().splitlines())
        else:
            yield f"{key}: {text}"
