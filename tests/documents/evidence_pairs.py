"""Pairs of an answer and a source, drawn with a seed: true ones in other forms, false ones by one change."""

import json
import random
import string
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

WORDS: Mapping[str, Any] = json.loads(
    Path(__file__).with_name("evidence_words.json").read_text(encoding="utf-8")
)
"""What slots are filled with, and `templates`: sources with slots, each with answers that cite it."""


@dataclass(frozen=True)
class Pair:
    """One answer with the source that it cites."""

    answer: str
    """What is said."""
    source: str
    """What is cited."""
    supported: bool
    """Whether the source holds all of it."""
    change: str
    """What was written otherwise, or changed."""


def grouped(value: Decimal, group: str, point: str) -> str:
    """Digits in groups of three."""
    whole, _, decimals = str(value).partition(".")
    digits = f"{int(whole):,}".replace(",", group)
    return f"{digits}{point}{decimals}" if decimals else digits


class Slot:
    """A kind of value: how one is drawn, written and falsified."""

    def draw(self, rng: random.Random) -> Any:
        raise NotImplementedError

    def forms(self, value: Any) -> list[str]:
        raise NotImplementedError

    def wrong(self, rng: random.Random, value: Any) -> list[Any]:
        """Values that a reader would take for another one."""
        return [other for other in (self.draw(rng) for _ in range(3)) if other != value]


class Price(Slot):
    """(amount, currency)."""

    signs: ClassVar = {
        "USD": ("$", "dollars"),
        "EUR": ("€", "euros"),
        "GBP": ("£", "pounds"),
        "INR": ("₹", "rupees"),
    }

    def draw(self, rng: random.Random) -> Any:
        cents = rng.choice([0, 0, 0, 50, 99, 95])
        amount = Decimal(rng.choice([rng.randint(3, 99), rng.randint(100, 999), rng.randint(1000, 48000)]))
        return (amount + Decimal(cents) / 100).quantize(Decimal("0.01")), rng.choice(list(self.signs))

    def forms(self, value: Any) -> list[str]:
        amount, code = value
        sign, word = self.signs[code]
        whole = amount == amount.to_integral()
        plain = str(int(amount)) if whole else str(amount)
        short = Decimal(plain)
        forms = [f"{sign}{plain}", f"{sign}{grouped(short, ',', '.')}", f"{plain} {code}", f"{code} {plain}"]
        forms += [f"{sign}{amount}", f"{plain} {word}", f"{sign}\u202f{grouped(short, ',', '.')}"]
        if code == "EUR":
            forms += [f"{grouped(amount, '.', ',')} €", f"{plain} €"]
            forms += [f"{grouped(short, '.', ',')} €", f"{grouped(short, ' ', ',')} EUR"]
        return forms

    def wrong(self, rng: random.Random, value: Any) -> list[Any]:
        amount, code = value
        others = [(amount, other) for other in self.signs if other != code]
        near = [(amount + step, code) for step in (Decimal(1), Decimal(10), Decimal("0.01"))]
        return [
            rng.choice(others),
            *near,
            (amount * 10, code),
            ((amount / 1000).quantize(Decimal("0.01")), code),
        ]


class Quantity(Slot):
    """(number, unit): each unit with its other writings and with units that it is not."""

    units: ClassVar[dict[str, list[list[str]]]] = WORDS["units"]

    def draw(self, rng: random.Random) -> Any:
        number = rng.choice([Decimal(rng.randint(2, 900)), Decimal(rng.randint(11, 990)) / 10])
        return number.normalize() + 0, rng.choice(list(self.units))

    def forms(self, value: Any) -> list[str]:
        number, unit = value
        digits = f"{number:f}"
        forms = []
        for name in (unit, *self.units.get(unit, ((unit,), ()))[0]):
            glued = name in ('"', "-inch") or (len(name) < 6 and name not in ("flurbs", "sq m", "amps"))
            if glued and name not in ("inch", "m²"):
                forms.append(f"{digits}{name}")
            if name not in ('"', "-inch"):
                forms.append(f"{digits} {name}")
        return forms

    def wrong(self, rng: random.Random, value: Any) -> list[Any]:
        number, unit = value
        others = [(number, other) for other in self.units[unit][1]]
        return [*others, (number + 1, unit), (number * 10, unit), (-number, unit)]


