"""Choosing the next token from logits: temperature, seed, and a grammar."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from panda.errors import RecipeSchemaError

LEAST_SHARE = 0.05
"""Tokens less likely than this share of the likeliest one are never drawn (the tail is noise)."""

Logits = NDArray[np.float32]


class Sampler:
    """
    Draws tokens; the same seed and logits give the same tokens.

    Args:
        temperature: 0 always takes the likeliest token.
        seed: Of the random numbers.
    """

    def __init__(self, *, temperature: float, seed: int) -> None:
        self._temperature = temperature
        self._random = np.random.default_rng(abs(seed))

    def draw(self, logits: Logits) -> int:
        """The next token; -inf marks tokens that are not allowed."""
        if self._temperature <= 0:
            return int(logits.argmax())
        scaled = (logits.astype(np.float64) - float(logits.max())) / self._temperature
        candidates = np.flatnonzero(scaled >= np.log(LEAST_SHARE))
        weights = np.cumsum(np.exp(scaled[candidates]))
        index = int(np.searchsorted(weights, self._random.random() * weights[-1], side="right"))
        return int(candidates[min(index, len(candidates) - 1)])


class GrammarMatcher:
    """
    Follows a reply through a grammar.

    Args:
        grammar: From compile_schema.
        tokenizer: The model's vocabulary for llguidance.
        n_vocab: Length of the logits.

    Raises:
        RecipeSchemaError: The grammar does not work with this vocabulary.
    """

    def __init__(self, grammar: str, *, tokenizer: Any, n_vocab: int) -> None:
        from llguidance import LLMatcher

        self._matcher = LLMatcher(tokenizer, grammar, log_level=0)
        self._n_vocab = n_vocab
        self._check()

    @property
    def is_complete(self) -> bool:
        """Whether nothing more may follow."""
        return bool(self._matcher.is_stopped())

    def forced_tokens(self) -> list[int]:
        """The tokens that must come next whatever the model says; already taken as written."""
        if self.is_complete:
            return []
        tokens = [int(token) for token in self._matcher.compute_ff_tokens()]
        if tokens:
            self._matcher.consume_tokens(tokens)
            self._check()
        return tokens

    def draw(self, logits: Logits, sampler: Sampler) -> int:
        """Draw an allowed token and take it as written; the mask is made only if the free choice is wrong."""
        token = sampler.draw(logits)
        if self._matcher.validate_tokens([token]) != 1:
            bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
            allowed = np.unpackbits(bits, bitorder="little")[: self._n_vocab].astype(bool)
            self._check()
            masked = logits.copy()
            masked[: len(allowed)][~allowed] = -np.inf
            masked[len(allowed) :] = -np.inf
            token = sampler.draw(masked)
        self._matcher.consume_token(token)
        self._check()
        return token

    def _check(self) -> None:
        if self._matcher.is_error():
            raise RecipeSchemaError(
                f"the schema cannot be followed: {' '.join(self._matcher.get_error().split())[:500]}",
                fix="make the schema simpler: fewer alternatives, shorter patterns",
            )
