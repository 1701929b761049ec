"""Layers → models, built when first asked for and shared."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from panda.models.contract import Encoder, Model, ModelInfo
from panda.models.models_file import LAYERS, ModelsFile, ModelSpec

if TYPE_CHECKING:  # numpy and llama.cpp wait until a model is asked for
    from panda.models.llama.loaded import LoadedGgufs
    from panda.models.openai import OpenAiModel

EYES = "EYES"
"""The layer that sees; loaded on demand, freed after use."""


class Layers:
    """
    The models of one process.

    Args:
        models_file: What models.yaml says.
        cache_dir: For what can be computed again: requantised models, prompt prefixes, dialects of servers.
        environ: Where API keys are looked up by the name given in models.yaml.
    """

    def __init__(self, models_file: ModelsFile, *, cache_dir: Path, environ: Mapping[str, str]) -> None:
        from panda.models.llama.loaded import LoadedGgufs

        self._file = models_file
        self._environ = environ
        self._cache_dir = cache_dir
        self._servers: list[OpenAiModel] = []
        self._ggufs = LoadedGgufs(cache_dir)
        self._seeing_ggufs = LoadedGgufs(cache_dir)
        self._models: dict[str, Model] = {}
        self._seeing: Model | None = None

    def model(self, layer: str) -> Model:
        """
        The model of a layer.

        Raises:
            ModelFileError: The layer is unset, or its model's file is missing.
        """
        if layer not in LAYERS:
            raise ValueError(f"there is no layer {layer!r}")
        name = self._file.layers[layer]
        if name is None:
            raise self._file.error(
                f"layers.{layer}",
                f"the layer {layer} has no model",
                f"name a model for {layer} in models.yaml",
            )
        if layer != EYES:
            return self.named(name)
        if self._seeing is None:
            self._seeing = self._build_seeing(self._file.models[name])
        return self._seeing

    def release(self, layer: str) -> None:
        """Free what EYES holds, the only layer loaded on demand; it is loaded again when asked again."""
        if layer == EYES:
            self._seeing_ggufs.close()

    def named(self, name: str) -> Model:
        """
        The model of that key in models.yaml.

        Raises:
            ModelFileError: Its file is missing or no GGUF, or its API key is not set.
        """
        if name not in self._models:
            self._models[name] = self._build(self._file.models[name])
        return self._models[name]

    def encoder(self) -> Encoder | None:
        """
        The model that turns texts into vectors; None if models.yaml sets none.

        Raises:
            ModelFileError: Its file is missing or no GGUF.
        """
        name = self._file.encoder
        return None if name is None else self.encoder_named(name)

    def encoder_named(self, name: str) -> Encoder:
        """
        The encoder of that key in models.yaml.

        Raises:
            ModelFileError: Its file is missing or no GGUF.
        """
        spec = self._file.models[name]
        return self._ggufs.encoder(
            spec.name,
            spec.location,
            relative_to=self._file.path.parent,
            n_ctx=spec.n_ctx,
            requantize=spec.requantize,
        )

    def infos(self) -> tuple[ModelInfo, ...]:
        """
        What is known of every model, in the order of models.yaml, without loading one.

        Raises:
            ModelFileError: A file is missing or no GGUF, or an API key is not set.
        """
        return tuple(
            self.encoder_named(spec.name).info if spec.embeds else self.named(spec.name).info
            for spec in self._file.models.values()
        )

    def close(self) -> None:
        """Free all models. None of those given out may be used any more."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        self._models.clear()
        self._seeing = None
        self._seeing_ggufs.close()
        self._ggufs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _build(self, spec: ModelSpec) -> Model:
        return self._server(spec) if spec.backend == "openai" else self._gguf(spec, self._ggufs)

    def _build_seeing(self, spec: ModelSpec) -> Model:
        """The model of EYES, with memory of its own, so that it can be freed alone."""
        if not spec.writes:
            raise self._file.error(
                f"models.{spec.name}.writes",
                f"the model {spec.name} of the layer EYES does not write, so it cannot describe a picture",
                "set writes: true, or name another model for EYES",
            )
        if spec.backend == "openai":
            return self._server(spec)
        if spec.projector is None:
            raise self._file.error(
                f"models.{spec.name}.projector",
                f"the model {spec.name} of the layer EYES has no projector, so it cannot see",
                "name the projector file (mmproj-….gguf) that comes with the model",
            )
        return self._gguf(spec, self._seeing_ggufs)

    def _server(self, spec: ModelSpec) -> Model:
        from panda.models.openai import OpenAiModel

        key = None if spec.api_key_env is None else self._environ.get(spec.api_key_env, "").strip()
        if spec.api_key_env is not None and not key:
            raise self._file.error(
                f"models.{spec.name}.api_key_env",
                f"the environment variable {spec.api_key_env} is not set",
                f"export {spec.api_key_env} with the server's key",
            )
        server = OpenAiModel(spec, api_key=key, cache_dir=self._cache_dir)
        self._servers.append(server)
        return server

    def _gguf(self, spec: ModelSpec, ggufs: "LoadedGgufs") -> Model:
        return ggufs.model(
            spec.name,
            spec.location,
            relative_to=self._file.path.parent,
            n_ctx=spec.n_ctx,
            writes=spec.writes,
            scores=spec.scores,
            requantize=spec.requantize,
            projector=spec.projector,
            thinking_tokens=spec.thinking_tokens,
        )
