"""Compressed documents that were made before, by everything that decides them."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from panda.compression.compressing import Compression, Dropped
from panda.errors import PandaError
from panda.storage.files import read_text, store_errors, write_json

_VERSION = 4
"""Changes when the same inputs would give another result."""
_MOST_FILES = 1_000


class CompressionCache:
    """
    Results by content, budget, query, type, patterns, recipe and model.

    Args:
        directory: Where they are kept; made when the first one comes.
        max_age_seconds: Older ones are not used; None uses them however old they are.
    """

    def __init__(self, directory: Path, *, max_age_seconds: float | None = None) -> None:
        self._directory = directory
        self._max_age_seconds = max_age_seconds

    def key(
        self,
        source: str,
        *,
        kind: str,
        budget_tokens: int,
        query: str | None,
        keep: Sequence[str],
        model: str | None,
        recipe: str | None,
    ) -> str:
        """The name of a result; the same inputs always have the same."""
        parts = [_VERSION, source, kind, budget_tokens, query, list(keep), model, recipe]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def find(self, key: str) -> Compression | None:
        """The result of that name, or None; a damaged file, or one that is too old, counts as none."""
        path, most = self._path(key), self._max_age_seconds
        if not path.is_file() or (most is not None and time.time() - path.stat().st_mtime >= most):
            return None
        try:
            return _parse(json.loads(read_text(path)))
        except (ValueError, KeyError, TypeError, PandaError):
            return None

    def keep(self, key: str, result: Compression) -> None:
        """
        Keep a result; of more than 1,000 the oldest go.

        Raises:
            StoreError: The directory cannot be written.
        """
        write_json(self._path(key), asdict(result))
        with store_errors(self._directory, "clear"):
            files = sorted(self._directory.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in files[:-_MOST_FILES]:
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"


def _parse(values: Mapping[str, Any]) -> Compression:
    dropped = tuple(Dropped(**one) for one in values["dropped"])
    return Compression(**{**values, "dropped": dropped, "protected": tuple(values["protected"])})
