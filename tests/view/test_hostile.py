"""Hostile and damaged turns: the page stays a page, says what is wrong, and shows the rest."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from panda.documents.context import FrontMatter, Section, Text, parse_context, render_context
from panda.documents.text import UNSAFE
from panda.store.layout import Layout
from panda.view.output import write_site
from tests.effort import tried
from tests.hostile_files import plant
from tests.mutations import mutate
from tests.view.sites import Html, client_of, shelf_of, turn_numbers

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><a href=javascript:alert(1)>x</a>"
STEERING = "a\u202eb\u2066c\x1b[31m\x00\u2028d"


@pytest.fixture
def root(recorded: Path, tmp_path: Path) -> Path:
    """A store of its own with the recorded turns."""
    shutil.copytree(recorded, tmp_path / "store")
    return tmp_path / "store"


def change_json(path: Path, text: str) -> None:
    """Put a text in front of every free text that a JSON file or its lines hold."""
    fixed = {"kind", "status", "schema", "decision", "by", "next_step", "query_type", "intent", "relevance"}
    fixed |= {"finish_reason", "role", "ending", "outcome", "summary_kind", "source", "reuse_recommendation"}
    fixed |= {"sha256", "gathered_at", "mode", "user_id", "session_id", "freshness", "topic", "flow"}

    def changed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: changed(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [changed(one, key) for one in value]
        is_free = isinstance(value, str) and key not in fixed and not key.endswith(("_at", "_kind", "ids"))
        return f"{text}{value}" if is_free else value

    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    path.write_text("\n".join(json.dumps(changed(json.loads(line))) for line in lines) + "\n")


@pytest.mark.parametrize("text", [SCRIPT, STEERING], ids=["markup", "steering"])
def test_texts_never_become_markup(root: Path, text: str) -> None:
    """Script tags in every text of a turn stay text, and what steers a reader's eye is written out."""
    turn = Layout(root).of("demo").turn(813).directory
    document = parse_context((turn / "context.md").read_text(), where="")
    sections = tuple(Section(one.number, (*one.blocks, Text(text))) for one in document.sections)
    (turn / "context.md").write_text(render_context(type(document)(document.front, sections)))
    (turn / "response.md").write_text(
        f"{text} [1]\n\n- {text}\n\n| {text} |\n|---|\n\n```{text}\n{text}\n```\n"
    )
    for name in ("metadata.json", "retrieval_plan.json", "gathered_context.json", "plan.json"):
        change_json(turn / name, "" if name == "metadata.json" else text)
    metadata = json.loads((turn / "metadata.json").read_text())
    (turn / "metadata.json").write_text(json.dumps({**metadata, "query": text, "reason": text}))
    change_json(turn / "calls.jsonl", text)
    client = client_of(root)
    for path in (
        "/turns/demo/813",
        "/",
        "/turns/demo/813/files/response.md",
        "/turns/demo/813/files/calls.jsonl",
    ):
        reply = client.get(path)
        assert reply.status_code == 200
        page = Html(reply.text)
        names = {tag for tag, _ in page.elements}
        assert names.isdisjoint({"iframe", "object", "embed", "base", "style"})
        assert [given["src"] for tag, given in page.elements if tag == "script"] == [page.links[2]]
        assert not any(name.startswith("on") for _, given in page.elements for name in given)
        assert not any(link.startswith("javascript") for link in page.links)
        assert not UNSAFE.search(reply.text)


def test_an_address_never_becomes_markup(demo: Path) -> None:
    """What is asked for is told as text."""
    client = client_of(demo)
    for path in (f"/turns/{SCRIPT}", f"/?q={SCRIPT}", f"/?status={SCRIPT}", f"/?since={SCRIPT}"):
        page = Html(client.get(path).text)
        assert sum(tag == "script" for tag, _ in page.elements) == 1
        assert not any("onerror" in given for _, given in page.elements)


@pytest.mark.parametrize(
    "name",
    [
        *("metadata.json", "context.md", "response.md", "metrics.json", "retrieval_plan.json"),
        *("gathered_context.json", "plan.json", "query_analysis.json", "reflection.json", "calls.jsonl"),
        *("steps/step_01.json", "snapshot.json"),
    ],
)
def test_a_damaged_file_is_named_and_the_rest_is_shown(root: Path, name: str) -> None:
    """Where a file is damaged stands which it is and why; answer or question are still there."""
    path = Layout(root).of("demo").turn(813).directory / name
    path.write_bytes(b'\xff{"broken": \n' + path.read_bytes()[:40])
    reply = client_of(root).get("/turns/demo/813")
    assert reply.status_code == 200
    assert 'class="damaged"' in reply.text
    assert name in reply.text
    assert "availability In Stock" in reply.text
    assert "Which laptop was the top pick" in reply.text


