"""Writers in processes of their own, killed at one of their writes."""

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

FORKSERVER = get_context("forkserver")
"""Starts processes quickly; pytest has threads, which a fork of it would not take along."""
FORKSERVER.set_forkserver_preload(["tests.api"])
_SECONDS = 120


@dataclass(frozen=True)
class Kill:
    """When a process is killed."""

    write: int
    """At which of its writes, from 1 on: before a rename, or after an append."""
    torn: bool = False
    """Whether half of the line is missing."""


def kills_of(work: Callable[..., None], *arguments: Any) -> Iterator[Kill]:
    """
    Every way to kill some work at one of its writes.

    Args:
        work: A function of a module; it is done once, in a process of its own.
        arguments: Its arguments.
    """
    told, tell = FORKSERVER.Pipe(duplex=False)
    assert _exit_code(tell, None, work, arguments) == 0
    tell.close()
    with suppress(EOFError):
        for write in count(1):
            kind = told.recv()
            yield Kill(write)
            if kind == "append":
                yield Kill(write, torn=True)


def run_killed(kill: Kill, work: Callable[..., None], *arguments: Any) -> None:
    """
    Do some work in a process that is killed.

    Args:
        kill: When.
        work: A function of a module.
        arguments: Its arguments.
    """
    assert _exit_code(None, kill, work, arguments) == -signal.SIGKILL


def _exit_code(tell: Connection | None, kill: Kill | None, work: Any, arguments: Any) -> int | None:
    process = FORKSERVER.Process(target=_work, args=(tell, kill, work, arguments))
    process.start()
    process.join(_SECONDS)
    return process.exitcode


def _work(
    tell: Connection | None, kill: Kill | None, work: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    writes = 0
    rename, sync = os.rename, os.fsync

    def is_last(kind: str) -> bool:
        nonlocal writes
        writes += 1
        if tell is not None:
            tell.send(kind)
        return kill is not None and writes == kill.write

    def renamed(*given: Any, **options: Any) -> None:
        if is_last("rename"):
            os.kill(os.getpid(), signal.SIGKILL)
        rename(*given, **options)

    def synced(file: Any) -> None:
        sync(file)
        number = file if isinstance(file, int) else file.fileno()
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_APPEND and is_last("append"):
            assert kill is not None
            if kill.torn:
                size = os.fstat(number).st_size
                start = os.pread(number, size - 1, 0).rfind(b"\n") + 1
                os.ftruncate(number, (start + size) // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    vars(os).update(rename=renamed, replace=renamed, fsync=synced)
    work(*arguments)
