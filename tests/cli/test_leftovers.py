"""Commands killed at any moment: what they leave is swept by the next one that writes."""

import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from panda.cli.boundary import run
from panda.cli.main import build_program
from panda.store.files import begin_writing, is_temporary
from tests.builders import import_line
from tests.code_mode import QUERY, RENAME, repository
from tests.script import Script
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import laptop_store, scripted_app

Act = Callable[[], object]


class Place:
    """A store of user ann with a project, a cache and a directory for output beside it."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.base = base
        self.layout = laptop_store(base / "store")
        self.project = repository(base)
        self.environ = {"HOME": str(base / "home"), "PATH": os.environ["PATH"]}
        (base / "tmp").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(base / "tmp"))
        monkeypatch.chdir(base)
        (base / "turns.jsonl").write_text(
            "".join(
                json.dumps(import_line(user="ben", turn=n, query=f"Question {n}?")) + "\n"
                for n in range(1, 30)
            ),
            encoding="utf-8",
        )
        (base / "text.md").write_text("# Fans\n\n" + "Fans are loud when it is warm. " * 40, encoding="utf-8")

    def panda(self, *words: str) -> int:
        """Run one command in this process."""
        return run(build_program(), [*words, "--root", str(self.layout.root), "--user", "ann"], self.environ)

    def acts(self) -> dict[str, Act]:
        """Commands that write, by kind."""
        base = str(self.base)
        return {
            "init": lambda: self.panda("init", "--demo"),
            "memory set": lambda: self.panda("memory", "set", "color", "red"),
            "import": lambda: self.panda("import", f"{base}/turns.jsonl"),
            "index rebuild": lambda: self.panda("index", "rebuild", "--full"),
            "compress": lambda: self.panda(
                *("compress", f"{base}/text.md", "--budget", "2000", "--out", f"{base}/out.md")
            ),
            "validate": lambda: self.panda("validate"),
            "turn": lambda: self.turn("turn"),
            "code turn": lambda: self.turn("code"),
        }

    def turn(self, kind: str) -> None:
        """A turn of a scripted model, as `panda turn` runs it."""
        begin_writing(self.layout.root)
        script = Script(tasks=["act", "answer"], calls=RENAME) if kind == "code" else Script()
        model = ScriptedModel(script, scores=False)
        app = scripted_app(self.layout, model, project=self.project if kind == "code" else None)
        query = QUERY if kind == "code" else "How much is the Lenovo LOQ 15?"
        app.run_turn(app.start_turn(query, "code" if kind == "code" else "chat"))

    def left(self) -> list[str]:
        """All temporaries that lie anywhere."""
        return sorted(str(path) for path in self.base.rglob(".*") if is_temporary(path))


def kill_after(act: Act, seconds: float) -> bool:
    """Run it in a process of its own, killed after some time; returns whether that came too late."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):
            os.dup2(quiet, descriptor)
        try:
            act()
        finally:
            os._exit(0)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def kill_often(place: Place, kind: str, times: int, seed: int) -> tuple[int, int]:
    """
    Kill a command at random moments, each time followed by an ordinary one.

    Returns:
        How often it was killed in time, and how often it then left something.
    """
    act = place.acts()[kind]
    began = time.monotonic()
    kill_after(act, 60)
    lasted = time.monotonic() - began
    rng = random.Random(seed)
    killed = left = number = 0
    while killed < times and number < 6 * times:
        number += 1
        if kind == "import":
            lines = [json.dumps(import_line(user=f"ben{number}", turn=n)) for n in range(1, 30)]
            (place.base / "turns.jsonl").write_text("\n".join(lines), encoding="utf-8")
        if kind == "init" and place.layout.of("demo").home.exists():
            place.layout.of("demo").home.rename(place.base / f"demo{number}")
        killed += not kill_after(act, rng.uniform(0.0, 0.9) * lasted)
        left += bool(place.left())
        assert place.panda("memory", "set", "size", f"{number}") == 0
        assert place.left() == [], kind
        assert place.panda("validate") == 0, kind
    return killed, left


KINDS = (
    "init",
    "memory set",
    "import",
    "index rebuild",
    "compress",
    "validate",
    "turn",
    "code turn",
)


@pytest.mark.parametrize("kind", KINDS)
def test_what_killed_commands_leave_goes_with_the_next(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a command killed at any moment leaves is gone after the next one, and validate ends with 0."""
    place = Place(tmp_path, monkeypatch)
    killed, _ = kill_often(place, kind, 4, seed=1)
    assert killed
