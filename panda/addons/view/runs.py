"""The pages of runs: the list of replays and batches, and what came of each turn of one."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import NamedTuple

from panda.addons.view.attempts import DiffLine
from panda.addons.view.shelf import PageQuery, Shelf
from panda.documents.record_codec import encode
from panda.documents.safe_text import shorten
from panda.errors import NotFoundError, Problem, Verdict
from panda.runs.compare import SAVED
from panda.runs.ledger import PlannedTurn, RunFolder, RunPlan, TurnKey, TurnLine
from panda.store.files import is_locked, store_errors, why_unread
from panda.store.layout import QUERIES_JSONL, RUN_JSON, RUN_TURNS_JSONL, Layout, is_id
from panda.store.lines import LineTail
from panda.store.records import load, parse

_PAGE_ROWS = 50
_PAGE_TURNS = 100
_MOST_BAD = 20
_MOST_DOCUMENTS = 12
_MOST_MISSES = 3
_QUERY_CHARS = 300
_MOST_QUERIES_BYTES = 50_000_000
_DIFF_LINES = 120
_LINE_CHARS = 400


class Ended(NamedTuple):
    """What came of one turn of a run, and where its line stands."""

    key: TurnKey
    turn: int
    root: str | None  # the store that the turn is in; None: the one that the run is kept in
    result: str
    verdict: Verdict
    start: int  # the first byte of the line
    end: int  # the byte behind it


class RunReader:
    """
    One run, read again and again, each line once, as far as it can be. What it holds is that of the last
    `read`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.plan: RunPlan | None = None  # None if run.json cannot be used
        self.ended: Mapping[TurnKey, Ended] = {}  # what came last of each turn
        self.former = 0  # lines of items that were run again since
        self.problems: list[tuple[str, str]] = []  # name of a damaged file, and what is wrong with it
        self._stamp: tuple[int, int] | None = None
        self._tail = LineTail(directory / RUN_TURNS_JSONL, TurnLine)
        self._lines: list[Ended] = []
        self._bad: list[tuple[str, str]] = []
        self._queries: Mapping[str, str] | None = None
        self._lock = Lock()

    @property
    def id(self) -> str:
        """Its name."""
        return self.directory.name

    @property
    def left(self) -> list[PlannedTurn]:
        """Return the turns that were planned and have not ended."""
        return [turn for turn in self.plan.turns if turn.key not in self.ended] if self.plan else []

    @property
    def results(self) -> Mapping[str, int]:
        """Return the number of turns by their result."""
        return Counter(turn.result for turn in self.ended.values())

    @property
    def state(self) -> str:
        """Return the state of the run: unreadable, finished, running, or stopped before it was done."""
        if self.plan is None:
            return "unreadable"
        if self.plan.finished_at is not None:
            return "finished"
        return "running" if is_locked(self.directory / "lock") else "stopped"

    def read(self) -> "RunReader":
        """Read the run as it is now, and return the reader."""
        with self._lock:
            problems = [*self._read_plan(), *self._read_lines()]
            planned = {turn.key: turn for turn in self.plan.turns} if self.plan else {}
            ended: dict[TurnKey, Ended] = {}
            former = 0
            for line in self._lines:
                plan = planned.get(line.key)
                is_former = plan is not None and plan.turn != line.turn
                former += is_former or line.key in ended
                if not is_former:
                    ended[line.key] = line._replace(root=plan.root) if plan else line
            self.ended = ended
            self.former = former
            self.problems = problems
            return self

    def line(self, turn: Ended) -> TurnLine | None:
        """The whole line of a turn; None if it is there no more."""
        path = self.directory / RUN_TURNS_JSONL
        with suppress(Problem, OSError), path.open("rb") as file:
            file.seek(turn.start)
            return parse(TurnLine, file.read(turn.end - turn.start), where=str(path))
        return None

    def query(self, item: str | None) -> str:
        """Return the query of an item of a batch, as far as the file that is kept with it reads."""
        if self._queries is None:
            self._queries = dict(_queries(self.directory / QUERIES_JSONL))
        return self._queries.get(item or "", "")

    def _read_plan(self) -> list[tuple[str, str]]:
        path = self.directory / RUN_JSON
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if self.plan is None or self._stamp != stamp:
                self.plan = load(RunPlan, path)
                self._stamp = stamp
            return []
        except (Problem, OSError) as exc:
            self.plan = None
            return [(RUN_JSON, why_unread(exc))]

    def _read_lines(self) -> list[tuple[str, str]]:
        path = self.directory / RUN_TURNS_JSONL
        if path.exists() and not path.is_file():
            return [(RUN_TURNS_JSONL, "not a regular file")]
        try:
            begins_anew, parts = self._tail.read(torn=False)
            if begins_anew:
                self._lines = []
                self._bad = []
            with closing(parts):
                for part in parts:
                    if isinstance(part, Problem):
                        self._bad.append((RUN_TURNS_JSONL, f"line {part.line}: {part.message}"))
                        continue
                    line = part.record
                    root = _root_of(line.directory)
                    ended = Ended(
                        line.key,
                        line.turn,
                        root=root,
                        result=line.result,
                        verdict=line.verdict,
                        start=part.start,
                        end=part.end,
                    )
                    self._lines.append(ended)
        except (Problem, OSError) as exc:
            return [*self._bad[:_MOST_BAD], (RUN_TURNS_JSONL, str(exc))]
        return self._bad[:_MOST_BAD]


