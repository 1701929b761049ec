"""Hostile and damaged turns: the page stays a page, says what is wrong, and shows the rest."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api import Panda
from tests.effort import tried
from tests.hostile_files import plant
from tests.mutations import mutate
from tests.view.sites import SCRIPT, STEERING, Html, assert_plain, change_json, turn_numbers

PAGE = "/turns/demo/813"
FIXED = {
    *("kind", "status", "schema", "decision", "by", "next_step", "query_type", "intent", "relevance", "flow"),
    *("finish_reason", "role", "ending", "outcome", "summary_kind", "source", "reuse_recommendation"),
    *("sha256", "gathered_at", "mode", "user_id", "session_id", "freshness", "topic"),
}
"""Names of properties whose values are none of a model's or a user's words."""


def put_before_texts(path: Path, text: str) -> None:
    """Put a text in front of every free text that a JSON file or its lines hold."""

    def changed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: changed(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [changed(inner, key) for inner in value]
        is_free = isinstance(value, str) and key not in FIXED and not key.endswith(("_at", "_kind", "ids"))
        return f"{text}{value}" if is_free else value

    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    path.write_text("\n".join(json.dumps(changed(json.loads(line))) for line in lines) + "\n")


@pytest.mark.parametrize("text", [SCRIPT, STEERING + "\x00"], ids=["markup", "steering"])
def test_texts_never_become_markup(panda: Panda, pages: TestClient, text: str) -> None:
    """Script tags in every text of a turn stay text, and what steers a reader's eye is written out."""
    turn = panda.turn_file(813, "")
    context = (turn / "context.md").read_text()
    (turn / "context.md").write_text(re.sub(r"(?m)^(?=## [1-9])", f"{text}\n\n", context) + f"\n{text}\n")
    (turn / "response.md").write_text(
        f"{text} [1]\n\n- {text}\n\n| {text} |\n|---|\n\n```{text}\n{text}\n```\n"
    )
    for name in ("retrieval_plan.json", "gathered_context.json", "plan.json", "calls.jsonl"):
        put_before_texts(turn / name, text)
    change_json(turn / "metadata.json", query=text, reason=text)
    for path in (PAGE, "/", f"{PAGE}/files/response.md", f"{PAGE}/files/calls.jsonl"):
        reply = pages.get(path)
        assert reply.status_code == 200
        assert_plain(reply.text)


def test_an_address_never_becomes_markup(pages: TestClient) -> None:
    """What is asked for is told as text."""
    for path in (f"/turns/{SCRIPT}", f"/?q={SCRIPT}", f"/?status={SCRIPT}", f"/?since={SCRIPT}"):
        html = pages.get(path).text
        assert_plain(html)
        assert sum(tag == "script" for tag, _ in Html(html).elements) == 1


@pytest.mark.parametrize(
    "name",
    [
        *("metadata.json", "context.md", "response.md", "metrics.json", "retrieval_plan.json"),
        *("gathered_context.json", "plan.json", "query_analysis.json", "reflection.json", "calls.jsonl"),
        "snapshot.json",
    ],
)
def test_a_damaged_file_is_named_and_the_rest_is_shown(panda: Panda, pages: TestClient, name: str) -> None:
    """Answer or question are still there, and also the page and the list where the file is gone."""
    path = panda.turn_file(813, name)
    path.write_bytes(b'\xff{"broken": \n' + path.read_bytes()[:40])
    reply = pages.get(PAGE)
    assert reply.status_code == 200
    assert 'class="damaged"' in reply.text
    for text in (name, "availability In Stock", "Which laptop was the top pick"):
        assert text in reply.text
    path.unlink()
    assert pages.get(PAGE).status_code == 200
    assert pages.get("/").status_code == 200


def test_an_empty_turn_directory(panda: Panda, pages: TestClient) -> None:
    """A turn without any file is listed as unreadable, and its page says what is missing."""
    panda.turn_file(900, "").mkdir()
    assert "unreadable" in pages.get("/").text
    assert "No question can be read" in pages.get("/turns/demo/900").text


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("running", "phase 3 is next"),
        ("halted", "no answer"),
        ("interrupted", "no answer"),
        ("gathered", "no answer"),
        ("clarify", "Which of the two?"),
    ],
)
def test_turns_that_have_not_come_to_an_end(panda: Panda, pages: TestClient, status: str, text: str) -> None:
    """A turn that stopped on its way shows what there is."""
    question = "Which of the two?" if status == "clarify" else None
    following = {"phase": 3, "round": 0, "attempt": 0}
    change_json(
        panda.turn_file(813, "metadata.json"),
        status=status,
        next=following,
        saved_at=None,
        question=question,
        seal=None,
    )
    for name in ("response.md", "metrics.json", "plan.json", "summary.json"):
        panda.turn_file(813, name).unlink()
    context = panda.turn_file(813, "context.md")
    context.write_text(context.read_text().partition("\n## 3. ")[0])
    html = pages.get(PAGE).text
    assert ("asked" if status == "clarify" else status) in html
    assert text in html


