"""What every model backend offers, and the values that go in and out."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from panda.documents.pictures import Picture
from panda.errors import HaltError, ModelTimeoutError

if TYPE_CHECKING:  # numpy waits until a model is asked for
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]  # texts: shape (n, width), each of length 1


class Deadline:
    """The end of a call's allowed time, which begins now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._start = time.monotonic()

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._start

    @property
    def left_seconds(self) -> float:
        return self.seconds - self.elapsed_seconds

    @property
    def passed(self) -> bool:
        return self.left_seconds <= 0

    def check(self) -> None:
        """Raises ModelTimeoutError where the time is over."""
        if self.passed:
            raise self.error("the model", fix="raise timeout_ms in the recipe, or use a faster model")

    def error(
        self, model: str, error_class: type[ModelTimeoutError] = ModelTimeoutError, **place: Any
    ) -> ModelTimeoutError:
        """Return the error to be raised where *model* was not done in time."""
        expected = f"a reply within {self.seconds:g} seconds"
        received = f"nothing complete after {self.elapsed_seconds:.1f} seconds"
        message = f"{model} took longer than {self.seconds:g} seconds"
        return error_class(message, expected=expected, received=received, **place)


@dataclass(frozen=True)
class Message:
    role: Literal["system", "user", "assistant"]  # who speaks
    content: str  # the text
    pictures: tuple[Picture, ...] = ()  # what is shown before the text; only models that see take any


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, by the model's own tokenizer. None means unknown, never 0."""

    prompt: int | None  # tokens of the whole prompt, reused ones included
    reused: int | None  # how many of them were not computed again
    output: int | None  # tokens written, or scored as options

    def __add__(self, other: "Usage") -> "Usage":
        """
        Tokens of both together; what is unknown in one is unknown in the sum.

        >>> Usage(1, None, 2) + Usage(1, 0, 0)
        Usage(prompt=2, reused=None, output=2)
        """
        pairs = [(getattr(self, name), getattr(other, name)) for name in ("prompt", "reused", "output")]
        return Usage(*(None if a is None or b is None else a + b for a, b in pairs))


@dataclass(frozen=True)
class GenerateParams:
    temperature: float  # 0 always takes the likeliest token
    max_tokens: int  # most model tokens to write; reaching it gives finish_reason "length"
    seed: int  # same seed, model, messages and params: same text
    timeout_seconds: float  # wall clock for the whole call
    schema: Mapping[str, object] | None = None  # JSON Schema of the text; None writes free text


@dataclass(frozen=True)
class TokenLogprob:
    """One token of a reply, and how probable it was there."""

    start: int  # where it begins in the text, in characters
    end: int  # behind its last character
    logprob: float  # natural logarithm of its probability, at most 0


@dataclass(frozen=True)
class Completion:
    text: str  # without stop tokens
    finish_reason: Literal["stop", "length"]  # "length" when max_tokens cut it
    usage: Usage
    seconds: float  # wall clock
    reasoning: str = ""  # what a model that thinks wrote before the text; kept in calls.jsonl, never shown
    repairs: tuple[str, ...] = ()  # names of what was done to the reply so that it can be read
    logprobs: tuple[TokenLogprob, ...] = ()
    """Tokens of the text as its server tells them, in order; empty where it tells none. A recorded completion
    has those of the value that decides."""

    def logprob_of(self, start: int, end: int) -> float | None:
        """Return the log-probability of the tokens of a piece of the text; None where one is not known."""
        tokens = self.tokens_of(start, end)
        at = start
        for token in tokens:
            if token.start > at:
                return None
            at = token.end
        return sum(token.logprob for token in tokens) if tokens and at >= end else None

    def tokens_of(self, start: int, end: int) -> tuple[TokenLogprob, ...]:
        """Return the tokens that hold a piece of the text, the first and last with what else they hold."""
        return tuple(token for token in self.logprobs if token.start < end and token.end > start)


