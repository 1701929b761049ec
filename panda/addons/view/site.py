"""
The pages as one site: where each is, what it shows, and links that fit where it stands.

A page is added by a line in PAGES, a template in templates/ that extends frame.html.j2, and a function that
gives what it shows; if people should find it from everywhere, by a line in NAVIGATION.
"""

import hashlib
import posixpath
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from panda import __version__
from panda.addons.view.answer import render_markdown
from panda.addons.view.comparison import load_comparison
from panda.addons.view.formats import FILTERS
from panda.addons.view.intervention_page import load_interventions
from panda.addons.view.memory_pages import address_of, belief, load_memory, load_value, value_text
from panda.addons.view.runs import load_run, load_run_list, run_names
from panda.addons.view.sessions import load_session_list, load_session_page, session_names
from panda.addons.view.shelf import Load, PageQuery, Shelf
from panda.addons.view.stats import load_stats
from panda.addons.view.turn_file import load_turn_file
from panda.addons.view.turn_list import load_turn_list
from panda.addons.view.turn_page import load_turn
from panda.documents.safe_text import visible
from panda.errors import NotFoundError, Problem, UsageError

PAGES: tuple[tuple[str, str, Load], ...] = (
    ("", "turn_list", load_turn_list),
    ("turns/{user}", "turn_list", load_turn_list),
    ("turns/{user}/before/{before}", "turn_list", load_turn_list),
    ("turns/{user}/{turn}", "turn", load_turn),
    ("turns/{user}/{turn}/files/{name:path}", "turn_file", load_turn_file),
    ("memory/{user}", "memory", load_memory),
    ("memory/{user}/page/{place}", "memory", load_memory),
    ("memory/{user}/{value}", "value", load_value),
    ("sessions/{user}", "session_list", load_session_list),
    ("sessions/{user}/page/{place}", "session_list", load_session_list),
    ("sessions/{user}/{session}", "session", load_session_page),
    ("runs", "run_list", load_run_list),
    ("runs/page/{place}", "run_list", load_run_list),
    ("runs/compare", "comparison", load_comparison),
    ("runs/compare/{before}/{after}", "comparison", load_comparison),
    ("runs/{run}", "run", load_run),
    ("runs/{run}/page/{place}", "run", load_run),
    ("runs/{run}/turns/{user}/{turn}", "turn", load_turn),
    ("runs/{run}/turns/{user}/{turn}/files/{name:path}", "turn_file", load_turn_file),
    ("stats/{user}", "stats", load_stats),
    ("interventions", "interventions", load_interventions),
)
"""
Address, template and content of each kind of page, in the order in which they are tried. Parts of an address
in braces are parameters, `{name:path}` takes the rest.
"""
NAVIGATION: tuple[tuple[str, str], ...] = (
    ("Turns", "turns/{user}"),
    ("Memory", "memory/{user}"),
    ("Sessions", "sessions/{user}"),
    ("Runs", "runs"),
    ("Stats", "stats/{user}"),
    ("Interventions", "interventions"),
)
"""Name and address of what every page leads to; {user} is whose pages are looked at."""
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'"
)
"""What a page may load: nothing but what lies beside it. A served one may not be framed either."""
ASSETS = {"style.css": "text/css", "script.js": "text/javascript", "icon.svg": "image/svg+xml"}
_PATTERNS = [
    re.compile(re.sub(r"\{(\w+)(:path)?\}", lambda m: f"(?P<{m[1]}>{'.*' if m[2] else '[^/]+'})", address))
    for address, _, _ in PAGES
]


class Served:
    """Links of pages that a server gives."""

    is_static = False

    def link(self, here: str, path: str, fields: Mapping[str, object], fragment: str) -> str:
        """From the page *here* to another one of the site."""
        query = urlencode({name: value for name, value in fields.items() if value not in (None, "")})
        return f"/{quote(path)}" + (f"?{query}" if query else "") + (f"#{fragment}" if fragment else "")

    def asset(self, here: str, name: str) -> str:
        """To a file that all pages share; its address changes with what it holds."""
        return f"/assets/{name}?{_digest(name)}"


