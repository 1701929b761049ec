"""What a turn would do, without asking a model: recipes, inputs, token plan, files."""

from collections.abc import Mapping

from panda.app import App
from panda.compression.tokens import count_tokens
from panda.models.contract import Model
from panda.phases.turn import check_query
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
