"""
Classifiers of short texts: a softmax over the vectors of their words, and over runs of words.

The weights are small JSON files that `python -m bench.classifiers --fit` writes from labelled texts. A file
holds for one encoder: with another there is no classifier.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from panda.errors import FileFormatError
from panda.language.text import plain_signs
from panda.models.model_contract import ModelInfo

if TYPE_CHECKING:
    from panda.models.model_contract import Vectors

Matrix = NDArray[np.float64]
WORD_SCALE = 4.0
"""What a word's vector of length 1 is multiplied by."""
_LONGEST_RUN = 3
_ENDING_CHARS = 3
_MOST_CHARS = 600
_MOST_WORDS = 48
_TOKEN = re.compile(r"[^\W\d_]+|\d+|[?!.,:]")
_WORD = re.compile(r"[^\W_]+")
_LENGTHS = (1, 2, 3, 4, 6, 9, 15, 30)
"""Texts are told apart by whether they have at most so many words."""


class WordEncoder(Protocol):
    """What gives words their vectors."""

    @property
    def info(self) -> ModelInfo: ...

    def encode_words(self, text: str) -> "list[tuple[str, Vectors]]": ...


class ClassifierWeights(msgspec.Struct, frozen=True, kw_only=True):
    """A file of weights; c classes, vectors of a width w."""

    encoder: str
    """Digest of the encoder whose vectors it reads."""
    classes: tuple[str, ...]
    bias: tuple[float, ...]
    words: tuple[tuple[int, ...], ...]
    """Shape (c, w), times *word_step*: the weights of a word's vector."""
    word_step: float
    runs: Mapping[str, tuple[int, ...]]
    """Of each run of words c weights, times *run_step*."""
    run_step: float


@dataclass(frozen=True)
class TextClassifier:
    encoder: str  # digest of the encoder whose vectors it reads
    classes: tuple[str, ...]  # c classes
    bias: Matrix  # shape (c,)
    words: Matrix  # shape (c, width of a vector)
    runs: Mapping[str, Matrix]  # of each run of words, shape (c,)

    def classify(self, text: str, encoder: WordEncoder | None) -> dict[str, float]:
        """Return the probability of each class; {} without the encoder that the weights are for."""
        if encoder is None or encoder.info.digest != self.encoder:
            return {}
        logits = self.bias.copy()
        vectors = read_words(text, encoder)
        if len(vectors):
            scores = vectors @ self.words.T
            highest = scores.max(axis=0)
            logits += highest + np.log(np.exp(scores - highest).sum(axis=0))
        for run in sorted(find_runs(text)):
            if (weights := self.runs.get(run)) is not None:
                logits += weights
        logits = np.round(logits, 6)
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        return {name: round(float(share), 6) for name, share in zip(self.classes, shares, strict=True)}


@cache
def load_classifier(path: Path) -> TextClassifier:
    """Read a file of weights. Raises FileFormatError: it is none."""
    try:
        weights = msgspec.json.decode(path.read_bytes(), type=ClassifierWeights)
    except msgspec.DecodeError as exc:
        raise FileFormatError("this is no classifier", where=str(path), fix="install panda again") from exc
    step = weights.run_step
    return TextClassifier(
        encoder=weights.encoder,
        classes=weights.classes,
        bias=np.asarray(weights.bias, np.float64),
        words=np.asarray(weights.words, np.float64) * weights.word_step,
        runs={run: step * np.asarray(values, np.float64) for run, values in weights.runs.items()},
    )


def read_words(text: str, encoder: WordEncoder) -> Matrix:
    """Return the scaled vectors of the first words of a text, shape (words, width); (0, 0) of none."""
    vectors = [vector for _, vector in encoder.encode_words(plain_signs(text)[:_MOST_CHARS])]
    if not vectors:
        return np.zeros((0, 0))
    return WORD_SCALE * np.asarray(vectors[:_MOST_WORDS], np.float64)


def find_runs(text: str) -> set[str]:
    """
    Return the runs of one to three words and marks of a text, numbers alike, with its beginning and end; the
    endings of longer words; and how many words it has.

    >>> sorted(find_runs("How much?"))
    ['$', '<=2', '?', '? $', '^', '^ how', '^ how much', 'how', 'how much', 'how much ?', 'much', 'much ?', \
'much ? $']
    """
    plain = plain_signs(text)[:_MOST_CHARS].lower()
    words = ["^", *("#" if token.isdigit() else token for token in _TOKEN.findall(plain)), "$"]
    runs = {
        " ".join(words[at : at + size])
        for size in range(1, _LONGEST_RUN + 1)
        for at in range(len(words) - size + 1)
    }
    runs |= {f"{word[-_ENDING_CHARS:]}~" for word in words if len(word) > _ENDING_CHARS + 1}
    length = len(_WORD.findall(plain))
    shorter = [*takewhile(lambda most: most < length, _LENGTHS)]
    return runs | {f"<={_LENGTHS[len(shorter)]}" if len(shorter) < len(_LENGTHS) else "long"}
