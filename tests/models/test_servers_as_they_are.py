"""What real servers send, and what comes of it: a reply, or an error with their words and an exit code."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api import PRICE_QUESTION, ROOT, ScriptedPanda
from tests.loopback import reply
from tests.script import Request, Script, step_of

HTML = b"""<html>\r
<head><title>502 Bad Gateway</title></head>\r
<body><center><h1>502 Bad Gateway</h1></center><hr><center>nginx/1.24.0</center></body>\r
</html>\r
"""
CLOUDFLARE = b"""<!DOCTYPE html><html><head><style>p{}</style>
<title>api.example | 524: A timeout occurred</title></head></html>"""


@pytest.fixture
def ann(tmp_path: Path) -> Iterator[ScriptedPanda]:
    """Ann's laptops, with every layer on a server on loopback."""
    with ScriptedPanda(tmp_path / "project", XDG_CACHE_HOME=str(tmp_path / "cache")) as panda:
        yield panda


def body_of(**values: Any) -> bytes:
    return json.dumps(values).encode()


def error_of(message: str, **values: Any) -> bytes:
    """An error as most servers send it."""
    return body_of(error={"message": message, **values})


def choice(content: Any, **values: Any) -> tuple[int, bytes]:
    """An answer with one choice, which may lack a finish_reason or have further keys."""
    return 200, body_of(
        choices=[{"index": 0, "message": {"role": "assistant", "content": content}, **values}]
    )


def stream(text: str, *, is_whole: bool = True) -> tuple[int, bytes, Mapping[str, str]]:
    """A reply as the events of a stream, in two pieces."""
    middle = len(text) // 2
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[:middle]}, {"content": text[middle:]}]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if is_whole:
        choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    lines = [": keep-alive", *(f"data: {json.dumps({'choices': [event]})}" for event in choices)]
    if is_whole:
        lines.append("data: [DONE]")
    return 200, "\n\n".join(lines).encode() + b"\n\n", {"Content-Type": "text/event-stream"}


STYLES: Mapping[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
    "plain": (lambda text: choice(text, finish_reason="stop"), ()),
    "content as parts": (
        lambda text: choice([{"type": "text", "text": text}], finish_reason="stop"),
        ("content_parts",),
    ),
    "thinking as a part": (
        lambda text: choice(
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                {"type": "text", "text": text},
            ],
            finish_reason="stop",
        ),
        ("content_parts",),
    ),
    "finish_reason is null": (lambda text: choice(text, finish_reason=None), ("finish_reason",)),
    "no finish_reason": (choice, ("finish_reason",)),
    "finish_reason of TGI": (lambda text: choice(text, finish_reason="eos_token"), ("finish_reason",)),
    "harmony channels": (
        lambda text: choice(
            "<|channel|>analysis<|message|>The user {wants} JSON.<|end|><|start|>assistant"
            f"<|channel|>final <|constrain|>json<|message|>{text}<|return|>",
            finish_reason="stop",
        ),
        ("harmony_channels",),
    ),
    "channels without marks": (
        lambda text: choice(f"analysisThe user wants JSON.assistantfinal{text}", finish_reason="stop"),
        ("harmony_channels",),
    ),
    "thoughts before": (
        lambda text: choice(f"<think>\nIs {{it}} so?\n</think>\n\n{text}", finish_reason="stop"),
        ("think_tags",),
    ),
    "code fence": (lambda text: choice(f"```json\n{text}\n```", finish_reason="stop"), ("code_fence",)),
    "words around": (
        lambda text: choice(f"Sure!\n{text} I hope {{this}} helps!", finish_reason="stop"),
        ("surrounding_text",),
    ),
    "words and fence": (
        lambda text: choice(f"Here it is:\n```json\n{text}\n```\nMore?", finish_reason="stop"),
        ("code_fence",),
    ),
    "trailing comma": (
        lambda text: choice(f"{text[:-1]},\n}}", finish_reason="stop"),
        ("trailing_commas",),
    ),
    "list of one": (lambda text: choice(f"[{text}]", finish_reason="stop"), ("list_of_one",)),
    "line ends in strings": (
        lambda text: choice(
            text.replace('"resolved_query": "', '"resolved_query": "\n'), finish_reason="stop"
        ),
        ("line_ends",),
    ),
    "stream": (stream, ("event_stream",)),
}
"""How servers send a reply that is right, by name, and the repairs that calls.jsonl names."""


