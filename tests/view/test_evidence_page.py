"""The evidence on the page of a turn: notes that have changed since, and claims that were refused."""

import os
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.api import ScriptedPanda, Turn, open_pages
from tests.script import Script, pick
from tests.store_files import NOW, write_note
from tests.view.sites import Html, page_words

NOTE = "knowledge:tea.md"
CHOSEN: dict[str, Any] = {"retrieval": {"relevant": [NOTE]}, "synthesis": {"lines": pick("tin")}}
ASSAM = "The tin holds 250 g of Assam."
OTHERS = "\n\n".join(f"The kettle number {n} is old." for n in range(3))


def note(panda: ScriptedPanda, text: str, at: datetime) -> None:
    """Write the note about tea, as of a time."""
    path = write_note(panda.user_directory, "tea.md", f"# Tea\n\n{text}\n\n{OTHERS}\n")
    os.utime(path, (at.timestamp(), at.timestamp()))


def answer(panda: ScriptedPanda, *texts: str, **replies: Any) -> Turn:
    """A turn whose answers are one item each that cites the note, which is older."""
    note(panda, ASSAM, NOW - timedelta(days=3))
    answers = [{"items": [{"text": text, "node_ids": [NOTE]}]} for text in texts]
    return panda.turn("How much Assam is in the tin?", script=Script(**CHOSEN, answer=answers, **replies))


def page_of(panda: ScriptedPanda) -> str:
    """The page of the turn."""
    return open_pages(panda).get("/turns/ann/3").text


@pytest.mark.parametrize("words", [ASSAM, "In the tin are 250 g of Assam."])
def test_a_note_that_changed_is_shown_as_the_turn_read_it(ann: ScriptedPanda, words: str) -> None:
    """What a note says now is no evidence of then: the lines that the turn read are shown, as such."""
    assert answer(ann, words).status == "approved"
    assert "changed since" not in page_of(ann)
    note(ann, "The tin holds 90 g of Assam.", NOW + timedelta(days=1))
    page = page_of(ann)
    assert "this note has changed since: these lines are those that the turn read" in page_words(page)
    assert "90 g" not in page
    assert any("250 g" in quoted for _, quoted in Html(page).marks)


def test_words_that_still_stand_in_a_changed_note(ann: ScriptedPanda) -> None:
    """Where the quoted words are still there, they stay marked, and the change is told all the same."""
    answer(ann, ASSAM)
    note(ann, f"The shop has closed.\n\n{ASSAM}", NOW + timedelta(days=1))
    page = page_of(ann)
    assert "this note has changed since; these words still stand in it" in page_words(page)
    assert "The shop has closed." in page
    assert ("e1-1", ASSAM) in Html(page).marks


def test_what_was_not_kept_is_not_made_up(ann: ScriptedPanda) -> None:
    """Of a turn that has lost what it read, a changed note shows no line at all."""
    (answer(ann, ASSAM).directory / "gathered_context.json").unlink()
    note(ann, "The tin holds 90 g of Assam.", NOW + timedelta(days=1))
    page = page_of(ann)
    assert "this note has changed since, and what it said then is not kept" in page_words(page)
    assert "90 g" not in page
    assert Html(page).marks == []


def test_another_note_that_changed_is_no_matter(ann: ScriptedPanda) -> None:
    """A note that is as it was counts as unchanged, also if it was only touched, or others have changed."""
    answer(ann, ASSAM)
    for number in range(70):  # more than there are digests
        write_note(ann.user_directory, f"other-{number}.md", "# Other\n\nNothing.\n")
    note(ann, ASSAM, NOW - timedelta(seconds=9))
    assert "changed since" not in page_of(ann)


def test_an_approved_answer_carries_no_refusal(ann: ScriptedPanda) -> None:
    """Why an earlier attempt was sent back does not stand below the answer that was approved."""
    turn = answer(ann, "The tin holds 400 g of Assam.", ASSAM)
    assert (turn.status, "400 g" in str(turn.metadata["reason"])) == ("approved", True)
    shown = page_of(ann).partition('id="evidence"')[0]
    assert "250 g" in shown
    assert "400 g" not in shown


def test_a_refused_claim_is_marked_and_nothing_supports_it(ann: ScriptedPanda) -> None:
    """
    The page of a refused answer marks the wrong number itself; the line that comes near is neither marked nor
    told as believed, and §5 and §6 lead to where they stand on the page.
    """
    assert answer(ann, "The tin of Assam holds 400 g of tea.").status == "failed"
    page = page_of(ann)
    html = Html(page)
    assert "not approved" in page_words(page)
    assert html.marks == [("", "400 g")] * 2  # in the draft, and where it is set against its source
    assert ASSAM in html.text_in["e1-1"]
    assert "near these lines, which do not say it" in page_words(page)
    assert not any(word in html.text_in["e1-1"] for word in ("high", "medium", "0."))
    for place in ("draft", "validation"):
        assert f'<a href="#{place}">§' in page
        assert place in html.text_in


def test_a_draft_that_only_did_not_answer_keeps_its_evidence(ann: ScriptedPanda) -> None:
    """The draft stands below what was given instead; its words, in which nothing was wrong, stay marked."""
    turn = answer(ann, ASSAM, validator={"verdict": "FAIL", "reason": "Not it."})
    assert (turn.status, turn.metadata["reason"]) == ("failed", "Not it.")
    page = page_of(ann)
    assert turn.response.splitlines()[0] in page_words(page)
    assert 'href="#e1-1"' in page
    assert ("e1-1", ASSAM) in Html(page).marks
