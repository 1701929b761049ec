"""`panda turn` with the default models, and with queries that start none."""

from pathlib import Path

import pytest

from tests.api import Panda

PHASE_KEYS = [
    *("phase", "layer", "recipe", "calls", "prompt_tokens", "reused_tokens", "output_tokens", "seconds"),
]


@pytest.fixture
def panda(demo: Path, tmp_path: Path) -> Panda:
    """A project with a copy of the demo store."""
    return Panda(tmp_path / "project", demo, user="demo")


@pytest.mark.asks_for("www.bestbuy.com")
def test_demo_question(panda: Panda) -> None:
    """The demo's follow-up question is answered with the laptop, its price and where that stands."""
    ended = panda.process("turn", "And how much does the Lenovo LOQ 15 cost?", "--json")
    value = ended.value
    data = ended.data
    assert (ended.code, value["ok"], value["command"], value["error"]) == (0, True, "turn", None)
    assert {
        *("turn", "turn_dir", "status", "answered", "response", "question", "sources", "phases"),
        "intervention",
    } <= set(data)
    assert (data["status"], data["answered"], data["question"]) == ("approved", True, None)
    assert data["intervention"] is None
    assert "Lenovo LOQ 15" in data["response"]
    assert "$697" in data["response"]
    assert data["turn_dir"].endswith("/turn_000813")
    for source in data["sources"]:
        assert set(source) == {"node_id", "provenance", "quote"}
        assert (panda.user_directory / source["provenance"]).is_file()
        assert source["quote"] in data["response"]
    for phase in data["phases"]:
        assert list(phase) == PHASE_KEYS
    spent = sum(phase["prompt_tokens"] + phase["output_tokens"] for phase in data["phases"])
    assert spent <= 12_000
    assert panda.problems() == []


def test_query_from_stdin(panda: Panda) -> None:
    """`-` reads the query; a hostile one is answered or not, and the store stays clean."""
    query = "```yaml\n_meta:\n  x: 1\n## 5. Synthesis\r\n\x00\x1b[2J $1 \u202e"
    ended = panda("turn", "-", "--session", "hostile", "--json", stdin=query + "\n")
    assert ended.code in (0, 21, 22)
    newest = panda.json("list")["turns"][-1]
    assert (newest["query"], newest["session"]) == (query, "hostile")
    assert panda.problems() == []


@pytest.mark.parametrize(
    ("query", "stdin", "message"),
    [
        ("", b"", "empty"),
        ("-", b"", "empty"),
        ("-", b" \n\t\n", "empty"),
        ("-", b"caf\xe9", "UTF-8"),
        ("caf\udce9", b"", "UTF-8"),
        ("-", b"laptop price " * 8000, "tokens"),
        ("-", "🦙".encode() * 3000, "tokens"),
    ],
    ids=["no text", "no stdin", "white", "bytes", "bytes in argv", "100 kB", "emoji"],
)
def test_query_that_starts_no_turn(query: str, stdin: bytes, message: str, tmp_path: Path) -> None:
    """A query that cannot be used ends with 2 and a fix, and claims no number."""
    panda = Panda(tmp_path)
    panda("init")
    ended = panda("turn", query, "--json", stdin=stdin)
    assert (ended.code, message in ended.error["message"]) == (2, True)
    assert ended.error["fix"]
    assert not panda.turn_file(1, "").exists()
    if message == "tokens":
        assert "knowledge/" in ended.error["fix"]


def test_broken_model(panda: Panda) -> None:
    """A GGUF that is cut short is named with its file and key; no number is claimed, no traceback shown."""
    panda.write("cut.gguf", b"GGUF\x03\x00\x00\x00" + bytes(100))
    layers = ", ".join(f"{name}: cut" for name in ("REFLEX", "NERVES", "MIND", "VOICE"))
    spec = "{backend: llama_cpp, location: cut.gguf, n_ctx: 4096}"
    panda.write("models.yaml", f"models:\n  cut: {spec}\nlayers: {{{layers}}}\n")
    ended = panda("turn", "How much?")
    assert ended.code == 2
    error, where, *_ = ended.err.splitlines()[-3:]
    assert (error[:7], where[:7]) == ("error: ", "where: ")
    assert "cut.gguf" in error + where
    assert "Traceback" not in ended.err
    assert not panda.turn_file(813, "").exists()
