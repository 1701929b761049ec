"""`panda eval`: how often replies are right."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from panda.cli.command import Invocation, OutputTable, Result, argument, flag, option, out_file
from panda.documents.record_codec import encode
from panda.errors import CheckError, UsageError
from panda.settings import Settings
from panda.store.layout import asset

if TYPE_CHECKING:  # imported when cases are asked: help must not wait for the recipes
    from panda.evals.cases import Case
    from panda.recipes.executor import RecipeExecutor

CASES_DIR = Path("tests") / "evals"
_SPLITS = ("test", "fit", "all")

_Recipes = Annotated[list[str] | None, argument("Recipes; without any, all that cases ask.", "RECIPE…")]
_Cases = Annotated[
    Path | None,
    option(
        "File or directory of labelled cases.",
        "FILE",
        show_default="./tests/evals if it is there, else those of panda",
    ),
]


def eval_recipes(
    invocation: Invocation,
    recipes: _Recipes = None,
    cases: _Cases = None,
    write: Annotated[Path | None, out_file("Write the numbers and every answer here.")] = None,
    split: Annotated[str, option("test, fit or all.", "SPLIT")] = "test",
    wrong: Annotated[bool, flag("List the cases that are answered wrongly in place of the numbers.")] = False,
    least: Annotated[
        float | None,
        option("End with 3 where a kind is right less often.", "SHARE", "--min", show_default="no bar"),
    ] = None,
) -> Result:
    """
    Measure replies to labelled cases, whatever serves the recipe: accuracy, milliseconds, what is wrong.

    Example: panda eval research/strategy --wrong --min 0.8
    """
    from panda.evals.report import COLUMNS, WRONG_COLUMNS, build_report, run_cases
    from panda.store.files import write_json

    if least is not None and not 0 <= least <= 1:
        raise UsageError(f"{least:g} is no share", where="--min", fix="give a number from 0 to 1")
    with _open_executor(invocation.settings, invocation.environ) as executor:
        asked = _cases(executor, cases, recipes or [], split)
        answers = run_cases(executor, asked)
    report = build_report(answers)
    misses = [answer for answer in answers if not answer.is_right]
    data: dict[str, Any] = {
        "split": split,
        "kinds": encode(report),
        "wrong": [answer.as_json() for answer in misses],
    }
    if write is not None:
        write_json(write, {**data, "answers": [answer.as_json() for answer in answers]})
    table = OutputTable(COLUMNS, [kind.row for kind in report])
    if wrong:
        rows = [(answer.case.name, answer.case.query, answer.label, answer.answer) for answer in misses]
        table = OutputTable(WRONG_COLUMNS, rows)
    below = [kind for kind in report if least is not None and kind.accuracy < least]
    if not below:
        return Result(data, table)
    worst = min(below, key=lambda kind: kind.accuracy)
    message = f"{worst.kind} is right in {worst.right} of {worst.cases} cases, less than {least:g}"
    return Result(data, table, error=CheckError(message, where="--min", fix="see --wrong"))


def _cases(
    executor: "RecipeExecutor", cases_path: Path | None, recipes: Sequence[str], split: str
) -> "list[Case]":
    from panda.evals.cases import KINDS, load_cases

    path = cases_path or (CASES_DIR if CASES_DIR.is_dir() else asset("tests/evals"))
    if split not in _SPLITS:
        raise UsageError(f"there is no split {split!r}", where="--split", fix="use test, fit or all")
    cases = load_cases(path, executor.book)
    kinds = {**KINDS, **{case.name: case.of for case in cases}}
    asked = {name: kind.recipe_key(executor.book) for name, kind in kinds.items()}
    for recipe in recipes:
        if recipe not in asked.values():
            recipe_names = ", ".join(sorted(set(asked.values())))
            raise UsageError(f"no kind of case asks {recipe!r}", where="RECIPE", fix=f"known: {recipe_names}")
    wanted = [case for case in cases if not recipes or asked[case.name] in recipes]
    if not (wanted := [case for case in wanted if split in ("all", case.split)]):
        raise UsageError(f"no case of the split {split} asks these recipes", where=str(path))
    return wanted


@contextmanager
def _open_executor(settings: Settings, environ: Mapping[str, str]) -> Iterator["RecipeExecutor"]:
    """
    An executor without a store, for measuring recipes: nothing is logged; its models are freed at the end.
    Raises ModelFileError: models.yaml is broken.
    """

    from panda.recipes.book import RecipeBook
    from panda.recipes.executor import RecipeExecutor
    from panda.trust import open_layers

    book = RecipeBook(settings.recipe_dirs, settings.prompt_dirs)
    with open_layers(settings, environ) as layers:
        yield RecipeExecutor(book, layers, layers.encoder(), clock=settings.clock, log=lambda record: None)
