"""
The three ways by which tests reach the program: a command, a whole turn, a store to copy.

A test that goes through them knows files, exit codes and the three streams, as a user does, and holds however
the program is built inside. Nothing of `panda` is handed on.

    panda = Panda(tmp_path, store=demo)         a project directory with a copy of a store, the default models
    panda("list", "--json").data                a command in this process
    panda.process("list").out                   the same as a process of its own
    panda.turn("How much is it?").status        a whole turn, and what it left: sections, files, calls
    ann = ScriptedPanda(tmp_path)               LAPTOPS, and every layer is a scripted model on loopback
    ann.turn(script=Script(planner="nonsense")) a whole turn of that model; `asked("planner")` are its prompts
    ann.say("And in red?", answer={"items": []}) one turn of a conversation; its session and store stay sound
    on_terminal(panda, "list")                  what a terminal of 80 columns is sent
    panda.problems(), panda.lock("users/ann/x") what `validate` finds; a lock that another process holds
    panda.kills("init")                         every way to kill a command at one of its writes
    open_pages(panda).get("/turns/ann/3")       a page of `panda view`, without a socket

Files for a store are written by `tests.store_files`, replies of the scripted model stand in `tests.script`.
"""

import fcntl
import hashlib
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from io import BytesIO, TextIOWrapper
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import yaml

import panda.cli.boundary
import panda.cli.main
from tests.loopback import Server, reply
from tests.script import Asked, Request, Script, step_of

