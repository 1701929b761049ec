"""The pages over real turns: served, written as files, and every link of both."""

import json
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from starlette.testclient import TestClient

from tests.api import Panda, open_pages, tree
from tests.store_files import write_turn
from tests.view.sites import Html, assert_plain, change_json, crawl, turn_numbers, write_run


def test_every_link_of_a_served_site_leads_somewhere(panda: Panda) -> None:
    """From the first page all pages are reached; none has anything inline, and the store stays as it was."""
    older = write_run(panda, {811: {}, 813: {"result": "differs"}}).name
    newer = write_run(panda, {811: {}}).name
    before = tree(panda.store)
    htmls = crawl(open_pages(panda))
    turns = {f"/turns/demo/{number}" for number in turn_numbers(panda)}
    runs = {f"/runs/{older}", f"/runs/compare/{older}/{newer}", f"/runs/compare/saved/{newer}"}
    memory = {"/memory/demo", "/sessions/demo", "/sessions/demo/default"}
    assert turns | {f"{turn}/files/context.md" for turn in turns} | runs | memory <= set(htmls)
    assert {"/stats/demo", "/interventions"} <= set(htmls)
    for html in htmls.values():
        assert_plain(html)
    assert tree(panda.store) == before


def test_every_link_of_a_written_site_leads_to_a_file(panda: Panda) -> None:
    """The files lead to each other by relative links, to nothing that is not there, and all are reached."""
    runs = [write_run(panda, {811: {}}).name for _ in range(2)]
    panda("memory", "set", "gone", "soon")
    panda("memory", "retract", "gone")
    before = tree(panda.store)
    data = panda.json("view", "--out", "site")
    out = panda.home / "site"
    assert sorted(data["files"]) == sorted(tree(out))
    assert (panda.home / data["first"]).read_text().startswith("<!doctype html>")
    pages = {name: Html((out / name).read_text()) for name in data["files"] if name.endswith(".html")}
    reached = {"index.html"}
    for name, page in pages.items():
        for link in page.links:
            target, fragment = urldefrag(link)
            path = (out / name).parent / unquote(target) if target else out / name
            assert path.is_file(), f"{name}: {link}"
            place = path.resolve().relative_to(out.resolve()).as_posix()
            reached.add(place)
            assert not fragment or fragment in pages[place].text_in
    assert set(pages) <= reached
    assert {f"turns/demo/{number}.html" for number in turn_numbers(panda)} <= reached
    assert {f"runs/compare/saved/{runs[1]}.html", f"runs/compare/{runs[0]}/{runs[1]}.html"} <= reached
    assert {"memory/demo.html", "sessions/demo.html", "sessions/demo/default.html"} <= reached
    assert tree(panda.store) == before


def test_a_written_selection_has_no_links_to_other_turns(panda: Panda) -> None:
    """Its turns are written and neither memory nor sessions; other turns are named without a link."""
    files = panda.json("view", "811", "--out", "site")["files"]
    assert [name for name in files if name.startswith("turns/demo/")] == ["turns/demo/811.html"]
    assert not [name for name in files if name.startswith(("memory", "sessions"))]
    page = (panda.home / "site" / "turns/demo/811.html").read_text()
    assert "turn:810" in page
    assert "810.html" not in page
    assert "memory/demo" not in (panda.home / "site" / "index.html").read_text()


def test_a_selected_run_is_written_with_its_turns_and_nothing_else(panda: Panda) -> None:
    """`panda view --out DIR RUN` has the run, its turns and the comparison, no memory and no other run."""
    other, run = (write_run(panda, {number: {}}).name for number in (811, 813))
    files = panda.json("view", run, "--out", "site")["files"]
    expected = {f"runs/{run}.html", f"runs/compare/saved/{run}.html", "turns/demo/813.html"}
    written = {name for name in files if name.endswith(".html")}
    assert written == expected | {"index.html", "runs.html", "turns/demo.html"}
    assert f"{other}.html" not in (panda.home / "site" / "runs.html").read_text()


def test_links_of_the_answer_lead_to_the_quoted_words(panda: Panda, pages: TestClient) -> None:
    """Each mark of an answer leads to a source in which the words of that statement are marked."""
    checked = 0
    for number in turn_numbers(panda):
        page = Html(pages.get(f"/turns/demo/{number}").text)
        marks = dict(page.marks)
        links = [given for tag, given in page.elements if tag == "a" and given.get("class") == "mark"]
        response = panda.turn_file(number, "response.md")
        answer = response.read_text() if response.exists() else ""
        for anchor in [str(given["href"])[1:] for given in links]:
            quoted = marks.get(anchor)
            if quoted is not None and quoted in answer:
                checked += 1
            else:
                assert "near" in page.text_in[anchor], (number, anchor)
    assert checked >= 4


