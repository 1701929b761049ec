"""What follows on what was said: whole turns of the models that come with it, one after another."""

from pathlib import Path

import pytest

from bench.asking import asker, make_store
from panda.models.layers import Layers
from tests.scripted_turns import layers as layers

PRINTERS = (
    "# Printers\n\n- Kopierladen Nord: 38 € per copy, two days\n- Druckhaus Weber: 44 € per copy, one day\n"
    "- Buchbinderei Falk: 71 € per copy, a week\n"
)


def test_a_line_that_is_pointed_at(layers: Layers, tmp_path: Path) -> None:
    """A question by the place of a line that the last reply showed is answered with that line."""
    make_store(tmp_path, {"printing.md": PRINTERS})
    ask = asker(layers, tmp_path)
    ask("which printers did i write down?", "thesis")
    assert ask("what does the third charge", "thesis").text.startswith("Buchbinderei Falk: 71 €")


@pytest.mark.parametrize(
    "told",
    [
        "not Will after all, he's away himself, his sister Anke waters it",
        "my bike hasn’t got a dynamo any more, so it must be one with USB, and I won't spend more than 30 €",
        "the people from Lindenallee wrote, their viewing is now on Wednesday at 19:00",
        "Mark, our bookkeeper, has a new number: 0176 220 9914",
        "the lab just called, the samples will be another two weeks late, so 4 December",
    ],
)
def test_what_is_told_is_kept_whole(told: str, layers: Layers, tmp_path: Path) -> None:
    """What clearly tells is no wish to forget, and no part of it that looks like a question loses it."""
    make_store(tmp_path, {})
    assert asker(layers, tmp_path)(told, "talk").kept == (told,)


def test_a_correction_forgets_nothing(layers: Layers, tmp_path: Path) -> None:
    """Who says that something is otherwise is not asked to have wished it forgotten."""
    make_store(tmp_path, {})
    ask = asker(layers, tmp_path)
    assert ask("I told Will that he is to water the raised bed in August.", "garden").kept
    ask("not Will after all, he's away himself, his sister Anke waters it", "garden")
    assert "Anke" in ask("does his sister Anke water it?", "garden").text


def test_a_turn_that_forgot_is_no_evidence(layers: Layers, tmp_path: Path) -> None:
    """What a wish to forget was answered is quoted by no later turn."""
    make_store(tmp_path, {})
    ask = asker(layers, tmp_path)
    ask("My favorite hamster is Syrian.", "pets")
    assert (
        ask("please forget my favorite hamster", "pets").text
        == "Forgotten: favorite hamster (told in turn 1)."
    )
    later = ask("what is my favorite hamster", "pets")
    assert (later.answered, "Forgotten" in later.text) == (False, False)
