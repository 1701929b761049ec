"""
A site walked through towards a goal, a page a step: what is on a page, and what is opened next (S3 §7).

A page decides nothing: a recipe chooses among numbered options that code has made of it, all within the hosts
that may be asked. So a page can neither leave these, nor call another tool, nor change the goal.
"""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from panda.documents.pictures import parse_picture
from panda.documents.safe_text import count_noun, one_line
from panda.errors import UsageError, WebError
from panda.language.words import read_words
from panda.memory.confidence import EXPIRED_BELOW
from panda.memory.node import Node, visit_lines
from panda.retrieval.relevance import share_of_words
from panda.steps.all_steps import PAGE_ACTION, SCREEN_READING
from panda.steps.options import Option
from panda.store.node_id import NodeKind
from panda.store.records import ToolClaim
from panda.store.visit_records import Visit, write_visit
from panda.tools.memory_tools import claims_of, entities_of
from panda.tools.search_sources import choose_read_well, site_of, subject_words
from panda.tools.tool_contract import Ask, ToolContext, ToolResult
from panda.tools.visits import client_of, files_of, make_visit
from panda.web.addresses import Url, parse_url
from panda.web.client import WebClient
from panda.web.markup import Control
from panda.web.page import Page
from panda.web.page_browser import PageBrowser, open_page_browser
from panda.web.page_worker import read_page_controls

MOST_STEPS = 8
_MOST_CONTROLS = 60
_MOST_LINES = 40
_LINE_CHARS = 300
_PRIORS = {"form": 0.9, "next": 0.8}  # what is tried where no link is close to the goal; links have less
_LINK_PRIOR = 0.7
_FEW_WORDS = 25  # a page with scripts and fewer words may get its text from them
_STOP = Option("stop", "stop", shown="stop: the goal is reached, or nothing here leads to it")


def navigate(url: str, goal: str, context: ToolContext) -> ToolResult:
    """Return what the pages of a site say of a goal, from one of them on; see panda/tools/web.py."""
    if context.ask is None:
        raise UsageError("what is opened next is chosen by a recipe, and this command asks none")
    start = parse_url(url)
    client = client_of(context)

    def check(at: Url) -> None:
        if site_of(str(at)) != site_of(str(start)) and not client.rules.names(at):
            fix = f"allow it: --allow {at.netloc}, or web_allow in panda.toml"
            raise WebError(f"{at.netloc} is not the site of {start.netloc}", where=str(at), fix=fix)

    opened: AbstractContextManager[PageBrowser | None] = nullcontext()
    if context.web_browser:
        opened = open_page_browser(client, check)
    with opened as browser:
        walk = _PageWalk(goal, context, ask=context.ask, client=client, check=check, browser=browser)
        return walk.run(Control("link", "start", str(start)))


@dataclass(frozen=True)
class _PageView:
    page: Page
    visit: Visit  # what it says
    directory: Path  # where that is kept
    in_browser: bool  # whether it is open there


