"""What is left of a phrase after `panda forget`: no form of it, no digest of what held it, no reference."""

import hashlib
import html
import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

import pytest

from tests.api import Panda
from tests.forgetting.traces import assert_sound, copy_project, kept_files, make_project
from tests.store_files import import_line, write_json, write_visit

PHRASE = "Purple monkey 'dish/washer' é😀 4711"
TOLD = f"My vault code is {PHRASE}."


def run(panda: Panda, *words: str, code: int | None = 0, stdin: str = "") -> str:
    """Run a command that ends as it should; return what it said."""
    ended = panda(*words, stdin=stdin)
    assert code is None or ended.code == code, (words, ended)
    return ended.out + ended.err


def files(panda: Panda) -> list[Path]:
    """Return every file of store and cache but models; notes are the user's own."""
    return [path for path in kept_files(panda) if "knowledge" not in path.parts]


def holding(panda: Panda, phrase: str) -> list[str]:
    """Return the files that hold a phrase in any form."""
    plain = _plain(phrase)
    return [str(path) for path in files(panda) if plain in _plain_texts(path.read_bytes(), path.name)]


def digests_of(panda: Panda, phrase: str) -> set[str]:
    """Return sha256 of every text that holds a phrase: files, values, lines, objects, sections."""
    plain = _plain(phrase)
    digests: set[str] = set()
    for path in files(panda):
        data = path.read_bytes()
        texts = [data, *(text.encode("utf-8", "replace") for text in _texts(data, path.name))]
        for part in re.split(r"(?m)^(?=## \d)", data.decode("utf-8", "replace")):
            texts += [part.encode(), part.strip().encode()]
        holders = (text for text in texts if plain in _plain(text.decode("utf-8", "replace")))
        digests.update(hashlib.sha256(text).hexdigest() for text in holders)
    return digests


def telling(panda: Panda, digests: set[str]) -> list[tuple[str, str]]:
    """Return the files that hold one of the digests, be it cut to no less than 8 digits, or as bytes."""
    short = {digest[:8]: digest for digest in digests}
    raw = {bytes.fromhex(digest[:32]) for digest in digests}
    places = []
    for path in files(panda):
        data = path.read_bytes()
        words = re.findall(r"(?<![0-9a-f])[0-9a-f]{8,64}(?![0-9a-f])", f"{data.decode('latin1')} {path}")
        places += [(str(path), word) for word in words if short.get(word[:8], "").startswith(word)]
        places += [(str(path), "bytes") for digest in raw if digest in data]
    return places


def dangling(panda: Panda) -> list[str]:
    """Return the calls.jsonl that refer to messages which no line of theirs spells out."""
    paths = []
    for path in panda.store.rglob("calls.jsonl"):
        spelled: set[str] = set()
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            for part in [line.get("prefix"), *(line.get("messages") or ())]:
                if part and "content" in part and "sha256" in part:
                    spelled.add(part["sha256"])
                if part and "sha256" in part and part["sha256"] not in spelled:
                    paths.append(str(path))
    return paths


def _texts(data: bytes, name: str) -> Iterator[str]:
    """What a file holds: as it is, decoded, and as the values of its JSON."""
    text = data.decode("utf-8", "replace")
    yield from (text, unquote_plus(text), html.unescape(text), name.replace("-", " "))
    for line in [text] if name.endswith(".json") else text.split("\n") if name.endswith(".jsonl") else []:
        try:
            yield from _leaves(json.loads(line))
        except ValueError:
            continue
    yield from text.split("\n")


@cache
def _plain_texts(data: bytes, name: str) -> str:
    """The same in one spelling, each once; most files are alike in the copies of a store."""
    return "\0".join({_plain(text) for text in set(_texts(data, name))})


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        yield from (
            json.dumps(value),
            json.dumps(value, sort_keys=True),
            json.dumps(value, ensure_ascii=False),
        )
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one)
    elif isinstance(value, str):
        yield value
        try:
            yield from _leaves(json.loads(value)) if value[:1] in "{[" else ()
        except ValueError:
            return


def _plain(text: str) -> str:
    text = text.replace("\\'", "'").replace("\\/", "/")
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


