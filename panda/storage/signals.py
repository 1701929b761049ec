"""Signals wait until a write is done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_WAITING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_after() -> Iterator[None]:
    """
    Ctrl-C and SIGTERM take effect after the block, not in it; a second one takes effect at once.

    Blocks may be nested. In another thread than the main one nothing changes: Python handles signals in the
    main thread alone. The handlers are exchanged rather than the signals masked, as a mask holds for one
    thread: the system would hand the signal to one of llama.cpp's, and Python would handle it all the same.

    Source:
        issue 3, signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
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
        yield
    finally:
        deliver()
