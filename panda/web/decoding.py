"""The text of a page's bytes, in the charset of their mark, header, document, or guess. Runs in a worker."""

CHARSETS = frozenset(
    {
        *("utf-8", "utf-16-le", "utf-16-be", "cp866", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"),
        *("iso8859-2", "iso8859-3", "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8"),
        *("iso8859-10", "iso8859-13", "iso8859-14", "iso8859-15", "iso8859-16"),
        *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
        *("gb18030", "big5hkscs", "euc_jp", "iso2022_jp", "cp932", "cp949"),
    }
)
"""Python's codecs for the encodings of the WHATWG list. It has others, which are no charsets or never end."""
_GUESSED_BYTES = 200_000


def decode_body(body: bytes, content_type: str) -> tuple[str, str]:
    """
    Return the text of a body, without byte order mark, and its charset: that of the mark, the header, the
    document, or else guessed; but what can only be UTF-8 is, also where a server says latin-1 as it says of
    every page. Bytes that fit no character become U+FFFD. A charset that the WHATWG list lacks counts for
    nothing.
    """
    from w3lib.encoding import (
        html_body_declared_encoding,
        http_content_type_encoding,
        read_bom,
        to_unicode,
    )

    marked, mark = read_bom(body)
    if marked in CHARSETS and mark is not None:
        return to_unicode(body[len(mark) :], marked), marked
    try:
        as_utf8 = body.decode("utf-8")
    except UnicodeDecodeError:
        as_utf8 = None
    in_header = http_content_type_encoding(content_type)
    if in_header == "utf-16":
        in_header = "utf-16-le"
    for charset in (in_header, html_body_declared_encoding(body)):
        if charset and charset.startswith("utf-16") and charset != in_header:
            charset = "utf-8"  # a document that could be read so far is not UTF-16
        if charset not in CHARSETS or (charset == "cp1252" and as_utf8 is not None):
            continue
        text = to_unicode(body, charset)
        if text.count("\ufffd") * 200 <= len(text):
            return text, charset
    if as_utf8 is not None:
        return as_utf8, "utf-8"
    from charset_normalizer import from_bytes  # slow to load, and seldom needed

    best = from_bytes(body[:_GUESSED_BYTES], cp_isolation=sorted(CHARSETS)).best()
    charset = best.encoding if best is not None else "cp1252"
    return body.decode(charset, "replace"), charset
