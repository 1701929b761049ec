"""
How many calls a second the workers of a batch get from fleets of servers on loopback, the first of which may
be dead or fail every other request. Each takes so many requests at a time and needs 0.3 seconds on average.

    python -m bench.fleets
"""

import multiprocessing
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

from panda.models.model_contract import GenerateParams, Message
from panda.models.models_file import ModelSpec
from panda.models.openai import OpenAiModel
from panda.runs.pool import Chain, Processes, run_chains
from tests.loopback import Server, reply

CALLS_A_WORKER = 60
FLEETS = ((2, 1, ""), (4, 1, ""), (4, 4, ""), (4, 1, "dead"), (4, 1, "flaky"))
"""Number of servers, requests that each takes at a time, and how the first of them is."""


@dataclass
class Worker:
    """Makes a worker ready, with a model behind these servers."""

    urls: list[str]

    def __call__(self) -> AbstractContextManager[Callable[[Any], str]]:
        return self.opened()

    @contextmanager
    def opened(self) -> Iterator[Callable[[Any], str]]:
        first, *further = self.urls
        model = OpenAiModel(ModelSpec("m", "openai", first, 1024, model="m", further_servers=tuple(further)))
        params = GenerateParams(temperature=0, max_tokens=9, seed=3, timeout_seconds=60)
        yield lambda _: model.generate((Message("user", "Hi"),), params).text


def serve(own: Connection, slots: int, state: str, seed: int) -> None:
    """A server until told to end; tells its URL first."""
    numbers, places, times = count(), threading.Semaphore(slots), random.Random(seed)

    def answer(_: dict[str, Any]) -> tuple[int, bytes] | None:
        number = next(numbers)
        if state == "flaky" and number % 2:
            return (500, b"no") if number % 4 == 1 else None
        with places:
            time.sleep(times.lognormvariate(-1.329, 0.5))
        return reply("Hello there")

    server = Server()
    server.answer = answer
    own.send(server.url)
    if state == "dead":
        server.die()
    own.recv()
    server.close()


def main() -> None:
    context = multiprocessing.get_context("spawn")
    for servers, slots, state in FLEETS:
        ends, urls, width = [], [], servers * slots
        for number in range(servers):
            end, other = context.Pipe()
            context.Process(target=serve, args=(other, slots, "" if number else state, number)).start()
            ends.append(end)
            urls.append(end.recv())
        with closing(Processes(Worker(urls), width)) as workers:
            list(run_chains(workers, (Chain(iter("a"), 1) for _ in range(width))))  # all are ready
            started, calls = time.monotonic(), CALLS_A_WORKER * width
            ended = list(run_chains(workers, (Chain(iter("a"), 1) for _ in range(calls))))
            speed = calls / (time.monotonic() - started)
        assert not any(fault for _, _, fault in ended)
        told = f"{servers} servers, {slots} requests each, {state or 'sound':5}"
        print(f"{told}: {speed:5.1f} calls a second")  # noqa: T201 - what a measurement is for
        for end in ends:
            end.send(None)


if __name__ == "__main__":
    main()
