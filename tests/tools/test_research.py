"""internet.research over saved result pages and a site of our own."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from panda.choosing.decision import Option
from panda.errors import ReplyError
from panda.index.index import Index
from panda.memory.reader import NodeReader
from panda.retrieval.candidates import Retriever
from panda.store.layout import Layout, UserStore
from panda.store.records import ResearchClaim, check_json
from panda.tools.contract import ToolContext
from panda.tools.research import join_conflicts
from panda.tools.sources import open_provider
from panda.tools.table import run_tool, why_unavailable
from panda.web.addresses import AddressRules, parse_allowed
from panda.web.client import WebClient
from tests.stores import NOW, write_turn
from tests.web.site import PAGES, Site, running_site

QUERY = "How much does the Lenovo LOQ 15 cost?"


def choose_by_prior(
    step: str, *, options: Mapping[str, Sequence[Option]] | None = None, **given: Any
) -> Mapping[str, Any]:
    """Replies as a recipe would whose every choice goes by the options' own rank."""
    if step == "phase4_research_strategy":
        return {"kind": "prices"}
    if step == "phase4_research_report":
        return {"summary": given["variables"]["counted"]}
    return {name: tuple(o.id for o in each if o.prior >= 0.3) for name, each in (options or {}).items()}


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


@pytest.fixture
def context(tmp_path: Path, site: Site) -> Iterator[ToolContext]:
    layout = Layout(tmp_path / "store")
    index = Index(layout)
    web = WebClient(AddressRules((parse_allowed(site.place),)), timeout_seconds=5)
    paths = write_turn(layout, 1, query=QUERY, response="", status="running")
    (tmp_path / "results").mkdir()
    yield ToolContext(
        UserStore(layout.root, "ann", lambda: NOW),
        1,
        QUERY,
        NodeReader(UserStore(layout.root, "ann", lambda: NOW)),
        Retriever(index, "ann"),
        folder=paths.directory,
        web=lambda: web,
        search_provider=f"file:{tmp_path / 'results'}",
        ask=choose_by_prior,
    )
    index.close()


def save_results(context: ToolContext, *results: tuple[str, str, str]) -> None:
    """Saved results of one search: (url, title, snippet) each."""
    listed = [{"url": url, "title": title, "content": text} for url, title, text in results]
    path = Path(str(context.search_provider).removeprefix("file:")) / "saved.json"
    path.write_text(json.dumps({"query": QUERY, "results": listed}), encoding="utf-8")


def two_shops(site: Site, context: ToolContext) -> tuple[str, str]:
    """Two shops that sell the same laptop at different prices, and a page about something else."""
    page = (PAGES / "shop_json_ld.html").read_text(encoding="utf-8")
    first, second = site.add("/north/loq", page), site.add("/harbour/loq", page.replace("697.00", "649.00"))
    save_results(
        context,
        (first, "Lenovo LOQ 15 Gaming Laptop", "Lenovo LOQ 15 for $697.00, in stock"),
        (second, "Lenovo LOQ 15 at Harbour", "The Lenovo LOQ 15 costs $649.00"),
        (site.add_file("/tides", "article.html"), "How tides work", "The sea rises"),
    )
    return first, second


def test_sources_that_disagree(site: Site, context: ToolContext) -> None:
    """Both prices stand in research.json with their visits; one claim shows both, and nothing is averaged."""
    first, second = two_shops(site, context)
    result = run_tool("internet.research", {"query": QUERY}, context)
    assert result.error is None
    paths = context.store.of("ann").turn(1)
    value = json.loads((paths / "research.json").read_text(encoding="utf-8"))
    check_json("research.json", value, "research.json")
    told = {claim["claim"]: claim["visit_id"] for claim in value["claims"] if "price" in claim["claim"]}
    assert {text.rpartition(" ")[2] for text in told} == {"$697.00", "$649.00"}
    assert set(told.values()) == set(value["webpage_cache"])
    prices = f"$649.00 ({second}) or $697.00 ({first})"
    text = f"Lenovo LOQ 15 Gaming Laptop: price {prices}; the sources disagree"
    assert [conflict["text"] for conflict in value["conflicts"]] == [text]
    assert result.claims[0].text == text
    assert not any(claim.text.endswith(("price $697.00", "price $649.00")) for claim in result.claims)
    assert "673" not in (paths / "research.md").read_text(encoding="utf-8")
    assert "/tides" not in site.paths()
    node = context.reader.load(f"research:{value['topic']}")
    assert text in node.text
    assert "price $697.00 (" not in node.text


def test_a_report_that_fails_loses_nothing(site: Site, context: ToolContext) -> None:
    """Where the model gives no valid report, what was found stands with what code counts of it."""
    two_shops(site, context)

    def ask(step: str, **given: Any) -> Mapping[str, Any]:
        if step == "phase4_research_report":
            raise ReplyError(
                "no valid reply in 3 attempts", where="research_report.yaml", fix="see calls.jsonl"
            )
        return choose_by_prior(step, **given)

    result = run_tool("internet.research", {"query": QUERY}, replace(context, ask=ask))
    assert result.error is None
    assert any("$649.00" in claim.text for claim in result.claims)
    assert json.loads((context.store.of("ann").turn(1) / "research.json").read_text())["summary"]


