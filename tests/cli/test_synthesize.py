"""`panda synthesize`, run in this process."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api import Ended, Panda, tree
from tests.scope_vectors import NOW_TEXT, VECTORS, Vector

FACT: dict[str, Any] = {
    "id": "a",
    "entity": "user:default",
    "relation": "tea",
    "value": {"type": "text", "v": "Assam,\nblack"},
    "source": "turn:1",
    "confidence": 0.9,
    "scope": "local",
    "hlc": "1.000",
    "valid_until": None,
}
RIVAL = {**FACT, "id": "b", "value": {"type": "string", "v": "Assam, black"}, "confidence": 0.4}
OPTIONS = {"entity": "--entity", "relation": "--relation", "min_confidence": "--min-confidence"}


class Asking(Panda):
    """Runs `panda synthesize` on a file of facts."""

    def ask(self, document: object, *words: str) -> Ended:
        """Put the document into the file, and ask."""
        self.write("facts.json", document if isinstance(document, str) else json.dumps(document))
        return self("synthesize", *words, "--facts", "facts.json")


@pytest.fixture
def panda(tmp_path: Path) -> Asking:
    """A project without a store."""
    return Asking(tmp_path / "project", PANDA_NOW=NOW_TEXT)


def words_of(vector: Vector) -> list[str]:
    """The command line of a request."""
    request = dict(vector.request)
    words = ["--scope", request.pop("scope")]
    words += ["--include-expired"] if request.pop("include_expired", False) else []
    words += ["--as-of", request.pop("as_of")] if "as_of" in request else []
    return words + [part for key, value in request.items() for part in (OPTIONS[key], str(value))]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_vectors(vector: Vector, panda: Asking) -> None:
    """`--json` gives each worked case's envelope as its data."""
    vector.check(panda.ask(vector.document, *words_of(vector), "--json").data)


def test_contradiction_stands_out(panda: Asking) -> None:
    """A contradicted entry shows the mark and both values, with types where they look alike."""
    ended = panda.ask({"facts": [RIVAL, FACT, {**FACT, "id": "c", "relation": "cup"}]}, "--scope", "local")
    assert ended.rows == [
        "user:default\tcup\tAssam, black\t0.9\t\t\t",
        "user:default\ttea\tAssam, black (text)\t0.9\tCONTRADICTED\tAssam, black (string)\t0.4",
    ]
    assert ended.err == "scope local: 3 facts, 2 entries, 1 contradicted\n"


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--scope", "planet"), "--scope"),
        (("--scope", "local", "--entity", " \t"), "--entity"),
        (("--scope", "local", "--relation", ""), "--relation"),
        (("--scope", "local", "--min-confidence", "nan"), "--min-confidence"),
        (("--scope", "local", "--min-confidence", "1.01"), "--min-confidence"),
        (("--scope", "local", "--as-of", "soon"), "--as-of"),
    ],
)
def test_wrong_options(words: tuple[str, ...], option: str, panda: Asking) -> None:
    """A wrong option is an error that names it, also as JSON."""
    assert f"where: {option}\n" in panda.ask({"facts": []}, *words).err
    ended = panda.ask({"facts": []}, *words, "--json")
    assert (ended.code, ended.error["where"]) == (2, option)


def test_scope_is_needed(panda: Asking) -> None:
    """Without a scope nothing is shown."""
    assert panda.ask({"facts": []}).code == 2


def test_wrong_file(panda: Asking) -> None:
    """A wrong fact is named by its index and key; NaN is no JSON."""
    ended = panda.ask({"facts": [FACT, {**RIVAL, "confidence": 2}]}, "--scope", "local")
    assert (ended.code, ended.err.splitlines()[:2]) == (
        2,
        [
            "error: confidence must be a number from 0 to 1, but is 2",
            "where: facts.json (facts[1].confidence)",
        ],
    )
    assert "NaN is no JSON number" in panda.ask('{"facts": [NaN]}', "--scope", "local").err
    assert panda.ask("[", "--scope", "local").code == 2


def test_memory_of_the_user(panda: Asking) -> None:
    """Without --facts the user's memory is asked: log, conflict records, and what was just edited by hand."""
    words = ("synthesize", "--scope", "local", "--user", "ann")
    assert panda(*words).code == 2
    ann = panda.store / "users/ann"
    ann.mkdir(parents=True)
    assert panda.json(*words)["fact_count"] == 0
    more = {"kind": "fact", "source_turn": 1, "asserted_at": NOW_TEXT, "content_type": "general_fact"}
    log = panda.write_lines("store/users/ann/memory.jsonl", {**FACT, **more}, {**RIVAL, **more})
    assert panda.json(*words)["contradiction_count"] == 1
    settled = {"conflict_id": "k", "fact_a": "a", "fact_b": "b", "status": "resolved", "resolution_fact": "b"}
    panda.write_lines("store/users/ann/conflicts.jsonl", settled)
    (entry,) = panda.json(*words)["summary"]
    assert (entry["value"]["type"], entry["contradicted"]) == ("string", False)
    before = tree(panda.store)
    (ann / "preferences.md").write_text("---\ncup: blue\n---\n", encoding="utf-8")
    entries = panda.json(*words)["summary"]
    by_hand = [(entry["entity"], entry["relation"], entry["value"]["v"]) for entry in entries]
    assert ("user:ann", "cup", "blue") in by_hand
    (ann / "preferences.md").unlink()
    assert tree(panda.store) == before
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**FACT, **more, "id": "c", "scope": "world"}) + "\n")
    ended = panda(*words, "--json")
    assert ended.error["where"].startswith(f"{log}:3")
