"""Fits made from labelled cases: the head of each step whose scorer is `fit` (needs scikit-learn)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from panda.errors import UsageError
from panda.evals.cases import Case
from panda.evals.kinds import KINDS
from panda.evals.running import EvalJournal, recipe_of, request_of
from panda.recipes.fit_cases import NO, YES, judges_options
from panda.recipes.fits import Fit, fit_to_json

if TYPE_CHECKING:
    from panda.recipes.executor import RecipeExecutor

_STRENGTHS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
_TEMPERATURES = tuple(round(0.5 * 1.1**n, 4) for n in range(25))
_FOLDS = 5
_GAIN_WEIGHT = 10.0
"""How much larger a gain is than one of the hidden state's values, so that it is regularised less."""


@dataclass(frozen=True)
class Tuned:
    """One fit that was made."""

    recipe: str
    """The recipe."""
    choice: str
    """The property."""
    name: str
    """File name below `fits/`."""
    content: dict[str, Any]
    """What the file holds."""


@dataclass(frozen=True)
class _Example:
    """One labelled hidden state."""

    group: str
    """Query: states of one query are never in two folds."""
    state: tuple[float, ...]
    """What the model's final layer holds."""
    gains: tuple[float, ...]
    """How much likelier the query becomes."""
    label: str
    """Its class."""


def tune(
    executor: "RecipeExecutor", cases: Sequence[Case], *, advance: Callable[[], None] = lambda: None
) -> list[Tuned]:
    """
    Make a fit for each property that the cases ask and that has a step with the scorer fit.

    Args:
        executor: Asks the models for hidden states.
        cases: Labelled cases, of the half that may be seen.
        advance: Told after each case.

    Raises:
        UsageError: scikit-learn is missing, or the cases of a property have one class.
    """
    found: dict[tuple[str, str], list[_Example]] = {}
    for case in cases:
        kind = KINDS[case.kind]
        if kind.step is not None:
            recipe = recipe_of(executor, kind)
            found.setdefault((recipe, kind.choice), []).extend(_examples(executor, recipe, case))
        advance()
    return [_make(executor, *place, examples) for place, examples in found.items() if examples]


def _examples(executor: "RecipeExecutor", recipe: str, case: Case) -> list[_Example]:
    request, kind = request_of(case), KINDS[case.kind]
    scorer, spec = executor.scorer(recipe, kind.choice, request, EvalJournal())
    step = next((step for step in spec.steps if step.scorer == "fit"), None)
    if step is None or (case.kind == "nothing" and case.label == kind.yes):
        return []  # which option answers is not said
    states = scorer.states(spec, step, request)
    if not judges_options(spec, step):
        return [_Example(case.query, state, gains, str(case.label)) for state, gains in states]
    right = (
        {case.label} if kind.answers == "first" else {i for i, _ in case.options if case.label == kind.yes}
    )
    ids = [option_id for option_id, _ in case.options]
    return [
        _Example(case.query, state, gains, YES if option_id in right else NO)
        for option_id, (state, gains) in zip(ids, states, strict=True)
    ]


def _make(executor: "RecipeExecutor", recipe: str, choice: str, examples: Sequence[_Example]) -> Tuned:
    labels = sorted({example.label for example in examples})
    if len(labels) < 2:
        raise UsageError(f"all cases of {recipe} {choice} have the label {labels[0]}", where="--cases")
    states = np.array([(*example.state, *example.gains) for example in examples], np.float64)
    weight = np.ones(states.shape[1])
    weight[len(examples[0].state) :] = _GAIN_WEIGHT
    wanted = np.array([labels.index(example.label) for example in examples])
    groups = np.array([example.group for example in examples])
    strength, logits = _choose_strength(states, wanted, groups, weight, len(labels))
    temperature = min(_TEMPERATURES, key=lambda t: _loss(logits / t, wanted))
    weights, bias = _head(states, wanted, weight, strength, len(labels))
    fit = Fit(
        tuple(labels), weights.astype(np.float32), bias.astype(np.float32), temperature, "", len(examples)
    )
    scorer, spec = executor.scorer(recipe, choice, None, EvalJournal())
    step = next(step for step in spec.steps if step.scorer == "fit")
    about = {
        "recipe": recipe,
        "choice": choice,
        "model": scorer.model_name,
        "strength": strength,
        "accuracy_in_folds": round(float((logits.argmax(axis=1) == wanted).mean()), 4),
    }
    return Tuned(recipe, choice, scorer.fit_name(spec, step), fit_to_json(fit, about))


def _choose_strength(
    states: NDArray[Any], wanted: NDArray[Any], groups: NDArray[Any], weight: NDArray[Any], classes: int
) -> tuple[float, NDArray[Any]]:
    """The regularisation that predicts left-out queries best, and its logits for them."""
    names = {name: n % _FOLDS for n, name in enumerate(dict.fromkeys(groups))}
    folds = np.array([names[group] for group in groups])
    best: tuple[float, float, NDArray[Any]] | None = None
    for strength in _STRENGTHS:
        logits = np.zeros((len(wanted), classes))
        for fold in range(_FOLDS):
            inside, outside = folds != fold, folds == fold
            if len(set(wanted[inside])) == classes and outside.any():
                weights, bias = _head(states[inside], wanted[inside], weight, strength, classes)
                logits[outside] = states[outside] @ weights.T + bias
        loss = min(_loss(logits / t, wanted) for t in _TEMPERATURES)
        if best is None or loss < best[0]:
            best = (loss, strength, logits)
    assert best is not None
    return best[1], best[2]


def _head(
    states: NDArray[Any], wanted: NDArray[Any], weight: NDArray[Any], strength: float, classes: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weights (k, n) and bias (k,) for raw states; the regression sees them standardised and weighted."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as exc:
        raise UsageError(
            "tuning needs scikit-learn", where="panda tune", fix="pip install 'panda-turns[tune]'"
        ) from exc
    middle, spread = states.mean(axis=0), (states.std(axis=0) + 1e-6) / weight
    model = LogisticRegression(C=strength, max_iter=2000).fit((states - middle) / spread, wanted)
    weights, bias = model.coef_ / spread, model.intercept_
    if classes == 2:  # one row stands for the second class against the first
        weights, bias = np.vstack([np.zeros_like(weights), weights]), np.array([0.0, bias[0]])
    return weights, bias - weights @ middle


def _loss(logits: NDArray[Any], wanted: NDArray[Any]) -> float:
    """Mean negative log-probability of the right class."""
    moved = logits - logits.max(axis=1, keepdims=True)
    chosen = moved[np.arange(len(wanted)), wanted] - np.log(np.exp(moved).sum(axis=1))
    return float(-chosen.mean())
