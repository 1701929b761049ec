"""Fits made from labelled cases: the head of each step that reads one (needs scikit-learn)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from panda.choosing.decision import GAIN, MUTUAL, RANKING, Question
from panda.choosing.fits import ANY, RANK, Fit, fit_to_json, rivals_of
from panda.choosing.heads import name_head, read_values
from panda.choosing.scorers import OptionReader, name_options
from panda.errors import UsageError
from panda.evals.answers import recipe_of, request_of
from panda.evals.cases import Case, Kind
from panda.recipes.calls import NoTurn

if TYPE_CHECKING:
    from panda.choosing.ask import Ask
    from panda.recipes.executor import RecipeExecutor


_STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_OPTION_STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
_TEMPERATURES = tuple(round(0.5 * 1.1**n, 4) for n in range(25))
_FOLDS = 5
_NEWTON_STEPS = 30

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Head:
    """Logits are (values @ weights.T + bias) / temperature."""

    weights: Matrix  # (k, n)
    bias: Matrix  # (k,)
    temperature: float  # what makes the logits' softmax a probability
    left_out: Matrix  # (cases, k): probabilities by heads that have not seen the case
    accuracy: float  # share of cases that those have right


@dataclass(frozen=True)
class OptionGroup:
    """Options that were read beside each other."""

    query: str  # groups of one query are never in two folds
    values: Matrix  # (n, m): m values of each of n options
    right: int | None
    """Which one answers; None if none does or it is not said, and where each is judged for itself."""
    answered: bool  # whether any does


def fit_classes(values: Matrix, wanted: NDArray[Any], groups: Sequence[str]) -> Head:
    """
    A softmax head; its strength and temperature are those with the least loss in folds.

    Args:
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


def _require_scikit_learn() -> None:
    """Raises UsageError where scikit-learn is missing, before what it is needed for was worked out."""
    if find_spec("sklearn") is None:
        fix = "pip install 'panda-turns[tune]'"
        raise UsageError("tuning needs scikit-learn", where="panda tune", fix=fix)


def _logistic(values: Matrix, wanted: NDArray[Any], strength: float) -> tuple[Matrix, Matrix]:
    """Weights (k, n) and bias (k,)."""
    _require_scikit_learn()
    from sklearn.linear_model import LogisticRegression

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


_SURE = 0.95  # share of cases beyond a bar that must come out as the bar says


@dataclass(frozen=True)
class Tuned:
    """One fit that was made."""

    recipe: str
    choice: str  # the property
    name: str  # file name below `fits/`
    content: dict[str, Any]  # what the file holds


@dataclass
class _Fitting:
    """What one fit is made from."""

    recipe: str
    choice: str
    encoder: str
    reads: tuple[str, ...]
    queries: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    groups: list[OptionGroup] = field(default_factory=list)
    readers: list[OptionReader] = field(default_factory=list)
    """One a group: reads further values of its options."""


def tune(
    executor: "RecipeExecutor", cases: Sequence[Case], *, advance: Callable[[], None] = lambda: None
) -> list[Tuned]:
    """
    Make every fit that the recipes asked by the cases read.

    Args:
        cases: Labelled cases, of the half that may be seen.

    Raises:
        UsageError: There is no encoder, scikit-learn is missing, or the cases of a fit have one class.
    """
    _require_scikit_learn()
    found: dict[str, _Fitting] = {}
    for case in cases:
        kind = case.of
        if kind.has_recipe:
            _add(executor, case, kind, found)
        advance()
    return [_make(name, fitting) for name, fitting in found.items()]


def _add(executor: "RecipeExecutor", case: Case, kind: Kind, found: dict[str, _Fitting]) -> None:
    """What the case says of each fit that its choice reads; a step of one class borrows another's fit."""
    recipe = recipe_of(executor, kind)
    spec, inputs, ask = executor.asking(recipe, kind.choice, request_of(case), NoTurn())
    if ask.encoder is None:
        raise UsageError("tuning needs an encoder", where="models.yaml (encoder)", fix="name one there")
    for step in spec.steps:
        question = Question(spec, step, inputs.options.get(step.over or spec.name, ()), inputs)
        is_head = step.scorer == "head" and step.class_ is None
        if not is_head and not (step.scorer == "options" and question.options and case.label):
            continue
        name = name_head(question, ask) if is_head else name_options(question, ask)
        fitting = found.setdefault(name, _Fitting(recipe, kind.choice, ask.encoder.info.name, step.reads))
        if is_head:
            fitting.queries.append(case.query)
            fitting.values.append(read_values(question, ask))
            fitting.labels.append(str(case.label))
        else:
            _add_group(case, question, ask, fitting)


