"""`panda serve` and `panda mcp --http` as processes of their own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.api import ROOT

PANDA = (sys.executable, "-c", "from panda.cli.main import main; main()")
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


@dataclass
class Server:
    """A server that runs."""

    url: str
    """As it says on stdout."""
    process: "subprocess.Popen[str]"
    """Its process."""

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2].partition("/")[0])

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Its exit code after a signal; on a second call the same again."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(20)


@contextmanager
def running(
    *words: str, environ: Mapping[str, str] | None = None, program: Sequence[str] = PANDA
) -> Iterator[Server]:
    """A server on a free port, stopped at the end."""
    with subprocess.Popen(
        [*program, *words, "--port", "0"],
        cwd=ROOT,
        env={**ENVIRON, **(environ or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        server = Server(process.stdout.readline().strip(), process)
        try:
            assert server.url.startswith("http://"), f"exit code {process.wait(20)}"
            yield server
        finally:
            server.stop()


def write_facts(path: Path, document: object) -> None:
    """Replace a file of facts in one step, so that a server sees that it is another."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(document), encoding="utf-8")
    temporary.replace(path)
