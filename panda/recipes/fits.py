"""
Fits: linear heads on a model's hidden states, made by `panda tune` from labelled cases.

A fit belongs to one model and to exactly the words it was made with: its file is named by the model's digest
and by a hash of the choice's values and of the prompt that its scorer reads. Anything else changed (bars,
other properties, budgets) leaves it valid; without a matching file the step is passed over.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panda.errors import FileFormatError
from panda.recipes.schemas import ChoiceSpec, Step

FITS_DIR = "fits"
"""Folder of the fits, beside the recipes' categories."""
_NAME_DIGITS = 12


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
        logits = (self.weights @ np.asarray(state, np.float64) + self.bias) / self.temperature
        logits -= logits.max()
        values = logits - np.log(np.exp(logits).sum())
        return dict(zip(self.classes, map(float, values), strict=True))


def choice_hash(spec: ChoiceSpec, step: Step, prompt: str) -> str:
    """
    What a fit of this step depends on besides the model, as one digest.

    Args:
        spec: The property.
        step: Its step with the scorer fit.
        prompt: Text of the step's prompt file.
    """
    kept = [spec.name, [str(value) for value in spec.values], step.over, prompt]
    return hashlib.sha256(json.dumps(kept, ensure_ascii=False).encode()).hexdigest()


def fit_name(property_: str, model_digest: str, hash_: str) -> str:
    """
    Name of a fit's file.

    >>> fit_name("intent", "a" * 64, "b" * 64)
    'intent-aaaaaaaaaaaa-bbbbbbbbbbbb.json'
    """
    return f"{property_}-{model_digest[:_NAME_DIGITS]}-{hash_[:_NAME_DIGITS]}.json"


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
