"""What scorers ask of the models: looked up, computed, remembered, and written down."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from panda.errors import RecipeKeyError
from panda.models.contract import Encoder, Model, ModelInfo, ScoreCase, ScoreParams, Scores, Usage

if TYPE_CHECKING:
    from panda.choosing.fits import Fit

Vectors = NDArray[np.float32]
Key = tuple[str, str, ScoreCase]  # model digest, prefix and case
Score = tuple[float, int]  # log-probability, tokens
_MOST_READ = 400  # texts whose words are kept; each word is a vector


def read_examples(text: str, name: str) -> dict[str, list[str]]:
    """The list items below each `# class` of a scorer's prompt file; a RecipeKeyError without a heading."""
    parts = re.split(r"(?m)^# (.+)\n", text)
    if len(parts) < 3:
        raise RecipeKeyError("a scorer's prompt file needs `# heading` sections", where=f"prompts/{name}")
    return {
        heading.strip(): [line[2:].strip() for line in body.splitlines() if line.startswith("- ")]
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }


@dataclass(frozen=True)
class Memo:
    """What was computed before, by any recipe; vectors by encoder digest and text."""

    scores: dict[Key, Score] = field(default_factory=dict)
    vectors: dict[tuple[str, str], Vectors] = field(default_factory=dict)  # shape (width,)
    words: dict[tuple[str, str], Sequence[tuple[str, Vectors]]] = field(default_factory=dict)

    def clear(self) -> None:
        self.scores.clear()
        self.vectors.clear()
        self.words.clear()


@dataclass(frozen=True)
class Pass:
    """What is written down of one scoring."""

    prefix: str  # what stood before every case
    cases: Sequence[ScoreCase]  # n continuations
    found: Sequence[Score]  # that of each
    known: Sequence[bool]  # whether each was computed earlier
    usage: Usage  # tokens
    seconds: float  # time of the model
    by: ModelInfo  # who gave it; may be the encoder


@dataclass(frozen=True)
class Ask:
    """The models of one choice, and what is known of their answers."""

    model: Model | None  # the language model of the recipe's layer; None if that is offline
    encoder: Encoder | None  # gives vectors; None if models.yaml sets none
    memo: Memo  # what was computed before; added to
    prompt: Callable[[str], str]  # gives the text of a prompt file
    find_fit: "Callable[[str], Fit | None]"  # gives the fit of a file name; None if there is none
    recorded: Callable[[str, str, ScoreCase], Score | None]
    """Gives what the recorded turn holds for a model digest, prefix and case."""
    write: Callable[[Pass], None]  # writes a scoring down
    timeout_seconds: float  # wall clock of one call

    def examples(self, name: str) -> dict[str, list[str]]:
        """The examples of each class in a prompt file."""
        return read_examples(self.prompt(name), name)

    def score(self, prefix: str, cases: Sequence[ScoreCase]) -> list[Score]:
        """What the language model gives for each continuation; there must be one."""
        assert self.model is not None
        model = self.model
        params = ScoreParams(self.timeout_seconds)
        return self._judge(model.info, prefix, cases, lambda todo: model.score(prefix, todo, params))

    def judge(
        self, prefix: str, cases: Sequence[ScoreCase], compute: Callable[[], Sequence[float]]
    ) -> list[float]:
        """
        Logarithms that the encoder's values give, one a case; *compute* gives them where one is not known.
        *prefix* names everything that they depend on besides the case.
        """
        assert self.encoder is not None

        def compute_all(todo: Sequence[ScoreCase]) -> Scores:
            values = dict(zip(cases, compute(), strict=True))
            return Scores(tuple(values[case] for case in todo), (1,) * len(todo), Usage(0, 0, 0), 0.0)

        return [value for value, _ in self._judge(self.encoder.info, prefix, cases, compute_all)]

    def _judge(
        self,
        by: ModelInfo,
        prefix: str,
        cases: Sequence[ScoreCase],
        compute: Callable[[Sequence[ScoreCase]], Scores],
    ) -> list[Score]:
        """The score of each case: that of this process, of the recorded turn, or computed; written down."""
        memo, keys = self.memo.scores, {case: (by.digest, prefix, case) for case in cases}
        for key in keys.values():
            if key not in memo and (recorded := self.recorded(*key)):
                memo[key] = recorded
        todo = {case: key for case, key in keys.items() if key not in memo}
        usage, seconds = Usage(0, 0, 0), 0.0
        if todo:
            scores = compute([*todo])
            usage, seconds = scores.usage, scores.seconds
            found = zip(scores.logprobs, scores.tokens, strict=True)
            memo.update(zip(todo.values(), found, strict=True))
        given = [memo[keys[case]] for case in cases]
        self.write(Pass(prefix, cases, given, [case not in todo for case in cases], usage, seconds, by))
        return given

    def cosines(self, query: str, texts: Sequence[str]) -> list[float]:
        """Cosine of the query with each text, in order: the same whatever else is asked beside it."""
        own, *others = self.vectors([query, *texts])
        return [round(math.fsum(map(float, other * own)), 6) for other in others]

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Vectors of n texts, shape (n, width), each computed once; there must be an encoder."""
        assert self.encoder is not None
        digest, kept = self.encoder.info.digest, self.memo.vectors
        todo = [text for text in dict.fromkeys(texts) if (digest, text) not in kept]
        if todo:
            kept.update(zip([(digest, text) for text in todo], self.encoder.encode(todo), strict=True))
        return np.array([kept[digest, text] for text in texts], np.float32)

    def words(self, text: str) -> Sequence[tuple[str, Vectors]]:
        """The words of a text, each with its vector in its place; its signs where it has no word."""
        assert self.encoder is not None
        key, kept = (self.encoder.info.digest, text), self.memo.words
        if key not in kept:
            if len(kept) >= _MOST_READ:
                kept.clear()
            found = self.encoder.encode_words(text)
            kept[key] = [one for one in found if one[0][0].isalnum()] or found
        return kept[key]
