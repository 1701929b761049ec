"""Kept vectors: the same cosine whether kept or new, and nothing that befalls the file breaks anything."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from panda.index.vectors import Block, VectorStore
from panda.models.kept_encoder import KeptEncoder, pack, unpack
from panda.models.layers import Layers
from panda.models.models_file import parse_models_file
from panda.store.layout import Layout
from tests.scripted_model import ScriptedEncoder

TEXTS = ["a red tent", "the tent is red", "bees fly in May", ""]


def opened(layout: Layout) -> tuple[KeptEncoder, ScriptedEncoder]:
    scripted = ScriptedEncoder()
    return KeptEncoder(scripted, VectorStore(layout)), scripted


def keep(layout: Layout) -> None:
    encoder, _ = opened(layout)
    encoder.encode(TEXTS)
    digests = [encoder.digest(text) for text in TEXTS]
    assert encoder.store.save(encoder.find(digests), [Block("ann", "m", 0, b"texts")])


def test_a_kept_vector_is_the_same_and_not_computed_again(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    new = opened(layout)[0].encode(TEXTS)
    keep(layout)
    encoder, scripted = opened(layout)
    assert encoder.encode(TEXTS).tobytes() == new.tobytes()
    assert scripted.asked == []


def test_a_text_is_computed_once_in_a_process(tmp_path: Path) -> None:
    encoder, scripted = opened(Layout(tmp_path))
    encoder.encode(["a", "b", "a"])
    encoder.encode(["b"])
    assert scripted.asked == ["a", "b"]
    assert not Layout(tmp_path).vectors.exists()  # what is asked stays in memory


def test_the_loss_in_cosine_is_small(tmp_path: Path) -> None:
    """The packaged encoder's cosines differ by less than .005 from those of what is kept."""
    models = parse_models_file("models: {}\nlayers: {}\n", path=tmp_path / "models.yaml")
    texts = ["How much is the laptop?", "The laptop costs $697.", "The bees fly in May.", "A tent for three"]
    with Layers(models, cache_dir=tmp_path, environ={}) as layers:
        encoder = layers.encoder()
        assert encoder is not None
        exact = encoder.encode(texts)
    kept = unpack(pack(exact))
    assert np.abs(exact @ exact.T - kept @ kept.T).max() < 0.005
    assert np.allclose(np.linalg.norm(kept, axis=1), 1)


def remove(path: Path) -> None:
    path.unlink()


def remove_all(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    path.write_bytes(b"no database " * 999)


def change_bytes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(200, len(data), 7):
        data[at] ^= 0x55
    path.write_bytes(data)


def of_another_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    "damage", [remove, remove_all, truncate, overwrite, change_bytes, of_another_version]
)
def test_damage_changes_no_vector_and_is_mended(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    layout = Layout(tmp_path)
    right = opened(layout)[0].encode(TEXTS)
    keep(layout)
    damage(layout.vectors)
    assert opened(layout)[0].encode(TEXTS).tobytes() == right.tobytes()
    store = VectorStore(layout)
    assert dict(store.blocks("ann", "m")).get(0, b"texts") == b"texts"
    keep(layout)
    assert dict(store.blocks("ann", "m")) == {0: b"texts"}


def test_a_file_that_another_process_writes_is_left_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    keep(layout)
    with closing(sqlite3.connect(layout.vectors, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        encoder, scripted = opened(layout)
        encoder.encode(TEXTS)
        assert scripted.asked == TEXTS
        assert not encoder.store.save({b"digest": b"vector"})
    assert VectorStore(layout).count() == len(TEXTS)


def test_a_read_only_store_is_not_written(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.read_only_mark.touch()
    assert not VectorStore(layout).save({b"digest": b"vector"})
    assert not layout.indexes.exists()


def test_what_no_text_holds_any_more_can_be_dropped(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    keep(layout)
    encoder, _ = opened(layout)
    kept = encoder.digest(TEXTS[0])
    assert encoder.store.keep_only([kept], users=["bob"], model="m")
    assert encoder.store.count() == 1
    assert set(encoder.store.load([encoder.digest(text) for text in TEXTS])) == {kept}
    assert dict(encoder.store.blocks("ann", "m")) == {}
