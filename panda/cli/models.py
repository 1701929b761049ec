"""`panda models`."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

from panda.cli.command import Invocation, OutputTable, Result, flag
from panda.documents.safe_text import count_noun
from panda.errors import CheckError, Problem, UsageError
from panda.models.layers import LoadedLayers
from panda.models.migration import migrate_models
from panda.models.models_file import ModelsFile, ModelSpec, load_models_file
from panda.models.survey import ModelState, ServerState, Trial, check_models, survey_models
from panda.settings import Settings
from panda.store.files import write_output
from panda.trust import load_models, require_trust

DryRun = Annotated[bool, flag("Only show what would change.", "--dry-run")]
"""The option of commands that rewrite models.yaml."""
_COLUMNS = (
    "model",
    "layers",
    "backend",
    "n_ctx",
    "embeds",
    "seconds",
    "tokens/s",
    "replies",
    "thinks",
    "logprobs",
    "asked for",
    "location or error",
)
_EXTRA = ("embeds", "n_ctx", "backend")
_TRIED = tuple(field.name for field in fields(Trial))


def list_models(invocation: Invocation) -> Result:
    """
    List the models of models.yaml, the layers they serve and what each is asked for, without loading one.

    Example: panda models list
    """
    models_file = load_models(invocation.settings)
    with _layers(invocation, models_file) as layers:
        states = survey_models(models_file, layers)
    return _result(invocation, models_file, states)


def check(invocation: Invocation) -> Result:
    """
    Use each model once: is it there, how fast, which dialect gives JSON, does it think, does it score.

    Example: panda models check
    """
    models_file = load_models(invocation.settings)
    states = []
    with invocation.reporter.progress("models", len(models_file.models)) as advance:
        for state in check_models(models_file, lambda: _layers(invocation, models_file)):
            states.append(state)
            advance()
    errors = [state.error for state in states if state.error]
    error = None
    if errors:
        is_partly = any(server.trial for state in states if state.error for server in state.servers)
        message = f"{len(errors)} of {count_noun(len(states), 'model')} cannot be used"
        message += ", or not on all of their servers" if is_partly else ""
        error = CheckError(message, where=str(models_file.path), fix=errors[0].fix)
    return _result(invocation, models_file, states, error)


def migrate(
    invocation: Invocation,
    dry_run: DryRun = False,
) -> Result:
    """
    Rewrite the models.yaml in force without keys of earlier versions, and show what changes.

    Layers whose model has `writes: false` become `offline`; writes, scores and requantize go. Comments and
    all else stay as they are. A file that reaches out of the project has to be trusted again.

    Example: panda models migrate --dry-run
    """
    settings = invocation.settings
    require_trust(settings, "models_file")
    models_file = load_models_file(settings.models_file)
    text, changes = migrate_models(models_file)
    path = models_file.path
    if changes and not dry_run:
        check_own_file(settings, path, command="panda models migrate")
        write_output(path, text)
    state = "would change" if dry_run else "rewritten"
    invocation.reporter.step(f"{state}: {path}" if changes else f"nothing to rewrite: {path}")
    data = {
        "models_file": str(path),
        "dry_run": dry_run,
        "changes": [
            {name: getattr(change, name) for name in ("key", "line", "before", "after", "is_removed")}
            for change in changes
        ],
    }
    lines = unified_diff(
        models_file.text.splitlines(), text.splitlines(), "models.yaml", "models.yaml", lineterm="", n=1
    )
    return Result(data, "".join(f"{line}\n" for line in lines))


def check_own_file(settings: Settings, path: Path, *, command: str) -> None:
    """
    Raise UsageError where a project's models.yaml is a link out of the project, or came with panda; *command*
    is the one to give where the file itself is named.
    """
    is_named = settings.origin("models_file") not in ("default", str(settings.project_file))
    if not is_named and not path.resolve().is_relative_to(settings.project_dir.resolve()):
        fix = f"PANDA_MODELS_FILE={shlex.quote(str(path.resolve()))} {command}"
        raise UsageError("models.yaml leads out of the project", where=str(path), fix=fix)


def _result(
    invocation: Invocation,
    models_file: ModelsFile,
    states: Sequence[ModelState],
    error: CheckError | None = None,
) -> Result:
    recipes = invocation.book().uses(models_file)
    uses = {state.spec.name: _Use(state.spec, recipes.get(state.spec.name, {})) for state in states}
    return Result(_data(models_file, states, uses), _table(states, uses), error=error)


@dataclass(frozen=True)
class _Use:
    """What a model is asked for."""

    spec: ModelSpec
    recipes: Mapping[str, Sequence[str]]  # keys of the recipes in force that ask it something, by layer

    def __str__(self) -> str:
        layers = ", ".join(f"{layer} {len(keys)}" for layer, keys in self.recipes.items())
        kind = "choices" if self.spec.embeds else "replies"
        return f"{kind} of recipes: {layers}" if layers else "nothing"


def _layers(invocation: Invocation, models_file: ModelsFile) -> LoadedLayers:
    return LoadedLayers(models_file, cache_dir=invocation.settings.cache_dir, environ=invocation.environ)


def _trial_cells(trial: Trial | None) -> tuple[object, ...]:
    """Cells of seconds, tokens a second, dialect, thinks and logprobs."""
    if trial is None:
        return (None,) * len(_TRIED)
    speed = trial.tokens_per_second
    words = {True: "yes", False: "no", None: None}
    marks = [words[mark] for mark in (trial.thinks, trial.logprobs)]
    return (round(trial.seconds, 1), None if speed is None else round(speed, 1), trial.structured, *marks)


def _table(states: Sequence[ModelState], uses: Mapping[str, _Use]) -> OutputTable:
    """One row a model, or one for each of its servers."""
    rows = []
    for state in states:
        own = (
            state.spec.name,
            " ".join(state.layers),
            state.spec.backend,
            state.info.n_ctx if state.info else state.spec.n_ctx,
            "yes" if state.spec.embeds else "no",
        )
        asked_for = str(uses[state.spec.name])
        for server in state.servers or [ServerState(state.spec.location, state.error, state.trial)]:
            error = server.error
            place = f"{error.message} ({error.where})" if error else server.url
            rows.append((*own, *_trial_cells(server.trial), asked_for, place))
    return OutputTable(_COLUMNS, rows, _EXTRA)


def _tried(trial: Trial | None, error: Problem | None) -> dict[str, object]:
    tried = asdict(trial) if trial else dict.fromkeys(_TRIED)
    return {**tried, "error": error.message if error else None}


def _data(
    models_file: ModelsFile, states: Sequence[ModelState], uses: Mapping[str, _Use]
) -> dict[str, object]:
    return {
        "models_file": str(models_file.path),
        "layers": dict(models_file.layers),
        "encoder": models_file.encoder,
        "served_by": {
            layer: [name for name, use in uses.items() if layer in use.recipes]
            for layer in models_file.layers
        },
        "models": [
            {
                "name": state.spec.name,
                "backend": state.spec.backend,
                "location": list(state.spec.servers) if len(state.servers) > 1 else state.spec.location,
                "width": state.spec.width,
                "n_ctx": state.info.n_ctx if state.info else state.spec.n_ctx,
                "embeds": state.spec.embeds,
                "digest": state.info.digest if state.info else None,
                "layers": list(state.layers),
                "asked_for": str(uses[state.spec.name]),
                "recipes": sorted(key for keys in uses[state.spec.name].recipes.values() for key in keys),
                **_tried(state.trial, state.error),
                "servers": [
                    {"location": server.url, **_tried(server.trial, server.error)} for server in state.servers
                ],
            }
            for state in states
        ],
    }
