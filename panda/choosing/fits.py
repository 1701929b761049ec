"""
Fits: linear heads made by `panda tune` from labelled cases.

A fit belongs to one encoder and to one layout of what it reads: its file is named by them. Anything else
changed (bars, budgets) leaves it valid, and recipes that name the same fit share it; without a
matching file the step is passed over.
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


@dataclass(frozen=True)
class Fit:
    """A linear head with softmax."""

    classes: tuple[str, ...]  # k classes
    weights: NDArray[np.float32]  # shape (k, n): n values that are read
    bias: NDArray[np.float32]  # shape (k,)
    temperature: float  # what the logits are divided by
    digest: str  # sha256 of the file, hex; "" before it is written
    cases: int  # how many labelled cases it was made from
    phrases: tuple[str, ...] = ()
    """Runs of words whose occurrence is read behind the other values."""

    def logprobs(self, values: Sequence[float] | NDArray[np.float32]) -> dict[str, float]:
        logits = (self.weights @ np.asarray(values, np.float64) + self.bias) / self.temperature
        logits -= logits.max()
        found = logits - np.log(np.exp(logits).sum())
        return dict(zip(self.classes, map(float, found), strict=True))


def softmax(values: Mapping[str, float]) -> dict[str, float]:
    """Probabilities by logarithms; empty for none."""
    if not values:
        return {}
    top = max(values.values())
    total = sum(math.exp(value - top) for value in values.values())
    return {key: math.exp(value - top) / total for key, value in values.items()}


def fit_name(name: str, layout: str, digest: str) -> str:
    """Name of a fit's file; *layout* is everything that decides what its values are, besides the encoder."""
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
    return Fit(
        classes,
        weights,
        np.asarray(values["bias"], np.float32),
        float(values["temperature"]),
        digest,
        int(values["cases"]),
        tuple(map(str, values.get("phrases", ()))),
    )


def fit_to_json(fit: Fit, about: Mapping[str, Any]) -> dict[str, Any]:
    """A fit as the JSON of its file; what is said *about* its making is read by people only."""
    return {
        **about,
        "classes": list(fit.classes),
        "temperature": round(fit.temperature, 4),
        "cases": fit.cases,
        **({"phrases": list(fit.phrases)} if fit.phrases else {}),
        "bias": [round(float(value), 6) for value in fit.bias],
        "weights": base64.b64encode(fit.weights.astype(np.float32).tobytes()).decode("ascii"),
    }
