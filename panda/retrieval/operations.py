"""What a question wants of a table: a count, a sum, the first by a value; read from its words' vectors."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from panda.models.text_classifier import load_classifier

if TYPE_CHECKING:  # it imports sqlite3
    from collections.abc import Mapping

    from panda.models.kept_encoder import KeptEncoder

Operation = Literal["compare", "count", "days", "first", "last", "max", "mean", "min", "next", "rows", "sum"]
"""What is done with the rows of a table; "rows" tells them as they are, or asks for none."""
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
WEIGHTS = Path(__file__).with_name("operations.json")


def read_operations(query: str, encoder: "KeptEncoder | None") -> "Mapping[Operation, float]":
    """Return the probability of each operation; {} without the encoder that the weights are for."""
    return cast("Mapping[Operation, float]", load_classifier(WEIGHTS).classify(query, encoder))
