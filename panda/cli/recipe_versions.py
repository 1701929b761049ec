"""`panda recipe history`, `rollback`, `compare` and `failures`: recipes as things that have versions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated

import typer

from panda.cli.completion import complete_recipes, complete_turns
from panda.cli.contract import Invocation, Result, Table
from panda.errors import UsageError
from panda.recipes.book import RecipeBook
from panda.recipes.versions import SHORT, RecipeVersion, VersionStore, version_in_force, write_version
from panda.settings import Settings
from panda.storage.temporaries import work_directory

_Name = Annotated[
    str,
    typer.Argument(
        help="A recipe, such as pipeline/phase1_reflection.", metavar="NAME", autocompletion=complete_recipes
    ),
]
_Hash = Annotated[str, typer.Argument(help="The beginning of a version's hash.", metavar="HASH")]


def history(invocation: Invocation, name: _Name) -> Result:
    """
    Show the versions of a recipe and the models it ran on: when, how often, how often it failed.

    A version is the recipe's file with every prompt that it names, by the hash of their content.

    Example: panda recipe history pipeline/phase1_reflection
    """
    from panda.storage.recipe_log import models_of, recipe_lines, tally_versions

    now, store = version_in_force(_book(invocation.settings), name), _versions(invocation)
    kept = store.versions(name)
    if now.digest not in {version.digest for version in kept}:
        kept.append(now)
    lines = list(recipe_lines(invocation.store(), name))
    ran = tally_versions(lines)
    versions = [
        {
            "version": version.digest,
            "first_seen": version.first_seen,
            "in_force": version.digest == now.digest,
            "executions": ran[version.digest].executions,
            "failures": ran[version.digest].failures,
            "last_run": ran[version.digest].last_run,
        }
        for version in kept
    ]
    rows = [(str(row["version"])[:SHORT], *list(row.values())[1:]) for row in versions]
    columns = ("version", "first seen", "in force", "executions", "failures", "last run")
    data = {"recipe": name, "versions": versions, "models": models_of(lines)}
    return Result(data, Table(columns, rows))


def rollback(invocation: Invocation, name: _Name, version: _Hash) -> Result:
    """
    Write an earlier version of a recipe into the project's recipes/ and prompts/ folders.

    The version in force is kept first, so that a rollback can be rolled back.

    Example: panda recipe rollback pipeline/phase1_reflection 3f2a9c
    """
    settings = invocation.settings
    invocation.store_for_writing()
    book, store = _book(settings), _versions(invocation)
    wanted = store.find(name, version)
    store.keep(version_in_force(book, name))
    for other in _sharing(book, wanted):
        invocation.reporter.warn(f"{other} uses a prompt that this changes")
    folders = {"recipes": settings.project_dir / "recipes", "prompts": settings.project_dir / "prompts"}
    written = [str(path) for path in write_version(wanted, **folders)]
    data = {"recipe": name, "version": wanted.digest, "written": written}
    return Result(data, "\n".join(written) or "nothing to change: that version is in force")


def compare(
    invocation: Invocation,
    before: Annotated[
        str, typer.Argument(help="NAME@HASH, or NAME for the version in force.", metavar="OLD")
    ],
    after: Annotated[str, typer.Argument(help="The same.", metavar="NEW")],
    on: Annotated[
        list[str],
        typer.Option(
            "--on",
            help="Turns to run: numbers, ranges, directories.",
            metavar="SELECTION",
            autocompletion=complete_turns,
        ),
    ],
    workers: Annotated[int, typer.Option(help="Processes that run turns.", min=1, metavar="N")] = 1,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Let turns pass that one version could not run.")
    ] = False,
) -> Result:
    """
    Run saved turns live with two versions of a recipe and compare; exit 3 if a decision or answer differs.

    A turn that one of them could not run is not equal, and ends with 3 as well.

    Example: panda recipe compare pipeline/phase1_reflection@3f2a9c pipeline/phase1_reflection --on 813-820
    """
    from panda.cli.diff import result_of
    from panda.cli.replay import run_turns
    from panda.replays.comparing import Thresholds, compare_runs, find_regressions
    from panda.replays.sides import load_sides

    runs, store = [], invocation.store_for_writing()
    for word in (before, after):
        with _in_force(invocation, word) as settings:
            trial = replace(invocation, settings=settings)
            runs.append(run_turns(trial, on, store, mode="rerun", workers=workers)[0].id)
    one, two = load_sides(store, *runs)
    found = compare_runs(one, two)
    regressions = find_regressions(found, Thresholds(missing=allow_missing))
    return result_of(found, regressions, f"{before} → {after}", runs)


def failures(invocation: Invocation, name: _Name) -> Result:
    """
    Show where a recipe failed, was asked again or led to an intervention, with the version that did.

    Example: panda recipe failures pipeline/phase6_validator
    """
    from panda.storage.recipe_log import find_failures

    _book(invocation.settings).load_recipe(name)
    found = find_failures(invocation.store(), name)
    rows = [
        ((failure["version"] or "")[:SHORT], *(failure[key] for key in ("time", "turn", "kind", "message")))
        for failure in found
    ]
    return Result(
        {"recipe": name, "failures": found}, Table(("version", "time", "turn", "kind", "message"), rows)
    )


def _book(settings: Settings) -> RecipeBook:
    return RecipeBook(settings.recipe_dirs, settings.prompt_dirs)


def _versions(invocation: Invocation) -> VersionStore:
    return VersionStore(invocation.store().recipe_versions, invocation.settings.clock)


def _sharing(book: RecipeBook, version: RecipeVersion) -> list[str]:
    """Other recipes that use a prompt whose text the version would change."""
    changed = {
        name for name, text in version.prompts.items() if book.load_prompt(name, where=version.key) != text
    }
    others: Sequence[str] = [key for key in book.recipe_keys() if key != version.key]
    return [key for key in others if changed & book.prompts_of(key).keys()]


@contextmanager
def _in_force(invocation: Invocation, word: str) -> Iterator[Settings]:
    """Settings under which the version that a word names is in force."""
    name, at, start = word.partition("@")
    settings = invocation.settings
    if at and not start:
        raise UsageError(f"{word!r} names no version", where="OLD, NEW", fix="write NAME@HASH, or NAME alone")
    if not at:
        _book(settings).load_recipe(name)
        yield settings
        return
    version = _versions(invocation).find(name, start)
    for other in _sharing(_book(settings), version):
        invocation.reporter.warn(f"{other} uses a prompt that {word} changes too")
    with work_directory("version") as directory:
        recipes, prompts = directory / "recipes", directory / "prompts"
        write_version(version, recipes=recipes, prompts=prompts)
        yield replace(
            settings,
            recipe_dirs=(recipes, *settings.recipe_dirs),
            prompt_dirs=(prompts, *settings.prompt_dirs),
        )
