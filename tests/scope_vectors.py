"""Worked cases of scope synthesis, for every way to ask: function, command line, HTTP, MCP."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panda.documents.times import parse_time

_DOCUMENT = json.loads(Path(__file__).with_name("scope_vectors.json").read_text(encoding="utf-8"))

NOW_TEXT: str = _DOCUMENT["now"]
NOW = parse_time(NOW_TEXT)
ORDERS = 100


@dataclass(frozen=True)
class Vector:
    """One case."""

    id: str
    """Its name."""
    request: Mapping[str, Any]
    """What is asked."""
    facts: list[dict[str, Any]]
    """In one of their orders."""
    conflicts: list[dict[str, Any]]
    """In one of theirs."""
    expected: list[dict[str, Any]]
    """The entries, in order."""
    expected_counts: Mapping[str, int]
    """The counts of the envelope."""

    @property
    def document(self) -> dict[str, Any]:
        """As `--facts` reads it."""
        return {
            "facts": [dict(one) for one in self.facts],
            "conflicts": [dict(one) for one in self.conflicts],
        }

    def check(self, envelope: Mapping[str, Any]) -> None:
        """Assert that an answer is the expected one."""
        assert envelope["summary"] == self.expected
        assert {name: envelope[name] for name in self.expected_counts} == self.expected_counts
        assert envelope["scope"] == self.request["scope"]

    def orders(self) -> Iterator["Vector"]:
        """The case with its facts and conflicts in some random orders, always the same ones."""
        for seed in range(ORDERS):
            chance = random.Random(seed)
            facts, conflicts = list(self.facts), list(self.conflicts)
            chance.shuffle(facts)
            chance.shuffle(conflicts)
            yield Vector(self.id, self.request, facts, conflicts, self.expected, self.expected_counts)


VECTORS = [Vector(**one) for one in _DOCUMENT["vectors"]]
