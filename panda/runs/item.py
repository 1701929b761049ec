"""One item of a batch, run apart from the store, as the batch began, or in the store itself."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from panda.app import App
from panda.errors import ModelAwayError, Problem
from panda.index.sources import IndexEntry, entries_at
from panda.memory.markdown_files import Bound, Projection
from panda.memory.user_memory import with_staged
from panda.models.model_contract import Layers
from panda.runs.past import Start
from panda.runs.pool import Work
from panda.runs.queries import Query
from panda.settings import Settings
from panda.store.files import make_directory, read_json, remove_tree, stop_syncing
from panda.store.layout import Apart, UserStore, below, turn_name
from panda.store.lines import load_lines
from panda.store.records import Execution, StagedMemory
from panda.store.turns import Reserved, TurnFolder
from panda.trust import guard_links, open_layers

Files = Mapping[str, bytes]
"""Files below a directory, by their path."""
OpenModels = Callable[[Settings, Mapping[str, str]], AbstractContextManager[Layers]]
"""Gives the models by layer, none loaded yet, with the environment for API keys."""
WORK = ".work-"
"""How the directories begin, in that of a run, in which workers are at their items."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One item of a batch, to be run."""

    run: str  # id of the run
    query: Query  # the line
    user: str  # whose turn
    session: str  # the session that it joins
    turn: int  # the number that it has
    earlier: tuple[tuple[int, Path | Files], ...] = ()
    """Saved turns of the same session that this run made: number, and directory or files."""


@dataclass(frozen=True)
class Made:
    """What came of one item. Travels between processes and machines."""

    exit_code: int  # as of `panda turn`
    seconds: float  # wall clock of the turn
    error: str | None = None  # what it ended with
    is_away: bool = False  # whether it failed for want of a model server
    turn: Path | Files | None = None  # the turn's directory; None if none was made, or it is in its place
    interventions: Sequence[Mapping[str, Any]] = ()  # what halted
    executions: Sequence[Execution] = ()  # lines for the log of executions


def read_files(directory: Path) -> Files:
    paths = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def write_files(directory: Path, files: Files) -> None:
    for name, data in files.items():
        path = below(directory, name)
        make_directory(path.parent)
        path.write_bytes(data)


@dataclass(frozen=True)
class BatchWorker:
    """Makes a worker ready to do tasks, with models that are loaded once; see Opener."""

    settings: Settings  # in force
    environ: Mapping[str, str]  # for the API keys that models.yaml names
    start: Path | None  # what the batch began with, in its run; None runs in the store itself
    open_models: OpenModels = open_layers
    is_remote: bool = False  # whether what an item made is to travel

    @contextmanager
    def __call__(self) -> Iterator[Work]:
        guard_links(self.settings)
        if self.start is not None:
            stop_syncing()  # who takes up what an item made waits for the disk once
        with (
            self.open_models(self.settings, self.environ) as layers,
            closing(Items(self.settings, layers, self.start, is_remote=self.is_remote)) as items,
        ):
            yield items.run


