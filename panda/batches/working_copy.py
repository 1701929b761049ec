"""Where items run: in a store of a worker's own, as it was when the batch began, or in the store itself."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from panda.app import App
from panda.batches.adoption import Files, Made, join_turn, read_files, write_files
from panda.batches.queries import Query
from panda.engines.contract import Work
from panda.errors import ModelAwayError, Problem
from panda.models.contract import Layers
from panda.settings import Settings
from panda.store.files import (
    forget_store,
    read_json,
    read_json_lines,
    stop_syncing,
    store_errors,
    work_directory,
)
from panda.store.layout import Layout
from panda.store.turns import Reserved
from panda.trust import guard_links, open_layers

OpenModels = Callable[[Settings, Mapping[str, str]], AbstractContextManager[Layers]]
"""Gives the models by layer, none loaded yet, with the environment for API keys."""


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
class BatchWorker:
    """Makes a worker ready to do tasks; see Opener."""

    settings: Settings  # in force
    environ: Mapping[str, str]  # for the API keys that models.yaml names
    start: Path | None  # the store as it was; None runs in the store itself
    open_models: OpenModels = open_layers

    @contextmanager
    def __call__(self) -> Iterator[Work]:
        """Runs items with models that are loaded once; for a process of its own."""
        guard_links(self.settings)
        with self.open_models(self.settings, self.environ) as layers:
            if self.start is None:
                yield partial(_run_in_place, _Apps(self.settings, layers))
                return
            stop_syncing()
            with work_directory("batch") as directory:
                copy = WorkingCopy(self.settings, layers, self.start, Layout(directory / "panda-system-docs"))
                yield copy.run
                copy.close()


@dataclass(frozen=True)
class _Apps:
    """The program on one store, built once for each user."""

    settings: Settings  # in force, of the store
    layers: Layers  # the models
    built: dict[str, App] = field(default_factory=dict)  # by user

    def of(self, task: Task) -> App:
        """That of the task's user, in its session."""
        if task.user not in self.built:
            own = replace(self.settings, user=task.user)
            self.built[task.user] = App(own, own.store, self.layers)
        app = self.built[task.user]
        app.settings = replace(app.settings, session=task.session)
        return app


def _run_in_place(apps: _Apps, task: Task) -> Made:
    """Run one item in the store itself, or go on with it: it sees what is there by then."""
    app = apps.of(task)
    with app.hold_session(task.session):
        return _run(app, task, dry_run=False)


class WorkingCopy:
    """A store of a worker's own, set back to the start of the batch before every session."""

    def __init__(self, settings: Settings, layers: Layers, start: Path, layout: Layout) -> None:
        self._settings = settings
        self._start, self._layout = Layout(start), settings.on_store(layout.root).store
        with store_errors(start, "copy"):
            shutil.copytree(start, layout.root, symlinks=True)
        guard_links(settings.on_store(start))
        own = settings.on_store(layout.root)
        guard_links(own)
        self._apps = _Apps(own, layers)
        self._held: tuple[str, str, list[int]] | None = None
        """User and session that it was last made ready for, and the turns of the batch that it holds."""

    def run(self, task: Task) -> Made:
        """Run one item; what it made is handed over, and stays for the next one of its session."""
        self._make_ready(task)
        assert self._held is not None
        self._held[2].append(task.turn)
        made = _run(self._apps.of(task), task, dry_run=task.query.mode == "code")
        folder = self._layout.of(task.user).turn(task.turn).directory
        interventions = sorted(self._layout.interventions.glob("*.json"))
        log = self._layout.executions_log
        made = replace(
            made,
            files=read_files(folder) if folder.is_dir() else None,
            interventions=[read_json(path) for path in interventions],
            executions=read_json_lines(log) if log.exists() else [],
        )
        for path in (*interventions, log):
            path.unlink(missing_ok=True)
        return made

    def close(self) -> None:
        """Let go of what it has open."""
        for app in self._apps.built.values():
            app.index.close()
        forget_store(self._layout.root)

    def _make_ready(self, task: Task) -> None:
        wanted = (task.user, task.session, [number for number, _ in task.earlier])
        if self._held == wanted:
            return
        if self._held is not None:
            self._set_back(self._held[0], self._held[2])
        layout, index = self._layout, self._apps.of(task).index
        for number, source in task.earlier:
            directory = layout.of(task.user).turn(number).directory
            if isinstance(source, Path):
                directory.symlink_to(source.absolute(), target_is_directory=True)
            else:
                write_files(directory, source)
            join_turn(layout.of(task.user), index, number)
        self._held = wanted

    def _set_back(self, user: str, numbers: list[int]) -> None:
        for number in numbers:
            directory = self._layout.of(user).turn(number).directory
            if directory.is_symlink():
                directory.unlink()
            elif directory.is_dir():
                shutil.rmtree(directory)
        own, then = self._layout.of(user).home, self._start.of(user).home
        for path in own.iterdir():
            if path.is_file():
                path.unlink()
        shutil.rmtree(own / "sessions", ignore_errors=True)
        for path in then.iterdir():
            if path.is_file():
                shutil.copy2(path, own / path.name)
        if (then / "sessions").is_dir():
            shutil.copytree(then / "sessions", own / "sessions")


def _run(app: App, task: Task, *, dry_run: bool) -> Made:
    started = time.monotonic()
    error: Problem | None = None
    try:
        if app.store.has(task.turn):  # in the store itself: a worker was killed while it ran
            turn = app.resume_turn(task.turn)
        else:
            reserved = Reserved(task.turn, task.run, task.query.id)
            turn = app.start_turn(task.query.query, task.query.mode, dry_run=dry_run, made_for=reserved)
        app.run_turn(turn)
    except Problem as exc:
        error = exc
    code = error.exit_code if error else app.store.open(task.turn).read_metadata().exit_code
    told = error.to_json() if error else None
    return Made(code, round(time.monotonic() - started, 3), told, isinstance(error, ModelAwayError))
