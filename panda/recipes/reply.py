"""One checked reply of a recipe: read, and checked against schema and evidence (S3 §14)."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal

from panda.compression.fit import Cut
from panda.documents.evidence import check_evidence
from panda.documents.json_schema import Steps, find_violation
from panda.documents.json_text import load_json
from panda.documents.yaml_text import read_yaml
from panda.recipes.recipe_file import Recipe
from panda.steps.request import Request
from panda.steps.step_contract import R, StepContract

Gate = Literal["passed", "below", "not_measured"]
_FENCE = re.compile(r"\A\s*```\w*\n(.*?)```\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Reply(Generic[R]):
    recipe: Recipe  # the recipe that was executed
    content: R  # what the phase reads of it
    values: Mapping[str, Any]  # the whole reply as an object that satisfies the output schema
    confidence: float | None
    """Confidence of the deciding property: the last enum or boolean; None when none is known."""
    gate: Gate | None
    """What the recipe's threshold says of the confidence; not_measured where none is known, and then the
    reply stands as it is; None without a threshold."""
    attempts: int  # model attempts, at least 1
    cuts: tuple[Cut, ...]  # what fitting took from the inputs

    @property
    def below_threshold(self) -> bool:
        """Return whether the confidence is known and below the recipe's threshold."""
        return self.gate == "below"

    @property
    def asks_back(self) -> bool:
        """Return whether the recipe says to ask the user because of that."""
        return self.below_threshold and self.recipe.quality_gates.below_threshold == "clarify"


def parse_object(text: str, *, is_yaml: bool = False) -> tuple[dict[str, Any], str | None]:
    r"""
    The object that a model wrote as JSON, whose strings may hold bare line ends, or as YAML, which may stand
    in a code fence; and what is wrong with it.

    >>> parse_object('{"a": "one\ntwo"}')
    ({'a': 'one\ntwo'}, None)
    >>> parse_object("[]")
    ({}, 'not a JSON object')
    >>> parse_object("```yaml\na: [1, two]\n```", is_yaml=True)
    ({'a': [1, 'two']}, None)
    """
    value: object = None
    try:
        if is_yaml:
            node = read_yaml(_FENCE.sub(r"\1", text))
            value = node.value if node else None
        else:
            value = load_json(text, strict=False)  # grammars of some servers let them through
    except (ValueError, RecursionError) as exc:
        return {}, str(exc) if is_yaml else f"not JSON: {exc}"
    if not isinstance(value, dict):
        return {}, "not a YAML mapping" if is_yaml else "not a JSON object"
    return value, None


def value_span(text: str, name: str, value: object) -> tuple[int, int] | None:
    """
    Return start and end of the value of the last property of a name in JSON, without quotation marks; None if
    there is none.

    >>> said = '{"why": {"verdict": 1}, "verdict": "FAIL"}'
    >>> said[slice(*value_span(said, "verdict", "FAIL"))], value_span(said, "reason", "FAIL")
    ('FAIL', None)
    """
    value_text = value if isinstance(value, str) else json.dumps(value)
    at = text.rfind(f'"{name}"')
    start = text.find(value_text, at + len(name) + 2)
    return None if at < 0 or start < 0 else (start, start + len(value_text))


def find_fault(
    values: Mapping[str, Any],
    schema: Mapping[str, Any],
    *,
    optional: Collection[str] = (),
    lenient: Collection[str] = (),
    steps: Steps | None = None,
) -> str | None:
    """
    The worst way in which a reply breaks its plain JSON Schema, None if it does not. It may lack *optional*
    and *lenient* properties; the latter may hold anything. Raises SchemaError as find_violation does.

    >>> schema = {"properties": {"a": {"type": "integer"}}}
    >>> find_fault({"a": "x"}, schema), find_fault({"a": "x"}, schema, lenient=["a"])
    ("$.a: 'x' is not of type 'integer'", None)
    """
    required = [name for name in schema.get("required", ()) if name not in (*optional, *lenient)]
    checked = {**schema, "required": required}
    if lenient:
        checked["properties"] = {**schema.get("properties", {}), **{name: {} for name in lenient}}
    broken = find_violation(checked, values, steps=steps)
    return f"{broken.json_path}: {broken.message:.300}" if broken else None


def find_unlinked(
    recipe: Recipe, contract: StepContract[Any], request: Request, values: Mapping[str, Any]
) -> str | None:
    """
    Return what in a reply links to nothing that the call was given, if the recipe asks for links; else None.
    Of a JSON reply an item with a text that cites no node, or one that was not offered; of any other numbers,
    dates and URLs that occur in no document, option or query of the call.
    """
    if not recipe.quality_gates.evidence_required:
        return None
    if not recipe.is_object:
        offered = [option for options in request.shown_options.values() for option in options]
        texts = [
            *(document.text for document in request.shown_documents),
            *(option.text for option in offered),
        ]
        sources = [request.query, *texts]
        wrong = check_evidence(str(values.get("text", "")), sources)
        return f"{wrong[0].kind} {wrong[0].text} is in no document that was given" if wrong else None
    ids = {id_ for ids_ in request.option_ids(contract).values() for id_ in ids_}
    for text, cited in _items(values):
        if not cited:
            return f"{text!r:.80} cites no node"
        unknown = [id_ for id_ in cited if ids and id_ not in ids]
        if unknown:
            return f"{text!r:.80} cites {unknown[0]}, which was not offered"
    return None


def _items(value: Any) -> Iterator[tuple[str, list[str]]]:
    """Text of every object that has one and cites lines or nodes, or nothing besides, and what it cites."""
    if isinstance(value, Mapping):
        if "text" in value and {"text", "lines", "node_ids"}.issuperset({*value} - {"computed"}):
            cited = (*(value.get("lines") or ()), *(value.get("node_ids") or ()))
            yield str(value["text"]), list(map(str, cited))
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _items(part)