class Items:
    """
    Runs items. Apart from the store each sees what was there when the batch began (*start*), and of what the
    batch made the earlier turns of its own session; without *start* it sees what is in the store by then.
    """

    def __init__(
        self, settings: Settings, layers: Layers, start: Path | None, *, is_remote: bool = False
    ) -> None:
        self._settings = settings
        self._layers = layers
        self._is_remote = is_remote
        self._start = None if start is None else Start(start)
        self._work = (start or settings.root).with_name(f"{WORK}{os.getpid()}")
        self._turns: dict[int, Path] = {}  # where the turns lie that the running item may read and makes
        self._apps: dict[str, App] = {}  # by user
        self._memories: dict[str, Projection] = {}  # by user, as the batch began
        self._session = ("", "")  # whose items were run last, and in which session
        self._after_turns: dict[int, tuple[Projection, list[IndexEntry]]] = {}
        """Of its turns the memory after each, and their entries of the index."""

    def run(self, task: Task) -> Made:
        """
        Run one item. Apart from the store its turn lies in the directory of the worker until it is taken up;
        in the store it is gone on with, if another worker was killed while it ran.
        """
        if task.user not in self._apps:
            own = replace(self._settings, user=task.user)
            knowledge = self._start.knowledge(task.user) if self._start and not self._is_remote else None
            apart = Apart(self._work, self._turns, knowledge) if self._start else None
            self._apps[task.user] = App(own, replace(own.store, apart=apart), self._layers)
        app = self._apps[task.user]
        app.settings = replace(app.settings, session=task.session)
        if self._start is None:
            with app.hold_session(task.session):
                return _run(app, task, None)
        result = _run(app, task, self._bound(app, task, self._start))
        place = self._turns[task.turn]
        log = app.store.executions_log
        interventions = sorted(app.store.interventions.glob("*.json"))
        turn: Path | Files | None = None
        if place.is_dir():
            turn = read_files(place) if self._is_remote else place
        result = replace(
            result,
            turn=turn,
            interventions=[read_json(path) for path in interventions],
            executions=load_lines(Execution, log),
        )
        for path in (*interventions, log):
            path.unlink(missing_ok=True)
        return result

    def _bound(self, app: App, task: Task, start: Start) -> Bound:
        if self._session != (task.user, task.session):
            self._session = (task.user, task.session)
            self._after_turns = {}
        self._turns.clear()
        places = self._work / "turns" / task.user
        for number, turn in task.earlier:
            self._turns[number] = place = turn if isinstance(turn, Path) else places / turn_name(number)
            if not isinstance(turn, Path):
                write_files(place, turn)
        self._turns[task.turn] = places / turn_name(task.turn)
        remove_tree(self._turns[task.turn])
        store = app.store
        snapshot = start.snapshot(task.user)
        if task.user not in self._memories:
            self._memories[task.user] = start.memory(store, task.turn, store.clock())
        memory = self._memories[task.user]
        sources = dict(start.changed_notes(app.index, task.user))
        for number, _ in task.earlier:
            if number not in self._after_turns:
                entries = entries_at(self._turns[number], f"turns/{turn_name(number)}")
                self._after_turns[number] = _memory_after(store.open(number), store, memory), entries
            memory, sources[f"turns/{turn_name(number)}"] = self._after_turns[number]
        earlier = frozenset(number for number, _ in task.earlier)
        return Bound(
            task.turn,
            store.clock(),
            snapshot=snapshot,
            is_apart=True,
            memory=memory,
            sources=sources,
            beside=earlier,
        )

    def close(self) -> None:
        """Let go of what it has open, and of what nobody has taken up."""
        for app in self._apps.values():
            app.index.close()
        if self._start is not None:
            remove_tree(self._work)


def _memory_after(turn: TurnFolder, store: UserStore, memory: Projection) -> Projection:
    metadata = turn.read_metadata()
    staged = turn.find(StagedMemory)
    if staged is None or (at := metadata.saved_at) is None:
        return memory
    return with_staged(memory, store.at(lambda: at), staged.due(metadata.ending))


def _run(app: App, task: Task, bound: Bound | None) -> Made:
    started = time.monotonic()
    error: Problem | None = None
    code = 0
    try:
        if bound is None and app.store.has(task.turn):
            turn = app.resume_turn(task.turn)
        else:
            reserved = Reserved(task.turn, task.run, task.query.id)
            mode = task.query.mode
            dry = bound is not None and mode == "code"
            turn = app.start_turn(task.query.query, mode, dry_run=dry, made_for=reserved, bound=bound)
        app.run_turn(turn)
        code = turn.metadata.exit_code
    except Problem as exc:
        error = exc
        code = exc.exit_code
    seconds = round(time.monotonic() - started, 3)
    return Made(code, seconds, error.message if error else None, isinstance(error, ModelAwayError))
