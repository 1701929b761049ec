"""The packaged encoder: the right bytes, vectors that depend on nothing else, errors that say what to do."""

import hashlib
import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from panda.errors import ModelFileError
from panda.models.layers import LoadedLayers
from panda.models.models_file import parse_models_file
from panda.store.layout import asset

_LAYERS = "layers: {}\n"


def _layers(tmp_path: Path, text: str) -> LoadedLayers:
    return LoadedLayers(
        parse_models_file(text, path=tmp_path / "models.yaml"), cache_dir=tmp_path, environ={}
    )


def _convert() -> ModuleType:
    spec = importlib.util.spec_from_file_location("convert", asset("encoder") / "convert.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_packaged_encoder_is_what_make_encoder_makes() -> None:
    converter = _convert()
    assert hashlib.sha256(converter.ENCODER.read_bytes()).hexdigest() == converter.ENCODER_SHA256


def test_vector_depends_on_no_other_text(tmp_path: Path) -> None:
    texts = ["a tent", "", "two\nlines, three words each", "long " * 2_000]
    with _layers(tmp_path, "models: {}\n" + _LAYERS) as layers:
        encoder = layers.encoder()
        assert encoder is not None
        together = encoder.encode(texts)
        alone = np.vstack([encoder.encode([text]) for text in reversed(texts)])[::-1]
    assert together.tobytes() == alone.tobytes()
    assert np.allclose(np.linalg.norm(together, axis=1), 1)


def test_words_have_their_vectors_in_their_place(tmp_path: Path) -> None:
    """A word is whole whatever its pieces, and means what the words beside it make of it."""
    with _layers(tmp_path, "models: {}\n" + _LAYERS) as layers:
        encoder = layers.encoder()
        assert encoder is not None
        river, money = (dict(encoder.encode_words(text)) for text in ("a river bank", "a bank account, wifi"))
        whole = encoder.encode(["a river bank"])
    assert list(money) == ["a", "bank", "account", ",", "wifi"]
    assert all(np.isclose(np.linalg.norm(vector), 1) for vector in money.values())
    assert river["bank"] @ river["river"] > money["bank"] @ river["river"]
    assert np.allclose(whole, encoder.encode(["a river bank"]))


def test_language_model_is_refused_as_an_encoder_when_it_is_asked(tmp_path: Path) -> None:
    entry = "{backend: llama_cpp, location: 'builtin:smollm2-135m', n_ctx: 256, embeds: true}"
    with _layers(tmp_path, f"models: {{lm: {entry}}}\nencoder: lm\n" + _LAYERS) as layers:
        encoder = layers.encoder()
        assert encoder is not None
        with pytest.raises(ModelFileError, match="is no encoder") as caught:
            encoder.encode(["a"])
    assert "encoder: null" in str(caught.value.fix)
