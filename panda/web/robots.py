"""The rules of a robots.txt. Runs in a worker."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded where it is needed
    from protego import Protego

AGENT = "panda"
"""Name in requests and in robots.txt."""
_VERSION = re.compile(r"^([ \t]*user-agent[ \t]*:[ \t]*[a-z_-]+)/.*$", re.IGNORECASE | re.MULTILINE)


def may_fetch(text: str, url: str) -> bool:
    """
    Return whether the robots.txt of its host allows panda to read an address.

    >>> may_fetch("User-agent: *\\nDisallow: /private", "http://a.example/private/x")
    False
    """
    return parse_robots(text).can_fetch(url, AGENT)


def parse_robots(text: str) -> "Protego":
    """Its rules; programs that it names with a version are meant without."""
    from protego import Protego

    return Protego.parse(_VERSION.sub(r"\1", text.removeprefix("\ufeff")))
