"""`panda synthesize`, run in this process."""

import json
from pathlib import Path
from typing import Any

import pytest

from panda.store.layout import Layout
from tests.api import Ended, run_here
from tests.builders import tree
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


class Asking:
    """Runs `panda synthesize` on a file of facts."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "facts.json"

    def __call__(self, document: object, *words: str) -> Ended:
        text = document if isinstance(document, str) else json.dumps(document)
        self.file.write_text(text, encoding="utf-8")
        words = ("synthesize", *words, "--facts", str(self.file))
        return run_here(words, {"PANDA_NOW": NOW_TEXT})


@pytest.fixture
def ask(tmp_path: Path) -> Asking:
    """A question to a file."""
    return Asking(tmp_path)


def words_of(vector: Vector) -> list[str]:
    """The command line of a request."""
    request = dict(vector.request)
    words = ["--scope", request.pop("scope")]
    words += ["--include-expired"] if request.pop("include_expired", False) else []
    words += ["--as-of", request.pop("as_of")] if "as_of" in request else []
    return words + [part for key, value in request.items() for part in (OPTIONS[key], str(value))]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_vectors(vector: Vector, ask: Asking) -> None:
    """`--json` gives each worked case's envelope as its data."""
    vector.check(ask(vector.document, *words_of(vector), "--json").value["data"])


def test_contradiction_stands_out(ask: Asking) -> None:
    """A contradicted entry shows the mark and both values, with types where they look alike."""
    ended = ask({"facts": [RIVAL, FACT, {**FACT, "id": "c", "relation": "cup"}]}, "--scope", "local")
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
def test_wrong_options(words: tuple[str, ...], option: str, ask: Asking) -> None:
    """A wrong option is an error that names it, also as JSON."""
    assert f"where: {option}\n" in ask({"facts": []}, *words).err
    ended = ask({"facts": []}, *words, "--json")
    assert (ended.code, ended.value["error"]["where"]) == (2, option)


def test_scope_is_needed(ask: Asking) -> None:
    """Without a scope nothing is shown."""
    assert ask({"facts": []}).code == 2


def test_wrong_file(ask: Asking) -> None:
    """A wrong fact is named by its index and key; NaN is no JSON."""
    ended = ask({"facts": [FACT, {**RIVAL, "confidence": 2}]}, "--scope", "local")
    assert (ended.code, ended.err.splitlines()[:2]) == (
        2,
        [
            "error: confidence must be a number from 0 to 1, but is 2",
            f"where: {ask.file} (facts[1].confidence)",
        ],
    )
    assert "NaN is no JSON number" in ask('{"facts": [NaN]}', "--scope", "local").err
    assert ask("[", "--scope", "local").code == 2


def test_memory_of_the_user(tmp_path: Path) -> None:
    """Without --facts the user's memory is asked: log, conflict records, and what was just edited by hand."""
    layout = Layout(tmp_path)
    words = ["synthesize", "--scope", "local", "--root", str(tmp_path), "--user", "ann", "--json"]
    assert run_here(words).code == 2
    layout.of("ann").home.mkdir(parents=True)
    assert run_here(words).value["data"]["fact_count"] == 0
    more = {"kind": "fact", "source_turn": 1, "asserted_at": NOW_TEXT, "content_type": "general_fact"}
    lines = [json.dumps({**one, **more}) for one in (FACT, RIVAL)]
    layout.of("ann").memory_log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run_here(words).value["data"]["contradiction_count"] == 1
    settled = {"conflict_id": "k", "fact_a": "a", "fact_b": "b", "status": "resolved", "resolution_fact": "b"}
    layout.of("ann").conflicts_log.write_text(f"{json.dumps(settled)}\n", encoding="utf-8")
    (entry,) = run_here(words).value["data"]["summary"]
    assert (entry["value"]["type"], entry["contradicted"]) == ("string", False)
    before = tree(tmp_path)
    layout.of("ann").preferences.write_text("---\ncup: blue\n---\n", encoding="utf-8")
    summary = run_here(words).value["data"]["summary"]
    assert ("user:ann", "cup", "blue") in [
        (one["entity"], one["relation"], one["value"]["v"]) for one in summary
    ]
    layout.of("ann").preferences.unlink()
    assert tree(tmp_path) == before
    with layout.of("ann").memory_log.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**FACT, **more, "id": "c", "scope": "world"}) + "\n")
    ended = run_here(words)
    assert ended.value["error"]["where"].startswith(f"{layout.of('ann').memory_log}:3")
