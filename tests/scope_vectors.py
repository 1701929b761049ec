"""Worked cases of scope synthesis, for every way to ask: command line, HTTP, MCP."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DOCUMENT = json.loads(Path(__file__).with_name("scope_vectors.json").read_text(encoding="utf-8"))

NOW_TEXT: str = _DOCUMENT["now"]


@dataclass(frozen=True)
class Vector:
    """One case."""

    id: str
    """Its name."""
    request: Mapping[str, Any]
    """What is asked."""
    facts: list[dict[str, Any]]
    """In one order."""
    conflicts: list[dict[str, Any]]
    """In one order."""
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


VECTORS = [Vector(**one) for one in _DOCUMENT["vectors"]]
