"""One run, read as far as it can be, each line once: what was planned, what came of it, what is damaged."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from panda.documents.records import decode
from panda.documents.text import shorten, strip_citations
from panda.errors import Problem, Verdict
from panda.runs.ledger import PlannedTurn, RunPlan, TurnKey, TurnLine
from panda.store.files import is_locked, store_errors, why_unread
from panda.store.layout import RUN_JSON, RUN_TURNS_JSONL
from panda.store.lines import Line, LineTail
from panda.store.records import load

_MOST_BAD = 20
_TEXT_CHARS = 300
_MOST_QUERIES_BYTES = 50_000_000
QUERIES_JSONL = "queries.jsonl"


@dataclass(frozen=True)
class Ended:
    """What came of one turn of a run, without the documents that differ."""

    line: int  # line of turns.jsonl
    start: int  # where that begins, in bytes
    end: int  # the byte behind it
    turn: int
    user: str
    item: str | None
    root: str | None  # the store that the turn is in; None: the one that the run is kept in
    result: str
    verdict: Verdict
    findings: tuple[str, ...]  # what is wrong, the first of them
    findings_left: int
    differing: int  # documents that differ
    misses: int  # calls without a recording
    exit_code: int | None
    seconds: float | None
    query: str  # as one line, cut where it is long; "" if it is not known
    status: str  # of the turn; "" if it is not known
    answer: str  # the same way


@dataclass(frozen=True)
class RunState:
    """A run at one moment."""

    id: str
    plan: RunPlan | None  # None if run.json cannot be used
    is_running: bool  # whether a process holds it
    ended: Mapping[TurnKey, Ended]  # what came last of each turn
    former: int  # lines of items that were run again since
    problems: tuple[tuple[str, str], ...]  # name of a damaged file, and what is wrong with it

    @property
    def left(self) -> list[PlannedTurn]:
        """What was planned and has not ended."""
        return [one for one in self.plan.turns if one.key not in self.ended] if self.plan else []

    @property
    def results(self) -> dict[str, int]:
        """How many turns came to each result."""
        return dict(Counter(one.result for one in self.ended.values()))

    @property
    def state(self) -> str:
        """How it stands: finished, running, or stopped before it was done."""
        if self.plan is None:
            return "unreadable"
        if self.plan.finished_at is not None:
            return "finished"
        return "running" if self.is_running else "stopped"


class RunReader:
    """Reads a run again and again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._plan: tuple[tuple[int, int], RunPlan | str] | None = None
        self._tail = LineTail(directory / RUN_TURNS_JSONL, TurnLine)
        self._lines: list[Ended] = []
        self._bad: list[tuple[str, str]] = []
        self._queries: Mapping[str, str] | None = None
        self._lock = Lock()

    def read(self) -> RunState:
        """The run as it is now."""
        with self._lock:
            plan = self._read_plan()
            found = plan if isinstance(plan, RunPlan) else None
            problems = [] if found else [(RUN_JSON, str(plan))]
            problems += self._read_lines()
            planned = {one.key: one for one in found.turns} if found else {}
            ended: dict[TurnKey, Ended] = {}
            former = 0
            for one in self._lines:
                key: TurnKey = (one.user, one.turn if one.item is None else one.item)
                is_former = key in planned and planned[key].turn != one.turn
                former += is_former or key in ended
                if not is_former:
                    ended[key] = replace(one, root=planned[key].root) if key in planned else one
            is_running = is_locked(self.directory / "lock")
            return RunState(self.directory.name, found, is_running, ended, former, tuple(problems))

    def line(self, one: Ended) -> TurnLine | None:
        """The whole line of a turn; None if it is there no more."""
        path = self.directory / RUN_TURNS_JSONL
        try:
            with path.open("rb") as file:
                file.seek(one.start)
                value = json.loads(file.read(one.end - one.start))
            return decode(TurnLine, value, where=str(path))
        except (Problem, OSError, ValueError, RecursionError):
            return None

    def queries(self) -> Mapping[str, str]:
        """Item of a batch to its query, as far as the file that is kept with it reads."""
        if self._queries is None:
            self._queries = dict(_queries(self.directory / QUERIES_JSONL))
        return self._queries

    def _read_plan(self) -> RunPlan | str:
        path = self.directory / RUN_JSON
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if self._plan is None or self._plan[0] != stamp:
                self._plan = stamp, load(RunPlan, path)
            return self._plan[1]
        except (Problem, OSError) as exc:
            return why_unread(exc)

    def _read_lines(self) -> list[tuple[str, str]]:
        path = self.directory / RUN_TURNS_JSONL
        if path.exists() and not path.is_file():
            return [(RUN_TURNS_JSONL, "not a regular file")]
        try:
            begins_anew, parts = self._tail.read(torn=False)
            if begins_anew:
                self._lines, self._bad = [], []
            with closing(parts):
                for part in parts:
                    if isinstance(part, Problem):
                        self._bad.append((RUN_TURNS_JSONL, f"line {part.line}: {part.message}"))
                    else:
                        self._lines.append(_ended(part))
        except (Problem, OSError) as exc:
            return [*self._bad[:_MOST_BAD], (RUN_TURNS_JSONL, str(exc))]
        return self._bad[:_MOST_BAD]


def _root_of(directory: str) -> str | None:
    """The store of a turn's directory, `STORE/users/USER/turns/turn_N`."""
    parents = Path(directory).parents
    return os.fspath(parents[3]) if len(parents) > 3 else None


def _ended(part: Line[TurnLine]) -> Ended:
    line, outcome = part.record, part.record.outcome
    findings = tuple(shorten(one, 2 * _TEXT_CHARS) for one in line.findings[:5])
    return Ended(
        line=part.number,
        start=part.start,
        end=part.end,
        turn=line.turn,
        user=line.user,
        item=line.item,
        root=_root_of(line.directory),
        result=line.result,
        verdict=line.verdict,
        findings=findings,
        findings_left=len(line.findings) - len(findings),
        differing=len(line.different),
        misses=len(line.misses),
        exit_code=line.exit_code,
        seconds=line.seconds,
        query=shorten(outcome.query, _TEXT_CHARS) if outcome else "",
        status=outcome.status if outcome else "",
        answer=shorten(strip_citations(outcome.answer or ""), _TEXT_CHARS) if outcome else "",
    )


def _queries(path: Path) -> Iterator[tuple[str, str]]:
    with suppress(OSError, Problem), store_errors(path, "read"):
        if not path.is_file() or path.stat().st_size > _MOST_QUERIES_BYTES:
            return
        for line in path.read_bytes().splitlines():
            with suppress(ValueError, RecursionError, KeyError, TypeError):
                value = json.loads(line)
                yield str(value["id"]), shorten(str(value["query"]), _TEXT_CHARS)
