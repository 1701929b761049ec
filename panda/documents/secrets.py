"""Secrets of servers: none may stand in an address, and what a server repeats of them is hidden. Pure."""

import base64
import binascii
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "[secret]"
"""Stands for a secret, or a piece of one."""
_USERINFO = re.compile(r"//[^\s/?#]*@")
_ANY_USERINFO = re.compile(r"//\S*@")
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|api-key|key|digest|negotiate)\s+(.*)", re.IGNORECASE)
_PUBLIC_HEADER = re.compile(
    r"accept(-.*)?|content-.*|user-agent|(http-)?referer|origin|x-title|cache-control|connection|.*(version|beta).*",
    re.IGNORECASE,
)
"""Headers whose values are no secrets: hiding them would hide ordinary words."""
_SECRET_KEY = re.compile(r"key|token|secret|auth|passw|credential|signature|cookie", re.IGNORECASE)
_MIN_CHARS = 3
_PIECE_CHARS = 8
"""So many characters in a row of a secret count as a piece of it; of one without digits half as many more."""
_MAX_PIECES = 256
_SEPARATORS = re.compile(r"[\s;,=:&\"']+")


def has_userinfo(url: str) -> bool:
    """Return whether an address has a user or a password before its host."""
    return _USERINFO.search(url) is not None


def hide_userinfo(text: str) -> str:
    """
    A text without what stands before the host of an address, for errors that quote it.

    >>> hide_userinfo("http://ann:p/w@host/v1 is no location")
    'http://[secret]@host/v1 is no location'
    """
    return _ANY_USERINFO.sub(f"//{HIDDEN}@", text)


def secrets_of_request(headers: Mapping[str, str], body: Mapping[str, Any]) -> Iterator[str]:
    """The values of headers, and those of further keys of the body, that no server should repeat."""
    for name, value in headers.items():
        if not _PUBLIC_HEADER.fullmatch(name):
            yield value
    yield from _secrets_of_body(body, is_secret=False)


def _secrets_of_body(value: object, *, is_secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _secrets_of_body(part, is_secret=is_secret or bool(_SECRET_KEY.search(str(key))))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _secrets_of_body(part, is_secret=is_secret)
    elif isinstance(value, str) and (is_secret or _is_random(value, min_chars=16)):
        yield value


def _is_random(text: str, *, min_chars: int) -> bool:
    """Return whether a text looks like a key and not like a word."""
    return len(text) >= min_chars and " " not in text and any(char.isdigit() for char in text)


class Secrets:
    """Hides secrets, in the forms in which servers repeat them, and pieces of them."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for part in _parts(value) for form in _forms(part)}
        self._pieces = sorted({piece for form in forms for piece in _pieces(form)})
        short = sorted((form for form in forms if len(form) >= _MIN_CHARS), key=len, reverse=True)
        words = "|".join(map(re.escape, short)) or r"(?!)"
        self._whole = re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])", re.IGNORECASE)

    def hide(self, text: str) -> str:
        """A text with each secret, and each piece of one, replaced by `[secret]`."""
        lowered = text.lower()
        if len(lowered) != len(text):  # characters whose lower case is longer
            lowered = text
        spans = [match.span() for match in self._whole.finditer(text)]
        for piece in self._pieces:
            at = lowered.find(piece)
            while at >= 0:
                spans.append((at, at + len(piece)))
                at = lowered.find(piece, at + 1)
        parts: list[str] = []
        end = 0
        for start, stop in sorted(spans):
            if start > end or (start == end and not parts):
                parts += [text[end:start], HIDDEN]
            end = max(end, stop)
        return "".join([*parts, text[end:]])


def _parts(value: str) -> set[str]:
    """The secret in a value, and what it is made of: a key behind `Bearer`, a user's password."""
    secret = value.strip()
    if scheme := _SCHEME.fullmatch(secret):
        secret = scheme[1]
    parts = {secret}
    try:
        decoded = base64.b64decode(secret, validate=True).decode()
    except (binascii.Error, ValueError):
        decoded = ""
    if ":" in decoded and decoded.isprintable():
        parts |= {decoded, decoded.partition(":")[2]}
    parts |= {part for part in _SEPARATORS.split(secret) if _is_random(part, min_chars=_PIECE_CHARS)}
    return {part for part in parts if len(part) >= _MIN_CHARS}


def _forms(secret: str) -> set[str]:
    """A secret as texts may hold it: as it is, or in JSON, HTML, a URL, hexadecimal or base64."""
    data = secret.encode("utf-8", "surrogatepass")
    forms = {secret, json.dumps(secret)[1:-1], html.escape(secret), data.hex()}
    forms |= {quote(data, safe=""), quote_plus(data)}
    for offset, cut_chars in enumerate((0, 2, 3)):  # it may stand anywhere in what was encoded
        encoded = base64.b64encode(b"\0" * offset + data).decode().rstrip("=")
        is_whole = (offset + len(data)) % 3 == 0
        inner = encoded[cut_chars:] if is_whole else encoded[cut_chars:-1]
        forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in forms if len(form) >= _MIN_CHARS}


def _pieces(form: str) -> set[str]:
    """Runs of characters of a form, in lower case, of which any longer piece of it holds at least one."""
    length = _PIECE_CHARS if any(char.isdigit() for char in form) else _PIECE_CHARS * 3 // 2
    lowered = form.lower()
    step = 1 + len(lowered) // _MAX_PIECES
    return {lowered[at : at + length] for at in range(0, len(lowered) - length + 1, step)}
