"""`panda recipe`: the recipes in force, what they send, and their versions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from typing import Annotated, Any

from panda.cli.command import Invocation, OutputDocument, OutputTable, Raw, Result, argument, flag, option
from panda.cli.completion import complete_recipes, complete_turns
from panda.errors import RecipeError, UsageError
from panda.models.models_file import OFFLINE, ModelsFile, ModelSpec, load_models_file
from panda.recipes.book import RecipeBook, read_own_text
from panda.recipes.messages import Preview, preview_recipe
from panda.recipes.recipe_file import Recipe
from panda.recipes.versions import SHORT, VersionStore, version_in_force, write_version
from panda.settings import Settings
from panda.steps.all_steps import BASE_VARIABLES
from panda.steps.step_contract import StepContract
from panda.store.files import work_directory
from panda.store.records import RecipeVersion
from panda.store.turns import find_turn
from panda.trust import is_trusted

_COLUMNS = ("recipe", "layer", "serves", "total", "prompt", "input", "output", "risk", "purpose", "served by")


_EXTRA = ("served by", "risk", "output", "input", "prompt", "serves", "total")
_METRICS = ("executions", "valid", "retries", "judged", "confidence", "held", "p50_ms", "tokens")
"""What a history shows of ExecutionStats."""
_ROW_CHARS = 15
_Name = Annotated[
    str, argument("A recipe, such as pipeline/phase1_reflection.", "NAME", complete=complete_recipes)
]


def list_recipes(invocation: Invocation) -> Result:
    """
    List the recipes in force: layer, what serves them, token budgets and purpose.

    Example: panda recipe list
    """
    book = invocation.book()
    models = _models(invocation)
    recipes = [recipe for key in book.recipe_keys() if (recipe := _read(invocation, book, key))]
    entries = {key: entry for entry in book.registry() for key in entry.recipes.values()}
    serves = [(key, str(name)) for entry in book.registry() for name, key in entry.recipes.items()]
    served_recipes = [(r, entries.get(r.key), book.served_by(r, models) if models else None) for r in recipes]
    rows = [
        (
            *(
                r.key,
                r.model_layer,
                ", ".join(name for key, name in serves if key == r.key) or r.mode or "any",
            ),
            *(r.token_budget.total, r.token_budget.prompt, r.token_budget.input, r.token_budget.output),
            *((entry.risk, entry.purpose) if entry else (None, r.description)),
            server,
        )
        for r, entry, server in served_recipes
    ]
    data = [
        {
            "recipe": r.key,
            "name": r.name,
            "description": r.description,
            "path": str(r.path),
            "model_layer": r.model_layer,
            "served_by": server,
            "mode": r.mode,
            "serves": [name for key, name in serves if key == r.key],
            "token_budget": asdict(r.token_budget),
            "step": entry.step if entry else None,
            "purpose": entry.purpose if entry else None,
            "risk": entry.risk if entry else None,
        }
        for r, entry, server in served_recipes
    ]
    return Result({"recipes": data}, OutputTable(_COLUMNS, rows, _EXTRA))


def show(invocation: Invocation, name: _Name, raw: Raw = False) -> Result:
    """
    Show a recipe's file as it is, and below the contract of its step and what serves it.

    The contract says what the phase gives and what it reads of the reply. With --json the values that were
    read from the file, defaults included, and the contract. `panda recipe eject` copies the recipe into the
    project, to be edited there.

    Example: panda recipe show pipeline/phase1_reflection
    """
    book = invocation.book()
    path = book.path_of(name)
    if path is None:
        book.load_recipe(name)  # raises the error that names the nearest one
    assert path is not None
    recipe = _read(invocation, book, name)
    if recipe is not None:
        _tell_unsent(invocation, book, recipe)
    values = None
    text = read_own_text(path)
    if recipe is not None:
        contract = book.contract_of(name)
        models = _models(invocation)
        server = book.served_by(recipe, models) if models else None
        values = {**asdict(recipe), "path": str(path), "contract": contract.to_json(), "served_by": server}
        text = f"{text.rstrip()}\n{_contract_comment(contract, recipe.model_layer, server)}"
    return Result(values, OutputDocument(text.encode("utf-8"), markdown=False, raw=raw))


def _contract_comment(contract: StepContract[Any], layer: str, server: str | None) -> str:
    """Return what holds of the step, as a comment below the file."""
    rows = {
        "step": contract.name or "none: no phase asks it",
        "served by": f"{server or 'not known'} ({layer})",
        "options": ", ".join(contract.option_sets),
        "ids at": ", ".join(f"{place} of {name}" for place, name in contract.places.items()),
        "only with": ", ".join(f"{place} with {name}" for place, name in contract.only_with.items()),
        "documents": ", ".join(contract.documents),
        "variables": ", ".join((*BASE_VARIABLES, *contract.variables)),
        "needs": ", ".join(contract.required),
        "may be left out": ", ".join(contract.optional),
    }
    lines = [f"#   {name:{_ROW_CHARS}} {value}" for name, value in rows.items() if value]
    return "\n".join(["", "# Contract", *lines, ""])


def render(
    invocation: Invocation,
    name: _Name,
    turn: Annotated[
        str | None,
        option(
            "Take the documents from this saved turn; last is the newest.",
            "TURN",
            complete=complete_turns,
            show_default="placeholders",
        ),
    ] = None,
    raw: Raw = False,
) -> Result:
    """
    Show the messages that a recipe sends to a model, without calling one.

    What only the running phase knows, such as the options of its choices, stands there as <…>. A server that
    is told the schema of the reply in words gets it at the end of the last message.

    Example: panda recipe render pipeline/phase3_planner_chat --turn 813 --user demo
    """
    book = invocation.book()
    recipe = book.load_recipe(name)
    files = find_turn(invocation.store(), turn, where="--turn") if turn is not None else None
    model = _model_of(invocation, recipe)
    dialect = _dialect_of(invocation, model)
    preview = preview_recipe(book, recipe, files, dialect=dialect)
    for cut in preview.cuts:
        invocation.reporter.warn(f"{cut.name} is cut from {cut.before_tokens} to {cut.after_tokens} tokens")
    invocation.reporter.step(_sizes(recipe, preview))
    if model is not None:
        invocation.reporter.step(_asked_how(model, dialect))
    elif _is_offline(invocation, recipe):
        step = f"{recipe.model_layer} is offline: no model is asked with these messages"
        invocation.reporter.step(step)
    texts = [f"===== {message.role} =====\n\n{message.content}\n" for message in preview.messages]
    document = OutputDocument("\n".join(texts).encode("utf-8", errors="replace"), markdown=False, raw=raw)
    named = {"model": model.name if model else None, "structured": dialect}
    return Result({**_preview_data(recipe, preview, files.number if files else None), **named}, document)


def _read(invocation: Invocation, book: RecipeBook, key: str) -> Recipe | None:
    """A recipe; its faults become warnings."""
    recipe, faults = book.inspect(key)
    for fault in faults:
        invocation.reporter.warn(f"{fault.where}: {fault.message}")
    return recipe


def _model_of(invocation: Invocation, recipe: Recipe) -> ModelSpec | None:
    """Return the model of a recipe's layer; None if that is unset or offline, or its file is not trusted."""
    models = _models(invocation)
    model = models.model_of(recipe.model_layer) if models else None
    return model if isinstance(model, ModelSpec) else None


