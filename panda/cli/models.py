"""`panda models list` and `panda models check`."""

from collections.abc import Sequence

from panda.cli.contract import Invocation, Result, Table
from panda.errors import CheckError
from panda.models.layers import Layers
from panda.models.models_file import ModelsFile
from panda.models.survey import ModelState, check_models, survey_models
from panda.trust import load_models

_COLUMNS = ("model", "layers", "backend", "n_ctx", "writes", "scores", "seconds", "location or error")


def list_models(invocation: Invocation) -> Result:
    """
    List the models of models.yaml and the layers they serve, without loading one.

    Example: panda models list
    """
    models_file = load_models(invocation.settings)
    with _layers(invocation, models_file) as layers:
        states = survey_models(models_file, layers)
    return Result(_data(models_file, states), _table(states))


def check(invocation: Invocation) -> Result:
    """
    Load each model, write or score one token with it, and say how long that took.

    Example: panda models check
    """
    models_file = load_models(invocation.settings)
    states = []
    with (
        _layers(invocation, models_file) as layers,
        invocation.reporter.progress("models", len(models_file.models)) as advance,
    ):
        for state in check_models(models_file, layers):
            states.append(state)
            advance()
    errors = [state.error for state in states if state.error]
    error = None
    if errors:
        message = f"{len(errors)} of {len(states)} models cannot be used"
        error = CheckError(message, where=str(models_file.path), fix=errors[0].fix)
    return Result(_data(models_file, states), _table(states), error=error)


def _layers(invocation: Invocation, models_file: ModelsFile) -> Layers:
    return Layers(models_file, cache_dir=invocation.settings.cache_dir, environ=invocation.environ)


def _table(states: Sequence[ModelState]) -> Table:
    rows = [
        (
            state.spec.name,
            " ".join(state.layers),
            state.spec.backend,
            state.info.n_ctx if state.info else state.spec.n_ctx,
            "yes" if state.spec.writes else "no",
            "yes" if state.spec.scores else "no",
            None if state.seconds is None else round(state.seconds, 1),
            f"{state.error.message} ({state.error.where})" if state.error else state.spec.location,
        )
        for state in states
    ]
    return Table(_COLUMNS, rows)


def _data(models_file: ModelsFile, states: Sequence[ModelState]) -> dict[str, object]:
    return {
        "models_file": str(models_file.path),
        "layers": dict(models_file.layers),
        "models": [
            {
                "name": state.spec.name,
                "backend": state.spec.backend,
                "location": state.spec.location,
                "n_ctx": state.info.n_ctx if state.info else state.spec.n_ctx,
                "writes": state.spec.writes,
                "scores": state.spec.scores,
                "digest": state.info.digest if state.info else None,
                "layers": list(state.layers),
                "seconds": state.seconds,
                "error": state.error.message if state.error else None,
            }
            for state in states
        ],
    }
