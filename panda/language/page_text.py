"""What lines of web pages are about, by the phrases that shops and sites use. Pure."""

import re

from panda.language.word_lists import alternatives


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