def _add_group(case: Case, question: Question, ask: "Ask", fitting: _Fitting) -> None:
    kind, ids = case.of, [option.id for option in question.options]
    reader = OptionReader(question, ask)
    rows = reader.with_gain(reader.read_cheap())
    right = ids.index(str(case.label)) if kind.answers == "first" and case.label in ids else None
    answered = right is not None if kind.answers == "first" else case.label == kind.yes
    fitting.groups.append(OptionGroup(case.query, np.array(rows), right, answered))
    fitting.readers.append(reader)


def _make(name: str, fitting: _Fitting) -> Tuned:
    fit, about = _make_options(fitting) if fitting.groups else _make_classes(fitting)
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
    head = fit_classes(np.array(fitting.values, np.float64), wanted, fitting.queries)
    weights, bias = head.weights.astype(np.float32), head.bias.astype(np.float32)
    fit = Fit(tuple(labels), weights, bias, head.temperature, "", len(wanted))
    return fit, {"accuracy_in_folds": round(head.accuracy, 4)}


def _make_options(fitting: _Fitting) -> tuple[Fit, dict[str, Any]]:
    groups, reads = fitting.groups, fitting.reads
    ranks = any(len(group.values) > 1 for group in groups)
    unsaid = [group for group in groups if group.right is None]
    if len({group.answered for group in unsaid}) < 2 or (ranks and len(unsaid) == len(groups)):
        raise UsageError(
            f"{fitting.recipe} {fitting.choice} needs cases that say which option answers, and cases that "
            "say whether any does, of both labels",
            where="--cases",
        )
    cheap = reads[: reads.index(GAIN)] if GAIN in reads else ()
    fit, about, _ = _fit_of(groups, reads, fitting.readers, ranks=ranks)
    if cheap:
        few = [replace(group, values=group.values[:, : len(cheap)]) for group in groups]
        first, accuracy, left_out = _fit_of(few, cheap, None, ranks=ranks)
        bars = _find_bars(left_out, np.array([group.answered for group in unsaid]))
        fit = replace(fit, first=first, bars=bars)
        about["accuracy_in_folds_without_gain"] = accuracy["accuracy_in_folds"]
    return fit, about


def _fit_of(
    groups: Sequence[OptionGroup],
    reads: Sequence[str],
    readers: Sequence[OptionReader] | None,
    *,
    ranks: bool,
) -> tuple[Fit, dict[str, Any], Any]:
    """The fit, what is said of it, and how probably something answers each group that it has not seen."""
    found, heads, kinds = [group.values for group in groups], list[Head](), list[str]()
    best = [0] * len(groups)
    if ranks:
        columns = [reads.index(name) for name in RANKING if name in reads]
        if readers and MUTUAL in reads:
            draft = fit_order(groups, columns[: columns.index(reads.index(MUTUAL))]).weights[0]
            rivals = [rivals_of(group.values @ draft) for group in groups]
            found = [
                np.array(reader.with_mutual(group.values.tolist(), close))
                for group, reader, close in zip(groups, readers, rivals, strict=True)
            ]
            groups = [replace(group, values=values) for group, values in zip(groups, found, strict=True)]
        heads.append(fit_order(groups, columns))
        best = [int((values @ heads[0].weights[0]).argmax()) for values in found]
        kinds.append(RANK)
    asked = [n for n, group in enumerate(groups) if group.right is None]
    rows = [
        readers[n].with_best(found[n].tolist(), best[n])[best[n]] if readers else found[n][best[n]]
        for n in asked
    ]
    kept = [n for n, name in enumerate(reads) if name != MUTUAL]
    answers = [groups[n].answered for n in asked]
    any_ = fit_answers(np.array(rows)[:, kept], answers, [groups[n].query for n in asked])
    heads.append(any_)
    weights = np.zeros((len(heads), len(reads)))
    weights[-1, kept] = any_.weights[0]
    if ranks:
        weights[0, : heads[0].weights.shape[1]] = heads[0].weights[0]
    bias = np.concatenate([head.bias for head in heads])
    fit = Fit((*kinds, ANY), weights.astype(np.float32), bias.astype(np.float32), 1.0, "", len(groups))
    return fit, {"accuracy_in_folds": [round(head.accuracy, 4) for head in heads]}, any_.left_out[:, 1]


def _find_bars(probable: Any, answered: Any) -> tuple[float, float]:
    """The narrowest bars beyond which the cheap values alone are right often enough."""
    order = np.argsort(probable)
    sorted_, answers = probable[order], answered[order]
    count = np.arange(1, len(order) + 1)
    low = np.flatnonzero((~answers).cumsum() / count >= _SURE)
    high = np.flatnonzero(answers[::-1].cumsum() / count >= _SURE)
    bottom = float(sorted_[low[-1]]) if len(low) else 0.0
    top = float(sorted_[::-1][high[-1]]) if len(high) else 1.0
    return (round(bottom, 4), round(top, 4)) if bottom < top else (0.0, 1.0)
