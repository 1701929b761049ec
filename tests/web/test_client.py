"""Reading pages over real HTTP: limits, redirects, robots.txt, conditional requests, and addresses."""

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api import Ended, ScriptedPanda
from tests.web.site import Site, gzip_bomb, gzipped, running_site, slow

MOST_BYTES = 5_000_000


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


@pytest.fixture
def ann(ann: ScriptedPanda, site: Site) -> ScriptedPanda:
    """Ann may read the site, and nothing else of this machine."""
    ann.environ["PANDA_WEB_ALLOW"] = site.place
    return ann


def fetch(ann: ScriptedPanda, url: str, **environ: str) -> Ended:
    """A page that is read by hand."""
    return ann("tool", "run", "web.fetch", "--args", json.dumps({"url": url}), "--json", **environ)


def texts_of(ann: ScriptedPanda, url: str, **environ: str) -> list[str]:
    """The lines of a page that is read by hand."""
    ended = fetch(ann, url, **environ)
    assert ended.code == 0, ended.out[:500]
    return [claim["text"] for claim in ended.data["claims"]]


def refusal(ann: ScriptedPanda, url: str, **environ: str) -> str:
    """The message with which a page is refused."""
    ended = fetch(ann, url, **environ)
    assert ended.code == 3, ended.out[:500]
    return str(ended.error["message"])


def test_page(ann: ScriptedPanda, site: Site) -> None:
    """A page comes with its text, in the packings that panda reads."""
    assert "Größe" in texts_of(ann, site.add("/a", "<p>Größe</p>"))
    assert site.asked[-1].headers["accept-encoding"] == "gzip, deflate"


def test_redirects(ann: ScriptedPanda, site: Site) -> None:
    """Redirects are followed and the last address is told; a circle and too many of them are refused."""
    site.add("/end", "<p>there</p>")
    site.add("/b", status=302, headers={"Location": "end#part"})
    url = site.add("/a", status=301, headers={"Location": "/b"})
    data = fetch(ann, url).data["data"]
    assert (data["url"], data["final_url"]) == (url, f"{site.root}/end")
    for here, there in (("/c", "/d"), ("/d", "/c")):
        site.add(here, status=302, headers={"Location": there})
    for number in range(12):
        site.add(f"/n{number}", status=302, headers={"Location": f"/n{number + 1}"})
    assert "circle" in refusal(ann, f"{site.root}/c")
    assert "more than 8" in refusal(ann, f"{site.root}/n0")


def test_large_bodies(ann: ScriptedPanda, site: Site) -> None:
    """More than 5 MB is not read: by its length, as it comes, or unpacked; a bomb costs no time."""
    site.add("/stated", b"x" * (MOST_BYTES + 1))
    site.add("/dripped", drip=lambda: iter([b"x" * 1_000_000] * 7))
    site.add("/bomb", gzip_bomb(200), headers={"Content-Encoding": "gzip"})
    started = time.monotonic()
    for path in ("/stated", "/dripped", "/bomb"):
        assert "more than 5 MB" in refusal(ann, site.root + path)
    assert time.monotonic() - started < 15
    assert fetch(ann, site.add("/just", b"x" * MOST_BYTES)).code == 0


def test_packed_bodies(ann: ScriptedPanda, site: Site) -> None:
    """gzip is unpacked; damaged, doubly packed and unknown packings are refused."""
    packed = {"Content-Encoding": "gzip"}
    assert "hello" in texts_of(ann, site.add("/gzip", gzipped("<p>hello</p>"), headers=packed))
    assert "damaged" in refusal(ann, site.add("/cut", gzipped("<p>hello</p>" * 50)[:-6], headers=packed))
    assert "packed" in refusal(ann, site.add("/twice", b"x", headers={"Content-Encoding": "gzip, gzip"}))


@pytest.mark.parametrize("piece", [b"x", b""])
def test_slow_and_endless_bodies(ann: ScriptedPanda, site: Site, piece: bytes) -> None:
    """A body that drips or stands still ends at the deadline, counted over the whole page."""
    site.add("/slow", drip=slow(piece, 0.05))
    started = time.monotonic()
    assert "within 0.6 seconds" in refusal(ann, f"{site.root}/slow", PANDA_WEB_TIMEOUT_SECONDS="0.6")
    assert time.monotonic() - started < 5


