"""Commands while nobody listens where their model server is to be, or while it fails."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.models.conftest import Server

PANDA = str(Path(sys.executable).with_name("panda"))
ITEMS = 40
"""So many that asking again for each would take minutes."""
MOST_SECONDS = 60
Panda = Callable[..., tuple[int, str, str]]


@pytest.fixture
def panda(recorded: Path, tmp_path: Path) -> Panda:
    """Runs a command in a project whose models are all on one closed port, for at most a minute."""
    shutil.copytree(recorded, tmp_path / "panda-system-docs")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    write_models(tmp_path, f"http://127.0.0.1:{port}/v1")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PANDA_TRUST": "1", "PANDA_USER": "demo"}

    def run(*words: str, text: str = "", most_seconds: int = MOST_SECONDS) -> tuple[int, str, str]:
        done = subprocess.run(
            [PANDA, *words],
            input=text,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environ,
            timeout=most_seconds,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def write_models(directory: Path, url: str, *, timeout_seconds: int = 300) -> None:
    keys = f'backend: openai, location: "{url}", model: m, n_ctx: 16384, structured: json_schema'
    keys += f", timeout_seconds: {timeout_seconds}"
    layers = "{REFLEX: served, NERVES: served, MIND: served, VOICE: served}"
    text = f"models:\n  served: {{{keys}}}\nlayers: {layers}\nencoder: null\n"
    (directory / "models.yaml").write_text(text, encoding="utf-8")


def data_of(out: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(out)["data"]
    return data


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_batch_without_its_server(panda: Panda, jobs: str) -> None:
    """Each item ends away at once, in every worker; so does each turn when all are taken up again."""
    lines = "".join(json.dumps({"id": f"q{n}", "query": f"What is item {n}?"}) + "\n" for n in range(ITEMS))
    code, out, err = panda("batch", "-", "--save", "--jobs", jobs, "--json", text=lines)
    assert code == 75, out + err
    assert data_of(out)["results"] == {"away": ITEMS}
    assert "Connection refused" in data_of(out)["items"][-1]["findings"][0]
    code, out, err = panda("turn", "--resume-all", "--json")
    assert code == 75, out + err
    assert len(data_of(out)["turns"]) == ITEMS


def test_saved_turns_run_again_without_their_server(panda: Panda) -> None:
    """A rerun ends with each turn away at once: four take less than half a minute's worth of pauses."""
    code, out, err = panda("replay", "813-816", "--mode", "rerun", "--json", most_seconds=25)
    assert code == 75, out + err
    assert data_of(out)["results"] == {"away": 4}


def test_the_log_tells_that_a_server_was_away(panda: Panda) -> None:
    """The execution has a line of its own: neither a valid reply nor an invalid one, of unknown length."""
    assert panda("turn", "What is my budget?")[0] == 75
    code, out, _ = panda("log", "--json")
    assert code == 0
    line = data_of(out)["lines"][-1]
    columns = ("outcome", "success", "schema_valid", "latency_ms", "confidence", "model", "method")
    assert [line[key] for key in columns] == ["away", False, None, None, None, "served", "generate"]
    assert panda("log")[1].splitlines()[-1].endswith("\taway")
    (group,) = data_of(panda("stats", "--since", line["timestamp"], "--json")[1])["groups"].values()
    assert (group["executions"], group["away"], group["valid"], group["p50_ms"]) == (1, 1, None, None)
    history = data_of(panda("recipe", "history", line["key"], "--json")[1])
    assert "no valid reply" not in json.dumps(history)


def test_a_server_without_memory_is_not_away(panda: Panda, tmp_path: Path) -> None:
    """A server's own failure is told in its words, with what may be done about it."""
    server = Server()
    server.answer = lambda _: (500, b'{"error": {"message": "CUDA out of memory. Tried to allocate 2 GiB"}}')
    write_models(tmp_path, server.url, timeout_seconds=1)
    try:
        code, _, err = panda("turn", "What is my budget?")
    finally:
        server.close()
    assert code == 75
    assert "the model server of served fails: HTTP 500: CUDA out of memory. Tried to allocate 2 GiB" in err
    assert "does not answer" not in err
    assert "if it lacks memory, give it a smaller model, context or number of slots" in err
