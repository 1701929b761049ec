"""The lines of logs/executions.jsonl that one recipe execution leaves (S3 §27)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from panda.compression.events import compressed_line, overflow_line
from panda.compression.fitting import Cut
from panda.errors import BudgetExceededError, HaltError
from panda.recipes.journal import CallWriter, Journal, whose_turn
from panda.recipes.recipe import Recipe
from panda.recipes.reply import Reply


@dataclass(frozen=True)
class Ran:
    """One execution that has ended."""

    recipe: Recipe
    """What was executed."""
    journal: Journal
    """Whose turn it belongs to."""
    writer: CallWriter
    """Knows model and tokens."""
    seconds: float
    """Wall clock."""
    attempts: int
    """Attempts made."""
    cuts: Sequence[Cut]
    """What fitting took from the inputs."""
    ended: Reply | HaltError
    """The reply, or what went wrong."""


def execution_lines(ran: Ran, *, timestamp: str) -> Iterator[Mapping[str, object]]:
    """
    A line for each document that was compressed or did not fit, then that of the execution.

    Args:
        ran: The execution.
        timestamp: When it ended.
    """
    recipe = ran.recipe
    layer = recipe.compression.model_layer
    for cut in ran.cuts:
        line = compressed_line(cut, timestamp=timestamp, recipe=recipe.name, layer=layer)
        yield {**line, **whose_turn(ran.journal)}
    if isinstance(ran.ended, BudgetExceededError):
        line = overflow_line("call", ran.ended.message, timestamp=timestamp, recipe=recipe.name)
        yield {**line, **whose_turn(ran.journal)}
    reply = ran.ended if isinstance(ran.ended, Reply) else None
    yield {
        "timestamp": timestamp,
        **ran.writer.log_fields(),
        "latency_ms": round(ran.seconds * 1000),
        "success": reply is not None,
        "schema_valid": reply is not None,
        "confidence": reply.confidence if reply else None,
        "gate": reply.gate if reply else None,
        "retries": max(0, ran.attempts - 1),
        "compression_applied": bool(ran.cuts),
        "compression_savings": sum(cut.before_tokens - cut.after_tokens for cut in ran.cuts),
    }
