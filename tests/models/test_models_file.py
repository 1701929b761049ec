"""models.yaml and the layers built from it."""

import json
from pathlib import Path
from typing import Any

import pytest

from panda.errors import ModelFileError, StoreError
from panda.models.contract import GenerateParams, Message
from panda.models.layers import Layers
from panda.models.models_file import LAYERS, load_models_file, parse_models_file
from panda.models.survey import survey_models
from tests.api import run_here
from tests.loopback import Answer
from tests.models.conftest import Server, reply

PACKAGED = Path(__file__).parents[2] / "models.yaml"
LOCAL = "{backend: llama_cpp, location: a.gguf, n_ctx: 2048}"
SERVED = "{backend: openai, location: 'http://localhost:1/v1', model: m, n_ctx: 2048, api_key_env: KEY}"


def test_packaged_file_gives_every_layer_but_eyes(cache_dir: Path) -> None:
    """All text layers share the one embedded model; EYES is unset, and using it says so."""
    file = load_models_file(PACKAGED)
    with Layers(file, cache_dir=cache_dir, environ={}) as layers:
        assert len({id(layers.model(name)) for name in ("REFLEX", "NERVES", "MIND", "VOICE")}) == 1
        assert [state.info and state.info.name for state in survey_models(file, layers)] == [
            "smollm2-135m",
            "minilm-l6",
        ]
        encoder = layers.encoder()
        assert encoder is not None
        assert encoder.info.name == "minilm-l6"
        with pytest.raises(ModelFileError, match="EYES has no model") as caught:
            layers.model("EYES")
    lines = PACKAGED.read_text(encoding="utf-8").splitlines()
    eyes = next(number for number, text in enumerate(lines, 1) if text.lstrip().startswith("EYES:"))
    assert str(caught.value.where).endswith(f"models.yaml:{eyes} (layers.EYES)")


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
        (
            f"models: {{a: {LOCAL[:-1]}, requantize: q8}}}}\nlayers: {{}}",
            "models.a.requantize",
            "did you mean q8_0?",
        ),
        (f"models: {{a: {LOCAL.replace('2048', 'big')}}}\nlayers: {{}}", "models.a.n_ctx", "8192"),
        (f"models: {{a: {SERVED[:-1]}, scores: true}}}}\nlayers: {{}}", "models.a.scores", "scores: false"),
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
            f"models: {{a: {LOCAL[:-1]}, thinking_tokens: 99}}}}\nlayers: {{}}",
            "models.a.thinking_tokens",
            "a model that writes",
        ),
        (
            f"models: {{a: {LOCAL[:-1]}, writes: true, thinking_tokens: 9}}}}\nlayers: {{}}",
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
    ],
)
def test_wrong_entry_is_named(text: str, where: str, fix: str) -> None:
    """Unknown keys, backends, layers and models, and wrong values, name file, key and what to write."""
    with pytest.raises(ModelFileError) as caught:
        parse_models_file(text, path=Path("models.yaml"))
    assert (caught.value.key or f":{caught.value.line}") == where
    assert fix in str(caught.value.fix)


def test_a_list_of_servers_has_a_width() -> None:
    """A location may be a list of URLs; the width is how many requests all of them serve at the same time."""
    text = f"""\
models:
  one: {SERVED}
  three: {{backend: openai, location: [http://a/v1, http://a/v2, https://a/v1],
    model: m, n_ctx: 9, parallel: 8}}
  here: {LOCAL}
layers: {{REFLEX: here, MIND: three, EYES: one}}
"""
    file = parse_models_file(text, path=Path("models.yaml"))
    one, three, here = (file.models[name] for name in ("one", "three", "here"))
    assert three.servers == ("http://a/v1", "http://a/v2", "https://a/v1")
    assert (one.servers, here.servers) == (("http://localhost:1/v1",), ())
    assert (one.width, three.width, here.width, file.width) == (1, 24, None, 24)
    narrow = parse_models_file(text.replace("REFLEX: here", "REFLEX: one"), path=Path("models.yaml"))
    local = parse_models_file(text.replace("MIND: three", "MIND: here"), path=Path("models.yaml"))
    assert (narrow.width, local.width) == (1, None)


