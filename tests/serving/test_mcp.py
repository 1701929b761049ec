"""`panda mcp` with the clients of the official SDK, on stdio and over HTTP."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.api import ROOT
from tests.outside import SECRET, Outside, link
from tests.scope_vectors import NOW_TEXT, VECTORS
from tests.serving.servers import PANDA, running, write_facts

TOOLS = ["synthesize_scope", "search_turns", "gather_context", "run_turn"]
ENVIRON = {name: os.environ[name] for name in ("HOME", "PATH", "XDG_CACHE_HOME")} | {"PANDA_NOW": NOW_TEXT}


@pytest.fixture(scope="module")
def store(indexed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo store."""
    return Path(shutil.copytree(indexed, tmp_path_factory.mktemp("mcp") / "panda-system-docs"))


def stdio(*words: str) -> StdioServerParameters:
    """A server that the client starts."""
    command, *first = PANDA
    return StdioServerParameters(command=command, args=[*first, "mcp", *words], env=ENVIRON, cwd=ROOT)


def run(act: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test's coroutine."""
    asyncio.run(act())


async def call(client: Client, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool gives, checked to be the same as text and as structure."""
    result = await client.call_tool(name, dict(arguments))
    found = result.structured_content
    assert isinstance(found, dict)
    assert [json.loads(block.text) for block in result.content if block.type == "text"] == [found]
    assert result.is_error == (found.get("ok") is False)
    return found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_vectors_on_stdio(mode: str, tmp_path: Path) -> None:
    """Each worked case gives its envelope, in both ages of the protocol."""
    file = tmp_path / "facts.json"

    async def act() -> None:
        write_facts(file, {"facts": []})
        async with Client(stdio("--facts", str(file)), mode=mode) as client:
            for vector in VECTORS:
                write_facts(file, vector.document)
                vector.check(await call(client, "synthesize_scope", vector.request))

    run(act)


def test_vectors_over_http(tmp_path: Path) -> None:
    """The same over streamable HTTP, with several clients at once."""
    file = tmp_path / "facts.json"

    async def act(url: str) -> None:
        async with Client(url) as first, Client(url, mode="legacy") as second:
            for vector in VECTORS:
                write_facts(file, vector.document)
                answers = (call(client, "synthesize_scope", vector.request) for client in (first, second) * 3)
                for answer in await asyncio.gather(*answers):
                    vector.check(answer)

    write_facts(file, {"facts": []})
    with running("mcp", "--http", "--facts", str(file), environ=ENVIRON) as server:
        run(lambda: act(server.url))
        assert server.stop() == 143


def test_tools_and_resources(store: Path) -> None:
    """Tools describe themselves and refuse what is wrong; memory and turns can be read, and nothing else."""

    async def act() -> None:
        async with Client(stdio("--root", str(store), "--user", "demo")) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == TOOLS
            assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)
            found = await call(client, "search_turns", {"query": "Lenovo", "limit": 2})
            assert [result["node_id"].partition(":")[0] for result in found["results"]] == ["turn", "turn"]
            page = await client.read_resource(found["results"][0]["uri"])
            assert "Lenovo" in page.contents[0].model_dump()["text"]
            for name, wrong, where in (
                ("synthesize_scope", {"scope": "mars"}, "scope"),
                ("synthesize_scope", {"scope": "local", "min_confidence": "NaN"}, "min_confidence"),
                ("search_turns", {}, "arguments"),
                ("search_turns", {"query": "x", "limit": 0}, "limit"),
                ("search_turns", {"query": "x", "session": "../x"}, "session"),
                ("run_turn", {"query": ""}, "QUERY"),
                ("run_turn", {"query": "x", "mode": "poem"}, "mode"),
                ("run_turn", {"query": "x", "session": "tea", "continue": True}, "continue"),
                ("run_turn", {"query": "x", "continue": "yes"}, "continue"),
            ):
                assert (await call(client, name, wrong))["error"]["where"] == where
            with pytest.raises(MCPError, match="there is no tool"):
                await client.call_tool("format_disk", {})
            uris = [str(one.uri) for one in (await client.list_resources()).resources]
            assert uris[:2] == ["panda://memory/preferences.md", "panda://memory/facts.md"]
            for uri in (*uris, "panda://turns/811/metadata.json"):
                assert (await client.read_resource(uri)).contents[0].model_dump()["text"]
            for uri in ("panda://turns/811/../../preferences.md", "panda://turns/4", "file:///etc/passwd"):
                with pytest.raises(MCPError):
                    await client.read_resource(uri)

    run(act)


def test_turns(store: Path) -> None:
    """
    Context is gathered into a turn that can go on, in a session of its own or the newest; a turn tells of its
    phases on the way and gives the answer with its sources. Both with the models of one server.
    """
    told: list[str | None] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        assert progress == len(told) + 1
        told.append(message)

    async def act() -> None:
        async with Client(stdio("--root", str(store), "--user", "demo")) as client:
            context = await call(client, "gather_context", {"query": "Which brands do I prefer?"})
            assert context["section"].startswith("## 2. Gathered Context")
            assert context["session"] == f"t{context['turn']:06}"
            assert "preferred_brands: Lenovo, ASUS" in context["section"]
            page = await client.read_resource(f"panda://turns/{context['turn']}")
            assert context["section"].splitlines()[0] in page.contents[0].model_dump()["text"]
            result = await client.call_tool(
                "run_turn", {"query": "Which brands do I prefer?", "session": "mcp"}, progress_callback=watch
            )
            found = result.structured_content
            assert isinstance(found, dict)
            assert (found["status"], found["session"], result.is_error) == ("approved", "mcp", False)
            assert "Lenovo" in found["response"]
            again = {"query": "Which brands do I prefer?", "continue": True}
            assert (await call(client, "gather_context", again))["session"] == "mcp"
            number = found["turn"]
            page = await client.read_resource(f"panda://turns/{number}/response.md")
            assert page.contents[0].model_dump()["text"].rstrip("\n") == found["response"]

    run(act)
    assert [text for text in told if text and text.startswith("phase 7")]
    assert len(told) >= 6


def test_stdout_is_the_protocols(tmp_path: Path) -> None:
    """Every line on stdout is a message of the protocol; an end of stdin ends the server with 0."""
    write_facts(tmp_path / "f.json", {"facts": []})
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    done = subprocess.run(
        [*PANDA, "mcp", "--facts", str(tmp_path / "f.json"), "-v"],
        cwd=ROOT,
        env=ENVIRON,
        input=f"no json\n{json.dumps(hello)}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [message["result"]["serverInfo"]["name"] for message in messages if "result" in message] == [
        "panda"
    ]


@asynccontextmanager
async def http_client(url: str, token: str) -> AsyncIterator[Client]:
    """A client that sends a token."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as transport,
        Client(streamable_http_client(url, http_client=transport)) as client,
    ):
        yield client


def test_token_over_http(tmp_path: Path) -> None:
    """Over HTTP the same token guards the tools."""
    write_facts(tmp_path / "f.json", {"facts": []})
    words = ("mcp", "--http", "--host", "0.0.0.0", "--facts", str(tmp_path / "f.json"))

    async def act(url: str) -> None:
        async with http_client(url, "right") as client:
            assert (await call(client, "synthesize_scope", {"scope": "team"}))["scope"] == "team"

    with running(*words, environ={**ENVIRON, "PANDA_TOKEN": "right"}) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        assert httpx2.post(url, json={}, trust_env=False).status_code == 401
        run(lambda: act(url))


class Wire:
    """A server on stdio that is spoken to in bare messages, so that anything can be said."""

    def __init__(self, errors: Path, *words: str) -> None:
        self.errors = errors
        self.asked = 100
        with errors.open("wb") as file:
            self.process = subprocess.Popen(
                [*PANDA, "mcp", *words],
                cwd=ROOT,
                env=ENVIRON,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
            )
        client = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        self.ask("initialize", client)
        self.tell("notifications/initialized", {})

    def tell(self, method: str, params: object, number: int | None = None) -> None:
        """Send a message."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        line = json.dumps(message if number is None else {**message, "id": number})
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """The next message."""
        assert self.process.stdout is not None
        found = json.loads(self.process.stdout.readline())
        assert isinstance(found, dict)
        return found

    def ask(self, method: str, params: object) -> dict[str, Any]:
        """What a request is answered."""
        self.asked += 1
        self.tell(method, params, self.asked)
        while (answer := self.hear()).get("id") != self.asked:
            """A notification."""
        return answer

    def end(self) -> str:
        """What it wrote to standard error."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()
        return self.errors.read_text(encoding="utf-8")


LONG = ["x" * 300, "x" * 5000, "y/" * 3000, "9" * 5000, "9" * 200, "../" * 2000]
NAMES = [
    *LONG,
    "a\0b",
    "\0",
    "a\nb",
    "\x1b[2J",
    "",
    " ",
    ".",
    "/",
    "//",
    "811/\0",
    "%00",
    "é" * 200,
]


def test_hostile_names(store: Path, tmp_path: Path) -> None:
    """Names that are too long, or hold NUL, line breaks and the like are errors that say so."""
    wire = Wire(tmp_path / "errors.txt", "--root", str(store), "--user", "demo")
    wire.tell("tools/call", {"name": "\ud800", "arguments": {}}, 9)  # half a character is no JSON
    for name in NAMES:
        for uri in (name, f"panda://{name}", f"panda://turns/{name}", f"panda://turns/811/{name}"):
            answer = wire.ask("resources/read", {"uri": uri})
            is_context = uri.rstrip("/. ").endswith("panda://turns/811") or "%00" in uri
            assert "error" in answer or is_context or uri == "panda://turns/", uri[:80]
            assert "Error:" not in str(answer.get("error", {}).get("message"))
        assert "error" in wire.ask("tools/call", {"name": name, "arguments": {}})
        for tool, arguments in (
            ("search_turns", {"query": "x", "session": name}),
            ("search_turns", {"query": "x", "since": name}),
            ("synthesize_scope", {"scope": name}),
            ("synthesize_scope", {"scope": "local", "as_of": name}),
            ("run_turn", {"query": "x", "session": name}),
            ("run_turn", {"query": "x", "mode": name}),
            ("run_turn", {"query": "x", "seed": name}),
            ("run_turn", {"query": "x", name: "x"}),
        ):
            result = wire.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
            assert result["structuredContent"]["error"]["type"].endswith("Error"), (tool, name[:80])
        found = wire.ask("tools/call", {"name": "search_turns", "arguments": {"query": f"Lenovo {name}"}})
        assert "result" in found, found
        assert not found["result"]["isError"] or "error" in found["result"]["structuredContent"]
    assert "Traceback" not in wire.end()


def test_whole_numbers(store: Path, tmp_path: Path) -> None:
    """A whole number is one, also as 2.0; truth values, texts and fractions are refused, each by its name."""
    wire = Wire(tmp_path / "errors.txt", "--root", str(store), "--user", "demo")

    def use(name: str, **arguments: object) -> dict[str, Any]:
        answer = wire.ask("tools/call", {"name": name, "arguments": {"query": "Lenovo", **arguments}})
        found = answer["result"]["structuredContent"]
        assert isinstance(found, dict)
        return found

    wrong: list[object] = [True, False, "5", 1.5, -1, -1.0, 1e300, 10**400, float("nan"), [1], {}]
    assert len(use("search_turns", limit=2.0)["results"]) == 2
    assert use("search_turns", limit=5.0) == use("search_turns", limit=5)
    assert use("gather_context", seed=7.0)["section"]
    for name, key in (("search_turns", "limit"), ("gather_context", "seed"), ("run_turn", "seed")):
        for value in wrong:
            refused = use(name, **{key: value})["error"]
            assert (refused["type"], refused["where"]) == ("UsageError", key), value
    for share in (True, 10**400, 1e400, "1", [0.5]):
        answer = wire.ask("tools/call", _synthesis(min_confidence=share))
        assert answer["result"]["structuredContent"]["error"]["where"] == "min_confidence", share
    assert "Traceback" not in wire.end()


def _synthesis(**arguments: object) -> dict[str, Any]:
    return {"name": "synthesize_scope", "arguments": {"scope": "local", **arguments}}


def test_cancelled_call(store: Path, tmp_path: Path) -> None:
    """A call that its client cancels stops: the turn is interrupted, and the server goes on."""
    wire = Wire(tmp_path / "errors.txt", "--root", str(store), "--user", "demo")
    ask = {"name": "run_turn", "arguments": {"query": "Which brands do I prefer?", "session": "cancelled"}}
    wire.tell("tools/call", {**ask, "_meta": {"progressToken": "p"}}, 7)
    turn = None
    while turn is None:
        told = str(wire.hear()["params"].get("message"))
        turn = Path(told.partition(" in ")[2]) if told.startswith("turn ") else None
    while not str(wire.hear()["params"].get("message")).startswith("phase 0"):
        """Before it begins."""
    wire.tell("notifications/cancelled", {"requestId": 7})
    metadata = turn / "metadata.json"
    for _ in range(300):
        if json.loads(metadata.read_text(encoding="utf-8"))["status"] == "interrupted":
            break
        time.sleep(0.1)
    assert json.loads(metadata.read_text(encoding="utf-8"))["status"] == "interrupted"
    answer = wire.ask("tools/call", {"name": "search_turns", "arguments": {"query": "Lenovo"}})
    assert answer["result"]["structuredContent"]["results"]
    wire.end()


def test_no_id_or_address_leads_elsewhere(store: Path, tmp_path: Path) -> None:
    """Ids and addresses of a client that are absolute, climb, name another or hold a NUL give nothing."""
    outside = Outside(tmp_path / "outside", store)
    own = Path(shutil.copytree(store, tmp_path / "store"))
    (own / "users/bob").mkdir()
    (own / "users/bob/facts.md").write_text(SECRET)
    link(own / "users/demo/turns/turn_999999", outside.store / "users/demo/turns/turn_000811")
    climb = "../" * 40 + str(outside.place)
    values = (str(outside.place), f"{climb}/secret.md", "..", "a\0b", "a\nb", "linked/x")

    async def act() -> None:
        async with Client(stdio("--root", str(own), "--user", "demo")) as client:
            for value in values:
                for name in ("search_turns", "gather_context", "run_turn"):
                    refused = await call(client, name, {"query": "tea", "session": value})
                    assert refused["error"]["where"] == "session"
                    assert SECRET not in json.dumps(refused)
                wrong = await call(client, "synthesize_scope", {"scope": value})
                assert wrong["error"]["where"] == "scope"
            paths = [quote(value, safe=safe) for value in values for safe in ("", "/")]
            uris = [f"panda://{top}{path}" for top in ("memory/", "turns/", "turns/811/") for path in paths]
            more = ("turns/999999/response.md", "memory/../../bob/facts.md", "memory/%2e%2e%2fbob/facts.md")
            for uri in (*uris, *(f"panda://{path}" for path in more), f"file://{outside.place}/secret.md"):
                with pytest.raises(MCPError) as refusal:
                    await client.read_resource(uri)
                assert SECRET not in str(refusal.value)

    run(act)
    assert outside.changes() == []


def test_a_client_is_told_the_outcome_and_what_is_closest(tmp_path: Path) -> None:
    """A client gets the passages apart from the response; the list of turns has outcomes."""
    root = tmp_path / "store"
    note = root / "users" / "ann" / "knowledge" / "garden.md"
    note.parent.mkdir(parents=True)
    note.write_text("# Garden\n\nThe shed key hangs behind the door.\n", encoding="utf-8")

    async def act() -> None:
        async with Client(stdio("--root", str(root), "--user", "ann")) as client:
            query = {"query": "How much does the Lenovo LOQ 15 cost?"}
            told = await call(client, "run_turn", query)
            assert (told["outcome"], told["response"]) == ("unsure", "Nothing surely answers this.")
            assert [passage["text"] for passage in told["closest"]] == ["The shed key hangs behind the door."]
            page = await client.read_resource("panda://turns")
            (turn,) = json.loads(page.contents[0].model_dump()["text"])["turns"]
            assert turn["outcome"] == "unsure"

    run(act)
