"""Linear heads fitted to labelled values: classes, and options beside each other (needs scikit-learn)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panda.errors import UsageError

_STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_OPTION_STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
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
    left_out: Matrix
    """(cases, k): probabilities by heads that have not seen the case."""
    accuracy: float
    """Share of cases that those have right."""


@dataclass(frozen=True)
class OptionGroup:
    """Options that were read beside each other."""

    query: str
    """Groups of one query are never in two folds."""
    values: Matrix
    """(n, m): m values of each of n options."""
    right: int | None
    """Which one answers; None if none does or it is not said, and where each is judged for itself."""
    answered: bool
    """Whether any does."""


def fit_classes(values: Matrix, wanted: NDArray[Any], groups: Sequence[str]) -> Head:
    """
    A softmax head; its strength and temperature are those with the least loss in folds.

    Args:
        values: (cases, n).
        wanted: (cases,), index of each case's class; every class occurs.
        groups: Cases of one group are never in two folds.

    Raises:
        UsageError: scikit-learn is missing.
    """
    folds, classes, middle = _folds(groups), int(wanted.max()) + 1, values.mean(axis=0)
    _, sizes, axes = np.linalg.svd(values - middle, full_matrices=False)  # loses nothing, saves minutes
    axes = axes[sizes > 1e-6 * sizes[0]]
    small = (values - middle) @ axes.T
    found: list[tuple[float, float, float, Matrix]] = []
    for strength in _STRENGTHS:
        logits = np.zeros((len(wanted), classes))
        for fold in range(_FOLDS):
            inside, outside = folds != fold, folds == fold
            if len(set(wanted[inside])) == classes and outside.any():
                weights, bias = _logistic(small[inside], wanted[inside], strength)
                logits[outside] = small[outside] @ weights.T + bias
        temperature = min(_TEMPERATURES, key=lambda t: _loss(logits / t, wanted))
        found.append((_loss(logits / temperature, wanted), strength, temperature, logits))
    _, strength, temperature, logits = min(found, key=lambda one: one[0])
    weights, bias = _logistic(small, wanted, strength)
    weights = weights @ axes
    left_out = np.exp(logits / temperature - _norm(logits / temperature)[:, None])
    accuracy = float((logits.argmax(axis=1) == wanted).mean())
    return Head(weights, bias - weights @ middle, temperature, left_out, accuracy)


def fit_answers(values: Matrix, answered: Sequence[bool], queries: Sequence[str]) -> Head:
    """
    The head that says by the values of an option whether it answers: one row, the logit of yes.

    Args:
        values: (n, m).
        answered: n labels, both kinds.
        queries: Cases of one query are never in two folds.

    Raises:
        UsageError: scikit-learn is missing.
    """
    spread = values.std(axis=0) + 1e-6
    head = fit_classes(values / spread, np.array(answered, np.int64), queries)
    weights = (head.weights[1:] - head.weights[:1]) / spread / head.temperature
    bias = (head.bias[1:] - head.bias[:1]) / head.temperature
    return Head(weights, bias, 1.0, head.left_out, head.accuracy)


def fit_order(groups: Sequence[OptionGroup], columns: Sequence[int]) -> Head:
    """
    The head that orders options: one row, logits of a softmax over those of a group.

    Args:
        groups: Those with a right option teach.
        columns: Of the values, those that it reads; the others weigh nothing.
    """
    read = list(columns)
    head = _fit_rank([replace(one, values=one.values[:, read]) for one in groups if one.right is not None])
    weights = np.zeros((1, groups[0].values.shape[1]))
    weights[0, read] = head.weights[0] / head.temperature
    return replace(head, weights=weights, temperature=1.0)


def _fit_rank(groups: Sequence[OptionGroup]) -> Head:
    folds = _folds([group.query for group in groups])
    spread = np.vstack([group.values for group in groups]).std(axis=0) + 1e-6
    found: list[tuple[float, float, float, float]] = []
    for strength in _OPTION_STRENGTHS:
        scored: list[tuple[Matrix, int]] = []
        for fold in range(_FOLDS):
            inside = [group for group, own in zip(groups, folds, strict=True) if own != fold]
            weights = _conditional(inside, spread, strength)
            scored += [
                (group.values @ weights, group.right or 0)
                for group, own in zip(groups, folds, strict=True)
                if own == fold
            ]
        for t in _TEMPERATURES:
            loss = sum(_loss(z[None] / t, np.array([right])) for z, right in scored) / len(scored)
            found.append((loss, strength, t, float(np.mean([z.argmax() == right for z, right in scored]))))
    _, strength, temperature, accuracy = min(found)
    weights = _conditional(groups, spread, strength)
    return Head(weights[None], np.zeros(1), temperature, np.zeros((0, 1)), accuracy)


def _conditional(groups: Sequence[OptionGroup], spread: Matrix, strength: float) -> Matrix:
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


def _logistic(values: Matrix, wanted: NDArray[Any], strength: float) -> tuple[Matrix, Matrix]:
    """Weights (k, n) and bias (k,)."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as exc:
        raise UsageError(
            "tuning needs scikit-learn", where="panda tune", fix="pip install 'panda-turns[tune]'"
        ) from exc
    model = LogisticRegression(C=strength, max_iter=2000, class_weight="balanced").fit(values, wanted)
    weights, bias = model.coef_, model.intercept_
    if len(weights) == 1:  # one row stands for the second class against the first
        return np.vstack([np.zeros_like(weights), weights]), np.array([0.0, bias[0]])
    return weights, bias


def _loss(logits: Matrix, wanted: NDArray[Any]) -> float:
    """Mean negative log-probability of the right class."""
    return float((_norm(logits) - logits[np.arange(len(wanted)), wanted]).mean())


def _norm(logits: Matrix) -> Matrix:
    top = logits.max(axis=1)
    return np.asarray(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)))