@pytest.mark.parametrize("style", STYLES)
def test_a_reply_is_read_and_its_repairs_are_written_down(style: str, ann: ScriptedPanda) -> None:
    """A turn is approved whatever stands around each reply, and calls.jsonl tells what was taken off."""
    send, repairs = STYLES[style]
    script = Script()
    ann.server.answer = lambda body: send(str(script(Request(body))))
    turn = ann.turn()
    assert turn.code == 0, turn.out
    assert turn.status == "approved"
    names = {name for call in turn.calls for name in call.get("repairs", ())}
    assert names == set(repairs)
    assert ann.problems() == []


LLAMA_SERVER = body_of(
    error={
        "code": 400,
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 1607,
        "n_ctx": 512,
    }
)
VLLM = body_of(
    object="error",
    message="This model's maximum context length is 1024 tokens. However, you requested 2224 tokens (1824 in "
    "the messages, 400 in the completion). Please reduce the length of the messages or completion.",
    type="BadRequestError",
    code=400,
)
OPENAI = error_of(
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 "
    "tokens. Please reduce the length of the messages.",
    type="invalid_request_error",
    param="messages",
    code="context_length_exceeded",
)
TGI = body_of(
    error="Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1824 "
    "`inputs` tokens and 400 `max_new_tokens`",
    error_type="validation",
)
LM_STUDIO = body_of(
    error="Trying to keep the first 1824 tokens when context the overflows. However, the model is loaded "
    "with context length of only 1024 tokens, which is not enough. Try to load the model with a larger "
    "context length, or provide a shorter input"
)
OLLAMA = error_of("the input length exceeds the context length", type="invalid_request_error")
SGLANG = body_of(
    object="error",
    message="The input (1824 tokens) is longer than the model's context length (1024 tokens).",
    code=400,
)


@dataclass(frozen=True)
class Failure:
    """What a server sends instead of a reply, and what is told."""

    answer: tuple[int, bytes]
    code: int
    error: str
    words: tuple[str, ...]
    """What message and fix hold."""
    asked: int | None = 1
    """How often the server is asked; None if that is open."""


