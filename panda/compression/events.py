"""Compressions as lines of logs/executions.jsonl, and what they add up to (S3 §27)."""

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Any

from panda.compression.documents import REWRITE, Cut

COMPRESSED = "compressed"
"""Member `event` of the line of a compression; the line of a recipe execution has no such member."""
OVERFLOW = "overflow"
"""The same where something was over its budget and could not be brought below it."""

_BY_MODEL = ("model", REWRITE)
"""Methods for which a model was asked."""


def compressed_line(
    cut: Cut, *, timestamp: str, recipe: str | None, layer: str | None, model: str | None = None
) -> dict[str, object]:
    """
    One compression for the log, without whose it was; layer and model are named only if one was asked.

    >>> line = compressed_line(Cut("§4", 3000, 2400), timestamp="", recipe=None, layer="NERVES")
    >>> line["trigger"], line["tokens_saved"], line["compression_ratio"]
    ('input', 600, 0.8)
    """
    return {
        "timestamp": timestamp,
        "event": COMPRESSED,
        "trigger": cut.trigger,
        "document": cut.name,
        "content_type": cut.content_type,
        "recipe": recipe,
        "model_layer": layer if cut.method in _BY_MODEL else None,
        "method": cut.method,
        "model": model if cut.method in _BY_MODEL else None,
        "original_tokens": cut.before_tokens,
        "compressed_tokens": cut.after_tokens,
        "tokens_saved": cut.before_tokens - cut.after_tokens,
        "compression_ratio": round(cut.after_tokens / cut.before_tokens, 4) if cut.before_tokens else 1.0,
        "latency_ms": round(cut.seconds * 1000, 1),
    }


def overflow_line(what: str, message: str, *, timestamp: str, recipe: str | None) -> dict[str, object]:
    """What could not be brought within its budget, for the log."""
    return {
        "timestamp": timestamp,
        "event": OVERFLOW,
        "document": what,
        "content_type": None,
        "recipe": recipe,
        "model_layer": None,
        "message": message,
    }


@dataclass(frozen=True)
class CompressionMetrics:
    """What the compressions of a log add up to."""

    calls: int = 0  # compressions
    original_tokens: int = 0  # budget tokens before
    compressed_tokens: int = 0  # budget tokens after
    overflow_warnings: int = 0  # how often something did not fit its budget
    seconds: float = 0.0  # wall clock of all of them

    @property
    def tokens_saved(self) -> int:
        """Budget tokens less."""
        return self.original_tokens - self.compressed_tokens

    @property
    def ratio(self) -> float | None:
        """Tokens after by tokens before; None if nothing was compressed."""
        return round(self.compressed_tokens / self.original_tokens, 4) if self.original_tokens else None


def sum_compressions(lines: Iterable[Mapping[str, Any]]) -> dict[str | None, CompressionMetrics]:
    """
    Metrics of compression by content type over lines of executions.jsonl (S3 §27); under None of all lines.

    >>> cut = Cut("§4", 3000, 2400, content_type="tool_result", seconds=0.25)
    >>> found = sum_compressions([compressed_line(cut, timestamp="", recipe=None, layer="NERVES")])
    >>> found[None].tokens_saved, found["tool_result"].ratio, found[None].seconds
    (600, 0.8, 0.25)
    """
    found: dict[str | None, CompressionMetrics] = {None: CompressionMetrics()}
    for line in lines:
        more = _metrics(line)
        if more is not None:
            kind = line.get("content_type")
            for key in {None, kind if isinstance(kind, str) else None}:
                before = found.get(key, CompressionMetrics())
                sums = [round(one + two, 6) for one, two in zip(astuple(before), astuple(more), strict=True)]
                found[key] = CompressionMetrics(*sums)
    return found


def _metrics(line: Mapping[str, Any]) -> CompressionMetrics | None:
    event = line.get("event")
    if event == OVERFLOW:
        return CompressionMetrics(overflow_warnings=1)
    before, after = line.get("original_tokens"), line.get("compressed_tokens")
    milliseconds = line.get("latency_ms") or 0
    if event != COMPRESSED or not isinstance(before, int) or not isinstance(after, int):
        return None
    seconds = milliseconds / 1000 if isinstance(milliseconds, int | float) else 0.0
    return CompressionMetrics(1, before, after, 0, seconds)