class Count(Slot):
    """(number, what is counted)."""

    nouns: ClassVar[list[str]] = WORDS["counted"]

    def draw(self, rng: random.Random) -> Any:
        return rng.choice([rng.randint(2, 12), rng.randint(13, 400)]), rng.choice(self.nouns)

    def forms(self, value: Any) -> list[str]:
        number, noun = value
        forms = [f"{number} {noun}", f"{number} different {noun}"]
        if number < len(WORDS["small numbers"]):
            forms.append(f"{WORDS['small numbers'][number]} {noun}")
        return forms

    def wrong(self, rng: random.Random, value: Any) -> list[Any]:
        number, noun = value
        other = rng.choice([other_noun for other_noun in self.nouns if other_noun != noun])
        return [(number, other), (number + 1, noun), (number * 10, noun)]


class Day(Slot):
    """A date."""

    def draw(self, rng: random.Random) -> Any:
        return date(2019, 1, 1) + timedelta(days=rng.randint(0, 3600))

    def forms(self, value: Any) -> list[str]:
        month = WORDS["months"][value.month - 1]
        day = value.day
        year = value.year
        tail = "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
        return [
            value.isoformat(),
            f"{day} {month} {year}",
            f"{month} {day}, {year}",
            f"{day}. {month} {year}",
            f"{day:02d}-{month[:3]}-{year}",
            f"{month} {day}{tail}, {year}",
            f"{day:02d}.{value.month:02d}.{year}",
            f"the {day}{tail} of {month} {year}",
            f"{month[:3]} {day}, {year}",
        ]

    def wrong(self, rng: random.Random, value: Any) -> list[Any]:
        return [value + timedelta(days=days) for days in (1, -1, 31, 365)]


class Clock(Slot):
    """(hour, minute)."""

    def draw(self, rng: random.Random) -> Any:
        return rng.choice([1, 5, 7, 8, 9, 13, 14, 17, 19, 20, 21]), rng.choice([0, 5, 15, 30, 45])

    def forms(self, value: Any) -> list[str]:
        hour, minute = value
        half = "am" if hour < 12 else "pm"
        twelve = (hour - 1) % 12 + 1
        forms = [f"{hour:02d}:{minute:02d}", f"{twelve}:{minute:02d} {half}"]
        forms += [f"{twelve}.{minute:02d} {half}", f"{twelve}:{minute:02d} {half[0]}.m."]
        return forms

    def wrong(self, rng: random.Random, value: Any) -> list[Any]:
        hour, minute = value
        return [(hour, (minute + 10) % 60), ((hour + 12) % 24, minute), (hour % 23 + 1, minute)]


class Person(Slot):
    """A name in some script."""

    names: ClassVar[list[str]] = WORDS["people"]

    def draw(self, rng: random.Random) -> Any:
        return rng.choice(self.names)

    def forms(self, value: Any) -> list[str]:
        return [value, unicodedata.normalize("NFD", value), value.replace("'", "’")]


class Maker(Person):
    """A name of a maker or place, some of them in capitals."""

    names: ClassVar[list[str]] = WORDS["makers"]

    def forms(self, value: Any) -> list[str]:
        return [value]


class Host(Slot):
    """A host."""

    hosts: ClassVar[list[str]] = WORDS["hosts"]

    def draw(self, rng: random.Random) -> Any:
        return rng.choice(self.hosts)

    def forms(self, value: Any) -> list[str]:
        return [value, f"www.{value}", value.capitalize()]


class Version(Slot):
    """(major, minor)."""

    def draw(self, rng: random.Random) -> Any:
        return f"{rng.randint(1, 20)}.{rng.choice([1, 2, 3, 5, 8, 10, 11, 20])}"

    def forms(self, value: Any) -> list[str]:
        return [f"version {value}", f"version v{value}"]

    def wrong(self, rng: random.Random, value: Any) -> list[Any]:
        major, _, minor = value.partition(".")
        return [f"{major}.{minor}0", f"{major}.{int(minor) + 1}", f"{int(major) + 1}.{minor}"]


