"""What a line or the name of a field is about, as far as its age matters: prices, stock, who sells. Pure."""

import re

from panda.language.word_lists import alternatives, read_words

_FILE = "topic_words.txt"
ASKING = read_words(_FILE, "asking")
"""What a search is asked for, and not what it is about."""
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