@dataclass
class _PageWalk:
    goal: str
    context: ToolContext
    ask: Ask
    client: WebClient
    check: Callable[[Url], None]  # raises for an address outside of the hosts
    browser: PageBrowser | None
    steps: list[dict[str, str]] = field(default_factory=list)  # the pages, as the result tells of them
    failed: list[str] = field(default_factory=list)  # a line for each page that was not read, or not well
    faults: list[str] = field(default_factory=list)  # pages that want a browser
    claims: list[ToolClaim] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)  # of the visits; none outside of a turn
    refreshes: list[str] = field(default_factory=list)  # visits that were replaced
    outside: dict[str, None] = field(default_factory=dict)  # hosts of links that are not allowed
    read: set[str] = field(default_factory=set)  # addresses that were asked for
    used: set[str] = field(default_factory=set)  # keys of controls that were chosen
    waiting: dict[str, Control] = field(default_factory=dict)  # what can be opened, of all pages, by key
    page: Page | None = None  # the last one
    screen: str = ""  # what EYES says of it
    lines: list[tuple[Option, ToolClaim]] = field(
        default_factory=list
    )  # what may be quoted of it, nearest first

    def run(self, control: Control) -> ToolResult:
        text = ""
        for left in reversed(range(MOST_STEPS)):
            self.lines = []
            self.screen = ""
            try:
                self._take(self._open(control, text), control)
            except WebError as exc:
                if self.page is None:
                    raise
                self.failed.append(f"{exc.where or control.label}: {exc.message}")
            chosen = self._choose(is_last=not left)
            if chosen is None:
                break
            control, text = chosen
        return self._result("limited" if not left and self.waiting else "stopped")

    def _open(self, control: Control, text: str) -> Page:
        if not control.url and self.browser is not None and self.page is not None:
            return self.browser.press(self.page, control.number)
        url = str(parse_url(control.filled(text) if control.field else control.url))

        def check(at: Url) -> None:
            self.check(at)
            if str(at) in self.read:
                raise WebError("it leads to a page that was read", where=url)

        try:
            return self.client.fetch(url, check=check)
        finally:
            self.read.add(url)

    def _take(self, page: Page, control: Control) -> None:
        """Keep a page as a visit, and take what may be quoted and opened of it."""
        ask = self.ask
        self.read.add(page.final_url)
        rated = self._look(page, in_browser=not control.url)
        if (
            control.url
            and "<script" in (page.text or "")
            and len(rated[1].visit.content.split()) < _FEW_WORDS
        ):
            if self.browser is None:
                self.faults.append(f"{page.final_url} says little without its scripts (setting web_browser)")
            else:
                rated = self._look(self.browser.open(page), in_browser=True)

        def again(_: object) -> tuple[Option, _PageView] | None:
            with suppress(WebError):
                anew = self.client.fetch(page.final_url, check=self.check)
                return (
                    self._look(self.browser.open(anew), in_browser=True) if self.browser else self._look(anew)
                )
            return None

        well, rejected = choose_read_well(ask, [rated], again)
        (look,) = [*well, *(look for look, _ in rejected)]
        self.page = look.page
        url = look.page.final_url
        title = look.visit.title
        self.failed += [f"{url}: {missing}" for _, missing in rejected]
        by = f"{control.kind}: {control.label}" if self.steps else "start"
        self.steps.append({"by": by, "url": url, "title": title, "visit_id": look.visit.manifest.visit_id})
        controls = read_page_controls(look.page, parse_url(url))
        self._keep(look, {other.label for other in controls}, quoted=bool(well))
        if look.in_browser and self.browser is not None and self.context.sees:
            pictures = (parse_picture(self.browser.picture(look.page)),)
            reading = ask(SCREEN_READING, variables={"goal": self.goal}, pictures=pictures)
            self.screen = reading.text
        self.waiting = {
            key: other for key, other in self.waiting.items() if other.url
        }  # buttons go with a page
        for other in controls:
            key = f"{other.url} {other.field}" if other.url else f"{url} {other.label}"
            try:
                self.check(parse_url(other.url or url))
            except WebError:
                self.outside[site_of(other.url)] = None
                continue
            if key not in self.used and other.url not in self.read and (other.url or look.in_browser):
                self.waiting.setdefault(key, other)

    def _look(self, page: Page, *, in_browser: bool = False) -> tuple[Option, _PageView]:
        earlier_visit = self.context.reader.visits([page.url]).get(page.url)
        visit, directory = make_visit(page, earlier_visit, self.context)
        quality = visit.manifest.extraction_quality or 0.0
        option = Option("p1", f"{quality:.2f} {visit.title}", (), quality)
        return option, _PageView(page, visit, directory, in_browser)

    def _keep(self, look: _PageView, labels: Collection[str], *, quoted: bool) -> None:
        """Write the visit, and take its lines, but for *labels*, which only lead on."""
        visit = look.visit
        manifest = look.visit.manifest
        node = None
        if self.context.folder is not None:  # a tool that is run by hand has no turn to keep anything in
            write_visit(look.directory, visit)
            node = self.context.reader.load(NodeKind.VISIT.id(manifest.visit_id))
            self.nodes.append(node)
        if manifest.refreshes:
            self.refreshes.append(manifest.refreshes)
        rated = []
        items = node.items if node else visit_lines(visit, self.context.store.clock())
        for item in items:
            leads_on = item.text.removeprefix(f"{visit.title}: ") in labels
            is_address = item.content_type == "site_pattern" or item.text.endswith(f" {manifest.url}")
            if quoted and item.confidence >= EXPIRED_BELOW and not leads_on and not is_address:
                rated.append((share_of_words(self.goal, item.text), item))
        rated.sort(key=lambda pair: -pair[0])
        for n, (share, item) in enumerate(rated[:_MOST_LINES], 1):
            claim = ToolClaim(item.text, round(item.confidence, 2), manifest.url)
            claim = claims_of(node, [item])[0] if node else claim
            self.lines.append((Option(f"c{n}", item.text[:_LINE_CHARS], (), share), claim))

    def _choose(self, *, is_last: bool) -> tuple[Control, str] | None:
        """
        Return the control that is opened next, with what is typed there, None at the end; take the claims of
        the page on the way.
        """
        keys = sorted(self.waiting, key=lambda key: -share_of_words(self.goal, self.waiting[key].label))
        keys = [] if is_last else keys[:_MOST_CONTROLS]
        offered = {str(n): key for n, key in enumerate(keys, 1)}
        actions = [_action(id_, self.waiting[key], self.goal) for id_, key in offered.items()]
        ask = self.ask
        reply = ask(
            PAGE_ACTION,
            options={"lines": [option for option, _ in self.lines], "action": [*actions, _STOP]},
            variables={"goal": self.goal},
            extra={"page": self._page_doc(), "screen": self.screen},
        )
        chosen = [claim for option, claim in self.lines if option.id in reply.lines]
        self.claims += chosen or [claim for _, claim in self.lines[:1]]
        key = offered.get(reply.action)
        if key is None:
            return None
        self.used.add(key)
        browsing = read_words("topic_words.txt", "browsing")
        words = " ".join(word for word in subject_words(self.goal) if word.lower() not in browsing)
        return self.waiting.pop(key), one_line(reply.text or "") or words

    def _page_doc(self) -> str:
        last_step = self.steps[-1]
        parts = [f"# {one_line(last_step['title'])}", last_step["url"], "## Found so far"]
        parts += [f"- {one_line(claim.text)}" for claim in self.claims]
        parts += ["## Pages so far", *(f"- {step['url']} ({one_line(step['by'])})" for step in self.steps)]
        return "\n".join([*parts, *(f"- not read: {one_line(line)}" for line in self.failed)])

    def _result(self, ending: str) -> ToolResult:
        data = {
            "goal": self.goal,
            "ending": ending,
            "steps": self.steps,
            "failed": self.failed,
            "outside": list(self.outside),
            "faults": self.faults,
            "refreshes": self.refreshes,
        }
        if not self.claims:
            why = f"internet.navigate: nothing to quote in {count_noun(len(self.steps), 'page')}"
            return ToolResult("error", error=": ".join([why, *self.failed[:1]]))
        files = tuple(file for node in self.nodes for file in files_of(node))
        claims = tuple(dict.fromkeys(self.claims))
        return ToolResult(
            "success", data, error=None, claims=claims, entities=entities_of(self.nodes), artifacts=files
        )


def _action(id_: str, control: Control, goal: str) -> Option:
    prior = _PRIORS.get(control.kind, _LINK_PRIOR * share_of_words(goal, control.label))
    where = f" ({urlsplit(control.url).path})" if control.url else ""
    return Option(id_, control.label, (), prior, shown=f"{control.kind}: {control.label}{where}")