def test_types(ann: ScriptedPanda, site: Site) -> None:
    """A file that is no page is refused by its type, or by its bytes if it has none."""
    for body, media_type, message in (
        (b"%PDF-1.7", "application/pdf", "application/pdf"),
        (b"PK\x03\x04\0\0", "", "no text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "text/html; charset=utf-8", "no text"),
    ):
        assert message in refusal(ann, site.add("/a", body, headers={"Content-Type": media_type}))
    url = site.add("/json", '{"a": 1}', headers={"Content-Type": "application/json"})
    assert fetch(ann, url).data["data"]["page_type"] == "data"


@pytest.mark.parametrize(
    ("status", "message"), [(404, "no such page"), (410, "gone"), (503, "after 60"), (403, "refuses")]
)
def test_statuses(ann: ScriptedPanda, site: Site, status: int, message: str) -> None:
    """A page that is not there says so, with its status."""
    refused = refusal(ann, site.add("/a", "x", status=status, headers={"Retry-After": "60"}))
    assert f"HTTP {status}" in refused
    assert message in refused


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
def test_robots(ann: ScriptedPanda, site: Site, text: str, *, allowed: bool) -> None:
    """
    Pages that robots.txt forbids are not asked for. A group is ours only by our whole name; one without a
    name is nobody's; `*` is for the others.
    """
    site.add("/robots.txt", text, headers={"Content-Type": "text/plain"})
    ended = fetch(ann, site.add("/x", "<p>hello</p>"))
    assert [asked.path for asked in site.asked] == ["/robots.txt", *(["/x"] * allowed)]
    assert (ended.code, "asks programs not to" in ended.out) == (0 if allowed else 3, not allowed)


def test_broken_robots(ann: ScriptedPanda, site: Site) -> None:
    """While robots.txt fails with a server error, nothing is read."""
    site.add("/robots.txt", status=500)
    assert "cannot be read now" in refusal(ann, site.add("/open", "x"))


def test_private_addresses_are_refused(ann: ScriptedPanda, site: Site) -> None:
    """Without being allowed, no address of this machine or its network is contacted, by whatever name."""
    port = site.place.partition(":")[2]
    for host in (
        *("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"),
        *("169.254.169.254", "10.0.0.1", "[fe80::1]", "224.0.0.1", "100.64.0.1", "[64:ff9b::7f00:1]"),
    ):
        message = refusal(ann, f"http://{host}:{port}/", PANDA_WEB_ALLOW="")
        assert "which is not contacted" in message, host
    assert site.asked == []


def test_another_port_is_refused(ann: ScriptedPanda, site: Site) -> None:
    """Allowing one server allows no other one; a redirect there is refused before it is contacted."""
    with running_site() as other:
        other.add("/x", "secret")
        url = site.add("/a", status=302, headers={"Location": f"{other.root}/x"})
        assert "which is not contacted" in refusal(ann, url)
        assert other.asked == []


def stand_in(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let names of *.example stand for these addresses, one after the other; gives what is looked up."""
    real = socket.getaddrinfo
    names = list[str]()

    def look_up(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if not str(host).endswith(".example"):
            return real(host, port, *args, **options)
        names.append(str(host))
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        addresses = answers[min(len(names), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return names


def test_names_are_checked_by_their_addresses(
    ann: ScriptedPanda, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A public-looking name that stands for a private address is refused; what is looked up is used once."""
    stand_in(monkeypatch, ["93.184.216.34", "127.0.0.1"])
    assert "news.example (127.0.0.1)" in refusal(ann, "http://news.example/")
    names = stand_in(monkeypatch, ["127.0.0.1"], ["10.0.0.1"])
    site.add("/robots.txt", status=404)
    assert "10.0.0.1" in refusal(ann, f"http://shop.example:{site.place.partition(':')[2]}/")
    assert len(names) == len(site.asked) + 1


def test_no_proxy_is_used(ann: ScriptedPanda, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies that the environment names are not contacted."""
    with running_site() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.root)
        variables = dict.fromkeys(("http_proxy", "HTTP_PROXY", "ALL_PROXY"), proxy.root)
        assert "hello" in texts_of(ann, site.add("/a", "<p>hello</p>"), **variables)
        assert proxy.asked == []


def test_away_and_unknown(ann: ScriptedPanda, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is away and a name that does not exist are told apart."""
    site.close()
    assert "no connection" in refusal(ann, f"{site.root}/")
    stand_in(monkeypatch)
    assert "no such host" in refusal(ann, "http://nowhere.example/")


@pytest.mark.parametrize("entry", ["http://a", "1.2.3", "a b", "-x"])
def test_allowed_entries(ann: ScriptedPanda, entry: str) -> None:
    """Entries of web_allow are hosts, addresses or blocks; anything else is refused."""
    ended = fetch(ann, "http://a.example/", PANDA_WEB_ALLOW=entry)
    assert ended.code in (2, 3)
    assert entry in ended.error["message"] + str(ended.error["where"])


def test_hosts_are_allowed_in_any_case(
    ann: ScriptedPanda, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name of a host is the same in capitals."""
    stand_in(monkeypatch, ["127.0.0.1"])
    url = site.add("/a", "<p>hello</p>").replace("127.0.0.1", "wiki.example")
    assert "hello" in texts_of(ann, url, PANDA_WEB_ALLOW="Wiki.Example")


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://a.example/", "file:///etc/passwd", "http://", "http://u:p@a.example/", "x", "x.org"),
        *("https://", "https://x:y", "https://a:b:1", "https://[x]/", "http://a b/", "http://a@b/"),
    ],
)
def test_what_is_no_web_address(ann: ScriptedPanda, url: str) -> None:
    """Only http and https addresses without credentials are read."""
    assert fetch(ann, url).code in (2, 3)
