"""Logistic regressions of a few values."""

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float64]
_STRENGTH = 0.3
"""Of the regularisation."""
_MOST_STEPS = 100


def fit_signed(values: Weights, right: Weights, importance: Weights, signs: Weights) -> Weights:
    """
    Return the weights of a constant and of values, of which none has the wrong sign.

    A value whose weight comes out with the wrong sign is left out, the one that is most wrong first.

    Args:
        values: Shape (cases, values); the first is 1.
        right: 1 or 0, shape (cases,).
        importance: What each case weighs, shape (cases,).
        signs: 1, -1 or, where any sign is right, 0, shape (values,).
    """
    mean = values.mean(0)
    spread = values.std(0) + 1e-9
    mean[0] = 0.0
    spread[0] = 1.0
    scaled = (values - mean) / spread
    used = np.ones(values.shape[1], bool)
    while True:
        weights = np.zeros(values.shape[1])
        weights[used] = _fit(scaled[:, used], right, importance)
        wrong = weights * signs
        if wrong.min() >= 0:
            break
        used[int(wrong.argmin())] = False
    weights = weights / spread
    weights[0] -= float(weights[1:] @ mean[1:])
    return weights


def _fit(values: Weights, right: Weights, importance: Weights) -> Weights:
    penalty = _STRENGTH * np.eye(values.shape[1])
    penalty[0, 0] = 0.0
    weights = np.zeros(values.shape[1])
    for _ in range(_MOST_STEPS):
        probability = 1 / (1 + np.exp(-values @ weights))
        slope = values.T @ (importance * (probability - right)) + penalty @ weights
        curve = (values * (importance * probability * (1 - probability))[:, None]).T @ values + penalty
        weights -= np.linalg.solve(curve, slope)
    return weights
