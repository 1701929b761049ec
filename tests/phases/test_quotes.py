"""Quotes of notes whose lines, joined to one, would read like a part of the document or of the answer."""

from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from panda.documents.context import ContextScan
from panda.documents.markdown import split_passages
from panda.documents.text import strip_citations
from panda.memory.gathered import read_gathered
from panda.memory.validation import judge_turn
from tests.script import Script, pick
from tests.scripted_turns import USER, laptop_store, run_turn

GLUED = {
    "1. ##\n   2\\. Tea": "## 2\\. Tea",
    "- ###\n  Constraints on tea": "### Constraints on tea",
    "- #\n  tea": "# tea",
    "- ```\n  yaml _meta: tea": "``` yaml _meta: tea",
    "- ~~~\n  tea": "~~~ tea",
    "- <!--\n  tea": "<!-- tea",
    "- <div>\n  tea": "<div> tea",
    "- =====\n  Guidance =====\n  User\n  query: tea": "===== Guidance ===== User query: tea",
    "- User\n  query: tea": "User query: tea",
    "- [1]\n  visit:visit_loq, tea": "[1] visit:visit_loq, tea",
    "- [1]\n  memory:budget, tea": "[1] memory:budget, tea",
    "* - [2]\n  turn:1, tea": "- [2] turn:1, tea",
    "- The tea costs $20\n  [2]": "The tea costs $20 [2]",
    "- The tea costs $20 [1]\n  [2]": "The tea costs $20 [1] [2]",
    "- Turn 7:\n  the tea is green": "Turn 7: the tea is green",
    "- \\\n  [1] tea [2]": "\\ [1] tea [2]",
    "- \\#\n  tea": "\\# tea",
}
HARMLESS = [
    "#1 is tea",
    "C# and tea",
    "<https://tea.example> sells tea",
    "a < b tea",
    "[tea] is tea",
    "Turn 7 tea",
]


@pytest.mark.parametrize("note", GLUED, ids=ascii)
def test_glued_lines_are_no_structure(tmp_path: Path, note: str) -> None:
    """
    The quote is a paragraph of the answer, its mark and the list of sources are its own, and §2 reads back as
    it was made.
    """
    text = GLUED[note]
    assert text in [passage.text for passage in split_passages(note)]
    layout = laptop_store(tmp_path)
    notes = layout.of(USER).knowledge
    notes.mkdir(parents=True)
    (notes / "tea.md").write_text(f"# Kinds\n\n{note}\n", encoding="utf-8")
    (notes / "other.md").write_text("# More\n\n- Black tea is strong.\n", encoding="utf-8")
    script = Script(
        retrieval={"relevant": pick("knowledge:")},
        synthesis={"lines": pick(text, "Black")},
        answer={
            "items": [
                {"text": text, "node_ids": ["knowledge:tea.md"]},
                {"text": "Black tea is strong.", "node_ids": ["knowledge:other.md"]},
            ]
        },
    )
    ran = run_turn(layout, "What of the tea?", answer=script)
    tokens = MarkdownIt("commonmark").parse(ran.response)
    kinds = [token.type for token in tokens if token.nesting == 1 and token.level == 0]
    assert kinds == ["paragraph_open", "paragraph_open", "paragraph_open", "bullet_list_open"]
    assert sum(token.type == "list_item_open" for token in tokens) == 2
    assert len(strip_citations(ran.response).split("\n\n")) == 2
    section = ran.folder.read_context().section(2)
    assert section is not None
    (shown,) = (part for part in read_gathered(section) if part.section.title.startswith("Forever"))
    first = shown.section.items[0]
    assert (first.text.removeprefix("Kinds: "), first.node_ids) == (text, ("knowledge:tea.md",))
    assert judge_turn(ran.folder.paths.directory) == []
    assert ran.problems == []
    document = (ran.folder.paths / "context.md").read_text(encoding="utf-8")
    assert ContextScan(document, "context.md").problems == []


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_quotes_stay_as_they_are(tmp_path: Path, text: str) -> None:
    """A quote that only resembles structure is told word for word."""
    layout = laptop_store(tmp_path)
    notes = layout.of(USER).knowledge
    notes.mkdir(parents=True)
    (notes / "tea.md").write_text(f"# Kinds\n\n{text}\n", encoding="utf-8")
    answer = {"items": [{"text": text, "node_ids": ["knowledge:tea.md"]}]}
    script = Script(
        retrieval={"relevant": pick("knowledge:")}, synthesis={"lines": pick(text)}, answer=answer
    )
    ran = run_turn(layout, "What of the tea?", answer=script)
    assert ran.response.startswith(f"{text} [1]\n")
