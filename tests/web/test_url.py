"""Addresses in their normal form: as httpx writes them, which saved visits go by."""

import httpx
import pytest

from panda.web.addresses import parse_url


@pytest.mark.parametrize(
    "url",
    [
        "HTTP://Exa_mple.COM:80/a b/ü?q=ä b&x=%41#frag",
        "https://x.org/a|b^c[d]{e}\"<>`?`{}'",
        "https://x.org/../a/./b/../c",
        "https://x.org//a/%zz%2f?",
        "https://x.org?a=b+c",
        "http://x.org:443/;p=1",
        "https://例え.テスト/パス",
        "https://[::1]:8080/",
    ],
)
def test_normal_form(url: str) -> None:
    """Nothing but the fragment is lost, and only what has to be is percent-encoded."""
    assert str(parse_url(url)) == str(httpx.URL(url).copy_with(fragment=None))


def test_dots_at_the_end() -> None:
    """A path that ends in dots is that of a directory (RFC 3986, 5.2.4)."""
    assert [str(parse_url(f"https://x.org{path}")) for path in ("/a/b/..", "/a/.", "/..")] == [
        "https://x.org/a/",
        "https://x.org/a/",
        "https://x.org/",
    ]
