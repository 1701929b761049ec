"""The room that a recipe, its model and a call leave for the documents of a call (design: fitting)."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from panda.compression.fitting import Cut, InputDocument, Trigger, fit_documents
from panda.compression.limits import Limits
from panda.errors import BudgetExceededError
from panda.language.dates import DATES
from panda.language.numbers import CURRENCY_BEFORE
from panda.models.contract import Message, Model
from panda.recipes.pack import Request
from panda.recipes.recipe import Recipe

_MODEL_TOKENS_PER_BUDGET_TOKEN = 1.2
_SLACK_TOKENS = 8
_KEPT_KINDS = {
    "urls": re.compile(r"\w+://\S"),
    "prices": re.compile(rf"(?:{CURRENCY_BEFORE})\s?\d|\d\s?[€£¥₽₹]", re.VERBOSE),
    "dates": re.compile(DATES, re.VERBOSE),
}
"""What compression.preserve may name besides documents, section_0 … section_6 and tool_errors."""


def fit_request(
    recipe: Recipe,
    request: Request,
    model: Model,
    *,
    build: Callable[[Sequence[InputDocument]], Sequence[Message]],
    count: Callable[[str], int],
    limits: Limits | None = None,
) -> tuple[list[InputDocument], list[Cut]]:
    """
    The documents of a request, brought down to the recipe's input budget, to what any call may have and to
    the model's window, in this order.

    Args:
        recipe: The recipe.
        request: What the phase gives; query, guidance and options take their room first.
        model: The model that runs it.
        build: Gives the messages with these documents.
        count: Maps a text to budget tokens.
        limits: What the user has set.

    Returns:
        The documents in the given order, and what was cut and why.

    Raises:
        BudgetExceededError: What is protected does not fit, or something would have to be cut and the
            recipe's compression is off.
    """
    limits = limits or Limits()
    offered = [option for options in request.options.values() for option in options]
    options = "\n".join(option.shown or option.text for option in offered)
    known = any(document.text == request.query for document in request.documents)  # counted as it is
    query = "" if known else request.query
    taken = count(query + (request.meant or "") + (request.guidance or "")) + count(options)
    given, keep = preserved(recipe, request.documents)
    used = sum(count(document.text) for document in given)
    room = max(0, math.floor(recipe.token_budget.input * limits.threshold) - taken)
    trigger: Trigger = "input"
    over = 0
    while True:
        try:
            fitted, cuts = _fit(given, used, room, limits, count, request.scored, keep)
        except BudgetExceededError as exc:
            raise (_too_large(recipe, model, trigger, over, limits) if over else exc) from exc
        if cuts and not (recipe.compression.enabled and limits.enabled):
            raise _not_compressible(recipe, cuts)
        found, over = _excess(recipe, model, build(fitted), count, limits)
        if over <= 0:
            return fitted, [replace(cut, trigger=trigger) for cut in cuts]
        trigger = found
        left = sum(count(document.text) for document in fitted)
        if left == 0:
            raise _too_large(recipe, model, trigger, over, limits)
        excess = math.ceil(over / _MODEL_TOKENS_PER_BUDGET_TOKEN) if found == "window" else over
        room = max(0, min(room, left) - excess - _SLACK_TOKENS)


def output_room(
    recipe: Recipe,
    model: Model,
    messages: Sequence[Message],
    *,
    count: Callable[[str], int],
    limits: Limits,
) -> int:
    """
    The most tokens that a reply may have: what call and window leave, up to the recipe's longest_output.

    Args:
        recipe: The recipe.
        model: The model that runs it; one that does not write gets the recipe's output.
        messages: What it is sent.
        count: Maps a text to budget tokens.
        limits: What the user has set.
    """
    budget = recipe.token_budget
    if not model.info.writes or budget.longest_output <= budget.output:
        return budget.output
    reserve = budget.response_reserve or limits.reserve_tokens
    left = limits.call_tokens - sum(count(message.content) for message in messages)
    used = math.ceil(model.count_model_tokens(model.render_chat(messages)) * _MODEL_TOKENS_PER_BUDGET_TOKEN)
    window = model.info.n_ctx - model.info.thinking_tokens - used
    return max(budget.output, min(budget.longest_output, left - reserve, window - reserve))


def _fit(
    given: Sequence[InputDocument],
    used: int,
    room: int,
    limits: Limits,
    count: Callable[[str], int],
    query: str,
    keep: Sequence[re.Pattern[str]],
) -> tuple[list[InputDocument], list[Cut]]:
    """The documents in the room, with what a compression saves at least if that can be had."""
    aim = limits.target(used, room) if used > room else room
    try:
        return fit_documents(given, room_tokens=aim, count=count, query=query, keep=keep)
    except BudgetExceededError:
        if aim == room:
            raise
    return fit_documents(given, room_tokens=room, count=count, query=query, keep=keep)


def preserved(
    recipe: Recipe, documents: Sequence[InputDocument]
) -> tuple[list[InputDocument], list[re.Pattern[str]]]:
    """
    Documents with those protected that a recipe preserves, and patterns of what it preserves in the others.

    Args:
        recipe: Its compression.preserve counts.
        documents: As the phase gives them.
    """
    given = [replace(one, protected=_is_preserved(recipe, one)) for one in documents]
    return given, [pattern for name, pattern in _KEPT_KINDS.items() if name in recipe.compression.preserve]


def _is_preserved(recipe: Recipe, document: InputDocument) -> bool:
    """Whether a recipe names a document, with or without its ending, or as section_0 … section_6."""
    name = document.name
    names = {f"section_{name[1]}"} if name.startswith("§") else {name, name.rsplit(".", 1)[0]}
    return document.protected or not names.isdisjoint(recipe.compression.preserve)


def _too_large(
    recipe: Recipe, model: Model, trigger: Trigger, over: int, limits: Limits
) -> BudgetExceededError:
    if trigger == "call":
        return BudgetExceededError(
            f"prompt and output of {recipe.key} need {over} tokens more than the {limits.call_tokens} that a "
            "call may have, with everything cut that may be cut",
            where=str(recipe.path),
            fix="shorten the prompt of the recipe, or raise the setting default_context_budget",
            expected=f"at most {limits.call_tokens} tokens",
            received=f"{limits.call_tokens + over} tokens",
        )
    window = model.info.n_ctx - model.info.thinking_tokens
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
        f"the inputs of {recipe.key} are {over} tokens over their room, and compression is off",
        where=f"{recipe.path} (compression.enabled)",
        fix="raise token_budget.input, or set compression.enabled: true and PANDA_COMPRESSION_ENABLED=true",
    )


def _excess(
    recipe: Recipe,
    model: Model,
    messages: Sequence[Message],
    count: Callable[[str], int],
    limits: Limits,
) -> tuple[Trigger, int]:
    """Which limit prompt and output exceed, the earlier first, and by how many tokens; 0 when they fit."""
    after = recipe.token_budget.output + (recipe.token_budget.response_reserve or limits.reserve_tokens)
    prompt = sum(count(message.content) for message in messages)
    if prompt > limits.call_trigger_tokens or prompt + after > limits.call_tokens:
        return "call", prompt - min(limits.call_trigger_tokens, limits.call_tokens - after)
    used = model.count_model_tokens(model.render_chat(messages))
    return "window", max(0, used + after + model.info.thinking_tokens - model.info.n_ctx)
