"""Where the items of a batch run: apart from the store, as the batch began, or in the store itself."""

import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from panda.app import App
from panda.errors import CheckError, ModelAwayError, Problem
from panda.index.index import copy_database
from panda.index.sources import IndexEntry, entries_at
from panda.memory.files import Projection
from panda.memory.memory import with_staged
from panda.memory.past import Bound
from panda.models.contract import Layers
from panda.runs.ledger import Fingerprint, fingerprint_now
from panda.runs.past import Start
from panda.runs.pool import Work
from panda.runs.queries import Query
from panda.settings import Settings, default_cache_dir, process_environment
from panda.store.files import (
    forget_store,
    make_directory,
    read_bytes,
    read_json,
    read_json_lines,
    remove_tree,
    stop_syncing,
    work_directory,
)
from panda.store.layout import CALLS_JSONL, SNAPSHOT_JSON, Apart, Layout, asset, below, turn_name
from panda.store.records import StagedMemory
from panda.store.turns import Reserved
from panda.trust import guard_links, open_layers

Files = Mapping[str, bytes]
"""Files below a directory, by their path."""
OpenModels = Callable[[Settings, Mapping[str, str]], AbstractContextManager[Layers]]
"""Gives the models by layer, none loaded yet, with the environment for API keys."""
WORK = ".work-"
"""How the directories begin, in that of a run, in which workers are at their items."""


@dataclass(frozen=True)
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
    error: Mapping[str, Any] | None = None  # what it ended with, as Problem.to_json gives it
    is_away: bool = False  # whether it failed for want of a model server
    turn: Path | Files | None = None  # the turn's directory; None if none was made, or it is in its place
    interventions: Sequence[Mapping[str, Any]] = ()  # what halted
    executions: Sequence[Mapping[str, Any]] = ()  # lines for the log of executions


def read_files(directory: Path) -> Files:
    """All files below a directory."""
    paths = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def write_files(directory: Path, files: Files) -> None:
    """Write files below a directory, which is made."""
    for name, data in files.items():
        path = below(directory, name)
        make_directory(path.parent)
        path.write_bytes(data)


@dataclass(frozen=True)
class BatchWorker:
    """Makes a worker ready to do tasks; see Opener."""

    settings: Settings  # in force
    environ: Mapping[str, str]  # for the API keys that models.yaml names
    start: Path | None  # what the batch began with, in its run; None runs in the store itself
    open_models: OpenModels = open_layers
    is_remote: bool = False  # whether what an item made is to travel

    @contextmanager
    def __call__(self) -> Iterator[Work]:
        """Runs items with models that are loaded once; for a process of its own."""
        guard_links(self.settings)
        with self.open_models(self.settings, self.environ) as layers:
            if self.start is None:
                yield partial(_run_in_place, _Apps(self.settings, layers, lambda user: None))
                return
            stop_syncing()  # who takes up what an item made waits for the disk once
            items = Items(self.settings, layers, self.start, is_remote=self.is_remote)
            try:
                yield items.run
            finally:
                items.close()


@dataclass(frozen=True)
class _Apps:
    """The program on one store, built once for each user."""

    settings: Settings  # in force, of the store
    layers: Layers  # the models
    apart: Callable[[str], Apart | None]  # where turns of a user lie that are not to be in the store
    built: dict[str, App] = field(default_factory=dict)  # by user

    def of(self, task: Task) -> App:
        """That of the task's user, in its session."""
        if task.user not in self.built:
            own = replace(self.settings, user=task.user)
            self.built[task.user] = App(own, replace(own.store, apart=self.apart(task.user)), self.layers)
        app = self.built[task.user]
        app.settings = replace(app.settings, session=task.session)
        return app


def _run_in_place(apps: _Apps, task: Task) -> Made:
    """Run one item in the store itself, or go on with it: it sees what is there by then."""
    app = apps.of(task)
    with app.hold_session(task.session):
        return _run(app, task, None)


