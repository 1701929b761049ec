"""Calls in a worker process: what they give and raise, what limits end, and what outlives whom."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import pytest

from panda.errors import ImportFileError, Problem, WebError
from panda.isolation import WorkerLimits, iterate_isolated, run_isolated

LIMITS = WorkerLimits(seconds=20, memory_bytes=400_000_000)
SHORT = WorkerLimits(seconds=0.5, memory_bytes=400_000_000)
HANG = partial(re.match, "(a+)+$", "a" * 60 + "b")
"""Runs for ever in C, without a look at signals."""
DIES = partial(eval, "__import__('os').kill(__import__('os').getpid(), 11)")
WORKER_ID = partial(eval, "__import__('os').getpid()")


def run(call: Callable[[], object], limits: WorkerLimits = LIMITS) -> object:
    return run_isolated(call, limits=limits, where="page.html", error=WebError, fix="open it in a browser")


def refusal(call: Callable[[], object], limits: WorkerLimits = LIMITS) -> Problem:
    with pytest.raises(Problem) as caught:
        run(call, limits)
    return caught.value


def numbers(stop: int) -> partial[Iterator[int]]:
    """A call that gives a generator of numbers."""
    return partial(eval, f"(n for n in range({stop}))")


def iterate(call: Callable[[], Iterator[object]], limits: WorkerLimits = LIMITS) -> Iterator[object]:
    return iterate_isolated(call, limits=limits, where="log.db", error=ImportFileError)


def wait_until_gone(process_id: int) -> bool:
    """Whether a process ends, or is at most a zombie, within some time."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_call_gives_what_it_returns() -> None:
    """However large, from another process, which serves the next call too."""
    assert run(partial(quote, "a b")) == "a%20b"
    text = "x" * 3_000_000
    assert run(partial(str.upper, text)) == text.upper()
    assert run(WORKER_ID) == run(WORKER_ID) != os.getpid()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (HANG, "reading it takes more than 0.5 seconds, the most that is allowed"),
        (partial(time.sleep, 60), "reading it takes more than 0.5 seconds, the most that is allowed"),
    ],
)
def test_what_hangs_ends_at_the_deadline(call: Callable[[], object], told: str) -> None:
    """In C too; the next call has a worker that works."""
    started = time.monotonic()
    problem = refusal(call, SHORT)
    assert time.monotonic() - started < 30
    assert (problem.message, problem.where, problem.fix) == (told, "page.html", "open it in a browser")
    assert isinstance(problem, WebError)
    assert run(partial(quote, "a b")) == "a%20b"


@pytest.mark.parametrize(
    "call", [partial(bytes, 10**10), partial(eval, "'a' * 10**9"), partial(eval, "[0] * 10**9")]
)
def test_what_fills_the_memory_ends_at_the_limit(call: Callable[[], object]) -> None:
    """And the error names the limit."""
    assert refusal(call).message == "reading it needs more than 400 MB of memory, the most that is allowed"
    assert run(partial(quote, "a b")) == "a%20b"


def test_a_worker_that_dies_is_a_refusal() -> None:
    """It names the signal; no exception of a library gets through either."""
    assert "SIGSEGV" in refusal(DIES).message
    assert refusal(partial(json.loads, "nope")).message.startswith("it cannot be read: JSONDecodeError")


def test_a_worker_that_was_killed_while_it_waited_is_replaced() -> None:
    """No input is blamed for it."""
    worker_id = run(WORKER_ID)
    assert isinstance(worker_id, int)
    os.kill(worker_id, signal.SIGKILL)
    assert run(partial(quote, "a b")) == "a%20b"


def test_values_come_one_by_one() -> None:
    """Each has the deadline anew; whoever stops early ends the worker."""
    assert list(iterate(numbers(5))) == [0, 1, 2, 3, 4]
    assert list(islice(iterate(partial(eval, "(n for n in iter(int, 1))")), 3)) == [0, 0, 0]
    slow = partial(eval, "(__import__('time').sleep(.3) for _ in range(4))")
    assert list(iterate(slow, WorkerLimits(seconds=0.9, memory_bytes=400_000_000))) == [None] * 4


def test_an_iterator_that_hangs_ends_at_the_deadline() -> None:
    """After the values that came before."""
    values = iterate(partial(eval, "(__import__('time').sleep(60 * n) for n in range(2))"), SHORT)
    assert next(values) is None
    with pytest.raises(ImportFileError, match=r"more than 0\.5 seconds"):
        next(values)


def test_threads_do_not_wait_for_each_other() -> None:
    """Each call has a worker of its own."""
    with ThreadPoolExecutor(4) as pool:
        hanging = [pool.submit(refusal, HANG, SHORT) for _ in range(2)]
        quick = [pool.submit(run, partial(quote, f"{n} b")) for n in range(6)]
        assert [future.result() for future in quick] == [f"{n}%20b" for n in range(6)]
        assert all("0.5 seconds" in future.result().message for future in hanging)


def test_a_worker_inherits_no_file_and_no_directory(tmp_path: Path) -> None:
    """A lock that is held here is not held there, and a module in the working directory is not loaded."""
    with (tmp_path / "lock").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        with pytest.raises(Problem):
            run(partial(os.fstat, file.fileno()))
    assert run(os.getcwd) == "/"


_PARENT = """
import re, sys
from functools import partial
from panda.errors import WebError
from panda.isolation import WorkerLimits, run_isolated
limits = WorkerLimits(seconds=300, memory_bytes=400_000_000)
told = {"where": "x", "error": WebError}
print(run_isolated(partial(eval, "__import__('os').getpid()"), limits=limits, **told), flush=True)
run_isolated(partial(re.match, "(a+)+$", "a" * 60 + "b"), limits=limits, **told)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_outlives_the_process_that_started_it(number: signal.Signals) -> None:
    """Also one that is busy in C, and however the process ends."""
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        worker_id = int(parent.stdout.readline())
        time.sleep(0.2)  # until it is busy; if it is not yet, the test is only easier
        parent.send_signal(number)
        parent.wait(20)
    assert wait_until_gone(worker_id)
