"""Pages from the web: redirects followed, robots.txt kept, limits held, one GET request after another."""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.message import Message
from urllib.parse import unquote

from panda.errors import WebError
from panda.web.addresses import AddressRules, Url, parse_url
from panda.web.connection import Deadline, Exchange, Resolve, resolve_host

_TOKEN = re.compile(r"[a-z_-]+|\*")
_LINE = re.compile(r"\s*([A-Za-z-]+)\s*:\s*([^#]*?)\s*(?:#.*)?\Z")
MOST_BYTES = 5_000_000
"""Most bytes of a page, packed and unpacked."""
_STEP_BYTES = 65_536
_META_CHARSET = re.compile(rb"<meta[^>]{0,400}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_XML_CHARSET = re.compile(
    rb"\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE
)
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_AS_BROWSERS_READ = {
    label: codec
    for codec, labels in {
        "cp1252": "iso-8859-1 latin1 latin-1 us-ascii ascii x-user-defined",
        "cp1254": "iso-8859-9",
        "gb18030": "gb2312 gbk",
        "cp932": "shift_jis shift-jis sjis x-sjis",
        "cp949": "euc-kr ks_c_5601-1987",
        "cp874": "tis-620",
        "utf-8": "utf8",
    }.items()
    for label in labels.split()
}
AGENT = "panda"
"""Name in requests and in robots.txt."""
_REQUEST_HEADERS = {
    "User-Agent": "panda/0.1 (command-line reader; one page at a time)",
    "Accept": "text/html, application/xhtml+xml, application/json;q=0.8, text/plain;q=0.8, */*;q=0.1",
    "Accept-Encoding": "gzip, deflate",
}
_MOST_REDIRECTS = 8
_MOST_ROBOTS_BYTES = 512_000
_REDIRECTS = (301, 302, 303, 307, 308)
_PAGE_TYPES = ("text/html", "application/xhtml+xml")
_TEXT_TYPES = ("text/plain", "text/markdown", "application/json", "application/ld+json", "text/csv")


@dataclass(frozen=True)
class RobotsRules:
    rules: tuple[tuple[bool, str], ...] = ()  # (allowed, path pattern), in the order of the file

    def allows(self, path: str) -> bool:
        """
        Whether a path may be read: the longest pattern that matches decides, an allowing one on a tie.

        >>> rules = parse_robots("User-agent: *\\nDisallow: /cart\\nAllow: /cart/help$", "panda")
        >>> rules.allows("/cart/1"), rules.allows("/cart/help"), rules.allows("/")
        (False, True, True)
        """
        if path == "/robots.txt":
            return True
        found = [(len(pattern), allowed) for allowed, pattern in self.rules if _matches(pattern, path)]
        return max(found)[1] if found else True


DENY_ALL = RobotsRules(((False, "/"),))
"""What holds while a site cannot say: its robots.txt fails with a server error."""


def parse_robots(text: str, agent: str) -> RobotsRules:
    """The rules for a program, named without version: those of the groups that name it, else those of `*`."""
    groups: dict[str, list[tuple[bool, str]]] = {"*": []}
    names: list[str] = []
    in_rules = False
    for line in text.removeprefix("\ufeff").splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        key, value = match[1].lower(), match[2]
        if key == "user-agent":
            token = _TOKEN.match(value.lower())
            names = [*([] if in_rules else names), *([token[0]] if token else [])]
            in_rules = False
            groups |= {name: [] for name in names if name not in groups}
        elif key in ("allow", "disallow"):
            in_rules = True
            for name in names if value else ():
                groups[name].append((key == "allow", value))
    return RobotsRules(tuple(groups.get(agent.lower(), groups["*"])))


def _matches(pattern: str, path: str) -> bool:
    ends = pattern.endswith("$")
    parts = [unquote(part) for part in pattern.removesuffix("$").split("*")]
    rest = unquote(path)
    if not rest.startswith(parts[0]):
        return False
    at = len(parts[0])
    for part in parts[1:]:
        found = rest.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return not ends or at == len(rest) or (len(parts) > 1 and (not parts[-1] or rest.endswith(parts[-1])))


def read_body(chunks: Iterable[bytes], encoding: str, *, where: str, most_bytes: int = MOST_BYTES) -> bytes:
    """The unpacked body; of one that is larger, packed or unpacked, nothing beyond the limit is kept."""
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
                raise _too_large(most_bytes, where, " unpacked")
            parts.append(piece)
    except zlib.error as exc:
        raise WebError(f"the page's {name} data is damaged: {exc}", where=where) from exc
    return b"".join(parts)


def _too_large(most_bytes: int, where: str, how: str = "") -> WebError:
    return WebError(
        f"the page has more than {most_bytes / 1e6:g} MB{how}, the most that is read", where=where
    )


def _limited(chunks: Iterable[bytes], most_bytes: int, where: str) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most_bytes:
            raise _too_large(most_bytes, where)
        yield chunk


