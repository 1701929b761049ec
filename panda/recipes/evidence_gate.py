"""The gate `evidence_required` (S3 §14): what a reply says must link to what the call was given."""

from collections.abc import Iterator, Mapping
from typing import Any

from panda.documents.evidence import check_evidence
from panda.recipes.pack import Request
from panda.recipes.recipe import Recipe


def find_unlinked(recipe: Recipe, request: Request, values: Mapping[str, Any]) -> str | None:
    """
    What in a reply links to nothing that the call was given; None if everything does.

    Args:
        recipe: Its gate decides whether anything is looked at.
        request: What the call was given.
        values: The reply.

    Returns:
        For a JSON reply, an item with a text that cites no node, or one that was not offered. For any other
        form, numbers, dates and URLs that occur in no document, option or query of the call.
    """
    if not recipe.quality_gates.evidence_required:
        return None
    if recipe.output_format != "json":
        given = [request.query, *(document.text for document in request.documents)]
        given += [option.text for options in request.options.values() for option in options]
        wrong = check_evidence(str(values.get("text", "")), given)
        return f"{wrong[0].kind} {wrong[0].text} is in no document that was given" if wrong else None
    offered = {option.id for options in request.options.values() for option in options}
    for text, node_ids in _items(values):
        if not node_ids:
            return f"{text!r:.80} cites no node"
        unknown = [node_id for node_id in node_ids if offered and node_id not in offered]
        if unknown:
            return f"{text!r:.80} cites {unknown[0]}, which was not offered"
    return None


def _items(value: Any) -> Iterator[tuple[str, list[str]]]:
    """Text and node ids of every object in a value that has a text and a place for node ids."""
    if isinstance(value, Mapping):
        if "text" in value and "node_ids" in value:
            yield str(value["text"]), [str(one) for one in value["node_ids"] or ()]
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _items(part)
