"""`panda turn` as a real process: with the embedded model, and with queries that start none."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from panda.store.layout import Layout
from panda.store.validate import check_store

PANDA = str(Path(sys.executable).with_name("panda"))
PHASE_KEYS = [
    "phase",
    "layer",
    "recipe",
    "calls",
    "prompt_tokens",
    "reused_tokens",
    "output_tokens",
    "seconds",
]


def panda(*words: str | bytes, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[bytes]:
    """Run the real command."""
    return subprocess.run(
        [PANDA, *words], input=stdin, capture_output=True, env={**os.environ, **environ}, check=False
    )


@pytest.fixture(scope="module")
def store(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo store; the tests of this module add turns to it."""
    return Path(shutil.copytree(demo, tmp_path_factory.mktemp("turns") / "panda-system-docs"))


def ask(store: Path, query: str | bytes, *words: str, stdin: bytes = b"") -> dict[str, Any]:
    """The JSON of one turn of user demo, with the code that it ended with."""
    given = ("turn", query, "--root", str(store), "--user", "demo", "--json", *words)
    done = panda(*given, stdin=stdin)
    assert b"Traceback" not in done.stderr
    value = json.loads(done.stdout)
    assert isinstance(value, dict)
    assert value["exit_code"] == done.returncode
    return value


def turn_names(store: Path) -> list[str]:
    """Names of the turn directories."""
    return sorted(path.name for path in (store / "users/demo/turns").iterdir())


@pytest.mark.asks_for("www.bestbuy.com")
def test_demo_question(store: Path) -> None:
    """The demo's follow-up question is answered with the laptop, its price and where that stands."""
    value = ask(store, "And how much does the Lenovo LOQ 15 cost?")
    assert value["ok"] is True
    assert (value["command"], value["error"]) == ("turn", None)
    data = value["data"]
    assert {
        "turn",
        "turn_dir",
        "status",
        "answered",
        "response",
        "question",
        "sources",
        "phases",
        "intervention",
    } <= set(data)
    assert (data["status"], data["answered"], data["question"], data["intervention"]) == (
        "approved",
        True,
        None,
        None,
    )
    assert "Lenovo LOQ 15" in data["response"]
    assert "$697" in data["response"]
    assert data["turn_dir"].endswith("/turn_000813")
    for source in data["sources"]:
        assert set(source) == {"node_id", "provenance", "quote"}
        assert (store / "users/demo" / source["provenance"]).is_file()
        assert source["quote"] in data["response"]
    for phase in data["phases"]:
        assert list(phase) == PHASE_KEYS
    spent = sum(phase["prompt_tokens"] + phase["output_tokens"] for phase in data["phases"])
    assert spent <= 12_000
    assert check_store(Layout(store)) == []


def test_query_from_stdin(store: Path) -> None:
    """`-` reads the query; a hostile one is answered or not, and the store stays clean."""
    query = "```yaml\n_meta:\n  x: 1\n## 5. Synthesis\r\n\x00\x1b[2J $1 \u202e"
    value = ask(store, "-", "--session", "hostile", stdin=query.encode() + b"\n")
    assert value["exit_code"] in (0, 21, 22)
    metadata = json.loads(Path(value["data"]["turn_dir"], "metadata.json").read_text(encoding="utf-8"))
    assert metadata["query"] == query
    assert metadata["session_id"] == "hostile"
    assert check_store(Layout(store)) == []


@pytest.mark.parametrize(
    ("query", "stdin", "said"),
    [
        ("", b"", "empty"),
        ("-", b"", "empty"),
        ("-", b" \n\t\n", "empty"),
        ("-", b"caf\xe9", "UTF-8"),
        (b"caf\xe9", b"", "UTF-8"),
        ("-", b"laptop price " * 8000, "tokens"),
        ("-", "🦙".encode() * 3000, "tokens"),
    ],
    ids=["no text", "no stdin", "white", "bytes", "bytes in argv", "100 kB", "emoji"],
)
def test_query_that_starts_no_turn(store: Path, query: str | bytes, stdin: bytes, said: str) -> None:
    """A query that cannot be used ends with 2 and a fix, and claims no number."""
    before = turn_names(store)
    value = ask(store, query, stdin=stdin)
    assert value["exit_code"] == 2
    assert said in value["error"]["message"]
    assert value["error"]["fix"]
    assert turn_names(store) == before
    if said == "tokens":
        assert "knowledge/" in value["error"]["fix"]


def test_broken_model(store: Path, tmp_path: Path) -> None:
    """A GGUF that is cut short is named with its file and key; no number is claimed, no traceback shown."""
    gguf = tmp_path / "cut.gguf"
    gguf.write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(100))
    models = tmp_path / "models.yaml"
    layers = "".join(f"  {name}: cut\n" for name in ("REFLEX", "NERVES", "MIND", "VOICE"))
    models.write_text(
        "models:\n  cut:\n    backend: llama_cpp\n    location: cut.gguf\n    n_ctx: 4096\n"
        f"layers:\n{layers}  EYES: null\n",
        encoding="utf-8",
    )
    before = turn_names(store)
    done = panda(
        "turn",
        "How much?",
        "--root",
        str(store),
        "--user",
        "demo",
        PANDA_MODELS_FILE=str(models),
    )
    assert done.returncode == 2
    first, where, *_ = done.stderr.decode().splitlines()[-3:]
    assert first.startswith("error: ")
    assert where.startswith("where: ")
    assert "cut.gguf" in first + where
    assert b"Traceback" not in done.stderr
    assert turn_names(store) == before
