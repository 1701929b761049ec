"""Workers that run tasks side by side: processes of this machine. One that dies costs its task a try."""

import atexit
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, connection, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from panda.errors import Problem, TryAgainError
from panda.models.cores import usable_cores

Work = Callable[[Any], Any]
"""Does one task and gives what came of it."""
Opener = Callable[[], AbstractContextManager[Work]]
"""Makes a worker ready, with its models; called once in each. Travels there as a pickle."""
Made = tuple[Any, str | None]
"""What came of a task, and None; or None, and why nothing did: DIED, or what a bug said."""
DIED = "the process that was to run it has died"
_ENDING_SECONDS = 5.0
_TERMINATED = 143


class Workers(Protocol):
    """Not for several threads."""

    tries: int
    """How often a task is begun whose worker dies."""

    @property
    def width(self) -> int:
        """Return how many tasks keep the workers busy."""

    def submit(self, task: Any) -> Future[Any]:
        """Begin a task; only while fewer than *width* are under way."""

    def take_result(self, task: Future[Any]) -> Made:
        """
        Return what a task that has ended came to.

        Raises:
            Problem: No worker can be made ready, or all are gone.
        """

    def close(self) -> None:
        """Give up what is under way, and the workers."""


@dataclass
class Chain:
    """Tasks that follow one another."""

    tasks: Iterator[Any]
    """Gives the next one when the one before has ended and the caller has dealt with it, so that a task may
    depend on what came of the last."""
    length: int  # how many they are at most


def run_chains(
    workers: Workers, chains: Iterable[Chain], *, eager: bool = True
) -> Iterator[tuple[Any, Any, str | None]]:
    """
    Run tasks in chains: those of one chain in order, several chains side by side.

    Args:
        eager: Whether a worker begins another chain, if its own is through, while the caller still deals with
            what came of the last task.

    Yields:
        Each task as it ends, with what was made of it. One whose worker died is tried again first.
    """
    fresh = iter(chains)
    under_way: dict[Future[Any], tuple[Any, Chain, int]] = {}  # the task, its chain, tries begun

    def begin(chain: Chain) -> None:
        for task in chain.tasks:
            chain.length -= 1
            under_way[workers.submit(task)] = task, chain, 1
            return

    def fill_up() -> None:
        while len(under_way) < workers.width and (chain := next(fresh, None)) is not None:
            begin(chain)

    while True:
        fill_up()
        if not under_way:
            return
        future = wait(under_way, return_when=FIRST_COMPLETED).done.pop()
        task, chain, tries = under_way.pop(future)
        value, fault = workers.take_result(future)
        if fault == DIED and tries < workers.tries:
            under_way[workers.submit(task)] = task, chain, tries + 1
            continue
        if eager and not chain.length:
            fill_up()
        yield task, value, fault
        if chain.length:
            begin(chain)


def attempt(work: Work, task: Any) -> Made:
    """
    Return what work makes of a task; an exception is returned as its message, so that other tasks go on.
    """
    try:
        return work(task), None
    except Problem as exc:
        return None, f"{exc.message} ({exc.where})" if exc.where else exc.message
    except Exception as exc:  # the boundary of a task
        last = traceback.extract_tb(exc.__traceback__)[-1]
        return None, f"panda has a bug: {type(exc).__name__} ({last.filename}:{last.lineno})"  # no values


@dataclass
class _Process:
    executor: ProcessPoolExecutor  # of this one process, so that its death breaks no other's task
    process: BaseProcess
    ready: Future[None]  # has ended well once it can work
    task: Future[Made] | None = None  # what it is at


class Processes:
    """
    Processes of this machine, which are begun as they are needed.

    Args:
        opener: Makes a process ready, once.
        width: Number of processes. If the machine has as many cores, each gets its share of them for itself:
            a model that reads its prompt on all cores would only be in the way of the others.
    """

    tries = 2

    def __init__(self, opener: Opener, width: int) -> None:
        self.width = width
        self._opener = opener
        self._begun: dict[int, _Process] = {}  # by place
        self._stillborn = 0  # how many have died in a row before they were ready
        cores = usable_cores()
        self._shares = [cores[n::width] for n in range(width)] if 1 < width <= len(cores) else [cores] * width

    def submit(self, task: Any) -> Future[Made]:
        """Give a task to a process that has none."""
        place = next(n for n in range(self.width) if n not in self._begun or self._begun[n].task is None)
        worker = self._begun.get(place) or self._begin(place)
        try:
            worker.task = worker.executor.submit(_work, task)
        except BrokenProcessPool:  # it died while it had none
            worker = self._begin(place)
            worker.task = worker.executor.submit(_work, task)
        return worker.task

    def _begin(self, place: int) -> _Process:
        others = set(active_children())
        executor = ProcessPoolExecutor(
            1, get_context("spawn"), initializer=_open, initargs=(self._opener, self._shares[place])
        )
        ready = executor.submit(_tell_ready)
        (process,) = set(active_children()) - others
        self._begun[place] = _Process(executor, process, ready)
        return self._begun[place]

    def take_result(self, task: Future[Made]) -> Made:
        """Return what a task came to, DIED too. Raises what kept its process from being ready."""
        place, worker = next(pair for pair in self._begun.items() if pair[1].task is task)
        worker.task = None
        try:
            outcome = task.result()
        except BrokenProcessPool:
            del self._begun[place]
            self._stillborn = self._stillborn + 1 if worker.ready.exception() else 0
            if self._stillborn > self.width:
                worker.process.join(_ENDING_SECONDS)
                message = f"worker processes die before they are ready (exit code {worker.process.exitcode})"
                fix = "see stderr; is there room in memory and on disk?"
                raise TryAgainError(message, fix=fix) from None
            return None, DIED
        self._stillborn = 0
        return outcome

    def close(self) -> None:
        """End all processes, busy or not."""
        for worker in self._begun.values():
            worker.executor.shutdown(wait=False, cancel_futures=True)
            if worker.task is not None and not worker.task.done():
                worker.process.terminate()
        for worker in self._begun.values():
            worker.process.join(_ENDING_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
        self._begun.clear()


_opened = ExitStack()
"""In a process of a worker: what it was made ready with."""
_ready: Work | Problem
"""What it can do, or why it can do nothing."""


def _open(opener: Opener, cores: list[int]) -> None:
    """Makes a process ready: it ends with the one that began it, and keeps to its cores."""
    global _ready
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the one that began it tells
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # what it has made in TMPDIR goes
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    atexit.register(_opened.close)
    with _ending():
        try:
            _ready = _opened.enter_context(opener())
        except Problem as exc:  # the first task tells it
            _ready = exc


def _tell_ready() -> None:
    pass


def _work(task: Any) -> Made:
    if isinstance(_ready, Problem):
        raise _ready
    with _ending():
        return attempt(_ready, task)


@contextmanager
def _ending() -> Iterator[None]:
    """SIGTERM ends the process, which would otherwise be what came of its task."""
    try:
        yield
    except SystemExit:
        _opened.close()
        os._exit(_TERMINATED)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
