"""
Functions that read untrusted input, run in a child process that ends at a deadline or a memory limit.

A reader that hangs or fills the memory cannot be stopped from within Python: a regular expression and a
library in C look at no flag. So they run in a worker, a Python process of its own, which is killed. The
worker is kept for the next call, since starting Python and loading the readers takes longer than most inputs.

A worker inherits no open file, keeps to no working directory and ends with the process that started it,
however that ends. Where the module `resource` is missing, or does not limit memory (macOS), the deadline
alone holds.
"""

import atexit
import fcntl
import math
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import GeneratorType, TracebackType
from typing import Any, NoReturn, TypeVar

from panda.errors import Problem, TryAgainError

try:
    import resource
except ImportError:  # no such limits on this platform
    resource = None  # type: ignore[assignment]

_Value = TypeVar("_Value")

_START_SECONDS = 60.0
"""Time for a worker to start and to load the module of a function; none of it is the input's fault."""
_CPU_SLACK_SECONDS = 5
_POLL_SECONDS = 0.25
"""Longest wait without a step in Python, so that an interruption of the calling thread takes effect."""
_MAX_IDLE_WORKERS = 2
_HEADER = struct.Struct("!Q")
_OUT_OF_MEMORY_CODE = 97
_MAX_MESSAGE_CHARS = 300
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import panda
sys.path.append(sys.path.pop(0))
from panda.isolation import serve
serve()
"""
"""Takes the panda of the process that starts it, but no other module from there before its usual place."""


@dataclass(frozen=True, kw_only=True)
class WorkerLimits:
    """What reading one input may take."""

    seconds: float  # for one value, from the moment it is asked for
    memory_bytes: int  # of the whole worker process, Python and loaded modules included


@dataclass(frozen=True)
class _Loaded:
    """The worker has loaded the module of the function, and begins."""


@dataclass(frozen=True)
class _Returned:
    value: Any


@dataclass(frozen=True)
class _Yielded:
    value: Any


@dataclass(frozen=True)
class _Exhausted:
    """The iterator has no further value."""


@dataclass(frozen=True)
class _Raised:
    problem: Problem


@dataclass(frozen=True)
class _Crashed:
    """An exception that is no Problem; untrusted input may bring any library to raise one."""

    message: str
    traceback: str


_Reply = _Loaded | _Returned | _Yielded | _Exhausted | _Raised | _Crashed


def run_isolated(
    call: Callable[[], _Value],
    *,
    limits: WorkerLimits,
    where: str,
    error: type[Problem],
    fix: str | None = None,
) -> _Value:
    """
    Return what a call returns that is made in a worker process.

    Args:
        call: A module-level function of panda, or a `functools.partial` of one; it travels as a pickle, as do
            its arguments and what it returns. It finds no file by a relative path.
        limits: The worker that passes one of them is killed.
        where: The file or address that is read, for errors.
        error: Raised for input that passes a limit or ends the worker.
        fix: What the user can do about that.

    Raises:
        Problem: As the call raises it; an *error* for a passed limit, for an exception that is no Problem,
            and for a worker that died.
        TryAgainError: No worker process starts.
    """
    reading = _CallErrors(limits=limits, where=where, error=error, fix=fix)
    with _Borrowed(call, reading) as worker:
        reply = worker.receive(reading)
    assert isinstance(reply, _Returned), reply
    return reply.value  # type: ignore[no-any-return]


def iterate_isolated(
    call: Callable[[], Iterator[_Value]],
    *,
    limits: WorkerLimits,
    where: str,
    error: type[Problem],
    fix: str | None = None,
) -> Iterator[_Value]:
    """
    Yield what a generator function yields that runs in a worker process, one value at a time.

    The deadline counts for each value anew, without the time that the caller takes between them. A caller
    that stops early ends the worker. The rest is as for `run_isolated`.
    """
    reading = _CallErrors(limits=limits, where=where, error=error, fix=fix)
    with _Borrowed(call, reading) as worker:
        while isinstance(reply := worker.receive(reading), _Yielded):
            yield reply.value
            worker.ask_for_more()


def prepare_worker(function: Callable[..., object]) -> None:
    """Start a worker that loads the module of a function, while the caller does something else."""
    worker = _take_idle()
    try:
        if worker is None:
            worker = _Worker()
        worker.prepare(function)
    except OSError:  # whoever needs it tells why
        if worker is not None:
            worker.kill()
        return
    _give_back(worker)


@dataclass(frozen=True, kw_only=True)
class _CallErrors:
    """What errors of one call tell."""

    limits: WorkerLimits
    where: str
    error: type[Problem]
    fix: str | None

    def fail(self, message: str) -> NoReturn:
        raise self.error(message, self.where, fix=self.fix)

    def fail_late(self) -> NoReturn:
        self.fail(f"reading it takes more than {self.limits.seconds:g} seconds, the most that is allowed")

    def fail_large(self) -> NoReturn:
        megabytes = self.limits.memory_bytes / 1e6
        self.fail(f"reading it needs more than {megabytes:g} MB of memory, the most that is allowed")


@dataclass(frozen=True)
class _Order:
    """A call to be made; pickled by itself, so that the time to load its module is no time of the input."""

    pickled_call: bytes
    limits: WorkerLimits | None  # None: only the module is loaded


@dataclass(frozen=True)
class _More:
    """The next value of an iterator is asked for."""


class _WorkerEndedError(Exception):
    """The worker process is gone; says how it ended."""

    def __init__(self, exit_code: int | None) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code

    @property
    def ending(self) -> str:
        if self.exit_code is not None and self.exit_code < 0:
            return signal.Signals(-self.exit_code).name
        return f"exit code {self.exit_code}"


class _Worker:
    """A worker process, as the process sees it that started it."""

    def __init__(self) -> None:
        self.is_busy = False  # with a call of which the last reply has not come
        self._prepared: set[str] = set()
        self._socket, theirs = socket.socketpair()
        lifeline, self._lifeline = os.pipe()  # the worker gets SIGIO once nobody can write to it any more
        package_parent = str(Path(__file__).resolve().parent.parent)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, package_parent, str(theirs.fileno()), str(lifeline)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                pass_fds=(theirs.fileno(), lifeline),
                start_new_session=True,
            )
        except BaseException:
            self._socket.close()
            os.close(self._lifeline)
            raise
        finally:
            theirs.close()
            os.close(lifeline)

    def prepare(self, function: Callable[..., object]) -> None:
        """Have the module of a function loaded, without waiting for it."""
        if function.__module__ not in self._prepared:
            self._prepared.add(function.__module__)
            self._send(_Order(pickle.dumps(function), None))

    def begin(self, call: Callable[[], object], limits: WorkerLimits) -> bool:
        """Have a call made. Returns once its module is loaded; False if that takes too long."""
        self.is_busy = True
        try:
            self._send(_Order(pickle.dumps(call), limits))
        except OSError:
            self._fail_ended()
        return self._receive_within(_START_SECONDS) is not None

    def ask_for_more(self) -> None:
        with suppress(OSError):  # receive tells how it has ended
            self._send(_More())

    def receive(self, reading: _CallErrors) -> _Reply:
        """Return the next reply, waiting for it until the deadline. Raises what the call raised."""
        try:
            reply = self._receive_within(reading.limits.seconds)
        except _WorkerEndedError as exc:
            if exc.exit_code == _OUT_OF_MEMORY_CODE:
                reading.fail_large()
            if exc.exit_code == -signal.SIGXCPU:
                reading.fail_late()
            reading.fail(f"reading it ended the process that reads it ({exc.ending})")
        if reply is None:
            reading.fail_late()
        self.is_busy = isinstance(reply, _Yielded)
        if isinstance(reply, _Raised):
            raise reply.problem
        if isinstance(reply, _Crashed):
            problem = reading.error(f"it cannot be read: {reply.message}", reading.where, fix=reading.fix)
            problem.add_note(reply.traceback)
            raise problem
        return reply

    def kill(self) -> None:
        """End the worker and what it has started, at once."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._wait()
        self._socket.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def memory_bytes(self) -> int:
        """Return the memory that the worker holds now; 0 where the system does not tell."""
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[5])
        except (OSError, IndexError, ValueError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _send(self, message: _Order | _More) -> None:
        data = pickle.dumps(message)
        self._socket.settimeout(_START_SECONDS)
        self._socket.sendall(_HEADER.pack(len(data)) + data)

    def _receive_within(self, seconds: float) -> _Reply | None:
        end = time.monotonic() + seconds
        header = self._receive_bytes(_HEADER.size, end)
        if header is None:
            return None
        data = self._receive_bytes(_HEADER.unpack(header)[0], end)
        if data is None:
            return None
        reply: _Reply = pickle.loads(data)
        return reply

    def _receive_bytes(self, size: int, end: float) -> bytearray | None:
        """Return so many bytes; None if they are not there at the end."""
        data = bytearray(size)
        view = memoryview(data)
        filled = 0
        while filled < size:
            left = end - time.monotonic()
            if left <= 0:
                return None
            self._socket.settimeout(min(left, _POLL_SECONDS))
            try:
                count = self._socket.recv_into(view[filled:])
            except TimeoutError:
                continue
            except OSError:
                count = 0
            if not count:
                self._fail_ended()
            filled += count
        return data

    def _fail_ended(self) -> NoReturn:
        self._wait()
        raise _WorkerEndedError(self._process.returncode)

    def _wait(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)


_idle: list[_Worker] = []
_idle_guard = threading.Lock()


class _Borrowed:
    """A worker that has begun a call; given back afterwards, or killed if it is still busy with the call."""

    def __init__(self, call: Callable[[], object], reading: _CallErrors) -> None:
        self._call = call
        self._reading = reading
        self._worker: _Worker | None = None

    def __enter__(self) -> _Worker:
        where = self._reading.where
        is_fresh = False
        while True:
            worker = _take_idle()
            if worker is None:
                is_fresh = True
                try:
                    worker = _Worker()
                except OSError as exc:
                    message = f"no process can be started to read it: {exc.strerror}"
                    raise TryAgainError(message, where, fix="close other programs") from exc
            try:
                if worker.begin(self._call, self._reading.limits):
                    self._worker = worker
                    return worker
            except _WorkerEndedError as exc:
                if not is_fresh:
                    continue  # it had died while it waited, and is not the input's fault
                message = f"the process that was to read it does not start ({exc.ending})"
                raise TryAgainError(message, where, fix="see whether there is room in memory") from None
            finally:
                if self._worker is None:
                    worker.kill()
            message = f"the process that was to read it did not start within {_START_SECONDS:g} seconds"
            raise TryAgainError(message, where, fix="try again when the machine is less busy")

    def __exit__(self, kind: object, exc: object, traceback_: TracebackType | None) -> None:
        assert self._worker is not None
        if self._worker.is_busy or self._worker.memory_bytes > self._reading.limits.memory_bytes / 2:
            self._worker.kill()
        else:
            _give_back(self._worker)


def _take_idle() -> _Worker | None:
    with _idle_guard:
        while _idle:
            worker = _idle.pop()
            if worker.is_alive:
                return worker
            worker.kill()
    return None


def _give_back(worker: _Worker) -> None:
    with _idle_guard:
        if len(_idle) < _MAX_IDLE_WORKERS:
            _idle.append(worker)
            return
    worker.kill()


@atexit.register
def _end_workers() -> None:
    with _idle_guard:
        while _idle:
            _idle.pop().kill()


def serve() -> None:
    """Make the calls that come from the process that started this one; the program of a worker."""
    connection = socket.socket(fileno=int(sys.argv[2]))
    _end_with(int(sys.argv[3]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # whoever started it hears of them, and ends it
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    stream = connection.makefile("rb")
    try:
        while True:
            order = _read_message(stream)
            assert isinstance(order, _Order), order
            if order.limits is None:
                _load(order)
            else:
                _obey(order, order.limits, connection, stream)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # nobody asks any more
    except MemoryError:
        os._exit(_OUT_OF_MEMORY_CODE)


def _end_with(lifeline: int) -> None:
    """End this process by SIGIO when the other end of a pipe is closed, as it is when a process is killed."""
    if hasattr(os, "O_ASYNC"):
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:
        os._exit(0)


def _read_message(stream: Any) -> object:
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise EOFError
    return pickle.loads(stream.read(_HEADER.unpack(header)[0]))


def _write_message(connection: socket.socket, message: _Reply) -> None:
    data = pickle.dumps(message)
    connection.sendall(_HEADER.pack(len(data)))
    connection.sendall(data)


def _load(order: _Order) -> Any:
    """Return the call of an order, with its module loaded; None if that fails, which the call will tell."""
    try:
        return pickle.loads(order.pickled_call)
    except ImportError:
        return None


def _obey(order: _Order, limits: WorkerLimits, connection: socket.socket, stream: Any) -> None:
    call = _load(order)
    _write_message(connection, _Loaded())
    _set_limits(limits)
    reply = _reply_of(lambda: _Returned(call()))
    if isinstance(reply, _Returned) and isinstance(values := reply.value, GeneratorType):
        end = _Exhausted()
        while isinstance(reply := _reply_of(lambda: _next_of(values, end)), _Yielded):
            _write_message(connection, reply)
            _read_message(stream)
            _set_limits(limits)
    _write_message(connection, reply)


def _next_of(values: Iterator[Any], end: _Exhausted) -> _Reply:
    value = next(values, end)
    return value if value is end else _Yielded(value)


def _reply_of(step: Callable[[], _Reply]) -> _Reply:
    """Return what a step gives or raises; MemoryError goes on, since nothing more can be relied on."""
    try:
        return step()
    except Problem as exc:
        return _Raised(exc)
    except MemoryError:
        raise
    except RecursionError:
        return _Crashed("it is nested too deeply", traceback.format_exc(limit=20))
    except Exception as exc:  # the boundary of a worker
        message = f"{type(exc).__name__}: {exc}"[:_MAX_MESSAGE_CHARS]
        return _Crashed(message, traceback.format_exc(limit=20))


def _set_limits(limits: WorkerLimits) -> None:
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_seconds = math.ceil(used.ru_utime + used.ru_stime + 2 * limits.seconds) + _CPU_SLACK_SECONDS
    for kind, limit in ((resource.RLIMIT_CPU, cpu_seconds), (resource.RLIMIT_DATA, limits.memory_bytes)):
        hard = resource.getrlimit(kind)[1]
        soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (soft, hard))
