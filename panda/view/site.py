"""The pages as one site: a page rendered, and links that fit where it stands."""

import hashlib
import posixpath
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from panda import __version__
from panda.documents.text import visible
from panda.errors import NotFoundError, Problem, UsageError
from panda.view.answer import render_markdown
from panda.view.formats import FILTERS
from panda.view.pages import NAVIGATION, Page
from panda.view.shelf import Query, Shelf

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'"
)
"""What a page may load: nothing but what lies beside it. A served one may not be framed either."""
ASSETS = {"style.css": "text/css", "script.js": "text/javascript", "icon.svg": "image/svg+xml"}


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Written:
    """Links of pages that are files, which open from a disk."""

    paths: Collection[str]  # the pages that there are

    is_static = True

    def link(self, here: str, path: str, fields: Mapping[str, object], fragment: str) -> str | None:
        """From the page *here* to another one; None if that was not written."""
        if path not in self.paths:
            return None
        return quote(_relative(here, file_name(path))) + (f"#{fragment}" if fragment else "")

    def asset(self, here: str, name: str) -> str:
        """To a file that all pages share."""
        return _relative(here, f"assets/{name}")


def file_name(path: str) -> str:
    """
    Where the page of an address is written.

    >>> file_name(""), file_name("turns/demo/813")
    ('index.html', 'turns/demo/813.html')
    """
    return f"{path or 'index'}.html"


def _relative(here: str, name: str) -> str:
    return posixpath.relpath(name, posixpath.dirname(file_name(here)) or ".")


@cache
def read_asset(name: str) -> bytes:
    """A file that all pages share; KeyError if there is none of that name."""
    return (files("panda.view") / "assets" / {one: one for one in ASSETS}[name]).read_bytes()


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(read_asset(name)).hexdigest()[:12]


class Site:
    """All pages over one store."""

    def __init__(self, shelf: Shelf, links: Served | Written) -> None:
        self.shelf = shelf
        self.links = links
        self._environment = Environment(
            loader=PackageLoader("panda.view"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_shown,
        )
        self._environment.filters |= {**FILTERS, "markdown": render_markdown}
        for name in self._environment.list_templates(extensions=["j2"]):
            self._environment.get_template(name)  # compiled now, not while somebody waits for a page

    def render(self, page: Page, parameters: Mapping[str, str], fields: Mapping[str, str]) -> str:
        """A page as HTML. Raises NotFoundError: there is no such page. UsageError: a field is wrong."""
        query = Query(parameters, fields)
        shown = page.load(self.shelf, query)
        return self._filled(page.template, page.path(parameters), parameters.get("user"), page=shown)

    def render_error(self, path: str, error: Problem) -> tuple[int, str]:
        """The page that says why there is none, with its HTTP status."""
        status = 404 if isinstance(error, NotFoundError) else 400 if isinstance(error, UsageError) else 503
        return status, self._filled("error.html.j2", path, None, error=error)

    def _filled(self, template: str, here: str, user: str | None, **values: object) -> str:
        def link(path: str, fragment: str = "", **fields: object) -> str | None:
            return self.links.link(here, path, fields, fragment)

        shown = [(name, path.format(user=user or self.shelf.store.user)) for name, path in NAVIGATION]
        return self._environment.get_template(template).render(
            link=link,
            asset=lambda name: self.links.asset(here, name),
            is_static=self.links.is_static,
            policy=POLICY,
            here=here,
            navigation=shown,
            root=str(self.shelf.store.root),
            version=__version__,
            now=self.shelf.store.clock(),
            **values,
        )


def _shown(value: object) -> object:
    """A value as it may stand in a page: what steers a reader's eye or a browser is written out."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) else visible(str(value))
