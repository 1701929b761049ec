"""Fits made from labelled cases: the head of each step whose scorer is `fit` (needs scikit-learn)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from panda.errors import UsageError
from panda.evals.cases import Case
from panda.evals.heads import RivalGroup, fit_classes, fit_rivals
from panda.evals.kinds import KINDS
from panda.evals.running import EvalJournal, recipe_of, request_of
from panda.recipes.fit_cases import NO, YES, judges_options
from panda.recipes.fits import ANY, RANK, Fit, fit_to_json

if TYPE_CHECKING:
    from panda.recipes.executor import RecipeExecutor

_GAIN_WEIGHT = 10.0
"""How much larger a gain is than one of the hidden state's values, so that it is regularised less."""
_ANSWERS = "synthesis"
"""Route of a query that an option answers."""


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
    """One labelled case, or one option of it."""

    query: str
    """What was asked."""
    state: tuple[float, ...]
    """What the model's final layer holds."""
    gains: tuple[float, ...]
    """How much likelier the query becomes."""
    label: str
    """Its class."""


@dataclass
class _Fitting:
    """What one fit is made from."""

    recipe: str
    choice: str
    model: str
    examples: list[_Example] = field(default_factory=list)
    groups: list[RivalGroup] = field(default_factory=list)


def tune(
    executor: "RecipeExecutor", cases: Sequence[Case], *, advance: Callable[[], None] = lambda: None
) -> list[Tuned]:
    """
    Make every fit that the recipes asked by the cases read.

    Args:
        executor: Asks the models for likelihoods and hidden states.
        cases: Labelled cases, of the half that may be seen.
        advance: Told after each case.

    Raises:
        UsageError: scikit-learn is missing, or the cases of a fit have one class.
    """
    found: dict[str, _Fitting] = {}
    for case in cases:
        if KINDS[case.kind].step is not None:
            _add(executor, case, found)
        advance()
    return [_make(name, fitting) for name, fitting in found.items() if fitting.examples or fitting.groups]


def _add(executor: "RecipeExecutor", case: Case, found: dict[str, _Fitting]) -> None:
    """What the case says of each fit that its choice reads; a step of one class borrows another's fit."""
    request, kind = request_of(case), KINDS[case.kind]
    recipe = recipe_of(executor, kind)
    scorer, spec = executor.scorer(recipe, kind.choice, request, EvalJournal())
    if kind.answers == "any" and [step.scorer for step in spec.steps] == ["likelihood"]:
        scores = scorer.choose(spec, request, str, 1).scores
        label = YES if case.label == kind.yes else NO
        name = scorer.confidence_name(spec)
        fitting = found.setdefault(name, _Fitting(recipe, kind.choice, scorer.model_name))
        fitting.examples.append(_Example(case.query, (), (max(scores.values()),), label))
    for step in spec.steps:
        if step.scorer != "fit" or step.class_ is not None:
            continue
        fitting = found.setdefault(scorer.fit_name(step), _Fitting(recipe, kind.choice, scorer.model_name))
        if scorer.reads_rivals(step):
            for one in _with_twin(case) if request.options.get(step.over or spec.name) else ():
                values = [gains for _, gains in scorer.states(spec, step, request_of(one))]
                fitting.groups.append(_group(one, np.array(values)))
        elif not (judges_options(spec, step) and kind.answers == "value"):
            fitting.examples += _examples(
                case, judges_options(spec, step), scorer.states(spec, step, request)
            )


def _with_twin(case: Case) -> list[Case]:
    """The case, and the same without the option that answers, if that is known; none without options."""
    kind = KINDS[case.kind]
    if kind.answers != "first":
        return [case] if case.options else []
    others = tuple(option for option in case.options if option[0] != case.label)
    return [case, replace(case, options=others, label="")] if others else [case]


def _group(case: Case, values: NDArray[Any]) -> RivalGroup:
    ids = [option_id for option_id, _ in case.options]
    if KINDS[case.kind].answers == "first":
        right = ids.index(case.label) if case.label in ids else None
        return RivalGroup(case.query, values, right, right is not None)
    return RivalGroup(case.query, values, None, case.label in (KINDS[case.kind].yes, _ANSWERS))


def _examples(
    case: Case, is_by_option: bool, states: Sequence[tuple[tuple[float, ...], tuple[float, ...]]]
) -> list[_Example]:
    if not is_by_option:
        return [_Example(case.query, state, gains, str(case.label)) for state, gains in states]
    label = YES if case.label == KINDS[case.kind].yes else NO
    return [_Example(case.query, state, gains, label) for state, gains in states]


def _make(name: str, fitting: _Fitting) -> Tuned:
    fit, about = _make_rivals(fitting) if fitting.groups else _make_classes(fitting)
    about |= {"recipe": fitting.recipe, "choice": fitting.choice, "model": fitting.model}
    return Tuned(fitting.recipe, fitting.choice, name, fit_to_json(fit, about))


def _make_classes(fitting: _Fitting) -> tuple[Fit, dict[str, Any]]:
    examples = fitting.examples
    labels = sorted({example.label for example in examples})
    if len(labels) < 2:
        raise UsageError(
            f"all cases of {fitting.recipe} {fitting.choice} have the label {labels[0]}", where="--cases"
        )
    values = np.array([(*example.state, *example.gains) for example in examples], np.float64)
    weight = np.ones(values.shape[1])
    weight[len(examples[0].state) :] = _GAIN_WEIGHT
    wanted = np.array([labels.index(example.label) for example in examples])
    head = fit_classes(values, wanted, [example.query for example in examples], weight)
    weights, bias = head.weights.astype(np.float32), head.bias.astype(np.float32)
    fit = Fit(tuple(labels), weights, bias, head.temperature, "", len(examples))
    return fit, {"strength": head.strength, "accuracy_in_folds": round(head.accuracy, 4)}


def _make_rivals(fitting: _Fitting) -> tuple[Fit, dict[str, Any]]:
    groups = fitting.groups
    if all(group.answered for group in groups) or all(group.right is None for group in groups):
        raise UsageError(
            f"{fitting.recipe} {fitting.choice} needs cases that an option answers, and cases that none does",
            where="--cases",
        )
    rank, any_ = fit_rivals(groups)
    weights = np.vstack([rank.weights / rank.temperature, any_.weights[1:] / any_.temperature])
    bias = np.array([0.0, any_.bias[1] / any_.temperature])
    fit = Fit((RANK, ANY), weights.astype(np.float32), bias.astype(np.float32), 1.0, "", len(groups))
    about = {"strength": [rank.strength, any_.strength]}
    return fit, {**about, "accuracy_in_folds": [round(rank.accuracy, 4), round(any_.accuracy, 4)]}
