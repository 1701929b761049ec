"""
Fits: linear heads on hidden states and likelihoods, made by `panda tune` from labelled cases.

A fit belongs to one model and to exactly the words it was made with: its file is named by the model's digest
and by a hash of the prompt file that its scorer reads. Anything else changed (bars, other properties,
budgets) leaves it valid, and recipes that name the same prompt file share it; without a matching file the
step is passed over.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panda.errors import FileFormatError

FITS_DIR = "fits"
"""Folder of the fits, beside the recipes' categories."""
_NAME_DIGITS = 12
RANK, ANY = "rank", "any"
"""Classes of a fit that reads options beside each other."""


@dataclass(frozen=True)
class Fit:
    """A linear head with softmax."""

    classes: tuple[str, ...]
    """k classes."""
    weights: NDArray[np.float32]
    """Shape (k, n): n values of a hidden state, mean and last token."""
    bias: NDArray[np.float32]
    """Shape (k,)."""
    temperature: float
    """What the logits are divided by."""
    digest: str
    """sha256 of the file, hex; "" before it is written."""
    cases: int
    """How many labelled texts it was made from."""

    def logprobs(self, state: Sequence[float]) -> dict[str, float]:
        """
        Log-probability of each class.

        Args:
            state: n values.
        """
        logits = self._logits(np.asarray(state, np.float64))
        logits -= logits.max()
        values = logits - np.log(np.exp(logits).sum())
        return dict(zip(self.classes, map(float, values), strict=True))

    def rival_logprobs(self, values: Sequence[Sequence[float]]) -> list[float]:
        """
        Log-probability that an option answers, of options that were read beside each other.

        The row of RANK orders them; that of ANY says by the values of the best whether it answers. The best
        gets this probability, each other the share of it that its rank leaves.

        Args:
            values: n times the values of one option, as in `rival_values`.
        """
        rank, any_ = np.array([self._logits(np.asarray(one, np.float64)) for one in values]).T
        best = int(rank.argmax())
        return [float(value) for value in rank - rank[best] - np.logaddexp(0.0, -any_[best])]

    def _logits(self, state: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((self.weights @ state + self.bias) / self.temperature, np.float64)


def fit_name(prompt_name: str, prompt: str, model_digest: str) -> str:
    """
    Name of a fit's file: it belongs to one model and to the words of one prompt file.

    Args:
        prompt_name: The prompt file, below the folder of prompts.
        prompt: Its text.
        model_digest: sha256 of the model, hex.

    >>> fit_name("pipeline/phase0_intent_fit.md", "", "a" * 64)
    'phase0_intent_fit-aaaaaaaaaaaa-e3b0c44298fc.json'
    """
    words = hashlib.sha256(prompt.encode()).hexdigest()
    return f"{PurePath(prompt_name).stem}-{model_digest[:_NAME_DIGITS]}-{words[:_NAME_DIGITS]}.json"


def load_fit(path: Path) -> Fit:
    """
    Read a fit.

    Raises:
        FileFormatError: The file is no fit.
    """
    text = path.read_text(encoding="utf-8")
    try:
        values = json.loads(text)
        classes = tuple(map(str, values["classes"]))
        weights = np.frombuffer(base64.b64decode(values["weights"]), np.float32)
        return Fit(
            classes,
            weights.reshape(len(classes), -1),
            np.asarray(values["bias"], np.float32),
            float(values["temperature"]),
            hashlib.sha256(text.encode()).hexdigest(),
            int(values["cases"]),
        )
    except (ValueError, KeyError, TypeError) as exc:
        raise FileFormatError(
            f"this is no fit: {exc}", where=str(path), fix="delete it, or make it again with panda tune"
        ) from exc


def fit_to_json(fit: Fit, about: Mapping[str, Any]) -> dict[str, Any]:
    """
    A fit as the JSON of its file.

    Args:
        fit: The fit.
        about: What is said of its making; read by people only.
    """
    return {
        **about,
        "classes": list(fit.classes),
        "temperature": round(fit.temperature, 4),
        "cases": fit.cases,
        "bias": [round(float(value), 6) for value in fit.bias],
        "weights": base64.b64encode(fit.weights.astype(np.float32).tobytes()).decode("ascii"),
    }
