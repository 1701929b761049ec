"""A cluster of Dask on loopback: a scheduler and workers, each a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

DASK = str(Path(sys.executable).with_name("dask"))
ROOT = Path(__file__).parent.parent.parent
LOOPBACK = ("--dashboard-address", "127.0.0.1:0")
"""Without it, what Dask tells of itself is served to every machine."""
_SECONDS = 60


@dataclass
class Cluster:
    """The processes of a cluster."""

    directory: Path
    """Where workers keep what they need."""
    port: int
    """Of the scheduler."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """By name: scheduler, worker-0 and so on."""

    @property
    def address(self) -> str:
        """Of the scheduler."""
        return f"tcp://127.0.0.1:{self.port}"

    def start_scheduler(self) -> None:
        """Begin a scheduler and wait until it listens."""
        words = ["scheduler", "--host", "127.0.0.1", "--port", str(self.port), *LOOPBACK]
        self._start("scheduler", *words)
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise AssertionError("the scheduler does not listen")

    def start_worker(self, name: str) -> None:
        """Begin a worker with one thread and no nanny, so that killing it kills what works."""
        words = ["--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", *LOOPBACK]
        words += ["--local-directory", str(self.directory), "--death-timeout", "60"]
        self._start(name, "worker", self.address, "--name", f"{name}-{time.monotonic_ns()}", *words)

    def kill(self, name: str) -> None:
        """Kill a process with -9."""
        process = self.processes.pop(name)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def _start(self, name: str, *words: str) -> None:
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        with (self.directory / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [DASK, *words], stdout=log, stderr=log, env=environ, cwd=ROOT
            )


@contextmanager
def running_cluster(directory: Path, *, workers: int = 2) -> Iterator[Cluster]:
    """A scheduler with workers; all are killed at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cluster = Cluster(directory, port)
    try:
        cluster.start_scheduler()
        for number in range(workers):
            cluster.start_worker(f"worker-{number}")
        yield cluster
    finally:
        for name in list(cluster.processes):
            cluster.kill(name)
