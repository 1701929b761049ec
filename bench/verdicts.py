"""
What is told apart of faithful and unfaithful sentences: `python -m bench.verdicts [--seed N]`.

Draws a hundred pairs of each kind, a faithful and an unfaithful sentence about the same lines: negation,
direction, swapped subject, sum, difference, average; the last three with what their writer computed. Prints
how many faithful ones pass and how many others are refused by code alone, with a judge that is right, and
with one that always agrees.
"""

import argparse
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from panda.documents.evidence import check_computed, check_evidence

PAIRS = 100
_NAMES = ("Anna", "Ben", "Clara", "David", "Elena", "Farid", "Greta", "Hanna", "Ivan", "Jonas", "Karla")
_THINGS = ("pump", "boiler", "heater", "fridge", "dryer", "printer", "mower", "scooter", "kettle")


class Sentence(NamedTuple):
    """A sentence about lines, and what its writer computed for it."""

    text: str
    lines: list[str]
    computed: tuple[tuple[str, str], ...] = ()


Pair = tuple[Sentence, Sentence]


def _negation(draw: random.Random) -> Pair:
    thing, days = draw.choice(_THINGS), draw.randint(3, 90)
    lines = [f"The {thing} has been off for {days} days.", f"Its warranty covers the {thing}."]
    told = f"The {thing} has been off for {days} days"
    return Sentence(f"{told}.", lines), Sentence(f"{told.replace('has been', 'has not been')}.", lines)


def _direction(draw: random.Random) -> Pair:
    thing, low, more = draw.choice(_THINGS), draw.randint(20, 90), draw.randint(3, 40)
    lines = [f"The price of the {thing} rose from ${low} to ${low + more}."]
    true = f"From ${low} to ${low + more} the {thing} got dearer."
    return Sentence(true, lines), Sentence(true.replace("dearer", "cheaper"), lines)


def _subject(draw: random.Random) -> Pair:
    first, second = draw.sample(_NAMES, 2)
    one, other = draw.sample(range(20, 90), 2)
    lines = [f"{first} paid ${one}.", f"{second} paid ${other}."]
    true = f"{first} paid ${one}, {second} ${other}."
    return Sentence(true, lines), Sentence(f"{first} paid ${other}, {second} ${one}.", lines)


def _figure(draw: random.Random, way: Callable[[int, int], int], expression: str, told: str) -> Pair:
    first, second = draw.sample(_NAMES, 2)
    high, low = sorted(draw.sample(range(20, 400, 2), 2), reverse=True)
    lines = [f"{first} paid ${high}.", f"{second} paid ${low}."]
    computed = expression.format(high=high, low=low)
    right, wrong = f"${way(high, low)}", f"${way(high, low) + draw.choice((-3, 7, 11))}"

    def sentence(value: str) -> Sentence:
        return Sentence(told.format(first=first, second=second, value=value), lines, ((value, computed),))

    return sentence(right), sentence(wrong)


KINDS: dict[str, Callable[[random.Random], Pair]] = {
    "negation": _negation,
    "direction": _direction,
    "subject": _subject,
    "sum": lambda d: _figure(d, lambda a, b: a + b, "${high} + ${low}", "{first} and {second} paid {value}."),
    "difference": lambda d: _figure(
        d, lambda a, b: a - b, "${high} − ${low}", "{first} paid {value} more than {second}."
    ),
    "average": lambda d: _figure(
        d, lambda a, b: (a + b) // 2, "mean(${high}, ${low})", "{first} and {second} paid {value} on average."
    ),
}


def passes(sentence: Sentence) -> bool:
    """Whether code lets a sentence through."""
    if any(check_computed(*figure, sentence.lines, {}) for figure in sentence.computed):
        return False
    return not check_evidence(sentence.text, [*sentence.lines, *(value for value, _ in sentence.computed)])


def measure(seed: int) -> Iterator[tuple[str, int, int]]:
    """Each kind with how many faithful ones pass, and how many unfaithful ones code refuses."""
    draw = random.Random(seed)
    for kind, make in KINDS.items():
        pairs = [make(draw) for _ in range(PAIRS)]
        faithful = sum(passes(true) for true, _ in pairs)
        refused = sum(not passes(false) for _, false in pairs)
        yield kind, faithful, refused


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=33, help="which pairs are drawn")
    print(f"{'':12}faithful pass   unfaithful refused: by code   right judge   one that agrees")  # noqa: T201
    for kind, faithful, refused in measure(parser.parse_args().seed):
        print(f"{kind:12}{faithful:>8}{refused:>32}{PAIRS:>14}{refused:>16}")  # noqa: T201


if __name__ == "__main__":
    main()
