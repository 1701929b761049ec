"""Conversations in which every turn is a `panda turn` of its own: a fresh process, its model on loopback."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import panda
from panda.models.contract import GenerateParams, Message
from panda.session.file import verify_session
from panda.store.records import Metadata
from panda.store.turns import TurnFolder
from panda.store.validate import check_store
from tests.builders import NOW
from tests.loopback import Server, reply
from tests.script import Script, step_of
from tests.scripted_model import Asked
from tests.scripted_turns import USER, open_turn
from tests.session.conversations import SESSION, Talk

_SOURCE = Path(panda.__file__).parent.parent
_PANDA = "from panda.cli.main import main; main()"
_MODELS = """models:
  scripted: {{backend: openai, location: {url}, model: scripted, n_ctx: 32768, writes: true, scores: false}}
layers: {{REFLEX: scripted, NERVES: scripted, MIND: scripted, VOICE: scripted, EYES: null}}
"""


@dataclass(frozen=True)
class Ended:
    """What a turn left behind, and what its model was asked."""

    exit_code: int
    """Of the process."""
    folder: TurnFolder
    """The turn's files."""
    prompts: tuple[Asked, ...]
    """Every call, in order."""

    @property
    def metadata(self) -> Metadata:
        """metadata.json."""
        return self.folder.read_metadata()

    def asked(self, step: str) -> list[Asked]:
        """What the model was asked at a step."""
        asked = (one for one in self.prompts if getattr(one.params, "schema", None))
        return [one for one in asked if step_of(one) == step]


class FreshTalk(Talk):
    """
    A conversation of processes.

    Args:
        root: Where the store is made.
        server: The model of every layer.
    """

    def __init__(self, root: Path, server: Server) -> None:
        super().__init__(root / "store")
        self._server = server
        self._project = root
        (root / "models.yaml").write_text(_MODELS.format(url=server.url), encoding="utf-8")

    def start(self, *arguments: str, as_json: bool = True) -> subprocess.Popen[bytes]:
        """A command that has begun."""
        command = [sys.executable, "-c", _PANDA, *arguments, *(["--json"] if as_json else [])]
        given = ["--root", str(self.layout.root), "--user", USER]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PANDA_")}
        env = {**kept, "PANDA_NOW": NOW.isoformat(), "XDG_CONFIG_HOME": str(self._project / "none")}
        env["PANDA_TRUST"] = "1"  # models.yaml names a server
        env["PYTHONPATH"] = os.pathsep.join([str(_SOURCE), env.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [*command, *given],
            cwd=self._project,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def panda(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Exit code and the object on stdout of a command."""
        return self._ended(self.start(*arguments))

    def _ended(self, process: subprocess.Popen[bytes]) -> tuple[int, dict[str, Any]]:
        out, err = process.communicate()
        if process.returncode < 0:
            return process.returncode, {"data": None}
        value = json.loads(out)
        assert value["exit_code"] == process.returncode != 1, err
        return process.returncode, value

    def say(self, query: str, script: Callable[[Asked], Any] | None = None, **replies: Any) -> Any:
        """One turn; afterwards the session says what its turns say, and the store is valid."""
        ended = self.ask(query, script or Script(**replies))
        assert ended.exit_code in (0, 21, 22), ended.exit_code
        assert verify_session(self.layout.of(USER), SESSION) == []
        assert check_store(self.layout) == []
        return ended

    def ask(self, query: str, script: Callable[[Asked], Any], *, dies_at: str | None = None) -> Ended:
        """
        One turn, however it ends.

        Args:
            query: The query.
            script: Gives the replies of its model.
            dies_at: Step at which its process is killed instead of getting a reply.
        """
        return self.answered(script, "turn", query, "--session", SESSION, dies_at=dies_at)

    def resume(self, number: int, script: Callable[[Asked], Any]) -> Ended:
        """A turn taken up again."""
        return self.answered(script, "turn", "--resume", str(number))

    def answered(self, script: Callable[[Asked], Any], *arguments: str, dies_at: str | None = None) -> Ended:
        """What a command with one turn leaves behind."""
        prompts: list[Asked] = []
        started = threading.Event()

        def answer(body: dict[str, Any]) -> tuple[int, bytes]:
            prompts.append(_asked(body))
            if getattr(prompts[-1].params, "schema", None) and step_of(prompts[-1]) == dies_at:
                started.wait()
                process.kill()
            said = script(prompts[-1])
            assert isinstance(said, str)
            return reply(said)

        self._server.answer = answer
        process = self.start(*arguments)
        started.set()
        code, _ = self._ended(process)
        return Ended(code, self.newest, tuple(prompts))

    @property
    def newest(self) -> TurnFolder:
        """The files of the newest turn."""
        numbers = [int(path.name[5:]) for path in self.layout.of(USER).turns.glob("turn_*")]
        return open_turn(self.layout, max(numbers))

    def outputs(self, query: str, replies: Mapping[str, Any], *, as_json: bool) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of one turn."""
        script = Script(**replies)

        def answer(body: dict[str, Any]) -> tuple[int, bytes]:
            said = script(_asked(body))
            assert isinstance(said, str)
            return reply(said)

        self._server.answer = answer
        process = self.start("turn", query, "--session", SESSION, as_json=as_json)
        out, err = process.communicate()
        return process.returncode, out.decode(), err.decode()


def _asked(body: Mapping[str, Any]) -> Asked:
    """What the server of a model was asked."""
    messages = tuple(Message(one["role"], one["content"]) for one in body["messages"])
    wanted = body.get("response_format")
    schema = wanted["json_schema"]["schema"] if wanted else None
    return Asked(messages=messages, params=GenerateParams(0.0, 1, 1, 1.0, schema))


@contextmanager
def fresh_talk(root: Path) -> Iterator[FreshTalk]:
    """A conversation of processes, and its model server."""
    root.mkdir(parents=True, exist_ok=True)
    server = Server()
    try:
        yield FreshTalk(root, server)
    finally:
        server.close()