FAILURES: Mapping[str, Failure] = {
    "llama-server, prompt too long": Failure(
        (400, LLAMA_SERVER), 20, "ContextWindowError", ("HTTP 400: the request exceeds", "n_ctx: 512")
    ),
    "vLLM, prompt too long": Failure(
        (400, VLLM), 20, "ContextWindowError", ("you requested 2224 tokens", "n_ctx: 1024")
    ),
    "OpenAI, prompt too long": Failure(
        (400, OPENAI), 20, "ContextWindowError", ("resulted in 9001 tokens", "n_ctx: 8192")
    ),
    "TGI, prompt too long": Failure(
        (422, TGI), 20, "ContextWindowError", ("HTTP 422: Input validation error", "n_ctx: 2048")
    ),
    "LM Studio, prompt too long": Failure(
        (400, LM_STUDIO), 20, "ContextWindowError", ("Trying to keep the first 1824", "n_ctx: 1024")
    ),
    "Ollama, prompt too long": Failure(
        (400, OLLAMA), 20, "ContextWindowError", ("the input length exceeds", "set n_ctx")
    ),
    "SGLang, prompt too long": Failure(
        (400, SGLANG), 20, "ContextWindowError", ("longer than the model's context", "n_ctx: 1024")
    ),
    "llama-cpp-python, prompt too long, as 500": Failure(
        (500, error_of("Requested tokens (1824) exceed context window of 1024")),
        *(20, "ContextWindowError"),
        ("Requested tokens (1824)", "n_ctx: 1024"),
    ),
    "an error with 200, prompt too long": Failure(
        (200, OPENAI), 20, "ContextWindowError", ("resulted in 9001 tokens",)
    ),
    "a gateway's page": Failure((502, HTML), 75, "ModelAwayError", ("HTTP 502: 502 Bad Gateway",), 5),
    "a page of Cloudflare": Failure(
        (524, CLOUDFLARE), 75, "ModelAwayError", ("HTTP 524: api.example | 524: A timeout occurred",), 5
    ),
    "too many requests": Failure(
        (429, error_of("Rate limit reached for m")), 75, "ModelAwayError", ("Rate limit reached",), 5
    ),
    "no slot": Failure((503, error_of("Loading model")), 75, "ModelAwayError", ("Loading model",), 5),
    "a gateway's time is over": Failure((504, b"upstream timed out"), 75, "ModelAwayError", ("504",), 5),
    "an error with 200, that of OpenRouter": Failure(
        (200, error_of("Provider returned error", code=502)),
        *(75, "ModelAwayError"),
        ("HTTP 200 with error 502: Provider returned error",),
        5,
    ),
    "an error in the choice": Failure(
        (200, body_of(choices=[{"error": {"code": 429, "message": "slow down"}, "finish_reason": "error"}])),
        *(75, "ModelAwayError"),
        ("HTTP 200 with error 429: slow down",),
        5,
    ),
    "an error with 200, as a text": Failure(
        (200, body_of(error="model runner has unexpectedly stopped")),
        *(75, "ModelAwayError"),
        ("model runner has unexpectedly stopped",),
        None,
    ),
    "an error with 200 that stays": Failure(
        (200, error_of("Invalid API key", code=401)),
        *(2, "ModelFileError"),
        ("HTTP 200 with error 401: Invalid API key", "environment variable"),
    ),
    "an error in a stream": Failure(
        (200, b'data: {"error": {"message": "Overloaded", "type": "overloaded_error"}}\n\ndata: [DONE]\n\n'),
        *(75, "ModelAwayError"),
        ("Overloaded",),
        5,
    ),
    "a stream that stops": Failure(
        stream('{"a": 1}', is_whole=False)[:2], 75, "ModelAwayError", ("its stream stops",), 5
    ),
    "half an answer": Failure(
        (200, b'{"choices": [{"message": {"content": "{}'), 75, "ModelAwayError", ("its answer stops",), 5
    ),
    "temperature": Failure(
        (400, error_of("Unsupported value: 'temperature' does not support 0 with this model.")),
        *(2, "ModelFileError"),
        ("refuses temperature", "extra_body: {temperature: null}"),
    ),
    "seed": Failure(
        (422, error_of("Extra inputs are not permitted: seed")),
        *(2, "ModelFileError"),
        ("refuses seed", "extra_body: {seed: null}"),
    ),
    "max_tokens": Failure(
        (400, error_of("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")),
        *(2, "ModelFileError"),
        ("refuses max_tokens", "max_tokens_key: max_completion_tokens"),
    ),
    "streams alone": Failure(
        (400, error_of("This model only supports stream mode, please enable the stream parameter")),
        *(2, "ModelFileError"),
        ("extra_body: {stream: true}",),
    ),
    "credit": Failure(
        (402, error_of("Insufficient Balance")), 20, "HaltError", ("HTTP 402: Insufficient Balance",)
    ),
    "model": Failure(
        (404, error_of('model "m" not found, try pulling it first')),
        *(2, "ModelFileError"),
        ("does not know the URL or the model", "try pulling it first"),
    ),
    "the page of a login": Failure(
        (200, b"<!doctype html><html><head><title>Sign in &amp; go on</title></head><body></body></html>"),
        *(20, "HaltError"),
        ("it is no JSON", "HTTP 200: Sign in & go on", "chat completions protocol"),
    ),
    "content filter": Failure(
        choice("", finish_reason="content_filter"), 20, "HaltError", ("content_filter",)
    ),
    "refusal": Failure(
        (
            200,
            body_of(choices=[{"message": {"content": None, "refusal": "I can't."}, "finish_reason": "stop"}]),
        ),
        *(20, "HaltError"),
        ("I can't.",),
    ),
    "prose": Failure(
        choice("The sky is blue, of course.", finish_reason="stop"),
        *(20, "ReplyError"),
        ('"The sky is blue, of course."',),
        None,
    ),
    "two objects": Failure(
        choice('Either {"a": 1} or {"a": 2}.', finish_reason="stop"),
        *(20, "ReplyError"),
        ('Either {"a": 1} or {"a": 2}.',),
        None,
    ),
    "a list of more": Failure(
        choice('[{"a": 1}, 5]', finish_reason="stop"),
        *(20, "ReplyError"),
        ('not a JSON object, but "[{"a": 1}, 5]"',),
        None,
    ),
    "a broken object": Failure(
        choice('{"resolved_query": {"a": 1}, oops', finish_reason="stop"),
        *(20, "ReplyError"),
        ('"{"resolved_query": {"a": 1}, oops"',),
        None,
    ),
}
"""What servers send instead of a reply."""


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.usefixtures("pauses")
def test_what_is_no_reply_is_told_with_the_words_of_the_server(name: str, ann: ScriptedPanda) -> None:
    """
    Message and fix say what the server said and what to do. Only what may pass is asked again, although the
    server's dialect is not known yet.
    """
    failure = FAILURES[name]
    ann.write("models.yaml", ann.server.models().replace(",\n    structured: json_schema", ""))
    ann.server.answer = lambda _: failure.answer
    turn = ann.turn()
    assert (turn.code, turn.error["type"]) == (failure.code, failure.error), turn.out
    message = f"{turn.error['message']} {turn.error['fix']}"
    assert [words for words in failure.words if words not in message] == [], message
    assert "</" not in message
    if failure.asked is not None:
        assert len(ann.server.asked) == failure.asked
    assert ann.problems() == []


