"""Replies of the program itself, by an encoder or by words alone: what serves a layer without a model."""

import time
from collections.abc import Mapping
from typing import Any

from panda.documents.safe_text import shorten
from panda.models.model_contract import Encoder
from panda.offline.decisions import reply_offline
from panda.offline.offline_models import OfflineModels
from panda.offline.support import why_not_offline
from panda.recipes.recipe_file import Recipe
from panda.recipes.responder import Call, RawReply
from panda.recipes.schema import is_confidence, plain_schema, property_schemas
from panda.steps.step_contract import StepContract


class OfflineResponder:
    """Replies by panda/offline/, one function a step."""

    def __init__(self, encoder: Encoder | None) -> None:
        self._models = OfflineModels(encoder)
        self.info = encoder.info if encoder else None

    def attempts(self, recipe: Recipe) -> int:
        """Return one: the same call always has the same reply."""
        return 1

    def optional(self, recipe: Recipe, contract: StepContract[Any]) -> list[str]:
        """Return what the contract knows: what is to be worded may be missing."""
        schemas = property_schemas(recipe.output_schema)
        return [
            name
            for name, schema in schemas.items()
            if name in contract.properties or is_confidence(name, schema)
        ]

    def unsupported(self, recipe: Recipe, contract: StepContract[Any]) -> str | None:
        """Return why it cannot reply to a recipe of this step, in words; None if it can."""
        return why_not_offline(recipe.needs, contract)

    def reply(self, call: Call) -> RawReply:
        """Reply to a call with what of the decision the recipe asks for and has room for."""
        started = time.monotonic()
        offline = reply_offline(call.contract.name, call.request, self._models)
        schema = plain_schema(call.recipe.output_schema, call.contract)
        values = reduce_reply(offline.values, schema, call.contract)
        call.writer.write_offline(
            values,
            inputs_digest=offline.inputs,
            weights_digest=offline.weights,
            behaviour=offline.behaviour,
            seconds=time.monotonic() - started,
            attempt=call.attempt,
        )
        return RawReply(values=values)


def reduce_reply(
    values: Mapping[str, Any], schema: Mapping[str, Any], contract: StepContract[Any]
) -> dict[str, Any]:
    """
    Return of a reply what a schema asks for and has room for.

    What the phase cannot do without stays whatever it is, its texts shortened; a property that has a
    default, or that may be missing, is left out where it does not fit.
    """
    reduced: dict[str, Any] = {}
    for name, part in property_schemas(schema).items():
        if name not in values:
            continue
        value = values[name]
        if name in contract.lenient:
            reduced[name] = value
        elif name in contract.required and isinstance(value, str):
            reduced[name] = shorten(value, part["maxLength"]) if "maxLength" in part else value
        elif name in contract.required or fits(value, part):
            reduced[name] = fit_limits(value, part)
    return reduced


def fits(value: object, schema: object) -> bool:
    """Return whether a text is allowed and not too long; of an object, whether each required part is."""
    if not isinstance(schema, Mapping):
        return True
    if isinstance(value, str):
        is_allowed = "enum" not in schema or value in schema["enum"]
        return is_allowed and len(value) <= int(schema.get("maxLength", len(value)))
    if isinstance(value, Mapping):
        schemas = property_schemas(schema)
        required = [name for name in schema.get("required", ()) if name in value]
        return all(fits(value[name], schemas.get(name, {})) for name in required)
    return True


def fit_limits(value: Any, schema: object) -> Any:
    """
    Return a value whose lists have no more items than a schema allows, and none whose texts are too long.

    >>> fit_limits(["one", "three", "two"], {"maxItems": 2, "items": {"maxLength": 3}})
    ['one', 'two']
    """
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, Mapping):
        schemas = property_schemas(schema)
        if schema.get("additionalProperties") is False:
            value = {name: part for name, part in value.items() if name in schemas}
        fitting = [name for name in value if fits(value[name], schemas.get(name, {}))]
        return {name: fit_limits(value[name], schemas.get(name, {})) for name in fitting}
    if isinstance(value, list):
        item_schema = schema.get("items", {})
        items = [fit_limits(item, item_schema) for item in value if fits(item, item_schema)]
        return items[: schema.get("maxItems", len(items))]
    return value
