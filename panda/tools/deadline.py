"""A limit on how long a piece of work may take."""

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import FrameType
from typing import TypeVar

from panda.errors import LimitError
from panda.storage.signals import interrupt_thread

_POLL_SECONDS = 0.05
_END_SECONDS = 3.0

_T = TypeVar("_T")


class _Expired(KeyboardInterrupt):
    """No Exception: the work must not swallow it, and callbacks from C pass it on as they do Ctrl-C."""


def run_within(seconds: float, work: Callable[[], _T], *, what: str) -> _T:
    """
    Do a piece of work, and stop it after so many seconds.

    In the main thread an alarm ends it, also while it waits for a disk, a socket or a lock. Alarms reach no
    other thread: there the work gets a thread of its own, which is interrupted, and left behind if it waits
    for the system. It ends with what it waits for; of writes, only one that is at hand is finished.

    Args:
        seconds: The limit; more than 0.
        work: What to do.
        what: Whose limit it is, for the error.

    Raises:
        LimitError: The work took longer and was stopped.

    >>> import time
    >>> run_within(0.01, lambda: time.sleep(1), what="sleep")
    Traceback (most recent call last):
    ...
    panda.errors.LimitError: sleep was stopped at its limit of 0.01 s
    """
    is_main = threading.current_thread() is threading.main_thread()
    try:
        return _with_alarm(seconds, work) if is_main else _in_thread(seconds, work)
    except _Expired as exc:
        raise LimitError(f"{what} was stopped at its limit of {seconds:g} s") from exc


def _with_alarm(seconds: float, work: Callable[[], _T]) -> _T:
    running = True

    def expire(number: int, frame: FrameType | None) -> None:
        if running:
            raise _Expired

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return work()
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _in_thread(seconds: float, work: Callable[[], _T]) -> _T:
    done: Future[_T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as exc:
            done.set_exception(exc)

    thread = threading.Thread(target=run, name=f"{threading.current_thread().name}, limited", daemon=True)
    thread.start()
    try:
        end = time.monotonic() + seconds
        while not done.done():
            if time.monotonic() >= end:
                raise _Expired
            thread.join(min(seconds, _POLL_SECONDS))  # in steps: this thread may be interrupted too
        return done.result()
    finally:
        if not done.done():
            interrupt_thread(thread, _Expired)
            thread.join(_END_SECONDS)
