"""Batches whose model is behind servers: a fleet of which one fails half its requests, and none at all."""

import json
import threading
from collections import Counter
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any

from tests.api import LAPTOPS, ModelServer, Panda, models_at
from tests.loopback import Server
from tests.script import Asked, Script

QUERY = "How much is the Lenovo LOQ 15?"
FAILURES: tuple[Any, ...] = ((500, b"broken"), None, (503, b"busy"), "reset")


def run_batch(panda: Panda, servers: list[Server], ids: list[str]) -> Any:
    """A batch as wide as the fleet, whose turns are saved; the `data` of its end."""
    urls = json.dumps([server.url for server in servers])
    panda.write("models.yaml", models_at(urls))
    panda.write("queries.jsonl", "".join(json.dumps({"id": name, "query": QUERY}) + "\n" for name in ids))
    return panda.process("batch", "queries.jsonl", "--save", "--json").data


def test_a_fleet_of_which_one_fails_half(tmp_path: Path) -> None:
    """All items are done, none twice; both servers answered some of the requests."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    ids = [f"q{number}" for number in range(12)]
    failed_once = threading.Event()
    request_numbers = count()

    def answer_after_failure(asked: Asked) -> object:
        failed_once.wait(60)  # else the one worker could do everything before the other has begun
        return Script()(asked)

    with ExitStack() as stack:
        good = stack.enter_context(closing(ModelServer(answer_after_failure)))
        bad = stack.enter_context(closing(ModelServer()))
        stack.callback(failed_once.set)
        answer_always = bad.answer

        def answer_every_other(body: dict[str, Any]) -> Any:
            number = next(request_numbers)
            if number % 2 == 0:
                return answer_always(body)
            failed_once.set()
            return FAILURES[number // 2 % len(FAILURES)]

        bad.answer = answer_every_other
        data = run_batch(panda, [good, bad], ids)
    assert [item["findings"] for item in data["items"] if item["findings"]] == []
    turns = panda.json("list")["turns"]
    metadata = [json.loads(panda.turn_file(turn["turn"], "metadata.json").read_bytes()) for turn in turns]
    assert Counter(record["item"] for record in metadata if record.get("run")) == Counter(ids)
    assert good.answered
    assert bad.answered
    assert len(bad.asked) > len(bad.answered)
    assert panda.problems() == []
    assert panda.json("index", "status")["fresh"]


def test_no_server_at_all(tmp_path: Path) -> None:
    """Each line says so where every item fails for want of a server."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    servers = [Server(), Server()]
    for server in servers:
        server.close()
    data = run_batch(panda, servers, ["q0", "q1"])
    assert [(item["result"], item["exit_code"]) for item in data["items"]] == [("away", 75), ("away", 75)]
