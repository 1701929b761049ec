"""
What is told apart of faithful and unfaithful sentences: `python -m bench.verdicts [--seed N]`.

Draws a hundred pairs of each kind, a faithful and an unfaithful sentence about the same lines: negation,
direction, swapped subject; with what their writer computed sum, difference, average, a number whose unit
another one has, a share of a list, a result of a result, number words of three languages; and what the
question limits, names or asks. Prints how many faithful ones pass and how many others are refused by code
alone, with a judge that is right, and with one that always agrees; then, of figures that nobody computed, how
many pass as they are and how many 1 to 5 % off.
"""

import argparse
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from panda.documents.evidence import Figure, check_evidence, check_figures

PAIRS = 100
DERIVED = 2_000
_NAMES = ("Anna", "Ben", "Clara", "David", "Elena", "Farid", "Greta", "Hanna", "Ivan", "Jonas", "Karla")
_THINGS = ("pump", "boiler", "heater", "fridge", "dryer", "printer", "mower", "scooter", "kettle")


@dataclass(frozen=True)
class Sentence:
    """A sentence about lines, what its writer computed for it, and the question that it answers."""

    text: str
    lines: list[str]
    computed: tuple[tuple[str, str], ...] = ()
    query: str = ""
    lists: dict[str, list[str]] = field(default_factory=dict)


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


def _bare(draw: random.Random) -> Pair:
    low, more = draw.randint(100, 900), draw.randint(20, 300)
    unit = draw.choice(("km", "kg", "l", "kWh", "°C"))
    lines = [f"It began with {low} {unit} in spring.", f"By autumn it stood at {low + more}."]

    def sentence(value: int) -> Sentence:
        text = f"It rose by {value} {unit}."
        return Sentence(text, lines, ((f"{value} {unit}", f"{low + more} − {low}"),))

    return sentence(more), sentence(more + draw.choice((-7, 4, 12)))


def _per_part(draw: random.Random) -> Pair:
    count, each = draw.randint(3, 9), draw.randint(12, 90)
    lines = [f"All of it cost {count * each} €."]
    listed = {"Visits": [f"day {number} of May" for number in range(1, count + 1)]}

    def sentence(divisor: int) -> Sentence:
        value = f"{round(count * each / divisor, 2):.2f} €"
        text = f"That is {value} per visit."
        return Sentence(text, lines, ((value, f"{count * each} € / {divisor}"),), lists=listed)

    return sentence(count), sentence(count + draw.choice((-1, 1, 2)))


def _chain(draw: random.Random) -> Pair:
    first, second = draw.sample(range(20, 400, 2), 2)
    lines = [f"The oak desk is ${first}.", f"The ash desk is ${second}."]
    total = first + second

    def sentence(half: int) -> Sentence:
        computed = ((f"${total}", f"${first} + ${second}"), (f"${half}", f"${total} / 2"))
        return Sentence(f"Both desks are ${total}, ${half} each on average.", lines, computed)

    return sentence(total // 2), sentence(total // 2 + draw.choice((-9, 5, 13)))


_COUNTS = (
    ("drei", "vier", "sieben", "neun", "zwölf"),
    ("trois", "quatre", "huit", "douze"),
    ("tres", "cuatro", "siete", "nueve", "doce"),
)
_COUNTED = ("Tage gebucht", "jours réservés", "días reservados")
_WORD_VALUES = {"drei": 3, "vier": 4, "sieben": 7, "neun": 9, "zwölf": 12, "trois": 3, "quatre": 4, "huit": 8}
_WORD_VALUES |= {"douze": 12, "tres": 3, "cuatro": 4, "siete": 7, "nueve": 9, "doce": 12}


def _number_words(draw: random.Random) -> Pair:
    language = draw.randrange(len(_COUNTED))
    word = draw.choice([word for word in _COUNTS[language] if word in _WORD_VALUES])
    count, price = _WORD_VALUES[word], draw.randint(13, 60)
    lines = [f"{word} {_COUNTED[language]}", f"{price} €"]

    def sentence(factor: int) -> Sentence:
        value = f"{factor * price} €"
        return Sentence(f"{value}.", lines, ((value, f"{factor} × {price} €"),))

    return sentence(count), sentence(count + 1)


def _limit(draw: random.Random) -> Pair:
    thing, price = draw.choice(_THINGS), draw.randint(100, 900)
    limit, beyond = price + draw.randint(10, 90), price - draw.randint(10, 90)
    lines = [f"The {thing} costs ${price}."]
    true = Sentence(f"The {thing} (${price}) is under ${limit}.", lines, query=f"a {thing} under ${limit}")
    query = f"a {thing} under ${beyond}"
    return true, Sentence(f"The {thing} (${price}) is under ${beyond}.", lines, query=query)


def _asked(draw: random.Random) -> Pair:
    thing, number = draw.choice(_THINGS), draw.randint(2000, 9000)
    lines = [f"The {thing} is an XR {number - 100}."]
    query = f"Did I save an XR {number} {thing}?"
    denied = Sentence(f"There is no XR {number} among the saved ones.", lines, query=query)
    return denied, Sentence(f"The {thing} is an XR {number}.", lines, query=query)


def _price_asked(draw: random.Random) -> Pair:
    thing, price = draw.choice(_THINGS), draw.randint(100, 900)
    asked = price + draw.choice((-30, 20, 75))
    lines = [f"The {thing} costs ${price}."]
    query = f"Is the {thing} ${asked}?"
    true = Sentence(f"The {thing} is not ${asked} but ${price}.", lines, query=query)
    return true, Sentence(f"The {thing} costs ${asked}.", lines, query=query)


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
    "bare unit": _bare,
    "per part": _per_part,
    "chain": _chain,
    "words": _number_words,
    "limit": _limit,
    "asked": _asked,
    "price asked": _price_asked,
}


