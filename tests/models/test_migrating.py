"""`panda models migrate`: a models.yaml of an earlier version, rewritten line by line."""

from pathlib import Path

import pytest

from tests.api import Panda

LOCAL = "backend: llama_cpp, location: a.gguf, n_ctx: 2048"
BLOCK = """\
# Models of Zoë's machine.
models:
  small:   # the one that fits
    backend: llama_cpp
    location: small.gguf # quantised
    n_ctx: 2048

    # may it write?
    writes: false
    scores:   true # for choices
    requantize: q8_0
  large: {backend: llama-server, n_ctx: 16384, writes: true, thinking_tokens: 512} # on port 8080
encoder: null

layers:
  REFLEX: small # fast
  NERVES: "small"
  MIND: large
  VOICE: large
  EYES: small
"""
MIGRATED = """\
# Models of Zoë's machine.
models:
  small:   # the one that fits
    backend: llama_cpp
    location: small.gguf # quantised
    n_ctx: 2048

    # may it write?
  large: {backend: llama-server, n_ctx: 16384, thinking_tokens: 512} # on port 8080
encoder: null

layers:
  REFLEX: offline # fast
  NERVES: "offline"
  MIND: large
  VOICE: large
  EYES: null
"""


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project without a store."""
    return Panda(tmp_path / "project")


def one_model(entry: str, layers: str = "MIND: a") -> str:
    """Return a models.yaml with one model."""
    return f"models: {{a: {entry}}}\nlayers: {{{layers}}}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BLOCK, MIGRATED),
        (BLOCK.replace("\n", "\r\n"), MIGRATED.replace("\n", "\r\n")),
        (BLOCK.removesuffix("\n"), MIGRATED.removesuffix("\n")),
        (one_model(f"{{{LOCAL}, writes: true}}"), one_model(f"{{{LOCAL}}}")),
        (one_model(f"{{writes: true, {LOCAL}}}"), one_model(f"{{{LOCAL}}}")),
        (one_model(f"{{{LOCAL}, writes: true, scores: true}}"), one_model(f"{{{LOCAL}}}")),
        (one_model(f"{{{LOCAL}, writes: true,\n  scores: false,}}"), one_model(f"{{{LOCAL},}}")),
        (one_model(f"{{scores: true,\n {LOCAL}}}"), one_model(f"{{\n {LOCAL}}}")),
        (one_model(f"{{{LOCAL}, # here\n writes: true}}"), one_model(f"{{{LOCAL}, # here\n }}")),
        (one_model(f"{{{LOCAL}, 'writes': no}}"), one_model(f"{{{LOCAL}}}")),
        (
            one_model(f"{{{LOCAL}, writes: false}}", "MIND: a, EYES: a, VOICE: null"),
            one_model(f"{{{LOCAL}}}", "MIND: offline, EYES: null, VOICE: null"),
        ),
        (
            '{"models": {"a": {"backend": "openai", "location": "http://a/v1", "model": "m", "n_ctx": 9,\n'
            ' "writes": false, "scores": false}}, "layers": {"MIND": "a"}}\n',
            '{"models": {"a": {"backend": "openai", "location": "http://a/v1", "model": "m", "n_ctx": 9}}, '
            '"layers": {"MIND": "offline"}}\n',
        ),
    ],
)
def test_all_but_keys_of_earlier_versions_stays(panda: Panda, before: str, after: str) -> None:
    """The keys go, layers become offline, all else stays byte for byte; a second time changes nothing."""
    path = panda.home / "models.yaml"
    path.write_bytes(before.encode())
    assert panda("models", "migrate").code == 0
    assert path.read_bytes().decode() == after
    again = panda("models", "migrate")
    assert (again.code, again.out, again.err) == (0, "", f"nothing to rewrite: {path}\n")
    assert path.read_bytes().decode() == after
    listed = panda("models", "list")
    assert (listed.code, listed.err) == (0, "")


def test_a_dry_run_shows_what_would_change(panda: Panda) -> None:
    """--dry-run prints the lines that change, and writes nothing; --json names each key with its line."""
    panda.write("models.yaml", BLOCK)
    ended = panda("models", "migrate", "--dry-run")
    assert ended.code == 0
    assert "-    writes: false\n" in ended.out
    assert "+  REFLEX: offline # fast\n" in ended.out
    data = panda.json("models", "migrate", "--dry-run")
    assert (panda.home / "models.yaml").read_text(encoding="utf-8") == BLOCK
    assert [(change["line"], change["key"], change["after"]) for change in data["changes"]] == [
        (9, "models.small.writes", None),
        (10, "models.small.scores", None),
        (11, "models.small.requantize", None),
        (12, "models.large.writes", None),
        (16, "layers.REFLEX", "offline"),
        (17, "layers.NERVES", "offline"),
        (20, "layers.EYES", None),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [("models: {\nlayers: {}", ":2"), ("models: {a: {backend: x, writes: true}}\nlayers: {}", ":1")],
)
def test_a_file_that_cannot_be_read_is_refused(panda: Panda, text: str, line: str) -> None:
    """A models.yaml with a fault is named with its line, and stays as it is."""
    panda.write("models.yaml", text)
    ended = panda("models", "migrate", "--json")
    assert (ended.code, ended.error["type"]) == (2, "ModelFileError")
    assert f"models.yaml{line}" in ended.error["where"]
    assert (panda.home / "models.yaml").read_text(encoding="utf-8") == text


def test_the_packaged_file_needs_no_rewriting(panda: Panda) -> None:
    """Without a models.yaml of one's own there is nothing to do."""
    ended = panda("models", "migrate")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("nothing to rewrite: ")


def test_a_link_out_of_the_project_is_left_alone(panda: Panda, tmp_path: Path) -> None:
    """A models.yaml that leads out of the project is rewritten only where it is named itself."""
    target = tmp_path / "shared.yaml"
    target.write_text(one_model(f"{{{LOCAL}, writes: true}}"), encoding="utf-8")
    (panda.home / "models.yaml").symlink_to(target)
    ended = panda("models", "migrate", "--json")
    assert ended.code == 2
    assert f"PANDA_MODELS_FILE={target} panda models migrate" in ended.error["fix"]
    assert "writes" in target.read_text(encoding="utf-8")
    assert panda("models", "migrate", PANDA_MODELS_FILE=str(target)).code == 0
    assert target.read_text(encoding="utf-8") == one_model(f"{{{LOCAL}}}")