@pytest.fixture(scope="session")
def phrased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which turns, a batch, replays, an import and files of other turns hold the phrase."""
    panda = make_project(tmp_path_factory.mktemp("phrase") / "project", "default")
    for query in ("I have a bike.", TOLD, "What is my vault code?"):
        assert panda.turn(query, "--session", "s").code == 0
    run(panda, "replay", "2-3", "--mode", "simulate")
    panda.write_lines("b.jsonl", {"id": "a", "query": f"Is {PHRASE} my vault code?"})
    run(panda, "batch", "b.jsonl", code=None)
    imported = import_line(user="default", turn=9, query=f"Note {PHRASE}", response=f"{PHRASE}, noted.")
    panda.write_lines("i.jsonl", imported)
    run(panda, "import", "i.jsonl")
    run(panda, "compress", "-", "--budget", "40", stdin=f"{PHRASE} is it.\n\n" * 40, code=None)
    panda.write("cache/panda/reports/panda-bug-1.txt", f"arguments: ['turn', {PHRASE!r}]\n")
    _plant(panda)
    return panda.home


def _plant(panda: Panda) -> None:
    """Write what turns of other kinds leave: attempts, steps, artifacts, pages, interventions, reports."""
    turn = panda.turn_file(2, ".")
    decomposed = unicodedata.normalize("NFD", PHRASE)
    in_json = json.dumps({"text": json.dumps([PHRASE.upper()])})
    (turn / "attempts" / "1").mkdir(parents=True)
    (turn / "attempts/1/response.md").write_text("It is\n> " + "\n> ".join(PHRASE.split()), encoding="utf-8")
    (turn / "artifacts").mkdir()
    draft = f"{decomposed}\n{in_json}\nat the end {PHRASE}"
    (turn / "artifacts/draft.md").write_text(draft, encoding="utf-8")
    result: dict[str, Any] = {
        "output": in_json,
        "sha256": hashlib.sha256(PHRASE.encode()).hexdigest(),
        PHRASE: [PHRASE],
    }
    step: dict[str, Any] = {
        **dict.fromkeys(("goal", "kind", "note", "conclusion", "error")),
        "step": 1,
        "plan": 0,
        "round": 1,
        "tool": "file.read",
        "arguments": {"path": f"{PHRASE}.md"},
        "status": "success",
        "data": result,
        "claims": [],
        "artifacts": [],
        "text": "",
        "seconds": 0.1,
        "entities": [{"ref": "e1", "type": "code", "label": "monkey", "op": "read"}],
    }
    (turn / "steps").mkdir()
    write_json(turn / "steps/step_01.json", step)
    url = f"https://x.example/?q={quote_plus(PHRASE)}&r={quote(PHRASE).lower()}"
    page = write_visit(panda.user_directory, 2, "visit_page", {"title": html.escape(PHRASE)}, quality=0.9)
    manifest = json.loads((page / "manifest.json").read_text(encoding="utf-8"))
    etag = hashlib.sha256(f"<p>{PHRASE}</p>".encode()).hexdigest()
    write_json(page / "manifest.json", {**manifest, "url": url, "etag": etag})
    (page / "content.md").write_text(f"<p>{PHRASE}</p>", encoding="utf-8")
    page.rename(page.with_name("x-example-" + hashlib.sha256(url.encode()).hexdigest()[:10]))
    message = f"the reply {PHRASE!r} fits no schema"
    halt_id = "20261123t150000z-default-2-" + hashlib.sha256(message.encode()).hexdigest()[:8]
    halt: dict[str, Any] = {
        **dict.fromkeys(("recipe", "where", "expected", "received", "raw_output", "what_to_do")),
        "schema": "panda.intervention/1",
        "id": halt_id,
        "created_at": "2026-11-23T15:00:00Z",
        "turn": 2,
        "user_id": "default",
        "phase": 5,
        "type": "invalid_reply",
        "severity": "high",
        "message": message,
        "details": {"reply": in_json},
        "status": "open",
        "resolved_at": None,
        "resolution": None,
    }
    (panda.store / "interventions").mkdir(exist_ok=True)
    write_json(panda.store / "interventions" / f"{halt_id}.json", halt)
    (report,) = panda.store.glob("runs/*batch*")
    (report / "report.html").write_text(f"<td>{html.escape(PHRASE)}</td>", encoding="utf-8")
    metadata = json.loads((turn / "metadata.json").read_text(encoding="utf-8"))
    write_json(turn / "metadata.json", {**metadata, "seal": None, "intervention": halt_id})


@pytest.fixture
def panda(phrased: Path, tmp_path: Path) -> Panda:
    """A copy of that project."""
    return copy_project(phrased, tmp_path / "copy", "default")


def test_of_a_text_nothing_is_left(panda: Panda) -> None:
    """After --text no file holds the phrase in any form, nor a digest of what did; all commands work on."""
    assert telling(panda, digests := digests_of(panda, PHRASE))
    outputs = [run(panda, "forget", "--yes", "--text", PHRASE.replace("monkey '", "MONKEY\n'"))]
    assert holding(panda, PHRASE) == []
    assert telling(panda, digests) == []
    assert dangling(panda) == []
    for number in (2, 3):
        assert json.loads(panda.turn_file(number, "index_summary.json").read_bytes())["topics"] == []
        for line in panda.turn_file(number, "calls.jsonl").read_text(encoding="utf-8").splitlines():
            options = [option["continuation"] for option in json.loads(line).get("options") or ()]
            assert not {"monkey", "purple", "washer"} & {option.strip().lower() for option in options}
    step = json.loads(panda.turn_file(2, "steps/step_01.json").read_bytes())
    assert (step["entities"], step["data"]["sha256"]) == ([], None)
    calls = map(json.loads, panda.turn_file(2, "calls.jsonl").read_text(encoding="utf-8").splitlines())
    cost = {"n", "kind", "recipe", "usage", "seconds", "forgotten_at"}
    assert {frozenset(call) for call in calls if "forgotten_at" in call} == {frozenset(cost)}
    for words in (["validate"], ["validate", "--strict"], ["validate", "2-3", "--strict"]):
        outputs.append(run(panda, *words))
        assert "no problems found" in outputs[-1]
    for line in (
        "show 2",
        "show 3",
        "session verify",
        "index rebuild",
        "replay 1 --mode simulate",
        "diff saved last",
        "view --out pages",
    ):
        is_about_forgotten = line.startswith(("show", "diff"))
        outputs.append(run(panda, *line.split(), code=None if is_about_forgotten else 0))
    outputs.append(run(panda, "turn", "What is my vault code?"))
    assert [output for output in outputs if "monkey" in _plain(output)] == []
    pages = [path for path in (panda.home / "pages").rglob("*") if path.is_file()]
    assert len(pages) > 3
    assert not any(b"monkey" in page.read_bytes().lower() for page in pages)
    assert holding(panda, "monkey") == []
    assert telling(panda, digests) == []


@pytest.mark.parametrize("words", [["vault_code"], ["fact:said_t2_1"], ["2"]])
def test_what_a_key_or_turn_said_is_nowhere(panda: Panda, words: list[str]) -> None:
    """The texts of a key, its node or a turn go from every file of the user, where said once more too."""
    (panda.store / "indexes").mkdir(exist_ok=True)
    with closing(sqlite3.connect(panda.store / "indexes" / "vectors.db")) as vectors, vectors:
        assert vectors.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    digests = digests_of(panda, PHRASE)
    assert panda.json("forget", "--yes", *words)["left"] == []
    assert holding(panda, PHRASE) == []
    assert telling(panda, digests) == []
    assert dangling(panda) == []
    assert not (panda.store / "indexes" / "vectors.db").exists()
    assert_sound(panda)
    assert json.loads(panda.turn_file(2, "metadata.json").read_bytes())["forgotten_at"]
    assert panda("memory", "get", "vault_code").code == 2
    assert "[forgotten " in panda("memory", "history", "vault_code").out


@pytest.mark.parametrize(
    "secret", ["k7q", "a+b.*(c", "ключ-пароль", "🦄🦄🦄🦄", "40 000,5 %", "deadbeefcafe0123"]
)
def test_any_kind_of_text(panda: Panda, secret: str) -> None:
    """Three characters, signs of patterns, other scripts, signs alone, hexadecimal digits: each goes."""
    draft = f"x {secret}\n{json.dumps(secret)} {quote(secret)}"
    panda.turn_file(2, "artifacts/draft.md").write_text(draft, encoding="utf-8")
    step = panda.turn_file(2, "steps/step_01.json")
    write_json(step, {**json.loads(step.read_bytes()), "data": {"v": secret}})
    assert holding(panda, secret)
    run(panda, "forget", "--yes", "--text", secret)
    assert holding(panda, secret) == []


@pytest.mark.parametrize(
    "foreign", ["{base}/other", "../other", "users/default/../../../other", "users/default/turns/turn_000008"]
)
def test_a_journal_of_a_stranger_leads_nowhere(panda: Panda, foreign: str) -> None:
    """Turns and sessions in forgetting.json, and session ids, that lie outside of the store stay."""
    other = panda.home / "other"
    other.mkdir()
    mine = {"status": "forgotten", "seal": {}, "session_id": "s", "turn": 8, "user_id": "default"}
    names = ("metadata.json", "mine.txt", "session.json")
    for name in names:
        write_json(other / name, mine)
    (panda.user_directory / "turns" / "turn_000008").symlink_to(other)
    turns = [foreign.format(base=panda.home)]
    sessions = [
        ["default", str(other)],
        ["default", "../../../../other"],
        [str(panda.home), "other"],
        3,
        ["a"],
    ]
    journal = {"at": "2026-01-01T00:00:00Z", "turns": turns, "seals": turns, "sessions": sessions}
    write_json(panda.store / "forgetting.json", journal)
    metadata = panda.turn_file(3, "metadata.json")
    write_json(metadata, {**json.loads(metadata.read_bytes()), "session_id": str(other)})
    panda("forget", "--yes", "--text", PHRASE)
    assert sorted(path.name for path in other.iterdir()) == sorted(names)
    assert all(path.read_text(encoding="utf-8") == json.dumps(mine) for path in other.iterdir())
