"""Typographic apostrophes, quotation marks, wide forms and blanks are read as the plain ones."""

import pytest

from panda.language.conversation import wants_whole
from panda.language.items import tokens_of
from panda.language.reading import Clause
from panda.language.sentences import is_question
from panda.language.statements import find_statements
from panda.language.text_front import plain_signs
from panda.language.wording import describe_order, describe_wording, plain_mood

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
    assert describe_order(typed) == describe_order(plain)
    assert describe_wording(typed) == describe_wording(plain)
    assert plain_mood(typed) == plain_mood(plain)
    assert is_question(typed) == is_question(plain)
    assert wants_whole(typed) == wants_whole(plain)


@pytest.mark.parametrize(("typed", "plain"), [pair for pair in PAIRS if len(pair[0].split()) > 1][:3])
def test_words_are_the_same(typed: str, plain: str) -> None:
    """So do its words."""
    assert [one.low for one in tokens_of(typed)] == [one.low for one in tokens_of(plain)]


def test_statements_stay_as_written() -> None:
    """What is kept is quoted as it was typed."""
    typed = "I’m allergic to peanuts"
    (found,) = find_statements(typed, [Clause(typed, "tells")])
    assert (found.text, found.key, found.value) == (typed, "allergic_to", ("peanuts",))


def test_numbers_keep_their_value() -> None:
    """Fractions and footnote marks become no other digits."""
    assert plain_signs("½ cup, $697¹, 3½") == "½ cup, $697¹, 3½"
