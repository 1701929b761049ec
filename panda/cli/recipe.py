"""`panda recipe list`, `panda recipe show` and `panda recipe render`."""

from dataclasses import asdict
from typing import Annotated

import typer

from panda.cli.completion import complete_recipes, complete_turns
from panda.cli.contract import Document, Invocation, Result, Table
from panda.compression.tokens import count_tokens
from panda.errors import RecipeError
from panda.recipes.book import RecipeBook
from panda.recipes.preview import Preview, TurnFiles, preview_recipe
from panda.recipes.recipe import Recipe
from panda.recipes.yaml_file import read_own_text
from panda.storage.turn_excerpts import read_turn_file
from panda.storage.turns import TurnStore

_COLUMNS = ("recipe", "layer", "mode", "total", "prompt", "input", "output", "risk", "purpose")


_Name = Annotated[
    str,
    typer.Argument(
        help="A recipe, such as pipeline/phase1_reflection.", metavar="NAME", autocompletion=complete_recipes
    ),
]


def list_recipes(invocation: Invocation) -> Result:
    """
    List the recipes in force: layer, mode, token budgets, risk and purpose.

    Example: panda recipe list
    """
    book = _book(invocation)
    recipes = [recipe for key in book.recipe_keys() if (recipe := _read(invocation, book, key))]
    entries = {key: entry for entry in book.registry() for key in entry.recipes.values()}
    found = [(recipe, entries.get(recipe.key)) for recipe in recipes]
    rows = [
        (
            *(r.key, r.model_layer, r.mode or "any"),
            *(r.token_budget.total, r.token_budget.prompt, r.token_budget.input, r.token_budget.output),
            *((entry.risk, entry.purpose) if entry else (None, r.description)),
        )
        for r, entry in found
    ]
    data = [
        {
            "recipe": r.key,
            "name": r.name,
            "description": r.description,
            "path": str(r.path),
            "model_layer": r.model_layer,
            "mode": r.mode,
            "token_budget": asdict(r.token_budget),
            "step": entry.step if entry else None,
            "purpose": entry.purpose if entry else None,
            "risk": entry.risk if entry else None,
        }
        for r, entry in found
    ]
    return Result({"recipes": data}, Table(_COLUMNS, rows))


def show(invocation: Invocation, name: _Name) -> Result:
    """
    Show a recipe's file as it is; with --json the values that were read from it, defaults included.

    Example: panda recipe show pipeline/phase1_reflection
    """
    book = _book(invocation)
    path = book.path_of(name)
    if path is None:
        book.load_recipe(name)  # raises the error that names the nearest one
    assert path is not None
    recipe = _read(invocation, book, name)
    values = {**asdict(recipe), "path": str(path)} if recipe else None
    return Result(values, Document(read_own_text(path).encode("utf-8"), markdown=False))


def render(
    invocation: Invocation,
    name: _Name,
    turn: Annotated[
        int | None,
        typer.Option(
            help="Take the documents from this saved turn.",
            min=1,
            metavar="N",
            autocompletion=complete_turns,
        ),
    ] = None,
) -> Result:
    """
    Show the messages that a recipe sends to a model that writes, without calling one.

    What only the running phase knows, such as the options of its choices, stands there as <…>.

    Example: panda recipe render pipeline/phase3_planner_chat --turn 813 --user demo
    """
    book = _book(invocation)
    recipe = book.load_recipe(name)
    files = _turn_files(invocation, turn) if turn is not None else None
    preview = preview_recipe(book, recipe, files, count=count_tokens)
    for cut in preview.cuts:
        sizes = f"from {cut.before_tokens} to {cut.after_tokens} tokens"
        invocation.reporter.warn(f"{cut.name} is cut {sizes}")
    invocation.reporter.step(_sizes(recipe, preview))
    shown = [f"===== {message.role} =====\n\n{message.content}\n" for message in preview.messages]
    document = Document("\n".join(shown).encode("utf-8", errors="replace"), markdown=False)
    return Result(_preview_data(recipe, preview, turn), document)


def _book(invocation: Invocation) -> RecipeBook:
    return RecipeBook(invocation.settings.recipe_dirs, invocation.settings.prompt_dirs)


def _read(invocation: Invocation, book: RecipeBook, key: str) -> Recipe | None:
    """A recipe; its faults become warnings."""

    def warn(fault: RecipeError) -> None:
        invocation.reporter.warn(f"{fault.where}: {fault.message}")

    return book.inspect(key, warn)


def _turn_files(invocation: Invocation, number: int) -> TurnFiles:
    settings = invocation.settings
    folder = TurnStore(invocation.store(), settings.user, settings.clock).open(number)
    metadata = folder.read_metadata()

    def file_text(name: str) -> str:
        return read_turn_file(folder, name).decode("utf-8", errors="replace") if folder.has(name) else ""

    return TurnFiles(metadata.query, metadata.mode, metadata.session_id, folder.read_context(), file_text)


def _sizes(recipe: Recipe, preview: Preview) -> str:
    budget = recipe.token_budget
    return (
        f"prompt: {preview.prompt_tokens} of {budget.prompt} tokens, "
        f"input: {preview.input_tokens} of {budget.input}, output: at most {budget.output}"
    )


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
    }
