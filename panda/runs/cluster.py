"""Engines of `panda batch` beside the processes of this machine: clusters, which add-ons connect to."""

from pathlib import Path
from typing import Protocol

from panda.addon_registry import engine_names, find_engine
from panda.errors import UsageError
from panda.runs.ledger import Fingerprint
from panda.runs.pool import Workers
from panda.settings import Settings

LOCAL = "local"
"""The engine that is processes of this machine."""


class Cluster(Protocol):
    """A cluster that is connected to."""

    def begin(self, settings: Settings, start: Path, ran_on: Fingerprint) -> Workers:
        """
        Have every worker process made ready for the items of a batch, once.

        Args:
            settings: As they are on this machine.
            start: The directory of what the batch began with.
            ran_on: Recipes and models of the batch, which those of a worker must equal.
        """


def connect_cluster(engine: str, address: str | None) -> Cluster | None:
    """
    Return the cluster of an engine; None for processes of this machine.

    Raises:
        UsageError: There is no such engine, or no address is given.
        TryAgainError: Nothing answers there.
    """
    if engine == LOCAL:
        return None
    connect = find_engine(engine)
    if connect is None:
        fix = f"use {' or '.join([LOCAL, *engine_names()])}"
        raise UsageError(f"there is no engine {engine!r}", where="--engine", fix=fix)
    if address is None:
        fix = "give --address tcp://HOST:8786; docs/scale.md says how scheduler and workers are started"
        raise UsageError(f"the engine {engine} needs a scheduler", where="--address", fix=fix)
    cluster: Cluster = connect(address)
    return cluster