def _root_of(directory: str) -> str | None:
    """The store of a turn's directory, `STORE/users/USER/turns/turn_N`."""
    parents = Path(directory).parents
    return os.fspath(parents[3]) if len(parents) > 3 else None


def _queries(path: Path) -> Iterator[tuple[str, str]]:
    with suppress(OSError, Problem), store_errors(path, "read"):
        if not path.is_file() or path.stat().st_size > _MOST_QUERIES_BYTES:
            return
        for line in path.read_bytes().splitlines():
            with suppress(ValueError, RecursionError, KeyError, TypeError):
                value = json.loads(line)
                yield str(value["id"]), shorten(str(value["query"]), _QUERY_CHARS)


def run_names(shelf: Shelf) -> list[str]:
    """The directories of runs, newest first by their names; [] without any."""
    names = []
    with suppress(OSError), os.scandir(shelf.store.runs) as entries:
        names = [entry.name for entry in entries if entry.is_dir() and is_run_name(entry.name)]
    return sorted((name for name in names if not shelf.is_selection or name in shelf.runs), reverse=True)


def is_run_name(name: str) -> bool:
    """Return whether a name is one that stands in an address as it is."""
    return name.isascii() and len(name) <= 100 and name.replace("-", "").replace("_", "").isalnum()


def find_run(shelf: Shelf, name: str) -> RunReader:
    """A run by its name, as it is now. Raises NotFoundError: the store has none of it."""
    directory = shelf.store.runs / name
    if not is_run_name(name) or not directory.is_dir():
        raise NotFoundError(f"there is no run {name[:80]!r}", where=str(shelf.store.runs))
    return shelf.get_reader(("run", name), lambda: RunReader(directory)).read()


def turns_address(run: str | None, user: str) -> str:
    """Return the address below which the pages of a user's turns are; *run* keeps them if it is not None."""
    return f"turns/{user}" if run is None else f"runs/{run}/turns/{user}"


def turns_of_run(layout: Layout, name: str) -> dict[str, list[int]]:
    """The turns of a run that its store holds, by user."""
    run = RunReader(layout.runs / name).read()
    numbers_by_user: dict[str, set[int]] = {}
    for turn in run.ended.values():
        if _is_saved(layout, run, turn):
            numbers_by_user.setdefault(turn.key[0], set()).add(turn.turn)
    return {user: sorted(numbers) for user, numbers in sorted(numbers_by_user.items())}


def _is_saved(layout: Layout, run: RunReader, turn: Ended | PlannedTurn) -> bool:
    """
    Return whether the store holds the turn that a row of a run is of.

    An item of a batch that saves nothing has the number of a turn that is not its own, and so may one of a
    batch whose run.json cannot be read.
    """
    user, _ = turn.key
    is_batch = run.plan.mode == "batch" if run.plan else _kind(run.id) == "batch"
    if is_batch and not (run.plan and run.plan.saves):
        return False
    is_here = _is_here(layout, turn.root) and is_id(user)
    return is_here and layout.of(user).turn(turn.turn).directory.is_dir()


