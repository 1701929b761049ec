"""Names that could steer a terminal, in every place where a command repeats them."""

import re
import shutil
from pathlib import Path

import pytest

from tests.api import ROOT, run_here

EVIL = "\x1b]0;x\x07\x1b[31m\u202eevil\u2066\x9b2J\u2028"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo store with notes, turns and folders of such names."""
    store = tmp_path_factory.mktemp("hostile") / "store"
    shutil.copytree(ROOT / "panda-system-docs", store)
    (store / "read-only").unlink(missing_ok=True)
    user = store / "users" / "demo"
    (user / "knowledge").mkdir(exist_ok=True)
    (user / "knowledge" / f"{EVIL}.md").write_bytes(b"\xff broken")
    (user / "knowledge" / "tea.md").write_text(f"# {EVIL}\n\nThe {EVIL} tea.\n", encoding="utf-8")
    (user / EVIL).mkdir()
    (user / "turns" / f"turn_{EVIL}").mkdir()
    return store


@pytest.mark.parametrize(
    "words",
    [
        ("validate",),
        ("validate", EVIL),
        ("index", "search", f"tea {EVIL}"),
        ("compress", f"/{EVIL}", "--budget", "10"),
        ("show", "811", "--file", EVIL),
        ("show", EVIL),
        ("list", "--session", EVIL),
        ("list", f"--{EVIL}"),
        (EVIL,),
        ("turn", "x", "--mode", EVIL),
        ("turn", "x", "--session", EVIL),
        ("turn", "x", "--image", f"/{EVIL}"),
        ("tool", "run", EVIL),
        ("memory", "get", EVIL),
        ("memory", "list", "--kind", EVIL),
        ("recipe", "show", EVIL),
        ("import", EVIL),
        ("intervention", "show", EVIL),
        ("diff", EVIL, "x"),
        ("replay", EVIL),
        ("synthesize", "--scope", EVIL),
        ("synthesize", "--scope", "local", "--facts", f"/{EVIL}"),
        ("session", "show", EVIL),
    ],
    ids=lambda words: ascii(" ".join(words)).replace(ascii(EVIL)[1:-1], "EVIL"),
)
def test_names_do_not_steer_the_terminal(words: tuple[str, ...], root: Path) -> None:
    """Neither what a command finds nor its error repeats control or direction characters; none is a bug."""
    common = () if words == (EVIL,) else ("--root", str(root), "--user", "demo")
    for more in ((), ("--json",)):
        ended = run_here([*words, *common, *more])
        assert ended.code not in (1, 130)
        assert UNSAFE.findall(ended.out + ended.err) == []
