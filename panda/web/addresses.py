"""Addresses of the web: URLs as they are asked for and compared, and which hosts may be contacted. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urljoin

from panda.documents.secrets import hide_userinfo
from panda.errors import UsageError, WebError

_DOTS_AT_END = re.compile(r"\A([^?#]*/\.\.?)(?=[?#]|\Z)")
_MAX_CHARS = 8_000
_NAT64 = ip_network("64:ff9b::/96")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")


@dataclass(frozen=True)
class Url:
    """An http or https address in its normal form, without user, password and fragment."""

    scheme: str  # http or https
    host: str  # in small ASCII letters; an IPv6 address without its brackets
    port: int | None  # none for the port of the scheme
    path: str  # "" or from the first slash on, with what does not belong there percent-encoded, and the query

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.netloc}"

    @property
    def target(self) -> str:
        return self.path if self.path.startswith("/") else f"/{self.path}"

    def __str__(self) -> str:
        return self.origin + self.path

    def join(self, location: str) -> "Url":
        """The address that a page at this one means by *location*; WebError if it cannot be asked for."""
        _check_length(location)
        return parse_url(urljoin(str(self), location))


def parse_url(url: str) -> Url:
    """
    An address in its normal form; WebError if it cannot be asked for.

    >>> str(parse_url("HTTP://Example.org:80/a b#part")), parse_url("https://bücher.example").host
    ('http://example.org/a%20b', 'xn--bcher-kva.example')
    """
    import httpx  # takes a while to import

    where = hide_userinfo(url)[:200]
    _check_length(url)
    try:  # what dots at the end lead to is a directory, of which httpx takes the slash
        parsed = httpx.URL(_DOTS_AT_END.sub(r"\1/", url.strip())).copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError) as exc:
        reason = "what stands before its @ cannot be" if "@" in url else str(exc)
        raise WebError(f"not a URL: {reason}", where=where) from exc
    host = parsed.raw_host.decode("ascii").lower()
    port = parsed.port
    if parsed.scheme not in ("http", "https") or not host:
        raise WebError("only http and https addresses are read", where=where)
    if parsed.userinfo:
        raise WebError("an address with a user name or password is not read", where=host)
    if set(host) & set("%\\|") or (port is not None and not 0 <= port < 65_536):
        raise WebError("not a URL: its host or port cannot be", where=where)
    front = f"{parsed.scheme}://{parsed.netloc.decode()}"
    return Url(parsed.scheme, host, port, str(parsed).removeprefix(front))


def _check_length(url: str) -> None:
    if len(url) > _MAX_CHARS:
        message = f"an address of {len(url):,} characters is not read, at most {_MAX_CHARS:,}"
        raise WebError(message, where=f"{hide_userinfo(url)[:80]}…")


@dataclass(frozen=True)
class AllowedPlace:
    text: str  # as the user wrote it
    host: str | None  # host name in small letters; None for addresses
    network: IPv4Network | IPv6Network | None  # Addresses; None for a host name
    port: int | None  # the only port that is allowed; None allows every one


def parse_allowed(text: str) -> AllowedPlace:
    """
    An entry of web_allow: a host name, an address or a CIDR block, with a port or without.

    >>> parse_allowed("10.0.0.0/8").network, parse_allowed("wiki.local:8080").port
    (IPv4Network('10.0.0.0/8'), 8080)
    >>> parse_allowed("[::1]:80").network
    IPv6Network('::1/128')
    """
    body = text.strip().lower()
    port = None
    with_port = re.fullmatch(r"(?:\[([^\]]+)\]|([^:\[\]]+)):(\d{1,5})", body)
    if with_port and 0 < int(with_port[3]) < 65_536:
        body = with_port[1] or with_port[2]
        port = int(with_port[3])
    body = body.removeprefix("[").removesuffix("]")
    try:
        return AllowedPlace(text, None, ip_network(body, strict=False), port)
    except ValueError:
        if not _HOST.fullmatch(body) or body.replace(".", "").isdigit():
            raise UsageError(
                f"{text!r} is no host, address or CIDR block",
                fix='give entries as in ["127.0.0.1:8080", "10.0.0.0/8", "wiki.local"]',
            ) from None
        return AllowedPlace(text, body, None, port)


def parse_places(value: object) -> tuple[str, ...]:
    """
    The entries of web_allow, checked, from a list or from one text with commas between them.

    >>> parse_places("127.0.0.1:8080, wiki.local")
    ('127.0.0.1:8080', 'wiki.local')
    """
    entries = value.split(",") if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise UsageError(
            "web_allow is no list of texts", fix='give a list, as in ["127.0.0.1:8080", "10.0.0.0/8"]'
        )
    return tuple(parse_allowed(entry.strip()).text for entry in entries)


@dataclass(frozen=True)
class AddressRules:
    allowed: tuple[AllowedPlace, ...] = ()  # what the user allows beside public addresses

    def check(self, host: str, port: int, addresses: Sequence[str]) -> None:
        """Raises unless every address of a host may be contacted: one private address refuses all."""
        for address in addresses:
            kind = private_kind(address)
            if kind is not None and not self._allows(host.lower().rstrip("."), port, address):
                named = address if address == host else f"{host} ({address})"
                raise WebError(
                    f"{named} is a {kind} address, which is not contacted",
                    where=f"{host}:{port}",
                    fix=f'allow it in panda.toml, as in web_allow = ["{host}:{port}"]',
                )

    def names(self, url: Url) -> bool:
        """Return whether the user allows the host of an address as it is written there."""
        try:
            address = str(ip_address(url.host))
        except ValueError:
            address = None
        return self._allows(url.host, url.port or (443 if url.scheme == "https" else 80), address)

    def _allows(self, host: str, port: int, address: str | None) -> bool:
        ip = _plain(address) if address else None
        for place in self.allowed:
            if place.port not in (None, port):
                continue
            if place.host == host or (ip is not None and place.network is not None and ip in place.network):
                return True
        return False


def _plain(address: str) -> IPv4Address | IPv6Address:
    """The address that is meant: without a scope, and an IPv4 address that is wrapped in IPv6 unwrapped."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv4Address):
        return ip
    wrapped = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
    if wrapped is None and (ip in _NAT64 or (int(ip) >> 32 == 0 and int(ip) > 1)):
        wrapped = IPv4Address(int(ip) & 0xFFFFFFFF)
    return wrapped or ip


def private_kind(address: str) -> str | None:
    """
    Why an address is not public; None if it is.

    >>> private_kind("::ffff:127.0.0.1"), private_kind("169.254.169.254"), private_kind("10.1.2.3")
    ('loopback', 'link-local', 'private')
    >>> private_kind("93.184.216.34")
    """
    ip = _plain(address)
    for name in ("unspecified", "loopback", "link_local", "multicast", "site_local", "reserved", "private"):
        if getattr(ip, f"is_{name}", False):
            return name.replace("_", "-")
    return None if ip.is_global else "non-public"
