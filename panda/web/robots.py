"""robots.txt (RFC 9309): which paths of a site a program may read. Pure."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

_TOKEN = re.compile(r"[a-z_-]+|\*")
_LINE = re.compile(r"\s*([A-Za-z-]+)\s*:\s*([^#]*?)\s*(?:#.*)?\Z")


@dataclass(frozen=True)
class RobotsRules:
    """The rules of one robots.txt for one program."""

    rules: tuple[tuple[bool, str], ...] = ()
    """(allowed, path pattern), in the order of the file."""

    def allows(self, path: str) -> bool:
        """
        Whether a path may be read: the longest pattern that matches decides, an allowing one on a tie.

        Args:
            path: Path with query, as it stands in the URL.

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
    """
    The rules for a program: those of the groups that name it, else those of `*`.

    Args:
        text: The file. Lines "User-agent:" without a name begin a group that is nobody's.
        agent: Name of the program, without version; compared whole, in any case.

    >>> parse_robots("User-agent: other\\nDisallow: /\\n\\nUser-agent: *\\nDisallow: /x", "panda").rules
    ((False, '/x'),)
    """
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
