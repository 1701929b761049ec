"""Completion in a shell: the real protocol, as a process."""

import sys
from pathlib import Path

import pytest

from tests.api import Panda
from tests.store_files import write_json, write_turn

HEAVY = ("rich", "llama_cpp", "numpy", "tiktoken", "jsonschema", "sqlite3", "httpx", "llguidance")


@pytest.fixture(scope="module")
def panda(tmp_path_factory: pytest.TempPathFactory) -> Panda:
    """A store with turns of two users, one of them unfinished, one of them damaged, and two interventions."""
    panda = Panda(tmp_path_factory.mktemp("completion") / "project")
    ann = panda.store / "users/ann"
    write_turn(ann, 11, query="q", response="r", session="work")
    write_turn(ann, 12, query="q", response="r", session="home", status="halted")
    damaged = write_turn(ann, 113, query="q", response="r", session="work")
    (damaged / "metadata.json").write_text("{", encoding="utf-8")
    write_turn(panda.store / "users/bob", 5, query="q", response="r")
    for name, status in (("20260101-halt", "open"), ("20260102-halt", "resolved")):
        panda.write(f"store/interventions/{name}.json", "")
        intervention = {"id": name, "user_id": "ann", "status": status, "turn": 12, "phase": 2}
        write_json(panda.store / "interventions" / f"{name}.json", intervention)
    return panda


def complete(panda: Panda, line: str, **environ: str) -> tuple[set[str], str]:
    """Return what bash is offered at the end of a line, and stderr."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    ended = panda.process(**{"_PANDA_COMPLETE": "complete_bash", **words, **environ})
    return set(ended.out.split()), ended.err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("panda show --user ann 11", {"11", "113"}),
        ("panda show --user bob ", {"5", "last"}),
        ("panda show --user ", {"ann", "bob"}),
        ("panda list --user ann --session ", {"work", "home"}),
        ("panda log --user ann --turn ", {"11", "12", "113", "last"}),
        ("panda recipe show pipeline/phase1", {"pipeline/phase1_reflection"}),
        ("panda recipe render pipeline/phase1_reflection --user bob --turn ", {"5", "last"}),
        ("panda log --recipe pipeline/phase1", {"pipeline/phase1_reflection"}),
        ("panda turn --user ann --resume ", {"12"}),
        ("panda tool run memory.", {"memory.query", "memory.create"}),
        ("panda replay 11 --user ann 1", {"11", "12", "113"}),
        ("panda interv", {"intervention"}),
        ("panda intervention show 2026", {"20260101-halt", "20260102-halt"}),
        ("panda intervention resolve ", {"20260101-halt"}),
        ("panda va", {"validate"}),
        ("panda stats --by ou", {"outcome"}),
        ("panda turn --req", {"--require-answer"}),
        ("panda turn -m ", {"offline"}),
        ("panda models add h", {"http://", "hf:"}),
        ("panda models add http://a/v1 --layer V", {"VOICE"}),
        ("panda show --user nobody ", set()),
        ("panda show --user A/B ", set()),
    ],
)
def test_offers(panda: Panda, line: str, expected: set[str]) -> None:
    """
    Completion offers what can stand at the cursor, of the user and store typed before it; stderr stays empty.
    """
    assert complete(panda, line) == (expected, "")


def test_without_a_store(tmp_path: Path) -> None:
    """Without a store, or with a broken setting, nothing is offered and nothing is said."""
    panda = Panda(tmp_path)
    assert complete(panda, "panda show ") == (set(), "")
    panda.write("panda.toml", "user = 5")
    assert complete(panda, "panda show ", PANDA_ROOT="") == (set(), "")


def test_imports_little(panda: Panda) -> None:
    """Completing a turn number imports no heavy library, so it comes at once."""
    code = "import sys\nfrom panda.cli.main import main\ntry: main()\nexcept SystemExit: "
    code += f"print('imported', *(set({HEAVY!r}) & set(sys.modules)))"
    measured = Panda(panda.home)
    measured.program = (sys.executable, "-c", code)
    assert complete(measured, "panda show --user ann 12")[0] == {"12", "imported"}