class Items:
    """
    Runs items apart from the store: each sees what was there when the batch began, and of what the batch made
    the earlier turns of its own session.
    """

    def __init__(self, settings: Settings, layers: Layers, start: Path, *, is_remote: bool = False) -> None:
        self._start, self._is_remote = Start(start), is_remote
        self._work = start.with_name(f"{WORK}{os.getpid()}")
        self._turns: dict[int, Path] = {}  # where the turns lie that the running item may read and makes
        self._apps = _Apps(settings, layers, self._apart)
        self._memories: dict[str, Projection] = {}  # by user, as the batch began
        self._session: tuple[str, str] = ("", "")  # whose items were run last, and in which session
        self._known: dict[int, tuple[Projection, list[IndexEntry]]] = {}
        """Of its turns the memory after each, and their entries of the index."""

    def _apart(self, user: str) -> Apart:
        knowledge = self._start.knowledge(user)
        return Apart(self._work, self._turns, None if self._is_remote else knowledge)

    def run(self, task: Task) -> Made:
        """Run one item; the turn that it made lies in the directory of the worker until it is taken up."""
        app = self._apps.of(task)
        bound = self._bound(app, task)
        made = _run(app, task, bound)
        store, place = app.store, self._turns[task.turn]
        interventions, log = sorted(store.interventions.glob("*.json")), store.executions_log
        turn: Path | Files | None = place if place.is_dir() else None
        if self._is_remote and turn is not None:
            turn = read_files(place)
        made = replace(
            made,
            turn=turn,
            interventions=[read_json(path) for path in interventions],
            executions=read_json_lines(log) if log.exists() else [],
        )
        for path in (*interventions, log):
            path.unlink(missing_ok=True)
        return made

    def _bound(self, app: App, task: Task) -> Bound:
        if self._session != (task.user, task.session):
            self._session, self._known = (task.user, task.session), {}
        self._turns.clear()
        for number, turn in task.earlier:
            self._turns[number] = place = turn if isinstance(turn, Path) else self._place(task.user, number)
            if not isinstance(turn, Path):
                write_files(place, turn)
        self._turns[task.turn] = self._place(task.user, task.turn)
        remove_tree(self._turns[task.turn])
        store, snapshot = app.store, self._start.snapshot(task.user)
        if task.user not in self._memories:
            self._memories[task.user] = self._start.memory(store, task.turn, store.clock())
        memory = self._memories[task.user]
        sources = dict(self._start.changed_notes(app.index, task.user))
        for number, _ in task.earlier:
            if number not in self._known:
                metadata = store.open(number).read_metadata()
                staged = store.open(number).find(StagedMemory)
                if staged is not None and (at := metadata.saved_at) is not None:
                    then = replace(store, clock=partial(_given, at))
                    memory = with_staged(memory, then, staged.due(metadata.ending))
                entries = entries_at(self._turns[number], f"turns/{turn_name(number)}")
                self._known[number] = memory, entries
            memory, sources[f"turns/{turn_name(number)}"] = self._known[number]
        earlier = frozenset(number for number, _ in task.earlier)
        return Bound(task.turn, store.clock(), snapshot, True, memory, sources, earlier)

    def _place(self, user: str, number: int) -> Path:
        return self._work / "turns" / user / turn_name(number)

    def close(self) -> None:
        """Let go of what it has open, and of what nobody has taken up."""
        for app in self._apps.built.values():
            app.index.close()
        remove_tree(self._work)


def _run(app: App, task: Task, bound: Bound | None) -> Made:
    started = time.monotonic()
    error: Problem | None = None
    try:
        if bound is None and app.store.has(task.turn):  # a worker was killed while it ran in the store
            turn = app.resume_turn(task.turn)
        else:
            reserved, mode = Reserved(task.turn, task.run, task.query.id), task.query.mode
            dry = bound is not None and mode == "code"
            turn = app.start_turn(task.query.query, mode, dry_run=dry, made_for=reserved, bound=bound)
        app.run_turn(turn)
    except Problem as exc:
        error = exc
    code = error.exit_code if error else app.store.open(task.turn).read_metadata().exit_code
    told = error.to_json() if error else None
    return Made(code, round(time.monotonic() - started, 3), told, isinstance(error, ModelAwayError))


def _given(at: datetime) -> datetime:
    return at


_LEFT_HERE = frozenset({CALLS_JSONL, SNAPSHOT_JSON})
"""Files of saved turns that no later turn reads."""
_Packed = dict[str, tuple[bytes, int]]  # path → content, time of the last change in ns