if TYPE_CHECKING:
    from starlette.testclient import TestClient

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"
LAPTOPS = CASES / "laptops"
"""A store to copy: ann, a turn that found a laptop, the page that it saw, her budget, a turn about tea."""
PRICE_QUESTION = "How much is the Lenovo LOQ 15?"
"""What the scripted model's usual replies answer from LAPTOPS, with approval."""
VAGUE_QUESTION = "And what about that one?"
"""A question of which phase 1 asks a model, as nothing says what it is about."""
NOW = "2026-01-04T14:30:00Z"
"""The present of every command that is run here, unless it is told another."""
COMMANDS: tuple[str, ...] = tuple(entry.words for entry in panda.cli.main.list_commands())
"""What a user can type, in the order of `panda --help`."""
PROGRAM: tuple[str, ...] = (sys.executable, "-c", "from panda.cli.main import main; main()")
"""Starts the program in a process of its own."""
_KEPT = ("PATH", "PYTHONPATH", "TESTS_CONTACTS")
_MODELS = """models:
  scripted: {{backend: openai, location: {url}, model: scripted, n_ctx: 32768,
    structured: json_schema}}
layers: {{REFLEX: scripted, NERVES: scripted, MIND: scripted, VOICE: scripted, EYES: null}}
encoder: {encoder}
"""


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    """Exit code."""
    out: str
    """stdout."""
    err: str
    """stderr."""

    @property
    def rows(self) -> list[str]:
        """The lines of a table in stdout, below its heads."""
        return self.out.splitlines()[1:]

    @property
    def value(self) -> dict[str, Any]:
        """stdout as the one JSON object that it must be."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def data(self) -> Any:
        """What `--json` has under `data`."""
        return self.value["data"]

    @property
    def error(self) -> dict[str, Any]:
        """What `--json` has under `error`: type, message, where, fix."""
        found = self.value["error"]
        assert isinstance(found, dict), self.out
        return found


_HEADING = re.compile(r"(?m)^## (\d+)\. .*$")
_META = re.compile(r"```yaml\n_meta:\n(.*?)\n```\n*", re.DOTALL)


@dataclass(frozen=True)
class Turn(Ended):
    """What the command of one turn left behind."""

    store: Path
    """The store's directory."""
    prompts: tuple[Request, ...] = ()
    """Every call that the scripted model got, in order."""
    document: str = "context.md"
    """The file of the turn whose sections are read."""

    @property
    def number(self) -> int:
        """The number of the turn."""
        return int(self.data["turn"])

    @property
    def directory(self) -> Path:
        """The directory of the turn."""
        return Path(self.data["turn_dir"])

    def text(self, name: str) -> str:
        """A file of the turn."""
        return (self.directory / name).read_text(encoding="utf-8")

    def file(self, name: str) -> Any:
        """A JSON file of the turn."""
        return json.loads(self.text(name))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The lines of calls.jsonl."""
        return [json.loads(line) for line in self.text("calls.jsonl").splitlines()]

    @property
    def metadata(self) -> dict[str, Any]:
        """metadata.json."""
        value: dict[str, Any] = self.file("metadata.json")
        return value

    @property
    def status(self) -> str:
        """How the turn ended, by metadata.json."""
        return str(self.metadata["status"])

    @property
    def response(self) -> str:
        """response.md, less the line break at its end."""
        return self.text("response.md").removesuffix("\n")

    @property
    def sections(self) -> list[int]:
        """The numbers of the sections of context.md, in order."""
        return [int(number) for number in _HEADING.findall(self.text(self.document))]

    @property
    def attempts(self) -> int:
        """How many attempts at an answer were superseded."""
        return len(list((self.directory / "attempts").glob("*/context.md")))

    def attempt(self, number: int) -> "Turn":
        """A superseded attempt at an answer, counted from 1: its sections are those that are superseded."""
        return replace(self, document=f"attempts/{number}/context.md")

    def section(self, number: int) -> str:
        """A section of context.md without its heading; "" if it is not there."""
        parts = _HEADING.split(self.text(self.document))
        numbers = [int(part) for part in parts[1::2]]
        return parts[2 * numbers.index(number) + 2].strip("\n") if number in numbers else ""

    def body(self, number: int) -> str:
        """A section of context.md without its heading and its `_meta`."""
        return _META.sub("", self.section(number)).strip("\n")

    def meta(self, number: int) -> dict[str, Any]:
        """The first `_meta` of a section of context.md."""
        block = _META.search(self.section(number))
        return yaml.safe_load(block[1]) if block else {}

    def asked(self, step: str) -> list[Request]:
        """The calls of one step of the pipeline, as `tests.script.STEPS` names them."""
        return [request for request in self.prompts if step_of(request) == step]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps of phase 4, in order."""
        paths = sorted((self.directory / "steps").glob("*.json"))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    @property
    def warnings(self) -> list[str]:
        """The warnings on stderr, without their mark."""
        return re.findall(r"(?m)^warning: (.*)$", self.err)

    @property
    def interventions(self) -> list[dict[str, Any]]:
        """All intervention files of the store, by name."""
        paths = sorted((self.store / "interventions").glob("*.json"))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


