"""What a line, a question or the name of a field is about: times, prices, stock, who speaks. Pure."""

import re
from itertools import islice

from panda.language.words import alternatives, read_words

_FILE = "topic_words.txt"
ASKING = read_words(_FILE, "asking")  # what a search is asked for, and not what it is about
_PRICE = re.compile(r"[$€£¥₹]\s?\d|\d\s?(?:[€£¥₹]|USD|EUR|GBP)\b")
_STOCK = re.compile(rf"\b{alternatives(_FILE, 'in_stock')}\b", re.IGNORECASE)
_SITE = re.compile(r"url|link|site|page.*", re.IGNORECASE)


def states_price(text: str) -> bool:
    """Whether a line holds a price."""
    return _PRICE.search(text) is not None


def claim_type(text: str) -> str:
    """
    How a claim of a research file ages.

    >>> claim_type("Lenovo LOQ 15 @ $697"), claim_type("sold out"), claim_type("has a thin bezel")
    ('price', 'availability', 'product_spec')
    """
    if states_price(text):
        return "price"
    return "availability" if _STOCK.search(text) else "product_spec"


def field_type(name: str) -> str:
    """
    How the value of a named field ages.

    >>> [field_type(name) for name in ("List price", "delivery", "seller", "page_type", "gpu")]
    ['price', 'availability', 'vendor_info', 'site_pattern', 'product_spec']
    """
    types = ("price", "availability", "vendor_info")
    found = next((one for one in types if _has_part(name, one)), None)
    return found or ("site_pattern" if _SITE.fullmatch(name) else "product_spec")


def matters_to_buyers(key: str) -> bool:
    """
    Whether a preference of this key tells what to buy.

    >>> matters_to_buyers("laptop_budget"), matters_to_buyers("hamster")
    (True, False)
    """
    return _has_part(key, "buying")


def _has_part(name: str, topic: str) -> bool:
    return any(part in name.lower() for part in read_words(_FILE, topic))


def _phrases(group: str, more: str = "") -> re.Pattern[str]:
    listed = alternatives("page_text.txt", group)
    return re.compile(rf"(?<![a-z]){listed}(?![a-z]){more}", re.IGNORECASE)


_BOILERPLATE, _ASIDES, _BUTTONS = map(_phrases, ("boilerplate", "asides", "buttons"))
_SOLD, _STOCKED = _phrases("sold"), _phrases("stocked", r"|\bonly \d+ left\b")
_SIDE_PRICE = re.compile(
    r"(?<!free )(?:shipping|delivery|versand|livraison)|(?:shipping|delivery) (?:over|from|on)\b|/\s?mo|month"
    r"|save\b|\boff\b|coupon|gift card|trade-?in|installment|financ|free over|orders over|\bfees?\b|deposit"
    r"|(?<!incl )(?<!incl\. )(?<!including )(?<!excl )(?<!excl\. )(?<!excluding )tax|warranty|was\b|rrp|msrp"
    r"|list price",
    re.IGNORECASE,
)


def is_boilerplate(line: str) -> bool:
    """
    Whether a short line is what every site has.

    >>> is_boilerplate("Read more"), is_boilerplate("Log in | Sign up"), is_boilerplate("The LOQ costs $697.")
    (True, True, False)
    """
    return _BOILERPLATE.search(line) is not None


def heads_aside(heading: str) -> bool:
    """
    Whether a heading stands above other things than the page's own.

    >>> heads_aside("Customers also bought"), heads_aside("Specifications")
    (True, False)
    """
    return _ASIDES.search(heading) is not None


def is_buy_button(line: str) -> bool:
    """Whether a short line is the button of a shop, as "Add to cart"."""
    return _BUTTONS.search(line) is not None


def is_side_price(line: str) -> bool:
    """
    Whether the price in a line is not what the thing costs: shipping, rates, savings, what it was.

    >>> is_side_price("was $899"), is_side_price("$29 / month"), is_side_price("$697, free shipping")
    (True, True, False)
    """
    return _SIDE_PRICE.search(line) is not None


def stock_told(line: str) -> bool | None:
    """
    Whether a line says that something can be had, or that it can't; None if it says neither.

    >>> stock_told("Only 3 left"), stock_told("nicht lieferbar"), stock_told("16 GB")
    (True, False, None)
    """
    if _SOLD.search(line):
        return False
    return True if _STOCKED.search(line) else None


FIRST_PERSON = read_words("marks.txt", "first")  # what somebody who speaks calls himself
SECOND_PERSON = read_words("marks.txt", "second")  # what he calls whom he speaks to


def _marks(group: str, more: str = "") -> re.Pattern[str]:
    listed = alternatives("marks.txt", group)
    return re.compile(rf"(?<!\w){listed}(?!\w){more}", re.IGNORECASE)


_TELLS = {
    "time": _marks("times", r"|\b(?:(?:19|20)\d\d|\d{1,2}:\d\d)\b"),
    "number": _marks("numbers", r"|\d"),
    "name": re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z][\w'’-]*\w|[\"“«][^\"”»]{3,60}[\"”»]"),
}
_WANTS = {"time": _marks("asks_time"), "number": _marks("asks_number"), "name": _marks("asks_name")}
_NEGATION = _marks("negations", r"|\b\w+n['’]t\b")
_FIRST = _marks("first")
_NEGATED_END = re.compile(rf"(?:{_NEGATION.pattern})\s+(?:\S+\s+){{0,2}}\Z", re.IGNORECASE)


def wanted_kind(query: str) -> str | None:
    """
    The kind of thing that a question wants: time, number or name; None if that is not known.

    >>> [wanted_kind(query) for query in ("When is it?", "how much is it", "Who said it?", "Is it far?")]
    ['time', 'number', 'name', None]
    """
    return next((kind for kind, asks in _WANTS.items() if asks.search(query)), None)


def count_kind(text: str, kind: str) -> int:
    """
    How often a text tells a thing of a kind, up to twice.

    >>> count_kind("Two of them on Friday, said Ann", "name"), count_kind("It is far", "number")
    (2, 0)
    """
    return sum(1 for _ in islice(_TELLS[kind].finditer(text), 2))


def negates(text: str) -> bool:
    """Whether a text denies something."""
    return _NEGATION.search(text) is not None


def speaks_of_self(text: str) -> bool:
    """Whether a text is about him who says it."""
    return _FIRST.search(text) is not None


def negation_before(text: str, start: int, end: int) -> int | None:
    """
    Where a negation begins of which at most two words stand between it and a place.

    >>> negation_before("not the old tent", 0, 12), negation_before("the old tent", 0, 8)
    (0, None)
    """
    match = _NEGATED_END.search(text, start, end)
    return match.start() if match else None
