"""The embedded model, loaded once for all tests, and a model server on loopback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panda.models.access import plain_access
from panda.models.llama.loaded import LoadedGgufs
from panda.models.llama.model import LlamaCppModel
from panda.models.models_file import ModelSpec
from panda.models.openai import OpenAiModel
from tests import loopback
from tests.loopback import reply as reply

BUILTIN = "builtin:smollm2-135m"


def embedded_spec(*, n_ctx: int = 1024, thinking_tokens: int = 0) -> ModelSpec:
    return ModelSpec("embedded", "llama_cpp", BUILTIN, n_ctx, thinking_tokens=thinking_tokens)


def embedded(ggufs: LoadedGgufs, *, n_ctx: int = 1024) -> LlamaCppModel:
    return ggufs.model(embedded_spec(n_ctx=n_ctx), relative_to=Path())


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def model(cache_dir: Path) -> Iterator[LlamaCppModel]:
    ggufs = LoadedGgufs(cache_dir)
    yield embedded(ggufs)
    ggufs.close()


class Server(loopback.Server):
    """A model server, and the models that ask it."""

    def __init__(self) -> None:
        self._models: list[OpenAiModel] = []
        super().__init__()

    def model(self, **keys: Any) -> OpenAiModel:
        """The model on it, with the keys of a models.yaml, `api_key` and `cache_dir`."""
        api_key = keys.pop("api_key", None)
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        cache_dir = keys.pop("cache_dir", None)
        spec: dict[str, Any] = {"name": "served", "location": self.url, "model": "m", "n_ctx": 1024}
        entry = ModelSpec(**spec | keys, backend="openai")
        access = plain_access(entry, headers=headers)
        self._models.append(OpenAiModel(entry, access=access, cache_dir=cache_dir))
        return self._models[-1]

    def close(self) -> None:
        """Close the models, and listen no more."""
        for model in self._models:
            model.close()
        super().close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()
