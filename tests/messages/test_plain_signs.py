"""Typographic apostrophes, quotation marks, wide forms and blanks are read as the plain ones."""

import pytest

from panda.language.text import plain_signs
from panda.messages.clauses import find_statements
from panda.messages.mentions import Thing, find_exclusions, find_mentions
from panda.messages.questions import is_question, wants_whole
from panda.messages.wording import plain_mood
from panda.models.text_classifier import find_runs

PAIRS = [
    ("I’m allergic to peanuts", "I'm allergic to peanuts"),
    ("don’t drop the HP", "don't drop the HP"),
    ("what’s step 3?", "what's step 3?"),
    ("Which\u00a0hotels have a pool", "Which hotels have a pool"),
    ("Ｉ live in Bern", "I live in Bern"),
]


@pytest.mark.parametrize(("typed", "plain"), PAIRS)
def test_signs_mean_the_same(typed: str, plain: str) -> None:
    """A message means the same in whatever signs it is typed; each keeps its place."""
    assert plain_signs(typed) == plain
    assert find_runs(typed) == find_runs(plain)
    assert plain_mood(typed) == plain_mood(plain)
    assert is_question(typed) == is_question(plain)
    assert wants_whole(typed) == wants_whole(plain)


def test_what_is_put_aside_is_the_same() -> None:
    """So does what it decides on things."""
    things = [Thing("a", "HP Victus"), Thing("b", "Dell’s XPS")]
    for typed in ("don’t drop the HP", "don't drop the HP"):
        found = find_exclusions(typed, things, find_mentions(typed, things))
        assert [(one.action, one.ref) for one in found] == [("keep", "a")]


def test_statements_stay_as_written() -> None:
    """What is kept is quoted as it was typed."""
    typed = "I’m allergic to peanuts"
    (found,) = find_statements([typed])
    assert (found.text, found.key, found.value) == (typed, "allergic_to", ("peanuts",))


def test_numbers_keep_their_value() -> None:
    """Fractions and footnote marks become no other digits."""
    assert plain_signs("½ cup, $697¹, 3½") == "½ cup, $697¹, 3½"
