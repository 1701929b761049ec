"""Batches of scripted turns in processes of their own: `python -m tests.batches.scripted ROOT JOBS [RUN]`."""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from panda.models.contract import Completion, GenerateParams, Message
from panda.runs.batch import Batch, begin_batch, resume_batch
from panda.runs.dask import DaskCluster, remote_worker
from panda.runs.item import BatchWorker
from panda.runs.ledger import open_run
from panda.runs.pool import Processes, Workers
from panda.runs.queries import Query
from panda.settings import Settings, load_settings
from panda.store.layout import Layout
from tests.script import Asked, Script
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import USER, OneModel
from tests.store_files import NOW

QUESTION = "How much is the Lenovo LOQ 15?"


class Moody(Script):
    """The script of an approved turn; a query that says so is slow, halts, or kills its process."""

    def __call__(self, asked: Asked) -> str | Exception:
        """The scripted reply, after what the query says."""
        if "slowly" in asked.text:
            time.sleep(0.05)
        if (at := asked.text.find("halt-without:")) >= 0 and not Path(
            asked.text[at + 13 :].split()[0]
        ).exists():
            return "nonsense"
        if "die at once" in asked.text:
            os.kill(os.getpid(), signal.SIGKILL)
        if (at := asked.text.find("kill:")) >= 0:
            mark = Path(asked.text[at + 5 :].split()[0])
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(asked)


class _Forgetful(ScriptedModel):
    """A scripted model that does not keep what it was asked: memory is that of the turns."""

    def generate(self, messages: Sequence[Message], params: GenerateParams) -> Completion:
        """The scripted completion."""
        self.asked.clear()
        return super().generate(messages, params)


@contextmanager
def scripted_models(settings: Settings, environ: Mapping[str, str]) -> Iterator[Any]:
    """Layers that all have the scripted model."""
    yield OneModel(_Forgetful(Moody(), writes=True, scores=False))


def settings_of(root: Path) -> Settings:
    """Settings of the store of user ann, at a fixed time."""
    given = {"root": str(root), "user": USER, "trust": True, "now": NOW}
    return load_settings(given, {"HOME": "/nowhere", "XDG_CACHE_HOME": str(root.parent / "cache")}, root)


def workers_of(settings: Settings, found: Batch, jobs: int, address: str | None) -> Workers:
    """Processes or a cluster that ask the scripted model."""
    if address is not None:
        assert found.start is not None
        opener = replace(remote_worker(settings, found.start, found.ran_on), open_models=scripted_models)
        return DaskCluster(address).begin(opener)
    return Processes(BatchWorker(settings, {}, found.start, scripted_models), jobs)


def run_batch(
    root: Path,
    queries: list[Query] | None,
    *,
    jobs: int = 2,
    address: str | None = None,
    resume: str | None = None,
    live: bool = False,
    save: bool = True,
    retry_failed: bool = False,
    lines: list[dict[str, Any]] | None = None,
    **how: Any,
) -> Batch:
    """Begin a batch that is saved, or go on with one; *lines* gets what came of each item."""
    settings, layout = settings_of(root), Layout(root)
    if resume is None:
        run = begin_batch(settings, {}, queries or [], live=live, save=save)
    else:
        run = open_run(layout, resume)
        queries = resume_batch(settings, {}, run, queries)
    with run.hold():
        found = Batch(settings, run, queries or [], is_remote=address is not None)
        ended = [*found.prepare(retry_failed=retry_failed)]
        ended += found.execute(workers_of(settings, found, jobs, address), **how)
        if lines is not None:
            lines += ended
    return found


if __name__ == "__main__":
    run_batch(Path(sys.argv[1]), None, jobs=int(sys.argv[2]), resume=sys.argv[3])
