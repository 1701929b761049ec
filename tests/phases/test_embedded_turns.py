"""What follows on what was said: whole turns of the models that come with panda, one after another."""

from pathlib import Path

import pytest

from tests.api import Panda
from tests.store_files import write_note

PRINTERS = (
    "# Printers\n\n- Kopierladen Nord: 38 € per copy, two days\n- Druckhaus Weber: 44 € per copy, one day\n"
    "- Buchbinderei Falk: 71 € per copy, a week\n"
)
SISTER = "not Will after all, he's away himself, his sister Anke waters it"


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """An empty store."""
    panda = Panda(tmp_path / "project")
    assert panda("init").code == 0
    return panda


def ask(panda: Panda, query: str) -> str:
    """The answer to one query of a session, without its sources."""
    return panda.turn(query, "--session", "talk").response.partition("\n\nSources:")[0]


def test_a_line_that_is_pointed_at(panda: Panda) -> None:
    """A question by the place of a line that the last reply showed is answered with that line."""
    write_note(panda.user_directory, "printing.md", PRINTERS)
    ask(panda, "which printers did i write down?")
    assert ask(panda, "what does the third charge").startswith("Buchbinderei Falk: 71 €")


@pytest.mark.parametrize(
    "told",
    [
        SISTER,
        "my bike hasn’t got a dynamo any more, so it must be one with USB, and I won't spend more than 30 €",
        "the people from Lindenallee wrote, their viewing is now on Wednesday at 19:00",
        "Mark, our bookkeeper, has a new number: 0176 220 9914",
        "the lab just called, the samples will be another two weeks late, so 4 December",
    ],
)
def test_what_is_told_is_kept_whole(panda: Panda, told: str) -> None:
    """What clearly tells is no wish to forget, and no part of it that looks like a question loses it."""
    assert [entry["text"] for entry in panda.turn(told).data["noted"]] == [told]


def test_a_correction_forgets_nothing(panda: Panda) -> None:
    """Who says that something is otherwise is not asked to have wished it forgotten."""
    ask(panda, "I told Will that he is to water the raised bed in August.")
    ask(panda, SISTER)
    assert "Anke" in ask(panda, "does his sister Anke water it?")


def test_a_turn_that_forgot_is_no_evidence(panda: Panda) -> None:
    """What a wish to forget was answered is quoted by no later turn."""
    ask(panda, "My favorite hamster is Syrian.")
    forgotten = ask(panda, "please forget my favorite hamster")
    assert forgotten == "Forgotten: favorite hamster (told in turn 1)."
    later = panda.turn("what is my favorite hamster", "--session", "talk")
    assert (later.metadata["answered"], "Forgotten" in later.response) == (False, False)
