"""Workers on a cluster of Dask, which others start: a scheduler at an address, workers anywhere."""

import logging
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Self
from uuid import uuid4

from panda.errors import BugError, Problem, TryAgainError, UsageError
from panda.runs.pool import DIED, Made, Opener, Work, attempt

_CONNECT_SECONDS = 10.0
_CLOSE_SECONDS = 5.0


class DaskCluster:
    """
    Runs each task on some worker of a cluster; a worker that joins later gets its share.

    Args:
        address: Of the scheduler, as `tcp://127.0.0.1:8786`, or `tls://…` with certificates in Dask's own
            configuration.

    Raises:
        UsageError: `distributed` is not installed, or the address is none.
        TryAgainError: No scheduler answers there, or it has no worker.
    """

    tries = 3  # beside those of Dask itself: three each time

    def __init__(self, address: str) -> None:
        try:
            import distributed
            from distributed.comm.addressing import get_address_host_port
        except ImportError as exc:
            fix = "pip install 'panda-turns[dask]'"
            raise UsageError("Dask is not installed", where="--engine dask", fix=fix) from exc
        for name in ("distributed", *logging.root.manager.loggerDict):
            if name.startswith("distributed"):  # what goes wrong is told by this class
                logging.getLogger(name).setLevel(logging.CRITICAL)
        self._address, self._under_way = address, 0
        try:
            client: Any = distributed.Client
            get_address_host_port(address)  # a client of no address takes its time to go
            self._client = client(address, timeout=_CONNECT_SECONDS, set_as_default=False, name="panda")
        except ValueError as exc:
            fix = "give one as tcp://127.0.0.1:8786"
            raise UsageError(f"{address!r} is no address: {exc}", where="--address", fix=fix) from exc
        except (OSError, TimeoutError) as exc:
            fix = "start it, or mend --address"
            raise TryAgainError(f"no scheduler answers: {exc}", where=address, fix=fix) from exc
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        except (OSError, TimeoutError) as exc:
            self.close()
            fix = f"start one: dask worker {address} --nthreads 1"
            raise TryAgainError("the scheduler has no worker", where=address, fix=fix) from exc

    def begin(self, opener: Opener) -> Self:
        """Have every worker process made ready, once, by what travels there by the scheduler."""
        self._name = f"panda-{uuid4().hex}"
        self._opener = self._client.submit(_same, opener, key=f"{self._name}-opener", pure=False)
        return self

    @property
    def width(self) -> int:
        """Twice as many tasks as workers, so that none waits for its next one; at least two."""
        workers: dict[str, Any] = {}
        with suppress(OSError, TimeoutError):
            workers = self._client.scheduler_info(n_workers=-1).get("workers", {})  # none while it is away
        return 2 * max(1, len(workers))

    def submit(self, task: Any) -> Future[Any]:
        """Give a task to the scheduler."""
        ended: Future[Any] = Future()  # Dask's own executor loses one whose scheduler dies as it is fetched
        task = self._client.submit(_work, self._name, self._opener, task, pure=False)
        task.add_done_callback(ended.set_result)
        self._under_way += 1
        return ended

    def made(self, task: Future[Any]) -> Made:
        """What came of it; a worker that died has cost it up to three tries."""
        from distributed import CancelledError, KilledWorker

        future = task.result()
        self._under_way -= 1
        if future.status == "error":
            exc = future.exception(timeout=_CONNECT_SECONDS)
            if isinstance(exc, KilledWorker):
                return None, DIED
            raise exc if isinstance(exc, Problem) else BugError(f"{type(exc).__name__}: {exc}")
        try:
            made: Made = future.result(timeout=_CONNECT_SECONDS)
        except (OSError, TimeoutError, CancelledError) as exc:
            message = f"the scheduler has gone ({future.status}): {exc}"
            fix = "start it, or mend --address; what is done is kept: panda batch --resume last"
            raise TryAgainError(message, where=self._address, fix=fix) from exc
        return made

    def close(self) -> None:
        """Give up what is under way, and what workers keep of it; scheduler and workers stay."""
        with suppress(OSError, TimeoutError, ValueError):
            if not self._under_way:
                self._client.run(_release)
        with suppress(OSError, TimeoutError):
            self._client.close(timeout=_CLOSE_SECONDS)


_ready: dict[str, tuple[Any, Work]] = {}
"""In a process of a worker: what it was made ready for, by name."""
_one_at_a_time = threading.Lock()
"""Models are no matter for several threads, and a worker of Dask may have many."""


def _release() -> None:
    """Let go of what a worker was made ready for."""
    with _one_at_a_time:
        for opened, _ in _ready.values():
            opened.__exit__(None, None, None)
        _ready.clear()


def _same(opener: Opener) -> Opener:
    """A task of its own, so that it is made again where every worker that held it has died."""
    return opener


def _work(name: str, opener: Opener, task: Any) -> Made:
    with _one_at_a_time:
        if name not in _ready:
            opened = opener()
            _ready[name] = opened, opened.__enter__()
        return attempt(_ready[name][1], task)
