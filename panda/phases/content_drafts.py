"""Drafts for content.generate: asked of the layer that speaks to the user."""

from panda.errors import UsageError
from panda.phases.asking import ask
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor


def write_draft(executor: RecipeExecutor, turn: Turn, kind: str, brief: str) -> str:
    """
    The text of a draft.

    Args:
        executor: Asks the recipe.
        turn: The running turn.
        kind: What it is, as "email".
        brief: What it should say.

    Raises:
        UsageError: The model of the recipe's layer does not write.
        HaltError: The model gave no valid reply.
    """
    recipe = executor.book.recipe_for("phase4_content_generate", turn.mode)
    if not executor.writes(recipe.key):
        raise UsageError(
            f"content.generate needs a model that writes, and that of {recipe.model_layer} only chooses",
            where="models.yaml",
            fix=f"give {recipe.model_layer} a model with writes: true",
        )
    reply = ask(executor, "phase4_content_generate", turn, variables={"kind": kind, "brief": brief})
    return str(reply.values["text"])
