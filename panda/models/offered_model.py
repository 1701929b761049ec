"""A model that can be added to models.yaml, as its source tells of it before it is tried."""

from dataclasses import dataclass

from panda.models.models_file import Backend

USUAL_WINDOW_TOKENS = 16_384
"""Window that a model file gets where it was trained with more: the packaged recipes need less."""
THINKING_TOKENS = 2_048
"""Room for reasoning that a model gets which thinks."""


@dataclass(frozen=True, kw_only=True)
class OfferedModel:
    """One model that a server, a file or a hub offers."""

    backend: Backend
    location: str  # base URL, or the path of a file as it is to stand in models.yaml
    model: str  # the server's name for it; of a file its name without its ending
    n_ctx: int | None  # window in model tokens that it can be asked with; None if that is not told
    n_ctx_trained: int | None = None  # window that it was trained with
    parallel: int = 1  # requests that the server serves at the same time
    is_encoder: bool = False  # whether it only turns texts into vectors
    thinks: bool = False  # whether its source says that it writes reasoning
    architecture: str | None = None  # of a file, such as "qwen3"
    projector: str | None = None  # path of the file that goes with a model that sees, as for `location`
    has_chat_template: bool = True  # False for a file of a base model
    size_bytes: int | None = None

    @property
    def is_served(self) -> bool:
        """Say whether it runs on a server."""
        return self.backend != "llama_cpp"
