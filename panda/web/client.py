"""Pages from the web: redirects followed, robots.txt kept, limits held, one GET request after another."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from httpx import Headers

from panda.errors import WebError
from panda.web.addresses import AddressRules, Url, parse_url
from panda.web.connection import HttpExchange, RequestDeadline, Resolve, resolve_host
from panda.web.page import Page
from panda.web.page_worker import decode_page, robots_allow

MOST_BYTES = 5_000_000
"""Most bytes of a page, packed and unpacked."""
_STEP_BYTES = 65_536
_REQUEST_HEADERS = {
    "User-Agent": "panda/0.1 (command-line reader; one page at a time)",
    "Accept": "text/html, application/xhtml+xml, application/json;q=0.8, text/plain;q=0.8, */*;q=0.1",
    "Accept-Encoding": "gzip, deflate",
}
_MOST_REDIRECTS = 8
_Headers = Callable[
    [Url], Mapping[str, str | None]
]  # of a request for an address; raises for one not to be asked
_MOST_ROBOTS_BYTES = 512_000
_REDIRECTS = (301, 302, 303, 307, 308)
_PAGE_TYPES = ("text/html", "application/xhtml+xml")
_TEXT_TYPES = ("text/plain", "text/markdown", "application/json", "application/ld+json", "text/csv")


def read_body(chunks: Iterable[bytes], encoding: str, *, where: str, most_bytes: int = MOST_BYTES) -> bytes:
    """The unpacked body; of one that is larger, packed or unpacked, nothing beyond the limit is kept."""
    name = encoding.strip().lower()
    if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise WebError(f"the page is packed as {encoding!r}, which was not asked for", where=where)
    is_packed = name not in ("", "identity")
    packed = _limited(chunks, most_bytes, where)
    try:
        pieces = _limited(_unpack(packed, name), most_bytes, where, " unpacked") if is_packed else packed
        return b"".join(pieces)
    except zlib.error as exc:
        raise WebError(f"the page's {name} data is damaged: {exc}", where=where) from exc


def _limited(chunks: Iterable[bytes], most_bytes: int, where: str, how: str = "") -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most_bytes:
            raise _too_large(most_bytes, where, how)
        yield chunk


def _too_large(most_bytes: int, where: str, how: str = "") -> WebError:
    most = f"{most_bytes / 1e6:g} MB{how}"
    return WebError(f"the page has more than {most}, the most that is read", where=where)


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
            yield piece
            data = reader.unconsumed_tail
    yield reader.flush(_STEP_BYTES)
    if started and not reader.eof:
        raise zlib.error("it ends too early")


@dataclass(frozen=True)
class Validators:
    """What an earlier answer gave for asking whether it still holds."""

    url: str  # the URL that answered, after redirects
    etag: str | None  # its ETag
    last_modified: str | None  # its Last-Modified


class WebClient:
    """Reads pages, each within a time for all of it: names, redirects and robots.txt included."""

    def __init__(
        self, rules: AddressRules, *, timeout_seconds: float = 20.0, resolve: Resolve = resolve_host
    ) -> None:
        self.rules = rules
        self.timeout_seconds = timeout_seconds
        self._resolve = resolve
        self._robots: dict[str, str | None] = {}
        """By origin the text of its robots.txt; None while that fails with a server error."""

    def fetch(
        self,
        url: str,
        validators: Validators | None = None,
        *,
        robots: bool = True,
        check: Callable[[Url], None] | None = None,
    ) -> Page:
        """
        Read one page; with the *validators* of an earlier answer it is only sent again if it has changed.
        Only for addresses that the user configured, robots.txt is not asked. *check* raises for an address
        that may not be asked for.
        """
        asked = parse_url(url)
        with self._answer(asked, validators, robots=robots, check=check) as answer:
            return self._page(asked, answer)

    def load(self, url: str, check: Callable[[Url], None], *, seconds: float) -> tuple[str, bytes]:
        """
        Return the content type and the bytes of what a page embeds, under the rules of pages, within some
        time.
        """
        with self._answer(parse_url(url), None, robots=True, check=check, seconds=seconds) as answer:
            encoding = answer.headers.get("content-encoding", "")
            return answer.headers.get("content-type", ""), read_body(
                answer.body, encoding, where=str(answer.url)
            )

    @contextmanager
    def _answer(
        self,
        asked: Url,
        validators: Validators | None,
        *,
        robots: bool,
        check: Callable[[Url], None] | None,
        seconds: float | None = None,
    ) -> Iterator["_HttpResponse"]:
        left = self.timeout_seconds if seconds is None else min(seconds, self.timeout_seconds)
        exchange = HttpExchange(self.rules, RequestDeadline(left), self._resolve)

        def allowed(at: Url) -> dict[str, str | None]:
            if check is not None:
                check(at)
            return {}

        def headers(at: Url) -> dict[str, str | None]:
            allowed(at)
            if robots:
                self._check_robots(exchange, at, allowed)
            if validators is None or validators.url != str(at):
                return {}
            return {"If-None-Match": validators.etag, "If-Modified-Since": validators.last_modified}

        with _followed(exchange, asked, headers) as answer:
            if answer.status != 304 and not 200 <= answer.status < 300:
                raise WebError(_status_text(answer.status, answer.headers), where=str(answer.url))
            yield answer

    def _page(self, asked: Url, answer: "_HttpResponse") -> Page:
        where = str(answer.url)
        headers = answer.headers
        etag = headers.get("etag")
        last_modified = headers.get("last-modified")
        if answer.status == 304:
            return Page(
                str(asked),
                where,
                media_type="",
                charset=None,
                text=None,
                etag=etag,
                last_modified=last_modified,
            )
        content_type = headers.get("content-type", "")
        media_type = content_type.partition(";")[0].strip().lower() if "/" in content_type else ""
        if media_type and media_type not in _PAGE_TYPES + _TEXT_TYPES:
            raise WebError(f"it is {media_type}, which is not read as a page", where=where)
        if (length := headers.get("content-length", "")).isdigit() and int(length) > MOST_BYTES:
            raise _too_large(MOST_BYTES, where)
        body = read_body(answer.body, headers.get("content-encoding", ""), where=where)
        wide = body.startswith((b"\xff\xfe", b"\xfe\xff")) or "charset=utf-16" in content_type.lower()
        if b"\0" in body[:4096] and not wide:
            raise WebError("it is no text", where=where)
        text, charset = decode_page(body, content_type, where=where)
        media_type = media_type or ("text/html" if text.lstrip()[:1] == "<" else "text/plain")
        return Page(
            str(asked),
            where,
            media_type=media_type,
            charset=charset,
            text=text,
            etag=etag,
            last_modified=last_modified,
        )

    def _check_robots(self, exchange: HttpExchange, url: Url, allowed: _Headers) -> None:
        origin = url.origin
        if origin not in self._robots:
            self._robots[origin] = self._load_robots(exchange, replace(url, path="/robots.txt"), allowed)
        robots = self._robots[origin]
        if robots is None or not (url.path == "/robots.txt" or robots_allow(robots, url)):
            down = "cannot be read now (server error)" if robots is None else None
            why = down or "asks programs not to read this page"
            raise WebError(f"{origin}/robots.txt {why}", where=str(url), fix="open it in a browser")

    def _load_robots(self, exchange: HttpExchange, url: Url, allowed: _Headers) -> str | None:
        with _followed(exchange, url, allowed) as answer:
            if answer.status >= 500:
                return None
            if not 200 <= answer.status < 300:
                return ""
            encoding = answer.headers.get("content-encoding", "")
            where = str(answer.url)
            body = read_body(answer.body, encoding, where=where, most_bytes=_MOST_ROBOTS_BYTES)
            return body.decode("utf-8", "replace")


@dataclass(frozen=True)
class _HttpResponse:
    url: Url  # that answered, after redirects
    status: int  # HTTP status
    headers: Headers  # what came several times is joined
    body: Iterator[bytes]  # its body, piece by piece, as it comes from the wire


@contextmanager
def _followed(exchange: HttpExchange, start: Url, headers: _Headers) -> Iterator[_HttpResponse]:
    at = start
    seen = {str(start)}
    while True:
        own = {name: value for name, value in headers(at).items() if value}
        with exchange.get(at, _REQUEST_HEADERS | own) as response:
            response_headers = Headers(response.headers)
            if response.status not in _REDIRECTS or "location" not in response_headers:
                yield _HttpResponse(at, response.status, response_headers, iter(response.iter_stream()))
                return
        at = _redirected(at, response_headers["location"], seen, start=str(start))


def _redirected(at: Url, location: str, seen: set[str], *, start: str) -> Url:
    target = at.join(location)
    if str(target) in seen:
        raise WebError(f"it redirects in a circle, to {target}", where=start)
    if len(seen) > _MOST_REDIRECTS:
        raise WebError(f"it redirects more than {_MOST_REDIRECTS} times", where=start)
    seen.add(str(target))
    return target


def _status_text(status: int, headers: Headers) -> str:
    texts = {401: "it asks for a login", 403: "it refuses programs", 404: "there is no such page"}
    texts |= {410: "the page is gone", 429: "it is asked too often"}
    text = texts.get(status, "the server is broken or away" if status >= 500 else "no page")
    later = f", try again after {headers['retry-after'][:40]}" if "retry-after" in headers else ""
    return f"HTTP {status}: {text}{later}"
