"""A batch on Dask: as on this machine, item for item, whatever of the cluster is killed."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.api import PRICE_QUESTION, ScriptedPanda
from tests.batches.cluster import Cluster, running_cluster
from tests.batches.commands import (
    MoodyScript,
    begin_batch,
    check_once,
    item,
    results_of,
    saved_items,
    seen_turns,
)
from tests.effort import tried

KILLS = tried(1, 4)
"""How often something is killed."""
_KEYS = [{"session": f"s{number % 4}"} if number % 2 else {} for number in range(8 + 8 * KILLS)]
LINES = [item(f"q{number}", PRICE_QUESTION, **keys) for number, keys in enumerate(_KEYS)]


@pytest.fixture
def slow(ann: ScriptedPanda, tmp_path: Path) -> ScriptedPanda:
    """Ann's laptops with a model that is slow where a query says so."""
    ann.server.script = MoodyScript(ann, tmp_path)
    return ann


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def on(cluster: Cluster) -> tuple[str, ...]:
    """Return the options of a batch that runs on a cluster."""
    return ("--engine", "dask", "--address", cluster.address)


def outcome_of(panda: ScriptedPanda, *words: str) -> list[Any]:
    """Run some lines of the batch; return items, numbers, what was seen and the answers."""
    lines = LINES[:8]
    panda.server.script = MoodyScript(panda, panda.home)
    begin_batch(panda, lines, "--save", *words)
    check_once(panda, lines)
    turns = [turn for _, turn in saved_items(panda)]
    responses = [panda.turn_file(turn, "response.md").read_text(encoding="utf-8") for turn in turns]
    return [saved_items(panda), seen_turns(panda), responses]


def test_the_same_as_here(cluster: Cluster, ann: ScriptedPanda, tmp_path: Path) -> None:
    """A cluster gives what two processes give: numbers, answers and what was seen; it listens on loopback."""
    with ScriptedPanda(tmp_path / "here") as here:
        assert outcome_of(ann, *on(cluster)) == outcome_of(here, "--jobs", "2")
    places = {
        connection.laddr.ip
        for process in cluster.processes.values()
        for connection in psutil.Process(process.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert places == {"127.0.0.1"}


def test_killed_workers(cluster: Cluster, slow: ScriptedPanda) -> None:
    """Workers are killed with -9, and others take their place: every item exactly once."""
    ended = threading.Event()

    def kill_workers() -> None:
        for number in range(KILLS):
            while len(saved_items(slow)) <= 2 * number:  # both have begun to work
                if ended.wait(0.05):
                    return
            name = f"worker-{number % 2}"
            cluster.kill(name)
            cluster.start_worker(name)

    killer = threading.Thread(target=kill_workers)
    killer.start()
    try:
        data = begin_batch(slow, LINES, "--save", *on(cluster))
    finally:
        ended.set()
        killer.join()
    assert set(results_of(data).values()) == {"passed"}
    check_once(slow, LINES)


def test_killed_schedulers(tmp_path: Path, slow: ScriptedPanda) -> None:
    """A scheduler that is killed ends the batch with 75; with another one it goes on: each item once."""
    assert begin_batch(slow, LINES, "--save", "--limit", "1")["left"] == len(LINES) - 1
    kills = 0
    workers = tried(1, 2)
    with running_cluster(tmp_path, workers=workers) as cluster:
        code = 75
        while code == 75:
            timer = threading.Timer(1.5, cluster.kill, ["scheduler"])
            if kills < KILLS:
                timer.start()
            code = slow("batch", "--resume", "last", *on(cluster)).code
            timer.cancel()
            if timer.ident:
                timer.join()
            if "scheduler" not in cluster.processes:
                kills += 1
                for name in [name for name in cluster.processes if name.startswith("worker")]:
                    cluster.kill(name)
                cluster.start_scheduler()
                for number in range(workers):
                    cluster.start_worker(f"worker-{number}")
    assert (code, kills) == (0, KILLS)
    check_once(slow, LINES)
