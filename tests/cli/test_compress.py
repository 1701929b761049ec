"""`panda compress`, run in this process."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda
from tests.unprivileged import unprivileged

TEXT = "# Fans\n\n" + "Fans are loud when it is warm outside. The quiet one is from Peru. Most are blue. " * 6
WORDS = ("compress", "notes.md", "--budget", "40", "--query", "Where is the quiet fan from?")
TOO_SMALL = ("compress", "notes.md", "--budget", "20", "--keep", "loud")


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with a document, and no store yet, with a cache of its own."""
    panda = Panda(tmp_path / "project", XDG_CACHE_HOME=str(tmp_path / "cache"))
    panda.write("notes.md", TEXT)
    return panda


def test_the_document_goes_to_stdout(panda: Panda) -> None:
    """stdout has the compressed document alone; --explain says on stderr what went; -o writes a file."""
    ended = panda(*WORDS, "--explain")
    assert ended.code == 0
    assert "The quiet one is from Peru." in ended.out
    assert "verified" in ended.err
    assert panda(*WORDS, "-o", "out.md").out == ""
    assert (panda.home / "out.md").read_text(encoding="utf-8") == ended.out


def test_json_has_the_numbers(panda: Panda) -> None:
    """--json tells sizes, method, and every dropped piece with its reason; the second time from the cache."""
    data = panda.json(*WORDS)
    assert data["before_tokens"] == panda.json("compress", "notes.md", "--budget", "9000")["after_tokens"]
    assert 0 < data["after_tokens"] <= 40 < data["before_tokens"]
    assert data["method"] == "lexical"
    assert all(piece["reason"] for piece in data["dropped"])
    assert panda.json(*WORDS) == data


def test_what_cannot_be_done(panda: Panda) -> None:
    """Protected text over the budget ends with 4 and the numbers; an unknown type with 2."""
    ended = panda(*TOO_SMALL)
    assert ended.code == 4
    assert "more than the budget of 20 tokens (6 × keep)" in ended.err
    unknown = panda(*WORDS, "--type", "poem")
    assert (unknown.code, "page_doc" in unknown.err) == (2, True)


def test_stdin_and_within_budget(panda: Panda) -> None:
    """A document within budget comes back byte for byte, also from standard input."""
    text = "  a\r\nü\n"
    assert panda("compress", "-", "--budget", "10", stdin=text).out == text


def test_a_store_keeps_a_line(panda: Panda) -> None:
    """
    In a store each compression and each refusal is a line of the log, and stats adds them up; by words alone,
    no layer is named.
    """
    panda("init")
    assert panda(*WORDS).code == 0
    assert panda(*TOO_SMALL).code == 4
    compression = panda.json("stats")["compression"]
    whole = compression["total"]
    kind = compression["by_content_type"]["generic"]
    assert (whole["calls"], whole["overflow_warnings"]) == (1, 1)
    assert whole["tokens_saved"] == kind["tokens_saved"] >= 70
    assert panda("log").out == ""
    assert [(line["event"], line.get("method"), line["model_layer"]) for line in executions(panda)] == [
        ("compressed", "lexical", None),
        ("overflow", None, None),
    ]


def executions(panda: Panda) -> list[dict[str, Any]]:
    """The lines of the store's log."""
    text = (panda.store / "logs/executions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_without_a_query_words_alone_decide(panda: Panda) -> None:
    """A document is shortened without a query and without any model; a price stays."""
    panda("init")
    expected = "The early bird catches the worm. All that glitters is not gold."
    panda.write("notes.md", f"{expected} The refrigerator costs $400.")
    data = panda.json("compress", "notes.md", "--budget", "16")
    assert data["method"] == "lexical"
    assert "The refrigerator costs $400." in data["text"]
    (line,) = executions(panda)
    assert (line["event"], line["method"], line["model"]) == ("compressed", "lexical", None)


def test_a_cache_that_cannot_be_written(panda: Panda, tmp_path: Path) -> None:
    """A compression that is done is given, whether or not it can be kept; -v says that it was not."""
    panda("init")
    assert panda(*WORDS).code == 0
    folders = (panda.store, tmp_path / "cache" / "panda" / "compression")
    for path in folders:
        path.chmod(0o555)
    output = unprivileged(lambda: panda(*WORDS, "--budget", "50", "-v"))
    for path in folders:
        path.chmod(0o755)
    assert "code=0" in output
    assert "not kept in the cache" in output
    assert "The quiet one is from Peru." in output