class Written:
    """Links of pages that are files, which open from a disk: of a selection only its turns and runs."""

    is_static = True

    def __init__(self, shelf: Shelf) -> None:
        self.paths = [""]
        """Every page that is to be written: the first one, and what the others lead to."""
        self._linked = {""}
        self._is_selection = shelf.is_selection
        self._users = shelf.users()
        self._there = {f"turns/{user}/{number}" for user in self._users for number in shelf.numbers(user)}
        self._there.update(f"runs/{name}" for name in run_names(shelf))
        if not shelf.is_selection:
            self._there.update(
                f"sessions/{u}/{name}" for u in self._users for name in session_names(shelf, u)
            )
        self._has_runs = bool(shelf.runs) or not shelf.is_selection

    def link(self, here: str, path: str, fields: Mapping[str, object], fragment: str) -> str | None:
        """From the page *here* to another one, which is written then; None if there is none."""
        if path not in self._linked:
            if not self._is_there(path):
                return None
            self._linked.add(path)
            self.paths.append(path)
        return quote(_relative(here, file_name(path))) + (f"#{fragment}" if fragment else "")

    def _is_there(self, path: str) -> bool:
        kind, *names = path.split("/")
        if (kind, len(names)) in (("turns", 2), ("sessions", 2), ("runs", 1)):
            return path in self._there
        if kind == "runs" and names[1:2] == ["turns"]:
            return f"runs/{names[0]}" in self._there and "files" not in names
        if kind == "runs":
            return self._has_runs
        if kind == "turns":
            return names[0] in self._users and names[2:3] != ["files"]
        return not self._is_selection

    def is_turn(self, path: str) -> bool:
        """Return whether it is the page of a turn."""
        return path in self._there and path.startswith("turns/")

    def asset(self, here: str, name: str) -> str:
        """To a file that all pages share."""
        return _relative(here, f"assets/{name}")


def file_name(path: str) -> str:
    """
    Return the file for the page of an address.

    >>> file_name(""), file_name("turns/demo/813")
    ('index.html', 'turns/demo/813.html')
    """
    return f"{path or 'index'}.html"


def _relative(here: str, name: str) -> str:
    return posixpath.relpath(name, posixpath.dirname(file_name(here)) or ".")


@cache
def read_asset(name: str) -> bytes:
    """A file that all pages share; KeyError if there is none of that name."""
    return (files("panda.addons.view") / "assets" / {asset: asset for asset in ASSETS}[name]).read_bytes()


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(read_asset(name)).hexdigest()[:12]


@cache
def _load_templates() -> Environment:
    """Return all templates, compiled: not while somebody waits for a page."""
    environment = Environment(
        loader=PackageLoader("panda.addons.view"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_make_visible,
    )
    environment.filters |= FILTERS
    for function in (address_of, belief, value_text, render_markdown):
        environment.filters[function.__name__] = function
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)
    return environment


class Site:
    """All pages over one store."""

    def __init__(self, shelf: Shelf, links: Served | Written) -> None:
        self.shelf = shelf
        self.links = links
        self._environment = _load_templates()

    def render(self, path: str, fields: Mapping[str, str]) -> str:
        """A page as HTML. Raises NotFoundError: there is no such page. UsageError: a field is wrong."""
        for (_, template, load), pattern in zip(PAGES, _PATTERNS, strict=True):
            if match := pattern.fullmatch(path):
                user = match.groupdict().get("user")
                page = load(self.shelf, PageQuery(match.groupdict(), fields))
                return self._filled(template, path, user, page=page)
        raise NotFoundError("there is no such page", where=f"/{path}")

    def render_error(self, path: str, error: Problem) -> tuple[int, str]:
        """The page that says why there is none, with its HTTP status."""
        status = 503
        if isinstance(error, NotFoundError):
            status = 404
        elif isinstance(error, UsageError):
            status = 400
        return status, self._filled("error", path, None, error=error)

    def _filled(self, template: str, here: str, user: str | None, **values: object) -> str:
        def link(path: str, fragment: str = "", **fields: object) -> str | None:
            return self.links.link(here, path, fields, fragment)

        navigation = [(name, path.format(user=user or self.shelf.store.user)) for name, path in NAVIGATION]
        return self._environment.get_template(f"{template}.html.j2").render(
            link=link,
            asset=lambda name: self.links.asset(here, name),
            is_static=self.links.is_static,
            policy=POLICY,
            here=here,
            navigation=navigation,
            root=str(self.shelf.store.root),
            version=__version__,
            now=self.shelf.store.clock(),
            **values,
        )


def _make_visible(value: object) -> object:
    """A value as it may stand in a page: what steers a reader's eye or a browser is written out."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) else visible(str(value))
