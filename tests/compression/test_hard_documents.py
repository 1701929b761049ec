"""Hard documents: within budget, nothing invented, structure whole, more budget never keeps less."""

import json
import re
from typing import Any

import pytest

from panda.compression.compress import Compression, compress
from panda.compression.fit import detect_content_type
from panda.compression.json import load_json
from panda.documents.yaml_text import parse_yaml
from panda.models.cl100k import count_tokens
from tests.compression.hard_documents import MAKERS, hard_document

SCALE = 0.03
NOTHING_SMALLER = {"one word", "one number", "wide table"}
"""Documents of which nothing fits an eighth of them."""


def small(name: str, text: str, budget: int) -> Compression:
    """The document in so many tokens."""
    kind = detect_content_type(name, text)
    return compress(text, kind=kind, budget_tokens=budget)


@pytest.mark.parametrize("name", MAKERS)
def test_hard_document(name: str) -> None:
    """At 10, 25 and 50 %: the size, the numbers, the URLs, the form; and again at the same budget."""
    text = hard_document(name, SCALE)
    size = count_tokens(text)
    for share in (0.1, 0.25, 0.5):
        made = small(name, text, int(share * size))
        assert count_tokens(made.text) <= int(share * size)
        assert invented(made.text, text) == []
        assert damaged(made.text, text, is_json=name.endswith(".json")) == []
        assert small(name, made.text, int(share * size)).text == made.text


@pytest.mark.parametrize("name", [name for name in MAKERS if not name.endswith(".json")])
def test_more_budget_keeps_no_less(name: str) -> None:
    """Each stretch that is kept at a budget is kept at twice that budget."""
    text = hard_document(name, SCALE)
    budget = count_tokens(text) // 8
    before: list[str] = []
    for _ in range(3):
        made = small(name, text, budget)
        assert [part for part in before if part not in made.text] == []
        before = [part.strip(" |") for part in re.split(r"\n|\[…\]", made.text) if part.strip(" |")]
        assert before or name in NOTHING_SMALLER
        budget *= 2


def invented(output: str, source: str) -> list[str]:
    """Numbers and URLs of a result that its source lacks, found without what compression uses."""
    said = output.replace("[…]", " ")
    numbers = re.findall(r"\d+(?:[.,:]\d+)*", said)
    urls = [url.rstrip('.,;\\"') for url in re.findall(r"https?://[^\s<>\"')\]|`]+", said)]
    return [found for found in (*numbers, *urls) if found not in source]


def damaged(output: str, source: str, *, is_json: bool) -> list[str]:
    """What is broken in the form of a result."""
    if is_json:
        load_json(output)
        return []
    problems = []
    if is_open(output) and not is_open(source):
        problems.append("a fence is open")
    rest = iter(line.rstrip() for line in source.split("\n"))
    for line in output.split("\n"):
        if re.match(r"#{1,6} ", line) and line.rstrip() not in rest:
            problems.append(f"out of order: {line}")
    for block in re.findall(r"^```yaml\n(_meta:.*?)^```", output, re.DOTALL | re.MULTILINE):
        values: Any = parse_yaml(block)
        json.dumps(values)
    lines = output.split("\n")
    rows = {line.strip() for line in source.split("\n")}
    for k, line in enumerate(lines):
        if "| […] |" in line and line.strip() not in rows:
            head = next(lines[n] for n in range(k, -1, -1) if re.fullmatch(r"[\s|:-]*-[\s|:-]*", lines[n]))
            if line.count("|") != head.strip().strip("|").count("|") + 2:
                problems.append(f"lost cells: {line}")
    return problems


def is_open(text: str) -> bool:
    """Whether a fence is left open."""
    mark = ""
    for line in text.split("\n"):
        found = re.match(r"\s*(?:[-*+]\s+)?(`{3,}(?=[^`]*$)|~{3,})", line)
        if mark:
            mark = "" if line.strip().startswith(mark) and set(line.strip()) == {mark[0]} else mark
        elif found:
            mark = found[1]
    return bool(mark)
