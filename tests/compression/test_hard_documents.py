"""Hard documents: within budget, nothing invented, structure whole, more budget never keeps less."""

import re

import pytest

from tests.api import ScriptedPanda
from tests.compression.faults import MARK, damaged, invented
from tests.compression.hard_documents import MAKERS, hard_document

SCALE = 0.03
NOTHING_SMALLER = {"blank lines", "one word", "one number", "wide table", "nested.json"}
"""Documents of which nothing fits an eighth of them."""
LEAST_BUDGET = 16
"""Into a smaller budget hardly a sentence fits."""


@pytest.mark.parametrize("name", MAKERS)
def test_hard_document(ann: ScriptedPanda, name: str) -> None:
    """At an eighth, a quarter and a half: size, numbers, URLs and form; what was kept stays with more."""
    text = hard_document(name, SCALE)
    ann.write(f"documents/{name}", text)
    size = ann.json("compress", f"documents/{name}", "--budget", "1000000")["before_tokens"]
    kept_parts: list[str] = []
    compressed = ""
    for budget in (size // 8, size // 4, size // 2):
        ended = ann("compress", f"documents/{name}", "--budget", str(budget), "--json")
        if ended.code == 4:
            assert name in NOTHING_SMALLER or budget < LEAST_BUDGET, ended.out
            continue
        compressed = ended.data["text"]
        assert ended.data["after_tokens"] <= budget
        assert invented(compressed, text) == []
        assert damaged(compressed, text, is_json=name.endswith(".json")) == []
        if not name.endswith(".json"):
            assert [part for part in kept_parts if part not in compressed] == []
        kept_parts = [
            part.strip(" |") for part in re.split(rf"\n|{MARK.pattern}", compressed) if part.strip(" |")
        ]
    if compressed:
        ann.write(f"documents/{name}", compressed)
        again = ann.json("compress", f"documents/{name}", "--budget", str(budget))
        assert again["text"] == compressed
