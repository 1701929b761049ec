"""What serves each layer: its model, or the program itself where it is offline."""

from panda.compression.budgets import Limits
from panda.compression.fit import Rewriter
from panda.models.model_contract import Encoder, Layers
from panda.recipes.book import RecipeBook
from panda.recipes.offline_responder import OfflineResponder
from panda.recipes.prompt_responder import PromptResponder
from panda.recipes.responder import Responder


class Responders:
    """The responders of all layers."""

    def __init__(self, layers: Layers, encoder: Encoder | None, book: RecipeBook, limits: Limits) -> None:
        self._layers = layers
        self._encoder = encoder
        self._book = book
        self._limits = limits
        self._offline = OfflineResponder(encoder)

    def of_layer(self, layer: str, rewriter: Rewriter) -> Responder:
        """
        Return what replies to the calls of a layer.

        Args:
            rewriter: What words passages anew where documents have to be shortened for a prompt.
        """
        if self._layers.is_offline(layer):
            return self._offline
        return PromptResponder(self._layers.model(layer), self._book, self._limits, rewriter)

    def name_of(self, layer: str) -> str:
        """Return what answers calls of a layer: its model, or the encoder, else words in common."""
        if not self._layers.is_offline(layer):
            return f"{layer}: {self._layers.model(layer).info.name}"
        return f"encoder {self._encoder.info.name}" if self._encoder else "words in common"
