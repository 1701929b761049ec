"""
Fits: linear heads made by `panda tune` from labelled cases.

A fit belongs to one encoder (for options, one language model too) and to one layout of what it reads: its
file is named by them. Anything else changed (bars, other properties, budgets) leaves it valid, and recipes
that name the same fit share it; without a matching file the step is passed over.
"""

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panda.errors import FileFormatError

FITS_DIR = "fits"  # folder of the fits, beside the recipes' categories
_NAME_DIGITS = 12
RANK, ANY = "rank", "any"  # classes of a fit of options; without RANK each is judged for itself
_CLOSE = 2.0  # by how much the logit of a rival may be below the first


@dataclass(frozen=True)
class Fit:
    """A linear head with softmax."""

    classes: tuple[str, ...]  # k classes
    weights: NDArray[np.float32]  # shape (k, n): n values that are read
    bias: NDArray[np.float32]  # shape (k,)
    temperature: float  # what the logits are divided by
    digest: str  # sha256 of the file, hex; "" before it is written
    cases: int  # how many labelled cases it was made from
    first: "Fit | None" = None
    """Of options: the head that reads all values but that of the language model; None without one."""
    bars: tuple[float, float] = (0.0, 1.0)
    """Between these probabilities of `first` the language model is asked."""

    def logprobs(self, values: Sequence[float] | NDArray[np.float32]) -> dict[str, float]:
        """Log-probability of each class."""
        logits = self._logits(np.asarray(values, np.float64))
        logits -= logits.max()
        found = logits - np.log(np.exp(logits).sum())
        return dict(zip(self.classes, map(float, found), strict=True))

    def option_logprobs(self, values: Sequence[Sequence[float]]) -> list[float]:
        """
        Log-probability of each option that it answers.

        The row of RANK orders options that were read beside each other; that of ANY says by the values of
        the best whether it answers. The best gets this probability, each other the share of it that its rank
        leaves. Without RANK that of ANY speaks of each.
        """
        *ranks, any_ = np.array([self._logits(np.asarray(one, np.float64)) for one in values]).T
        if not ranks:
            return [float(-np.logaddexp(0.0, -one)) for one in any_]
        rank = ranks[0]
        best = int(rank.argmax())
        return [float(value) for value in rank - rank[best] - np.logaddexp(0.0, -any_[best])]

    @property
    def ranks(self) -> bool:
        """Whether it reads options beside each other; otherwise each for itself."""
        return RANK in self.classes

    def find_best(self, values: Sequence[Sequence[float]]) -> int:
        """Which of the options is first; values of the best alone may still be missing."""
        return self.find_rivals(values)[0]

    def find_rivals(self, values: Sequence[Sequence[float]]) -> list[int]:
        """The first of the options, and the second if it is close; of some values alone."""
        rows = np.asarray(values, np.float64)
        return rivals_of(rows @ self.weights[0, : rows.shape[1]])

    def doubts(self, logprob: float) -> bool:
        """Whether the language model is to be asked after `first` gave its best option this."""
        low, high = self.bars
        return low <= float(np.exp(logprob)) <= high

    def is_clear(self, values: Sequence[Sequence[float]], logprob: float) -> bool:
        """Whether `first` leaves no doubt: neither whether its best option answers, nor which that is."""
        if self.first is None or self.doubts(logprob):
            return False
        return float(np.exp(logprob)) < self.bars[0] or len(self.first.find_rivals(values)) == 1

    def _logits(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((self.weights @ values + self.bias) / self.temperature, np.float64)


def rivals_of(logits: NDArray[np.float64]) -> list[int]:
    """
    The first of n options by their logits, and the second if it is close.

    >>> rivals_of(np.array([0.0, 4.0, 3.0])), rivals_of(np.array([0.0, 4.0]))
    ([1, 2], [1])
    """
    first = [int(place) for place in np.argsort(-logits, kind="stable")[:2]]
    return [place for place in first if logits[place] >= logits[first[0]] - _CLOSE]


def softmax(values: Mapping[str, float]) -> dict[str, float]:
    """Probabilities by logarithms; empty for none."""
    if not values:
        return {}
    top = max(values.values())
    total = sum(math.exp(value - top) for value in values.values())
    return {key: math.exp(value - top) / total for key, value in values.items()}


def fit_name(name: str, layout: str, digest: str) -> str:
    """
    Name of a fit's file.

    Args:
        name: What the step calls it.
        layout: Everything that decides what its values are, besides the encoder.

    >>> fit_name("intent", "", "a" * 64)
    'intent-aaaaaaaaaaaa-e3b0c44298fc.json'
    """
    words = hashlib.sha256(layout.encode()).hexdigest()
    return f"{PurePath(name).name}-{digest[:_NAME_DIGITS]}-{words[:_NAME_DIGITS]}.json"


def load_fit(path: Path) -> Fit:
    """Read a fit. Raises FileFormatError: the file is no fit."""
    text = path.read_text(encoding="utf-8")
    try:
        return _parse(json.loads(text), hashlib.sha256(text.encode()).hexdigest())
    except (ValueError, KeyError, TypeError) as exc:
        raise FileFormatError(
            f"this is no fit: {exc}", where=str(path), fix="delete it, or make it again with panda tune"
        ) from exc


def _parse(values: Mapping[str, Any], digest: str) -> Fit:
    classes = tuple(map(str, values["classes"]))
    weights = np.frombuffer(base64.b64decode(values["weights"]), np.float32).reshape(len(classes), -1)
    low, high = map(float, values.get("bars", (0, 1)))
    return Fit(
        classes,
        weights,
        np.asarray(values["bias"], np.float32),
        float(values["temperature"]),
        digest,
        int(values["cases"]),
        _parse(values["first"], digest) if values.get("first") else None,
        (low, high),
    )


def fit_to_json(fit: Fit, about: Mapping[str, Any]) -> dict[str, Any]:
    """
    A fit as the JSON of its file.

    Args:
        about: What is said of its making; read by people only.
    """
    first = {"bars": list(fit.bars), "first": fit_to_json(fit.first, {})} if fit.first else {}
    return {
        **about,
        "classes": list(fit.classes),
        "temperature": round(fit.temperature, 4),
        "cases": fit.cases,
        **first,
        "bias": [round(float(value), 6) for value in fit.bias],
        "weights": base64.b64encode(fit.weights.astype(np.float32).tobytes()).decode("ascii"),
    }