@dataclass(frozen=True)
class RemoteWorker:
    """Makes a worker ready on a machine that has panda and the models, but not the store; see Opener."""

    settings: Settings  # as they are on this machine
    past: bytes  # what of the store the items may read, and what the batch began with
    project: bytes  # the project's own recipes, prompts and models.yaml
    ran_on: Fingerprint  # recipes and models of the batch
    open_models: OpenModels = open_layers  # as of a BatchWorker

    @contextmanager
    def __call__(self) -> Iterator[Work]:
        """Runs items as a worker of this machine does; CheckError if recipes or models differ there."""
        with work_directory("remote") as directory:
            unpack(self.past, directory)
            unpack(self.project, directory / "project")
            settings = self._settings(directory / "project").on_store(directory / "store")
            changed = fingerprint_now(settings, process_environment()).changed_since(self.ran_on)
            if changed:
                raise CheckError(
                    f"a worker has other recipes or models than this machine: {', '.join(changed[:5])}",
                    where=f"host {os.uname().nodename}",
                    fix="install the same version of panda and the same models there",
                )
            start, environ = directory / "run" / "start", process_environment()
            with BatchWorker(settings, environ, start, self.open_models, is_remote=True)() as work:
                yield work
            forget_store(directory / "store")

    def _settings(self, project: Path) -> Settings:
        models = project / "models.yaml"
        there = (self.settings.models_file, asset("models.yaml"))  # beside them their GGUFs may lie
        return replace(
            self.settings,
            recipe_dirs=tuple(path for path in (project / "recipes", asset("recipes")) if path.is_dir()),
            prompt_dirs=tuple(path for path in (project / "prompts", asset("prompts")) if path.is_dir()),
            models_file=next((path for path in there if _same(path, models)), models),
            cache_dir=default_cache_dir(process_environment()),
            project_dir=project,
            trust=True,  # what reaches out was trusted where the batch began
        )


def remote_worker(settings: Settings, start: Path, ran_on: Fingerprint) -> RemoteWorker:
    """What a worker elsewhere needs."""
    project: dict[str, Path] = {"models.yaml": settings.models_file}
    own = [("recipes", path) for path in settings.recipe_dirs if path != asset("recipes")]
    own += [("prompts", path) for path in settings.prompt_dirs if path != asset("prompts")]
    for kind, directory in own:
        project |= {f"{kind}/{path.relative_to(directory)}": path for path in _files(directory)}
    layout, past = Layout(settings.root), dict[str, Path]()
    with work_directory("pack") as directory:
        for source in (layout.turn_index, layout.vectors):
            copy_database(source, directory / source.name)
            past[f"store/indexes/{source.name}"] = directory / source.name
        for user in (path.name for path in start.iterdir()):
            store, snapshot = layout.of(user), Start(start).snapshot(user)
            home = f"store/users/{user}"
            past |= {f"run/start/{path.relative_to(start)}": path for path in (start / user).glob("*.*")}
            past |= {f"{home}/{path.name}": path for path in (start / user).glob("*.md")}
            past |= {
                f"{home}/{path.relative_to(start / user)}": path
                for path in _files(start / user / "knowledge")
            }
            past |= {f"{home}/{path.name}": path for path in (store.memory_log, store.conflicts_log)}
            for number in filter(snapshot.holds, store.listed_numbers()):
                turn = store.turn(number).directory
                kept = (path for path in _files(turn) if path.name not in _LEFT_HERE)
                past |= {f"{home}/turns/{turn.name}/{path.relative_to(turn)}": path for path in kept}
        packed = pack({name: path for name, path in past.items() if path.is_file()})
    return RemoteWorker(settings, packed, pack(project), ran_on)


def pack(files: Mapping[str, Path]) -> bytes:
    """Files by the names that they will have, with their times, by which an index knows them."""
    packed: _Packed = {name: (read_bytes(path), path.stat().st_mtime_ns) for name, path in files.items()}
    return zlib.compress(msgspec.msgpack.encode(packed), 1)


def unpack(packed: bytes, directory: Path) -> None:
    """Write packed files below a directory."""
    for name, (data, time_ns) in msgspec.msgpack.decode(zlib.decompress(packed), type=_Packed).items():
        path = below(directory, name)
        make_directory(path.parent)
        path.write_bytes(data)
        os.utime(path, ns=(time_ns, time_ns))


def _files(directory: Path) -> Iterator[Path]:
    for place, _, names in os.walk(directory, followlinks=True):
        yield from (Path(place) / name for name in names)


def _same(path: Path, other: Path) -> bool:
    return path.is_file() and path.read_bytes() == other.read_bytes()