def _is_here(layout: Layout, root: str | None) -> bool:
    """Return whether a run means this store, wherever it lies by now."""
    return root is None or ("\0" not in root and Path(root).resolve() == layout.root.resolve())


def load_run_list(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """The list of runs. Raises UsageError: its place is no number."""
    names = run_names(shelf)
    part = query.part(names, _PAGE_ROWS)
    return SimpleNamespace(
        shown=part,
        rows=[find_run(shelf, name) for name in part],
        names=names,
        before=(earlier_run(shelf, names[0]) if names else None) or SAVED,
    )


def load_run(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """The page of a run. Raises NotFoundError: there is none. UsageError: its place is no number."""
    run = find_run(shelf, query.parameters["run"])
    ended = sorted(run.ended.values(), key=lambda turn: turn.verdict is Verdict.SOUND)
    left = run.left
    rows: list[Ended | PlannedTurn] = [*ended, *left]
    part = query.part(rows, _PAGE_TURNS)
    mode = run.plan.mode if run.plan else ""
    options = encode(run.plan.options) if run.plan else {}
    return SimpleNamespace(
        run=run,
        mode=mode,
        state=run.state,
        options={
            key: " ".join(map(str, value)) if isinstance(value, list) else str(value)
            for key, value in options.items()
            if value
        },
        shown=part,
        turns=[_turn(shelf, run, turn) for turn in part],
        left=len(left),
        command="batch" if mode == "batch" else "replay",
        is_comparable=mode in ("simulate", "rerun") and bool(run.ended),
        earlier=earlier_run(shelf, run.id),
    )


def _turn(shelf: Shelf, run: RunReader, turn: Ended | PlannedTurn) -> SimpleNamespace:
    """A turn or item with its line, None if it has not been run; differences as far as they are shown."""
    user, name = turn.key
    line = run.line(turn) if isinstance(turn, Ended) else None
    outcome = line.outcome if line else None
    different = sorted(line.different)[:_MOST_DOCUMENTS] if line else []
    misses = line.misses[:_MOST_MISSES] if line else ()
    saved = f"{turns_address(None, user)}/{turn.turn}" if _is_saved(shelf.store, run, turn) else None
    return SimpleNamespace(
        name=str(name),
        user=user,
        turn=turn.turn,
        line=line,
        page=_own_page(run, user, turn.turn) or saved,
        saved=saved,
        query=(shorten(outcome.query, _QUERY_CHARS) if outcome else "") or run.query(str(name)),
        answer=(outcome.answer or "") if outcome else "",
        documents=[(document, *_changes(line.different[document])) for document in different if line],
        misses=[(f"{miss.recipe}, {miss.kind}, {miss.cause}", *_changes(miss.difference)) for miss in misses],
        is_bad=not isinstance(turn, Ended) or turn.verdict is not Verdict.SOUND,
    )


def earlier_run(shelf: Shelf, name: str) -> str | None:
    """The newest run of the same kind that began before a run; None without one."""
    kind = _kind(name)
    return next((other for other in run_names(shelf) if other < name and kind and _kind(other) == kind), None)


def _kind(name: str) -> str:
    """The mode that a run's name carries, as its id is `TIME-MODE` or `TIME-MODE-N`."""
    parts = name.split("-")
    return parts[1] if len(parts) > 1 and parts[1] in ("simulate", "rerun", "batch") else ""


def _own_page(run: RunReader, user: str, turn: int) -> str | None:
    """The page of a turn that a run keeps; None if it keeps none of that user and number."""
    if not is_id(user) or not RunFolder(run.directory).kept_turn(user, turn).is_dir():
        return None
    return f"{turns_address(run.id, user)}/{turn}"


def _changes(diff: str) -> tuple[list[DiffLine], int]:
    """The first lines of a unified difference, and how many are left."""
    lines = diff.split("\n")
    shown_lines = [line for line in lines[:_DIFF_LINES] if not line.startswith(("--- ", "+++ "))]
    return [_diff_line(line) for line in shown_lines], max(0, len(lines) - _DIFF_LINES)


def _diff_line(line: str) -> DiffLine:
    text = line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}…"
    if text.startswith("@@"):
        return DiffLine("left", text)
    if text[:1] in ("-", "+"):
        return DiffLine("old" if text[0] == "-" else "new", text[1:])
    return DiffLine("same", text.removeprefix(" "))