class Panda:
    """
    Runs commands in a project directory of its own, with a store, a cache and a clock that stands still.

    Args:
        home: The directory; the store is `store` in it.
        store: A store to copy there; None is a store that does not exist yet.
        user: Named by PANDA_USER; "" for nobody.
        environ: Further variables, over the usual ones.
    """

    def __init__(self, home: Path, store: Path | None = None, *, user: str = "", **environ: str) -> None:
        self.home, self.store, self.user = home, home / "store", user
        self.program = PROGRAM
        home.mkdir(parents=True, exist_ok=True)
        if store is not None:
            shutil.copytree(store, self.store, symlinks=True)
            self.store.chmod(0o700)  # as panda makes it, however a checkout was made
        cache = os.environ.get("XDG_CACHE_HOME", str(home / "cache"))
        self.environ = {
            **{name: value for name, value in os.environ.items() if name in _KEPT},
            "HOME": "/nowhere",
            "XDG_STATE_HOME": str(home.with_name(f"{home.name}-state")),
            "XDG_CACHE_HOME": cache,
            "PANDA_NOW": NOW,
            "PANDA_ROOT": str(self.store),
            "PANDA_TRUST": "1",
            "PANDA_WAIT_SECONDS": "0",
            **({"PANDA_USER": user} if user else {}),
            **environ,
        }

    def __call__(self, *words: str, stdin: bytes | str = b"", **environ: str) -> Ended:
        """A command in this process."""
        with chdir(self.home):
            return run_here(words, {**self.environ, **environ}, stdin)

    def start(self, *words: str, **environ: str) -> "subprocess.Popen[str]":
        """A command that has begun in a process of its own."""
        return subprocess.Popen(
            [*self.program, *words],
            cwd=self.home,
            env={**self.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def running(self, *words: str, **environ: str) -> Iterator["subprocess.Popen[str]"]:
        """A command that has begun in a process of its own, and is killed if it still runs at the end."""
        with self.start(*words, **environ) as process:
            try:
                yield process
            finally:
                process.kill()

    def process(self, *words: str, stdin: str = "", **environ: str) -> Ended:
        """A command in a process of its own, to its end."""
        with self.start(*words, **environ) as process:
            out, err = process.communicate(stdin)
        return Ended(process.returncode, out, err)

    def json(self, *words: str, **environ: str) -> Any:
        """The `data` of a command that succeeds."""
        ended = self(*words, "--json", **environ)
        assert ended.code == 0, ended.out
        return ended.data

    def turn(self, query: str, *words: str, **environ: str) -> Turn:
        """One turn to its end, in this process."""
        ended = self("turn", "--json", *words, "--", query, **environ)
        return Turn(ended.code, ended.out, ended.err, self.store)

    @property
    def user_directory(self) -> Path:
        """The user's directory in the store."""
        return self.store / "users" / (self.user or "default")

    def turn_file(self, number: int, name: str) -> Path:
        """A file of one of the user's turns."""
        return self.user_directory / "turns" / f"turn_{number:06d}" / name

    def write(self, name: str, text: str | bytes) -> Path:
        """Put a file into the project."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def write_lines(self, name: str, *values: object) -> Path:
        """Put a file of JSON lines into the project."""
        return self.write(name, "".join(json.dumps(value) + "\n" for value in values))

    def problems(self) -> list[str]:
        """What `panda validate` finds in the store, a line each."""
        ended = self("validate", str(self.store), "--json")
        assert ended.code in (0, 3), ended.out
        return [f"{one['path']}: {one['message']}" for one in ended.data["problems"]]

    def sessions_differ(self, session: str) -> list[str]:
        """What `panda session verify` finds, a line each."""
        ended = self("session", "verify", session, "--json")
        assert ended.code in (0, 3), ended.out
        return [str(one) for one in ended.data["problems"]]

    def kills(self, *words: str) -> list["Kill"]:
        """Run a command in a process of its own, and return every way to kill it at one of its writes."""
        receiver, sender = _FORKSERVER.Pipe(duplex=False)
        assert self._exit_code_of(words, sender=sender) == 0
        sender.close()
        kills = []
        with suppress(EOFError):
            for write in count(1):
                kind = receiver.recv()
                kills.append(Kill(write))
                if kind == "append":
                    kills.append(Kill(write, is_torn=True))
        last = kills[-1].write if kills else 0
        return [replace(kill, may_end_before=kill.write == last) for kill in kills]

    def run_killed(self, kill: "Kill", *words: str) -> None:
        """Run a command in a process of its own, which is killed at one of its writes."""
        code = self._exit_code_of(words, kill=kill)
        assert code == -signal.SIGKILL or (code == 0 and kill.may_end_before)

    def _exit_code_of(
        self, words: Sequence[str], *, sender: Connection | None = None, kill: "Kill | None" = None
    ) -> int | None:
        arguments = (self.home, self.environ, words, sender, kill)
        process = _FORKSERVER.Process(target=_run_until, args=arguments)
        process.start()
        process.join(120)
        return process.exitcode

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock file of the store, as another process would while it writes."""
        path = self.store / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


@dataclass(frozen=True)
class Kill:
    """When a process is killed."""

    write: int
    """At which of its writes, from 1 on: before a rename, or after an append."""
    is_torn: bool = False
    """Whether half of the appended line is missing."""
    may_end_before: bool = False
    """Whether a run that writes once less than the counted one, as may be by timing, has ended by then."""


_FORKSERVER = get_context("forkserver")
"""Starts processes quickly; pytest has threads, which a fork of it would not take along."""
_FORKSERVER.set_forkserver_preload(["tests.api"])


def _run_until(
    home: Path,
    environ: Mapping[str, str],
    words: Sequence[str],
    sender: Connection | None,
    kill: Kill | None,
) -> None:
    writes = 0
    rename, sync = os.rename, os.fsync

    def is_last(kind: str) -> bool:
        nonlocal writes
        writes += 1
        if sender is not None:
            sender.send(kind)
        return kill is not None and writes == kill.write

    def rename_unless_killed(*places: Any, **options: Any) -> None:
        if is_last("rename"):
            os.kill(os.getpid(), signal.SIGKILL)
        rename(*places, **options)

    def sync_unless_killed(file: Any) -> None:
        sync(file)
        number = file if isinstance(file, int) else file.fileno()
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_APPEND and is_last("append"):
            assert kill is not None
            if kill.is_torn:
                size = os.fstat(number).st_size
                start = os.pread(number, size - 1, 0).rfind(b"\n") + 1
                os.ftruncate(number, (start + size) // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    vars(os).update(rename=rename_unless_killed, replace=rename_unless_killed, fsync=sync_unless_killed)
    with chdir(home):
        assert run_here(words, environ).code == 0


def run_here(
    words: Sequence[str], environ: Mapping[str, str] | None = None, stdin: bytes | str = b""
) -> Ended:
    """Run one command line in this process, with streams of its own; without a HOME of its own."""
    given = {"HOME": "/nowhere", **(environ or {})}
    data = [stdin if isinstance(stdin, bytes) else stdin.encode(), b"", b""]
    streams = [TextIOWrapper(BytesIO(one), "utf-8", "backslashreplace", write_through=True) for one in data]
    former = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        code = panda.cli.boundary.run(panda.cli.main.build_program(), list(words), given)
    finally:
        sys.stdin, sys.stdout, sys.stderr = former
    out, err = (bytes(stream.detach().getvalue()).decode() for stream in streams[1:])
    return Ended(code, out, err)


def open_pages(panda: Panda) -> "TestClient":
    """Return a client without a socket that asks for pages as a browser asks `panda view` for them."""
    from starlette.testclient import TestClient

    from panda.addons.view.application import ViewApplication
    from panda.addons.view.shelf import Shelf
    from panda.store.layout import UserStore

    present = datetime.fromisoformat(panda.environ["PANDA_NOW"])
    store = UserStore(panda.store, panda.user or "default", lambda: present)
    application = ViewApplication(Shelf(store)).application()
    return TestClient(application, base_url="http://127.0.0.1")


def on_terminal(
    panda: Panda, *words: str, width: int = 80, color: bool = False, typed: str = "", **environ: str
) -> str:
    """Return what a terminal of so many columns is sent by a command, with what is typed there."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    variables = {**panda.environ, "TERM": "xterm", "NO_COLOR": "" if color else "1", **environ}
    with subprocess.Popen(
        [*panda.program, *words], cwd=panda.home, env=variables, stdin=slave, stdout=slave, stderr=slave
    ):
        os.close(slave)
        os.write(master, typed.encode())
        shown = b""
        try:
            while chunk := os.read(master, 65536):
                shown += chunk
        except OSError:  # the last writer has gone
            pass
    os.close(master)
    return shown.decode().replace("\r\n", "\n")


def models_at(url: str, *, encoder: str = "null") -> str:
    """A models.yaml in which every layer that reads and writes has the model of a server."""
    return _MODELS.format(url=url, encoder=encoder)


class ModelServer(Server):
    """
    A model that writes, on loopback.

    Args:
        script: Gives what it writes to each call; "cut" is a reply that was cut off.
    """

    def __init__(self, script: Callable[[Asked], Any] | None = None, port: int = 0) -> None:
        super().__init__(port)
        self.script = script or Script()
        self.answer = self._write
        self.pages = {"/v1/models": {"data": [{"id": "scripted"}]}}

    def models(self, *, encoder: str = "null") -> str:
        """A models.yaml in which it is the model of every layer that reads and writes."""
        return models_at(self.url, encoder=encoder)

    def _write(self, body: dict[str, Any]) -> tuple[int, bytes]:
        said = self.script(Request(body))
        assert isinstance(said, str), said
        return reply('{"clauses": [', finish_reason="length") if said == "cut" else reply(said)


class ScriptedPanda(Panda):
    """
    Ann's laptops, and every layer is a scripted language model on loopback. A context manager: the model's
    server ends with it.

    Args:
        home: The directory; the store is `store` in it.
        store: Another store to copy; None is a store that does not exist yet.
        encoder: The encoder of models.yaml; "null" ranks by words alone.
    """

    def __init__(
        self, home: Path, store: Path | None = LAPTOPS, *, encoder: str = "null", **environ: str
    ) -> None:
        super().__init__(home, store, user="ann", **environ)
        self.server = ModelServer()
        self.write("models.yaml", self.server.models(encoder=encoder))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.server.close()

    def turn(  # type: ignore[override]  # `script` is no environment variable
        self,
        query: str = PRICE_QUESTION,
        *words: str,
        script: Callable[[Asked], Any] | None = None,
        **environ: str,
    ) -> Turn:
        """
        One turn to its end, in this process.

        Args:
            query: The query.
            words: Options of `panda turn`.
            script: Gives the model's replies; None are those of an approved answer to PRICE_QUESTION.
            environ: Further environment variables.
        """
        return self._answered(script or Script(), "turn", "--json", *words, "--", query, **environ)

    def resume(self, number: int, *words: str, script: Callable[[Asked], Any] | None = None) -> Turn:
        """Go on with an unfinished turn."""
        return self._answered(script or Script(), "turn", "--json", "--resume", str(number), *words)

    def say(self, query: str, *words: str, **replies: Any) -> Turn:
        """One turn of the session `talk` that is not halted; session and store are sound afterwards."""
        ended = self.turn(query, "--session", "talk", *words, script=Script(**replies))
        assert ended.code in (0, 21, 22), ended.out
        assert self.sessions_differ("talk") == []
        assert self.problems() == []
        return ended

    def _answered(self, script: Callable[[Asked], Any], *words: str, **environ: str) -> Turn:
        self.server.script = script
        before = len(self.server.asked)
        ended = self(*words, **environ)
        prompts = tuple(Request(body) for body in self.server.asked[before:])
        return Turn(ended.code, ended.out, ended.err, self.store, prompts)


def make_demo(root: Path, **environ: str) -> Path:
    """A store as `panda init --demo` makes it, its newest turn 1.2 hours old."""
    ended = run_here(("init", "--demo", "--root", str(root)), environ)
    assert ended.code == 0, ended.err
    return root


def unpack_store(name: str, directory: Path) -> Path:
    """A store that an earlier version made, from its archive below cases/stores."""
    with tarfile.open(CASES / "stores" / f"{name}.tar.gz") as archive:
        archive.extractall(directory, filter="data")
    return directory / "store"


def tree(root: Path) -> dict[str, bytes]:
    """Content of every file below a directory, by relative path."""
    return {
        str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


def digest(root: Path, *left_out: str) -> str:
    """One digest of all files below a directory with their paths, less those below the names left out."""
    whole = hashlib.sha256()
    for name, data in tree(root).items():
        if not name.startswith(left_out or ("\0",)):
            whole.update(f"{name}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()
