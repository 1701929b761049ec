"""The evidence on the page of a turn: notes that have changed since, and claims that were refused."""

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from panda.store.layout import Layout
from tests.builders import NOW
from tests.script import Script, pick
from tests.scripted_turns import USER, Ran, laptop_store, run_turn
from tests.view.sites import Html, client_of, page_words

NOTE = "knowledge:tea.md"
CHOSEN: dict[str, Any] = {"retrieval": {"relevant": [NOTE]}, "synthesis": {"lines": pick("tin")}}
QUESTION = "How much Assam is in the tin?"
OTHERS = "\n\n".join(f"The kettle number {n} is old." for n in range(3))


def noted(tmp_path: Path, text: str) -> Layout:
    """The laptop store with a note about tea, older than any turn."""
    layout = laptop_store(tmp_path)
    write_note(layout, text, NOW - timedelta(days=3))
    return layout


def write_note(layout: Layout, text: str, at: datetime) -> None:
    path = layout.of(USER).knowledge / "tea.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"# Tea\n\n{text}\n\n{OTHERS}\n", encoding="utf-8")
    os.utime(path, (at.timestamp(), at.timestamp()))


def answered(layout: Layout, text: str) -> Ran:
    """A turn whose answer is one item that cites the note."""
    item = {"items": [{"text": text, "node_ids": [NOTE]}]}
    return run_turn(layout, QUESTION, Script(**CHOSEN, answer=item))


def page_of(layout: Layout, turn: int = 3) -> str:
    return client_of(layout.root, USER).get(f"/turns/{USER}/{turn}").text


@pytest.mark.parametrize("words", ["The tin holds 250 g of Assam.", "In the tin are 250 g of Assam."])
def test_a_note_that_changed_is_shown_as_the_turn_read_it(tmp_path: Path, words: str) -> None:
    """What a note says now is no evidence of then: the lines that the turn read are shown, as such."""
    layout = noted(tmp_path, "The tin holds 250 g of Assam.")
    ran = answered(layout, words)
    assert ran.metadata.status == "approved", ran.error
    before = page_of(layout)
    assert "changed since" not in before
    write_note(layout, "The tin holds 90 g of Assam.", NOW + timedelta(days=1))
    page = page_of(layout)
    assert "this note has changed since: these lines are those that the turn read" in page_words(page)
    assert "90 g" not in page
    assert any("250 g" in quoted for _, quoted in Html(page).marks)


def test_words_that_still_stand_in_a_changed_note(tmp_path: Path) -> None:
    """Where the quoted words are still there, they stay marked, and the change is told all the same."""
    layout = noted(tmp_path, "The tin holds 250 g of Assam.")
    answered(layout, "The tin holds 250 g of Assam.")
    write_note(layout, "The shop has closed.\n\nThe tin holds 250 g of Assam.", NOW + timedelta(days=1))
    page = page_of(layout)
    assert "this note has changed since; these words still stand in it" in page_words(page)
    assert "The shop has closed." in page
    assert ("e1-1", "The tin holds 250 g of Assam.") in Html(page).marks


def test_what_was_not_kept_is_not_made_up(tmp_path: Path) -> None:
    """Of a turn that has lost what it read, a changed note shows no line at all."""
    layout = noted(tmp_path, "The tin holds 250 g of Assam.")
    ran = answered(layout, "The tin holds 250 g of Assam.")
    (ran.folder.paths / "gathered_context.json").unlink()
    write_note(layout, "The tin holds 90 g of Assam.", NOW + timedelta(days=1))
    page = page_of(layout)
    assert "this note has changed since, and what it said then is not kept" in page_words(page)
    assert "90 g" not in page
    assert Html(page).marks == []


def test_another_note_that_changed_is_no_matter(tmp_path: Path) -> None:
    """A note that is as it was counts as unchanged, also if it was only touched, or others have changed."""
    layout = noted(tmp_path, "The tin holds 250 g of Assam.")
    answered(layout, "The tin holds 250 g of Assam.")
    write_note(layout, "The tin holds 250 g of Assam.", NOW + timedelta(days=1))
    for number in range(70):  # more than there are digests
        (layout.of(USER).knowledge / f"other-{number}.md").write_text(
            "# Other\n\nNothing.\n", encoding="utf-8"
        )
    os.utime(layout.of(USER).knowledge / "tea.md", (NOW.timestamp() - 9, NOW.timestamp() - 9))
    assert "changed since" not in page_of(layout)


def test_an_approved_answer_carries_no_refusal(tmp_path: Path) -> None:
    """Why an earlier attempt was sent back does not stand below the answer that was approved."""
    layout = noted(tmp_path, "The tin holds 250 g of Assam.")
    answers = [f"The tin holds {number} g of Assam." for number in (400, 250)]
    script = Script(
        **CHOSEN,
        answer=[{"items": [{"text": text, "node_ids": [NOTE]}]} for text in answers],
    )
    ran = run_turn(layout, QUESTION, script)
    assert (ran.metadata.status, "400 g" in str(ran.metadata.reason)) == ("approved", True)
    answer = page_of(layout).partition('id="evidence"')[0]
    assert "250 g" in answer
    assert "400 g" not in answer


def test_a_refused_claim_is_marked_and_nothing_supports_it(tmp_path: Path) -> None:
    """
    The page of a refused answer marks the wrong number itself; the line that comes near is neither marked nor
    told as believed, and §5 and §6 lead to where they stand on the page.
    """
    layout = noted(tmp_path, "The tin holds 250 g of Assam.")
    ran = answered(layout, "The tin of Assam holds 400 g of tea.")
    assert ran.metadata.status == "failed", ran.error
    page = page_of(layout)
    html = Html(page)
    assert {text for _, text in html.marks} == {"400 g"}
    assert [figure for figure, _ in html.marks] == [""] * len(html.marks)
    assert len(html.marks) == 2  # in the draft, and where it is set against its source
    assert "The tin holds 250 g of Assam." in html.text_in["e1-1"]
    assert "near these lines, which do not say it" in page_words(page)
    assert not any(word in html.text_in["e1-1"] for word in ("high", "medium", "0."))
    for place in ("draft", "validation"):
        assert f'<a href="#{place}">§' in page
        assert place in html.text_in


def test_a_draft_that_only_did_not_answer_keeps_its_evidence(tmp_path: Path) -> None:
    """Where nothing was found wrong in a statement, its words stay marked in their source."""
    layout = noted(tmp_path, "The tin holds 250 g of Assam.")
    item = {"items": [{"text": "The tin holds 250 g of Assam.", "node_ids": [NOTE]}]}
    script = Script(**CHOSEN, answer=item, validator={"verdict": "FAIL", "reason": "Not it."})
    ran = run_turn(layout, QUESTION, script)
    assert ran.metadata.status == "failed", ran.error
    assert ("e1-1", "The tin holds 250 g of Assam.") in Html(page_of(layout)).marks
    assert json.loads((ran.folder.paths / "metadata.json").read_text())["reason"] == "Not it."
