"""A worker on another machine: what a batch begins with travels there, what an item makes travels back."""

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from panda.batches.working_copy import BatchWorker, OpenModels
from panda.engines.contract import Work
from panda.errors import CheckError
from panda.replays.runs import Fingerprint, fingerprint_now
from panda.settings import Settings, default_cache_dir, process_environment
from panda.store.files import make_directory, read_bytes, work_directory
from panda.store.layout import CALLS_JSONL, SNAPSHOT_JSON, asset, below
from panda.trust import open_layers

_LEFT_HERE = frozenset({CALLS_JSONL, SNAPSHOT_JSON})
"""Files of saved turns that no later turn reads."""
_Packed = dict[str, tuple[bytes, int]]  # path → content, time of the last change in ns


@dataclass(frozen=True)
class RemoteWorker:
    """Makes a worker ready on a machine that has panda and the models, but not the store; see Opener."""

    settings: Settings  # as they are on this machine
    start: bytes  # the store as it was when the batch began
    project: bytes  # the project's own recipes, prompts and models.yaml
    ran_on: Fingerprint  # recipes and models of the batch
    open_models: OpenModels = open_layers  # as of a BatchWorker

    @contextmanager
    def __call__(self) -> Iterator[Work]:
        """Runs items as a worker of this machine does; CheckError if recipes or models differ there."""
        with work_directory("remote") as directory:
            unpack(self.start, directory / "start")
            unpack(self.project, directory / "project")
            settings = self._settings(directory / "project")
            self._check(settings)
            worker = BatchWorker(settings, process_environment(), directory / "start", self.open_models)
            with worker() as work:
                yield work

    def _settings(self, project: Path) -> Settings:
        environ = process_environment()
        models = project / "models.yaml"
        there = (self.settings.models_file, asset("models.yaml"))  # beside them their GGUFs may lie
        return replace(
            self.settings,
            recipe_dirs=tuple(path for path in (project / "recipes", asset("recipes")) if path.is_dir()),
            prompt_dirs=tuple(path for path in (project / "prompts", asset("prompts")) if path.is_dir()),
            models_file=next((path for path in there if _same(path, models)), models),
            cache_dir=default_cache_dir(environ),
            project_dir=project,
            trust=True,  # what reaches out was trusted where the batch began
        )

    def _check(self, settings: Settings) -> None:
        changed = fingerprint_now(settings, process_environment()).changed_since(self.ran_on)
        if changed:
            named = ", ".join(changed[:5])
            raise CheckError(
                f"a worker has other recipes or models than this machine: {named}",
                where=f"host {os.uname().nodename}",
                fix="install the same version of panda and the same models there",
            )


def remote_worker(settings: Settings, start: Path, ran_on: Fingerprint) -> RemoteWorker:
    """What a worker elsewhere needs."""
    project: dict[str, Path] = {"models.yaml": settings.models_file}
    own = [("recipes", path) for path in settings.recipe_dirs if path != asset("recipes")]
    own += [("prompts", path) for path in settings.prompt_dirs if path != asset("prompts")]
    for kind, directory in own:
        project |= {f"{kind}/{path.relative_to(directory)}": path for path in _files(directory)}
    kept = {str(path.relative_to(start)): path for path in _files(start) if path.name not in _LEFT_HERE}
    return RemoteWorker(settings, pack(kept), pack(project), ran_on)


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


def _same(path: Path, other: Path) -> bool:
    return path.is_file() and path.read_bytes() == other.read_bytes()
