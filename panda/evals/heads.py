"""Linear heads fitted to labelled values: classes, and options beside each other (needs scikit-learn)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panda.errors import UsageError

_STRENGTHS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
_RIVAL_STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
_TEMPERATURES = tuple(round(0.5 * 1.1**n, 4) for n in range(25))
_FOLDS = 5
_NEWTON_STEPS = 30

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Head:
    """Logits are (values @ weights.T + bias) / temperature."""

    weights: Matrix
    """(k, n)."""
    bias: Matrix
    """(k,)."""
    temperature: float
    """What makes the logits' softmax a probability."""
    strength: float
    """Inverse of the regularisation that was chosen."""
    accuracy: float
    """In folds that were left out."""


@dataclass(frozen=True)
class RivalGroup:
    """Options that were read beside each other."""

    query: str
    """Groups of one query are never in two folds."""
    values: Matrix
    """(n, m): m values of each of n options."""
    right: int | None
    """Which one answers; None if none does or it is not said."""
    answered: bool
    """Whether any does."""


def fit_classes(values: Matrix, wanted: NDArray[Any], groups: Sequence[str], weight: Matrix) -> Head:
    """
    A softmax head.

    Args:
        values: (cases, n).
        wanted: (cases,), index of each case's class; every class occurs.
        groups: Cases of one group are never in two folds.
        weight: (n,): how much less each value is regularised than the others.

    Raises:
        UsageError: scikit-learn is missing.
    """
    folds, classes = _folds(groups), int(wanted.max()) + 1
    best: tuple[float, float, Matrix] | None = None
    for strength in _STRENGTHS:
        logits = np.zeros((len(wanted), classes))
        for fold in range(_FOLDS):
            inside, outside = folds != fold, folds == fold
            if len(set(wanted[inside])) == classes and outside.any():
                weights, bias = _logistic(values[inside], wanted[inside], weight, strength)
                logits[outside] = values[outside] @ weights.T + bias
        loss = min(_loss(logits / t, wanted) for t in _TEMPERATURES)
        if best is None or loss < best[0]:
            best = (loss, strength, logits)
    assert best is not None
    _, strength, logits = best
    temperature = min(_TEMPERATURES, key=lambda t: _loss(logits / t, wanted))
    weights, bias = _logistic(values, wanted, weight, strength)
    return Head(weights, bias, temperature, strength, float((logits.argmax(axis=1) == wanted).mean()))


def fit_rivals(groups: Sequence[RivalGroup]) -> tuple[Head, Head]:
    """
    The head that orders options, and the one that says by the values of the first whether it answers.

    Args:
        groups: At least one with a right option and one without any.

    Raises:
        UsageError: scikit-learn is missing.
    """
    folds = _folds([group.query for group in groups])
    rank = _fit_rank(groups, folds)
    best = np.array([group.values[(group.values @ rank.weights[0]).argmax()] for group in groups])
    answered = np.array([int(group.answered) for group in groups])
    any_ = fit_classes(best, answered, [group.query for group in groups], np.full(best.shape[1], 10.0))
    return rank, any_


def _fit_rank(groups: Sequence[RivalGroup], folds: NDArray[Any]) -> Head:
    spread = np.vstack([group.values for group in groups]).std(axis=0) + 1e-6
    found: list[tuple[float, float, float, float]] = []
    for strength in _RIVAL_STRENGTHS:
        scored: list[tuple[Matrix, int]] = []
        for fold in range(_FOLDS):
            inside = [g for g, own in zip(groups, folds, strict=True) if own != fold and g.right is not None]
            weights = _conditional(inside, spread, strength)
            scored += [
                (g.values @ weights, g.right)
                for g, own in zip(groups, folds, strict=True)
                if own == fold and g.right is not None
            ]
        for t in _TEMPERATURES:
            loss = sum(_loss(z[None] / t, np.array([right])) for z, right in scored) / len(scored)
            found.append((loss, strength, t, float(np.mean([z.argmax() == right for z, right in scored]))))
    _, strength, temperature, accuracy = min(found)
    weights = _conditional([g for g in groups if g.right is not None], spread, strength)
    return Head(weights[None], np.zeros(1), temperature, strength, accuracy)


def _conditional(groups: Sequence[RivalGroup], spread: Matrix, strength: float) -> Matrix:
    """Weights of a softmax over each group's options, by Newton's method."""
    size = len(spread)
    weights = np.zeros(size)
    for _ in range(_NEWTON_STEPS):
        slope, curve = weights / strength, np.eye(size) / strength
        for group in groups:
            values = group.values / spread
            logits = values @ weights
            share = np.exp(logits - logits.max())
            share /= share.sum()
            mean = share @ values
            slope = slope - values[group.right] + mean
            curve = curve + (values * share[:, None]).T @ values - np.outer(mean, mean)
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if float(np.abs(step).max()) < 1e-8:
            break
    return np.asarray(weights / spread)


def _folds(groups: Sequence[str]) -> NDArray[Any]:
    names = {name: n % _FOLDS for n, name in enumerate(dict.fromkeys(groups))}
    return np.array([names[group] for group in groups])


def _logistic(values: Matrix, wanted: NDArray[Any], weight: Matrix, strength: float) -> tuple[Matrix, Matrix]:
    """Weights (k, n) and bias (k,) for raw values; the regression sees them standardised and weighted."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as exc:
        raise UsageError(
            "tuning needs scikit-learn", where="panda tune", fix="pip install 'panda-turns[tune]'"
        ) from exc
    middle, spread = values.mean(axis=0), (values.std(axis=0) + 1e-6) / weight
    model = LogisticRegression(C=strength, max_iter=2000, class_weight="balanced")
    model.fit((values - middle) / spread, wanted)
    weights, bias = model.coef_ / spread, model.intercept_
    if len(weights) == 1:  # one row stands for the second class against the first
        weights, bias = np.vstack([np.zeros_like(weights), weights]), np.array([0.0, bias[0]])
    return weights, bias - weights @ middle


def _loss(logits: Matrix, wanted: NDArray[Any]) -> float:
    """Mean negative log-probability of the right class."""
    moved = logits - logits.max(axis=1, keepdims=True)
    chosen = moved[np.arange(len(wanted)), wanted] - np.log(np.exp(moved).sum(axis=1))
    return float(-chosen.mean())
