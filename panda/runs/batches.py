"""Start, resume and report runs of many queries; each is carried out once, also after a crash."""

import logging
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from msgspec import structs

from panda.actions.turn_run import turn_data
from panda.actions.unfinished_turns import discard_turn
from panda.documents.record_codec import encode
from panda.documents.safe_text import count_noun
from panda.errors import BugError, UsageError, Verdict
from panda.index.executions import Executions
from panda.index.full_text import Index
from panda.memory.user_memory import apply_staged
from panda.recipes.book import RecipeBook
from panda.recipes.versions import VersionStore
from panda.runs.item import WORK, Files, Made, Task, read_files, write_files
from panda.runs.ledger import Options, PlannedTurn, Result, RunFolder, TurnLine, fingerprint_now, read_outcome
from panda.runs.past import Start
from panda.runs.pool import Chain, Workers, run_chains
from panda.runs.queries import Answer, Query, read_queries, unmet
from panda.session.file import commit_turn, fold_turns, free_session_id, load_session
from panda.settings import Settings
from panda.store.execution_log import append_executions
from panda.store.files import (
    append_json_lines,
    held_lock,
    held_temporary,
    make_directory,
    read_json,
    read_text,
    remove_tree,
    store_errors,
    sync_path,
    write_json,
)
from panda.store.interventions import list_interventions
from panda.store.layout import QUERIES_JSONL, Apart, UserStore, turn_name
from panda.store.lines import load_lines
from panda.store.records import Execution, Intervention, Metrics, StagedMemory
from panda.store.turns import TurnFolder

_INDEXED_AT_ONCE = 50
_MOST_TURNS = 200  # that an estimate is made from
_log = logging.getLogger(__name__)


def begin_batch(
    settings: Settings,
    environ: Mapping[str, str],
    queries: Sequence[Query],
    *,
    live: bool = False,
    save: bool = False,
) -> RunFolder:
    """
    The directory of a new batch, none of whose items has been run. Each has the number of its turn: of the
    store if its turns are saved there, else one that is its own in the run alone.
    """
    ran_on = fingerprint_now(settings, environ)
    layout = settings.store
    users = [query.user or settings.user for query in queries]
    turns = []
    following = dict[str, int]()
    index = Index(layout)
    for user in dict.fromkeys(users):
        following[user] = (
            layout.of(user).reserve(users.count(user)) if save else _next_number(layout.of(user))
        )
        index.freshen(user)
    for query, user in zip(queries, users, strict=True):
        turns.append(_planned(layout.of(user), index, query, following[user]))
        following[user] += 1
    index.close()
    options = Options(live, save=save, seed=settings.seed)
    run = RunFolder.create(layout, settings.clock, "batch", turns, fingerprint=ran_on, options=options)
    append_json_lines(run.directory / QUERIES_JSONL, [encode(query) for query in queries])
    return run


def _next_number(store: UserStore) -> int:
    return max(store.counter(), store.highest()) + 1


def _planned(store: UserStore, index: Index, query: Query, number: int) -> PlannedTurn:
    """An item with the number of its turn; without a session it has one of its own."""
    session = query.session or free_session_id(store, index, number)
    return PlannedTurn(number, store.user, item=query.id, session=session, digest=query.digest)


def resume_batch(
    settings: Settings,
    environ: Mapping[str, str],
    run: RunFolder,
    queries: Sequence[Query] | None,
    *,
    retry_failed: bool = False,
) -> list[Query]:
    """
    The queries of a batch that is gone on with: those named anew, or else those kept with it. Raises
    UsageError: these are not those that it was begun with; or something is left to be run, and the recipes
    or the models are not.
    """
    plan = run.plan()
    queries_file = run.directory / QUERIES_JSONL
    if plan.mode != "batch":
        raise UsageError(f"run {run.id} is no batch", where="--resume", fix=f"panda replay --resume {run.id}")
    if queries is None:
        if not queries_file.exists():
            message = f"run {run.id} was killed before its queries were kept"
            raise UsageError(message, where="QUERIES", fix="name them again, beside --resume")
        queries = read_queries(read_text(queries_file).split("\n"), name=str(queries_file))
    elif not queries_file.exists():
        append_json_lines(queries_file, [encode(query) for query in queries])
    done = {line.item for line in run.lines()}  # of these words may have been forgotten since
    planned = {str(turn.item): turn.digest for turn in plan.turns if turn.item not in done}
    digests = {query.id: query.digest for query in queries if query.id not in done}
    changed = [item for item in digests if item not in planned or planned[item] not in (None, digests[item])]
    changed += sorted(planned.keys() - digests.keys())  # a digest that is None was forgotten
    if changed:
        message = f"run {run.id} was begun with other queries: {', '.join(changed[:5])}"
        fix = "leave QUERIES out to go on with those kept with the run, or begin a new run"
        raise UsageError(message, where="QUERIES", fix=fix)
    if planned or retry_failed:
        run.check_same(fingerprint_now(settings, environ))
    if plan.options.seed != settings.seed:
        raise UsageError(f"run {run.id} was begun with seed {plan.options.seed}", where="--seed")
    return list(queries)


