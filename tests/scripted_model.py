"""A model whose replies are written down beforehand, for tests and replay."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from panda.errors import HaltError
from panda.models.contract import (
    Completion,
    GenerateParams,
    Message,
    ModelInfo,
    ScoreCase,
    ScoreParams,
    Scores,
    TokenScores,
    Usage,
)
from panda.models.replies import compile_schema

if TYPE_CHECKING:
    from panda.models.contract import Vectors

_WIDTH = 256
_WORD = re.compile(r"\s*\S+\s*|\s+")


@dataclass(frozen=True)
class Asked:
    """One call that a scripted model got: messages of generate, or prefix and cases of score."""

    messages: tuple[Message, ...] = ()
    prefix: str = ""
    cases: tuple[ScoreCase, ...] = ()
    params: GenerateParams | ScoreParams | None = None  # as given

    @property
    def is_score(self) -> bool:
        return isinstance(self.params, ScoreParams)

    @property
    def text(self) -> str:
        """Everything that was said, in order."""
        if self.is_score:
            return "\n".join([self.prefix, *(case.context + case.continuation for case in self.cases)])
        return "\n".join(message.content for message in self.messages)


Reply = str | Completion | Scores | Sequence[float] | Exception
"""A text to write, log-probabilities in case order, either of them in full, or an error to raise."""


def in_order(*replies: Reply) -> Callable[[Asked], Reply | None]:
    """Each call takes the next reply; after the last there is none."""
    left = iter(replies)
    return lambda _: next(left, None)


def by_text(replies: Mapping[str, Reply]) -> Callable[[Asked], Reply | None]:
    """The reply of the first key that occurs in what was asked."""
    return lambda asked: next((reply for key, reply in replies.items() if key in asked.text), None)


class ScriptedModel:
    """A model that replies as told, and fails where it is not told. One token is one word."""

    def __init__(
        self,
        answer: Callable[[Asked], Reply | None],
        *,
        name: str = "scripted",
        n_ctx: int = 8192,
        writes: bool = True,
        scores: bool = True,
    ) -> None:
        self._answer = answer
        digest = hashlib.sha256(f"scripted {name}".encode()).hexdigest()
        self._info = ModelInfo(name, digest, n_ctx, writes, scores, {"backend": "scripted"}, sees=True)
        self.asked: list[Asked] = []
        """Every call so far."""

    @property
    def info(self) -> ModelInfo:
        return self._info

    def check_file(self) -> None:
        """There is none."""

    def count_model_tokens(self, text: str) -> int:
        return len(_WORD.findall(text))

    def render_chat(self, messages: Sequence[Message]) -> str:
        """One paragraph a message."""
        return "".join(f"{message.role}: {message.content}\n\n" for message in messages) + "assistant:"

    def generate(self, messages: Sequence[Message], params: GenerateParams) -> Completion:
        """The scripted completion, cut after params.max_tokens words."""
        if params.schema is not None:
            compile_schema(params.schema)
        prompt = self.count_model_tokens(self.render_chat(messages))
        self._info.check_room(prompt, params.max_tokens)
        reply = self._reply(Asked(messages=tuple(messages), params=params))
        if isinstance(reply, Completion):
            return reply
        assert isinstance(reply, str), f"the scripted reply to a generate call is {reply!r}"
        words = _WORD.findall(reply)
        written = words[: params.max_tokens]
        usage = Usage(prompt, reused=0, output=len(written))
        return Completion("".join(written), "stop" if written == words else "length", usage, seconds=0.0)

    def score(self, prefix: str, cases: Sequence[ScoreCase], params: ScoreParams) -> Scores:
        """The scripted log-probabilities, one number a case."""
        if not self._info.scores:
            fix = "give the layer another model"
            raise HaltError(f"the model {self._info.name} does not score options", fix=fix)
        counts = [self.count_model_tokens(case.continuation) for case in cases]
        shared = self.count_model_tokens(prefix)
        contexts = [self.count_model_tokens(case.context) for case in cases]
        for before, after in zip(contexts, counts, strict=True):
            self._info.check_room(shared + before, after)
        reply = self._reply(Asked(prefix=prefix, cases=tuple(cases), params=params))
        if isinstance(reply, Scores):
            return reply
        assert not isinstance(reply, str | Completion), f"the scripted reply to a score call is {reply!r}"
        assert len(reply) == len(cases), f"{len(reply)} scripted values for {len(cases)} cases"
        usage = Usage(prompt=shared + sum(contexts), reused=0, output=sum(counts))
        return Scores(tuple(map(float, reply)), tuple(counts), usage, 0.0)

    def score_tokens(self, prefix: str, text: str, params: ScoreParams) -> TokenScores:
        """The scripted log-probabilities, one a word; the call looks like a score of one case a word."""
        words = _WORD.findall(text)
        scores = self.score(prefix, [ScoreCase("", word) for word in words], params)
        ends = tuple(sum(map(len, words[: n + 1])) for n in range(len(words)))
        return TokenScores(scores.logprobs, ends, scores.usage, scores.seconds)

    def _reply(self, asked: Asked) -> str | Completion | Scores | Sequence[float]:
        self.asked.append(asked)
        reply = self._answer(asked)
        if isinstance(reply, Exception):
            raise reply
        if reply is None:
            raise AssertionError(f"nothing is scripted for call {len(self.asked)}:\n{asked.text[-2000:]}")
        return reply


class ScriptedEncoder:
    """
    An encoder for which texts mean the same as far as they have the same words: their cosine is about the
    number of words in both by the root of the product of their numbers. *same*: word → word that it means.
    """

    def __init__(self, same: Mapping[str, str] | None = None) -> None:
        self._same = same or {}
        digest = hashlib.sha256(f"scripted encoder {sorted(self._same.items())}".encode()).hexdigest()
        self.info = ModelInfo("scripted", digest, 256, False, False, {"backend": "scripted"}, embeds=True)
        self.asked: list[str] = []
        """Every text so far."""

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """The sum of fixed directions, one for each different word, shape (n, 256); zeros without words."""
        self.asked += texts
        vectors = np.zeros((len(texts), _WIDTH), np.float32)
        for row, text in enumerate(texts):
            for word in {self._same.get(word, word) for word in re.findall(r"\w+", text.casefold())}:
                bits = np.unpackbits(np.frombuffer(hashlib.sha256(word.encode()).digest(), np.uint8))
                vectors[row] += bits * np.float32(2) - 1
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)

    def encode_words(self, text: str) -> "list[tuple[str, Vectors]]":
        """Each word with its direction, whatever stands beside it."""
        words = re.findall(r"\w+", text.casefold())
        return list(zip(words, self.encode(words), strict=True))