def test_relative_location_starts_at_the_file(tmp_path: Path) -> None:
    """A relative path is looked for next to models.yaml, and a missing file is named."""
    path = tmp_path / "models.yaml"
    path.write_text(f"models: {{a: {LOCAL}}}\nlayers: {{MIND: a}}")
    layers = Layers(load_models_file(path), cache_dir=tmp_path / "cache", environ={})
    with pytest.raises(ModelFileError, match=r"no model file a\.gguf") as caught:
        layers.model("MIND")
    assert caught.value.where == str(tmp_path / "a.gguf")


def test_missing_api_key_names_the_variable(tmp_path: Path) -> None:
    """A server whose key is not in the environment is an error that says which variable to set."""
    file = parse_models_file(f"models: {{a: {SERVED}}}\nlayers: {{MIND: a}}", path=tmp_path / "models.yaml")
    with pytest.raises(ModelFileError, match="KEY is not set"):
        Layers(file, cache_dir=tmp_path, environ={}).model("MIND")
    assert Layers(file, cache_dir=tmp_path, environ={"KEY": "k"}).model("MIND").info.scores is False


def test_missing_file_is_a_store_error(tmp_path: Path) -> None:
    """A models.yaml that is not there cannot be read."""
    with pytest.raises(StoreError, match="No such file"):
        load_models_file(tmp_path / "models.yaml")


def documented() -> list[str]:
    """The first five examples of docs/models.md."""
    page = (PACKAGED.parent / "docs" / "models.md").read_text(encoding="utf-8")
    return [part.split("```")[0] for part in page.split("```yaml\n")[1:6]]


@pytest.mark.parametrize("example", [1, 2])
def test_validate_accepts_the_documented_servers(example: int, demo: Path, tmp_path: Path) -> None:
    """`panda validate` finds nothing wrong in a project whose models are those of Ollama or llama-server."""
    (tmp_path / "models.yaml").write_text(documented()[example], encoding="utf-8")
    environ = {"PANDA_MODELS_FILE": str(tmp_path / "models.yaml")}
    ended = run_here(["validate", "--root", str(demo), "--user", "demo"], environ)
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("backend", "port"), [("ollama", 11434), ("llama-server", 8080), ("lmstudio", 1234), ("vllm", 8000)]
)
def test_the_program_of_a_server_is_a_backend(backend: str, port: int) -> None:
    """It stands for its URL on this machine; what else is wrong is told as of any server."""
    text = f"models: {{a: {{backend: {backend}, model: m, n_ctx: 9}}}}\nlayers: {{}}"
    spec = parse_models_file(text, path=Path("models.yaml")).models["a"]
    assert (spec.servers, spec.scores) == ((f"http://localhost:{port}/v1",), False)
    with pytest.raises(ModelFileError, match="no location for"):
        parse_models_file(text.replace("n_ctx", "location: a.gguf, n_ctx"), path=Path("models.yaml"))


@pytest.mark.parametrize(
    ("backend", "meant"), [("Ollama", "ollama"), ("llama_server", "llama-server"), ("LMStudio", "lmstudio")]
)
def test_another_spelling_of_a_backend(backend: str, meant: str) -> None:
    """Who writes it otherwise is told how it is written."""
    with pytest.raises(ModelFileError) as caught:
        parse_models_file(f"models: {{a: {{backend: {backend}}}}}\nlayers: {{}}", path=Path("models.yaml"))
    assert (caught.value.key, caught.value.fix) == ("models.a.backend", f"did you mean {meant}?")


def _like_ollama(body: dict[str, Any]) -> tuple[int, bytes]:
    """Knows one model, thinks in `reasoning`, follows a schema, tells no log-probabilities."""
    if body["model"] != "qwen3:8b":
        words = {"message": f"model '{body['model']}' not found", "type": "not_found_error"}
        return 404, json.dumps({"error": words}).encode()
    return reply(_said(body), reasoning="The sky.", usage={"prompt_tokens": 9, "completion_tokens": 50})


