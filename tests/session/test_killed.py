"""A turn of a session that is killed at one of its writes, in a process of its own."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panda.app import App
from panda.models.scripted import ScriptedModel
from panda.session.session_file import load_session
from panda.session.verifying import verify_session
from tests.scripted_turns import USER, Script, scripted_app
from tests.session.conversations import SESSION, Talk


def _killed_at(number: int) -> Callable[..., None]:
    """A rename that kills its process when it is called the n-th time."""
    rename, left = os.replace, [number]

    def replace(*arguments: Any, **options: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(*arguments, **options)

    return replace


@pytest.mark.parametrize("write", [2, 12, 22, 25, 26, 28])
def test_killed_between_two_writes(tmp_path: Path, write: int) -> None:
    """Whatever write kills a turn, the session says what its turns say; --resume and the next turn go on."""
    talk = Talk(tmp_path)
    talk.say("How much is the Lenovo LOQ 15?")
    child = os.fork()
    if child == 0:
        os.replace = os.rename = _killed_at(write)
        app = _app(talk)
        app.run_turn(app.start_turn("And its weight?", "chat"))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert verify_session(talk.layout, USER, SESSION) == []
    turns = [3]
    app = _app(talk)
    killed = app.store.open(4) if app.store.has(4) else None
    if killed is not None and killed.has("metadata.json"):
        turns.append(4)
        if killed.read_metadata().next is not None:
            app.run_turn(app.resume_turn(4))
    talk.say("And the price?")
    session = load_session(talk.layout, USER, SESSION)
    assert session is not None
    assert [one.turn for one in session.turns][: len(turns)] == turns
    assert len(session.turns) == len(turns) + 1


def _app(talk: Talk) -> App:
    model = ScriptedModel(Script(), writes=True, scores=False)
    return scripted_app(talk.layout, model, session=SESSION)