def test_the_reply_of_an_offline_call_is_shown(pages: TestClient) -> None:
    """A call of an offline layer is told as such, with its reply."""
    html = pages.get(PAGE).text
    assert '<span class="what">offline</span>' in html
    assert "PROCEED" in html.partition('<span class="what">offline</span>')[2]


def test_huge_files_are_cut_and_say_so(panda: Panda, pages: TestClient) -> None:
    """A page of a turn with huge files has a bounded size, and names what it leaves out."""
    turn = panda.turn_file(813, "")
    (turn / "response.md").write_text("word " * 400_000)
    line = json.loads((turn / "calls.jsonl").read_text().splitlines()[0])
    option = {"context": "", "continuation": "PROCEED", "logprob": -0.5, "tokens": 2}
    scored = {
        "kind": "choose",
        "property": "decision",
        "prefix": {"sha256": "0" * 64, "content": "prompt " * 100_000},
        "options": [option] * 2_000,
    }
    del line["behaviour"], line["reply"]
    (turn / "calls.jsonl").write_text((json.dumps({**line, **scored}) + "\n") * 12)
    (turn / "toolresults.md").write_bytes(b"\0" * 20_000_000)
    (turn / "artifacts").mkdir()
    for number in range(2_000):
        (turn / "artifacts" / f"{number}.txt").touch()
    reply = pages.get(PAGE)
    assert reply.status_code == 200
    assert len(reply.text) < 2_000_000
    assert "more characters in" in reply.text
    assert "were not read for this page" in reply.text
    assert len(pages.get(f"{PAGE}/files/toolresults.md").text) < 100_000


def test_links_and_pipes_in_a_turn_are_not_followed(panda: Panda, pages: TestClient, tmp_path: Path) -> None:
    """A link that leads out of the turn shows nothing of where it leads, and a pipe is not waited for."""
    (tmp_path / "secret.txt").write_text("a secret")
    panda.turn_file(813, "notes.txt").symlink_to(tmp_path / "secret.txt")
    panda.turn_file(813, "out").symlink_to(tmp_path)
    panda.turn_file(813, "plan.json").unlink()
    os.mkfifo(panda.turn_file(813, "plan.json"))
    assert pages.get(PAGE).status_code == 200
    for name in ("notes.txt", "out/secret.txt", "plan.json"):
        reply = pages.get(f"{PAGE}/files/{name}")
        assert reply.status_code in (400, 404)
        assert "a secret" not in reply.text


@pytest.mark.parametrize("seed", range(tried(3, 12)))
def test_planted_files(panda: Panda, pages: TestClient, seed: int) -> None:
    """Whatever names, texts and values lie in a store, every page of it is there, served and written."""
    plant(panda.store, "demo", seed, 40)
    assert pages.get("/").status_code == 200
    assert pages.get("/?q=laptop").status_code == 200
    for number in turn_numbers(panda):
        page = pages.get(f"/turns/demo/{number}")
        assert page.status_code == 200
        for link in Html(page.text).links:
            assert "/files/" not in link or pages.get(link).status_code in (200, 400, 404)
    assert panda("view", "--out", "site").code == 0


@pytest.mark.parametrize("number", [811, 813])
def test_mutated_turns(panda: Panda, pages: TestClient, tmp_path: Path, number: int) -> None:
    """However the files of a turn are damaged, its page and the list are there."""
    turn = panda.turn_file(number, "")
    sound = shutil.copytree(turn, tmp_path / "sound")
    for seed in range(tried(12, 40)):
        shutil.rmtree(turn)
        shutil.copytree(sound, turn)
        damage = mutate(turn, seed)
        assert pages.get(f"/turns/demo/{number}").status_code == 200, damage
        assert pages.get("/").status_code == 200, damage
