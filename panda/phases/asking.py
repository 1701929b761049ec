"""How a phase asks a recipe: the documents that the recipe names, taken from the turn."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from panda.choosing.decision import Option
from panda.documents.pictures import Picture
from panda.documents.text import shorten
from panda.phases.carry_document import carry_document
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor, Reply
from panda.recipes.messages import Request, fill, recipe_documents
from panda.recipes.steps import CARRY, IMAGE

_QUOTED_CHARS = 80
_QUESTION = "What exactly do you mean by “{{quoted}}”?"


def recipe_asker(executor: RecipeExecutor, turn: Turn) -> Callable[..., Mapping[str, Any]]:
    """What a tool asks recipes with: maps a step and what goes with it to the values of the reply."""
    return lambda step, **given: ask(executor, step, turn, **given).values


def ask(
    executor: RecipeExecutor,
    step: str,
    turn: Turn,
    *,
    options: Mapping[str, Sequence[Option]] | None = None,
    variables: Mapping[str, str] | None = None,
    extra: Mapping[str, str] | None = None,
    guidance: str | None = None,
    pictures: tuple[Picture, ...] = (),
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
) -> Reply:
    """
    Execute the recipe that serves a step of the pipeline in the turn's mode.

    Args:
        executor: The recipe executor.
        step: Step of the registry, e.g. "phase1_reflection".
        turn: The running turn.
        options: Options of the choices, by property.
        variables: Values for {{name}}.
        extra: Documents that are not files of the turn, by the name that input_docs uses.
        guidance: What an earlier judgement asks to do differently.
        pictures: What the model is shown.
        arguments: Schemas of what goes with an option, by its id.

    Returns:
        The checked reply; everything that was cut from the inputs is a warning of the turn.
    """
    recipe = executor.book.recipe_for(step, turn.mode)
    given = {CARRY: carry_document(turn, recipe), IMAGE: _image_document(turn), **(extra or {})}
    request = Request(
        query=turn.query,
        documents=recipe_documents(recipe, turn.context, file_text=turn.file_text, extra=given),
        options=options or {},
        variables={"mode": turn.mode, "session_id": turn.session_id, **(variables or {})},
        guidance=guidance,
        meant=turn.meant if turn.meant != turn.query else None,
        pictures=pictures,
        arguments=arguments or {},
    )
    turn.recipe = recipe.key
    reply = executor.execute(recipe.key, request, turn)
    turn.recipe = None
    for cut in reply.cuts:
        turn.warn(f"{recipe.key}: {cut.name} cut from {cut.before_tokens} to {cut.after_tokens} tokens")
    return reply


def _image_document(turn: Turn) -> str:
    """What the phases read of the turn's image, with whose words it is; "" before it is described."""
    image = turn.described_image
    if image is None:
        return ""
    said = f"{image['file']}, as the model {image['model']} ({image['layer']}) describes it in its own words,"
    return f"{said} which nobody has checked:\n\n{image['description']}"


def question_of(reply: Reply, turn: Turn) -> str:
    """The question that a reply asks the user; without one that of the recipe's template, or a plain one."""
    written = str(reply.values.get("question") or "").strip()
    template = reply.recipe.templates.get("question")
    text = template if isinstance(template, str) and template.strip() else _QUESTION
    given = {"query": turn.query, "mode": turn.mode, "session_id": turn.session_id}
    variables = {**given, "quoted": quote(turn.query)}
    return written or fill(text, variables, where=f"{reply.recipe.path} (templates.question)")


def quote(query: str) -> str:
    """
    The query as a question to the user quotes it: one short line.

    >>> quote("Is it\\ngood? " * 20)
    'Is it good? Is it good? Is it good? Is it good? Is it good? Is it good? Is it…'
    """
    return shorten(query, _QUOTED_CHARS)