def with_usage(**usage: Any) -> Callable[[dict[str, Any]], Any]:
    """Replies as in an approved turn, each with a usage and what else stands beside it."""
    script = Script()
    beside = usage.pop("beside", {})

    def answer(body: dict[str, Any]) -> tuple[int, bytes]:
        value = json.loads(reply(str(script(Request(body))), usage=usage)[1])
        return 200, body_of(**{**value, **beside})

    return answer


def test_a_model_that_ollama_lacks_is_told_with_the_command_to_get_it(ann: ScriptedPanda) -> None:
    """An entry of the backend ollama names what Ollama can pull."""
    path = ann.home / "models.yaml"
    text = path.read_text(encoding="utf-8").replace("backend: openai", "backend: ollama")
    path.write_text(text, encoding="utf-8")
    ann.server.answer = lambda _: (404, error_of("model 'scripted' not found"))
    turn = ann.turn()
    assert turn.code == 2
    assert turn.error["fix"].startswith("ollama pull scripted, or correct ")


@pytest.mark.asks_for("shop.example")
def test_a_turn_without_its_server_is_told_the_way_without_a_model(ann: ScriptedPanda) -> None:
    """The error names the option, and with it the same question is answered."""
    ann.server.die()
    turn = ann.turn()
    assert turn.code == 75
    assert "panda turn -m offline answers without a model" in turn.error["fix"]
    assert ann.turn(PRICE_QUESTION, "-m", "offline").code == 0


def test_a_prompt_that_the_server_cut_halts_the_turn(ann: ScriptedPanda) -> None:
    """A server that counts far fewer tokens than were sent has cut the prompt: both numbers, and no retry."""
    ann.server.answer = with_usage(prompt_tokens=150, completion_tokens=20)
    turn = ann.turn()
    assert (turn.code, turn.error["type"]) == (20, "ContextWindowError"), turn.out
    assert re.search(r"read 150 of about [1-9][\d,]+ tokens", turn.error["message"])
    assert "n_ctx (32,768)" in turn.error["message"]
    assert "OLLAMA_CONTEXT_LENGTH" in turn.error["fix"]
    assert len(ann.server.asked) == 1
    assert turn.interventions[0]["type"] == "context_window"


