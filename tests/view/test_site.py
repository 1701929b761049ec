"""The pages over real turns: served, written as files, and every link of both."""

import json
import shutil
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

from panda.errors import UsageError
from panda.store.layout import Layout
from panda.view.output import check_target, write_site
from tests.builders import build_store, import_line, tree
from tests.view.sites import Html, client_of, shelf_of, turn_numbers


def crawl(root: Path) -> dict[str, Html]:
    """Every page that can be reached from the first one, by its path; fails where a link leads nowhere."""
    client, found, todo = client_of(root), dict[str, Html](), ["/"]
    wanted: list[tuple[str, str]] = []
    while todo:
        path = todo.pop()
        if path in found:
            continue
        reply = client.get(path)
        assert reply.status_code == 200, path
        if not reply.headers["content-type"].startswith("text/html"):
            found[path] = Html("")
            continue
        found[path] = Html(reply.text)
        for link in found[path].links:
            target, fragment = urldefrag(urljoin(path, link))
            assert not urlsplit(target).netloc, f"{path} leads away to {link}"
            wanted.append((target, fragment))
            todo.append(target)
    for target, fragment in wanted:
        assert not fragment or fragment in found[target].text_in, f"{target} has no {fragment}"
    return found


def test_every_link_of_a_served_site_leads_somewhere(recorded: Path) -> None:
    """From the first page all turns and all their files are reached, and no link is broken."""
    pages = crawl(recorded)
    for number in turn_numbers(recorded):
        assert f"/turns/demo/{number}" in pages
        assert f"/turns/demo/{number}/files/context.md" in pages


def test_every_link_of_a_written_site_leads_to_a_file(recorded: Path, tmp_path: Path) -> None:
    """The files lead to each other by relative links, and to nothing that is not there."""
    out = tmp_path / "site"
    written = write_site(out, shelf_of(recorded))
    assert sorted(written) == sorted(tree(out))
    ids = {name: Html((out / name).read_text()) for name in written if name.endswith(".html")}
    for name, page in ids.items():
        for link in page.links:
            target, fragment = urldefrag(link)
            path = (out / name).parent / unquote(target) if target else out / name
            assert path.is_file(), f"{name}: {link}"
            if fragment:
                assert fragment in ids[str(path.resolve().relative_to(out.resolve()))].text_in
    assert {f"turns/demo/{number}.html" for number in turn_numbers(recorded)} <= set(written)


def test_a_written_selection_has_no_links_to_other_turns(recorded: Path, tmp_path: Path) -> None:
    """Of a selection only its turns are written; what they cite of others is named without a link."""
    out = tmp_path / "site"
    written = write_site(out, shelf_of(recorded, selected={"demo": [811]}))
    assert [name for name in written if name.startswith("turns/demo/")] == ["turns/demo/811.html"]
    page = (out / "turns/demo/811.html").read_text()
    assert "turn:810" in page
    assert "810.html" not in page


@pytest.mark.parametrize("where", ["in the store", "not empty"])
def test_pages_are_written_into_a_new_directory_alone(recorded: Path, tmp_path: Path, where: str) -> None:
    """Neither the store nor a directory that holds something is written into."""
    (tmp_path / "file").write_text("mine")
    target = recorded / "site" if where == "in the store" else tmp_path
    with pytest.raises(UsageError):
        check_target(target, shelf_of(recorded))


def test_nothing_is_written_into_the_store(recorded: Path, tmp_path: Path) -> None:
    """Looking, searching and filtering leave every byte of the store as it was."""
    root = tmp_path / "store"
    shutil.copytree(recorded, root)
    before = tree(root)
    client = client_of(root)
    for path in (
        "/",
        "/?q=laptop",
        "/?session=default&since=2026-01-01",
        "/turns/demo/813",
        "/turns/demo/811",
    ):
        assert client.get(path).status_code == 200
    assert tree(root) == before


def test_links_of_the_answer_lead_to_the_quoted_words(recorded: Path) -> None:
    """Each mark of an answer leads to a source in which the words of that statement are marked."""
    checked = 0
    client = client_of(recorded)
    for number in turn_numbers(recorded):
        page = Html(client.get(f"/turns/demo/{number}").text)
        marks = dict(page.marks)
        anchors = [
            str(attributes["href"])[1:]
            for tag, attributes in page.elements
            if tag == "a" and attributes.get("class") == "mark"
        ]
        response = Layout(recorded).of("demo").turn(number).directory / "response.md"
        said = response.read_text() if response.exists() else ""
        for anchor in anchors:
            quoted = marks.get(anchor)
            if quoted is not None and quoted in said:
                checked += 1
            else:
                assert "near" in page.text_in[anchor], (number, anchor)
    assert checked >= 4