class Model(Slot):
    """A model's name with its number."""

    models: ClassVar[list[str]] = WORDS["models"]

    def draw(self, rng: random.Random) -> Any:
        return rng.choice(self.models)

    def forms(self, value: Any) -> list[str]:
        return [value, value.replace(" ", "™ ")]


class Phone(Slot):
    """Digits of a telephone number."""

    def draw(self, rng: random.Random) -> Any:
        return "".join(str(rng.randint(2, 9)) for _ in range(9))

    def forms(self, value: Any) -> list[str]:
        a = value[:3]
        b = value[3:6]
        c = value[6:]
        return [f"+351 {a} {b} {c}", f"+351 {a}-{b}-{c}", f"+351{value}", f"00351 {a} {b} {c}"]

    def wrong(self, rng: random.Random, value: Any) -> list[Any]:
        return [
            value[:-1] + str((int(value[-1]) + 1) % 10),
            value[1] + value[0] + value[2:] if value[0] != value[1] else self.draw(rng),
        ]


class Span(Slot):
    """(from, to, unit)."""

    def draw(self, rng: random.Random) -> Any:
        low = rng.randint(2, 60)
        return low, low + rng.randint(1, 30), rng.choice(["°C", "km", "kg", "hours"])

    def forms(self, value: Any) -> list[str]:
        low, high, unit = value
        forms = [
            f"{low}–{high} {unit}",
            f"{low} to {high} {unit}",
            f"between {low} and {high} {unit}",
            f"{low} - {high} {unit}",
        ]
        return [*forms, f"{low} {unit} to {high} {unit}"]

    def wrong(self, rng: random.Random, value: Any) -> list[Any]:
        low, high, unit = value
        return [
            (low + 1, high + 1, unit),
            (low, high * 2, unit),
            (low, high, {"°C": "°F", "km": "m"}.get(unit, "lb")),
        ]


class Rank(Slot):
    """A place in an order."""

    def draw(self, rng: random.Random) -> Any:
        return rng.randint(3, 12)

    def forms(self, value: Any) -> list[str]:
        words = WORDS["ranks from three"]
        return [f"{value}{'rd' if value == 3 else 'th'}", words[value - 3]]


SLOTS: dict[str, Slot] = {
    "price": Price(),
    "quantity": Quantity(),
    "count": Count(),
    "day": Day(),
    "clock": Clock(),
    "person": Person(),
    "maker": Maker(),
    "host": Host(),
    "version": Version(),
    "model": Model(),
    "phone": Phone(),
    "span": Span(),
    "rank": Rank(),
}


def draw_pairs(seed: int, number: int) -> Iterator[Pair]:
    """
    Pairs, true and false ones in turn.

    Args:
        seed: Decides everything.
        number: How many.
    """
    rng = random.Random(seed)
    count = 0
    while count < number:
        source_form, answers = rng.choice(list(WORDS["templates"].items()))
        names = fields(source_form)
        values = {name: SLOTS[name].draw(rng) for name in names}
        source = (
            rng.choice(WORDS["noise"]) + written(rng, source_form, values) + " " + rng.choice(WORDS["noise"])
        )
        answer = rng.choice(answers)
        if count % 2 == 0:
            yield Pair(written(rng, answer, values), source, True, "+".join(fields(answer)))
            count += 1
            continue
        name = rng.choice(fields(answer))
        wrong = rng.choice(SLOTS[name].wrong(rng, values[name]) or [None])
        false = written(rng, answer, {**values, name: wrong}) if wrong is not None else None
        if false is None or (name == "maker" and "{model}" in answer):
            continue
        yield Pair(false, source, False, name)
        count += 1


def fields(form: str) -> list[str]:
    """Names of the slots of a template, each once."""
    return list(dict.fromkeys(name for _, name, _, _ in string.Formatter().parse(form) if name))


def written(rng: random.Random, form: str, values: dict[str, Any]) -> str:
    """A template with its values, each in one of its forms."""
    return form.format(**{name: rng.choice(SLOTS[name].forms(values[name])) for name in fields(form)})
