"""Workers on a cluster of Dask, which others start: a scheduler at an address, workers anywhere."""

import logging
import os
import threading
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import msgspec

from panda.errors import BugError, CheckError, Problem, TryAgainError, UsageError
from panda.index.full_text import copy_database
from panda.runs.item import BatchWorker, OpenModels
from panda.runs.ledger import Fingerprint, fingerprint_now
from panda.runs.past import Start
from panda.runs.pool import DIED, Made, Opener, Work, attempt
from panda.settings import Settings, default_cache_dir, process_environment
from panda.store.files import forget_store, make_directory, read_bytes, work_directory
from panda.store.layout import CALLS_JSONL, SNAPSHOT_JSON, Layout, asset, below
from panda.trust import open_layers

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
        self._address = address
        self._under_way = 0
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

    def begin(self, settings: Settings, start: Path, ran_on: Fingerprint) -> Self:
        """Have every worker process made ready, once, by what travels there by the scheduler."""
        opener = remote_worker(settings, start, ran_on)
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

    def take_result(self, task: Future[Any]) -> Made:
        """Return what the task came to; a worker that died has cost it up to three tries."""
        from distributed import CancelledError, KilledWorker

        future = task.result()
        self._under_way -= 1
        if future.status == "error":
            exc = future.exception(timeout=_CONNECT_SECONDS)
            if isinstance(exc, KilledWorker):
                return None, DIED
            raise exc if isinstance(exc, Problem) else BugError(f"{type(exc).__name__}: {exc}")
        try:
            outcome: Made = future.result(timeout=_CONNECT_SECONDS)
        except (OSError, TimeoutError, CancelledError) as exc:
            message = f"the scheduler has gone ({future.status}): {exc}"
            fix = "start it, or mend --address; what is done is kept: panda batch --resume last"
            raise TryAgainError(message, where=self._address, fix=fix) from exc
        return outcome

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


_LEFT_HERE = frozenset({CALLS_JSONL, SNAPSHOT_JSON})
"""Files of saved turns that no later turn reads."""
_Packed = dict[str, tuple[bytes, int]]  # path → content, time of the last change in ns


@dataclass(frozen=True)
class RemoteWorker:
    """Makes a worker ready on a machine that has panda and the models, but not the store; see Opener."""

    settings: Settings  # as they are on this machine
    past: bytes  # what of the store the items may read, and what the batch began with
    project: bytes  # the project's own recipes, prompts and models.yaml
    ran_on: Fingerprint  # recipes and models of the batch
    open_models: OpenModels = open_layers  # as of a BatchWorker

    @contextmanager
    def __call__(self) -> Iterator[Work]:
        """CheckError: recipes or models differ there."""
        with work_directory("remote") as directory:
            unpack(self.past, directory)
            unpack(self.project, directory / "project")
            settings = self._settings(directory / "project").on_store(directory / "store")
            changed = fingerprint_now(settings, process_environment()).changed_since(self.ran_on)
            if changed:
                raise CheckError(
                    f"a worker has other recipes or models than this machine: {', '.join(changed[:5])}",
                    where=f"host {os.uname().nodename}",
                    fix="install the same version of panda and the same models there",
                )
            start = directory / "run" / "start"
            environ = process_environment()
            with BatchWorker(settings, environ, start, self.open_models, is_remote=True)() as work:
                yield work
            forget_store(directory / "store")

    def _settings(self, project: Path) -> Settings:
        models = project / "models.yaml"
        there = (self.settings.models_file, asset("models.yaml"))  # beside them their GGUFs may lie
        return replace(
            self.settings,
            recipe_dirs=tuple(path for path in (project / "recipes", asset("recipes")) if path.is_dir()),
            prompt_dirs=tuple(path for path in (project / "prompts", asset("prompts")) if path.is_dir()),
            models_file=next((path for path in there if _is_copy(path, models)), models),
            cache_dir=default_cache_dir(process_environment()),
            project_dir=project,
            trust=True,  # what reaches out was trusted where the batch began
        )


def remote_worker(settings: Settings, start: Path, ran_on: Fingerprint) -> RemoteWorker:
    """Return a worker that carries what it needs elsewhere."""
    project: dict[str, Path] = {"models.yaml": settings.models_file}
    own = [("recipes", path) for path in settings.recipe_dirs if path != asset("recipes")]
    own += [("prompts", path) for path in settings.prompt_dirs if path != asset("prompts")]
    for kind, directory in own:
        project |= {f"{kind}/{path.relative_to(directory)}": path for path in _files(directory)}
    layout = Layout(settings.root)
    past = dict[str, Path]()
    with work_directory("pack") as directory:
        for source in (layout.turn_index, layout.vectors):
            copy_database(source, directory / source.name)
            past[f"store/indexes/{source.name}"] = directory / source.name
        for user in (path.name for path in start.iterdir()):
            store = layout.of(user)
            snapshot = Start(start).snapshot(user)
            home = f"store/users/{user}"
            past |= {f"run/start/{path.relative_to(start)}": path for path in (start / user).glob("*.*")}
            past |= {f"{home}/{path.name}": path for path in (start / user).glob("*.md")}
            past |= {
                f"{home}/{path.relative_to(start / user)}": path
                for path in _files(start / user / "knowledge")
            }
            past |= {f"{home}/{path.name}": path for path in (store.memory_log, store.conflicts_log)}
            for number in filter(snapshot.holds, store.listed_numbers()):
                turn = store.turn(number).directory
                files = (path for path in _files(turn) if path.name not in _LEFT_HERE)
                past |= {f"{home}/turns/{turn.name}/{path.relative_to(turn)}": path for path in files}
        packed = pack({name: path for name, path in past.items() if path.is_file()})
    return RemoteWorker(settings, packed, pack(project), ran_on)


def pack(files: Mapping[str, Path]) -> bytes:
    """Files by the names that they will have, with their times, by which an index knows them."""
    packed: _Packed = {name: (read_bytes(path), path.stat().st_mtime_ns) for name, path in files.items()}
    return zlib.compress(msgspec.msgpack.encode(packed), 1)


def unpack(packed: bytes, directory: Path) -> None:
    """Write packed files below a directory."""
    for name, (data, time_ns) in msgspec.msgpack.decode(zlib.decompress(packed), type=_Packed).items():
        path = below(directory, name)
        make_directory(path.parent)
        path.write_bytes(data)
        os.utime(path, ns=(time_ns, time_ns))


def _files(directory: Path) -> Iterator[Path]:
    for place, _, names in os.walk(directory, followlinks=True):
        yield from (Path(place) / name for name in names)


def _is_copy(path: Path, other: Path) -> bool:
    return path.is_file() and path.read_bytes() == other.read_bytes()