def passes(sentence: Sentence) -> bool:
    """Whether code lets a sentence through."""
    lines = [*sentence.lines, sentence.query]
    figures = [Figure(value, expression, lines) for value, expression in sentence.computed]
    checked = check_figures(
        sentence.text,
        figures,
        sentence.lines,
        sentence.lists,
        whole_lists=sentence.lists,
        about=[sentence.query],
    )
    sources = [*sentence.lines, *checked.values]
    return not checked.faults and not check_evidence(sentence.text, sources, about=[sentence.query])


@dataclass(frozen=True)
class Derived:
    """A figure that two amounts of a sentence, or all of a list, give, and the sentence without it."""

    value: float
    decimals: int
    form: str  # how its unit is written
    text: str  # with a place for it
    lines: list[str]
    lists: dict[str, list[str]] = field(default_factory=dict)

    def sentence(self, value: float) -> Sentence:
        """The sentence with the figure or another one."""
        told = self.form.format(f"{value:.{self.decimals}f}")
        return Sentence(self.text.format(told), self.lines, lists=self.lists)


def draw_derived(draw: random.Random) -> Derived:
    """A figure over two to four amounts."""
    unit = draw.choice(("km", "kg", "l", "kWh", "€", "$", "min"))
    form = "${}" if unit == "$" else f"{{}} {unit}"
    decimals = draw.choice((0, 0, 1, 2))
    amounts = [round(draw.uniform(10, 900), decimals) for _ in range(draw.randint(2, 4))]
    stated = [form.format(f"{amount:.{decimals}f}") for amount in amounts]
    lines = [f"{draw.choice(_THINGS)}: {amount}" for amount in stated]
    if draw.random() < 1 / 3:
        total = sum(amounts)
        value = draw.choice((total, total / len(amounts)))
        return Derived(value, 2, form, "All in all {}.", lines[:1], {"Things": lines})
    first, second = draw.sample(amounts, 2)
    value = draw.choice((first + second, abs(first - second)))
    return Derived(value, decimals, form, f"It was {', '.join(stated)}: {{}}.", lines)


def measure_derived(seed: int, number: int) -> tuple[int, int]:
    """How many of figures that nobody computed pass, and how many 1 to 5 % off."""
    draw = random.Random(seed)
    right = 0
    wrong = 0
    for _ in range(number):
        derived = draw_derived(draw)
        value = _shifted(draw, derived)
        while abs(value - derived.value) < abs(derived.value) * 0.01:  # too small for its decimals
            derived = draw_derived(draw)
            value = _shifted(draw, derived)
        right += passes(derived.sentence(derived.value))
        wrong += passes(derived.sentence(value))
    return right, wrong


def _shifted(draw: random.Random, derived: Derived) -> float:
    """A figure 1 to 5 % off, as it is written."""
    return round(derived.value * (1 + draw.choice((-1, 1)) * draw.uniform(0.01, 0.05)), derived.decimals)


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
    seed = parser.parse_args().seed
    for kind, faithful, refused in measure(seed):
        print(f"{kind:12}{faithful:>8}{refused:>32}{PAIRS:>14}{refused:>16}")  # noqa: T201
    right, wrong = measure_derived(seed, DERIVED)
    print(f"Of {DERIVED} figures that nobody computed {right} pass, 1 to 5 % off {wrong}")  # noqa: T201


if __name__ == "__main__":
    main()
