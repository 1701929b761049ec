"""A turn as far as its context, a look at what that would be, and what a turn would ask without asking it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from panda.app import App
from panda.compression.budgets import count_tokens
from panda.documents.context import render_section
from panda.errors import UsageError
from panda.models.contract import Model
from panda.phases.contract import Phase
from panda.phases.turn import Turn, check_query
from panda.pipeline import mark_turn
from panda.recipes.messages import Request, build_messages
from panda.recipes.recipe import Recipe
from panda.recipes.steps import STEPS
from panda.storage.layout import (
    CONTEXT_MD,
    GATHERED_CONTEXT_JSON,
    IMAGE_JSON,
    INDEX_SUMMARY_JSON,
    METRICS_JSON,
    PLAN_JSON,
    QUERY_ANALYSIS_JSON,
    REFLECTION_JSON,
    RESPONSE_MD,
    RETRIEVAL_PLAN_JSON,
    SESSION_JSON,
    STAGED_MEMORY_JSON,
    SUMMARY_JSON,
    TOOLRESULTS_MD,
)
from panda.tools.table import describe_tools

Until = Literal["plan", "draft", "commit"]
_GATHERING = 2


@dataclass(frozen=True)
class Look:
    """What came of phase 2."""

    plan: dict[str, Any] | None
    """The retrieval plan; None if the turn ended before."""
    gathered: dict[str, Any] | None
    """gathered_context.json, on disk or as drafted; None with a plan alone."""
    section: str | None
    """§2 as it stands in context.md or would; None with a plan alone."""


def check_gatherable(app: App, number: int) -> None:
    """
    Raises unless phase 2 of a turn is still to come.

    Args:
        app: The program.
        number: The turn.

    Raises:
        NotFoundError: There is no such turn.
        UsageError: Its §2 is committed, or it has ended.
    """
    folder = app.store.open(number)
    metadata = folder.read_metadata()
    if metadata.next is None or metadata.next.phase > _GATHERING:
        raise UsageError(
            f"§2 of turn {number} is committed"
            if _GATHERING in metadata.route
            else f"turn {number} has ended",
            where=str(folder.paths.directory),
            fix=f"`panda show {number} --section 2` shows it; to gather anew, give the query with --query",
        )


def gather(app: App, turn: Turn, until: Until, watch: Callable[[Phase], None]) -> Look:
    """
    Take a turn through phase 2, or up to it for a look.

    Args:
        app: The program.
        turn: As start_turn or resume_turn gave it.
        until: commit writes §2 and leaves the turn with status gathered; plan and draft leave it before
            phase 2, with status interrupted and its retrieval plan written. A turn that ends on the way is
            saved.
        watch: Told of each phase before it runs.

    Raises:
        HaltError: The turn cannot go on; an intervention is written.
    """
    app.pipeline.run(turn, watch, before=_GATHERING if until != "commit" else _GATHERING + 1)
    if turn.folder.read_metadata().next is None:
        app.index.record(app.settings.user, [turn.turn])
        return _on_disk(turn)
    if until == "commit":
        mark_turn(turn, "gathered")
        return _on_disk(turn)
    if until == "plan":
        plan = app.pipeline.look(turn, _GATHERING, lambda: dict(app.gatherer.plan(turn)))
        look = Look(plan, None, None)
    else:
        found = app.pipeline.look(turn, _GATHERING, lambda: app.gatherer.gather(turn))
        look = Look(dict(found.plan), dict(found.values), render_section(found.section))
    mark_turn(turn, "interrupted")
    return look


def _on_disk(turn: Turn) -> Look:
    def read(name: str) -> dict[str, Any] | None:
        return turn.folder.read_json(name) if turn.folder.has(name) else None

    section = turn.folder.read_context().section(_GATHERING)
    text = render_section(section) if section else None
    return Look(read(RETRIEVAL_PLAN_JSON), read(GATHERED_CONTEXT_JSON), text)


PLAN_COLUMNS = (
    "phase",
    "recipe",
    "layer",
    "model",
    "reads",
    "static",
    "input",
    "output",
    "total",
    "window",
    "files",
)
_FILES: Mapping[str, tuple[str, ...]] = {
    "phase0_describe_image": ("images/", IMAGE_JSON),
    "phase0_query_analyzer": (f"{CONTEXT_MD} §0", QUERY_ANALYSIS_JSON),
    "phase1_reflection": (f"{CONTEXT_MD} §1", REFLECTION_JSON),
    "phase2_1_retrieval": (RETRIEVAL_PLAN_JSON,),
    "phase2_5_context_validator": (f"{CONTEXT_MD} §2", GATHERED_CONTEXT_JSON),
    "phase3_planner": (f"{CONTEXT_MD} §3", PLAN_JSON),
    "phase4_coordinator": (f"{CONTEXT_MD} §4", "steps/", TOOLRESULTS_MD, STAGED_MEMORY_JSON),
    "phase5_synthesizer": (f"{CONTEXT_MD} §5", RESPONSE_MD),
    "phase6_validator": (f"{CONTEXT_MD} §6",),
    "phase7_summarizer": (INDEX_SUMMARY_JSON,),
    "phase7_session": (SUMMARY_JSON, f"sessions/…/{SESSION_JSON}", METRICS_JSON),
}


def plan_turn(app: App, query: str, mode: str, *, with_image: bool = False) -> list[dict[str, object]]:
    """
    The calls of a turn in order, as far as they are known before it runs.

    Args:
        app: What would run it; nothing is claimed, written or loaded but tokenizers.
        query: The query.
        mode: chat or code.
        with_image: Whether the turn has an image.

    Returns:
        For each recipe: phase, recipe, layer, model, what it reads; budget tokens of what never changes
        (static) against its budget, the ceilings of input and output, their sum, and the window of the model
        in model tokens; the files that the phase writes.

    Raises:
        QueryError: The query cannot start a turn.
        RecipeError: A recipe of the mode is broken.
    """
    check_query(query)
    plan = []
    for entry in app.book.registry():
        if STEPS[entry.step].tool is not None or (STEPS[entry.step].of_image and not with_image):
            continue  # asked only while a tool runs, or of an image
        recipe = app.book.recipe_for(entry.step, mode)
        model = app.layers.model(recipe.model_layer)
        plan.append(_call(app, entry.step, recipe, model, query, mode))
    return plan


def _call(app: App, step: str, recipe: Recipe, model: Model, query: str, mode: str) -> dict[str, object]:
    texts = [app.book.load_prompt(name, where=str(recipe.path)) for name in recipe.prompt_files]
    prompt = recipe.system_prompt if recipe.system_prompt is not None else "\n\n".join(texts)
    given = dict.fromkeys(STEPS[step].variables, "") | {"tools": describe_tools(recipe.tools_available)}
    variables = {"mode": mode, "session_id": app.settings.session, **given}
    messages = build_messages(recipe, prompt, Request(query, variables=variables), [])
    static = count_tokens(messages[0].content)
    budget = recipe.token_budget
    return {
        "phase": int(step[len("phase")]),
        "recipe": recipe.key,
        "layer": recipe.model_layer,
        "model": model.info.name,
        "reads": [*(f"§{number}" for number in recipe.input_sections), *recipe.input_docs],
        "static": static,
        "static_budget": budget.prompt,
        "input": budget.input,
        "output": budget.output,
        "total": static + budget.input + budget.output + budget.response_reserve,
        "total_budget": budget.total,
        "window": model.info.n_ctx,
        "files": list(_FILES.get(step, ())),
    }
