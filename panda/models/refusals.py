"""What servers mean by the words with which they refuse a request."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from panda.documents.json_text import load_json

_TOO_LONG = re.compile(
    r"exceed_context_size|context_length_exceeded|context_window_exceeded"
    r"|(?:exceed|longer|larger|greater|maximum|too long|too large|overflow|only)[^.]{0,80}\bcontext"
    r"|\bcontext (?:length|size|window|the)\b[^.]{0,80}(?:exceed|overflow|too (?:long|small|short)|tokens)"
    r"|prompt is too long|max_model_len|tokens \+ `?max_new_tokens|`inputs` must have less than"
    r"|input is too long",
    re.IGNORECASE,
)
_WINDOW = re.compile(
    r"(?:context (?:length|size|window)|max_model_len|must be <=|must have less than)"
    r"[^\d.]{0,40}(\d[\d,]*)|\((\d[\d,]*)(?: tokens)?\)[^.]{0,10}$",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"(?:requested|request \(|given:?|input \(|input length \(|prompt (?:contains|has|is too long:)|first)"
    r"[^\d.]{0,30}(\d[\d,]*)|(\d[\d,]*) (?:input )?tokens in the messages",
    re.IGNORECASE,
)
_PARAMETER = re.compile(
    r"(?:unsupported|unrecogni[sz]ed|unknown|not support|only the default|not permitted|not allowed|invalid|"
    r"deprecated|must be|cannot both)",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<(title|h1)\b[^>]*>(.*?)</\1\s*>", re.IGNORECASE | re.DOTALL)
_NO_TEXT = re.compile(r"<(script|style|head)\b.*?</\1\s*>|<!--.*?-->|<[^<>]*>", re.IGNORECASE | re.DOTALL)
_MAX_MARKUP_CHARS = 20_000


@dataclass(frozen=True)
class TooLong:
    """A server says that a prompt does not fit its context window; None: it does not say how many tokens."""

    window_tokens: int | None
    prompt_tokens: int | None


def read_too_long(data: bytes, words: str) -> TooLong | None:
    """Return what an answer says of a prompt that does not fit the window; None for any other answer."""
    if not _TOO_LONG.search(words):
        return None
    facts = _facts_of(data)
    window = facts.get("n_ctx") or _number(_WINDOW, words)
    prompt = facts.get("n_prompt_tokens") or _number(_PROMPT, words)
    return TooLong(window, prompt)


def find_refused_parameter(words: str, parameters: tuple[str, ...]) -> str | None:
    """Return which of the parameters of a request a server says that it does not take; None for none."""
    if not _PARAMETER.search(words):
        return None
    return next((name for name in parameters if re.search(rf"\b{name}\b", words)), None)


def plain_text(markup: str) -> str:
    """
    Return what a page says: its title, else its first heading, else its text; other bodies as they are.

    >>> plain_text("<html><head><title>502 Bad Gateway</title></head><body><hr>nginx</body></html>")
    '502 Bad Gateway'
    """
    start = markup[:_MAX_MARKUP_CHARS].lstrip()
    if not re.match(r"<(?:!doctype|html|head|body|h1|p|div|center|title)\b", start, re.IGNORECASE):
        return markup
    for match in _TITLE.finditer(start):
        title = " ".join(unescape(_NO_TEXT.sub(" ", match[2])).split())
        if title:
            return title
    return " ".join(unescape(_NO_TEXT.sub(" ", start)).split())


def _facts_of(data: bytes) -> Mapping[str, int]:
    try:
        value: Any = load_json(data)
    except (ValueError, RecursionError):
        return {}
    error = value.get("error", value) if isinstance(value, Mapping) else {}
    facts = error if isinstance(error, Mapping) else {}
    return {key: number for key, number in facts.items() if type(number) is int and number > 0}


def _number(pattern: re.Pattern[str], words: str) -> int | None:
    match = pattern.search(words)
    digits = next(filter(None, match.groups()), "") if match else ""
    return int(digits.replace(",", "")[:9]) if digits else None
