"""Batches whose model is behind servers: a fleet of which one fails half its requests, and none at all."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from panda.models.contract import GenerateParams, Message
from panda.models.models_file import load_models_file
from panda.runs.batch import Batch, begin_batch
from panda.runs.item import BatchWorker
from panda.runs.pool import Processes
from panda.runs.queries import Query
from panda.settings import Settings, load_settings
from panda.store.layout import Layout
from tests.batches.scripted import QUESTION
from tests.batches.test_batch import check_sound, made_turns
from tests.builders import NOW
from tests.loopback import Server, reply
from tests.script import Script
from tests.scripted_model import Asked
from tests.scripted_turns import USER, laptop_store


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The laptop store of user ann."""
    return laptop_store(tmp_path / "panda-system-docs")


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    """Two servers on loopback."""
    found = [Server(), Server()]
    yield found
    for server in found:
        server.close()


def settings_of(layout: Layout, urls: list[str]) -> Settings:
    """Settings of the store with a model behind these servers in every layer."""
    directory = layout.root.parent
    text = f"""\
models:
  served: {{backend: openai, location: {urls}, model: m, n_ctx: 16384, writes: true, structured: json_schema}}
layers: {{REFLEX: served, NERVES: served, MIND: served, VOICE: served}}
encoder: null
"""
    (directory / "models.yaml").write_text(text, encoding="utf-8")
    given = {"root": str(layout.root), "user": USER, "trust": True, "now": NOW}
    given["models_file"] = str(directory / "models.yaml")
    return load_settings(given, {"HOME": "/nowhere", "XDG_CACHE_HOME": str(directory / "cache")}, directory)


def run_served(layout: Layout, urls: list[str], queries: list[Query]) -> Batch:
    """A batch as wide as the fleet."""
    settings = settings_of(layout, urls)
    run = begin_batch(settings, {}, queries, save=True)
    jobs = load_models_file(settings.models_file).width or 1
    with run.hold():
        found = Batch(settings, run, queries)
        _ = [*found.prepare(), *found.execute(Processes(BatchWorker(settings, {}, found.start), jobs))]
    return found


def by_script() -> Callable[[dict[str, Any]], tuple[int, bytes]]:
    """Answers as the script of an approved turn does."""
    script = Script()

    def answer(body: dict[str, Any]) -> tuple[int, bytes]:
        messages = tuple(Message(one["role"], one["content"]) for one in body["messages"])
        schema = body["response_format"]["json_schema"]["schema"]
        params = GenerateParams(temperature=0, max_tokens=1, seed=0, timeout_seconds=1, schema=schema)
        said = script(Asked(messages=messages, params=params))
        assert isinstance(said, str)
        return reply(said)

    return answer


def test_a_fleet_of_which_one_fails_half(layout: Layout, servers: list[Server]) -> None:
    """All items are done, none twice; both servers answered some of the requests."""
    good, bad = servers
    good.answer = by_script()
    well, number = by_script(), count()

    def every_other(body: dict[str, Any]) -> Any:
        at = next(number)
        return well(body) if at % 2 else ((500, b"broken"), None, (503, b"busy"), "reset")[at // 2 % 4]

    bad.answer = every_other
    queries = [Query(f"q{n}", QUESTION) for n in range(12)]
    found = run_served(layout, [server.url for server in servers], queries)
    assert [line.findings for line in found.lines if line.findings] == []
    assert Counter(item for item, _ in made_turns(layout)) == Counter(query.id for query in queries)
    assert good.answered
    assert bad.answered
    assert len(bad.asked) > len(bad.answered)
    check_sound(layout)


def test_no_server_at_all(layout: Layout, servers: list[Server]) -> None:
    """Where every item fails for want of a server, each line says so; they run when there is one."""
    urls = [server.url for server in servers]
    for server in servers:
        server.close()
    found = run_served(layout, urls, [Query("q0", QUESTION), Query("q1", QUESTION)])
    assert [(line.result, line.exit_code) for line in found.lines] == [("away", 75), ("away", 75)]