def _is_offline(invocation: Invocation, recipe: Recipe) -> bool:
    models = _models(invocation)
    return models is not None and models.model_of(recipe.model_layer) == OFFLINE


def _models(invocation: Invocation) -> ModelsFile | None:
    settings = invocation.settings
    return load_models_file(settings.models_file) if is_trusted(settings, "models_file") else None


def _tell_unsent(invocation: Invocation, book: RecipeBook, recipe: Recipe) -> None:
    """Say which of a recipe's prompts change nothing when they are edited."""
    if unsent := book.unsent_prompts(recipe, _models(invocation)):
        invocation.reporter.step(f"never sent, since {recipe.model_layer} is offline: {', '.join(unsent)}")


def _dialect_of(invocation: Invocation, model: ModelSpec | None) -> str | None:
    """
    Return how a model's server is asked for JSON, the first that is on record if there are several; None for
    other models.
    """
    if model is None or not model.servers or not is_trusted(invocation.settings, "cache_dir"):
        return None
    from panda.models.openai import known_dialects  # httpx takes half a second to import

    dialects = known_dialects(model, invocation.settings.cache_dir)
    return next((dialect for dialect in dialects.values() if dialect is not None), None)


def _asked_how(model: ModelSpec, dialect: str | None) -> str:
    """Return a sentence on how the model of a recipe is asked."""
    if not model.servers:
        return f"{model.name} writes under the grammar of the schema"
    return f"{model.name} is asked for JSON by {dialect or 'the first way that its server takes'}"


