"""Vectors of texts, and what was fitted to them."""

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
CLASSIFIERS = Path(__file__).parent / "classifiers"
Encode = Callable[[Sequence[str]], Vectors]
"""Texts → vectors of length 1, shape (n, width)."""


@lru_cache(maxsize=1)
def weights_digest() -> str:
    """Return a hex sha256 of all classifiers that come with the program."""
    digest = hashlib.sha256()
    for path in sorted(CLASSIFIERS.glob("*.json")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def cosines(encode: Encode, text: str, others: Sequence[str]) -> list[float]:
    """Cosine of a text with others, in order: the same whatever else is asked beside it."""
    own, *vectors = encode([text, *others])
    return [round(math.fsum(map(float, vector * own)), 6) for vector in vectors]
