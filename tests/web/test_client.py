"""Reading pages over real HTTP: limits, redirects, robots.txt, conditional requests, and addresses."""

import time
from collections.abc import Callable, Iterator

import pytest

from panda.errors import UsageError, WebError
from panda.web.addresses import AddressRules, parse_allowed, private_kind
from panda.web.client import MOST_BYTES, Validators, WebClient
from panda.web.page import Page
from panda.web.robots import may_fetch
from tests.web.site import Site, gzip_bomb, gzipped, running_site, slow


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


def client(site: Site, *, seconds: float = 10.0, allow: str | None = None) -> WebClient:
    """A client that may contact the site, and nothing else of this machine."""
    return WebClient(AddressRules((parse_allowed(allow or site.place),)), timeout_seconds=seconds)


def fetch(site: Site, url: str, *, seconds: float = 10.0) -> Page:
    return client(site, seconds=seconds).fetch(url)


def refusal(act: Callable[[], object]) -> str:
    """The message with which something is refused."""
    with pytest.raises(WebError) as caught:
        act()
    return caught.value.message


def test_page(site: Site) -> None:
    """A page comes with its text, its type and its stamps."""
    url = site.add(
        "/a", "<p>Größe</p>", headers={"ETag": '"1"', "Last-Modified": "Sun, 04 Jan 2026 10:00:00 GMT"}
    )
    page = fetch(site, url)
    assert (page.text, page.media_type, page.charset) == ("<p>Größe</p>", "text/html", "utf-8")
    assert (page.etag, page.last_modified) == ('"1"', "Sun, 04 Jan 2026 10:00:00 GMT")
    assert site.asked[-1].headers["accept-encoding"] == "gzip, deflate"


def test_conditional_request(site: Site) -> None:
    """With the stamps of an earlier visit the page is sent only if it has changed."""
    url = site.add("/a", "x", headers={"ETag": '"1"'})
    known = Validators(url, '"1"', None)
    assert client(site).fetch(url, known).text is None
    assert site.asked[-1].headers["if-none-match"] == '"1"'
    site.add("/a", "y", headers={"ETag": '"2"'})
    assert client(site).fetch(url, known).text == "y"


def test_redirects(site: Site) -> None:
    """Redirects are followed and the last address is told; stamps go only to the address that gave them."""
    site.add("/end", "<p>there</p>")
    site.add("/b", status=302, headers={"Location": "end#part"})
    url = site.add("/a", status=301, headers={"Location": "/b"})
    page = client(site).fetch(url, Validators(f"{site.root}/end", '"1"', None))
    assert (page.url, page.final_url, page.text) == (url, f"{site.root}/end", "<p>there</p>")
    assert ["if-none-match" in asked.headers for asked in site.asked] == [False, False, False, True]


def test_redirect_circle_and_chain(site: Site) -> None:
    """A circle of redirects and too many of them are refused."""
    for here, there in (("/a", "/b"), ("/b", "/a")):
        site.add(here, status=302, headers={"Location": there})
    for n in range(12):
        site.add(f"/n{n}", status=302, headers={"Location": f"/n{n + 1}"})
    assert "circle" in refusal(lambda: fetch(site, f"{site.root}/a"))
    assert "more than 8" in refusal(lambda: fetch(site, f"{site.root}/n0"))


def test_large_bodies(site: Site) -> None:
    """More than 5 MB is not read: by its length, as it comes, or unpacked; a bomb costs no time."""
    site.add("/stated", b"x" * (MOST_BYTES + 1))
    site.add("/dripped", drip=lambda: iter([b"x" * 1_000_000] * 7))
    bomb = {"Content-Encoding": "gzip"}
    site.add("/bomb", gzip_bomb(200), headers=bomb)
    site.add("/just", b"x" * MOST_BYTES)
    started = time.monotonic()
    for path in ("/stated", "/dripped", "/bomb"):
        assert "more than 5 MB" in refusal(lambda path=path: fetch(site, site.root + path))  # type: ignore[misc]
    assert time.monotonic() - started < 5
    assert len(fetch(site, f"{site.root}/just").text or "") == MOST_BYTES


