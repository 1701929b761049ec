"""What a text claims, as values: a claim, and what supports it."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "price", "date", "quantity", "url"]


@dataclass(frozen=True)
class Claim:
    """One checkable thing that a text says."""

    text: str
    """The words as the text has them."""
    kind: Kind
    """What is claimed; a model number such as "A15" and a version are numbers, a time of day is a date."""
    value: str
    """The same value is always written the same way here: "USD 697", "2026-01-04", "16 gb"."""


@dataclass(frozen=True)
class FoundClaim:
    """A claim with what can support it and what it supports."""

    claim: Claim
    """The claim."""
    needs: frozenset[str]
    """Keys of which a source must give one."""
    gives: frozenset[str]
    """Keys that the same words give when they stand in a source."""
    end: int
    """Index behind the words."""


def readable_text(text: str) -> str:
    """
    The text as a reader sees its numbers: plain digits, no invisible characters, no blanks inside a number.

    >>> readable_text("1\\u202f299 or 6\\u200b97")
    '1299 or 697'
    """
    text = re.sub(r"(?<![\d.,])(\d{1,3})((?:[\u00a0\u2009\u202f]\d{3})+)(?!\d)", _without_blanks, text)
    text = text.translate({0x2122: " ", 0x00AE: " ", 0x00A9: " "})  # ™ ® © glue names to numbers
    text = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)


def _without_blanks(match: re.Match[str]) -> str:
    return re.sub(r"\s", "", match[0])


def found_claim(
    text: str,
    start: int,
    end: int,
    kind: Kind,
    value: str,
    *,
    needs: Sequence[str],
    gives: Sequence[str] = (),
) -> FoundClaim:
    """
    The claim that text[start:end] makes.

    Args:
        text: Where it stands.
        start: Index of its first character.
        end: Index behind it.
        kind: Kind of the claim.
        value: Its normal form.
        needs: Keys of which a source must give one.
        gives: Keys that it gives as a source, besides those of *needs*.
    """
    claim = Claim(text[start:end], kind, value)
    return FoundClaim(claim, frozenset(needs), frozenset([*needs, *gives]), end)
