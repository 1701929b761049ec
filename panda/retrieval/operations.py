"""What a question wants of a table: a count, a sum, the first by a value; read from its words' vectors."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, get_args

import msgspec
import numpy as np

from panda.language.text import plain_signs

if TYPE_CHECKING:  # it imports sqlite3
    from numpy.typing import NDArray

    from panda.models.kept_encoder import KeptEncoder

Operation = Literal["compare", "count", "days", "first", "last", "max", "mean", "min", "next", "rows", "sum"]
"""What is done with the rows of a table; "rows" tells them as they are, or asks for none."""
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
WORD_SCALE = 4.0
"""What a word's vector of length 1 is multiplied by."""
_WEIGHTS_FILE = "operations.json"
_LONGEST_RUN = 3
_ENDING_CHARS = 3
_TOKEN = re.compile(r"[^\W\d_]+|\d+|\?")


class OperationWeights(msgspec.Struct, frozen=True):
    """operations.json, written by `python -m bench.table_operations --fit`."""

    encoder: str
    """Digest of the encoder whose vectors it reads."""
    bias: tuple[float, ...]
    """Of each operation, in the order of OPERATIONS."""
    words: tuple[tuple[int, ...], ...]
    """Of each operation the weights of a word's vector, as whole numbers; times *word_step*."""
    word_step: float
    marks: Mapping[str, tuple[int, ...]]
    """Of each run of words the weight for each operation; times *mark_step*."""
    mark_step: float


def read_operations(query: str, encoder: "KeptEncoder | None") -> dict[Operation, float]:
    """Return the probability of each operation; {} without the encoder that the weights are for."""
    weights = _load_weights()
    if encoder is None or encoder.info.digest != weights.encoder:
        return {}
    vectors = [vector for _, vector in encoder.encode_words(query)]
    if not vectors:
        return {}
    logits = _score_words(np.asarray(vectors, np.float64), _word_matrix())
    for run in word_runs(query):
        if (marked := weights.marks.get(run)) is not None:
            logits += weights.mark_step * np.asarray(marked, np.float64)
    logits += np.asarray(weights.bias)
    logits = np.round(logits, 6)
    shares = np.exp(logits - logits.max())
    return {
        name: round(float(share), 6) for name, share in zip(OPERATIONS, shares / shares.sum(), strict=True)
    }


def _score_words(word_vectors: "NDArray[np.float64]", matrix: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return of each operation the smooth maximum over the words, shape (operations,)."""
    lengths = np.linalg.norm(word_vectors, axis=1, keepdims=True)
    scores = (word_vectors / np.maximum(lengths, 1e-9) * WORD_SCALE) @ matrix.T
    highest = scores.max(axis=0)
    total: NDArray[np.float64] = highest + np.log(np.exp(scores - highest).sum(axis=0))
    return total


def word_runs(query: str) -> set[str]:
    """
    Return the runs of one to three words of a query, with its beginning, and the endings of longer words.

    >>> sorted(word_runs("How many?"))
    ['?', '^', '^ how', '^ how many', 'how', 'how many', 'how many ?', 'many', 'many ?']
    """
    words = ["^", *_TOKEN.findall(plain_signs(query).lower())]
    runs = {
        " ".join(words[at : at + size])
        for size in range(1, _LONGEST_RUN + 1)
        for at in range(len(words) - size + 1)
    }
    return runs | {f"{word[-_ENDING_CHARS:]}$" for word in words if len(word) > _ENDING_CHARS + 1}


@cache
def _load_weights() -> OperationWeights:
    text = files("panda.retrieval").joinpath(_WEIGHTS_FILE).read_bytes()
    return msgspec.json.decode(text, type=OperationWeights)


@cache
def _word_matrix() -> "NDArray[np.float64]":
    weights = _load_weights()
    return np.asarray(weights.words, np.float64) * weights.word_step
