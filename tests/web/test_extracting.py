"""What is read from pages: title, price, stock, tables, zones; and how good the reading is."""

import json
from pathlib import Path
from typing import Any

import pytest

from panda.compression.compressor import compress
from panda.models.cl100k import count_tokens
from panda.store.files import render_json
from panda.web.decoding import decode_body
from panda.web.extraction import Extraction, extract_page
from panda.web.page import Page
from tests.web.site import PAGES

RAISED = [
    json.loads(line)
    for line in (Path(__file__).parent / "raised_text.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Raised, lowered and struck text as `html`, and what a reader must take it for as `text`."""
LONG = "A page needs some running text before its main part is looked for. " * 6


def read(name: str) -> Extraction:
    """A page of tests/web/pages, as if it had been fetched."""
    text, charset = decode_body((PAGES / name).read_bytes(), "")
    return extract_page(
        Page(
            "http://a.example/",
            "http://a.example/",
            media_type="text/html",
            charset=charset,
            text=text,
            etag=None,
            last_modified=None,
        )
    )


def html(text: str) -> Extraction:
    return extract_page(
        Page(
            "http://a.example/",
            "http://a.example/",
            media_type="text/html",
            charset="utf-8",
            text=text,
            etag=None,
            last_modified=None,
        )
    )


def lines(extraction: Extraction, kind: str, *, at_least: float = 0.5) -> list[str]:
    """The items of a page's zones of one type."""
    zones = extraction.fields["zones"]
    chosen = [z for z in zones if z["type"] == kind and z["confidence"] >= at_least]
    return [item for zone in chosen for item in zone["items"]]


@pytest.mark.parametrize(
    ("name", "title", "price", "stock"),
    [
        ("shop_json_ld.html", "Lenovo LOQ 15 Gaming Laptop", "$697.00", "In Stock"),
        ("shop_microdata.html", "Kettle K7", "39,90 €", "Out of Stock"),
        ("shop_plain.html", "Garden Spade Pro", "$34.50", "Sold out, back in March."),
        ("shop_split_price.html", "Monitor M27", "$189.95", "Only 3 left in stock"),
    ],
)
def test_products(name: str, title: str, price: str, stock: str) -> None:
    """A shop's page gives title, price and stock, from its data or from its text alone."""
    extraction = read(name)
    assert extraction.page_type == "product"
    assert (extraction.title, extraction.fields["price"], extraction.fields["availability"]) == (
        title,
        price,
        stock,
    )
    assert extraction.quality >= 0.85


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("1\u00a0249,90 €", "1249,90 €"),
        ("Preis: 1 249,90 €", "1249,90 €"),
        ("1\u202f299,00 zł", "1299,00 zł"),
        ("2 495 kr", "2495 kr"),
        ("CHF 1'250.00", "CHF 1'250.00"),
        ("₹1,24,999", "₹1,24,999"),
        ("USD 1,049.50 incl. tax", "USD 1,049.50"),
        ("$34.50 with free shipping", "$34.50"),
    ],
)
def test_written_prices(text: str, price: str) -> None:
    """A price is read whole, however its thousands are grouped and whatever currency it is in."""
    extraction = html(f"<h1>Lamp L1</h1><p class=price>{text}</p><button>Add to cart</button><p>In stock</p>")
    assert (extraction.page_type, extraction.fields["price"]) == ("product", price)


def test_other_prices_are_not_the_products() -> None:
    """Former prices, shipping, reviews and other products are no price of the product."""
    extraction = read("shop_json_ld.html")
    assert lines(extraction, "pricing") == ["$697.00", "In Stock. Pickup today."]
    assert extraction.fields["specs"]["RAM"] == "16GB DDR5"
    assert "Quiet for its class, bought it for $650 on sale." in lines(extraction, "reviews")
    assert "ASUS TUF A15 $749.99" not in lines(extraction, "other")


def test_contradiction_is_told() -> None:
    """Data and text that differ are both told, and nothing is settled."""
    extraction = read("shop_disagrees.html")
    assert extraction.fields["disagreements"] == [
        "the page's data says $59, its text says $79.00",
        "the page's data says In Stock, its text says Sold out",
    ]
    assert extraction.quality < 0.5


def test_several_offers() -> None:
    """Several offers are kept one by one; no price is made of them."""
    extraction = read("shop_offers.html")
    assert "price" not in extraction.fields
    assert [(row["seller"], row["price"]) for row in extraction.fields["offers"]] == [
        ("Alpha", "€410.00"),
        ("Beta", "€399.00"),
    ]


def test_listing() -> None:
    """A list gives every product with its own price and stock."""
    extraction = read("listing.html")
    assert extraction.page_type == "listing"
    assert extraction.fields["products"][2] == {
        "name": "HP Victus 15",
        "price": "$799.00",
        "availability": "Sold out",
    }
    assert len(extraction.fields["products"]) == 4


def test_article() -> None:
    """An article gives title, author, date and its text, without menus, related links and cookie notices."""
    extraction = read("article.html")
    assert extraction.page_type == "article"
    assert (extraction.fields["author"], extraction.fields["published_at"]) == ("Marta Olsen", "2025-11-03")
    assert extraction.content.startswith("# How tides work")
    assert "16 metres" in extraction.content
    assert not any(word in extraction.content for word in ("Front page", "salty", "cookies"))


