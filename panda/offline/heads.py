"""
Heads: linear classifiers with softmax, trained on labelled messages, and what they read of a message.

A head belongs to one encoder and to one layout of what it reads: its file is named by them, and without a
matching file there is no head. What is read is not standardised: each part is scaled so that one strength of
regularisation suits all.
"""

import base64
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from panda.errors import FileFormatError
from panda.language.wording import (
    content_stems,
    describe_antecedents,
    describe_order,
    describe_wording,
    word_runs,
)

Vectors = NDArray[np.float32]
WEIGHTS = Path(__file__).parent / "weights"
PHRASES = "phrases"
HEADS: Mapping[str, tuple[str, ...]] = {
    "query_type": ("query",),
    "intent": ("query",),
    "mood": ("wording", "order", PHRASES),
    "agreement": ("query", "order"),
    "recap": ("query",),
    "forget": ("wording", "order", PHRASES),
    "talk": ("query", "order"),
    "current_prices": ("query",),
    "live_data": ("query",),
    "clear": ("query", "order", "antecedents"),
    "tool": ("query",),
    "route": ("query", "antecedents", "lines"),
    "research_kind": ("query",),
    "lasting": ("query",),
    "answer": ("cosine", "partners", "lacking", "rest"),
}
"""What each head reads, in this order; the last reads what lines say to a query (answering.py)."""

_MESSAGE_LAYOUT, _LINES_LAYOUT = 1, 5
"""To be raised with every change of what a value is: heads of another layout are not found."""
_NAME_DIGITS = 12
_SCALE, _LITTLE, _MARK = 5.0, 1.5, 0.7
_NEAR = 0.45  # cosine from which a line is taken to be about the query


@dataclass(frozen=True)
class Head:
    classes: tuple[str, ...]  # k classes
    weights: Vectors  # shape (k, n): n values that are read
    bias: Vectors  # shape (k,)
    temperature: float  # what the logits are divided by
    phrases: tuple[str, ...] = ()  # runs of words whose occurrence is read behind the other values

    def logprobs(self, values: Sequence[float] | Vectors) -> dict[str, float]:
        """Return the natural logarithm of each class's probability."""
        logits = (self.weights @ np.asarray(values, np.float64) + self.bias) / self.temperature
        logits -= logits.max()
        logprobs = logits - np.log(np.exp(logits).sum())
        return dict(zip(self.classes, map(float, logprobs), strict=True))


def head_path(name: str, encoder_digest: str) -> Path:
    """Return where the head of a name for an encoder lies, if there is one."""
    reads = HEADS[name]
    layout = _LINES_LAYOUT if name == "answer" else _MESSAGE_LAYOUT
    digest = hashlib.sha256(f"{layout} {' '.join(reads)}".encode()).hexdigest()
    return WEIGHTS / f"{name}-{encoder_digest[:_NAME_DIGITS]}-{digest[:_NAME_DIGITS]}.json"


@lru_cache(maxsize=64)
def load_head(path: Path) -> Head | None:
    """Read a head; None if there is no such file. Raises FileFormatError: the file is no head."""
    if not path.is_file():
        return None
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        classes = tuple(map(str, values["classes"]))
        return Head(
            classes,
            np.frombuffer(base64.b64decode(values["weights"]), np.float32).reshape(len(classes), -1),
            np.asarray(values["bias"], np.float32),
            float(values["temperature"]),
            tuple(map(str, values.get("phrases", ()))),
        )
    except (ValueError, KeyError, TypeError) as exc:
        raise FileFormatError("this is no head", where=str(path), fix="install panda again") from exc


@lru_cache(maxsize=1)
def weights_digest() -> str:
    """Return a hex sha256 of all heads that come with the program."""
    digest = hashlib.sha256()
    for path in sorted(WEIGHTS.glob("*.json")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


Encode = Callable[[Sequence[str]], Vectors]
"""Texts → vectors of length 1, shape (n, width)."""


def read_message(
    reads: Sequence[str], text: str, encode: Encode, *, history: Sequence[str], lines: Sequence[str]
) -> Vectors:
    """
    Return what a head reads of a message, part by part in the given order.

    - query: the vector of the message, and how it is worded
    - wording: the same with less weight on the vector, for what hangs on how things are said
    - order: what stands before what in it
    - antecedents: what earlier turns are about, and what of it the pronouns could stand for
    - lines: how near some lines are, the words they share with the message, and whether there are any
    - phrases: nothing here; a head knows the runs of words that are marked behind the others
    """
    parts: list[Vectors] = []
    for part in reads:
        match part:
            case "query" | "wording":
                scale = _SCALE if part == "query" else _LITTLE
                vector = scale * encode([text])[0]
                parts.append(np.asarray([*vector, *describe_wording(text)], np.float32))
            case "order":
                parts.append(np.asarray(describe_order(text), np.float32))
            case "antecedents":
                parts.append(np.asarray(_read_antecedents(text, encode, history), np.float32))
            case "lines":
                parts.append(np.asarray(_read_lines(text, encode, lines), np.float32))
    return np.concatenate(parts)


def mark_phrases(text: str, phrases: Sequence[str]) -> Vectors:
    """Which of n runs of words a text has, shape (n,)."""
    places, marks = _places(tuple(phrases)), np.zeros(len(phrases), np.float32)
    marks[[places[run] for run in word_runs(text) if run in places]] = _MARK
    return marks


@lru_cache(maxsize=8)
def _places(phrases: tuple[str, ...]) -> Mapping[str, int]:
    return {run: place for place, run in enumerate(phrases)}


def cosines(encode: Encode, text: str, others: Sequence[str]) -> list[float]:
    """Cosine of a text with others, in order: the same whatever else is asked beside it."""
    own, *vectors = encode([text, *others])
    return [round(math.fsum(map(float, vector * own)), 6) for vector in vectors]


def _read_antecedents(text: str, encode: Encode, history: Sequence[str]) -> Sequence[float]:
    own, *vectors = encode([text, *history])
    about = np.mean(vectors, axis=0) if vectors else np.zeros_like(own)
    near = max(cosines(encode, text, history), default=0.0)
    return [*(_SCALE * about), *describe_antecedents(text, history, near)]


def _read_lines(text: str, encode: Encode, lines: Sequence[str]) -> Sequence[float]:
    if not lines:
        return [0.0] * 6
    near = sorted(cosines(encode, text, lines), reverse=True)
    asked = content_stems(text)
    shared = max(len(asked & content_stems(line)) for line in lines)
    lead = near[0] - near[1] if len(near) > 1 else near[0]
    share = shared / max(1, len(asked))
    return [1.0, _SCALE * near[0], 2 * lead, 2 * share, 0.7 * min(3, shared), float(near[0] > _NEAR)]
