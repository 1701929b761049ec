"""Compression: within budget, nothing invented, structure kept, and more budget never keeps less."""

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panda.compression.compress import compile_keep, compress
from panda.compression.fit import detect_content_type
from panda.compression.order import UnitText
from panda.compression.pieces import ContentType
from panda.documents.context import parse_context
from panda.errors import LimitError
from panda.models.cl100k import count_tokens
from tests.compression.faults import damaged, invented

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "panda-system-docs").rglob("*.md")),
    *sorted((ROOT / "panda-system-docs").rglob("*.json")),
    ROOT / "CONTRIBUTING.md",
    ROOT / "Makefile",
    ROOT / "panda" / "settings.py",
]
PROSE = [path for path in DOCUMENTS if path.suffix != ".json"]  # JSON values change their punctuation
WORDS = re.findall(r"[a-z]+", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").lower())
PAGE = {
    "url": "https://shop.example/loq",
    "zones": [
        {"name": "pricing", "confidence": 0.95, "price": "$697.00", "availability": "In Stock"},
        {"name": "reviews", "confidence": 0.6, "rating": 4.5, "raw_text": "Good keys. Loud fans. " * 30},
        {"name": "other", "confidence": 0.2, "raw_text": "Perhaps a banner. " * 30},
        {"name": "navigation", "raw_text": "Home Laptops Phones " * 40},
    ],
}


def small(text: str, share: float, *, kind: ContentType = "generic", query: str | None = None) -> str:
    """The document at a share of its tokens."""
    budget = int(share * count_tokens(text))
    return compress(text, kind=kind, budget_tokens=budget, query=query).text


def kept_texts(text: str) -> list[str]:
    """What stands between the marks of a compressed document, line by line."""
    parts = re.split(r"\n|\[…\]", text)
    return [part.strip(" |") for part in parts if part.strip(' |"{}[],')]


def smallest(text: str, kind: ContentType, budget: int) -> int:
    """The budget, or what the error says that the document needs."""
    try:
        compress(text, kind=kind, budget_tokens=budget)
    except LimitError as error:
        needed = re.search(r"needs (\d+) tokens, (\d+) more than the budget", error.message)
        assert needed is not None
        assert int(needed[1]) - int(needed[2]) == budget
        return int(needed[1])
    return budget


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_documents_of_ours(path: Path, share: float) -> None:
    """A real document comes within budget, true and whole, or the error says what would do."""
    text = path.read_text(encoding="utf-8")
    kind = detect_content_type(str(path), text)
    budget = max(4, int(share * count_tokens(text)))
    budget = smallest(text, kind, budget)
    made = compress(text, kind=kind, budget_tokens=budget)
    is_json = path.suffix == ".json"
    assert count_tokens(made.text) <= budget
    assert invented(made.text, text) == []
    assert damaged(made.text, text, is_json=is_json) == []
    squeezed = "".join(made.text.split())
    assert [part for part in made.protected if "".join(part.split()) not in squeezed] == []
    if path.name == "context.md":
        parse_context(made.text, where=str(path))


@pytest.mark.parametrize("path", PROSE[::2], ids=lambda path: str(path.relative_to(ROOT)))
def test_more_budget_keeps_no_less(path: Path) -> None:
    """What is kept at a budget is kept at twice the budget; compressing again changes nothing."""
    text = path.read_text(encoding="utf-8")
    kind = detect_content_type(str(path), text)
    size = count_tokens(text)
    budget = smallest(text, kind, max(8, size // 8))
    assert budget < size
    before: list[str] = []
    while budget <= size:
        made = compress(text, kind=kind, budget_tokens=budget)
        assert [part for part in before if part not in made.text] == []
        again = compress(made.text, kind=kind, budget_tokens=budget)
        assert again.text == made.text
        before = kept_texts(made.text)
        budget = budget + 1 if budget == size else min(2 * budget, size)
    assert before == kept_texts(text)


def test_within_budget_nothing_changes() -> None:
    """A document within its budget is given back byte for byte, at no cost but the count."""
    text = "  # A\r\n\r\n| a |\n|---|\nnot closed ```\n```\n"
    made = compress(text, kind="generic", budget_tokens=100)
    assert (made.text, made.rung, made.method) == (text, 0, "none")


SOME_LINES = """
# Title
## Part
- item one costs $5.
- item two: see https://a.io/x.
1. first
| a | b |
|---|---|
| 1 | 2 |
| 3 | $4 |
```python
```
x = 1
    y = 2
~~~
> quoted
Name: says it. And more. It is 12 May 2024.
Error: no such file
ValueError: 5 is bad
---

===
Prose that goes on
over two lines. Then ends.
价格是￥12。日期为2024年。
Цена 5 руб.
…
[…]
<div>
1,000 and 5 000 and 12:30
"Quoted Name" is here.
"""
LINES = st.sampled_from([*SOME_LINES.split("\n"), "a" * 300, "word " * 90])


@settings(max_examples=150)
@given(st.lists(LINES, min_size=1, max_size=30), st.integers(4, 120), st.booleans())
def test_any_text(lines: Sequence[str], budget: int, is_tool: bool) -> None:
    """Any text comes within any budget that holds its protected lines, verified, and stays at itself."""
    text = "\n".join(lines)
    kind: ContentType = "tool_result" if is_tool else "generic"
    try:
        made = compress(text, kind=kind, budget_tokens=budget)
    except LimitError:
        return
    assert count_tokens(made.text) <= budget
    assert [part for part in kept_texts(made.text) if part not in text] == []
    twice = compress(text, kind=kind, budget_tokens=2 * budget)
    assert [part for part in kept_texts(made.text) if part not in twice.text] == []


HUGE = {
    "a fence of 50,000 words": lambda r: (
        "```\n" + "\n".join(" ".join(r.choices(WORDS, k=8)) for _ in range(6250))
    ),
    "a fence of one line": lambda r: "```\n" + " ".join(r.choices(WORDS, k=50_000)) + "\n```\n",
    "a line of 200 kB": lambda r: " ".join(r.choices(WORDS, k=40_000))[:200_000],
    "a word of 200 kB": lambda r: "x" * 200_000,
    "200 kB of dots": lambda r: "." * 200_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_inputs(name: str) -> None:
    """Huge inputs come within budget too."""
    text = HUGE[name](random.Random(1))
    assert count_tokens(small(text, 0.1)) <= 0.1 * count_tokens(text)


def test_error_messages_stay() -> None:
    """Every distinct error message stays whole, once; what is refused says what it needs."""
    log = "\n".join(f"step {n} is done, nothing to see" for n in range(200))
    text = f"{log}\nValueError: budget must be positive, got -3\n{log}\nERROR disk full on /dev/sda1\n{log}\n"
    made = small(text, 0.1, kind="tool_result")
    assert "ValueError: budget must be positive, got -3\n" in made
    assert "ERROR disk full on /dev/sda1\n" in made
    with pytest.raises(
        LimitError, match=r"needs \d+ tokens, \d+ more than the budget of 10 .*2 × error message"
    ):
        compress(text, kind="tool_result", budget_tokens=10)


def test_prices_and_urls_go_first() -> None:
    """Every distinct price and URL survives when there is room for them, whatever stands around them."""
    talk = "There is much to say about laptops and their keys and their fans. "
    facts = [
        f"The model {name} costs ${n}99.00, see https://{name}.example/buy."
        for n, name in enumerate("abcdef", 1)
    ]
    text = "\n\n".join(talk * 8 + fact for fact in facts)
    made = small(text, 0.25)
    assert all(f"${n}99.00" in made for n in range(1, 7))
    assert all(f"https://{name}.example/buy" in made for name in "abcdef")


def test_query_decides() -> None:
    """With a query, what answers it is kept."""
    text = "\n\n".join(
        f"Animal {name} lives in {place}. It eats well."
        for name, place in zip(
            "abcdefgh", ["Peru", "Chad", "Laos", "Cuba", "Mali", "Oman", "Togo", "Fiji"], strict=True
        )
    )
    assert "Laos" in small(text, 0.25, query="Where does animal c live?")


def test_keep_patterns() -> None:
    """What --keep names stays."""
    text = "One thing. " * 50 + "The secret is 42. " + "Another thing. " * 50
    made = compress(text, kind="generic", budget_tokens=40, keep=compile_keep([r"secret\b"]))
    assert "The secret is 42." in made.text


def test_page_stays_json() -> None:
    """A page stays valid JSON; zones that are trusted stay, doubtful ones and navigation go first."""
    made = json.loads(small(json.dumps(PAGE, indent=2), 0.25, kind="page_doc"))
    assert made["zones"][0] == PAGE["zones"][0]
    assert "banner" not in json.dumps(made)
    assert "Home" not in json.dumps(made)


def test_table_rows_keep_their_cells() -> None:
    """Rows stay whole below their head; what was dropped of a table is a row of as many cells."""
    rows = "\n".join(f"| model {n} | {n * 7} GB | red |" for n in range(80))
    made = small(f"# T\n\n| name | memory | colour |\n|---|---|---|\n{rows}\n\nEnd.\n", 0.25)
    lines = [line for line in made.split("\n") if line.startswith("|")]
    assert lines[:2] == ["| name | memory | colour |", "|---|---|---|"]
    assert all(line.count("|") == 4 for line in lines)


def test_repeats_go_first() -> None:
    """A sentence that was said before goes before one that was not."""
    text = "The fans are loud at night. " * 6 + "The screen is matte and bright. The fans are loud at night."
    assert "matte" in small(text, 0.5)
    assert small(text, 0.5).count("fans") < 4


def test_model_decides_without_a_query() -> None:
    """The model's surprise decides where words alone do not, and is not asked within budget."""
    asked: list[Sequence[UnitText]] = []

    def surprise(units: Sequence[UnitText]) -> list[float]:
        asked.append(units)
        return [1.0 if "seven" in unit.text else 0.0 for unit in units]

    text = " ".join(
        f"It was {word} then, as all of them say." for word in ("one", "three", "six", "seven", "eight")
    )
    made = compress(text, kind="generic", budget_tokens=22, surprise=surprise)
    assert made.method == "model"
    assert "seven" in made.text
    compress(text, kind="generic", budget_tokens=1000, surprise=surprise)
    assert len(asked) == 1


@pytest.mark.parametrize("kind", ["generic", "page_doc"])
@pytest.mark.parametrize("value", ["NaN", "-Infinity", "Infinity", "1e999", '"high"', "[]", "-3", '""'])
def test_values_that_are_no_numbers(value: str, kind: ContentType) -> None:
    """JSON as Python writes it, and a confidence that is none, are cut like any other."""
    page = {"zone": "price", "confidence": "@", "items": ["It costs $697. " + "It is blue. " * 30]}
    source = json.dumps({"zones": [page, page]}).replace('"@"', value)
    made = compress(source, kind=kind, budget_tokens=60)
    assert "$697" in made.text
    json.loads(made.text)


def test_a_heading_named_confidence() -> None:
    """A page written in Markdown may have a heading that says "confidence"."""
    source = "# confidence\n\n" + "Confidence grows. It costs $697. " * 40
    assert count_tokens(compress(source, kind="page_doc", budget_tokens=60).text) <= 60
