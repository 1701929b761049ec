"""Layers → models, built when first asked for and shared."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from panda.models.access import read_access
from panda.models.model_contract import Encoder, Model
from panda.models.models_file import LAYERS, OFFLINE, ModelsFile, ModelSpec

if TYPE_CHECKING:
    from panda.models.llama.loaded import LoadedGgufs

EYES = "EYES"
"""The layer that sees; loaded on demand, freed after use."""


class LoadedLayers(AbstractContextManager["LoadedLayers"]):
    """The models of one process; none may be used any more once they are closed."""

    def __init__(self, models_file: ModelsFile, *, cache_dir: Path, environ: Mapping[str, str]) -> None:
        from panda.models.llama.loaded import LoadedGgufs

        self._file = models_file
        self._environ = environ
        self._cache_dir = cache_dir
        self._servers = ExitStack()
        self._ggufs = LoadedGgufs(cache_dir)
        self._seeing_ggufs = LoadedGgufs(cache_dir)
        self._models: dict[str, Model] = {}
        self._seeing: Model | None = None

    def model(self, layer: str) -> Model:
        """
        Return the model of a layer; that of EYES has memory of its own, so that it can be freed alone.

        Raises:
            ModelFileError: The layer is unset or offline, or its model cannot be used.
        """
        if layer not in LAYERS:
            raise ValueError(f"there is no layer {layer!r}")
        name = self._file.layers[layer]
        if name is None or name == OFFLINE:
            state = "has no model" if name is None else "is offline"
            fix = f"name a model for {layer} in models.yaml"
            raise self._file.error(f"layers.{layer}", f"the layer {layer} {state}", fix)
        if layer != EYES:
            return self.named(name)
        if self._seeing is None:
            self._check_sees(self._file.models[name])
            self._seeing = self._build(self._file.models[name], self._seeing_ggufs)
        return self._seeing

    def is_offline(self, layer: str) -> bool:
        """Return whether models.yaml says that no model serves the layer."""
        return self._file.layers[layer] == OFFLINE

    @property
    def sees(self) -> bool:
        """Return whether the layer EYES has a model."""
        return self._file.layers[EYES] is not None

    def serving(self, models_by_layer: Mapping[str, str]) -> "LoadedLayers":
        """
        Return layers with other models for some of them, which share what is loaded, and end with these.

        Raises:
            ModelFileError: There is no model of that name, or it cannot serve the layer.
        """
        shared = copy(self)
        shared._file = self._file.with_layers(models_by_layer)
        shared._seeing = None
        return shared

    def release(self, layer: str) -> None:
        """Free what EYES holds, the only layer loaded on demand; it is loaded again when asked again."""
        if layer == EYES:
            self._seeing_ggufs.close()

    def named(self, name: str) -> Model:
        """The model of that key in models.yaml."""
        if name not in self._models:
            self._models[name] = self._build(self._file.models[name], self._ggufs)
        return self._models[name]

    def on_server(self, name: str, url: str) -> Model:
        """The model of that key in models.yaml on one of its servers alone."""
        return self._build(replace(self._file.models[name], location=url, further_servers=()), self._ggufs)

    def encoder(self) -> Encoder | None:
        """The model that turns texts into vectors; None if models.yaml sets none."""
        return None if self._file.encoder is None else self.encoder_named(self._file.encoder)

    def encoder_named(self, name: str) -> Encoder:
        return self._ggufs.encoder(self._file.models[name], relative_to=self._file.path.parent)

    def close(self) -> None:
        self._servers.close()
        self._models.clear()
        self._seeing = None
        self._seeing_ggufs.close()
        self._ggufs.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _build(self, spec: ModelSpec, ggufs: "LoadedGgufs") -> Model:
        if not spec.servers:
            return ggufs.model(spec, relative_to=self._file.path.parent)
        from panda.models.openai import OpenAiModel

        access = read_access(spec, self._file, self._environ)
        server = OpenAiModel(spec, access=access, cache_dir=self._cache_dir)
        self._servers.callback(server.close)
        return server

    def _check_sees(self, spec: ModelSpec) -> None:
        at = f"models.{spec.name}"
        of_eyes = f"the model {spec.name} of the layer EYES"
        if not spec.servers and spec.projector is None:
            fix = "name the projector file (mmproj-….gguf) that comes with the model"
            raise self._file.error(f"{at}.projector", f"{of_eyes} has no projector, so it cannot see", fix)
