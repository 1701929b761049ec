"""The HTML page of a batch, as `panda batch --html` writes it."""

import re
from pathlib import Path

import pytest

from panda.runs.ledger import open_run
from panda.runs.queries import Expectation, Query
from panda.runs.reports import write_batch_page
from panda.store.layout import Layout
from tests.batches.scripted import QUESTION, run_batch
from tests.scripted_turns import laptop_store
from tests.view.browser import CHROMIUM, browser

ITEM = "a-rather-long-name-of-an-item-in-the-file-of-queries"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """The page of a batch whose only item lacks what it was to hold."""
    layout = laptop_store(tmp_path / "store")
    wanted = Expectation(contains=("words that no answer holds, " * 9,))
    found = run_batch(layout.root, [Query(ITEM, QUESTION, expect=wanted)], jobs=1)
    run = next(layout.runs.iterdir()).name
    path = tmp_path / "page.html"
    write_batch_page(path, open_run(Layout(layout.root), run), found.lines, found.left, found.texts)
    return path


def test_sources_stand_on_lines_of_their_own(page: Path) -> None:
    """An answer keeps its lines: what it says, the head of its sources, and each of these."""
    (cell,) = re.findall(r'<td class="words">(.*?)<ul', page.read_text(encoding="utf-8"), re.DOTALL)
    question, answer, head, *sources = re.split(r"<br\s*/?>", cell)
    assert QUESTION in question
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
