"""What a phase asks a recipe: the documents that the recipe names, taken from the turn and its session."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from panda.compression.fit import InputDocument
from panda.documents.context import Phase
from panda.documents.pictures import Picture
from panda.documents.safe_text import shorten
from panda.errors import FileFormatError, StoreError, UsageError
from panda.models.cl100k import count_tokens
from panda.phases.running_turn import Turn
from panda.recipes.executor import RecipeExecutor
from panda.recipes.messages import recipe_documents
from panda.recipes.recipe_file import Recipe
from panda.recipes.reply import Reply
from panda.session.session_lines import CARRY_TOKENS, render_carry
from panda.steps.all_steps import CARRY, CONTENT, IMAGE
from panda.steps.request import Ids, Options, Request
from panda.steps.step_contract import R, StepContract
from panda.store.files import read_text
from panda.store.records import QueryAnalysis, Step, load

_TURN_NUMBER = re.compile(r"(?m)^Turn \d+: ")
_SLACK_TOKENS = 40
_QUOTED_CHARS = 80
_QUESTION = "What exactly do you mean by “{quoted}”?"


def _carry_document(turn: Turn, recipe: Recipe) -> str:
    if CARRY not in recipe.input_docs or turn.session is None:
        return ""
    analysis = turn.folder.find(QueryAnalysis) if turn.phase > Phase.QUERY_ANALYZER else None
    key = analysis.kept_content if analysis else None
    room = recipe.token_budget.input - 2 * count_tokens(turn.query) - count_tokens(turn.meant) - _SLACK_TOKENS
    return render_carry(
        turn.present_carry,
        turn.phase,
        load=lambda path: _lines_of(turn, path),
        shown_path=next(
            (entry.path for entry in turn.carry.content_archive.entries if entry.key == key), None
        ),
        budget_tokens=min(CARRY_TOKENS, room),
    )


def _lines_of(turn: Turn, path: str) -> Sequence[str]:
    try:
        place = turn.store.place(path)
        if place.suffix != ".json" or place.parent.name != "steps":
            return read_text(place).splitlines()
        step = load(Step, place)
        return [*(claim.text for claim in step.claims), *step.text.splitlines()]
    except (StoreError, FileFormatError):
        return [f"[{path} cannot be read]"]


def ask(
    executor: RecipeExecutor,
    contract: StepContract[R],
    turn: Turn,
    *,
    options: Mapping[str, Options] | None = None,
    variables: Mapping[str, str] | None = None,
    extra: Mapping[str, str | Callable[[], str]] | None = None,
    guidance: str | None = None,
    pictures: tuple[Picture, ...] = (),
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    ids: Mapping[str, Ids] | None = None,
    inputs: object = None,
) -> Reply[R]:
    """
    Return the checked reply to a step in the turn's mode; what was cut from the inputs is a warning.

    Args:
        variables: Values for {{name}}.
        extra: Documents that are no files of the turn, by the name in input_docs, or what makes them.
        arguments: Schemas of what goes with an option, by its id.
        ids: Ids of sets of options that are made for a prompt alone.
        inputs: The typed inputs of the step, of those in panda/steps/inputs.py.
    """
    recipe = executor.book.recipe_for(contract.name, turn.mode, turn.intent)

    def documents() -> Sequence[InputDocument]:
        texts = {name: text() if callable(text) else text for name, text in (extra or {}).items()}
        texts_by_name = {CARRY: _carry_document(turn, recipe), IMAGE: _image_document(turn), **texts}
        return recipe_documents(recipe, turn.context, file_text=turn.file_text, extra=texts_by_name)

    request = Request(
        query=turn.query,
        documents=documents,
        options=options or {},
        variables={"mode": turn.mode, "session_id": turn.session_id, **(variables or {})},
        guidance=guidance,
        meant=turn.meant if turn.meant != turn.query else None,
        pictures=pictures,
        arguments=arguments or {},
        ids=ids or {},
        inputs=inputs,
    )
    turn.on_ask()
    turn.recipe = recipe.key
    reply = executor.ask(contract, request, turn, mode=turn.mode, intent=turn.intent)
    turn.recipe = None
    for cut in reply.cuts:
        turn.warn(f"{recipe.key}: {cut.name} cut from {cut.before_tokens} to {cut.after_tokens} tokens")
    return reply


def is_served(executor: RecipeExecutor, contract: StepContract[Any], turn: Turn) -> bool:
    """Return whether one of the configured models can reply to a step; some phases go on without a reply."""
    return executor.unsupported(executor.book.key_for(contract.name, turn.mode, turn.intent)) is None


def _image_document(turn: Turn) -> str:
    image = turn.described_image
    if image is None:
        return ""
    lead = f"{image.file}, as the model {image.model} ({image.layer}) describes it in its own words,"
    return f"{lead} which nobody has checked:\n\n{image.description}"


def question_of(written: str | None, turn: Turn) -> str:
    """Return the question that a reply asks back, or a general one where it words none."""
    return (written or "").strip() or _QUESTION.format(quoted=quote(turn.query))


def describe_turns(turn: Turn, recipe: Recipe, limit: int) -> str:
    """Return the summaries of the session's last turns, a line each, less those that the carry tells of."""
    carried = {recent.turn for recent in turn.carry.recent_turns if CARRY in recipe.input_docs}
    summaries = [(number, summary) for number, summary in turn.recent(limit) if number not in carried]
    return "\n".join(f"Turn {number}: {summary}" for number, summary in summaries)


def subjects(text: str) -> list[str]:
    """Return the summaries of earlier turns line by line, without the numbers of the turns."""
    return [line for line in _TURN_NUMBER.sub("", text).splitlines() if line.strip()]


def quote(query: str) -> str:
    """
    >>> quote("Is it\\ngood? " * 20)
    'Is it good? Is it good? Is it good? Is it good? Is it good? Is it good? Is it…'
    """
    return shorten(query, _QUOTED_CHARS)


def write_draft(executor: RecipeExecutor, turn: Turn, kind: str, brief: str) -> str:
    """Return the text of a draft. Raises UsageError: the recipe's layer is offline."""
    recipe = executor.book.recipe_for(CONTENT.name, turn.mode)
    if reason := executor.unsupported(recipe.key):
        raise UsageError(
            f"content.generate needs a language model: {reason}",
            where="models.yaml",
            fix=f"give the layer {recipe.model_layer} a model",
        )
    reply = ask(executor, CONTENT, turn, variables={"kind": kind, "brief": brief})
    return reply.content.text
