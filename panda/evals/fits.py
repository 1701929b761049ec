"""Fits made from labelled cases: the head of each step that reads one (needs scikit-learn)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from panda.choosing.decision import PHRASES, Question
from panda.choosing.fits import Fit, fit_to_json
from panda.choosing.heads import mark_phrases, name_head, read_values
from panda.choosing.scorers import name_options, read_options
from panda.documents.progress import progress
from panda.errors import UsageError
from panda.evals.answers import recipe_of, request_of
from panda.evals.cases import Case
from panda.language.wording import word_runs
from panda.recipes.calls import NoTurn

if TYPE_CHECKING:
    from panda.recipes.executor import RecipeExecutor


_STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_TEMPERATURES = tuple(round(0.5 * 1.1**n, 4) for n in range(25))
_FOLDS = 5
_LEAST_QUERIES = 3  # of a run of words that counts

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Head:
    """Logits are (values @ weights.T + bias) / temperature."""

    weights: Matrix  # (k, n)
    bias: Matrix  # (k,)
    temperature: float  # what makes the logits' softmax a probability
    left_out: Matrix  # (cases, k): probabilities by heads that have not seen the case
    accuracy: float  # share of cases that those have right


def fit_classes(values: Matrix, wanted: NDArray[Any], groups: Sequence[str]) -> Head:
    """
    A softmax head; its strength and temperature are those with the least loss in folds. *wanted* has the
    index of each case's class, of which every one occurs; cases of one group are never in two folds.
    """
    _require_scikit_learn()
    from scipy.sparse import csr_matrix

    numbers = {name: n % _FOLDS for n, name in enumerate(dict.fromkeys(groups))}
    folds, classes = np.array([numbers[group] for group in groups]), int(wanted.max()) + 1
    sparse = csr_matrix(values)  # most are zero
    found: list[tuple[float, float, float, Matrix]] = []
    for strength in _STRENGTHS:
        logits = np.zeros((len(wanted), classes))
        for fold in range(_FOLDS):
            inside, outside = folds != fold, folds == fold
            if len(set(wanted[inside])) == classes and outside.any():
                weights, bias = _logistic(sparse[inside], wanted[inside], strength)
                logits[outside] = sparse[outside] @ weights.T + bias
        temperature = min(_TEMPERATURES, key=lambda t: _loss(logits / t, wanted))
        found.append((_loss(logits / temperature, wanted), strength, temperature, logits))
    _, strength, temperature, logits = min(found, key=lambda one: one[0])
    weights, bias = _logistic(sparse, wanted, strength)
    left_out = np.exp(logits / temperature - _norm(logits / temperature)[:, None])
    accuracy = float((logits.argmax(axis=1) == wanted).mean())
    return Head(weights, bias, temperature, left_out, accuracy)


def _require_scikit_learn() -> None:
    """Called before what it is needed for is worked out."""
    if find_spec("sklearn") is None:
        fix = "pip install 'panda-turns[tune]'"
        raise UsageError("tuning needs scikit-learn", where="panda tune", fix=fix)


def _logistic(values: Any, wanted: NDArray[Any], strength: float) -> tuple[Matrix, Matrix]:
    """Weights (k, n) and bias (k,) for sparse values (cases, n)."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=strength, max_iter=2000, class_weight="balanced").fit(values, wanted)
    weights, bias = model.coef_, model.intercept_
    if len(weights) == 1:  # one row stands for the second class against the first
        return np.vstack([np.zeros_like(weights), weights]), np.array([0.0, bias[0]])
    return weights, bias


def _loss(logits: Matrix, wanted: NDArray[Any]) -> float:
    return float((_norm(logits) - logits[np.arange(len(wanted)), wanted]).mean())


def _norm(logits: Matrix) -> Matrix:
    top = logits.max(axis=1)
    return np.asarray(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)))


@dataclass(frozen=True)
class Tuned:
    recipe: str
    choice: str  # the property
    name: str  # file name below `fits/`
    content: dict[str, Any]  # what the file holds


@dataclass
class _Fitting:
    recipe: str
    choice: str
    encoder: str
    reads: tuple[str, ...]
    queries: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


def tune(executor: "RecipeExecutor", cases: Sequence[Case]) -> list[Tuned]:
    """
    Make every fit that the recipes asked by the cases read, which are of the half that may be seen.
    UsageError: there is no encoder, scikit-learn is missing, or the cases of a fit have one class.
    """
    _require_scikit_learn()
    found: dict[str, _Fitting] = {}
    with progress("cases", len(cases)) as advance:
        for case in cases:
            if case.of.has_recipe:
                _add(executor, case, found)
            advance()
    return [_make(name, fitting) for name, fitting in found.items()]


def _add(executor: "RecipeExecutor", case: Case, found: dict[str, _Fitting]) -> None:
    """What the case says of each fit that its choice reads; a step of one class borrows another's fit."""
    kind = case.of
    recipe = recipe_of(executor, kind)
    spec, inputs, ask = executor.asking(recipe, kind.choice, request_of(case), NoTurn())
    if ask.encoder is None:
        raise UsageError("tuning needs an encoder", where="models.yaml (encoder)", fix="name one there")
    for step in spec.steps:
        question = Question(spec, step, inputs.options.get(step.over or spec.name, ()), inputs)
        is_head = step.scorer == "head" and step.class_ is None
        is_answered = step.scorer == "options" and kind.answers == "any" and question.options
        if not is_head and not is_answered:
            continue
        name = name_head(question, ask) if is_head else name_options(question, ask)
        fitting = found.setdefault(name, _Fitting(recipe, kind.choice, ask.encoder.info.name, step.reads))
        fitting.queries.append(case.query)
        fitting.values.append(read_values(question, ask) if is_head else read_options(question, ask)[1])
        fitting.labels.append(kind.values.get(str(case.label), str(case.label)))


def _make(name: str, fitting: _Fitting) -> Tuned:
    fit, about = _make_classes(fitting)
    about |= {"recipe": fitting.recipe, "choice": fitting.choice, "encoder": fitting.encoder}
    about["reads"] = list(fitting.reads)
    return Tuned(fitting.recipe, fitting.choice, name, fit_to_json(fit, about))


def _make_classes(fitting: _Fitting) -> tuple[Fit, dict[str, Any]]:
    labels = sorted(set(fitting.labels))
    if len(labels) < 2:
        raise UsageError(
            f"all cases of {fitting.recipe} {fitting.choice} have the label {labels[0]}", where="--cases"
        )
    wanted = np.array([labels.index(label) for label in fitting.labels])
    counts = Counter(run for query in fitting.queries for run in {*word_runs(query)})
    common = tuple(sorted(run for run, count in counts.items() if count >= _LEAST_QUERIES))
    phrases = common if PHRASES in fitting.reads else ()
    marks = np.array([mark_phrases(query, phrases) for query in fitting.queries])
    values = np.hstack([np.array(fitting.values, np.float64), marks])
    head = fit_classes(values, wanted, fitting.queries)
    weights, bias = head.weights.astype(np.float32), head.bias.astype(np.float32)
    fit = Fit(tuple(labels), weights, bias, head.temperature, "", len(wanted), phrases)
    return fit, {"accuracy_in_folds": round(head.accuracy, 4)}
