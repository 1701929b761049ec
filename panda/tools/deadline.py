"""A limit on how long a piece of work may take."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from panda.errors import LimitError


class _Expired(BaseException):
    """Not an Exception: what the work itself catches must not swallow it."""


@contextmanager
def deadline(seconds: float, *, what: str) -> Iterator[None]:
    """
    Stop the work inside after so many seconds, also while it waits for a disk, a socket or a lock.

    Signals reach the main thread alone: in any other thread the work is not limited.

    Args:
        seconds: The limit; more than 0.
        what: Whose limit it is, for the error.

    Raises:
        LimitError: The work took longer and was stopped.

    >>> import time
    >>> with deadline(0.01, what="sleep"):
    ...     time.sleep(1)
    Traceback (most recent call last):
    ...
    panda.errors.LimitError: sleep was stopped at its limit of 0.01 s
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    running = True

    def expire(number: int, frame: FrameType | None) -> None:
        if running:
            raise _Expired

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _Expired as exc:
        raise LimitError(f"{what} was stopped at its limit of {seconds:g} s") from exc
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
