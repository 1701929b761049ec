"""Signals, and interruptions of other threads, wait until a write is done."""

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_WAITING = (signal.SIGINT, signal.SIGTERM)
_WRITERS: dict[int, list[type[BaseException]]] = {}  # threads that are writing, and what waits for them
_WRITERS_GUARD = threading.Lock()


@contextmanager
def signals_after() -> Iterator[list[signal.Signals]]:
    """
    Ctrl-C and SIGTERM take effect after the block, not in it; a second one takes effect at once. Gives the
    list of those that have arrived.

    Blocks may be nested. In another thread than the main one it is interrupt_thread that waits: Python
    handles signals in the main thread alone. The handlers are exchanged rather than the signals masked, as a
    mask holds for one thread: the system would hand the signal to one of llama.cpp's, and Python would handle
    it all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        with _interruptions_after():
            yield []
        return
    former = {number: signal.getsignal(number) for number in _WAITING}
    arrived: list[signal.Signals] = []

    def deliver() -> None:
        for number, handler in former.items():
            if handler is not None:  # None: it was not set from Python, and stays as it is
                signal.signal(number, handler)
        while arrived:
            signal.raise_signal(arrived.pop(0))

    def remember(number: int, frame: FrameType | None) -> None:
        arrived.append(signal.Signals(number))
        if len(arrived) > 1:
            deliver()

    try:
        for number, handler in former.items():
            if handler is not None:
                signal.signal(number, remember)
        yield arrived
    finally:
        deliver()


@contextmanager
def _interruptions_after() -> Iterator[None]:
    me = threading.get_ident()
    with _WRITERS_GUARD:
        is_outer = me not in _WRITERS
        came = _WRITERS.setdefault(me, [])
    try:
        yield
    finally:
        if is_outer:
            with _WRITERS_GUARD:
                del _WRITERS[me]
            if came:
                raise came[0]


def interrupt_thread(thread: threading.Thread, exception: type[BaseException]) -> None:
    """
    Raise an exception in another thread, as Ctrl-C does in the main one: before its next step in Python, so a
    call that waits for the system ends first, and a write that is at hand too.

    Args:
        thread: A thread that has begun; one that has ended is left alone.
        exception: What is raised; not an Exception, so that nothing on the way takes it for a failure.
    """
    with _WRITERS_GUARD:
        if thread.ident in _WRITERS:
            _WRITERS[thread.ident].append(exception)
        elif thread.ident is not None and thread.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(exception)
            )