class Batch:
    """
    A batch while it runs; the caller holds its run. Each item ends in the run's own directory, then its
    ledger line is written. If the batch is to be saved, this process takes the turns into the store before
    that, in the order of the items: after a crash, a turn without a ledger line is found by its number.
    Remote workers get copies of earlier turns.
    """

    def __init__(
        self, settings: Settings, run: RunFolder, queries: Sequence[Query], *, is_remote: bool = False
    ) -> None:
        self._settings = settings
        self._store = settings.store
        self._run = run
        self._is_remote = is_remote
        self._queries = {query.id: query for query in queries}
        self._plan = run.plan()
        numbers = {turn.item: turn.turn for turn in self._plan.turns}
        ended = [line.without_texts() for line in run.lines()]
        self._former = {line.item: line for line in ended}
        """What came of an item last; of one that is begun anew, under its former number."""
        self._lines = {line.item: line for line in ended if numbers.get(line.item) == line.turn}
        self._places = {turn.item: place for place, turn in enumerate(self._plan.turns)}
        self._saved: dict[tuple[str, str], dict[int, int]] = {}
        """User and session to the saved turns that the batch made, by their item's place in the plan."""
        self._index = Index(self._store)
        self._versions = VersionStore(self._store.recipe_versions, settings.clock)
        self._book = RecipeBook(settings.recipe_dirs, settings.prompt_dirs)
        self._failures = 0
        self._unindexed: Counter[str] = Counter()
        self.ran_on = self._plan.fingerprint  # the recipes and models that it was begun with
        self.users = list(dict.fromkeys(turn.user for turn in self._plan.turns))
        self.texts = {query.id: query.query for query in queries}  # by item
        self.start = None if self._plan.options.live else run.directory / "start"
        """What the batch began with; None for one that is live."""

    @property
    def lines(self) -> list[TurnLine]:
        """Return the last line of each item that has ended, in the order of the queries."""
        lines_by_item = {**self._former, **self._lines}
        return [lines_by_item[turn.item] for turn in self._plan.turns if turn.item in lines_by_item]

    @property
    def left(self) -> list[PlannedTurn]:
        """The items that are to be run, in the order of the queries: again, if they have a line."""
        return [turn for turn in self._plan.turns if turn.item not in self._lines]

    @property
    def failed(self) -> list[TurnLine]:
        return [line for line in self.lines if line.verdict is not Verdict.SOUND]

    @property
    def reported(self) -> frozenset[str]:
        """Ids of the items whose failure an earlier command has reported."""
        return frozenset(self._plan.reported)

    def report(self) -> None:
        """Note that the failures that there are have been reported: no later command ends with them."""
        failed = tuple(str(line.item) for line in self.failed)
        if failed != self._plan.reported:
            self._plan = structs.replace(self._run.plan(), reported=failed)
            self._run.write_plan(self._plan)

    def prepare(self, *, retry_failed: bool = False) -> Iterator[dict[str, Any]]:
        """
        Deal with what a killed process left; with *retry_failed* what failed is to be done again.

        Yields:
            What came of each item that has ended, as *execute* does.
        """
        for place in self._run.directory.glob(f"{WORK}*"):
            remove_tree(place)
        if retry_failed:
            self._renumber()
        if self.start is not None and self.left and not Start(self.start).holds(self.users):
            Start(self.start).keep(self._store, self.users)
        for planned in self._plan.turns:
            line = self._lines.get(planned.item)
            folder = self._folder(planned)
            if line is None:
                if folder is not None and (report := self._recovered(planned, folder)):
                    yield report
                continue
            if line.is_saved:
                self._note_saved(planned)
            yield self._report(line, turn_data(folder, folder.read_metadata()) if folder else {})

    def execute(
        self, workers: Workers, *, most: int | None = None, max_failures: int | None = None
    ) -> Generator[dict[str, Any]]:
        """
        Run at most so many of the items that are left; none is begun after so many failures.

        Yields:
            What came of each item as it ends, for whoever reads along.
        """
        left = self.left[:most]
        chains: dict[tuple[str, str], list[PlannedTurn]] = {}
        for planned in left:
            chains.setdefault((planned.user, str(planned.session)), []).append(planned)

        def tasks(items: Sequence[PlannedTurn]) -> Iterator[Task]:
            for planned in items:
                if max_failures is not None and self._failures >= max_failures:
                    return
                yield self._task(planned)

        queue = (Chain(tasks(items), len(items)) for items in chains.values())
        waiting: dict[str | None, tuple[TurnLine, Sequence[Execution]]] = {}
        order = iter(left)
        following = next(order, None)
        with closing(workers):
            for task, value, fault in run_chains(workers, queue, eager=max_failures is None):
                result = value or Made(BugError.exit_code, 0.0, fault)
                line, report = self._ended(self._plan.turns[self._places[task.query.id]], result)
                waiting[line.item] = line, result.executions
                yield report
                while following is not None and following.item in waiting:
                    self._keep(*waiting.pop(following.item))
                    following = next(order, None)
        for line, executions in sorted(waiting.values(), key=lambda pair: self._places[pair[0].item]):
            self._keep(line, executions)
        if self._plan.saves:  # also what a killed runner saved and left
            for user in self.users:
                self._index.freshen(user)
        if self.left:
            verb = "is" if len(self.left) == 1 else "are"
            items = count_noun(len(self.left), "item")
            _log.info(f"{items} {verb} left: panda batch --resume {self._run.id}")
        else:
            self._finish()
        self._index.close()

    def _finish(self) -> None:
        self._run.finish(self._settings.clock)
        if self._plan.saves:
            for name in ("turns", "logs", "interventions"):
                remove_tree(self._run.directory / name)
        if self.start is not None and self.start.is_dir() and not self.failed:
            Start(self.start).drop_unchanged(self._store)

    def _in_run(self, entry: PlannedTurn | TurnLine) -> UserStore:
        """The store with the turn of an item in the run's own directory."""
        apart = Apart(self._run.directory, {entry.turn: self._run.kept_turn(entry.user, entry.turn)})
        return replace(self._store.of(entry.user), apart=apart)

    def _halts(self, entry: PlannedTurn | TurnLine) -> Iterator[Path]:
        """The interventions in the run of the turn of an item."""
        store = self._in_run(entry)
        for halt in list_interventions(store):
            if isinstance(halt, Intervention) and (halt.user_id, halt.turn) == (entry.user, entry.turn):
                yield store.interventions / f"{halt.id}.json"

    def _folder(self, entry: PlannedTurn | TurnLine) -> TurnFolder | None:
        """The turn of an item: in the run, or in the store once it is saved there; None if there is none."""
        store = self._store.of(entry.user)
        stores = (self._in_run(entry), store) if self._plan.saves else (self._in_run(entry),)
        return next((store.open(entry.turn) for store in stores if store.has(entry.turn)), None)

    def _task(self, planned: PlannedTurn) -> Task:
        saved = self._saved.get((planned.user, str(planned.session)), {})
        turns = [turn for place, turn in sorted(saved.items()) if place < self._places[planned.item]]
        folders = filter(None, (self._folder(structs.replace(planned, turn=turn)) for turn in turns))
        paths = ((folder.number, folder.paths.directory) for folder in folders)
        earlier = tuple((turn, read_files(path) if self._is_remote else path) for turn, path in paths)
        query = self._queries[str(planned.item)]
        return Task(
            run=self._run.id,
            query=query,
            user=planned.user,
            session=str(planned.session),
            turn=planned.turn,
            earlier=earlier,
        )

    def _ended(self, planned: PlannedTurn, result: Made) -> tuple[TurnLine, dict[str, Any]]:
        """Take what an item made into the run, and give its line, which is not kept yet, and what is told."""
        store = self._in_run(planned)
        append_executions(store, result.executions)
        if result.turn is not None:
            _move(result.turn, store.turn(planned.turn).directory)
        for value in result.interventions:
            write_json(store.interventions / f"{value['id']}.json", value)
        folder = self._folder(planned)
        data = turn_data(folder, folder.read_metadata()) if folder else {}
        cited = [source["node_id"] for source in data.get("sources", ())]
        text = data.get("question") or data.get("response")
        answer = Answer(result.exit_code, text, cited, data.get("answered"), outcome=data.get("outcome"))
        findings = tuple(unmet(self._queries[str(planned.item)].expect, answer, result.error))
        failed: Result = "away" if result.is_away else "failed"
        line = TurnLine(
            planned.turn,
            planned.user,
            str((self._store.of(planned.user) if self._plan.saves else store).turn(planned.turn).directory),
            failed if findings else "passed",
            findings,
            outcome=read_outcome(folder) if folder else None,
            item=planned.item,
            exit_code=result.exit_code,
            seconds=result.seconds,
            is_saved=folder is not None and folder.read_metadata().saved_at is not None,
        )
        if line.is_saved:
            self._note_saved(planned)
        if findings:
            self._failures += 1
            _log.info(f"{line.item}: {'; '.join(findings)}")
        return line, self._report(line, data)

    def _report(self, line: TurnLine, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return what an item came to as JSON values, for whoever reads along."""
        return {
            "id": line.item,
            "result": line.result,
            "exit_code": line.exit_code,
            "findings": list(line.findings),
            "turn": line.turn if data else None,
            "user": line.user,
            "session": self._plan.turns[self._places[line.item]].session,
            **{key: data.get(key) for key in ("outcome", "answered", "response", "question")},
            "closest": data.get("closest", []),
            "sources": [source["node_id"] for source in data.get("sources", ())],
            "seconds": line.seconds,
            "run": self._run.id,
        }

    def _keep(self, line: TurnLine, executions: Sequence[Execution]) -> None:
        """Add the line of an item that has ended to the run, once its turn is saved if it is to be."""
        if self._plan.saves and self.start is not None:
            self._save(line, executions)
        self._run.add(line)
        self._lines[line.item] = line.without_texts()
        self._catch_up()

    def _save(self, line: TurnLine, executions: Sequence[Execution]) -> None:
        """
        Take the turn of an item into the store. Killed before the turn's directory is there, that is done
        again; killed after it, what a saved turn adds beside its directory is brought in again: to the memory
        what was told, to its session itself. Doing it again changes nothing.
        """
        store = self._store.of(line.user)
        run_store = self._in_run(line)
        number = line.turn
        if run_store.has(number) and not store.has(number):
            for execution in executions:
                if execution.key and execution.version:
                    self._versions.keep_in_force(self._book, execution.key, execution.version)
            append_executions(store, executions)
            _move(read_files(run_store.turn(number).directory), store.turn(number).directory)
        for halt in self._halts(line):
            write_json(store.interventions / halt.name, read_json(halt))
        if not line.is_saved:
            return
        folder = store.open(number)
        metadata = folder.read_metadata()
        staged = folder.find(StagedMemory)
        if staged is not None and (at := metadata.saved_at) is not None:
            apply_staged(store.at(lambda: at), staged.due(metadata.ending))
        name = metadata.session_id
        holder = f"panda batch, turn {number}"
        with held_lock(store.session_lock(name), holder=holder, wait_seconds=store.wait_seconds):
            session = load_session(store, name)
            if session is None:
                earlier = self._index.read(store.user, lambda view: view.session_turns(name))
                session = fold_turns(store, name, [turn for turn in earlier if turn < number])
            commit_turn(store, session, number)
        self._unindexed[line.user] += 1

    def _note_saved(self, planned: PlannedTurn) -> None:
        self._saved.setdefault((planned.user, str(planned.session)), {})[self._places[planned.item]] = (
            planned.turn
        )

    def _catch_up(self) -> None:
        """Let the index take in what was saved, if it is much; until then the next reader would."""
        for user, count in list(self._unindexed.items()):
            if count >= _INDEXED_AT_ONCE:
                self._index.freshen(user)
                del self._unindexed[user]

    def _recovered(self, planned: PlannedTurn, folder: TurnFolder) -> dict[str, Any] | None:
        """Deal with the turn of an item that has no line: a saved one has ended, another is begun anew."""
        metadata = folder.read_metadata()
        if metadata.saved_at is None:
            if self.start is not None:
                self._discard(planned)
            return None
        metrics = folder.find(Metrics)
        log = self._in_run(planned).executions_log
        turn = planned.user, turn_name(planned.turn)
        executions = [line for line in load_lines(Execution, log) if (line.user_id, line.turn_id) == turn]
        seconds = (metrics.totals.seconds if metrics else None) or 0.0
        line, report = self._ended(planned, Made(metadata.exit_code, seconds))
        self._keep(line, executions)
        return report

    def _discard(self, planned: PlannedTurn) -> None:
        """Take the unfinished turn of an item out of run and store, with its interventions."""
        store = self._store.of(planned.user)
        remove_tree(self._in_run(planned).turn(planned.turn).directory)
        for halt in self._halts(planned):
            halt.unlink(missing_ok=True)
        if self._plan.saves and store.has(planned.turn):
            discard_turn(store, planned.turn)

    def _renumber(self) -> None:
        """Give the items that failed new numbers; the turns that they left unfinished go."""
        failed = {item for item, line in self._lines.items() if line.verdict is not Verdict.SOUND}
        turns: list[PlannedTurn] = []
        for planned in self._plan.turns:
            if planned.item not in failed:
                turns.append(planned)
                continue
            folder = self._folder(planned)
            if folder is not None and folder.read_metadata().saved_at is None:
                self._discard(planned)
            store = self._store.of(planned.user)
            taken = [other.turn for other in (*self._plan.turns, *turns) if other.user == planned.user]
            number = store.reserve(1) if self._plan.saves else max(_next_number(store), max(taken) + 1)
            turns.append(_planned(store, self._index, self._queries[str(planned.item)], number))
            del self._lines[planned.item]
        reported = tuple(item for item in self._plan.reported if item not in failed)
        self._plan = structs.replace(
            self._plan, turns=tuple(turns), finished_at=None, results=None, reported=reported
        )
        self._run.write_plan(self._plan)


def _move(turn: Path | Files, target: Path) -> None:
    """Put a turn's directory, or its files, in their place in one step, so that they last."""
    make_directory(target.parent)
    if isinstance(turn, Path):
        for path in turn.rglob("*"):
            sync_path(path)
        turn.rename(target)
    else:
        with store_errors(target, "create"), held_temporary(target, directory=True) as temporary:
            write_files(temporary, turn)
            for path in temporary.rglob("*"):
                sync_path(path)
            temporary.rename(target)
    sync_path(target.parent)


@dataclass(frozen=True)
class Estimate:
    items: int  # number of queries
    turns: int  # turns of the log that it is estimated from
    tokens: int | None  # prompt and output tokens of all items; None if the log does not tell
    seconds: float | None  # seconds of their model calls, one after the other; None as before


_SPENT = "user_id, turn_id, total_tokens, latency_ms"


def estimate(store: UserStore, items: int) -> Estimate:
    """Return the average cost of the last turns of the log times the number of items."""
    executions = Executions(store)
    spent = dict[tuple[str, str], list[float]]()
    executions.read("")
    for user, turn, tokens, milliseconds in executions.select(_SPENT, {"is_away = ?": 0}):
        if turn:
            turn_spent = spent.setdefault((user, turn), [0.0, 0.0])
            turn_spent[0] += tokens or 0
            turn_spent[1] += (milliseconds or 0) / 1000
    newest = list(spent.values())[-_MOST_TURNS:]
    if not newest:
        return Estimate(items, 0, None, None)
    tokens, seconds = (mean(sums[at] for sums in newest) for at in (0, 1))
    return Estimate(items, len(newest), round(items * tokens), round(items * seconds, 1))
