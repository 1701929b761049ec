"""Addresses of the web, as they are asked for and compared. Pure."""

from dataclasses import dataclass
from ipaddress import IPv6Address
from urllib.parse import quote, urljoin

from panda.errors import WebError

_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_QUERY_SAFE = "".join(char for char in _PRINTABLE if char not in '"#<>')
_PATH_SAFE = "".join(char for char in _QUERY_SAFE if char not in "?`{}")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MOST_CHARS = 65_536


@dataclass(frozen=True)
class Url:
    """An http or https address in its normal form, without user, password and fragment."""

    scheme: str
    """http or https."""
    host: str
    """In small ASCII letters; an IPv6 address without its brackets."""
    port: int | None
    """None for the port of the scheme."""
    path: str
    """"" or from the first slash on, with what does not belong there percent-encoded, and the query."""

    @property
    def netloc(self) -> str:
        """Host and port as they stand in the address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def target(self) -> str:
        """What is asked of the server."""
        return self.path if self.path.startswith("/") else f"/{self.path}"

    def __str__(self) -> str:
        return self.origin + self.path

    def join(self, location: str) -> "Url":
        """
        The address that a page at this one means by *location*.

        Raises:
            WebError: It cannot be asked for.

        >>> str(parse_url("http://example.org/a/b").join("../c?d#e"))
        'http://example.org/c?d'
        """
        return parse_url(urljoin(str(self), location))


def parse_url(url: str) -> Url:
    """
    An address in its normal form.

    Raises:
        WebError: It cannot be asked for.

    >>> str(parse_url("HTTP://Example.org:80/a b#part")), parse_url("https://bücher.example").host
    ('http://example.org/a%20b', 'xn--bcher-kva.example')
    """
    written = url.strip()
    scheme, found, rest = written.partition("#")[0].partition(":")
    if not found or scheme.lower() not in _DEFAULT_PORTS or not rest.startswith("//"):
        raise WebError("only http and https addresses are read", where=url[:200])
    if len(written) > _MOST_CHARS or any(char < " " or char == "\x7f" for char in written):
        raise WebError("not a URL: it is too long, or holds control characters", where=url[:200])
    front, mark, query = rest[2:].partition("?")
    netloc, slash, path = front.partition("/")
    _, at, place = netloc.rpartition("@")
    if at:
        raise WebError("an address with a user name or password is not read", where=place)
    scheme = scheme.lower()
    host, port = _parse_place(place, where=url[:200])
    path = _without_dots(quote(slash + path, safe=_PATH_SAFE)) + mark + quote(query, safe=_QUERY_SAFE)
    return Url(scheme, host, None if port == _DEFAULT_PORTS[scheme] else port, path)


def _parse_place(place: str, *, where: str) -> tuple[str, int | None]:
    """Host and port."""
    host, colon, port = place.rpartition(":") if not place.endswith("]") else (place, "", "")
    if not colon:
        host, port = place, ""
    try:
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
            IPv6Address(host)
        elif ":" in host:
            raise ValueError("more than one port")
        elif not host.isascii():
            import idna  # takes a while to import

            host = idna.encode(host.lower()).decode("ascii")
        number = int(port) if port else None
    except ValueError as exc:
        raise WebError(f"not a URL: {exc}", where=where) from exc
    if not host:
        raise WebError("only http and https addresses are read", where=where)
    if any(char in ' "#%<>@[\\]^`{|}' for char in host) or (number is not None and not 0 <= number < 65_536):
        raise WebError("not a URL: its host or port cannot be", where=where)
    return host.lower(), number


def _without_dots(path: str) -> str:
    kept: list[str] = []
    for part in path.split("/"):
        if part == ".." and kept and kept != [""]:
            kept.pop()
        elif part not in (".", ".."):
            kept.append(part)
    return "/".join(kept)
