"""Which turns of the store a message names, and what only looks like one."""

import pytest

from panda.messages.turn_numbers import named_turns

NAMED = {
    "What did turn 811 say?": (811,),
    "Turn 811?": (811,),
    "and turn 5?": (5,),
    "show me turn 5": (5,),
    "Open turn 811": (811,),
    "Repeat turn 9, please.": (9,),
    "Turn #7": (7,),
    "what about turn number 8": (8,),
    "turn_000811": (811,),
    "turn 5's price": (5,),
    "was turn 811 right?": (811,),
    "why did turn 12 halt?": (12,),
    "go back to turn 12": (12,),
    "What turn 811 says": (811,),
    "turn 811 says $697, is that right?": (811,),
    "Turn 811: what did it cost?": (811,),
    "What did you tell me in turn 811 about the ASUS?": (811,),
    "In turn 3 of this conversation you named a laptop": (3,),
    "turns 809 and 811": (809, 811),
    "turns 3, 5 and 7": (3, 5, 7),
    "compare turn 3 with turn 5": (3, 5),
    "compare turn 3 to turn 5": (3, 5),
    "Does turn 5 contradict turn 3?": (5, 3),
    "How was turn 40 different from turn 41?": (40, 41),
    "Summarise turns 3-5": (3, 4, 5),
    "summarise turns 3 to 5": (3, 4, 5),
    "from turn 3 to turn 5": (3, 4, 5),
    "turn 811 and 3 laptops": (811,),
}
NOT_NAMED = (
    "turn 90 degrees left",
    "then turn 180 degrees",
    "and turn 45 degrees",
    "please turn 90° right",
    "Turn 4 left",
    "turn 1.5 times",
    "turn 10 pages into a PDF",
    "how do I turn 10 photos into a video",
    "How to turn 5 lines into 3?",
    "Turn 3 screws clockwise",
    "Turn 100 euros into dollars",
    "turn 20 USD into EUR",
    "turn 100 into 50",
    "turn 2 km after the bridge",
    "the road turns 3 times",
    "it turns 90 to 180 degrees",
    "I turn 40 next week",
    "after I turn 40, what changes?",
    "What to do when you turn 65",
    "When does Dan turn 40?",
    "Does he turn 18 before June?",
    "my son will turn 18 in May",
    "when is Ada going to turn 40",
    "She turns 30 in May",
    "who turns 50 and 60 this year?",
    "Is it my turn 3 times a week?",
    "what happens in turn 3 of Catan?",
)


@pytest.mark.parametrize("query", [*NAMED, *NOT_NAMED])
def test_named_turns(query: str) -> None:
    """A turn is named where "turn" is a noun of the conversation; in doubt it is not."""
    found = tuple(number for numbers in named_turns(query).values() for number in numbers)
    assert found == NAMED.get(query, ())


def test_a_range_has_an_end() -> None:
    """More turns than can be shown are told as such, however wide the range is."""
    assert [len(numbers) for numbers in named_turns("turns 1 to 999999999").values()] == [51]
