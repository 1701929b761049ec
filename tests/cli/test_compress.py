"""`panda compress`, run in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from panda.cli import boundary
from panda.cli.main import build_program
from panda.compression.compress import CompressionCache
from panda.compression.compress import compress as compress_text
from panda.models.cl100k import count_tokens
from panda.store.lines import load_lines
from tests.api import Ended, run_here
from tests.builders import build_store
from tests.unprivileged import unprivileged

Compress = Callable[..., Ended]
TEXT = "# Fans\n\n" + "Fans are loud when it is warm outside. The quiet one is from Peru. Most are blue. " * 6


@pytest.fixture
def compress(tmp_path: Path) -> Compress:
    """Runs the command with a cache of its own."""

    def run(*words: str, stdin: str = "") -> Ended:
        environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        return run_here(["compress", *words], environ, stdin)

    return run


@pytest.fixture
def run() -> Callable[..., Ended]:
    """Runs any command."""
    return lambda *words: run_here(words)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A document."""
    path = tmp_path / "notes.md"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_the_document_goes_to_stdout(compress: Compress, file: Path) -> None:
    """stdout has the compressed document alone; --explain says on stderr what went."""
    ended = compress(str(file), "--budget", "40", "--query", "Where is the quiet fan from?", "--explain")
    assert ended.code == 0
    assert "The quiet one is from Peru." in ended.out
    assert count_tokens(ended.out) <= 40
    assert "verified" in ended.err


def test_json_has_the_numbers(compress: Compress, file: Path) -> None:
    """--json tells sizes, method, and every dropped piece with its reason; the second time from the cache."""
    words = (str(file), "--budget", "40", "--query", "Where is the quiet fan from?", "--json")
    data = compress(*words).value["data"]
    assert data["before_tokens"] == count_tokens(TEXT)
    assert data["after_tokens"] == count_tokens(data["text"]) <= 40
    assert data["method"] == "lexical"
    assert all(one["reason"] for one in data["dropped"])
    assert compress(*words).value["data"] == data


def test_out_writes_a_file(compress: Compress, file: Path, tmp_path: Path) -> None:
    """-o writes the document and leaves stdout empty."""
    ended = compress(str(file), "--budget", "40", "--query", "fan", "-o", str(tmp_path / "out.md"))
    assert ended.out == ""
    assert 0 < count_tokens((tmp_path / "out.md").read_text(encoding="utf-8")) <= 40


def test_what_cannot_be_done_ends_with_4(compress: Compress, file: Path) -> None:
    """Protected text over the budget ends with 4 and the numbers."""
    ended = compress(str(file), "--budget", "20", "--keep", "loud")
    assert ended.code == 4
    assert "more than the budget of 20 tokens (6 × keep)" in ended.err


def test_stdin_and_within_budget(compress: Compress) -> None:
    """A document within budget comes back byte for byte, also from standard input."""
    text = "  a\r\nü\n"
    assert compress("-", "--budget", "10", stdin=text).out == text


def test_unknown_type(compress: Compress, file: Path) -> None:
    """A type that does not exist is refused with those that do."""
    ended = compress(str(file), "--budget", "20", "--type", "poem")
    assert ended.code == 2
    assert "page_doc" in ended.err


def test_a_store_keeps_a_line(
    compress: Compress, run: Callable[..., Ended], file: Path, tmp_path: Path
) -> None:
    """In a store each compression and each refusal is a line of the log, and stats adds them up."""
    root = ("--root", str(build_store(tmp_path / "store").root))
    assert compress(str(file), "--budget", "40", "--query", "fan", *root).code == 0
    assert compress(str(file), "--budget", "20", "--keep", "loud", *root).code == 4
    found = run("stats", *root, "--user", "default", "--json").value["data"]["compression"]
    whole, kind = found["total"], found["by_content_type"]["generic"]
    assert (whole["calls"], whole["overflow_warnings"]) == (1, 1)
    assert whole["tokens_saved"] == kind["tokens_saved"] >= count_tokens(TEXT) - 40
    assert run("log", *root, "--user", "default").out == ""


def test_what_the_model_reads_is_logged(compress: Compress, file: Path, tmp_path: Path) -> None:
    """Reading of the NERVES model is a line like that of any call, with its tokens."""
    layout = build_store(tmp_path / "store")
    names = ["Ada", "Bea", "Cleo", "Dora", "Edna", "Fay", "Gwen", "Hope", "Iris", "Joan"]
    file.write_text(" ".join(f"{name} keeps a {name.lower()}bird at home." for name in names), "utf-8")
    assert compress(str(file), "--budget", "40", "--root", str(layout.root)).code == 0
    lines = load_lines(dict, layout.executions_log)
    assert [(line["recipe"], line.get("event")) for line in lines] == [
        ("compress_generic", None),
        (None, "compressed"),
    ]
    assert lines[0]["tokens"]["output"] > 20
    assert (lines[0]["phase"], lines[0]["turn_id"]) == (None, None)
    assert (lines[0]["method"], lines[0]["model"]) == ("choose", "smollm2-135m")
    assert (lines[1]["method"], lines[1]["model_layer"]) == ("model", "NERVES")


def test_a_model_that_was_not_asked_is_not_named(compress: Compress, file: Path, tmp_path: Path) -> None:
    """A compression by words alone, and one that could not be done, name no layer in the log."""
    layout = build_store(tmp_path / "store")
    assert compress(str(file), "--budget", "40", "--query", "fan", "--root", str(layout.root)).code == 0
    assert compress(str(file), "--budget", "20", "--keep", "loud", "--root", str(layout.root)).code == 4
    lines = load_lines(dict, layout.executions_log)
    assert [(line["event"], line.get("method"), line["model_layer"]) for line in lines] == [
        ("compressed", "lexical", None),
        ("overflow", None, None),
    ]


def test_an_old_result_is_made_anew(file: Path, tmp_path: Path) -> None:
    """Results in the cache count for as long as the setting says."""
    cache = CompressionCache(tmp_path, max_age_seconds=3600)
    made = compress_text(TEXT, kind="generic", budget_tokens=40)
    cache.keep("k", made)
    assert cache.find("k") == made
    assert CompressionCache(tmp_path, max_age_seconds=0).find("k") is None


def test_a_cache_that_cannot_be_written(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A compression that is done is given, whether or not it can be kept; -v says that it was not."""
    environ = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    store = build_store(tmp_path / "store").root
    words = ["compress", str(file), "--query", "Where is the quiet fan from?", "--root", str(store), "-v"]
    assert boundary.run(build_program(), [*words, "--budget", "50"], environ) == 0
    for path in (store, tmp_path / "cache" / "panda" / "compression"):
        path.chmod(0o555)
    code = unprivileged(lambda: boundary.run(build_program(), [*words, "--budget", "40"], environ))
    for path in (store, tmp_path / "cache" / "panda" / "compression"):
        path.chmod(0o755)
    told = capfd.readouterr()
    assert code == "0", told.err
    assert "not kept in the cache" in told.err
    assert "The quiet one is from Peru." in told.out
