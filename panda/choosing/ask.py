"""What scorers ask of the models: looked up, computed, remembered, and written down."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from panda.choosing.decision import Step
from panda.choosing.fits import Fit
from panda.errors import RecipeKeyError
from panda.language.words import FUNCTION_WORDS, split_terms
from panda.models.contract import Encoder, Model, ModelInfo, ScoreCase, ScoreParams, Usage

Vectors = NDArray[np.float32]
Key = tuple[str, str, ScoreCase]  # model digest, prefix and case
_LEAST = 1e-6
_NONE_LACKING = 0.75  # what counts as the partners' cosine where a text has all words of a query


def prompt_sections(text: str, name: str) -> dict[str, str]:
    """The sections of a scorer's prompt file, by their `# heading`; a RecipeKeyError without one."""
    parts = re.split(r"(?m)^# (.+)\n", text)
    if len(parts) < 3:
        raise RecipeKeyError("a scorer's prompt file needs `# heading` sections", where=f"prompts/{name}")
    return {parts[i].strip(): parts[i + 1] for i in range(1, len(parts), 2)}


def section_items(text: str) -> list[str]:
    return [line[2:].strip() for line in text.splitlines() if line.startswith("- ")]


@dataclass(frozen=True)
class Memo:
    """What was computed before, by any recipe."""

    scores: dict[Key, tuple[float, int]] = field(default_factory=dict)  # (Log-probability, tokens)
    vectors: dict[tuple[str, str], Vectors] = field(default_factory=dict)
    """Vector by encoder digest and text, shape (width,)."""

    def clear(self) -> None:
        self.scores.clear()
        self.vectors.clear()


@dataclass(frozen=True)
class Pass:
    """What is written down of one scoring."""

    prefix: str  # what stood before every case
    cases: Sequence[ScoreCase]  # n continuations
    found: Sequence[tuple[float, int]]  # (Log-probability, tokens) of each
    known: Sequence[bool]  # whether each was computed earlier
    usage: Usage  # tokens
    seconds: float  # time of the model
    by: ModelInfo  # who gave it; may be the encoder


@dataclass(frozen=True)
class Ask:
    """The models of one choice, and what is known of their answers."""

    model: Model  # the language model of the recipe's layer
    encoder: Encoder | None  # gives vectors; None if models.yaml sets none
    memo: Memo  # what was computed before; added to
    prompt: Callable[[str], str]  # gives the text of a prompt file
    find_fit: Callable[[str], Fit | None]  # gives the fit of a file name; None if there is none
    recorded: Callable[[str, str, ScoreCase], tuple[float, int] | None]
    """Gives what the recorded turn holds for a model digest, prefix and case."""
    write: Callable[[Pass], None]  # writes a scoring down
    timeout_seconds: float  # wall clock of one call

    def sections(self, step: Step) -> dict[str, str]:
        return prompt_sections(self.prompt(step.prompt or ""), step.prompt or "")

    def score(self, prefix: str, cases: Sequence[ScoreCase]) -> list[tuple[float, int]]:
        """Log-probability and number of tokens of each continuation; written down."""
        keys, known = self._look_up(self.model.info, prefix, cases)
        todo = list(dict.fromkeys(key for key, before in zip(keys, known, strict=True) if not before))
        seconds, usage = 0.0, Usage(0, 0, 0)
        if todo:
            params = ScoreParams(self.timeout_seconds)
            scores = self.model.score(prefix, [case for _, _, case in todo], params)
            self.memo.scores.update(zip(todo, zip(scores.logprobs, scores.tokens, strict=True), strict=True))
            seconds, usage = scores.seconds, scores.usage
        found = [self.memo.scores[key] for key in keys]
        self.write(Pass(prefix, cases, found, known, usage, seconds, self.model.info))
        return found

    def judge(
        self,
        by: ModelInfo,
        prefix: str,
        cases: Sequence[ScoreCase],
        compute: Callable[[], tuple[Sequence[float], Usage, float]],
    ) -> list[float]:
        """
        Logarithms of probabilities that something other than a likelihood gives, one a case; written down
        like those. *prefix* names everything that they depend on besides the cases; *compute* gives values,
        tokens and seconds if they are not known.
        """
        keys, known = self._look_up(by, prefix, cases)
        usage, seconds = Usage(0, 0, 0), 0.0
        if not all(known):
            values, usage, seconds = compute()
            self.memo.scores.update(zip(keys, ((value, 1) for value in values), strict=True))
        found = [self.memo.scores[key] for key in keys]
        self.write(Pass(prefix, cases, found, known, usage, seconds, by))
        return [value for value, _ in found]

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Vectors of n texts, shape (n, width), each computed once; there must be an encoder."""
        assert self.encoder is not None
        digest, kept = self.encoder.info.digest, self.memo.vectors
        todo = [text for text in dict.fromkeys(texts) if (digest, text) not in kept]
        if todo:
            for text, vector in zip(todo, self.encoder.encode(todo), strict=True):
                kept[digest, text] = vector
        return np.array([kept[digest, text] for text in texts], np.float32)

    def cosines(self, query: str, texts: Sequence[str]) -> list[float]:
        """Cosine of the query with each text, in order: the same whatever else is asked beside it."""
        found = self.vectors([query, *texts])
        return [round(math.fsum(map(float, row * found[0])), 6) for row in found[1:]]

    def partners(self, query: str, text: str) -> tuple[float, int]:
        """
        What a text says of those words of a query that it lacks: their mean cosine with the nearest of the
        text's other words, each word as the encoder reads it in its place; and how many are lacking.
        """
        assert self.encoder is not None
        asked, said = self.encoder.encode_words(query), self.encoder.encode_words(text)
        held = set(split_terms(text))
        telling = [one for one in asked if one[0].isalnum() and one[0] not in FUNCTION_WORDS]
        lacking = [vector for word, vector in telling or asked if held.isdisjoint(split_terms(word))]
        terms = {term for word, _ in telling or asked for term in split_terms(word)}
        others = [vector for word, vector in said if word.isalnum() and terms.isdisjoint(split_terms(word))]
        if not lacking or not others:
            return _NONE_LACKING if not lacking else 0.0, len(lacking)
        nearest = (np.array(lacking) @ np.array(others).T).max(axis=1)
        return round(math.fsum(map(float, nearest)) / len(nearest), 6), len(lacking)

    def judge_cosines(self, query: str, texts: Sequence[str]) -> list[float]:
        """The cosines, written down as (1 + cosine) / 2."""
        assert self.encoder is not None
        cases = [ScoreCase("", text) for text in texts]

        def compute() -> tuple[list[float], Usage, float]:
            shares = [(1 + cosine) / 2 for cosine in self.cosines(query, texts)]
            return [math.log(min(1.0, max(_LEAST, share))) for share in shares], Usage(0, 0, 0), 0.0

        found = self.judge(self.encoder.info, f"[cosine]\n{query}\n", cases, compute)
        return [round(2 * math.exp(value) - 1, 6) for value in found]

    def _look_up(
        self, by: ModelInfo, prefix: str, cases: Sequence[ScoreCase]
    ) -> tuple[list[Key], list[bool]]:
        """Keys of the cases, and which were computed before, in this process or in the recorded turn."""
        memo = self.memo.scores
        keys = [(by.digest, prefix, case) for case in cases]
        for key in keys:
            recorded = None if key in memo else self.recorded(*key)
            if recorded:
                memo[key] = recorded
        return keys, [key in memo for key in keys]
