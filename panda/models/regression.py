"""Logistic regressions: how probable something is by a few values, with weights from JSON files."""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

_Weights = TypeVar("_Weights", bound=msgspec.Struct)


def measure_probability(coefficients: Sequence[float], features: Sequence[float]) -> float:
    """
    Return the probability, 0 to 1.

    Args:
        coefficients: Of a constant 1, then of the features in their order.
        features: As many as there are coefficients but the first.

    >>> measure_probability((0.0, 2.0), (0.0,)), measure_probability((-1.0, 2.0), (0.5,))
    (0.5, 0.5)
    """
    pairs = zip(coefficients, (1.0, *features), strict=True)
    total = math.fsum(coefficient * feature for coefficient, feature in pairs)
    return 1 / (1 + math.exp(-total))


def read_weights(weights_path: Path, struct: type[_Weights]) -> _Weights:
    """Return the weights of a file that comes with panda; it is read once."""
    weights = _read_once(weights_path, struct)
    assert isinstance(weights, struct)
    return weights


@cache
def _read_once(weights_path: Path, struct: type[msgspec.Struct]) -> msgspec.Struct:
    return msgspec.json.decode(weights_path.read_bytes(), type=struct)