def test_answers_are_fenced_in(pages: TestClient) -> None:
    """Every answer, errors too, says what a page may load, and that it may not be framed or guessed at."""
    for path in ("/", "/turns/demo/811", "/assets/style.css", "/nothing", "/turns/nobody/1"):
        headers = pages.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("status", "paths"),
    [
        (404, "/turns/demo/99999 /turns/demo/x /turns/nobody /turns/..%2f..%2fetc /nothing"),
        (404, "/turns/demo/811/files/..%2f..%2f..%2fpreferences.md /turns/demo/811/files/none.md"),
        (404, "/turns/demo/811/files/%00 /?user=//evil.example"),
        (400, "/?since=yesterday /?status=happy /?session=A%20B /turns/demo/before/x"),
        (400, "/turns/demo/before/999999999999999999999999999999"),
        (404, "/memory/nobody /memory/demo/x /sessions/demo/none /sessions/nobody /stats/demo?recipe=none"),
        (400, "/memory/demo/page/x /sessions/demo/A%20B /sessions/demo/page/-1 /stats/demo?since=soon"),
        (200, "/memory/demo/page/99"),
    ],
)
def test_wrong_addresses_are_answered_with_a_page(pages: TestClient, status: int, paths: str) -> None:
    """What is not there, or not asked rightly, gets a page that says so."""
    for path in paths.split():
        reply = pages.get(path)
        assert reply.status_code == status, path
        assert ("This page cannot be shown" in reply.text) == (status != 200)


def test_nothing_but_reading(pages: TestClient) -> None:
    """Methods that write are refused, and what has not changed is not sent again."""
    assert pages.post("/").status_code == 405
    tag = pages.get("/turns/demo").headers["etag"]
    assert pages.get("/turns/demo", headers={"if-none-match": tag}).status_code == 304


def listed(html: str) -> list[int]:
    """Numbers of the turns of a list, in its order."""
    links = [str(given["href"]) for tag, given in Html(html).elements if tag == "a" and "data-row" in given]
    return [int(link.rpartition("/")[2]) for link in links]


def written_turns(tmp_path: Path, user: str, *numbers: int, session: str = "default") -> Panda:
    """A project in which a user has some turns."""
    panda = Panda(tmp_path / "project", user=user)
    (panda.store / "users").mkdir(parents=True, exist_ok=True)
    for number in numbers:
        write_turn(panda.user_directory, number, query=f"{user} asks", response="Yes.", session=session)
    return panda


def test_the_list_comes_in_pages(tmp_path: Path) -> None:
    """Fifty turns a page, the newest first; each page leads to the next older one."""
    pages = open_pages(written_turns(tmp_path, "demo", *range(1, 121)))
    path, numbers, count = "/", list[int](), 0
    while path:
        html = pages.get(path).text
        numbers += listed(html)
        count += 1
        path = next((link for link in Html(html).links if "/before/" in link), "")
    assert (numbers, count) == (list(range(120, 0, -1)), 3)


def test_filters_and_search(panda: Panda, pages: TestClient) -> None:
    """Search, session, status and date leave the turns that they say, and stand in their fields again."""
    everything = listed(pages.get("/").text)
    assert everything == sorted(everything, reverse=True)
    assert 811 in listed(pages.get("/?q=RTX+4050").text)
    assert listed(pages.get("/?session=none_such").text) == []
    assert listed(pages.get("/?status=failed").text) == []
    created = {
        number: json.loads(panda.turn_file(number, "metadata.json").read_text())["created_at"][:10]
        for number in everything
    }
    day = created[811]
    same_day = listed(pages.get(f"/?since={day}&until={day}").text)
    assert same_day == [number for number in everything if created[number] == day]
    text = pages.get("/?q=laptop&session=default&status=approved&since=2020-01-01").text
    fields = {given.get("name"): given.get("value") for tag, given in Html(text).elements if tag == "input"}
    assert (fields["q"], fields["session"], fields["since"]) == ("laptop", "default", "2020-01-01")
    assert "<option selected>approved</option>" in text


def test_turns_of_a_session_that_are_not_saved_are_found(tmp_path: Path) -> None:
    """A turn that runs or halted is in no index, and found by its session and status all the same."""
    panda = written_turns(tmp_path, "demo", 1, 2, session="blue")
    change_json(panda.turn_file(2, "metadata.json"), status="halted")
    pages = open_pages(panda)
    assert listed(pages.get("/?session=blue").text) == [2, 1]
    assert listed(pages.get("/?status=halted").text) == [2]


def test_the_filter_leads_to_the_list_of_its_user(tmp_path: Path) -> None:
    """Who chooses another user gets that one's turns, filtered as asked, and links that stay with them."""
    written_turns(tmp_path, "bob", 1, 2)
    reply = open_pages(written_turns(tmp_path, "ann", 1, 2)).get("/?user=bob&q=asks&session=&status=")
    assert str(reply.url).endswith("/turns/bob?q=asks")
    assert "bob asks" in reply.text
    assert "/turns/ann/" not in reply.text


def test_a_user_without_turns(demo: Path, tmp_path: Path) -> None:
    """The list of a user of whom nothing is saved says how to begin."""
    reply = open_pages(Panda(tmp_path, demo, user="newcomer")).get("/")
    assert reply.status_code == 200
    assert "There are no turns here yet" in reply.text
