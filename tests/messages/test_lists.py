"""Which questions want the whole of a list."""

import pytest

from panda.messages.questions import wants_whole

WHOLE = [
    "Which vaccines did the puppy get?",
    "what are my passwords for the museum sites",
    "What are the steps for descaling the kettle?",
    "and which of the tenants have paid?",
    "list the spare parts in the shed",
    "name every ferry from Kiel",
    "everything that goes into the pesto",
    "how do I bleed the brakes",
    "How to prune the fig tree",
    "what do we do when the alarm goes off?",
    "what is on my reading list",
    "who signed up, all of them please",
    "what people are coming on Sunday",
]
ONE = [
    "Which vaccine did the puppy get last?",
    "which glass is broken?",
    "what makes the noise in the attic",
    "which paint sticks on glass?",
    "What is the code of the bike shed?",
    "how long do the rolls bake?",
    "how much is the yearly fee",
    "do all the lamps work?",
    "is everything paid?",
    "what time is it all right to call Grandma?",
    "when does Anna's bus leave every day?",
    "nothing at all, thanks",
    "what is step 4?",
]


@pytest.mark.parametrize("query", WHOLE)
def test_whole_lists(query: str) -> None:
    """All of a kind, all steps, a list by its name."""
    assert wants_whole(query)


@pytest.mark.parametrize("query", ONE)
def test_one_of_a_list(query: str) -> None:
    """One thing, a yes or no, an "all" that is none."""
    assert not wants_whole(query)
