"""Rung 4 of compression through the recipe executor: a model that writes words passages anew."""

from panda.compression.content_types import RECIPES, ContentType
from panda.compression.fitting import InputDocument
from panda.compression.rewriting import Rewrite
from panda.errors import TryAgainError
from panda.recipes.executor import RecipeExecutor
from panda.recipes.journal import Journal
from panda.recipes.pack import Request


def passage_rewriter(
    executor: RecipeExecutor, kind: ContentType, query: str, journal: Journal
) -> Rewrite | None:
    """
    What words passages of a document anew; None where the model of the recipe's layer does not write.

    Args:
        executor: Asks the recipe of the document's type.
        kind: The type.
        query: The user's query; "" if there is none.
        journal: Record of the calls; they do not count as executions of the turn.

    Returns:
        A Rewrite. Once its model is away, it is not asked again.
    """
    key = RECIPES[kind]
    if not executor.writes(key):
        return None
    name = executor.book.load_recipe(key).input_docs[0]
    away: list[TryAgainError] = []

    def rewrite(passage: str, tokens: int) -> str:
        if away:
            raise away[0]
        documents = [InputDocument(name, passage, protected=True)]
        request = Request(query, documents, variables={"target_tokens": str(tokens)})
        try:
            return str(executor.execute(key, request, journal).values["text"])
        except TryAgainError as exc:
            away.append(exc)
            raise

    return rewrite