def test_answers_are_fenced_in(demo: Path) -> None:
    """Every answer, errors too, says what a page may load, and that it may not be framed or guessed at."""
    client = client_of(demo)
    for path in ("/", "/turns/demo/811", "/assets/style.css", "/nothing", "/turns/nobody/1"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_pages_have_neither_inline_scripts_nor_styles(recorded: Path) -> None:
    """What the policy forbids does not occur: nothing inline, nothing from elsewhere."""
    for path, page in crawl(recorded).items():
        for tag, attributes in page.elements:
            assert "style" not in attributes, path
            assert not any(name.startswith("on") for name in attributes), path
            assert tag != "style", path
            assert tag != "script" or attributes.get("src", "").startswith("/assets/"), path  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/turns/demo/99999", 404),
        ("/turns/demo/x", 404),
        ("/turns/nobody", 404),
        ("/turns/..%2f..%2fetc", 404),
        ("/turns/demo/811/files/..%2f..%2f..%2fpreferences.md", 404),
        ("/turns/demo/811/files/none.md", 404),
        ("/turns/demo/811/files/%00", 404),
        ("/nothing", 404),
        ("/?since=yesterday", 400),
        ("/?status=happy", 400),
        ("/?session=A%20B", 400),
        ("/turns/demo/before/x", 400),
        ("/turns/demo/before/" + "9" * 30, 400),
    ],
)
def test_wrong_addresses_are_answered_with_a_page(demo: Path, path: str, status: int) -> None:
    """What is not there, or not asked rightly, gets a page that says so."""
    reply = client_of(demo).get(path)
    assert reply.status_code == status
    assert "This page cannot be shown" in reply.text


def test_nothing_but_reading(demo: Path) -> None:
    """Methods that write are refused."""
    assert client_of(demo).post("/").status_code == 405


def test_a_page_that_has_not_changed_is_not_sent_again(demo: Path) -> None:
    """Who polls a page gets it only when it says something else."""
    client = client_of(demo)
    first = client.get("/turns/demo")
    again = client.get("/turns/demo", headers={"if-none-match": first.headers["etag"]})
    assert (first.status_code, again.status_code) == (200, 304)


def listed(html: str) -> list[int]:
    """Numbers of the turns of a list, in its order."""
    links = [str(given["href"]) for tag, given in Html(html).elements if tag == "a" and "data-row" in given]
    return [int(link.rpartition("/")[2]) for link in links]


def test_the_list_comes_in_pages(tmp_path: Path) -> None:
    """Fifty turns a page, the newest first; each page leads to the next older one."""
    lines = [import_line(turn=n, at="2026-01-03T10:00:00Z") for n in range(1, 121)]
    build_store(tmp_path / "store", *lines)
    client = client_of(tmp_path / "store")
    path, seen, pages = "/", list[int](), 0
    while path:
        page = client.get(path).text
        seen += listed(page)
        pages += 1
        path = next((link for link in Html(page).links if "/before/" in link), "")
    assert (seen, pages) == (list(range(120, 0, -1)), 3)


def test_filters_and_search(demo: Path) -> None:
    """Search, session, status and date leave the turns that they say, in any combination."""
    client = client_of(demo)
    everything = listed(client.get("/").text)
    assert everything == sorted(everything, reverse=True)
    assert 811 in listed(client.get("/?q=RTX+4050").text)
    assert listed(client.get("/?session=none_such").text) == []
    assert listed(client.get("/?status=failed").text) == []
    files = {number: Layout(demo).of("demo").turn(number) / "metadata.json" for number in everything}
    by_day = {number: json.loads(path.read_text())["created_at"][:10] for number, path in files.items()}
    day = by_day[811]
    found = listed(client.get(f"/?since={day}&until={day}").text)
    assert found == [number for number in everything if by_day[number] == day]


def test_turns_of_a_session_that_are_not_saved_are_found(tmp_path: Path) -> None:
    """A turn that runs or halted is in no index, and found by its session and status all the same."""
    layout = build_store(tmp_path / "store", *[import_line(turn=n, session="blue") for n in (1, 2)])
    metadata = layout.of("demo").turn(2) / "metadata.json"
    metadata.write_text(metadata.read_text().replace('"imported"', '"halted"'))
    client = client_of(tmp_path / "store")
    assert listed(client.get("/?session=blue").text) == [2, 1]
    assert listed(client.get("/?status=halted").text) == [2]


def test_the_filter_shows_what_was_asked(demo: Path) -> None:
    """A filter stands in its fields again, and goes with the links to older turns."""
    text = client_of(demo).get("/?q=laptop&session=default&status=approved&since=2020-01-01").text
    fields = {given.get("name"): given.get("value") for tag, given in Html(text).elements if tag == "input"}
    assert (fields["q"], fields["session"], fields["since"]) == ("laptop", "default", "2020-01-01")
    assert "<option selected>approved</option>" in text


def test_the_filter_leads_to_the_list_of_its_user(tmp_path: Path) -> None:
    """Who chooses another user gets that one's turns, filtered as asked, and links that stay with them."""
    build_store(
        tmp_path / "store",
        *[import_line(turn=n, user=user, query=f"{user} asks") for user in ("ann", "bob") for n in (1, 2)],
    )
    client = client_of(tmp_path / "store", "ann")
    reply = client.get("/?user=bob&q=asks&session=&status=")
    assert str(reply.url).endswith("/turns/bob?q=asks")
    assert "bob asks" in reply.text
    assert "/turns/ann/" not in reply.text
    assert client.get("/?user=//evil.example").status_code == 404


def test_a_user_without_turns(demo: Path) -> None:
    """The list of a user of whom nothing is saved says how to begin."""
    reply = client_of(demo, "newcomer").get("/")
    assert reply.status_code == 200
    assert "There are no turns here yet" in reply.text
