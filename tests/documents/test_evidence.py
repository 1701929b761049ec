"""What counts as supported by a source, and what never does."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from panda.documents.evidence import check_evidence, find_claims
from panda.documents.markdown import split_units
from tests.documents.evidence_pairs import WORDS

LOQ = """Lenovo LOQ 15 Gaming Laptop: price $697.00. NVIDIA RTX 4050, 16GB DDR5, 512GB SSD.
In Stock, seen 2026-01-04T13:20:00Z at https://www.bestbuy.com/site/lenovo-loq-15/6534615.p,
weight 2.38 kg, screen 15.6" 144Hz."""


def unsupported(text: str, *sources: str) -> list[str]:
    return [claim.text for claim in check_evidence(text, sources)]


def test_only_the_sources_given_count() -> None:
    """A price of one source does not support a text that cites another one."""
    asus = "ASUS TUF A15: price $749.99"
    assert unsupported("The Lenovo LOQ 15 costs $697", LOQ) == []
    assert unsupported("The Lenovo LOQ 15 costs $697", asus) == ["Lenovo", "LOQ", "15", "$697"]
    assert unsupported("It costs $697, the ASUS TUF A15 $749.99", LOQ, asus) == []


def test_a_text_is_supported_by_itself() -> None:
    """Every claim of a text occurs in the text."""
    assert unsupported(LOQ, LOQ) == []
    assert {claim.kind for claim in find_claims(LOQ)} == {"number", "price", "quantity", "date", "url"}


def test_claims_keep_their_words() -> None:
    """A report shows the words as written, in order."""
    assert unsupported("About $1,299.00, 16 GB, January 4, 2026, https://a.org/x.", "") == [
        "$1,299.00",
        "16 GB",
        "January 4, 2026",
        "https://a.org/x",
    ]


@given(st.text())
@example("A \U0002ebe1")
def test_every_text_supports_itself(text: str) -> None:
    """No text makes a claim that the same text does not support."""
    assert check_evidence(text, [text]) == []


@given(st.lists(st.sampled_from(WORDS["words of statements"]), max_size=14).map(" ".join))
def test_every_statement_supports_itself(text: str) -> None:
    """Whatever a text says of weekdays, times, orders and bounds, it does not contradict itself."""
    assert check_evidence(text, [text]) == []


@given(st.text(alphabet="0123456789.,-/:'$€£%x kKGBhMayan TZ\n[]()_+twelv", max_size=40))
def test_no_digit_escapes(text: str) -> None:
    """Every text with a digit is reported when there is no source, but the marks of a numbered list."""
    if any(character.isdecimal() for character in text) and not re.search(r"2[.)] [a-zA-Z]", text):
        assert check_evidence(text, [])


@given(
    st.lists(st.integers(0, 10**9), max_size=8),
    st.integers(0, 10**9),
    st.sampled_from(["{}", "{:,}", "{}.00"]),
)
def test_a_number_is_supported_exactly_if_its_value_is_there(
    held: list[int], claimed: int, form: str
) -> None:
    """Reporting a number depends on its value alone, not on its writing."""
    source = "; ".join(f"there are {number:,} of them" for number in held)
    assert bool(unsupported(f"it has {form.format(claimed)} of them", source)) is (claimed not in held)


@given(st.integers(0, 99_999), st.integers(0, 99), st.sampled_from("$€£"), st.sampled_from("$€£"))
def test_a_price_needs_its_currency(whole: int, cents: int, currency: str, held: str) -> None:
    """A price is supported by the same amount in the same currency only."""
    supported = not unsupported(
        f"It costs {currency}{whole}.{cents:02d}.", f"price {held}{whole:,}.{cents:02d}"
    )
    assert supported is (currency == held)


@given(st.datetimes(datetime(1900, 1, 1), datetime(2199, 1, 1)), st.integers(-40, 40))
def test_a_date_is_supported_by_the_same_day_only(moment: datetime, days: int) -> None:
    """Any written form of a day is supported by the ISO form of that day and no other."""
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    other = datetime.fromordinal(moment.toordinal() + days)
    for form in ("%d %B %Y", "%B %d, %Y", "%b. %d, %Y", "%Y/%m/%d", "%d.%m.%Y"):
        assert bool(unsupported(f"seen {other.strftime(form)}", moment.isoformat())) is (days != 0)


@pytest.mark.parametrize(
    "piece", ["a", "1", "1.", "1,", "a.", "-", "https://", "one ", "1-2", "$", "January 1 ", "1:1"]
)
def test_long_texts_are_checked(piece: str) -> None:
    """Twenty thousand characters of anything are checked: a pattern that runs away would never end."""
    text = piece * (20_000 // len(piece))
    assert check_evidence(text, [text]) == []


NOTE = """# Wohnung
Die Miete beträgt 1.299 € im Monat, die Kaution €2.500,00. Der Weg ist 1.299 m lang und 12,5 m breit.
- Vermieter: Otto Weiß, Tel. +49301234567, „nett“
| Zimmer | 3 | 15.6" | ½ |
On 3.10 we moved from version 3.1 to 3.10; 5 W, 5 flurbs, -5 °C, see cheap-tents.store.
The Galaxy of Ana Souza and 東京 2nd floor, room 12 (page 7), 1,299 km or 1299 EUR at half past nine."""


@pytest.mark.parametrize("width", [3, 5, 8, 13])
def test_every_quotation_is_supported(width: int) -> None:
    """Any run of whole words of a source is supported by it, whatever else the source says."""
    for line in NOTE.splitlines():
        words = line.split()
        quotations = [" ".join(words[at : at + width]) for at in range(max(1, len(words) - width))]
        assert [claims for quotation in quotations if (claims := unsupported(quotation, NOTE))] == []


LIFE = Path(__file__).parents[2] / "bench" / "life"


def _read_folders(path: Path) -> list[Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    return content if isinstance(content, list) else [content]


NOTES = [
    note
    for file in sorted(LIFE.glob("*.json"))
    for folder in _read_folders(file)
    for note in folder["notes"].values()
]


@pytest.mark.parametrize("note", NOTES)
def test_lines_of_ordinary_notes_are_supported(note: str) -> None:
    """A quotation of a note, a table's row with its header too, is supported by the note."""
    quotable = [passage.text for passage in split_units(note)]
    claims_by_text = {text: check_evidence(text, [note]) for text in quotable}
    assert {text: claims for text, claims in claims_by_text.items() if claims} == {}
