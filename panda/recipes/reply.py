"""One checked reply of a recipe: filled from templates, and checked against schema and evidence (S3 §14)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from panda.choosing.decision import Choice, Option
from panda.compression.documents import Cut
from panda.documents.evidence import check_evidence
from panda.documents.json_text import load_json, worst_fault
from panda.errors import Location, RecipeKeyError
from panda.recipes.messages import Request, fill
from panda.recipes.recipe import Recipe

Gate = Literal["passed", "below", "not_measured"]


@dataclass(frozen=True)
class Reply:
    recipe: Recipe  # the recipe that was executed
    values: Mapping[str, Any]  # the reply as an object that satisfies the output schema
    choices: Mapping[str, Choice]  # choices by property
    confidence: float | None
    """Confidence of the deciding choice: the last enum or boolean; None when none is known."""
    gate: Gate | None
    """What the recipe's threshold says of the confidence; not_measured where none is known, and then the
    reply stands as it is; None without a threshold."""
    attempts: int  # model attempts, at least 1
    cuts: tuple[Cut, ...]  # what fitting took from the inputs

    @property
    def below_threshold(self) -> bool:
        """Whether the confidence is known and below the recipe's threshold."""
        return self.gate == "below"

    @property
    def asks_back(self) -> bool:
        """Whether the recipe says to ask the user because of that."""
        return self.below_threshold and self.recipe.quality_gates.below_threshold == "clarify"


def parse_object(text: str) -> tuple[dict[str, Any], str | None]:
    r"""
    The JSON object that a model wrote, whose strings may hold bare line ends, and what is wrong with it.

    >>> parse_object('{"a": "one\ntwo"}')
    ({'a': 'one\ntwo'}, None)
    >>> parse_object("[]")
    ({}, 'not a JSON object')
    """
    try:
        value = load_json(text, strict=False)  # grammars of some servers let them through
    except (ValueError, RecursionError) as exc:
        return {}, f"not JSON: {exc}"
    if not isinstance(value, dict):
        return {}, "not a JSON object"
    return value, None


def value_span(text: str, name: str) -> tuple[int, int] | None:
    """
    Where the value of an object's own property stands in JSON, without quotation marks; None if it does not.

    >>> said = '{"why": {"verdict": 1}, "verdict": "FAIL"}'
    >>> said[slice(*value_span(said, "verdict"))], value_span(said, "reason")
    ('FAIL', None)
    """
    decoder = json.JSONDecoder()
    at = text.index("{") + 1
    while text[at:].lstrip(" \t\n\r,")[:1] == '"':
        at = text.index('"', at)
        key, at = decoder.raw_decode(text, at)
        at = text.index(":", at) + 1
        at += len(text[at:]) - len(text[at:].lstrip())
        _, end = decoder.raw_decode(text, at)
        if key == name:
            return (at + 1, end - 1) if text[at] == '"' else (at, end)
        at = end
    return None


def find_fault(
    values: Mapping[str, Any],
    schema: Mapping[str, Any],
    *,
    optional: Sequence[str] = (),
    lenient: Sequence[str] = (),
) -> str | None:
    """
    The worst way in which a reply breaks its plain JSON Schema, None if it does not. It may lack *optional*
    and *lenient* properties; the latter may hold anything.

    >>> schema = {"properties": {"a": {"type": "integer"}}}
    >>> find_fault({"a": "x"}, schema), find_fault({"a": "x"}, schema, lenient=["a"])
    ("$.a: 'x' is not of type 'integer'", None)
    """
    required = [name for name in schema.get("required", ()) if name not in (*optional, *lenient)]
    checked = {**schema, "required": required}
    if lenient:
        checked["properties"] = {**schema.get("properties", {}), **{name: {} for name in lenient}}
    best = worst_fault(checked, values)
    return f"{best.json_path}: {best.message:.300}" if best else None


def fill_templates(
    recipe: Recipe, request: Request, choices: Mapping[str, Choice], values: Mapping[str, Any]
) -> dict[str, Any]:
    """
    The text properties of a reply, from the recipe's templates.

    A template is a text with {{name}} (query, the call's variables, or a value already chosen), a list of
    such texts, null, `{spans: property}`: items {text, node_ids} of what that choice chose, verbatim,
    `{objects: property}`: an object {property: value} for each value that it chose, or
    `{instead: property}` (or several): nothing, the property is left out.

    Raises:
        RecipeKeyError: A template names something that does not exist.
    """
    variables = {"query": request.query, **request.variables}
    variables |= {name: value for name, value in values.items() if isinstance(value, str)}
    where = str(recipe.path)

    def made(template: object) -> object:
        if isinstance(template, str):
            return fill(template, variables, where=Location(where, key="templates"))
        if isinstance(template, list):
            return [made(item) for item in template]
        if isinstance(template, Mapping) and set(template) == {"spans"}:
            return _items(template["spans"])
        if isinstance(template, Mapping) and set(template) == {"objects"}:
            return [{template["objects"]: value} for value in _chosen(template["objects"])]
        if template is None:
            return None
        raise RecipeKeyError(
            "a template is a text, a list of texts, null, {spans: …}, {objects: …} or {instead: …}",
            where=Location(where, key="templates"),
        )

    def _items(name: str) -> list[dict[str, object]]:
        options: dict[str, Option] = {option.id: option for option in request.options.get(name, ())}
        ids = [str(id_) for id_ in _chosen(name)]
        return [{"text": options[id_].text, "node_ids": list(options[id_].node_ids)} for id_ in ids]

    def _chosen(name: str) -> Sequence[str | bool]:
        value = choices[name].value if name in choices else None
        return value if isinstance(value, tuple) else () if value is None else (value,)

    written = recipe.replaced_texts
    return {name: made(template) for name, template in recipe.templates.items() if name not in written}


def find_unlinked(recipe: Recipe, request: Request, values: Mapping[str, Any]) -> str | None:
    """
    What in a reply links to nothing that the call was given, if the recipe asks for links; None if all does.
    Of a JSON reply an item with a text that cites no node, or one that was not offered; of any other numbers,
    dates and URLs that occur in no document, option or query of the call.
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
    """Text and node ids of every object that has both."""
    if isinstance(value, Mapping):
        if "text" in value and "node_ids" in value:
            yield str(value["text"]), [str(one) for one in value["node_ids"] or ()]
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _items(part)
