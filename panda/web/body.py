"""The body of an answer: unpacked within a limit, and its bytes as text."""

import re
import zlib
from collections.abc import Iterable, Iterator

from panda.errors import WebError

MOST_BYTES = 5_000_000
"""Most bytes of a page, packed and unpacked."""

_STEP_BYTES = 65_536
_META_CHARSET = re.compile(rb"<meta[^>]{0,400}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_XML_CHARSET = re.compile(
    rb"\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE
)
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_AS_BROWSERS_READ = {
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "tis-620": "cp874",
    "x-user-defined": "cp1252",
    "utf8": "utf-8",
}


def read_body(chunks: Iterable[bytes], encoding: str, *, where: str, most_bytes: int = MOST_BYTES) -> bytes:
    """
    The unpacked body.

    Args:
        chunks: As they come from the wire.
        encoding: Value of Content-Encoding; "" if there is none.
        where: The URL, for errors.
        most_bytes: Limit for the packed and for the unpacked size; nothing beyond it is kept in memory.

    Raises:
        WebError: It is larger, packed in an unknown way or more than once, or damaged.
    """
    name = encoding.strip().lower()
    if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise WebError(f"the page is packed as {encoding!r}, which was not asked for", where=where)
    parts: list[bytes] = []
    size = 0
    packed = _limited(chunks, most_bytes, where)
    try:
        for piece in packed if name in ("", "identity") else _unpack(packed, name):
            size += len(piece)
            if size > most_bytes:
                raise too_large(most_bytes, where, " unpacked")
            parts.append(piece)
    except zlib.error as exc:
        raise WebError(f"the page's {name} data is damaged: {exc}", where=where) from exc
    return b"".join(parts)


def too_large(most_bytes: int, where: str, how: str = "") -> WebError:
    """The error for a body over the limit."""
    return WebError(
        f"the page has more than {most_bytes / 1e6:g} MB{how}, the most that is read", where=where
    )


def _limited(chunks: Iterable[bytes], most_bytes: int, where: str) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most_bytes:
            raise too_large(most_bytes, where)
        yield chunk


def _unpack(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Unpacked pieces of at most 64 kB each, however much a few bytes stand for."""
    reader = zlib.decompressobj(zlib.MAX_WBITS if name == "deflate" else zlib.MAX_WBITS | 16)
    started = False
    for chunk in chunks:
        data = chunk
        while data:
            try:
                piece = reader.decompress(data, _STEP_BYTES)
            except zlib.error:
                if name != "deflate" or started:
                    raise
                reader = zlib.decompressobj(-zlib.MAX_WBITS)  # servers send raw deflate under this name
                piece = reader.decompress(data, _STEP_BYTES)
            started = True
            if piece:
                yield piece
            data = reader.unconsumed_tail
    yield reader.flush(_STEP_BYTES)
    if started and not reader.eof:
        raise zlib.error("it ends too early")


def decode_body(body: bytes, declared: str | None) -> tuple[str, str]:
    """
    The text of a body and the charset it was read in.

    Args:
        body: Unpacked.
        declared: Charset of the Content-Type header; None if it names none.

    Returns:
        Text, without a byte order mark; bytes that fit no character become U+FFFD.
        The charset is that of a byte order mark, the header, the document, or else guessed; but what can
        only be UTF-8 is, also where a server says latin-1 as it says of every page.

    >>> decode_body("Größe".encode("cp1252"), "iso-8859-1")
    ('Größe', 'cp1252')
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace"), name
    head = body[:4096]
    in_document = _META_CHARSET.search(head) or _XML_CHARSET.search(head)
    named = [declared, in_document[1].decode("ascii") if in_document else None]
    for label in named:
        charset = _codec(label)
        if charset is not None:
            if charset.startswith("utf-16") and label is not declared:
                charset = "utf-8"  # a document that could be read so far is not UTF-16
            if charset == "cp1252" and (text := _strict_utf8(body)) is not None:
                return text, "utf-8"
            text = body.decode(charset, "replace")
            if text.count("\ufffd") * 200 <= len(text):
                return text, charset
    return _guess(body)


def _codec(label: str | None) -> str | None:
    if not label:
        return None
    name = label.strip().strip("\"'").lower()
    name = _AS_BROWSERS_READ.get(name, name)
    try:
        "".encode(name)
        b"".decode(name)
    except (LookupError, UnicodeError, ValueError):
        return None
    return name


def _guess(body: bytes) -> tuple[str, str]:
    from charset_normalizer import from_bytes  # slow to load, and seldom needed

    text = _strict_utf8(body)
    if text is not None:
        return text, "utf-8"
    best = from_bytes(body[:200_000]).best()
    name = best.encoding if best is not None else "cp1252"
    return body.decode(name, "replace"), name


def _strict_utf8(body: bytes) -> str | None:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None
