"""The HTML page of a batch, as `panda batch --html` writes it."""

import re
from pathlib import Path

import pytest

from tests.api import PRICE_QUESTION, ScriptedPanda
from tests.batches.commands import begin_batch, item
from tests.view.browser import CHROMIUM, browser

ITEM = "a-rather-long-name-of-an-item-in-the-file-of-queries"


@pytest.fixture
def page(ann: ScriptedPanda) -> Path:
    """The page of a batch whose only item lacks what it was to hold."""
    wanted = {"contains": "words that no answer holds, " * 9}
    begin_batch(ann, [item(ITEM, expect=wanted)], "--html", "page.html")
    return ann.home / "page.html"


def test_sources_stand_on_lines_of_their_own(page: Path) -> None:
    """An answer keeps its lines: what it says, the head of its sources, and each of these."""
    (cell,) = re.findall(r'<td class="words">(.*?)<ul', page.read_text(encoding="utf-8"), re.DOTALL)
    question, answer, head, *sources = re.split(r"<br\s*/?>", cell)
    assert PRICE_QUESTION in question
    assert "$697" in answer
    assert head == "Sources:"
    assert len(sources) == 1
    assert sources[0].startswith("- [1] visit:visit_loq")


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
@pytest.mark.parametrize("width", [390, 1280])
def test_no_word_is_broken_apart(page: Path, width: int) -> None:
    """Names and heads stand on one line each, on a phone too; only answers and findings go over several."""
    with browser() as looking:
        looking.look("light", width)
        looking.open(page.as_uri())
        lines = looking.ask(
            "[...document.querySelectorAll('th, td:not(.words)')].map(cell => {"
            "const words = document.createRange(); words.selectNodeContents(cell);"
            "return [cell.textContent.trim(), new Set([...words.getClientRects()].map(r => r.top)).size] })"
        )
    words = {text: count for text, count in lines if text}
    assert words[ITEM] <= len(ITEM.split("-"))
    assert [(text, count) for text, count in words.items() if count > len(re.split(r"[\s-]+", text))] == []
