"""Where tasks run: an engine works on several at once; a worker that dies costs its task one try."""

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from panda.errors import Problem

Work = Callable[[Any], Any]
"""Does one task and gives what came of it."""
Opener = Callable[[], AbstractContextManager[Work]]
"""Makes a worker ready, with its models; called once in each. Travels there as a pickle."""
DIED = "the process that was to run it has died"


@dataclass(frozen=True)
class Ended:
    """A task that has come to an end."""

    task: Any  # as it was given
    value: Any = None  # what came of it; None with a fault
    fault: str | None = None
    """Why nothing came of it: DIED, or what a bug said."""


class Engine(Protocol):
    """Runs tasks in workers. Not for several threads."""

    tries: int
    """How often a task is begun whose worker dies."""

    @property
    def width(self) -> int:
        """How many tasks keep it busy."""

    def submit(self, task: Any) -> None:
        """Begin a task; only while fewer than *width* are under way."""

    def wait(self) -> Ended:
        """
        The next task that ends; one must be under way.

        Raises:
            Problem: No worker can be made ready, or the engine is gone.
        """

    def close(self) -> None:
        """Give up what is under way, and all workers."""


class Inline:
    """Does each task in this process."""

    width = tries = 1

    def __init__(self, opener: Opener) -> None:
        self._opened = opener()
        self._work: Work | None = None
        self._task: Any = None

    def submit(self, task: Any) -> None:
        """Take a task up; it is done when it is waited for."""
        self._task = task

    def wait(self) -> Ended:
        """The task, done."""
        self._work = self._work or self._opened.__enter__()
        return Ended(self._task, *attempt(self._work, self._task))

    def close(self) -> None:
        """Free what the worker holds."""
        if self._work is not None:
            self._opened.__exit__(None, None, None)
            self._work = None


def attempt(work: Work, task: Any) -> tuple[Any, str | None]:
    """What a task gives and None; or None and what ended it, which is no matter for other tasks."""
    try:
        return work(task), None
    except Problem as exc:
        return None, f"{exc.message} ({exc.where})" if exc.where else exc.message
    except Exception as exc:  # the boundary of a task
        last = traceback.extract_tb(exc.__traceback__)[-1]
        return None, f"panda has a bug: {type(exc).__name__}: {exc} ({last.filename}:{last.lineno})"


@dataclass
class Chain:
    """Tasks that follow one another."""

    tasks: Iterator[Any]
    """Gives the next one when the one before has ended and the caller has dealt with it, so that a task may
    depend on what came of the last."""
    length: int  # how many they are at most


def run_chains(engine: Engine, chains: Iterable[Chain], *, eager: bool = True) -> Iterator[Ended]:
    """
    Run tasks in chains: those of one chain in order, several chains side by side.

    Args:
        eager: Whether a worker begins another chain, if its own is through, while the caller still deals with
            what came of the last task.

    Yields:
        Each task as it ends. One whose worker died is tried again first.
    """
    fresh = iter(chains)
    under_way: dict[int, tuple[Chain, int]] = {}  # id of a task → its chain, tries begun

    def begin(chain: Chain) -> None:
        for task in chain.tasks:
            chain.length -= 1
            under_way[id(task)] = chain, 1
            engine.submit(task)
            return

    def fill_up() -> None:
        while len(under_way) < engine.width:
            chain = next(fresh, None)
            if chain is None:
                return
            begin(chain)

    while True:
        fill_up()
        if not under_way:
            return
        ended = engine.wait()
        chain, tries = under_way.pop(id(ended.task))
        if ended.fault == DIED and tries < engine.tries:
            under_way[id(ended.task)] = chain, tries + 1
            engine.submit(ended.task)
            continue
        if eager and not chain.length:
            fill_up()
        yield ended
        if chain.length:
            begin(chain)
