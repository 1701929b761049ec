"""The server that comes with llama-cpp-python, on loopback, with the embedded GGUF as a model that writes."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest
from msgspec import structs

from panda.errors import ContextWindowError, ModelAwayError
from panda.models.layers import LoadedLayers
from panda.models.llama.gguf import find_gguf
from panda.models.model_contract import GenerateParams, Message
from panda.models.models_file import parse_models_file
from panda.models.openai import OpenAiModel
from panda.models.survey import check_models
from tests.models.conftest import BUILTIN

pytestmark = pytest.mark.skipif(
    find_spec("fastapi") is None, reason="llama-cpp-python[server] is not installed"
)
MODELS = """\
models:
  small: {{backend: openai, location: "http://127.0.0.1:{port}/v1", model: small, n_ctx: 2048}}
layers: {{REFLEX: small, NERVES: small, MIND: small, VOICE: small}}
encoder: null
"""
SERVER = """\
from llama_cpp import llama_cpp
from llama_cpp.server.__main__ import main

params = llama_cpp.llama_model_default_params()
params.use_extra_bufts = False
llama_cpp.llama_model_default_params = lambda: params
main()
"""
"""Its command, but for weights repacked for AMX: with those some builds crash at the first request."""


@pytest.fixture
def layers(tmp_path: Path) -> Iterator[LoadedLayers]:
    """Models of a running server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    gguf = find_gguf(BUILTIN, relative_to=tmp_path)
    options = {"model": gguf, "port": port, "host": "127.0.0.1", "n_ctx": 2048, "n_threads": 1}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-c", SERVER, *words, "--verbose", "false"]
    with (
        (tmp_path / "server.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as server,
        LoadedLayers(
            parse_models_file(MODELS.format(port=port), path=tmp_path / "models.yaml"),
            cache_dir=tmp_path,
            environ={},
        ) as opened_layers,
    ):
        try:
            _wait_for(opened_layers, server, tmp_path / "server.log")
            yield opened_layers
        finally:
            server.terminate()


def _wait_for(layers: LoadedLayers, server: "subprocess.Popen[bytes]", log: Path) -> None:
    model = layers.model("MIND")
    assert isinstance(model, OpenAiModel)
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        try:
            return model.check_alive(within_seconds=1)
        except ModelAwayError:
            time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_its_dialect_is_found(layers: LoadedLayers) -> None:
    """The server answers json_schema with 500, and takes a schema beside json_object."""
    (state,) = check_models(layers._file, lambda: layers)
    assert state.error is None
    assert state.trial is not None
    assert (state.trial.structured, state.trial.thinks) == ("json_object", False)


def test_long_limits_do_not_crash_it(layers: LoadedLayers) -> None:
    """A schema whose texts may have 6,000 characters gets a reply; sent whole it is a segmentation fault."""
    model = layers.model("MIND")
    text = {"type": "string", "maxLength": 6000}
    schema = {"type": "object", "additionalProperties": False, "required": ["a"], "properties": {"a": text}}
    params = GenerateParams(temperature=0, max_tokens=200, seed=3, timeout_seconds=60, schema=schema)
    completion = model.generate([Message("user", 'Reply with the JSON object {"a": "b"}.')], params)
    assert completion.text.lstrip().startswith("{")


def test_its_log_probabilities_are_placed_in_the_reply(layers: LoadedLayers) -> None:
    """The tokens that it tells stand where the reply has them, the chosen value among them."""
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "green", "blue"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    params = GenerateParams(temperature=0, max_tokens=60, seed=0, timeout_seconds=60, schema=schema)
    completion = layers.model("MIND").generate((Message("user", "Which colour is the sky?"),), params)
    colour = json.loads(completion.text)["colour"]
    start = completion.text.index(colour)
    logprob = completion.logprob_of(start, start + len(colour))
    assert logprob is not None
    assert -20 < logprob < 0


def test_a_prompt_that_is_too_long_for_it_is_told(layers: LoadedLayers) -> None:
    """Its refusal of a prompt beyond its window names the window, whatever n_ctx says."""
    params = GenerateParams(temperature=0, max_tokens=60, seed=0, timeout_seconds=60)
    prompt = "The sky is wide and clear today. " * 300
    spec = structs.replace(layers._file.models["small"], n_ctx=32_768)
    with (
        closing(OpenAiModel(spec)) as model,
        pytest.raises(ContextWindowError, match="maximum context length is 2048 tokens"),
    ):
        model.generate((Message("user", prompt),), params)