def test_a_conflict_says_each_price_once() -> None:
    """Several claims of a page with one price are one place in the line of a conflict."""
    given = [("$697.00", "a"), ("$649.00", "b"), ("$697.00", "a"), ("$649.00", "b")]
    claims = [
        ResearchClaim(
            claim=f"LOQ: price {price}",
            subject="LOQ",
            source=f"{shop}.example",
            url=f"https://{shop}.example/",
            visit_id="v",
            provenance="f",
            confidence=0.9,
            content_type="price",
        )
        for price, shop in given
    ]
    (conflict,) = join_conflicts(claims, [(0, 1), (2, 3), (0, 3)])
    assert conflict.text == "LOQ: price $697.00 (a.example) or $649.00 (b.example); the sources disagree"


def test_a_second_run_takes_what_is_there(site: Site, context: ToolContext) -> None:
    """A research that a killed run has finished is not done again; a second one in a turn is refused."""
    two_shops(site, context)
    first = run_tool("internet.research", {"query": QUERY}, context)
    asked = len(site.asked)
    again = run_tool("internet.research", {"query": QUERY}, context)
    assert (again.claims, len(site.asked)) == (first.claims, asked)
    assert "already" in str(run_tool("internet.research", {"query": "tea"}, context).error)


def test_nothing_found(site: Site, context: ToolContext) -> None:
    """Without usable pages the result is an error that says what could not be read."""
    save_results(context, (f"{site.root}/gone", "Lenovo LOQ 15 cost", "Lenovo LOQ 15 for $1"))
    result = run_tool("internet.research", {"query": QUERY}, context)
    assert result.status == "error"
    assert "HTTP 404" in str(result.error)


def test_without_a_provider(context: ToolContext) -> None:
    """Without a search provider the tool says how to configure one, and the planner is told."""
    bare = ToolContext(**{**vars(context), "search_provider": None})
    assert "no search provider" in str(run_tool("internet.research", {"query": QUERY}, bare).error)
    assert why_unavailable("internet.research", bare) is not None
    assert why_unavailable("internet.research", context) is None


def test_searxng(site: Site) -> None:
    """A SearXNG server is asked by its JSON API; what is no JSON is an error that names the setting."""
    answer = json.dumps(
        {"results": [{"url": "https://a.example/x", "title": " A ", "content": "b"}, {"url": "x"}]}
    )
    site.add("/search?q=red%20tea&format=json", answer, headers={"Content-Type": "application/json"})
    site.add("/search?q=red+tea&format=json", answer, headers={"Content-Type": "application/json"})
    web = WebClient(AddressRules((parse_allowed(site.place),)), timeout_seconds=5)
    found = open_provider(f"searxng:{site.root}", web)("red tea")
    assert [(result.url, result.title) for result in found] == [("https://a.example/x", "A")]


def test_saved_results_are_regular_files_of_their_directory(
    site: Site, context: ToolContext, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Links that lead out, pipes, devices and large files are left out with a reason, the rest is read."""
    two_shops(site, context)
    results, outside = tmp_path / "results", tmp_path / "outside"
    outside.mkdir()
    (results / "saved.json").rename(results / "kept.txt")
    (results / "saved.json").symlink_to("kept.txt")
    leaked = json.dumps({"results": [{"url": site.add("/leak", "x"), "title": f"Lenovo LOQ 15 {QUERY}"}]})
    (outside / "leak.json").write_text(leaked, encoding="utf-8")
    (results / "leak.json").symlink_to(outside / "leak.json")
    (results / "zero.json").symlink_to("/dev/zero")
    (results / "loop.json").symlink_to("loop.json")
    os.mkfifo(results / "pipe.html")
    (results / "directory.html").mkdir()
    with (results / "large.json").open("wb") as file:
        file.truncate(3_000_000_000)
    with caplog.at_level("WARNING", "panda.tools.sources"):
        result = run_tool("internet.research", {"query": QUERY}, context)
    assert result.error is None
    assert any("$649.00" in claim.text for claim in result.claims)
    assert "/leak" not in site.paths()
    reasons = {record.getMessage().partition(" is left out")[0] for record in caplog.records}
    left_out = ("leak.json", "zero.json", "loop.json", "pipe.html", "directory.html", "large.json")
    assert {str(results / name) for name in left_out} <= reasons


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"results": ' + '[{"a":' * 100_000, '{"results": [', "[1]"], ids=len
)
def test_a_damaged_page_of_results_is_named(text: str, context: ToolContext, tmp_path: Path) -> None:
    """JSON that is nested too deeply, cut short or of another shape is an error of that file."""
    (tmp_path / "results" / "bad.json").write_text(text, encoding="utf-8")
    result = run_tool("internet.research", {"query": QUERY}, context)
    assert result.status == "error"
    assert "bad.json" in str(result.error)


def test_an_address_that_is_none_is_no_result(site: Site, context: ToolContext) -> None:
    """A result whose address has a bracket without its other is passed over."""
    two_shops(site, context)
    broken = {"results": [{"url": "http://[::1", "title": "Lenovo LOQ 15", "content": "$1.00"}]}
    place = Path(str(context.search_provider).removeprefix("file:"))
    (place / "broken.json").write_text(json.dumps(broken), encoding="utf-8")
    assert run_tool("internet.research", {"query": QUERY}, context).error is None