def _sizes(recipe: Recipe, preview: Preview) -> str:
    budget = recipe.token_budget
    prompt = f"prompt: {preview.prompt_tokens} of {budget.prompt} tokens"
    return f"{prompt}, input: {preview.input_tokens} of {budget.input}, output: at most {budget.output}"


def _preview_data(recipe: Recipe, preview: Preview, turn: int | None) -> dict[str, object]:
    return {
        "recipe": recipe.key,
        "model_layer": recipe.model_layer,
        "turn": turn,
        "messages": [{"role": message.role, "content": message.content} for message in preview.messages],
        "prompt_tokens": preview.prompt_tokens,
        "input_tokens": preview.input_tokens,
        "token_budget": asdict(recipe.token_budget),
        "cuts": [asdict(cut) for cut in preview.cuts],
        "schema": preview.schema,
    }


def history(invocation: Invocation, name: _Name) -> Result:
    """
    Show the versions of a recipe and the models it ran on: when, how often, how often it failed.

    A version is the recipe's file with every prompt that it names, by the hash of their content. Each has its
    metrics by model, as `panda stats` adds them up; how turns ended is looked up for those of --user.

    Example: panda recipe history pipeline/phase1_reflection
    """
    from panda.index.executions import Executions
    from panda.store.execution_log import recipe_executions

    now = version_in_force(invocation.book(), name)
    store = _versions(invocation)
    saved_versions = store.versions(name)
    if now.version not in {version.version for version in saved_versions}:
        saved_versions.append(now)
    lines = list(recipe_executions(invocation.store(), name))
    executions = Executions(invocation.store())
    executions.read(invocation.settings.user)
    versions = []
    rows = list[tuple[object, ...]]()
    for version in saved_versions:
        ran = [line for line in lines if line.version == version.version]
        failed = [line for line in ran if line.has_failed]
        row: dict[str, object] = {"version": version.version, "first_seen": version.first_seen}
        row |= {"in_force": version.version == now.version, "executions": len(ran), "failures": len(failed)}
        sums = executions.sums({"name = ?": name, "version = ?": version.version}, "model")
        metrics = {by: asdict(stats) for by, stats in sums.items()}
        versions.append({**row, "last_run": ran[-1].timestamp if ran else None, "metrics": metrics})
        about = (version.version[:SHORT], version.first_seen, version.version == now.version)
        for by, figures in (metrics or {"": dict.fromkeys(_METRICS)}).items():
            rows.append((*about, by or None, *(figures[column] for column in _METRICS)))
    executions.close()
    models: list[dict[str, object]] = []  # a new entry whenever layer, model or its file changed
    for line in lines:
        model = {key: getattr(line, key) or None for key in ("model_layer", "model", "model_digest")}
        if not models or model != {key: models[-1][key] for key in model}:
            models.append({**model, "since": line.timestamp})
    columns = ("version", "first seen", "in force", "model", *(name.replace("_", " ") for name in _METRICS))
    data = {"recipe": name, "versions": versions, "models": models}
    return Result(data, OutputTable(columns, rows, ("held", "judged", "retries", "first seen", "confidence")))


def eject(
    invocation: Invocation,
    name: _Name,
    version: Annotated[
        str | None,
        option("The beginning of a version's hash.", "HASH", "--version", show_default="the one in force"),
    ] = None,
    force: Annotated[bool, flag("Overwrite files that say something else.", "--force")] = False,
) -> Result:
    """
    Write a recipe and its prompts into the project's recipes/ and prompts/ folders, where they count.

    They are there to be edited; with --version an earlier version comes back. What was in force is kept as a
    version first. Prompts that no model which is set is ever sent are told: editing them changes nothing.

    Example: panda recipe eject pipeline/phase1_reflection
    """
    settings = invocation.settings
    book = invocation.book()
    wanted = _wanted_version(invocation, book, name, version)
    shared = _sharing(book, wanted)
    folders = {"recipes": settings.project_dir / "recipes", "prompts": settings.project_dir / "prompts"}
    written = [str(path) for path in write_version(wanted, **folders, overwrites=force)]
    for other in shared:
        invocation.reporter.warn(f"{other} uses a prompt that this changes")
    if (recipe := _read(invocation, invocation.book(), name)) is not None:
        _tell_unsent(invocation, book, recipe)
    data = {"recipe": name, "version": wanted.version, "written": written}
    return Result(data, "\n".join(written) or "nothing to write: the project has that version")


