"""What every backend promises, run against each of them."""

import json
import time
from typing import Any

import pytest

from panda.errors import HaltError, ModelTimeoutError, RecipeSchemaError
from panda.models.llama.model import LlamaCppModel
from panda.models.model_contract import GenerateParams, Message, Model
from tests.models.conftest import Server, reply

CHAT = (Message("system", "You are brief."), Message("user", "Name a colour."))
CHOICE = {"type": "object", "properties": {"a": {"enum": ["x", "yy"]}}, "required": ["a"]}
BACKENDS = ("llama_cpp", "openai")


def params(**changes: Any) -> GenerateParams:
    values: dict[str, Any] = {"temperature": 0.7, "max_tokens": 12, "seed": 1, "timeout_seconds": 60.0}
    return GenerateParams(**values | changes)


def _serve(body: dict[str, Any]) -> tuple[int, bytes]:
    words = '{"a": "x"}' if "response_format" in body else "Blue is one of many colours ."
    most = body["max_tokens"]
    cut = len(words.split()) > most
    usage = {"prompt_tokens": 20, "completion_tokens": min(most, len(words.split()))}
    text = " ".join(words.split()[:most])
    return reply(text, finish_reason="length" if cut else "stop", usage=usage)


@pytest.fixture(params=BACKENDS)
def any_model(request: pytest.FixtureRequest, server: Server, model: LlamaCppModel) -> Model:
    """One model of each backend, with a window of 1024 tokens."""
    server.answer = _serve
    return model if request.param == "llama_cpp" else server.model()


def test_same_seed_same_text(any_model: Model) -> None:
    """Equal messages and params give equal text."""
    assert any_model.generate(CHAT, params()).text == any_model.generate(CHAT, params()).text


def test_cut_output_is_marked(any_model: Model) -> None:
    """A reply that max_tokens cut has finish_reason "length" and no more tokens than allowed."""
    completion = any_model.generate((Message("user", "Tell me a story."),), params(max_tokens=3))
    assert completion.finish_reason == "length"
    assert completion.usage.output == 3


def test_schema_is_kept(any_model: Model) -> None:
    """A reply under a schema is JSON that satisfies it."""
    completion = any_model.generate(CHAT, params(schema=CHOICE, max_tokens=30))
    assert completion.finish_reason == "stop"
    assert json.loads(completion.text)["a"] in ("x", "yy")


def test_bad_schema_is_refused(any_model: Model) -> None:
    """A schema that no grammar can hold is an error before anything is written."""
    with pytest.raises(RecipeSchemaError, match='"not"'):
        any_model.generate(CHAT, params(schema={"not": {}}))


def test_prompt_over_the_window_halts(any_model: Model) -> None:
    """Prompt and output together must fit the window; the message has the numbers."""
    with pytest.raises(HaltError, match=r"1,024"):
        any_model.generate((Message("user", "word " * 1020),), params())


def test_usage_is_counted(any_model: Model) -> None:
    """Tokens are numbers where the backend knows them, else None."""
    usage = any_model.generate(CHAT, params()).usage
    assert usage.prompt is not None
    assert usage.prompt > 0
    assert usage.output is not None
    assert 0 < usage.output <= 12


@pytest.mark.parametrize("backend", ["llama_cpp", "openai"])
def test_timeout_is_an_error(backend: str, server: Server, model: LlamaCppModel) -> None:
    """A call that takes longer than allowed ends with an error, not with half a reply."""

    def slow(_: dict[str, Any]) -> tuple[int, bytes]:
        time.sleep(0.3)
        return reply("late")

    server.answer = slow
    served = server.model()
    slow_model: Model = model if backend == "llama_cpp" else served
    with pytest.raises(ModelTimeoutError, match=r"0\.05 seconds"):
        slow_model.generate((Message("user", "long " * 900),), params(timeout_seconds=0.05))
