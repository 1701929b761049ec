"""Prices, URLs, dates and error messages of a text, found without what compression uses."""

import json
import re
from collections.abc import Collection

from tests.compression.faults import MARK

_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_AMOUNT = r"\d{1,3}(?:[., ]\d{3})+(?:[.,]\d{2})?|\d+(?:[.,]\d{2})?"
_FORMS = {
    "price": (
        rf"[$€£¥]\s?(?:{_AMOUNT})(?!\d)",
        rf"(?<![\d.,])(?:{_AMOUNT})\s?(?:€|円|руб|USD\b|EUR\b)",
    ),
    "url": (r"https?://[^\s<>\"'`|)\]\\]+",),
    "date": (
        r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)",
        rf"(?i:\b(?:{_MONTHS})\.? \d{{1,2}},? \d{{4}}\b)",
        rf"(?i:\b\d{{1,2}}\.? (?:{_MONTHS}|mai|mars|мая)\.? \d{{4}}\b)",
        r"\d{4}年\d{1,2}月\d{1,2}日",
    ),
}
_ERROR = re.compile(
    r"^(?:E   )?(?:[\w.]*(?:Error|Exception): .+|(?:ERROR|FATAL)\b.+|error: .+)$", re.MULTILINE
)


def found_facts(text: str, kinds: Collection[str]) -> list[str]:
    """
    The distinct facts, as they are written; of error messages, numbers apart.

    Args:
        text: A document; of JSON, what its strings say.
        kinds: Of price, url, date and error.
    """
    try:
        said = "\n".join(_strings(json.loads(text)))
    except ValueError:
        said = text
    forms = [form for kind, forms in _FORMS.items() if kind in kinds for form in forms]
    facts = [match[0].rstrip(".,;:!?*_") for form in forms for match in re.finditer(form, said)]
    if "error" in kinds:
        facts += [re.sub(r"\d+", "#", match[0].strip()) for match in _ERROR.finditer(MARK.sub("", said))]
    return list(dict.fromkeys(" ".join(fact.split()) for fact in facts))


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [one for item in value.values() for one in _strings(item)]
    if isinstance(value, list):
        return [one for item in value for one in _strings(item)]
    return [value] if isinstance(value, str) else []
