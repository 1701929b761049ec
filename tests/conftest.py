"""Settings of all tests."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from tests.api import ROOT, Panda, ScriptedPanda, make_demo
from tests.installing import build, make_environment, unpack
from tests.record_replays import EXPECTED, RECORDED_AT, REPLAYS
from tests.sealing import sealed_network as sealed_network
from tests.store_files import import_line

settings.register_profile("panda", deadline=None)  # a busy machine is no failure
settings.load_profile("panda")

signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell that starts the tests in the background ignores Ctrl-C, and what the tests start inherits that."""

_CACHE = pytest.StashKey[str]()
_MEMORY = Path("/dev/shm")
_MEMORY_BYTES = 6 * 2**30
"""Space that must be free there: twice as much as a whole run takes."""


def _is_roomy(directory: Path) -> bool:
    """Say whether a directory has room for all that tests write, and lets them run programs from it."""
    if not directory.is_dir() or not os.access(directory, os.W_OK):
        return False
    is_executable = not os.statvfs(directory).f_flag & os.ST_NOEXEC
    return is_executable and shutil.disk_usage(directory).free > _MEMORY_BYTES


if _is_roomy(_MEMORY):  # a tenth of the time of a turn is waiting for the disk
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def pytest_configure(config: pytest.Config) -> None:
    """One cache for everything that is started, so that each prompt is read by the model once."""
    if not hasattr(config, "workerinput"):  # the workers of pytest-xdist inherit it
        config.stash[_CACHE] = os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(
            prefix="panda-tests-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")
        )


def pytest_collection_finish() -> None:
    """Keep the collector of garbage away from what has been imported, and let it run less often."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The cache goes away."""
    if _CACHE in config.stash:
        shutil.rmtree(config.stash[_CACHE], ignore_errors=True)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before a model server is asked again, which are not waited for."""
    waited: list[float] = []
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=waited.append))
    return waited


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the source, built from the checkout."""
    return build(ROOT, tmp_path_factory.mktemp("sdist"), kind="sdist")


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the archive of the source alone."""
    source = unpack(sdist, tmp_path_factory.mktemp("source"))
    return build(source, tmp_path_factory.mktemp("wheel"), kind="wheel")


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which the wheel is installed; not to be changed."""
    return make_environment(tmp_path_factory.mktemp("environment") / "venv", [wheel])


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store as `panda init --demo` makes it, for tests to copy."""
    return make_demo(tmp_path_factory.mktemp("demo") / "store")


@pytest.fixture(scope="session")
def indexed(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo store with its index and all vectors, for tests to copy: no process has to encode them."""
    panda = Panda(tmp_path_factory.mktemp("indexed") / "project", demo, user="demo", PANDA_TRUST="")
    assert panda("index", "rebuild").code == 0
    return panda.store


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which user demo has the imported turns 1 to 3, for tests to copy."""
    panda = Panda(tmp_path_factory.mktemp("imported") / "project", user="demo")
    lines = [
        import_line(turn=n, at=f"2026-01-03T1{n}:00:00Z", query=f"Question {n}?", response=f"Answer {n}.")
        for n in (1, 2, 3)
    ]
    panda.write_lines("turns.jsonl", *lines)
    assert panda("init").code == 0
    assert panda("import", "turns.jsonl").code == 0
    return panda.store


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo store with the recorded turns in it, for tests to copy."""
    root = make_demo(tmp_path_factory.mktemp("recorded") / "store", PANDA_NOW=RECORDED_AT)
    own = shutil.ignore_patterns(EXPECTED)
    shutil.copytree(REPLAYS, root / "users" / "demo", dirs_exist_ok=True, ignore=own)
    return root


@pytest.fixture
def ann(tmp_path: Path) -> Iterator[ScriptedPanda]:
    """Ann's laptops, with a scripted language model on loopback in every layer."""
    with ScriptedPanda(tmp_path / "project") as panda:
        yield panda