def test_table() -> None:
    """A table keeps its head, its rows and the heading before it; a table of layout is none."""
    tables = read("table.html").fields["tables"]
    assert [table["caption"] for table in tables] == ["Turku to Stockholm"]
    assert tables[0]["columns"] == ["Ship", "Leaves", "Arrives", "Fare"]
    assert tables[0]["rows"][1] == ["Borealis", "20:15", "06:30", "€38"]


def test_cells_that_span_rows() -> None:
    """A cell that spans rows stands in each of them, and none of the others is moved."""
    extraction = html(
        "<table><tr><th>Group<th>Ticket<th>Fare<tr><td rowspan=2>Adults<td>Day<td>$12"
        "<tr><td>Week<td>$40<tr><td>Children<td>Day<td>$6</table>"
    )
    rows = extraction.fields["tables"][0]["rows"]
    assert rows == [["Adults", "Day", "$12"], ["Adults", "Week", "$40"], ["Children", "Day", "$6"]]


def test_price_and_stock_without_a_blank() -> None:
    """Texts in elements of their own are apart, also without a blank in the markup."""
    cards = (f"<h3>Tent {n}</h3><span>${n}9.00</span><span>Out of stock</span>" for n in range(1, 5))
    extraction = html("<h1>Tents</h1>" + "".join(f"<div>{card}</div>" for card in cards))
    assert extraction.fields["products"][0] == {
        "name": "Tent 1",
        "price": "$19.00",
        "availability": "Out of stock",
    }


def test_left_out_and_broken_tags() -> None:
    """A page without a body tag is read, and so is a title with characters escaped twice."""
    assert html("<title>News</title><article><h1>Ferries</h1><p>They leave.</article>").title == "Ferries"
    assert html("<title>Pan<h1>Pan P1<p>$24.00").title == "Pan"
    data = '{"@type": "Product", "name": "Mug &amp; Saucer", "offers": {"price": "1 299.50"}}'
    extraction = html(f'<script type="application/ld+json">{data}</script><p>Text.')
    assert (extraction.title, extraction.fields["price"]) == ("Mug & Saucer", "1299.50")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cp1251.html", "Цена 2 990 рублей"),
        ("shift_jis.html", "電気ケトル"),
        ("latin1.html", "12,50 €"),
        ("no_charset.html", "schöne Grüße"),
        ("utf16.html", "Written in UTF-16."),
        ("broken.html", "Second paragraph"),
    ],
)
def test_charsets_and_broken_pages(name: str, says: str) -> None:
    """Pages in other charsets and broken ones are read as far as they can be."""
    assert says in read(name).content


def test_utf8_that_is_called_latin() -> None:
    """A server that calls every page latin-1 does not spoil one in UTF-8."""
    assert decode_body("Größe".encode(), "text/html; charset=iso-8859-1") == ("Größe", "utf-8")
    assert decode_body("Größe".encode("cp1252"), "text/html; charset=iso-8859-1") == ("Größe", "cp1252")


@pytest.mark.parametrize(
    "text", ["", "   ", "<", "<html></html>", "<p>" * 3000 + "deep", "\0\0<p>a", "plain words"]
)
def test_hardly_a_page(text: str) -> None:
    """A page of nearly nothing gives nearly nothing, with a quality that says so."""
    assert html(text).quality <= 0.5


@pytest.mark.parametrize("case", RAISED, ids=lambda case: case["html"])
def test_no_number_becomes_another(case: dict[str, str]) -> None:
    """In a paragraph, a cell, a definition, the main text, and in data for machines."""
    inside = case["html"]
    data = json.dumps({"@type": "Product", "name": "Desk", "description": inside})
    table = f"<table><tr><th>Name<th>Size<tr><td>a<td>{inside}<tr><td>b<td>none</table>"
    extraction = html(f"<h1>Desk</h1><p>{inside}</p>{table}<dl><dt>Length<dd>{inside}</dl>")
    items = [line for zone in extraction.fields["zones"] for line in zone["items"]]
    assert case["text"] in items
    assert extraction.fields["tables"][0]["rows"][0] == ["a", case["text"]]
    assert f"Length: {case['text']}" in items
    machine = html(f'<script type="application/ld+json">{data}</script><p>Text.')
    assert machine.fields["description"] == case["text"]
    article = html(f"<h1>Desk</h1><article><p>{LONG}</p><p>Sold so far: {inside} in all.</p></article>")
    written = article.content.replace("\\", "")
    assert "<su" not in written
    if "struck" not in case:
        assert f"Sold so far: {case['text']} in all." in written


def test_hidden_text_is_not_read() -> None:
    """Text that a page hides from its readers is hidden from us."""
    assert "SECRET" not in str(read("shop_split_price.html"))
    assert "steal.js" not in str(html("<script>steal.js</script><template>steal.js</template><p>Hello</p>"))


def test_extraction_compresses_by_zones() -> None:
    """The prices and data of a page are kept within a budget; menus go first."""
    text = render_json(read("shop_json_ld.html").fields)
    compression = compress(text, kind="page_doc", budget_tokens=count_tokens(text) // 2)
    assert "$697.00" in compression.text
    assert "NVIDIA RTX 4050" in compression.text
    assert "Cart (0)" not in compression.text


def test_long_pages_are_quick() -> None:
    """A page of a thousand sections is read; none of its zones grows without bounds."""
    extraction = html(
        "<h1>Long</h1>" + "<div><h2>Part</h2><p>Some words that go on.</p><p>$5.00</p></div>" * 1000
    )
    sizes: list[Any] = [len(zone["items"]) for zone in extraction.fields["zones"]]
    assert max(sizes) <= 400
