"""An engine of processes on this machine."""

import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from panda.engines.contract import DIED, Ended, Opener, attempt
from panda.engines.cores import usable_cores
from panda.errors import Problem, TryAgainError

_SPAWN = get_context("spawn")
_ENDING_SECONDS = 5.0
_TERMINATED = 143


@dataclass
class _Worker:
    process: BaseProcess  # the process
    pipe: Connection  # where its task goes, and where what came of it comes from
    task: Any = None  # what it is at; None if it is idle
    is_ready: bool = False  # whether it has told that it can work


class Processes:
    """
    Runs each task in one of several processes, which are begun as they are needed.

    Args:
        opener: Makes a process ready, once.
        width: Number of processes. If the machine has as many cores, each gets its share of them for itself:
            a model that reads its prompt on all cores would only be in the way of the others.
    """

    tries = 2

    def __init__(self, opener: Opener, width: int) -> None:
        self.width = width
        self._opener = opener
        self._workers: list[_Worker] = []
        self._stillborn = 0  # how many have died in a row before they were ready
        cores = usable_cores()
        self._shares = [cores[n::width] for n in range(width)] if 1 < width <= len(cores) else [cores] * width

    def submit(self, task: Any) -> None:
        """Give a task to a process that has none."""
        worker = next((one for one in self._workers if one.task is None), None) or self._begin()
        worker.task = task
        with suppress(OSError):  # it has died: that is seen where it is waited for
            worker.pipe.send(task)

    def wait(self) -> Ended:
        """The next task that ends, also by the death of its process; raises what made no process ready."""
        while True:
            busy = {one.pipe: one for one in self._workers if one.task is not None}
            worker = busy[connection.wait(list(busy))[0]]  # type: ignore[index]  # they are connections
            try:
                said = worker.pipe.recv()
            except (EOFError, OSError):
                return self._dead(worker)
            if isinstance(said, Problem):
                raise said
            if said is not None:
                value, fault = said
                task, worker.task = worker.task, None
                return Ended(task, value, fault)
            worker.is_ready, self._stillborn = True, 0

    def _dead(self, worker: _Worker) -> Ended:
        """What a worker leaves that has died; raises where one after the other dies before it is ready."""
        self._drop(worker)
        self._stillborn += not worker.is_ready
        if self._stillborn > self.width:
            code = worker.process.exitcode
            message = f"worker processes die before they are ready (exit code {code})"
            raise TryAgainError(message, fix="see stderr; is there room in memory and on disk?")
        return Ended(worker.task, fault=DIED)

    def close(self) -> None:
        """End all processes, busy or not."""
        for worker in self._workers:
            worker.pipe.close()
            if worker.task is not None:
                worker.process.terminate()
        for worker in list(self._workers):
            self._drop(worker)

    def _begin(self) -> _Worker:
        taken = {one.process.name for one in self._workers}
        number = next(n for n in range(self.width) if f"panda-worker-{n}" not in taken)
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(
            target=_serve,
            args=(theirs, self._opener, self._shares[number]),
            name=f"panda-worker-{number}",
            daemon=True,
        )
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _drop(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.join(_ENDING_SECONDS)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


def _serve(pipe: Connection, opener: Opener, cores: list[int]) -> None:
    """What a process does: tasks, until its pipe is closed or the process that began it has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the one that began it tells
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # what it has made in TMPDIR goes
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with opener() as work, suppress(EOFError):
            pipe.send(None)  # ready
            while True:
                pipe.send(attempt(work, pipe.recv()))
    except Problem as exc:
        pipe.send(exc)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
