"""What a recipe would send to a model that writes, without sending it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from panda.choosing.decision import Option
from panda.compression.fitting import Cut, InputDocument, fit_documents
from panda.documents.context import ContextDocument
from panda.models.contract import Message
from panda.models.replies import with_schema
from panda.recipes.book import RecipeBook
from panda.recipes.documents import recipe_documents
from panda.recipes.pack import Request, build_messages, render_options
from panda.recipes.recipe import Recipe
from panda.recipes.room import preserved
from panda.recipes.schemas import option_places, plain_schema, text_properties
from panda.recipes.steps import BASE_VARIABLES, STEPS
from panda.recipes.templates import shown_to_writer, template_sources


@dataclass(frozen=True)
class TurnFiles:
    """A saved turn, as far as a preview needs it."""

    query: str
    """The user's query."""
    mode: str
    """chat or code."""
    session_id: str
    """Its session."""
    context: ContextDocument
    """context.md."""
    file_text: Callable[[str], str]
    """Gives a file as text; "" if it is not there."""


@dataclass(frozen=True)
class Preview:
    """The messages of one call and their size."""

    messages: tuple[Message, ...]
    """As they would be sent, with `<…>` in the place of what only the running phase knows."""
    prompt_tokens: int
    """Budget tokens of what never changes: prompt, schema, examples."""
    input_tokens: int
    """Budget tokens of query, documents and options."""
    cuts: tuple[Cut, ...]
    """What fitting took from the documents."""
    schema: Mapping[str, Any] | None
    """The schema of the reply, beside the messages or at the end of them as the dialect has it."""


def preview_recipe(
    book: RecipeBook,
    recipe: Recipe,
    turn: TurnFiles | None,
    *,
    count: Callable[[str], int],
    dialect: str | None = None,
) -> Preview:
    """
    The messages of a recipe for a saved turn, or with placeholders.

    Args:
        book: Gives prompts, and the step that the recipe serves.
        recipe: The recipe.
        turn: Gives the documents; None puts a placeholder for each.
        count: Maps a text to budget tokens.
        dialect: How its model is asked for a reply of a schema; None for one that is not asked in words.

    Raises:
        BudgetExceededError: What is protected does not fit the input budget.
        RecipeError: A prompt is missing, or a variable has no value.
    """
    served = {key: entry.step for entry in book.registry() for key in entry.recipes.values()}
    given = STEPS.get(served.get(recipe.key, ""))
    texts = [book.load_prompt(name, where=str(recipe.path)) for name in recipe.prompt_files]
    prompt = recipe.system_prompt if recipe.system_prompt is not None else "\n\n".join(texts)
    query = turn.query if turn else "<query>"
    variables = {name: f"<{name}>" for name in (*BASE_VARIABLES, *(given.variables if given else ()))}
    if turn:
        variables |= {"query": query, "mode": turn.mode, "session_id": turn.session_id}
    named = [name for name in (given.options if given else ()) if f'"{name}"' in prompt]
    names = dict.fromkeys([*option_places(recipe.output_schema), *named])
    options = {name: [Option("<id>", f"<options of {name}, given by the phase>")] for name in names}
    shown, keep = preserved(recipe, _documents(recipe, turn, given.documents if given else ()))
    documents, cuts = fit_documents(
        shown,
        room_tokens=max(0, recipe.token_budget.input - count(query)),
        count=count,
        query=turn.query if turn else None,
        keep=keep,
    )
    request = shown_to_writer(recipe, Request(query, documents, options, variables), prompt)
    sources, texts_first = template_sources(recipe), text_properties(recipe.output_schema)
    choices = [name for name in recipe.output_schema.get("properties", ()) if name not in texts_first]
    asked = (*texts_first, *(name for name in choices if name not in sources))
    messages = build_messages(recipe, prompt, request, documents, asked=asked)
    inputs = [
        query,
        *(d.text for d in documents),
        *(render_options(n, o) for n, o in request.options.items()),
    ]
    bare = build_messages(recipe, prompt, Request("", (), {}, {**variables, "query": ""}), (), asked=asked)
    schema = None
    if recipe.output_format == "json":
        ids = {name: [option.id for option in offered] for name, offered in options.items()}
        schema = plain_schema(recipe.output_schema, only=asked, options=ids)
    return Preview(
        tuple(messages if schema is None else with_schema(messages, schema, dialect)),
        sum(count(message.content) for message in bare),
        sum(count(text) for text in inputs),
        tuple(cuts),
        schema,
    )


def _documents(recipe: Recipe, turn: TurnFiles | None, by_phase: tuple[str, ...]) -> list[InputDocument]:
    extra = {name: f"<{name}, given by the phase>" for name in by_phase}
    if turn is not None:
        extra |= {"raw_query": turn.query} if "raw_query" in extra else {}
        return recipe_documents(recipe, turn.context, file_text=turn.file_text, extra=extra)
    sections = [InputDocument(f"§{n}", f"<section {n} of context.md>", n == 0) for n in recipe.input_sections]
    names = [name for name in recipe.input_docs if name != "context.md"]
    return sections + [InputDocument(name, extra.get(name, f"<{name}>")) for name in names]