@pytest.mark.parametrize("name", ["metadata.json", "context.md", "response.md", "calls.jsonl", "plan.json"])
def test_a_missing_file_is_no_fault_of_the_others(root: Path, name: str) -> None:
    """Whichever file is gone, the page is there."""
    (Layout(root).of("demo").turn(813).directory / name).unlink()
    client = client_of(root)
    assert client.get("/turns/demo/813").status_code == 200
    assert client.get("/").status_code == 200


def test_an_empty_turn_directory(root: Path) -> None:
    """A turn without any file is listed as unreadable, and its page says what is missing."""
    Layout(root).of("demo").turn(900).directory.mkdir()
    client = client_of(root)
    assert "unreadable" in client.get("/").text
    assert "No question can be read" in client.get("/turns/demo/900").text


@pytest.mark.parametrize("status", ["running", "halted", "interrupted", "gathered", "clarify"])
def test_turns_that_have_not_come_to_an_end(root: Path, status: str) -> None:
    """A turn that stopped on its way shows what there is."""
    turn = Layout(root).of("demo").turn(813).directory
    metadata = json.loads((turn / "metadata.json").read_text())
    metadata |= {"status": status, "next": {"phase": 3, "round": 0, "attempt": 0}, "saved_at": None}
    metadata |= {"question": "Which of the two?" if status == "clarify" else None, "seal": None}
    (turn / "metadata.json").write_text(json.dumps(metadata))
    for name in ("response.md", "metrics.json", "plan.json", "summary.json"):
        (turn / name).unlink()
    document = parse_context((turn / "context.md").read_text(), where="")
    front: FrontMatter = document.front
    (turn / "context.md").write_text(render_context(type(document)(front, document.sections[:3])))
    text = client_of(root).get("/turns/demo/813").text
    assert status in text
    assert {"running": "phase 3 is next", "clarify": "Which of the two?"}.get(status, "no answer") in text


def test_huge_files_are_cut_and_say_so(root: Path) -> None:
    """A page of a turn with huge files has a bounded size, and names what it leaves out."""
    turn = Layout(root).of("demo").turn(813).directory
    (turn / "response.md").write_text("word " * 400_000)
    line = json.loads((turn / "calls.jsonl").read_text().splitlines()[0])
    line["prefix"]["content"] = "prompt " * 100_000
    line["options"] = line["options"] * 2_000
    (turn / "calls.jsonl").write_text((json.dumps(line) + "\n") * 12)
    (turn / "toolresults.md").write_bytes(b"\0" * 20_000_000)
    for number in range(2_000):
        (turn / "artifacts").mkdir(exist_ok=True)
        (turn / "artifacts" / f"{number}.txt").touch()
    reply = client_of(root).get("/turns/demo/813")
    assert reply.status_code == 200
    assert len(reply.text) < 2_000_000
    assert "more characters in" in reply.text
    assert "were not read for this page" in reply.text
    assert len(client_of(root).get("/turns/demo/813/files/toolresults.md").text) < 100_000


def test_links_and_pipes_in_a_turn_are_not_followed(root: Path, tmp_path: Path) -> None:
    """A link that leads out of the turn shows nothing of where it leads, and a pipe is not waited for."""
    (tmp_path / "secret.txt").write_text("a secret")
    turn = Layout(root).of("demo").turn(813).directory
    (turn / "notes.txt").symlink_to(tmp_path / "secret.txt")
    (turn / "out").symlink_to(tmp_path)
    (turn / "plan.json").unlink()
    os.mkfifo(turn / "plan.json")
    client = client_of(root)
    assert client.get("/turns/demo/813").status_code == 200
    for name in ("notes.txt", "out/secret.txt", "plan.json"):
        reply = client.get(f"/turns/demo/813/files/{name}")
        assert reply.status_code in (400, 404)
        assert "a secret" not in reply.text


@pytest.mark.parametrize("seed", range(tried(4, 12)))
def test_planted_files(root: Path, tmp_path: Path, seed: int) -> None:
    """Whatever names, texts and values lie in a store, every page of it is there, served and written."""
    plant(Layout(root), "demo", seed, 40)
    client = client_of(root)
    assert client.get("/").status_code == 200
    assert client.get("/?q=laptop").status_code == 200
    for number in turn_numbers(root):
        page = client.get(f"/turns/demo/{number}")
        assert page.status_code == 200
        for link in Html(page.text).links:
            assert "/files/" not in link or client.get(link).status_code in (200, 400, 404)
    assert write_site(tmp_path / "site", shelf_of(root))


@pytest.mark.parametrize("seed", range(tried(12, 40)))
def test_mutated_turns(root: Path, seed: int) -> None:
    """However the files of a turn are damaged, its page is there."""
    client = client_of(root)
    for number in (811, 813):
        done = mutate(Layout(root).of("demo").turn(number).directory, seed)
        assert client.get(f"/turns/demo/{number}").status_code == 200, done
    assert client.get("/").status_code == 200