def _like_llama_server(body: dict[str, Any]) -> tuple[int, bytes]:
    """Takes any name of its model, thinks in `reasoning_content`, follows a schema, tells probabilities."""
    status, data = reply(_said(body), reasoning_content="The sky.", usage={"completion_tokens": 50})
    value = json.loads(data)
    if body.get("logprobs"):
        value["choices"][0]["logprobs"] = {"content": [{"token": "{", "logprob": -0.1, "top_logprobs": []}]}
    return status, json.dumps(value | {"timings": {"prompt_n": 9}}).encode()


def _said(body: dict[str, Any]) -> str:
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return '{"colour": "blue"}' if schema and "colour" in schema["properties"] else "Blue."


@pytest.mark.parametrize(
    ("example", "answer", "logprobs"), [(1, _like_ollama, "no"), (2, _like_llama_server, "yes")]
)
def test_what_check_finds_of_the_documented_servers(
    example: int, answer: Answer, logprobs: str, server: Server, tmp_path: Path
) -> None:
    """The examples of Ollama and llama-server, but for the port, as `panda models check` tells of them."""
    server.answer = answer
    text = documented()[example].replace("{backend:", f"{{location: '{server.url}', backend:")
    (tmp_path / "models.yaml").write_text(text + "encoder: null\n", encoding="utf-8")
    environ = {"PANDA_MODELS_FILE": str(tmp_path / "models.yaml"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    ended = run_here(["models", "check"], environ)
    assert ended.code == 0, ended.err
    head, row = (line.split("\t") for line in ended.out.splitlines())
    cells = dict(zip(head, row, strict=True))
    assert (cells["replies"], cells["thinks"], cells["logprobs"]) == ("json_schema", "yes", logprobs)
    (tmp_path / "models.yaml").write_text(text.replace("qwen3:8b", "qwen"), encoding="utf-8")
    other = run_here(["models", "check"], environ)
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
def test_a_doubled_key_names_both_lines(text: str, key: str, lines: tuple[int, int]) -> None:
    """A key that stands twice in one map is an error with both of its lines, and no last one that wins."""
    first, second = lines
    with pytest.raises(ModelFileError) as caught:
        parse_models_file(text, path=Path("models.yaml"))
    assert caught.value.where == f"models.yaml:{second}"
    assert f"the key '{key}' stands in line {first} and again in line {second}" in caught.value.message


def test_documented_example_is_valid() -> None:
    """The servers, the fleet and the stack shown in docs/models.md are read without complaint."""
    served, ollama, llama_server, fleet, stack = documented()
    assert parse_models_file(ollama, path=Path("models.yaml")).models["qwen"].location.endswith(":11434/v1")
    assert parse_models_file(llama_server, path=Path("models.yaml")).models["qwen"].n_ctx == 16384
    assert parse_models_file(served, path=Path("models.yaml")).models["thinker"].thinking_tokens == 8192
    assert parse_models_file(fleet, path=Path("models.yaml")).width == 16
    assert all(parse_models_file(stack, path=Path("models.yaml")).layers.values())


def test_each_layer_asks_its_own_server(tmp_path: Path, five_servers: list[Server]) -> None:
    """Of five models on five servers each layer's calls reach its own, under its own name and keys."""
    entries = [
        f"  m{n}: {{backend: openai, location: '{server.url}', model: big-{n}, n_ctx: 4096, "
        f"thinking_tokens: {n}, headers: {{x-layer: '{layer}'}}}}\n"
        for n, (layer, server) in enumerate(zip(LAYERS, five_servers, strict=True))
    ]
    named = ", ".join(f"{layer}: m{n}" for n, layer in enumerate(LAYERS))
    text = f"models:\n{''.join(entries)}layers: {{{named}}}\n".replace("m4: {", "m4: {writes: true, ")
    file = parse_models_file(text, path=tmp_path / "models.yaml")
    with Layers(file, cache_dir=tmp_path, environ={}) as layers:
        for n, layer in enumerate(LAYERS):
            params = GenerateParams(temperature=0, max_tokens=10 * n + 10, seed=0, timeout_seconds=10)
            layers.model(layer).generate((Message("user", layer),), params)
    for n, (layer, server) in enumerate(zip(LAYERS, five_servers, strict=True)):
        assert [(a["model"], a["messages"][0]["content"], a["max_tokens"]) for a in server.asked] == [
            (f"big-{n}", layer, 11 * n + 10)
        ]
        assert server.headers[0]["x-layer"] == layer
