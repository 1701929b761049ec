"""Many queries, each run once: begun, gone on with after anything was killed, and what came of them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panda.actions.replay import Progress
from panda.actions.turn import turn_data
from panda.actions.unfinished import discard_turn
from panda.batches.adoption import Made, adopt, join_turn, read_files
from panda.batches.queries import Answer, Query, read_queries, unmet
from panda.batches.remote import remote_worker
from panda.batches.start import freeze
from panda.batches.working_copy import BatchWorker, Task
from panda.documents.records import encode
from panda.engines.contract import Chain, Engine, run_chains
from panda.engines.processes import Processes
from panda.errors import BugError, UsageError, Verdict
from panda.index.index import Index
from panda.recipes.book import RecipeBook
from panda.recipes.versions import VersionStore
from panda.replays.runs import (
    Fingerprint,
    PlannedTurn,
    Result,
    RunFolder,
    TurnLine,
    fingerprint_now,
    read_outcome,
)
from panda.session.file import free_session_id
from panda.settings import Settings
from panda.store.files import append_json_lines, read_text, remove_tree
from panda.store.layout import UserStore
from panda.store.records import Metrics
from panda.trust import load_models

if TYPE_CHECKING:
    from panda.engines.dask import DaskCluster

_ENGINES = ("local", "dask")
QUERIES_JSONL = "queries.jsonl"
_START = "start"
_INDEXED_AT_ONCE = 50


def begin_batch(
    settings: Settings,
    environ: Mapping[str, str],
    layout: UserStore,
    queries: Sequence[Query],
    *,
    live: bool = False,
) -> RunFolder:
    """The directory of a new batch, none of whose items has been run; each has the number of its turn."""
    ran_on = fingerprint_now(settings, environ)
    users = [query.user or settings.user for query in queries]
    following = {user: layout.of(user).reserve(users.count(user)) for user in dict.fromkeys(users)}
    turns, index = [], Index(layout)
    for user in following:
        index.freshen(user)
    for query, user in zip(queries, users, strict=True):
        turns.append(_planned(layout, index, query, user, following[user]))
        following[user] += 1
    index.close()
    options = {"live": live, "seed": settings.seed}
    run = RunFolder.create(layout, settings.clock, "batch", turns, fingerprint=ran_on, options=options)
    append_json_lines(run.directory / QUERIES_JSONL, [encode(query) for query in queries])
    return run


def _planned(layout: UserStore, index: Index, query: Query, user: str, number: int) -> PlannedTurn:
    """An item with the number of its turn; without a session it has one of its own."""
    session = query.session or free_session_id(layout.of(user), index, number)
    return PlannedTurn(number, user, item=query.id, session=session, digest=query.digest)


def resume_batch(
    settings: Settings, environ: Mapping[str, str], run: RunFolder, queries: Sequence[Query] | None
) -> list[Query]:
    """
    The queries of a batch that is gone on with: those named anew, or else those kept with it. Raises
    UsageError: these, the recipes or the models are not those that it was begun with.
    """
    plan = run.plan()
    if plan.mode != "batch":
        raise UsageError(f"run {run.id} is no batch", where="--resume", fix=f"panda replay --resume {run.id}")
    kept = run.directory / QUERIES_JSONL
    if not kept.exists() and queries is None:
        message = f"run {run.id} was killed before its queries were kept"
        raise UsageError(message, where="QUERIES", fix="name them again, beside --resume")
    found = queries if queries is not None else read_queries(read_text(kept).split("\n"), name=str(kept))
    if not kept.exists():
        append_json_lines(kept, [encode(query) for query in found])
    done = {line.item for line in run.lines()}  # of these words may have been forgotten since
    planned = {one.item: one.digest for one in plan.turns if one.item not in done}
    known = {one.id: planned[one.id] or one.digest for one in found if one.id in planned}  # None: forgotten
    changed = [one.id for one in found if one.id not in done and known.get(one.id) != one.digest]
    changed += sorted(str(one) for one in planned.keys() - {one.id for one in found})
    if changed:
        message = f"run {run.id} was begun with other queries: {', '.join(changed[:5])}"
        fix = "leave QUERIES out to go on with those kept with the run, or begin a new run"
        raise UsageError(message, where="QUERIES", fix=fix)
    run.check_same(fingerprint_now(settings, environ))
    if plan.options.get("seed") != settings.seed:
        raise UsageError(f"run {run.id} was begun with seed {plan.options.get('seed')}", where="--seed")
    return list(found)


class Batch:
    """
    A batch while it runs; the caller holds its run. Only this process writes to the store, unless the batch
    is live. Each item is adopted before its line is added to the run: what was killed between the two is
    found by the number of its turn. To remote workers earlier turns travel; *on_line* gets what came of each
    item as it ends.
    """

    def __init__(
        self,
        settings: Settings,
        layout: UserStore,
        run: RunFolder,
        queries: Sequence[Query],
        *,
        tell: Callable[[str], None],
        is_remote: bool = False,
        on_line: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self._settings, self._layout, self._run = settings, layout, run
        self._tell, self._on_line, self._is_remote = tell, on_line, is_remote
        self._queries = {query.id: query for query in queries}
        self._plan = run.plan()
        numbers = {one.item: one.turn for one in self._plan.turns}
        ended = [replace(line, outcome=None) for line in run.lines()]
        self._former = {line.item: line for line in ended}
        """What came of an item last; of one that is begun anew, under its former number."""
        self._lines = {line.item: line for line in ended if numbers.get(line.item) == line.turn}
        self._places = {one.item: place for place, one in enumerate(self._plan.turns)}
        self._saved: dict[tuple[str, str], dict[int, int]] = {}
        """User and session to the saved turns that the batch made, by their item's place in the plan."""
        self._index = Index(layout)
        self._versions = VersionStore(layout.recipe_versions, settings.clock)
        self._book = RecipeBook(settings.recipe_dirs, settings.prompt_dirs)
        self._failures = 0
        self._unindexed: Counter[str] = Counter()

    @property
    def start(self) -> Path | None:
        """The store as it was when the batch began; None for one that is live."""
        return None if self._plan.options["live"] else self._run.directory / _START

    @property
    def lines(self) -> list[TurnLine]:
        """What came last of the items that have ended, in the order of the queries."""
        known = {**self._former, **self._lines}
        return [known[one.item] for one in self._plan.turns if one.item in known]

    @property
    def left(self) -> list[PlannedTurn]:
        """The items that are to be run, in the order of the queries: again, if they have a line."""
        return [one for one in self._plan.turns if one.item not in self._lines]

    @property
    def ran_on(self) -> Fingerprint:
        """The recipes and models that it was begun with."""
        return self._plan.fingerprint

    @property
    def users(self) -> list[str]:
        """Whose turns the items are."""
        return list(dict.fromkeys(one.user for one in self._plan.turns))

    @property
    def texts(self) -> dict[str, str]:
        """Item to its query."""
        return {item: query.query for item, query in self._queries.items()}

    @property
    def failed(self) -> list[TurnLine]:
        """What came of the items that are not as they were to be."""
        return [line for line in self.lines if line.verdict is not Verdict.SOUND]

    def prepare(self, *, retry_failed: bool = False) -> None:
        """Deal with what a killed process left; with *retry_failed* what failed is to be done again."""
        if retry_failed:
            self._renumber()
        if self.start is not None and not self.start.is_dir() and self.left:
            sessions: dict[str, set[str]] = {}
            for one in self._plan.turns:
                sessions.setdefault(one.user, set()).add(str(one.session))
            freeze(self._layout, self.start, sessions)
        for one in self._plan.turns:
            line = self._lines.get(one.item)
            if line is None:
                self._recover(one)
            else:
                if line.is_saved:
                    self._note_saved(one, str(one.session))
                if self._on_line is not None:
                    store = self._layout.of(one.user)
                    data = turn_data(store.open(one.turn)) if store.has(one.turn) else {}
                    self._on_line(self._told(line, str(one.session), data))

    def execute(
        self, engine: Engine, progress: Progress, *, most: int | None = None, max_failures: int | None = None
    ) -> None:
        """Run at most so many of the items that are left; none is begun after so many failures."""
        left = self.left[:most]
        chains: dict[tuple[str, str], list[PlannedTurn]] = {}
        for one in left:
            chains.setdefault((one.user, str(one.session)), []).append(one)

        def tasks(items: Sequence[PlannedTurn]) -> Iterator[Task]:
            for one in items:
                if max_failures is not None and self._failures >= max_failures:
                    return
                yield self._task(one)

        given = (Chain(tasks(items), len(items)) for items in chains.values())
        with closing(engine), progress("batch", len(left)) as advance:
            for ended in run_chains(engine, given, eager=max_failures is None):
                fault = {"message": ended.fault, "where": None, "fix": None}
                self._take(ended.task, ended.value or Made(BugError.exit_code, 0.0, fault))
                advance()
        self._catch_up()
        self._index.close()
        if self.left:
            self._tell(f"{len(self.left)} items are left: panda batch --resume {self._run.id}")
        else:
            self._run.finish(self._settings.clock)
            if self.start is not None and not self.failed:
                remove_tree(self.start)

    def _task(self, one: PlannedTurn) -> Task:
        saved = self._saved.get((one.user, str(one.session)), {})
        turns = [turn for place, turn in sorted(saved.items()) if place < self._places[one.item]]
        paths = ((turn, self._layout.of(one.user).turn(turn).directory) for turn in turns)
        earlier = tuple((turn, read_files(path) if self._is_remote else path) for turn, path in paths)
        query = self._queries[str(one.item)]
        return Task(self._run.id, query, one.user, str(one.session), one.turn, earlier)

    def _take(self, task: Task, made: Made) -> None:
        """Adopt what an item made, and add its line."""
        for record in made.executions:
            if "key" in record:
                self._versions.keep_in_force(self._book, str(record["key"]), str(record["version"]))
        adopt(self._layout.of(task.user), task.turn, made)
        self._end(task, made)

    def _end(self, task: Task, made: Made) -> None:
        """What an item adds to the store beside its turn, and its line."""
        store = self._layout.of(task.user)
        folder = store.open(task.turn) if store.has(task.turn) else None
        is_saved = folder is not None and folder.read_metadata().saved_at is not None
        if is_saved and self.start is not None:
            join_turn(self._layout.of(task.user), self._index, task.turn)
            self._unindexed[task.user] += 1
        data = turn_data(folder) if folder else {}
        text = data.get("question") or data.get("response")
        cited = [source["node_id"] for source in data.get("sources", ())]
        findings = unmet(
            task.query.expect, Answer(made.exit_code, text, cited, data.get("answered")), made.error
        )
        result: Result = "away" if made.is_away else "failed"
        line = TurnLine(
            task.turn,
            task.user,
            str(self._layout.of(task.user).turn(task.turn).directory),
            result if findings else "passed",
            tuple(findings),
            outcome=read_outcome(folder) if folder else None,
            item=task.query.id,
            exit_code=made.exit_code,
            seconds=made.seconds,
            is_saved=is_saved,
        )
        self._run.add(line)
        self._lines[line.item] = replace(line, outcome=None)
        if is_saved:
            self._note_saved(line, task.session)
        if findings:
            self._failures += 1
            self._tell(f"{line.item}: {'; '.join(findings)}")
        if self._on_line is not None:
            self._on_line(self._told(line, task.session, data))
        self._catch_up(_INDEXED_AT_ONCE)

    def _told(self, line: TurnLine, session: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """What came of an item, for whoever reads along."""
        return {
            "id": line.item,
            "result": line.result,
            "exit_code": line.exit_code,
            "findings": list(line.findings),
            "turn": line.turn if data else None,
            "user": line.user,
            "session": session,
            **{key: data.get(key) for key in ("answered", "response", "question")},
            "sources": [source["node_id"] for source in data.get("sources", ())],
            "seconds": line.seconds,
            "run": self._run.id,
        }

    def _note_saved(self, one: PlannedTurn | TurnLine, session: str) -> None:
        self._saved.setdefault((one.user, session), {})[self._places[one.item]] = one.turn

    def _catch_up(self, least: int = 1) -> None:
        """Let the index take in what was adopted, if it is so much; until then the next reader would."""
        for user, count in list(self._unindexed.items()):
            if count >= least:
                self._index.freshen(user)
                del self._unindexed[user]

    def _recover(self, one: PlannedTurn) -> None:
        """Deal with the turn of an item that has no line: a saved one has ended, another is begun anew."""
        store = self._layout.of(one.user)
        if not store.has(one.turn):
            return
        folder = store.open(one.turn)
        metadata = folder.read_metadata()
        if metadata.saved_at is not None:
            seconds = folder.load(Metrics).totals.seconds or 0.0
            self._end(self._task(one), Made(metadata.exit_code, seconds))
        elif self.start is not None:
            self._discard(one)

    def _discard(self, one: PlannedTurn) -> None:
        discard_turn(self._layout.of(one.user), one.turn)

    def _renumber(self) -> None:
        """Give the items that failed new numbers; the turns that they left unfinished go."""
        failed = {item for item, line in self._lines.items() if line.verdict is not Verdict.SOUND}
        turns = []
        for one in self._plan.turns:
            if one.item in failed:
                store = self._layout.of(one.user)
                if store.has(one.turn) and store.open(one.turn).read_metadata().saved_at is None:
                    self._discard(one)
                query, number = self._queries[str(one.item)], store.reserve(1)
                turns.append(_planned(self._layout, self._index, query, one.user, number))
                del self._lines[one.item]
            else:
                turns.append(one)
        self._plan = replace(self._plan, turns=tuple(turns), finished_at=None, results=None)
        self._run.write_plan(self._plan)


@dataclass(frozen=True)
class Workers:
    """Where items run."""

    engine: str  # local or dask
    address: str | None  # of the scheduler, for dask
    jobs: int | None  # worker processes, for local; None for as many as the models serve

    def __post_init__(self) -> None:
        if self.engine not in _ENGINES:
            fix = f"use {' or '.join(_ENGINES)}"
            raise UsageError(f"there is no engine {self.engine!r}", where="--engine", fix=fix)
        if self.engine == "dask" and self.address is None:
            fix = "give --address tcp://HOST:8786; docs/scale.md says how scheduler and workers are started"
            raise UsageError("the engine dask needs a scheduler", where="--address", fix=fix)

    @property
    def are_remote(self) -> bool:
        """Whether they may not see the store."""
        return self.engine == "dask"

    def connect(self) -> "DaskCluster | None":
        """The cluster, before anything is made for it; None for processes of this machine."""
        from panda.engines.dask import DaskCluster

        return DaskCluster(self.address) if self.address is not None and self.are_remote else None

    def start(
        self, settings: Settings, environ: Mapping[str, str], found: Batch, cluster: "DaskCluster | None"
    ) -> Engine:
        """The engine, ready for the items of a batch."""
        if cluster is not None:
            if found.start is None:
                raise UsageError(
                    "a live batch runs on this machine alone", where="--engine", fix="leave it out"
                )
            return cluster.begin(remote_worker(settings, found.start, found.ran_on))
        jobs = self.jobs or load_models(settings).width or 1
        return Processes(BatchWorker(settings, environ, found.start), jobs)
