"""The pages of runs: the list of replays and batches, and what came of each turn of one."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from panda.documents.records import encode
from panda.documents.times import parse_time
from panda.errors import NotFoundError, UsageError, Verdict
from panda.runs.ledger import PlannedTurn, RunPlan, TurnLine
from panda.store.layout import Layout, is_id
from panda.view.attempts import DiffLine
from panda.view.run_reader import Ended, RunReader, RunState
from panda.view.shelf import Query, Shelf

PAGE_ROWS = 50
PAGE_TURNS = 100
SAVED = "saved"
_MOST_OFFERED = 200
_MOST_DOCUMENTS = 12
_MOST_MISSES = 3
_DIFF_LINES = 120
_LINE_CHARS = 400


@dataclass(frozen=True)
class RunRow:
    """One run of the list."""

    id: str
    mode: str  # verify, simulate, rerun or batch; "" if run.json cannot be used
    state: str  # finished, running, stopped or unreadable
    started: datetime | None
    seconds: float | None  # how long it took; None if it has not finished
    planned: int | None  # how many turns it was to run
    ended: int  # how many have ended
    results: Mapping[str, int]  # how many came to each result
    unsound: int  # how many of these are not as they were to be
    problem: str | None  # what is wrong with its files


@dataclass(frozen=True)
class RunList:
    """What the list of runs shows."""

    rows: tuple[RunRow, ...]  # newest first
    total: int
    place: int  # number of this page, from 1
    places: int  # number of pages
    names: tuple[str, ...]  # runs that can be compared, newest first
    before: str  # what the newest is compared with if nothing else is chosen


@dataclass(frozen=True)
class Document:
    """How a document differs from the saved one, or a call from the recorded one."""

    name: str
    lines: tuple[DiffLine, ...]
    left: int  # lines that are not shown


@dataclass(frozen=True)
class RunTurn:
    """One turn or item of a run."""

    name: str  # the item, or the number of the turn
    user: str
    turn: int
    page: str | None  # path of its page; None if the store of the pages does not hold it
    session: str | None
    query: str
    ended: Ended | None  # None if it has not been run
    documents: tuple[Document, ...]
    documents_left: int
    misses: tuple[Document, ...]
    misses_left: int
    is_bad: bool  # whether it is not as it was to be


@dataclass(frozen=True)
class RunPage:
    """What the page of a run shows."""

    row: RunRow
    plan: RunPlan | None
    directory: str
    options: Mapping[str, str]  # those that were given
    turns: tuple[RunTurn, ...]  # those that are not as they were to be first
    total: int
    place: int
    places: int
    left: int  # turns that have not been run
    former: int  # lines of items that were run again since
    go_on: str | None  # the command that goes on with it
    is_comparable: bool  # whether it ran turns again, which can be compared with the saved ones
    earlier: str | None  # the run of the same kind before it
    problems: tuple[tuple[str, str], ...]


def run_names(shelf: Shelf) -> list[str]:
    """The directories of runs, newest first by their names; [] without any."""
    found = []
    with suppress(OSError), os.scandir(shelf.store.runs) as entries:
        found = [entry.name for entry in entries if entry.is_dir() and is_run_name(entry.name)]
    return sorted((one for one in found if not shelf.is_selection or one in shelf.runs), reverse=True)


def is_run_name(name: str) -> bool:
    """Whether a name is one that stands in an address as it is."""
    return name.isascii() and len(name) <= 100 and name.replace("-", "").replace("_", "").isalnum()


def find_run(shelf: Shelf, name: str) -> RunReader:
    """A run by its name. Raises NotFoundError: the store has none of it."""
    directory = shelf.store.runs / name
    if not is_run_name(name) or not directory.is_dir():
        raise NotFoundError(f"there is no run {name[:80]!r}", where=str(shelf.store.runs))
    return shelf.kept(("run", name), lambda: RunReader(directory))


def turns_of_run(layout: Layout, name: str) -> dict[str, list[int]]:
    """The turns of a run that its store holds, by user."""
    found: dict[str, set[int]] = {}
    for one in RunReader(layout.runs / name).read().ended.values():
        is_ours = _is_here(layout, one.root) and is_id(one.user)
        if is_ours and layout.of(one.user).turn(one.turn).directory.is_dir():
            found.setdefault(one.user, set()).add(one.turn)
    return {user: sorted(numbers) for user, numbers in sorted(found.items())}


def _is_here(layout: Layout, root: str | None) -> bool:
    """Whether a run means this store, wherever it lies by now."""
    return root is None or ("\0" not in root and Path(root).resolve() == layout.root.resolve())


def load_run_list(shelf: Shelf, query: Query) -> RunList:
    """The list of runs. Raises UsageError: its place is no number."""
    names, place = run_names(shelf), max(1, query.number("place") or 1)
    shown = names[(place - 1) * PAGE_ROWS : place * PAGE_ROWS]
    rows = [_row(find_run(shelf, name).read()) for name in shown]
    before = earlier_run(shelf, names[0]) if names else None
    return RunList(
        tuple(rows),
        len(names),
        place,
        _places(len(names), PAGE_ROWS),
        tuple(names[:_MOST_OFFERED]),
        before or SAVED,
    )


def load_run(shelf: Shelf, query: Query) -> RunPage:
    """The page of a run. Raises NotFoundError: there is none. UsageError: its place is no number."""
    reader = find_run(shelf, query.parameters["run"])
    state, place = reader.read(), max(1, query.number("place") or 1)
    ended = sorted(state.ended.values(), key=lambda one: one.verdict is Verdict.SOUND)
    rows: list[Ended | PlannedTurn] = [*ended, *state.left]
    shown = rows[(place - 1) * PAGE_TURNS : place * PAGE_TURNS]
    planned = {one.key: one for one in state.plan.turns} if state.plan else {}
    sessions = {key: one.session for key, one in planned.items()}
    mode = state.plan.mode if state.plan else ""
    is_left = state.state == "stopped"
    command = "batch" if mode == "batch" else "replay"
    return RunPage(
        row=_row(state),
        plan=state.plan,
        directory=str(reader.directory),
        options=_options(state.plan) if state.plan else {},
        turns=tuple(_turn(shelf, reader, one, sessions) for one in shown),
        total=len(rows),
        place=place,
        places=_places(len(rows), PAGE_TURNS),
        left=len(state.left),
        former=state.former,
        go_on=f"panda {command} --resume {state.id}" if is_left and state.left else None,
        is_comparable=mode in ("simulate", "rerun") and bool(state.ended),
        earlier=earlier_run(shelf, state.id),
        problems=state.problems,
    )


def _options(plan: RunPlan) -> dict[str, str]:
    given = {key: value for key, value in encode(plan.options).items() if value}
    return {
        key: " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for key, value in given.items()
    }


def earlier_run(shelf: Shelf, name: str) -> str | None:
    """The newest run of the same kind that began before a run; None without one."""
    kind = _kind(name)
    return next((one for one in run_names(shelf) if one < name and kind and _kind(one) == kind), None)


def _kind(name: str) -> str:
    """The mode that a run's name carries, as its id is `TIME-MODE` or `TIME-MODE-N`."""
    parts = name.split("-")
    return parts[1] if len(parts) > 1 and parts[1] in ("simulate", "rerun", "batch") else ""