@pytest.mark.parametrize("read", [0, 1, 40, 1_400, 9_000])
def test_other_counts_are_no_sign_of_a_cut(read: int, ann: ScriptedPanda) -> None:
    """Servers that count nothing, or with another tokenizer, are believed to have read the prompt."""
    ann.server.answer = with_usage(prompt_tokens=read, completion_tokens=20)
    turn = ann.turn("Hello!")
    assert turn.code in (0, 20, 21, 22)
    assert (turn.value.get("error") or {}).get("type") != "ContextWindowError"


CACHED: Mapping[str, dict[str, Any]] = {
    "OpenAI": {"prompt_tokens_details": {"cached_tokens": 1_024}},
    "DeepSeek": {"prompt_cache_hit_tokens": 1_024, "prompt_cache_miss_tokens": 3_000},
    "Moonshot": {"cached_tokens": 1_024},
    "llama-server": {"beside": {"timings": {"cache_n": 1_024, "prompt_n": 3_000}}},
    "older llama-server": {"beside": {"tokens_cached": 1_024}},
}
"""How servers tell what they had in their cache."""


@pytest.mark.parametrize("server", CACHED)
def test_cached_tokens_are_recorded_and_added_up(server: str, ann: ScriptedPanda) -> None:
    """They stand in calls.jsonl as `reused`, and `panda stats` adds them up."""
    ann.server.answer = with_usage(prompt_tokens=4_024, completion_tokens=20, **CACHED[server])
    turn = ann.turn()
    assert turn.status == "approved"
    calls = [call for call in turn.calls if call["kind"] == "generate"]
    assert {call["usage"]["reused"] for call in calls} == {1_024}
    groups = ann.json("stats", "--by", "model")["groups"]
    assert groups["scripted"]["tokens_cached"] == 1_024 * len(calls)


WINDOWS: Mapping[str, tuple[str, dict[str, object], int]] = {
    "vLLM": ("vllm", {"/v1/models": {"data": [{"id": "m", "max_model_len": 16_384}]}}, 16_384),
    "llama-server": (
        "llama-server",
        {
            "/v1/models": {"data": [{"id": "m", "meta": {"n_ctx_train": 131_072}}]},
            "/props": {"default_generation_settings": {"n_ctx": 12_288}, "total_slots": 2},
        },
        12_288,
    ),
    "Ollama, loaded": (
        "ollama",
        {
            "/api/show": {"model_info": {"qwen3.context_length": 40_960}, "parameters": "top_k 20"},
            "/api/ps": {"models": [{"name": "m", "model": "m", "context_length": 10_240}]},
        },
        10_240,
    ),
    "Ollama, set in the Modelfile": (
        "ollama",
        {"/api/show": {"model_info": {}, "parameters": "stop x\nnum_ctx                        9000"}},
        9_000,
    ),
    "Ollama, by default": ("ollama", {"/api/show": {"model_info": {}}, "/api/ps": {"models": []}}, 4_096),
    "LM Studio": (
        "lmstudio",
        {"/api/v0/models": {"data": [{"id": "x"}, {"id": "m", "loaded_context_length": 8_192}]}},
        8_192,
    ),
    "TGI": ("openai", {"/info": {"max_total_tokens": 7_000, "model_id": "m"}}, 7_000),
}
"""How servers tell their windows: backend, pages, and the window."""


def without_window(panda: ScriptedPanda, backend: str = "openai") -> None:
    """Put the scripted model into models.yaml without n_ctx."""
    entry = f"{{backend: {backend}, location: '{panda.server.url}', model: m, structured: json_schema}}"
    layers = ", ".join(f"{layer}: m" for layer in ("REFLEX", "NERVES", "MIND", "VOICE"))
    panda.write("models.yaml", f"models:\n  m: {entry}\nlayers: {{{layers}}}\nencoder: null\n")


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_that_is_not_given_is_found_out(name: str, ann: ScriptedPanda) -> None:
    """Without n_ctx the server is asked for its window, each kind of server in its own way."""
    backend, pages, tokens = WINDOWS[name]
    without_window(ann, backend)
    ann.server.pages = {"/v1/models": {"data": [{"id": "m"}]}, **pages}
    models = ann.json("models", "list")["models"]
    assert [model["n_ctx"] for model in models] == [tokens]


