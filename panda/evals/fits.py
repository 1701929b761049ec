"""Fits made from labelled cases: the head of each step that reads one (needs scikit-learn)."""

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from panda.choosing.decision import PHRASES, Question
from panda.choosing.fits import Fit, fit_to_json, mark_phrases, name_fit, read_values
from panda.choosing.scorers import read_options
from panda.documents.progress import progress
from panda.errors import UsageError
from panda.evals.cases import Case
from panda.language.wording import word_runs
from panda.recipes.calls import NoTurn
from panda.recipes.executor import RecipeExecutor

_STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_TEMPERATURES = (0.5, 5.0)  # least and most
_FOLDS, _LEAST_QUERIES = 5, 3  # that many with a run of words that counts
Example = tuple[str, Any, str, dict[str, Any]]  # query, what the step reads, label; what is told of the fit


def tune(executor: RecipeExecutor, cases: Sequence[Case]) -> dict[str, dict[str, Any]]:
    """
    Every fit that the recipes asked by the cases read, by the name of its file below `fits/`. UsageError:
    there is no encoder, scikit-learn is missing, or a fit has too few cases of a class.
    """
    if find_spec("sklearn") is None:
        fix = "pip install 'panda-turns[tune]'"
        raise UsageError("tuning needs scikit-learn", where="panda tune", fix=fix)
    fits: dict[str, list[Example]] = {}
    with progress("cases", len(cases)) as advance:
        for case in cases:
            if case.of.asks:
                _add(executor, case, fits)
            advance()
    return {name: _fit(examples) for name, examples in fits.items()}


def _add(executor: RecipeExecutor, case: Case, fits: dict[str, list[Example]]) -> None:
    """What the case says of each fit that its choice reads; a step of one class borrows another's fit."""
    kind, recipe = case.of, case.of.recipe_key(executor.book)
    spec, inputs, ask = executor.asking(recipe, kind.choice, case.request(), NoTurn())
    if ask.encoder is None:
        raise UsageError("tuning needs an encoder", where="models.yaml (encoder)", fix="name one there")
    about = {"recipe": recipe, "choice": kind.choice, "encoder": ask.encoder.info.name}
    for step in spec.steps:
        question = Question(spec, step, inputs.options.get(step.over or spec.name, ()), inputs)
        if step.scorer == "head" and step.class_ is None:
            name, values = name_fit(question, ask), read_values(question, ask)
        elif step.scorer == "options" and kind.answers == "any" and question.options:
            name, values = name_fit(question, ask), np.array(read_options(question, ask)[1])
        else:
            continue
        label = case.label if kind.answers == "any" else kind.labels.get(str(case.label), case.label)
        example = case.query, values, str(label), {**about, "reads": list(step.reads)}
        fits.setdefault(name, []).append(example)


def _fit(examples: Sequence[Example]) -> dict[str, Any]:
    """The softmax head of the least loss in folds, none of which part the cases of one query."""
    from scipy.optimize import minimize_scalar
    from scipy.sparse import csr_matrix
    from scipy.special import softmax
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict

    queries, read, labels, (about, *_) = zip(*examples, strict=True)
    classes, wanted = np.unique(labels, return_inverse=True)
    least = min(Counter(label for _, label in {*zip(queries, labels, strict=True)}).values())
    if least < 2 or len(classes) < 2:
        fix = "write cases of two labels or more, with at least two queries each"
        raise UsageError(f"too few cases of {about['recipe']} {about['choice']}", where="--cases", fix=fix)
    counts = Counter(run for query in queries for run in {*word_runs(query)})
    common = tuple(sorted(run for run, count in counts.items() if count >= _LEAST_QUERIES))
    phrases = common if PHRASES in about["reads"] else ()
    marks = np.array([mark_phrases(query, phrases) for query in queries])
    values = csr_matrix(np.hstack([np.array(read, np.float64), marks]))  # most are zero
    folds = [*StratifiedGroupKFold(min(_FOLDS, least)).split(values, wanted, queries)]

    def loss(temperature: float, logits: Any) -> float:
        return float(log_loss(wanted, softmax(logits / temperature, axis=1)))

    heads = []
    for strength in _STRENGTHS:
        head = LogisticRegression(C=strength, max_iter=2000, class_weight="balanced")
        logits = cross_val_predict(head, values, wanted, cv=folds, method="decision_function")
        logits = _of_each_class(logits)
        best = minimize_scalar(loss, args=(logits,), bounds=_TEMPERATURES, method="bounded")
        heads.append((best.fun, strength, best.x, float((logits.argmax(axis=1) == wanted).mean()), head))
    *_, temperature, accuracy, head = min(heads, key=lambda tried: tried[0])
    head.fit(values, wanted)
    weights, bias = _of_each_class(head.coef_.T).T, _of_each_class(head.intercept_[None])[0]
    made = (weights.astype(np.float32), bias.astype(np.float32), float(temperature), "", len(wanted))
    fit = Fit(tuple(map(str, classes)), *made, phrases)
    return fit_to_json(fit, {"accuracy_in_folds": round(accuracy, 4), **about})


def _of_each_class(columns: Any) -> Any:
    """Of two classes scikit-learn gives the second's column alone."""
    column = columns.reshape(len(columns), -1)
    return np.hstack([np.zeros_like(column), column]) if column.shape[1] == 1 else column
