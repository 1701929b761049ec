"""The documents that a recipe names, taken from a turn (S3 §12.1, §12.2)."""

from collections.abc import Callable, Mapping

from panda.compression.fitting import InputDocument
from panda.compression.sections import newest_result
from panda.documents.context import SECTIONS, ContextDocument, Section, render_section
from panda.recipes.recipe import Recipe
from panda.recipes.steps import CARRY, PROGRESS, RAW_QUERY
from panda.storage.layout import CONTEXT_MD, TOOLRESULTS_MD

_TOOLS = 4
_NEWEST_SHARE = 0.5
_NEVER_CUT = (RAW_QUERY, PROGRESS)


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
        What is there, in the recipe's order, but the carry next to §0, so that it is cut late. The user's
        query and the state of the goals are protected. The newest tool result is a document of its own, to
        which half of the room is left until all else is cut.
    """
    documents: list[InputDocument] = []
    for number in recipe.input_sections:
        section = context.section(number)
        if section is not None:
            title = f"§{number} {SECTIONS[number].title}"
            if number == _TOOLS:
                at = newest_result(section)
                older = render_section(Section(number, section.blocks[:at])) if at else ""
                newest = render_section(Section(number, section.blocks[at:]))
                documents += _results(title, older, newest)
            else:
                documents.append(InputDocument(title, render_section(section), protected=number == 0))
    for name in recipe.input_docs:
        text = "" if name == CONTEXT_MD else extra[name] if name in extra else file_text(name)
        if not text:
            continue
        if name == TOOLRESULTS_MD:
            older, step, newest = text.rpartition("\n\n## Step ")  # what tools quote is indented
            documents += _results(name, older, step.lstrip() + newest)
        else:
            at = min(1, len(documents)) if name == CARRY else len(documents)
            documents.insert(at, InputDocument(name, text, name in _NEVER_CUT))
    return documents


def _results(title: str, older: str, newest: str) -> list[InputDocument]:
    """Tool results as one document, or two if there are several."""
    if not older:
        return [InputDocument(title, newest, share=_NEWEST_SHARE)]
    return [
        InputDocument(f"{title}, earlier results", older),
        InputDocument(f"{title}, newest result", newest, share=_NEWEST_SHARE),
    ]
