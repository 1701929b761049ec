"""web.fetch: visits written, refreshed and quoted."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from panda.index.index import Index
from panda.memory.reader import NodeReader
from panda.retrieval.candidates import Retriever
from panda.store.layout import Layout, UserStore
from panda.store.records import check_json
from panda.store.visits import visit_slug
from panda.tools.contract import ToolContext
from panda.tools.table import run_tool
from panda.web.addresses import AddressRules, parse_allowed
from panda.web.client import WebClient
from tests.stores import NOW, write_turn
from tests.web.site import Site, running_site

Context = Callable[..., ToolContext]
STAMPED = {"ETag": '"1"'}


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


@pytest.fixture
def context(layout: Layout, site: Site) -> Iterator[Context]:
    index = Index(layout)

    def make(query: str, *, turn: int = 1, days: float = 0) -> ToolContext:
        def clock() -> datetime:
            return NOW + timedelta(days=days)

        web = WebClient(AddressRules((parse_allowed(site.place),)), timeout_seconds=5)
        write_turn(layout, turn, query=query, response="", status="running")
        folder = layout.of("ann").turn(turn).directory
        reader = NodeReader(UserStore(layout.root, "ann", clock))
        return ToolContext(
            UserStore(layout.root, "ann", clock),
            turn,
            query,
            reader,
            Retriever(index, "ann"),
            web=lambda: web,
            folder=folder,
        )

    yield make
    index.close()


def test_visit_is_written(layout: Layout, site: Site, context: Context) -> None:
    """A page becomes a visit of the turn: manifest, content and data; its lines are claims that cite it."""
    url = site.add_file("/loq", "shop_json_ld.html", STAMPED)
    result = run_tool("web.fetch", {"url": url}, context("Is the Lenovo LOQ still in stock?"))
    assert result.error is None
    assert (result.data["from"], result.data["page_type"]) == ("server", "product")
    directory = layout.of("ann").turn(1).webpage_cache / visit_slug(url)
    assert {path.name for path in directory.iterdir()} == {"manifest.json", "content.md", "extracted.json"}
    node_id = f"visit:{result.data['visit_id']}"
    assert {claim.node_id for claim in result.claims} == {node_id}
    assert "Lenovo LOQ 15 Gaming Laptop: availability In Stock" in [claim.text for claim in result.claims]
    assert result.artifacts[0] == f"webpage_cache/{visit_slug(url)}/content.md"
    made = {"step": 1, "plan": 0, "round": 1, "goal": "G1", "note": None, "conclusion": None}
    step = {**made, "tool": "web.fetch", "kind": "read", "arguments": {"url": url}, **result.to_json()}
    check_json("steps/step_01.json", json.loads(json.dumps(step)), "step_01.json")


def test_second_visit_is_conditional(site: Site, context: Context) -> None:
    """An unchanged page is not sent again; its new visit has a new id and says what it refreshes."""
    url = site.add_file("/loq", "shop_json_ld.html", STAMPED)
    first = run_tool("web.fetch", {"url": url}, context("stock?"))
    second = run_tool("web.fetch", {"url": url}, context("stock?", turn=2, days=1))
    assert site.asked[-1].headers["if-none-match"] == '"1"'
    assert second.data["from"] == "unchanged"
    assert second.data["refreshes"] == first.data["visit_id"] != second.data["visit_id"]
    assert second.data["visited_at"] == "2026-01-05T14:30:00Z"
    assert second.data["fields"] == first.data["fields"]


def test_changed_page(site: Site, context: Context) -> None:
    """A page that has changed is read anew."""
    url = site.add_file("/p", "shop_plain.html", STAMPED)
    first = run_tool("web.fetch", {"url": url}, context("stock?"))
    site.add_file("/p", "shop_split_price.html", {"ETag": '"2"'})
    second = run_tool("web.fetch", {"url": url}, context("stock?", turn=2))
    assert (second.data["from"], second.data["fields"]["price"]) == ("server", "$189.95")
    assert second.data["refreshes"] == first.data["visit_id"]


def test_cached_answer_by_age(site: Site, context: Context) -> None:
    """A visit that is young enough is used as it is; an older one is not."""
    url = site.add_file("/p", "shop_plain.html")
    first = run_tool("web.fetch", {"url": url}, context("price?"))
    asked = len(site.asked)
    arguments = {"url": url, "max_age_minutes": 60}
    again = run_tool("web.fetch", arguments, context("price?", turn=2, days=0.02))
    assert (again.data["from"], again.data["visit_id"]) == ("cache", first.data["visit_id"])
    assert len(site.asked) == asked
    assert run_tool("web.fetch", arguments, context("price?", turn=3, days=1)).data["from"] == "server"


def test_twice_in_a_turn(site: Site, context: Context) -> None:
    """Two visits of one page in one turn are two visits, each found by its id."""
    url = site.add_file("/p", "shop_plain.html")
    where = context("price?")
    ids = [run_tool("web.fetch", {"url": url}, where).data["visit_id"] for _ in range(2)]
    assert len(set(ids)) == 2
    assert {where.reader.load(f"visit:{visit_id}").title for visit_id in ids} == {"Garden Spade Pro"}


def test_site_down(site: Site, context: Context) -> None:
    """Of a page that cannot be had it is told what it said when it was last seen."""
    url = site.add_file("/loq", "shop_json_ld.html", STAMPED)
    run_tool("web.fetch", {"url": url}, context("Is it in stock?"))
    site.close()
    result = run_tool("web.fetch", {"url": url}, context("Is it in stock?", turn=2, days=90))
    assert result.status == "error"
    assert "no connection" in str(result.error)
    assert "last seen 2026-01-04T14:30:00Z" in str(result.error)
    stock = "Lenovo LOQ 15 Gaming Laptop: availability In Stock (last seen 2026-01-04)"
    assert stock in [claim.text for claim in result.claims]
    unknown = run_tool("web.fetch", {"url": f"{site.root}/other"}, context("Is it?", turn=3))
    assert (unknown.status, unknown.claims) == ("error", ())


def test_article_and_table_are_quotable(site: Site, context: Context) -> None:
    """The sentences of an article and the rows of a table are lines of the visit."""
    url = site.add_file("/tides", "article.html")
    result = run_tool("web.fetch", {"url": url}, context("How high is the tide in the Bay of Fundy?"))
    assert any("reaches 16 metres" in claim.text for claim in result.claims)
    url = site.add_file("/ferry", "table.html")
    result = run_tool("web.fetch", {"url": url}, context("When does the Borealis leave?", turn=2))
    row = "Turku to Stockholm: Ship Borealis, Leaves 20:15, Arrives 06:30, Fare €38"
    assert row in [claim.text for claim in result.claims]


@pytest.mark.parametrize(
    "url", ["ftp://a.example/x", "http://169.254.169.254/latest/meta-data", "javascript:1"]
)
def test_refused(context: Context, url: str) -> None:
    """Other protocols and addresses of this machine's network are errors, not visits."""
    result = run_tool("web.fetch", {"url": url}, context("x"))
    assert result.status == "error"
    assert result.claims == ()