def test_a_turn_keeps_within_the_window_that_was_found_out(ann: ScriptedPanda) -> None:
    """A turn for which the window is too small is refused before anything is sent."""
    without_window(ann)
    ann.server.pages = {"/v1/models": {"data": [{"id": "m", "max_model_len": 1_024}]}}
    turn = ann.turn()
    assert (turn.code, turn.error["type"]) == (2, "RecipeBudgetError"), turn.out
    assert "window of 1024 tokens of m" in turn.error["message"]
    assert ann.server.asked == []
    ann.server.pages = {"/v1/models": {"data": [{"id": "m", "max_model_len": 16_384}]}}
    assert ann.turn().status == "approved"


def test_a_window_that_no_server_tells_has_to_be_given(ann: ScriptedPanda) -> None:
    """A server that does not tell its window ends the command with 2; one that is away with 75."""
    without_window(ann)
    turn = ann.turn()
    assert (turn.code, turn.error["where"]) == (2, "models.m.n_ctx"), turn.out
    assert "add n_ctx" in turn.error["fix"]
    ann.server.die()
    turn = ann.turn()
    assert (turn.code, turn.error["type"]) == (75, "ModelAwayError"), turn.out


def test_a_window_smaller_than_n_ctx_is_found_by_the_check(ann: ScriptedPanda) -> None:
    """`panda models check` compares n_ctx with what the server tells."""
    ann.server.answer = lambda _: reply('{"colour": "blue"}', usage={"completion_tokens": 50})
    ann.server.pages = {"/v1/models": {"data": [{"id": "scripted", "max_model_len": 4_096}]}}
    ended = ann("models", "check", "--json")
    assert ended.code == 3
    (model,) = ended.data["models"]
    assert model["error"] == "n_ctx is 32,768, but the window of the server has 4,096 tokens"


def with_logprobs(text: str, logprob_of: Callable[[str], float]) -> tuple[int, bytes]:
    """A reply whose tokens are words and signs, each with a log-probability."""
    tokens = re.findall(r"\w+|\W", text)
    content = [{"token": token, "logprob": logprob_of(token), "bytes": [*token.encode()]} for token in tokens]
    return choice(text, finish_reason="stop", logprobs={"content": content})


def telling(panda: ScriptedPanda, probability: float, script: Script | None = None) -> None:
    """Have the server tell that probability of each pass, and 1 of all else, when asked for it."""
    script = script or Script()
    chosen = math.log(probability)

    def answer(body: dict[str, Any]) -> Any:
        text = str(script(Request(body)))
        if not body.get("logprobs"):
            return reply(text)
        return with_logprobs(text, lambda token: chosen if token == "pass" else 0.0)

    panda.server.answer = answer


def gates(panda: ScriptedPanda, key: str) -> list[tuple[float | None, str | None]]:
    """Confidence and gate of the executions of a recipe, in order."""
    lines = panda.json("log", "-n", "0")["lines"]
    return [(line["confidence"], line.get("gate")) for line in lines if line["key"] == key]


GATED = "pipeline/phase2_5_context_validator"
"""A recipe whose gate may ask back; its verdict decides."""


def test_the_confidence_is_the_probability_that_the_server_tells(ann: ScriptedPanda) -> None:
    """The gate holds for a server that tells log-probabilities, and those of the value are written down."""
    telling(ann, 0.9)
    turn = ann.turn()
    assert turn.status == "approved", turn.out
    assert gates(ann, GATED) == [(0.9, "passed")]
    (call,) = [call for call in turn.calls if call["recipe"] == GATED]
    ((start, end),) = [(token["start"], token["end"]) for token in call["logprobs"]]
    assert call["output"][start:end] == "pass"
    assert ann.problems() == []