def _unpack(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
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
    The text of a body, without byte order mark, and its charset: that of the mark, the header (*declared*),
    the document, or else guessed; but what can only be UTF-8 is, also where a server says latin-1 as it says
    of every page. Bytes that fit no character become U+FFFD.
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


@dataclass(frozen=True)
class Validators:
    """What an earlier answer gave for asking whether it still holds."""

    url: str  # the URL that answered, after redirects
    etag: str | None  # its ETag
    last_modified: str | None  # its Last-Modified


@dataclass(frozen=True)
class Page:
    url: str  # as it was asked for, normalised
    final_url: str  # the URL that answered, after redirects
    media_type: str  # text/html, application/json, …; "" if not modified
    charset: str | None  # in which the text was read; None if not modified
    text: str | None  # the body; None if it is the same as at the earlier visit (304)
    etag: str | None  # ETag as given
    last_modified: str | None  # Last-Modified as given


class WebClient:
    """Reads pages, each within a time for all of it: names, redirects and robots.txt included."""

    def __init__(
        self, rules: AddressRules, *, timeout_seconds: float = 20.0, resolve: Resolve = resolve_host
    ) -> None:
        self._rules = rules
        self._timeout_seconds = timeout_seconds
        self._resolve = resolve
        self._robots: dict[str, RobotsRules] = {}

    def fetch(self, url: str, known: Validators | None = None, *, robots: bool = True) -> Page:
        """
        Read one page; one that is *known* is only sent again if it has changed. Only for addresses that the
        user configured, robots.txt is not asked.
        """
        asked = parse_url(url)
        exchange = Exchange(self._rules, Deadline(self._timeout_seconds), self._resolve)

        def headers(at: Url) -> dict[str, str | None]:
            if robots:
                self._check_robots(exchange, at)
            if known is None or known.url != str(at):
                return {}
            return {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}

        with _followed(exchange, asked, headers) as answer:
            return self._page(asked, answer)

    def _page(self, asked: Url, answer: "_Answer") -> Page:
        where, headers = str(answer.url), answer.headers
        stamps = (headers.get("etag"), headers.get("last-modified"))
        if answer.status == 304:
            return Page(str(asked), where, "", None, None, *stamps)
        if not 200 <= answer.status < 300:
            raise WebError(_status_text(answer.status, headers), where=where)
        media_type, charset = _content_type(headers.get("content-type", ""))
        if media_type and media_type not in _PAGE_TYPES + _TEXT_TYPES:
            raise WebError(f"it is {media_type}, which is not read as a page", where=where)
        if (length := headers.get("content-length", "")).isdigit() and int(length) > MOST_BYTES:
            raise _too_large(MOST_BYTES, where)
        body = read_body(answer.body, headers.get("content-encoding", ""), where=where)
        wide = body.startswith((b"\xff\xfe", b"\xfe\xff")) or (charset or "").lower().startswith("utf-16")
        if b"\0" in body[:4096] and not wide:
            raise WebError("it is no text", where=where)
        text, read_as = decode_body(body, charset)
        media_type = media_type or ("text/html" if text.lstrip()[:1] == "<" else "text/plain")
        return Page(str(asked), where, media_type, read_as, text, *stamps)

    def _check_robots(self, exchange: Exchange, url: Url) -> None:
        origin = url.origin
        if origin not in self._robots:
            self._robots[origin] = self._load_robots(exchange, replace(url, path="/robots.txt"))
        if not self._robots[origin].allows(url.target):
            down = self._robots[origin] is DENY_ALL
            why = "cannot be read now (server error)" if down else "asks programs not to read this page"
            raise WebError(f"{origin}/robots.txt {why}", where=str(url), fix="open it in a browser")

    def _load_robots(self, exchange: Exchange, url: Url) -> RobotsRules:
        with _followed(exchange, url, lambda at: {}) as answer:
            if answer.status >= 500:
                return DENY_ALL
            if not 200 <= answer.status < 300:
                return RobotsRules()
            encoding, where = answer.headers.get("content-encoding", ""), str(answer.url)
            body = read_body(answer.body, encoding, where=where, most_bytes=_MOST_ROBOTS_BYTES)
            return parse_robots(body.decode("utf-8", "replace"), AGENT)


@dataclass(frozen=True)
class _Answer:
    url: Url  # that answered, after redirects
    status: int  # HTTP status
    headers: Mapping[str, str]
    """Its headers by their names in small letters; what came several times is joined."""
    body: Iterator[bytes]  # its body, piece by piece, as it comes from the wire


@contextmanager
def _followed(
    exchange: Exchange, start: Url, headers: Callable[[Url], Mapping[str, str | None]]
) -> Iterator[_Answer]:
    at, seen = start, {str(start)}
    while True:
        own = {name: value for name, value in headers(at).items() if value}
        with exchange.get(at, _REQUEST_HEADERS | own) as response:
            own_headers: dict[str, str] = {}
            for name, value in response.headers:
                key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
                own_headers[key] = f"{own_headers[key]}, {text}" if key in own_headers else text
            if response.status not in _REDIRECTS or "location" not in own_headers:
                yield _Answer(at, response.status, own_headers, iter(response.iter_stream()))
                return
        at = _redirected(at, own_headers["location"], seen, start=str(start))


def _redirected(at: Url, location: str, seen: set[str], *, start: str) -> Url:
    target = at.join(location)
    if str(target) in seen:
        raise WebError(f"it redirects in a circle, to {target}", where=start)
    if len(seen) > _MOST_REDIRECTS:
        raise WebError(f"it redirects more than {_MOST_REDIRECTS} times", where=start)
    seen.add(str(target))
    return target


def _content_type(value: str) -> tuple[str, str | None]:
    message = Message()
    message["content-type"] = value or "application/x-unknown"
    charset = message.get_param("charset")
    media_type = message.get_content_type() if "/" in value else ""
    return media_type, charset if isinstance(charset, str) else None


def _status_text(status: int, headers: Mapping[str, str]) -> str:
    known = {401: "it asks for a login", 403: "it refuses programs", 404: "there is no such page"}
    known |= {410: "the page is gone", 429: "it is asked too often"}
    text = known.get(status, "the server is broken or away" if status >= 500 else "no page")
    later = f", try again after {headers['retry-after'][:40]}" if "retry-after" in headers else ""
    return f"HTTP {status}: {text}{later}"
