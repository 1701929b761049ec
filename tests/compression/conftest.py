"""The embedded model, loaded once."""

from tests.models.conftest import cache_dir, model

__all__ = ["cache_dir", "model"]
