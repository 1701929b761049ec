"""Whole turns with a model server on loopback that answers as a script says."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from panda.models.contract import Completion, GenerateParams, Message
from panda.models.models_file import ModelSpec
from panda.models.openai import OpenAiModel
from tests.loopback import Server, reply
from tests.scripted_model import Asked, Reply


class Served(OpenAiModel):
    """
    A model that writes, behind a server on loopback.

    Args:
        server: The server; from now on it answers as told.
        answer: What it answers to each call, such as a Script.
        keys: Further keys of its entry in models.yaml.
    """

    def __init__(self, server: Server, answer: Callable[[Asked], Reply | None], **keys: Any) -> None:
        spec = ModelSpec("served", "openai", server.url, 16384, writes=True, scores=False, model="m")
        super().__init__(replace(spec, **{"structured": "json_schema"} | keys))
        self.asked: list[Asked] = []
        self._params: GenerateParams | None = None

        def write(body: dict[str, Any]) -> tuple[int, bytes]:
            messages = tuple(Message(one["role"], one["content"]) for one in body["messages"])
            asked = Asked(messages=messages, params=self._params)
            self.asked.append(asked)
            said = answer(asked)
            assert isinstance(said, str), said
            if said == "cut":
                return reply('{"clauses": [', finish_reason="length")
            return reply(said)

        server.answer = write

    def generate(self, messages: Any, params: GenerateParams) -> Completion:
        """One completion, over HTTP."""
        self._params = params
        return super().generate(messages, params)
