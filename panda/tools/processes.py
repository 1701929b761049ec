"""Processes that a tool starts: with a limit, and with their whole group stopped at it."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from panda.errors import LimitError, UsageError

MOST_OUTPUT_BYTES = 200_000
"""How much of the end of an output is kept."""

_LEFT_OUT = ("PANDA_", "GIT_")


@dataclass(frozen=True)
class Ran:
    """What a process left."""

    exit_code: int
    """0 is success; negative for the signal that ended it."""
    output: str
    """Both streams, at most the last MOST_OUTPUT_BYTES; bytes that are no UTF-8 are replaced."""
    left_out_bytes: int
    """How much of the beginning is missing."""


def run_process(
    words: Sequence[str], directory: Path, environ: Mapping[str, str], *, limit_seconds: float
) -> Ran:
    """
    Run a command, without a shell and without input, and wait for it.

    Args:
        words: The program and its arguments.
        directory: Where it runs.
        environ: Its environment; variables of panda and git are left out.
        limit_seconds: After so long the command and all that it started are killed.

    Raises:
        UsageError: It cannot be started.
        LimitError: It was stopped at the limit.
    """
    variables = {key: value for key, value in environ.items() if not key.startswith(_LEFT_OUT)}
    with TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                list(words),
                cwd=directory,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as exc:
            raise UsageError(f"{words[0]} cannot be started: {exc}") from exc
        try:
            code = process.wait(limit_seconds)
        except subprocess.TimeoutExpired as exc:
            raise LimitError(f"{' '.join(words)} was stopped at its limit of {limit_seconds:g} s") from exc
        finally:
            _stop(process)
        size = output.tell()
        output.seek(max(0, size - MOST_OUTPUT_BYTES))
        text = output.read().decode("utf-8", errors="replace")
        return Ran(code, text, max(0, size - MOST_OUTPUT_BYTES))


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the process's group, also what it left running behind it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
