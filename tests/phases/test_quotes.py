"""Quotes of notes whose lines, joined to one, would read like a part of the document or of the answer."""

import json
import re

import pytest
from markdown_it import MarkdownIt

from tests.api import ScriptedPanda, Turn
from tests.script import Script, loaded_lines, pick
from tests.store_files import write_note

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


def quote(ann: ScriptedPanda, note: str, text: str) -> Turn:
    """A turn that answers with a line of a note and with a line of another one."""
    write_note(ann.user_directory, "tea.md", f"# Kinds\n\n{note}\n")
    write_note(ann.user_directory, "other.md", "# More\n\n- Black tea is strong.\n")
    items = [
        {"text": text, "node_ids": ["knowledge:tea.md"]},
        {"text": "Black tea is strong.", "node_ids": ["knowledge:other.md"]},
    ]
    script = Script(
        retrieval={"relevant": pick("knowledge:")},
        synthesis={"lines": pick(text, "Black")},
        answer={"items": items},
    )
    turn = ann.turn("What of the tea?", "--session", "talk", script=script)
    assert turn.code == 0, turn.out
    return turn


@pytest.mark.parametrize("note", GLUED, ids=ascii)
def test_glued_lines_are_no_structure(ann: ScriptedPanda, note: str) -> None:
    """The quote is a paragraph of the answer with a mark and source of its own, and §2 is as it was made."""
    text = GLUED[note]
    turn = quote(ann, note, text)
    loaded = loaded_lines(turn.asked("synthesis")[0]).values()
    assert text in [re.sub(r"^(\d+\. )?Kinds: ", "", line) for line in loaded]
    tokens = MarkdownIt("commonmark").parse(turn.response)
    kinds = [token.type for token in tokens if token.nesting == 1 and token.level == 0]
    assert kinds == ["paragraph_open", "paragraph_open", "paragraph_open", "bullet_list_open"]
    assert sum(token.type == "list_item_open" for token in tokens) == 2
    session = json.loads((ann.user_directory / "sessions/talk/session.json").read_text(encoding="utf-8"))
    assert len(session["carry"]["recent_turns"][-1]["assistant"].split("\n\n")) == 2
    assert turn.sections == [0, 1, 2, 3, 5, 6]
    assert ann("validate", "3", "--json").data["problems"] == []


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_quotes_stay_as_they_are(ann: ScriptedPanda, text: str) -> None:
    """A quote that only resembles structure is told word for word."""
    assert quote(ann, text, text).response.startswith(f"{text} [1]\n")