def test_packed_bodies(site: Site) -> None:
    """gzip is unpacked; damaged, doubly packed and unknown packings are refused."""
    site.add("/gzip", gzipped("<p>hello</p>"), headers={"Content-Encoding": "gzip"})
    site.add("/cut", gzipped("<p>hello</p>" * 50)[:-6], headers={"Content-Encoding": "gzip"})
    site.add("/twice", b"x", headers={"Content-Encoding": "gzip, gzip"})
    assert fetch(site, f"{site.root}/gzip").text == "<p>hello</p>"
    assert "damaged" in refusal(lambda: fetch(site, f"{site.root}/cut"))
    assert "packed" in refusal(lambda: fetch(site, f"{site.root}/twice"))


@pytest.mark.parametrize("piece", [b"x", b""])
def test_slow_and_endless_bodies(site: Site, piece: bytes) -> None:
    """A body that drips or stands still ends at the deadline, counted over the whole page."""
    site.add("/slow", drip=slow(piece, 0.05))
    started = time.monotonic()
    assert "within 0.6 seconds" in refusal(lambda: fetch(site, f"{site.root}/slow", seconds=0.6))
    assert time.monotonic() - started < 3


def test_types(site: Site) -> None:
    """What is no page is refused by its type, or by its bytes where it has none."""
    site.add("/pdf", b"%PDF-1.7", headers={"Content-Type": "application/pdf"})
    site.add("/zip", b"PK\x03\x04\0\0", headers={"Content-Type": ""})
    site.add("/image", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", headers={"Content-Type": "text/html; charset=utf-8"})
    site.add("/json", '{"a": 1}', headers={"Content-Type": "application/json"})
    assert "application/pdf" in refusal(lambda: fetch(site, f"{site.root}/pdf"))
    assert "no text" in refusal(lambda: fetch(site, f"{site.root}/zip"))
    assert "no text" in refusal(lambda: fetch(site, f"{site.root}/image"))
    assert fetch(site, f"{site.root}/json").media_type == "application/json"


@pytest.mark.parametrize(
    ("status", "says"), [(404, "no such page"), (410, "gone"), (503, "after 60"), (403, "refuses")]
)
def test_statuses(site: Site, status: int, says: str) -> None:
    """A page that is not there says so, with its status."""
    url = site.add("/a", "x", status=status, headers={"Retry-After": "60"})
    message = refusal(lambda: fetch(site, url))
    assert f"HTTP {status}" in message
    assert says in message


def test_robots(site: Site) -> None:
    """Pages that robots.txt forbids are not asked for; robots.txt is read once."""
    site.add("/robots.txt", "User-agent: *\nDisallow: /private\n", headers={"Content-Type": "text/plain"})
    site.add("/open", "x")
    site.add("/private/a", "y")
    reader = client(site)
    reader.fetch(f"{site.root}/open")
    assert "asks programs not to" in refusal(lambda: reader.fetch(f"{site.root}/private/a"))
    assert [asked.path for asked in site.asked] == ["/robots.txt", "/open"]


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("User-agent:\nAllow: /\n\nUser-agent: *\nDisallow: /x", False),
        ("User-agent: a\nAllow: /\n\nUser-agent: *\nDisallow: /x", False),
        ("User-agent: pandas\nAllow: /\n\nUser-agent: *\nDisallow: /x", False),
        ("User-agent:\nDisallow: /", True),
        ("User-agent: and\nDisallow: /x", True),
        ("User-agent: Panda/2.0\nDisallow: /x\n\nUser-agent: *\nAllow: /", False),
        ("User-agent: other\nUser-agent: panda\nAllow: /x\n\nUser-agent: *\nDisallow: /", True),
        ("User-agent: panda\nDisallow: /y\n\nUser-agent: panda\nDisallow: /x", False),
        ("User-agent: *\nDisallow: /y\n\nUser-agent: *\nDisallow: /x", False),
    ],
)
def test_groups_of_robots(text: str, *, allowed: bool) -> None:
    """A group is ours only by our whole name; one without a name is nobody's; `*` is for the others."""
    assert may_fetch(text, "http://a.example/x") == allowed