def _wanted_version(invocation: Invocation, book: RecipeBook, name: str, start: str | None) -> RecipeVersion:
    """The version whose hash begins so, once that in force is kept; the one in force if none is named."""
    if start is None:
        return version_in_force(book, name)
    invocation.store_for_writing(any_user=True)
    store = _versions(invocation)
    wanted = store.find(name, start)
    with suppress(RecipeError):  # a broken one is no version to come back to
        store.keep(version_in_force(book, name))
    return wanted


def compare(
    invocation: Invocation,
    before: Annotated[str, argument("NAME@HASH, or NAME for the version in force.", "OLD")],
    after: Annotated[str, argument("The same.", "NEW")],
    on: Annotated[
        list[str],
        option(
            "Turns to run: 813, 811-813, 805,811, last or a directory; can be given several times.",
            "SELECTION",
            "--on",
            complete=complete_turns,
        ),
    ],
    workers: Annotated[int, option("Processes that run turns.", "N", min=1)] = 1,
    allow_missing: Annotated[
        bool, flag("Let turns pass that one version could not run.", "--allow-missing")
    ] = False,
) -> Result:
    """
    Run saved turns live with two versions of a recipe and compare; exit 3 if a decision or answer differs.

    A turn that one of them could not run is not equal, and ends with 3 as well.

    Example: panda recipe compare pipeline/phase3_planner_chat@3f2a9c pipeline/phase3_planner_chat --on 813 --user demo
    """  # noqa: E501  # an example stands on one line
    from panda.cli.replay import result_of
    from panda.runs.compare import Thresholds, compare_runs, find_regressions, load_sides
    from panda.runs.replays import begin_run, run_turns
    from panda.runs.select import TurnFilter, select_turns

    runs = []
    store = invocation.store_for_writing()
    places = select_turns(on, TurnFilter(), layout=invocation.store, user=invocation.settings.user)
    for word in (before, after):
        with _in_force(invocation, word) as settings:
            run = begin_run(settings, invocation.environ, places, store, mode="rerun", selection=on)
            run_turns(settings, invocation.environ, run, workers=workers)
            runs.append(run.id)
    first_side, second_side = load_sides(store, *runs)
    run_diff = compare_runs(first_side, second_side)
    regressions = find_regressions(run_diff, Thresholds(missing=allow_missing))
    return result_of(run_diff, regressions, f"{before} → {after}", runs)


def failures(invocation: Invocation, name: _Name) -> Result:
    """
    Show where a recipe failed, was asked again or led to an intervention, with the version that did.

    Example: panda recipe failures pipeline/phase6_validator
    """
    from panda.store.execution_log import find_failures

    invocation.book().load_recipe(name)
    logged_failures = find_failures(invocation.store(), name)
    if not logged_failures:
        invocation.reporter.step(f"no failures of {name} in the log")
    rows = [
        ((failure["version"] or "")[:SHORT], *(failure[key] for key in ("time", "turn", "kind", "message")))
        for failure in logged_failures
    ]
    return Result(
        {"recipe": name, "failures": logged_failures},
        OutputTable(("version", "time", "turn", "kind", "message"), rows),
    )


def _versions(invocation: Invocation) -> VersionStore:
    return VersionStore(invocation.store().recipe_versions, invocation.settings.clock)


def _sharing(book: RecipeBook, version: RecipeVersion) -> list[str]:
    """Other recipes that use a prompt whose text the version would change."""
    changed = {
        name for name, text in version.prompts.items() if book.load_prompt(name, where=version.recipe) != text
    }
    others: Sequence[str] = [key for key in book.recipe_keys() if key != version.recipe]
    return [key for key in others if changed & book.prompts_of(key).keys()]


@contextmanager
def _in_force(invocation: Invocation, word: str) -> Iterator[Settings]:
    """Settings under which the version that a word names is in force."""
    name, at, start = word.partition("@")
    settings = invocation.settings
    if at and not start:
        raise UsageError(f"{word!r} names no version", where="OLD, NEW", fix="write NAME@HASH, or NAME alone")
    if not at:
        invocation.book().load_recipe(name)
        yield settings
        return
    version = _versions(invocation).find(name, start)
    for other in _sharing(invocation.book(), version):
        invocation.reporter.warn(f"{other} uses a prompt that {word} changes too")
    with work_directory("version") as directory:
        recipes = directory / "recipes"
        prompts = directory / "prompts"
        write_version(version, recipes=recipes, prompts=prompts)
        yield replace(
            settings,
            recipe_dirs=(recipes, *settings.recipe_dirs),
            prompt_dirs=(prompts, *settings.prompt_dirs),
        )
