"""Replies of the program itself, by an encoder or by words alone: what serves a layer without a model."""

import time

from panda.models.contract import Encoder
from panda.offline.decisions import reply_offline
from panda.offline.offline_models import OfflineModels
from panda.offline.support import why_not_offline
from panda.recipes.recipe import Recipe
from panda.recipes.responder import Call, RawReply
from panda.recipes.schema import is_confidence, property_schemas
from panda.steps.contract import StepContract


class OfflineResponder:
    """Replies by panda/offline/, one function a step."""

    def __init__(self, encoder: Encoder | None) -> None:
        self._models = OfflineModels(encoder)
        self.info = encoder.info if encoder else None

    def attempts(self, recipe: Recipe) -> int:
        """Return one: the same call always has the same reply."""
        return 1

    def optional(self, recipe: Recipe, contract: StepContract) -> list[str]:
        """Return what the contract knows: what is to be worded may be missing."""
        schemas = property_schemas(recipe.output_schema)
        return [
            name
            for name, schema in schemas.items()
            if name in contract.properties or is_confidence(name, schema)
        ]

    def unsupported(self, recipe: Recipe, contract: StepContract) -> str | None:
        """Return why it cannot reply to a recipe of this step, in words; None if it can."""
        return why_not_offline(recipe.needs, contract)

    def reply(self, call: Call) -> RawReply:
        """Reply to a call with what of the decision the recipe asks for."""
        started = time.monotonic()
        offline = reply_offline(call.contract.name, call.request, self._models)
        properties = call.recipe.output_schema.get("properties", {})
        values = {name: value for name, value in offline.values.items() if name in properties}
        call.writer.write_offline(
            values,
            inputs_digest=offline.inputs,
            weights_digest=offline.weights,
            behaviour=offline.behaviour,
            seconds=time.monotonic() - started,
            attempt=call.attempt,
        )
        return RawReply(values=values)
