"""What is left of a phrase after `panda forget`: no form of it, no digest of what held it, no reference."""

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

import pytest

from panda.store.layout import Layout
from tests.api import copy_models
from tests.builders import import_line
from tests.stores import write_visit

PANDA = str(Path(sys.executable).with_name("panda"))
PHRASE = "Purple monkey 'dish/washer' é😀 4711"
TOLD = f"My vault code is {PHRASE}."


class Store:
    """A store and its cache below one directory."""

    def __init__(self, base: Path) -> None:
        self.base, self.layout, self.cache = base, Layout(base / "store"), base / "cache" / "panda"
        self.environ = {**os.environ, "HOME": str(base), "XDG_CACHE_HOME": str(base / "cache")}

    def panda(self, *words: str, code: int | None = 0, stdin: str = "") -> str:
        """Run a command in a process of its own; what it said."""
        own = [PANDA, *words, "--root", str(self.layout.root)]
        done = subprocess.run(own, input=stdin, capture_output=True, env=self.environ, check=False, text=True)
        assert code is None or done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def files(self) -> Iterator[Path]:
        """Every file of store and cache but models; notes are the user's own."""
        for path in [*self.layout.root.rglob("*"), *self.cache.rglob("*")]:
            if path.is_file() and path.suffix != ".gguf" and "knowledge" not in path.parts:
                yield path

    def holding(self, phrase: str) -> list[str]:
        """Files that hold a phrase in any form."""
        plain = _plain(phrase)
        return [str(one) for one in sorted(self.files()) if plain in _plain_texts(one.read_bytes(), one.name)]

    def digests(self, phrase: str) -> set[str]:
        """sha256 of every text of the store that holds a phrase: files, values, lines, objects, sections."""
        found, plain = set(), _plain(phrase)
        for path in self.files():
            texts = [
                path.read_bytes(),
                *(text.encode("utf-8", "replace") for text in _texts(path.read_bytes(), path.name)),
            ]
            parts = re.split(r"(?m)^(?=## \d)", path.read_bytes().decode("utf-8", "replace"))
            texts += [one for part in parts for one in (part.encode(), part.strip().encode())]
            found |= {one for one in texts if plain in _plain(one.decode("utf-8", "replace"))}
        return {hashlib.sha256(one).hexdigest() for one in found}

    def telling(self, digests: set[str]) -> list[tuple[str, str]]:
        """Files that hold one of the digests, be it cut to no less than 8 digits, or as bytes."""
        short, raw, found = (
            {one[:8]: one for one in digests},
            {bytes.fromhex(one[:32]) for one in digests},
            [],
        )
        for path in self.files():
            data = path.read_bytes()
            words = re.findall(r"(?<![0-9a-f])[0-9a-f]{8,64}(?![0-9a-f])", f"{data.decode('latin1')} {path}")
            found += [(str(path), word) for word in words if short.get(word[:8], "").startswith(word)]
            found += [(str(path), "bytes") for one in raw if one in data]
        return found

    def dangling(self) -> list[str]:
        """Messages in calls.jsonl that no line spells out."""
        found = []
        for path in self.layout.root.rglob("calls.jsonl"):
            known: set[str] = set()
            for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
                for part in [line.get("prefix"), *(line.get("messages") or ())]:
                    if part and "sha256" in part:
                        known |= {part["sha256"]} if "content" in part else set()
                        found += [str(path)] if part["sha256"] not in known else []
        return found


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


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which whole turns, a batch, replays, an import and a halted turn hold the phrase."""
    base = tmp_path_factory.mktemp("phrase")
    store = Store(base)
    copy_models(store.cache)
    store.layout.of("default").home.mkdir(parents=True)
    for query in ("I have a bike.", TOLD, "What is my vault code?"):
        store.panda("turn", query, "--session", "s")
    store.panda("replay", "2-3", "--mode", "simulate")
    line = json.dumps({"id": "a", "query": f"Is {PHRASE} my vault code?"})
    (base / "b.jsonl").write_text(line + "\n", encoding="utf-8")
    store.panda("batch", str(base / "b.jsonl"), code=None)
    line = json.dumps(
        import_line(user="default", turn=9, query=f"Note {PHRASE}", response=f"{PHRASE}, noted.")
    )
    (base / "i.jsonl").write_text(line + "\n", encoding="utf-8")
    store.panda("import", str(base / "i.jsonl"))
    store.panda("compress", "-", "--budget", "40", stdin=f"{PHRASE} is it.\n\n" * 40, code=None)
    reports = store.cache / "reports"
    reports.mkdir(exist_ok=True)
    (reports / "panda-bug-1.txt").write_text(f"arguments: ['turn', {PHRASE!r}]\n", encoding="utf-8")
    _plant(store)
    return base


def _plant(store: Store) -> None:
    """What turns of other kinds leave: attempts, steps, artifacts, pages, interventions, reports."""
    layout, turn = store.layout, store.layout.of("default").turn(2)
    nfd, in_json = unicodedata.normalize("NFD", PHRASE), json.dumps({"text": json.dumps([PHRASE.upper()])})
    (turn / "attempts").joinpath("1").mkdir(parents=True)
    (turn / "attempts/1/response.md").write_text("It is\n> " + "\n> ".join(PHRASE.split()), encoding="utf-8")
    (turn / "artifacts").mkdir()
    (turn / "artifacts/draft.md").write_text(f"{nfd}\n{in_json}\nat the end {PHRASE}", encoding="utf-8")
    found: dict[str, Any] = {
        "output": in_json,
        "sha256": hashlib.sha256(PHRASE.encode()).hexdigest(),
        PHRASE: [PHRASE],
    }
    step: dict[str, Any] = {"step": 1, "plan": 0, "round": 1, "goal": None, "tool": "file.read", "kind": None}
    step |= {"arguments": {"path": f"{PHRASE}.md"}, "note": None, "conclusion": None, "status": "success"}
    step |= {"data": found, "error": None, "claims": [], "artifacts": [], "text": "", "seconds": 0.1}
    step |= {"entities": [{"ref": "e1", "type": "code", "label": "monkey", "op": "read"}]}
    (turn / "steps").mkdir()
    (turn / "steps/step_01.json").write_text(json.dumps(step), encoding="utf-8")
    url = f"https://x.example/?q={quote_plus(PHRASE)}&r={quote(PHRASE).lower()}"
    page = write_visit(layout, 2, "visit_page", {"title": html.escape(PHRASE)}, quality=0.9, user="default")
    manifest = json.loads((page / "manifest.json").read_text(encoding="utf-8"))
    name = "x-example-" + hashlib.sha256(url.encode()).hexdigest()[:10]
    etag = hashlib.sha256(f"<p>{PHRASE}</p>".encode()).hexdigest()
    (page / "manifest.json").write_text(json.dumps({**manifest, "url": url, "etag": etag}), encoding="utf-8")
    (page / "content.md").write_text(f"<p>{PHRASE}</p>", encoding="utf-8")
    page.rename(page.with_name(name))
    message = f"the reply {PHRASE!r} fits no schema"
    id_ = "20261123t150000z-default-2-" + hashlib.sha256(message.encode()).hexdigest()[:8]
    halt: dict[str, Any] = dict.fromkeys(
        ("recipe", "where", "expected", "received", "raw_output", "what_to_do")
    )
    halt |= {"schema": "panda.intervention/1", "id": id_, "created_at": "2026-11-23T15:00:00Z", "turn": 2}
    halt |= {
        "user_id": "default",
        "phase": 5,
        "type": "invalid_reply",
        "severity": "high",
        "message": message,
    }
    halt |= {"details": {"reply": in_json}, "status": "open", "resolved_at": None, "resolution": None}
    layout.interventions.mkdir(exist_ok=True)
    (layout.interventions / f"{id_}.json").write_text(json.dumps(halt), encoding="utf-8")
    run = next(layout.runs.glob("*-batch"))
    (run / "report.html").write_text(f"<td>{html.escape(PHRASE)}</td>", encoding="utf-8")
    metadata = turn.directory / "metadata.json"
    value = json.loads(metadata.read_text(encoding="utf-8")) | {"seal": None, "intervention": id_}
    metadata.write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture
def store(told: Path, tmp_path: Path) -> Store:
    """A copy of that store."""
    shutil.copytree(told, tmp_path / "copy", ignore=shutil.ignore_patterns("*.gguf"), symlinks=True)
    return Store(tmp_path / "copy")


def test_of_a_text_nothing_is_left(store: Store) -> None:
    """After --text no file holds the phrase in any form, nor a digest of what did; all commands work on."""
    assert store.telling(digests := store.digests(PHRASE))
    said = store.panda("forget", "--yes", "--text", PHRASE.replace("monkey '", "MONKEY\n'"))
    assert store.holding(PHRASE) == []
    assert store.telling(digests) == []
    assert store.dangling() == []
    for name in ("2", "3"):
        turn = store.layout.of("default").turn(int(name)).directory
        assert json.loads((turn / "index_summary.json").read_text(encoding="utf-8"))["topics"] == []
        for line in map(json.loads, (turn / "calls.jsonl").read_text(encoding="utf-8").splitlines()):
            options = [one["continuation"] for one in line.get("options") or ()]
            assert not {"monkey", "purple", "washer"} & {one.strip().lower() for one in options}
    step = json.loads((store.layout.of("default").turn(2) / "steps/step_01.json").read_text(encoding="utf-8"))
    assert (step["entities"], step["data"]["sha256"]) == ([], None)
    calls = (store.layout.of("default").turn(2) / "calls.jsonl").read_text(encoding="utf-8").splitlines()
    cost = {"n", "kind", "recipe", "usage", "seconds", "forgotten_at"}
    assert {frozenset(json.loads(line)) for line in calls if "forgotten_at" in line} == {frozenset(cost)}
    told = [said, *(store.panda("show", n, code=None) for n in ("2", "3")), store.panda("validate")]
    told += [store.panda("validate", "--strict"), store.panda("session", "verify")]
    assert "no problems found" in told[-2]
    told += [store.panda("validate", "2-3", "--strict"), store.panda("index", "rebuild")]
    told += [
        store.panda("replay", "1", "--mode", "simulate"),
        store.panda("diff", "saved", "last", code=None),
    ]
    told += [
        store.panda("view", "--out", str(store.base / "pages")),
        store.panda("turn", "What is my vault code?"),
    ]
    judged = [one for one in told if "no problems found" in one]
    assert len(judged) == 3, told
    assert not any(_plain("monkey") in _plain(one) for one in told)
    pages = [one for one in (store.base / "pages").rglob("*") if one.is_file()]
    assert not any(b"monkey" in one.read_bytes().lower() for one in pages)
    assert store.holding(PHRASE) == store.holding("monkey") == []
    assert store.telling(digests) == []


@pytest.mark.parametrize("words", [["vault_code"], ["2"]])
def test_what_a_key_or_turn_said_is_nowhere(store: Store, words: list[str]) -> None:
    """The texts of KEY or TURN go from every file of the user, also where they were said once more."""
    digests = store.digests(PHRASE)
    data = json.loads(store.panda("forget", "--yes", *words, "--json"))["data"]
    assert data["left"] == []
    assert store.holding(PHRASE) == []
    assert store.telling(digests) == []
    assert store.dangling() == []
    store.panda("validate")
    store.panda("session", "verify")


@pytest.mark.parametrize(
    "secret", ["k7q", "a+b.*(c", "ключ-пароль", "🦄🦄🦄🦄", "40 000,5 %", "deadbeefcafe0123"]
)
def test_any_kind_of_text(store: Store, secret: str) -> None:
    """Three characters, signs of patterns, other scripts, signs alone, hexadecimal digits: each goes."""
    turn = store.layout.of("default").turn(2)
    (turn / "artifacts/draft.md").write_text(
        f"x {secret}\n{json.dumps(secret)} {quote(secret)}", encoding="utf-8"
    )
    step = json.loads((turn / "steps/step_01.json").read_text(encoding="utf-8")) | {"data": {"v": secret}}
    (turn / "steps/step_01.json").write_text(json.dumps(step), encoding="utf-8")
    assert store.holding(secret)
    store.panda("forget", "--yes", "--text", secret)
    assert store.holding(secret) == []


@pytest.mark.parametrize(
    "foreign", ["{base}/other", "../other", "users/default/../../../other", "users/default/turns/turn_000008"]
)
def test_a_journal_of_a_stranger_leads_nowhere(store: Store, foreign: str) -> None:
    """Turns and sessions in forgetting.json, and session ids, that lie outside of the store stay."""
    other = store.base / "other"
    other.mkdir()
    mine = {"status": "forgotten", "seal": {}, "session_id": "s", "turn": 8, "user_id": "default"}
    for name in ("metadata.json", "session.json", "mine.txt"):
        (other / name).write_text(json.dumps(mine), encoding="utf-8")
    (store.layout.of("default").turns / "turn_000008").symlink_to(other)
    turns = [foreign.format(base=store.base)]
    sessions = [
        ["default", str(other)],
        ["default", "../../../../other"],
        [str(store.base), "other"],
        3,
        ["a"],
    ]
    journal = {"at": "2026-01-01T00:00:00Z", "turns": turns, "seals": turns, "sessions": sessions}
    (store.layout.root / "forgetting.json").write_text(json.dumps(journal), encoding="utf-8")
    metadata = store.layout.of("default").turn(3) / "metadata.json"
    value = json.loads(metadata.read_text(encoding="utf-8")) | {"session_id": str(other)}
    metadata.write_text(json.dumps(value), encoding="utf-8")
    store.panda("forget", "--yes", "--text", PHRASE, code=None)
    assert sorted(one.name for one in other.iterdir()) == ["metadata.json", "mine.txt", "session.json"]
    assert all(one.read_text(encoding="utf-8") == json.dumps(mine) for one in other.iterdir())