def test_broken_robots(site: Site) -> None:
    """While robots.txt fails with a server error, nothing is read."""
    site.add("/robots.txt", status=500)
    site.add("/open", "x")
    assert "cannot be read now" in refusal(lambda: fetch(site, f"{site.root}/open"))


def test_private_addresses_are_refused(site: Site) -> None:
    """Without being allowed, no address of this machine or its network is contacted, by whatever name."""
    reader = WebClient(AddressRules())
    port = site.place.partition(":")[2]
    hosts = ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0")
    for host in (
        *hosts,
        "169.254.169.254",
        "10.0.0.1",
        "[fe80::1]",
        "224.0.0.1",
        "100.64.0.1",
        "[64:ff9b::7f00:1]",
    ):
        message = refusal(lambda host=host: reader.fetch(f"http://{host}:{port}/"))  # type: ignore[misc]
        assert "which is not contacted" in message, host
    assert site.asked == []


def test_another_port_is_refused(site: Site) -> None:
    """Allowing one server allows no other one; a redirect there is refused before it is contacted."""
    with running_site() as other:
        other.add("/x", "secret")
        url = site.add("/a", status=302, headers={"Location": f"{other.root}/x"})
        assert "which is not contacted" in refusal(lambda: fetch(site, url))
        assert other.asked == []


def test_names_are_checked_by_their_addresses(site: Site) -> None:
    """A public-looking name that stands for a private address is refused; the answer is used once."""
    answers = iter([["93.184.216.34", "127.0.0.1"], ["127.0.0.1"]])
    reader = WebClient(AddressRules(), resolve=lambda host, port: next(answers))
    assert "news.example (127.0.0.1)" in refusal(lambda: reader.fetch("http://news.example/"))
    port = int(site.place.partition(":")[2])
    lookups: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        lookups.append(host)
        return ["127.0.0.1"] if len(lookups) == 1 else ["10.0.0.1"]

    site.add("/robots.txt", status=404)
    reader = WebClient(AddressRules((parse_allowed(f"127.0.0.1:{port}"),)), resolve=resolve)
    assert "10.0.0.1" in refusal(lambda: reader.fetch(f"http://shop.example:{port}/"))
    assert len(lookups) == len(site.asked) + 1


def test_no_proxy_is_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies that the environment names are not contacted."""
    with running_site() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.root)
        assert fetch(site, site.add("/a", "x")).text == "x"
        assert proxy.asked == []


@pytest.mark.parametrize(
    "url", ["ftp://a.example/", "file:///etc/passwd", "http://", "http://u:p@a.example/", "x"]
)
def test_what_is_no_web_address(site: Site, url: str) -> None:
    """Only http and https addresses without credentials are read."""
    assert refusal(lambda: fetch(site, url))


def test_away_and_unknown(site: Site) -> None:
    """A server that is away and a name that does not exist are told apart."""
    site.close()
    assert "no connection" in refusal(lambda: fetch(site, f"{site.root}/"))

    def resolve(host: str, port: int) -> list[str]:
        raise OSError("unknown")

    assert "no such host" in refusal(
        lambda: WebClient(AddressRules(), resolve=resolve).fetch("http://nowhere.example/")
    )


def test_allowed_entries() -> None:
    """Entries of web_allow are hosts, addresses or blocks; anything else is refused."""
    assert parse_allowed("Wiki.Local").host == "wiki.local"
    assert private_kind("8.8.8.8") is None
    for wrong in ("", "http://a", "1.2.3", "a b", "-x"):
        with pytest.raises(UsageError):
            parse_allowed(wrong)
