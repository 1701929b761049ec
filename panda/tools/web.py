"""The tools web.fetch, internet.navigate and internet.research; what reads pages is loaded when one runs."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from panda.tools.tool_contract import Arguments, QueryArguments, ToolContext, ToolResult, tool

if TYPE_CHECKING:  # loading it takes a quarter of a second
    from panda.web.client import WebClient


_Address = Annotated[str, Meta(min_length=8, max_length=2000, pattern="^[Hh][Tt][Tt][Pp][Ss]?://")]


class _FetchArguments(Arguments, frozen=True):
    url: _Address
    max_age_minutes: Annotated[
        float, Meta(ge=0, description="A visit that is no older is used as it is; 0 always asks the server.")
    ] = 0


class _NavigateArguments(Arguments, frozen=True):
    url: _Address
    goal: Annotated[str, Meta(min_length=1, max_length=500, pattern=r"\S")]


_Visited = TypedDict(
    "_Visited",
    {
        "visit_id": str,
        "url": str,
        "final_url": str,
        "visited_at": str,
        "from": Literal["server", "unchanged", "cache"],
        "refreshes": str | None,
        "page_type": str,
        "extraction_quality": float,
        "title": str,
        "fields": dict[str, Any],
    },
)


class _Researched(TypedDict):
    topic: str
    summary: str
    quality_score: float
    visits: list[str]
    conflicts: list[str]
    failed: list[str]
    refreshes: NotRequired[list[str]]
    away: NotRequired[list[str]]


class _Navigated(TypedDict):
    goal: str
    ending: Literal["stopped", "limited"]
    steps: list[dict[str, str]]
    failed: list[str]
    outside: list[str]
    faults: list[str]
    refreshes: list[str]


@tool(
    "web.fetch",
    "read",
    "Read a web page, or look again at one that was read before, for its present content.",
    _Visited,
)
def fetch_page(arguments: _FetchArguments, context: ToolContext) -> ToolResult:
    from panda.tools.visits import visit_page

    return visit_page(arguments.url, context, max_age_minutes=arguments.max_age_minutes)


@tool(
    "internet.navigate",
    "read",
    "Walk through a site from one of its addresses, by links, lists and search forms, towards a goal.",
    _Navigated,
)
def navigate_site(arguments: _NavigateArguments, context: ToolContext) -> ToolResult:
    """Return what the pages say of the goal, at most eight; see panda/tools/navigation.py."""
    from panda.tools.navigation import navigate

    return navigate(arguments.url, arguments.goal, context)


@tool(
    "internet.research",
    "read",
    "Search the web, read some pages and compare what they say; for what is not in memory.",
    _Researched,
)
def research_web(arguments: QueryArguments, context: ToolContext) -> ToolResult:
    """The findings; prices that differ are one claim with every source. See panda/tools/research.py."""
    from panda.tools.research import research

    return research(arguments.query, context)


def web_opener(allowed: Sequence[str], timeout_seconds: float) -> "Callable[[], WebClient]":
    """Gives the one client through which a process reads pages, made when it is first asked for."""

    @cache
    def open_web() -> "WebClient":
        from panda.web.page_worker import prepare_reading

        prepare_reading()  # it loads while this process loads what asks for pages
        from panda.web.addresses import AddressRules, parse_allowed
        from panda.web.client import WebClient

        rules = AddressRules(tuple(parse_allowed(entry) for entry in allowed))
        return WebClient(rules, timeout_seconds=timeout_seconds)

    return open_web


WEB_TOOLS = (fetch_page, navigate_site, research_web)