def _places(rows: int, of: int) -> int:
    return max(1, -(-rows // of))


def _row(state: RunState) -> RunRow:
    plan = state.plan
    started = _time(plan.started_at) if plan else None
    finished = _time(plan.finished_at) if plan and plan.finished_at else None
    return RunRow(
        id=state.id,
        mode=plan.mode if plan else "",
        state=state.state,
        started=started,
        seconds=(finished - started).total_seconds() if started and finished else None,
        planned=len(plan.turns) if plan else None,
        ended=len(state.ended),
        results=state.results,
        unsound=sum(one.verdict is not Verdict.SOUND for one in state.ended.values()),
        problem=f"{state.problems[0][0]}: {state.problems[0][1]}" if state.problems else None,
    )


def _time(text: str) -> datetime | None:
    with suppress(ValueError):
        return parse_time(text)
    return None


def _turn(
    shelf: Shelf, reader: RunReader, one: Ended | PlannedTurn, sessions: Mapping[Any, str | None]
) -> RunTurn:
    key = one.user, one.turn if one.item is None else one.item
    if isinstance(one, PlannedTurn):
        query = reader.queries().get(one.item or "", "")
        page = _page(shelf, one.user, one.turn, one.root)
        return RunTurn(
            str(key[1]), one.user, one.turn, page, one.session, query, None, (), 0, (), 0, is_bad=True
        )
    line = reader.line(one) if one.differing or one.misses else None
    documents, misses = _documents(line) if line else ((), ())
    return RunTurn(
        name=str(key[1]),
        user=one.user,
        turn=one.turn,
        page=_page(shelf, one.user, one.turn, one.root),
        session=sessions.get(key),
        query=one.query or reader.queries().get(one.item or "", ""),
        ended=one,
        documents=documents,
        documents_left=one.differing - len(documents),
        misses=misses,
        misses_left=one.misses - len(misses),
        is_bad=one.verdict is not Verdict.SOUND,
    )


def _page(shelf: Shelf, user: str, turn: int, root: str | None) -> str | None:
    if not _is_here(shelf.store, root):
        return None
    with suppress(NotFoundError, UsageError):
        shelf.turn(user, str(turn))
        return f"turns/{user}/{turn}"
    return None


def _documents(line: TurnLine) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    names = sorted(line.different)[:_MOST_DOCUMENTS]
    documents = tuple(_document(name, line.different[name]) for name in names)
    misses = (
        _document(f"{miss.recipe}, {miss.kind}, {miss.cause}", miss.difference)
        for miss in line.misses[:_MOST_MISSES]
    )
    return documents, tuple(misses)


def _document(name: str, diff: str) -> Document:
    lines = diff.split("\n")
    shown = [line for line in lines[:_DIFF_LINES] if not line.startswith(("--- ", "+++ "))]
    return Document(name, tuple(_diff_line(line) for line in shown), max(0, len(lines) - _DIFF_LINES))


def _diff_line(line: str) -> DiffLine:
    text = line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}…"
    if text.startswith("@@"):
        return DiffLine("left", text)
    kinds = {"-": "old", "+": "new"}
    kind = kinds.get(text[:1])
    if kind == "old":
        return DiffLine("old", text[1:])
    return DiffLine("new", text[1:]) if kind == "new" else DiffLine("same", text.removeprefix(" "))