@pytest.mark.parametrize(
    ("below_threshold", "code", "asked"),
    [("proceed", 0, 1), ("clarify", 21, 1), ("halt", 20, 1), ("retry", 20, 3)],
)
def test_a_confidence_below_the_threshold_goes_the_way_of_the_gate(
    below_threshold: str, code: int, asked: int, ann: ScriptedPanda
) -> None:
    """The gate of a recipe is applied to the confidence of a server, too."""
    recipe = yaml.safe_load((ROOT / "recipes" / f"{GATED}.yaml").read_text(encoding="utf-8"))
    recipe["quality_gates"] |= {"below_threshold": below_threshold, "max_retries": 2}
    ann.write(f"recipes/{GATED}.yaml", yaml.safe_dump(recipe))
    telling(ann, 0.2)
    turn = ann.turn()
    assert turn.code == code, turn.out
    assert len([body for body in ann.server.asked if step_of(Request(body)) == "context"]) == asked
    if code in (0, 21):
        assert gates(ann, GATED) == [(0.2, "below")]


def test_a_replay_has_the_confidence_of_the_recording(ann: ScriptedPanda) -> None:
    """A replay takes the confidence from calls.jsonl: nothing is asked, and nothing comes out otherwise."""
    telling(ann, 0.9)
    turn = ann.turn()
    asked = len(ann.server.asked)
    ended = ann("replay", str(turn.number), "--json")
    assert ended.code == 0, ended.out
    assert len(ann.server.asked) == asked


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "logprobs is not supported for this model"),
        (403, "You are not allowed to request logprobs from this model"),
        (500, "logprobs is not supported for models created with logits_all=False"),
        (422, "Extra inputs are not permitted"),
    ],
)
def test_a_server_that_refuses_log_probabilities_is_asked_without(
    status: int, words: str, ann: ScriptedPanda
) -> None:
    """A refusal is remembered, also by later commands; the gate stays not measured."""
    script = Script()
    ann.server.answer = lambda body: (
        (status, error_of(words)) if body.get("logprobs") else reply(str(script(Request(body))))
    )
    turn = ann.turn()
    assert turn.status == "approved", turn.out
    assert [body.get("logprobs") for body in ann.server.asked].count(True) == 1
    assert gates(ann, GATED) == [(None, "not_measured")]
    before = len(ann.server.asked)
    assert ann.process("turn", "--json", "--", PRICE_QUESTION).code in (0, 20)
    assert True not in [body.get("logprobs") for body in ann.server.asked[before:]]


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        [],
        {"content": None},
        {"content": [{"token": "x"}]},
        {"content": [{"token": 5, "logprob": -1}]},
        {"content": [{"token": "another text", "logprob": -0.1}]},
        {"tokens": ["a"], "token_logprobs": [-0.1]},
    ],
)
def test_log_probabilities_of_another_form_measure_nothing(logprobs: Any, ann: ScriptedPanda) -> None:
    """Tokens that cannot be placed in the reply are left out; the reply counts all the same."""
    script = Script()
    ann.server.answer = lambda body: choice(script(Request(body)), finish_reason="stop", logprobs=logprobs)
    turn = ann.turn()
    assert turn.status == "approved", turn.out
    assert gates(ann, GATED) == [(None, "not_measured")]


def test_a_reply_that_is_refused_is_asked_for_again_with_its_words(ann: ScriptedPanda) -> None:
    """The model is shown what it wrote, and how that was no JSON."""
    turn = ann.turn(script=Script(context=["Yes, go on.", {"verdict": "pass"}]))
    assert turn.status == "approved"
    again = turn.asked("context")[1].text
    assert 'but "Yes, go on."' in again


def test_the_system_message_of_a_step_is_the_same_in_each_turn(ann: ScriptedPanda) -> None:
    """A message that never changes comes first: servers that keep prefixes compute it once."""
    with_tools = {"planner": {"tools": ["memory.query"], "next_step": "coordinator"}}
    systems: dict[str, set[str]] = {}
    for query in (PRICE_QUESTION, "Which tea do I like?", "What is 3 times 4?"):
        for request in ann.turn(query, script=Script(**with_tools)).prompts:
            systems.setdefault(step_of(request), set()).add(request.messages[0].content)
    assert len(systems) >= 8
    assert {step: len(texts) for step, texts in systems.items() if len(texts) > 1} == {}