@dataclass(frozen=True)
class ScoreCase:
    context: str  # text between the shared prefix and the continuation; may be empty
    continuation: str  # whose log-probability is wanted; begins with its own space


@dataclass(frozen=True)
class ScoreParams:
    timeout_seconds: float  # wall clock for all cases together


@dataclass(frozen=True)
class Scores:
    """Natural logarithms of each continuation's probability, summed over its tokens, in case order."""

    logprobs: tuple[float, ...]
    tokens: tuple[int, ...]  # number of tokens of each continuation
    usage: Usage
    seconds: float  # wall clock


@dataclass(frozen=True)
class ModelInfo:
    """What is known of a model without running it."""

    name: str  # its key in models.yaml
    digest: str  # sha256 of what decides its output (file or URL and name), hex
    n_ctx: int  # context window in model tokens
    scores: bool  # whether it gives log-probabilities of texts
    extra: Mapping[str, object] = field(default_factory=dict)  # facts that only its backend has
    embeds: bool = False  # whether it is an encoder
    sees: bool = False  # whether messages may hold pictures
    thinking_tokens: int = 0  # how much of n_ctx is for reasoning, which counts against no recipe's budget

    def check_room(self, prompt: int, output: int, about: str = "") -> None:
        """Raises HaltError where so many model tokens do not fit the window together."""
        if prompt + output > self.n_ctx:
            raise HaltError(
                f"the prompt of {about}{prompt:,} and output of {output:,} model tokens do not fit into "
                f"the context window of {self.n_ctx:,}",
                where=f"models.{self.name}.n_ctx",
                fix="shorten the input, lower the recipe's output budget, or raise n_ctx",
                expected=f"at most {self.n_ctx:,} model tokens",
                received=f"{about}{prompt + output:,} model tokens",
            )


class Encoder(Protocol):
    """Texts as vectors whose cosine tells how near they are in meaning. Loaded when first asked."""

    @property
    def info(self) -> ModelInfo: ...

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """A vector of each text, shape (n, width), computed alone; of a long text the beginning counts."""
        ...

    def encode_words(self, text: str) -> list[tuple[str, "Vectors"]]:
        """Each word and sign of a text, in order, with its vector of length 1 in its place."""
        ...


class Model(Protocol):
    """One loaded or loadable model. Nothing is loaded before the first call that needs it."""

    @property
    def info(self) -> ModelInfo: ...

    def check_file(self) -> None:
        """Raises ModelFileError for a file that cannot be loaded; reads its head alone."""
        ...

    def count_model_tokens(self, text: str) -> int:
        """Length of plain text in the model's own tokens."""
        ...

    def render_chat(self, messages: Sequence[Message]) -> str:
        """The messages as the model's chat template writes them, open for the assistant's reply."""
        ...

    def generate(self, messages: Sequence[Message], params: GenerateParams) -> Completion:
        """
        Write one completion. Raises ModelTimeoutError, ModelAwayError where a server does not answer,
        HaltError where the prompt does not fit the window, ModelFileError for a picture that it cannot see.
        """
        ...

    def score(self, prefix: str, cases: Sequence[ScoreCase], params: ScoreParams) -> Scores:
        """
        Log-probability of each case's continuation after prefix + context, which are tokenised separately,
        every case alone. Raises ModelTimeoutError, HaltError for no room or where info.scores is false.
        """
        ...


class Layers(Protocol):
    """Gives the model of a layer and frees what of it was loaded on demand; gives the encoder, if any."""

    @property
    def sees(self) -> bool: ...  # whether EYES has a model
    def is_offline(self, layer: str) -> bool: ...  # whether no model serves the layer
    def model(self, layer: str) -> Model: ...  # raises ModelFileError of a layer that is offline or unset
    def serving(self, models_by_layer: Mapping[str, str]) -> "Layers": ...  # other models for some layers
    def release(self, layer: str) -> None: ...
    def encoder(self) -> Encoder | None: ...
