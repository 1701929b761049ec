"""Files of other users count for nothing until they are trusted."""

import os
from pathlib import Path

import pytest

from tests.api import Panda

STRANGER = 4242
FIX = "look at it with panda trust --dry-run, then panda trust"
CONFIG = 'user = "mallory"\n'
RECIPE = "recipes/pipeline/mine.yaml"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project without trust, whose store lies where nobody named it."""
    project = Panda(tmp_path / "project", PANDA_TRUST="", PANDA_ROOT="")
    project.store = project.home / "panda-system-docs"
    assert project("init").code == 0
    return project


def give_away(path: Path) -> Path:
    """Let a path belong to another user; of a link the link itself."""
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    return path


def models_of_nobody() -> str:
    """A models.yaml that reaches nothing."""
    return (
        "models: {small: {backend: llama_cpp, location: builtin:smollm2-135m, n_ctx: 8192}}\n"
        "layers: {REFLEX: small, NERVES: small, MIND: small, VOICE: small, EYES: null}\n"
    )


@pytest.mark.parametrize("name", ["panda.toml", "models.yaml", RECIPE, "prompts/pipeline/mine.md", "prompts"])
def test_a_file_of_another_user_counts_once_trusted(name: str, panda: Panda) -> None:
    """Every command ends with 2, names the file and its owner, until panda trust has recorded it as it is."""
    path = panda.home / name
    if name == "prompts":
        path.mkdir()
    else:
        panda.write(name, {"panda.toml": "seed = 3\n", "models.yaml": models_of_nobody()}.get(name, "x: 1\n"))
    assert panda("list").code == 0
    give_away(path)
    for words in (("list",), ("memory", "set", "tea", "Assam"), ("recipe", "list"), ("models", "list")):
        ended = panda(*words)
        assert (ended.code, f"fix: {FIX}" in ended.err) == (2, True), words
        assert f"belongs to another user, uid {STRANGER}" in ended.err
        assert f"where: {panda.home / name.partition('/')[0]}" in ended.err
    assert panda("list", SUDO_UID=str(STRANGER)).code == 0
    assert panda("list", "--trust").code == 0
    assert panda("validate").code == 3
    assert f"uid {STRANGER}" in panda("trust", "--dry-run").out
    assert panda("list").code == 2
    assert panda("trust").code == 0
    assert panda("list").code == 0
    if path.is_file():
        path.write_text(f"{path.read_text(encoding='utf-8')}# changed\n", encoding="utf-8")
        assert panda("list").code == 2


def test_settings_of_a_directory_that_everybody_writes_to(panda: Panda, tmp_path: Path) -> None:
    """A panda.toml that somebody put into a parent directory counts for nothing, nor does their link."""
    path = tmp_path / "panda.toml"
    path.write_text(CONFIG, encoding="utf-8")
    assert "mallory" in panda("config", "show").out
    give_away(path)
    assert panda("turn", "Which laptop?").code == 2
    path.unlink()
    (tmp_path / "mine.toml").write_text(CONFIG, encoding="utf-8")
    path.symlink_to("mine.toml")
    assert panda("list").code == 2  # of the user mallory, who is not there
    assert "no user" in panda("list").err
    give_away(path)
    assert f"uid {STRANGER}" in panda("list").err


def test_a_store_of_another_user_that_nobody_named(panda: Panda) -> None:
    """A store that is found in the current directory has to be one's own; a named one does not."""
    give_away(panda.store)
    assert f"belongs to another user, uid {STRANGER}" in panda("list").err
    assert panda("list", "--root", str(panda.store)).code == 0
    assert panda("trust").code == 0
    assert panda("list").code == 0


def test_files_of_the_user_or_of_root_need_no_trust(panda: Panda) -> None:
    """A file that root has put there counts."""
    panda.write("panda.toml", "seed = 3\n")
    panda.write(RECIPE, "x: 1\n")
    assert panda("list").code == 0
    assert "nothing here reaches out" in panda("trust").err


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "#" * 2_000_000], ids=["deep", "large"])
def test_settings_that_no_user_wrote(text: str, panda: Panda) -> None:
    """A panda.toml that is nested too deeply or too large is an error of that file."""
    path = panda.write("panda.toml", text)
    ended = panda("list")
    assert (ended.code, f"where: {path}" in ended.err) == (2, True)
