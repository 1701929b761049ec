"""Turns of several processes at once: what waits for what, and for how long."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.api import LAPTOPS, ModelServer, Panda
from tests.script import Asked, Script, step_of

QUERY = "How much is the Lenovo LOQ 15?"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """The model of every layer."""
    with closing(ModelServer()) as model_server:
        yield model_server


@pytest.fixture
def panda(tmp_path: Path, server: ModelServer) -> Panda:
    """A project with the laptop store."""
    project = Panda(tmp_path, LAPTOPS, user="ann")
    project.write("models.yaml", server.models())
    return project


def test_turns_without_a_session_run_side_by_side(panda: Panda, server: ModelServer) -> None:
    """The second of two turns waits for no lock of the first, which is still asking its model."""
    asks_slowly = threading.Event()
    second_ended = threading.Event()
    script = Script()

    def answer(asked: Asked) -> object:
        if "slowly" in asked.text and step_of(asked) == "planner":
            asks_slowly.set()
            second_ended.wait(60)
        return script(asked)

    server.script = answer
    with panda.running("turn", f"{QUERY} slowly", "--no-stdin") as first:
        try:
            assert asks_slowly.wait(60)
            second = panda.process("turn", QUERY, "--no-stdin", "--wait", "0", "--json")
            assert first.poll() is None
        finally:
            second_ended.set()
        _, first_err = first.communicate()
    assert (second.code, second.data["session"]) == (0, "t000004"), second.err
    assert first.returncode == 0, first_err
    assert "waiting" not in second.err + first_err
    assert panda.sessions_differ("t000003") == []


def test_memory_that_is_being_written_is_waited_for_in_any_case(panda: Panda) -> None:
    """`--wait 0` does not give up where another turn writes the user's memory just then."""
    with panda.running("turn", QUERY, "--no-stdin", "--wait", "0") as process:
        with panda.lock("users/ann/memory.lock"):
            assert process.stderr is not None
            first_line = process.stderr.readline()
        _, err = process.communicate()
    assert (process.returncode, "waiting for" in first_line) == (0, True), first_line + err
