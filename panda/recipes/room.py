"""The room that a recipe and its model leave for the documents of a call (design: fitting)."""

import math
from collections.abc import Callable, Sequence

from panda.compression.fitting import Cut, InputDocument, fit_documents
from panda.errors import BudgetExceededError
from panda.models.contract import Message, Model
from panda.recipes.pack import Request
from panda.recipes.recipe import Recipe

_MODEL_TOKENS_PER_BUDGET_TOKEN = 1.2
_SLACK_TOKENS = 8


def fit_request(
    recipe: Recipe,
    request: Request,
    model: Model,
    *,
    build: Callable[[Sequence[InputDocument]], Sequence[Message]],
    count: Callable[[str], int],
) -> tuple[list[InputDocument], list[Cut]]:
    """
    The documents of a request, brought down to the recipe's input budget and the model's window.

    Args:
        recipe: The recipe.
        request: What the phase gives; query, guidance and options take their room first.
        model: The model that runs it.
        build: Gives the messages with these documents.
        count: Maps a text to budget tokens.

    Returns:
        The documents in the given order, and what was cut.

    Raises:
        BudgetExceededError: What is protected does not fit, or something would have to be cut and the
            recipe's compression is off.
    """
    options = "\n".join(option.text for offered in request.options.values() for option in offered)
    room = recipe.token_budget.input - count(request.query + (request.guidance or "")) - count(options)
    protected = "section_0" in recipe.compression.preserve
    given = [
        InputDocument(d.name, d.text, d.protected or (protected and d.name.startswith("§0")))
        for d in request.documents
    ]
    over = 0
    while True:
        try:
            fitted, cuts = fit_documents(given, room_tokens=max(0, room), count=count, query=request.query)
        except BudgetExceededError as exc:
            raise (_too_large(recipe, model, over) if over else exc) from exc
        if cuts and not recipe.compression.enabled:
            raise _not_compressible(recipe, cuts)
        over = _over_window(recipe, model, build(fitted))
        if over <= 0:
            return fitted, cuts
        used = sum(count(document.text) for document in fitted)
        if used == 0:
            raise _too_large(recipe, model, over)
        room = min(room, used) - math.ceil(over / _MODEL_TOKENS_PER_BUDGET_TOKEN) - _SLACK_TOKENS


def _too_large(recipe: Recipe, model: Model, over: int) -> BudgetExceededError:
    window = model.info.n_ctx
    return BudgetExceededError(
        f"prompt and output of {recipe.key} need {over} tokens more than the window of {window} tokens "
        f"of {model.info.name}, with everything cut that may be cut",
        where=str(recipe.path),
        fix=f"use a model with a larger context window for the layer {recipe.model_layer}",
        expected=f"at most {window} tokens",
        received=f"{window + over} tokens",
    )


def _not_compressible(recipe: Recipe, cuts: list[Cut]) -> BudgetExceededError:
    over = sum(cut.before_tokens - cut.after_tokens for cut in cuts)
    return BudgetExceededError(
        f"the inputs of {recipe.key} are {over} tokens over their room, and its compression is off",
        where=f"{recipe.path} (compression.enabled)",
        fix="raise token_budget.input, or set compression.enabled: true",
    )


def _over_window(recipe: Recipe, model: Model, messages: Sequence[Message]) -> int:
    """Model tokens by which prompt and output exceed the window; not positive when they fit."""
    used = model.count_model_tokens(model.render_chat(messages))
    return used + recipe.token_budget.output + recipe.token_budget.response_reserve - model.info.n_ctx
