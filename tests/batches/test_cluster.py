"""A batch on Dask: as on this machine, item for item, whatever of the cluster is killed."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from panda.errors import TryAgainError
from panda.runs.batch import begin_batch
from panda.runs.compare import load_sides
from panda.runs.ledger import RunFolder, open_run
from panda.runs.queries import Query
from panda.store.layout import Layout
from tests.batches.cluster import Cluster, running_cluster
from tests.batches.scripted import QUESTION, run_batch, settings_of
from tests.batches.test_killed_runner import check_sound, made_turns
from tests.effort import tried
from tests.scripted_turns import laptop_store

KILLS = tried(1, 4)
"""How often something is killed."""
_NAMES = [f"s{number % 4}" if number % 2 else None for number in range(8 + 8 * KILLS)]
QUERIES = [Query(f"q{n}", f"{QUESTION} slowly", session=name) for n, name in enumerate(_NAMES)]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The laptop store of user ann."""
    return laptop_store(tmp_path / "panda-system-docs")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def check_once(layout: Layout, run: RunFolder) -> None:
    """Every item has one turn and one line, and the store is sound."""
    assert Counter(item for item, _ in made_turns(layout)) == Counter(query.id for query in QUERIES)
    assert Counter(line.item for line in run.lines()) == Counter(query.id for query in QUERIES)
    assert run.plan().finished_at is not None
    check_sound(layout)


def test_the_same_as_here(cluster: Cluster, tmp_path: Path) -> None:
    """A cluster gives what two processes give: numbers, answers and decisions, and listens on loopback."""
    found = []
    for address in (None, cluster.address):
        layout = laptop_store(tmp_path / str(address is None) / "panda-system-docs")
        run_batch(layout.root, QUERIES, address=address)
        check_sound(layout)
        name = open_run(layout, "last").id
        side = load_sides(layout, name, name)[0]
        found.append([(one.key, one.turn, one.answer, one.decisions) for one in side.outcomes])
    assert found[0] == found[1]
    places = {
        connection.laddr.ip
        for process in cluster.processes.values()
        for connection in psutil.Process(process.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert places == {"127.0.0.1"}


def test_killed_workers(cluster: Cluster, layout: Layout) -> None:
    """Workers are killed with -9, and others take their place: every item exactly once."""
    run = begin_batch(settings_of(layout.root), {}, QUERIES, save=True)
    ended = threading.Event()

    def kill_them() -> None:
        for number in range(KILLS):
            time.sleep(2)
            if ended.is_set():
                return
            name = f"worker-{number % 2}"
            cluster.kill(name)
            cluster.start_worker(name)

    killer = threading.Thread(target=kill_them)
    killer.start()
    try:
        found = run_batch(layout.root, None, address=cluster.address, resume=run.id)
    finally:
        ended.set()
        killer.join()
    assert [line.result for line in found.lines if line.result != "passed"] == []
    check_once(layout, run)


def test_killed_schedulers(tmp_path: Path, layout: Layout) -> None:
    """A scheduler that is killed ends the batch with 75; with another one it goes on: each item once."""
    run = begin_batch(settings_of(layout.root), {}, QUERIES, save=True)
    kills = 0
    workers = tried(1, 2)
    with running_cluster(tmp_path, workers=workers) as cluster:
        while run.plan().finished_at is None:
            timer = threading.Timer(1.5, cluster.kill, ["scheduler"])
            if kills < KILLS:
                timer.start()
            try:
                run_batch(layout.root, None, address=cluster.address, resume=run.id)
            except TryAgainError:
                kills += 1
            timer.cancel()
            timer.join() if timer.ident else None
            if "scheduler" not in cluster.processes:
                for name in [name for name in cluster.processes if name.startswith("worker")]:
                    cluster.kill(name)
                cluster.start_scheduler()
                for number in range(workers):
                    cluster.start_worker(f"worker-{number}")
    assert kills == KILLS
    check_once(layout, run)
