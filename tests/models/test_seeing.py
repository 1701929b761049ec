"""Pictures through llama.cpp: a projector beside the weights, loaded on demand and freed."""

from pathlib import Path

import pytest

from panda.documents.pictures import Picture, parse_picture
from panda.errors import ModelFileError
from panda.models.layers import LoadedLayers
from panda.models.model_contract import GenerateParams, Message, Model
from panda.models.models_file import parse_models_file
from tests.models.conftest import Server
from tests.models.projectors import png, write_projector

PARAMS = GenerateParams(temperature=0, max_tokens=4, seed=1, timeout_seconds=60)


def layers_of(directory: Path, cache_dir: Path, entry: str) -> LoadedLayers:
    """The models of a file whose EYES is the embedded model with some more keys."""
    text = f"models:\n  a: {{backend: llama_cpp, location: 'builtin:smollm2-135m', n_ctx: 512{entry}}}\n"
    file = parse_models_file(f"{text}layers: {{EYES: a}}\n", path=directory / "models.yaml")
    return LoadedLayers(file, cache_dir=cache_dir, environ={})


def ask(model: Model, *pictures: Picture) -> list[Message]:
    """A question, with pictures before it."""
    return [Message("system", "Be brief."), Message("user", "What is it?", pictures)]


def test_picture_is_read(tmp_path: Path, cache_dir: Path) -> None:
    """A picture takes its tokens of the window, the same one gives the same text, and release frees all."""
    write_projector(tmp_path / "eyes.gguf")
    with layers_of(tmp_path, cache_dir, ", projector: eyes.gguf") as layers:
        model = layers.model("EYES")
        assert model.info.sees
        before = count_mappings(model.info.extra["file"])
        seen = model.generate(ask(model, parse_picture(png())), PARAMS)
        assert count_mappings(model.info.extra["file"]) > before
        layers.release("EYES")
        assert count_mappings(model.info.extra["file"]) == before
        again = model.generate(ask(model, parse_picture(png())), PARAMS)
        plain = model.generate(ask(model), PARAMS)
    assert again.text == seen.text
    assert seen.usage.prompt == (plain.usage.prompt or 0) + 16  # 4 × 4 patches


def count_mappings(path: object) -> int:
    """Return how often this process has the weights of a file in memory."""
    return Path("/proc/self/maps").read_text(encoding="utf-8").count(str(path))


@pytest.mark.parametrize(
    ("kind", "text_embd", "message_part"),
    [("mlp", 64, "mismatch"), ("idefics3", 576, "no tokens"), ("nonsense", 576, "unknown")],
)
def test_wrong_projector(
    kind: str, text_embd: int, message_part: str, tmp_path: Path, cache_dir: Path
) -> None:
    """A projector of another model or of an unknown kind is named with its file."""
    path = write_projector(tmp_path / "eyes.gguf", kind=kind, text_embd=text_embd)
    with layers_of(tmp_path, cache_dir, ", projector: eyes.gguf") as layers:
        model = layers.model("EYES")
        with pytest.raises(ModelFileError, match=message_part) as caught:
            model.generate(ask(model, parse_picture(png())), PARAMS)
    assert caught.value.where == str(path)


def test_model_that_cannot_see(tmp_path: Path, cache_dir: Path) -> None:
    """A model of EYES that has no projector is an error that names the key."""
    with layers_of(tmp_path, cache_dir, "") as layers, pytest.raises(ModelFileError) as caught:
        layers.model("EYES")
    assert (caught.value.path, caught.value.key) == (str(tmp_path / "models.yaml"), "models.a.projector")


def test_missing_projector(tmp_path: Path, cache_dir: Path) -> None:
    """A projector file that is not there is named before anything is loaded."""
    entry = ", projector: gone.gguf"
    with layers_of(tmp_path, cache_dir, entry) as layers, pytest.raises(ModelFileError, match=r"gone\.gguf"):
        layers.model("EYES")


def test_server_gets_a_data_uri(server: Server) -> None:
    """An OpenAI-compatible server gets the picture as a data URI before the text."""
    model = server.model(n_ctx=500)
    model.generate(ask(model, parse_picture(png())), PARAMS)
    system, user = server.asked[0]["messages"]
    assert system["content"] == "Be brief."
    assert [part["type"] for part in user["content"]] == ["image_url", "text"]
    assert user["content"][0]["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgo")
