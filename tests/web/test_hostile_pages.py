"""Pages and robots.txt that are made to hang or to fill the memory: read in time, or refused."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api import LAPTOPS, Ended, Panda
from tests.web.site import Site, running_site

MOST_SECONDS = 30


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


@pytest.fixture
def panda(tmp_path: Path, site: Site) -> Panda:
    """A project that may contact the site."""
    return Panda(tmp_path / "project", LAPTOPS, user="ann", PANDA_WEB_ALLOW=site.place)


def fetch(panda: Panda, url: str) -> Ended:
    """A page that is read by hand, in time."""
    started = time.monotonic()
    ended = panda("tool", "run", "web.fetch", "--args", json.dumps({"url": url}), "--json")
    assert time.monotonic() - started < MOST_SECONDS
    return ended


def test_pages_that_cost_much_are_read(panda: Panda, site: Site) -> None:
    """Blanks before JSON-LD, empty elements, deep nesting, long names, many links, tables, digits."""
    price = "<h1>Lamp L1</h1><p>Price: $34.50</p><button>Add to cart</button>"
    hostile = {
        "blanks": '<script type="application/ld+json">' + " " * 300_000 + "x</script>",
        "nested": "<b></b>" * 28_000,
        "deep": "<b>" * 200 + "<i></i>" * 20_000 + "</b>" * 200,
        "names": f'<div class="{"was " * 50_000}">' + "<p>x</p>" * 3_000 + "</div>",
        "style": f'<div style="{"display " * 50_000}">' + "<a href=/x>y</a>" * 3_000 + "</div>",
        "spans": "<table>" + "<tr><td rowspan=99999 colspan=" + "9" * 5_000 + ">a" * 100 + "</table>",
        "lists": "<dl>" * 200 + "<dt>a<dd>b" * 5_000,
        "json": '<script type="application/ld+json">' + '{"a":' * 100_000 + "</script>",
        "entities": "&amp;" * 200_000,
        "raised": "<sup>2</sup>" * 20_000 + "<s>3</s>" * 20_000 + "<sup>4" * 200,
        "open": "<!--" * 50_000 + "<title>" * 1_000,
        "digits": "1 111 " * 100_000,
    }
    for name, text in hostile.items():
        ended = fetch(panda, site.add(f"/{name}", f"<title>Shop</title>{price}{text}"))
        assert ended.code == 0, (name, ended.out)
        assert ended.data["data"]["title"] == "Lamp L1", (name, ended.out[:500])


def test_a_charset_is_one_of_the_web(panda: Panda, site: Site) -> None:
    """A codec of Python that is none is not used, however a page names it: the text is read all the same."""
    for codec in ("punycode", "idna", "utf-7", "unicode_escape", "rot13", "base64", "cp037"):
        words = "Gr\N{LATIN SMALL LETTER O WITH DIAERESIS}sse " * 100
        headers = {"Content-Type": f"text/html; charset={codec}"}
        body = f'<meta charset="{codec}"><h1>Sizes</h1><p>{words}{"a-" * 200_000}</p>'
        ended = fetch(panda, site.add(f"/{codec}", body, headers=headers))
        assert (ended.code, ended.data["data"]["title"]) == (0, "Sizes"), ended.out[:500]


def test_a_hostile_robots_txt_ends(panda: Panda, site: Site) -> None:
    """One whose pattern could be tried in many ways."""
    pattern = "User-agent: *\nDisallow: /" + "*a" * 60 + "$\n"
    site.add("/robots.txt", pattern, headers={"Content-Type": "text/plain"})
    ended = fetch(panda, site.add("/" + "a" * 400 + "b", "<h1>Page</h1><p>Some text.</p>"))
    assert ended.code == 0, ended.out[:500]


def test_a_turn_goes_on_without_a_page_that_passes_the_limit(panda: Panda, site: Site) -> None:
    """As without any page that cannot be read: the page is named with the limit, and the next one is read."""
    attributes = " ".join(f"a{n}=1" for n in range(300_000))
    url = site.add("/slow", f"<title>Lamp</title><div {attributes}>x</div>")
    started = time.monotonic()
    ended = panda.turn(f"What does {url} say about the price?")
    assert time.monotonic() - started < 120
    assert ended.code in (0, 22), ended.out
    refusal = panda("show", str(ended.data["turn"])).out
    assert "more than 10 seconds" in refusal
    assert url in refusal
    assert panda.problems() == []
    assert fetch(panda, site.add("/next", "<h1>Next</h1><p>Some text.</p>")).code == 0


def research(panda: Panda, name: str, text: str) -> list[str]:
    """The errors of a turn's tools, in which a saved page of results is searched."""
    panda.write(f"results/{name}", text)
    ended = panda.turn(
        "Research the best desk lamp under $100.", PANDA_SEARCH_PROVIDER=f"file:{panda.home / 'results'}"
    )
    assert ended.code in (0, 22), ended.out
    steps = Path(ended.data["turn_dir"], "steps").glob("step_*.json")
    values = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(steps)]
    assert "internet.research" in [value["tool"] for value in values]
    return [value["error"] or "" for value in values if value["tool"] == "internet.research"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("deep.json", "[" * 200_000, "nested too deeply"),
        ("deeper.json", '{"results":' + "[" * 200_000, "nested too deeply"),
        ("digits.json", '{"results": [' + "9" * 10_000 + "]}", "no JSON"),
        ("other.json", '{"results": {}}', "no list of results"),
    ],
)
def test_saved_results_that_do_not_read_are_told(panda: Panda, name: str, text: str, message: str) -> None:
    """With their file; the turn goes on."""
    (error,) = research(panda, name, text)
    assert message in error
    assert name in error


def test_saved_results_that_are_large_are_read(panda: Panda, site: Site) -> None:
    """Many links in one block, and deep HTML."""
    url = site.add("/lamp", "<h1>Desk lamp L1</h1><p>The best desk lamp under $100 is the L1.</p>")
    links = (
        f'<h3><a href="{url}">The best desk lamp</a></h3>'
        + f"<h3><a href={site.root}/none>x</a></h3>" * 1_500
    )
    (error,) = research(panda, "page.html", "<b>" * 100 + links)
    assert not error
    assert "/lamp" in [asked.path for asked in site.asked]
