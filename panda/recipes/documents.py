"""The documents that a recipe names, taken from a turn (S3 §12.1, §12.2)."""

from collections.abc import Callable, Mapping

from panda.compression.fitting import InputDocument
from panda.documents.context import ContextDocument, render_section
from panda.documents.sections import SECTIONS
from panda.recipes.recipe import Recipe
from panda.recipes.steps import CARRY
from panda.storage.layout import CONTEXT_MD


def recipe_documents(
    recipe: Recipe,
    context: ContextDocument,
    *,
    file_text: Callable[[str], str],
    extra: Mapping[str, str],
) -> list[InputDocument]:
    """
    The documents of one call, sections first.

    Args:
        recipe: Names sections (input_sections) and documents (input_docs). context.md among the documents
            stands for the sections.
        context: The turn's context.md.
        file_text: Gives a file of the turn as text; "" if it is not there.
        extra: Documents that are no files of the turn, by the name that input_docs uses.

    Returns:
        What is there, in the recipe's order, but the carry next to §0, so that it is cut late; the user's
        query (§0) is protected.
    """
    documents = []
    for number in recipe.input_sections:
        section = context.section(number)
        if section is not None:
            title = f"§{number} {SECTIONS[number].title}"
            documents.append(InputDocument(title, render_section(section), protected=number == 0))
    for name in recipe.input_docs:
        text = "" if name == CONTEXT_MD else extra[name] if name in extra else file_text(name)
        if text:
            at = min(1, len(documents)) if name == CARRY else len(documents)
            documents.insert(at, InputDocument(name, text))
    return documents
