"""Classifiers of texts: what the packaged ones say, another encoder, a damaged file."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from panda.errors import FileFormatError
from panda.index.vectors import VectorStore
from panda.models.kept_encoder import KeptEncoder
from panda.models.layers import LoadedLayers
from panda.models.models_file import parse_models_file
from panda.models.text_classifier import load_classifier
from panda.offline.encoded_texts import CLASSIFIERS
from panda.retrieval.operations import OPERATIONS, WEIGHTS
from panda.retrieval.passages import Passage, PassageRanker
from panda.store.layout import Layout
from panda.store.records import Line

FILES = sorted({*CLASSIFIERS.glob("*.json"), WEIGHTS} - {CLASSIFIERS / "answer.json"})


@pytest.fixture
def encoder(tmp_path: Path) -> Iterator[KeptEncoder]:
    """Yield the packaged encoder, its vectors kept in an empty store."""
    models = parse_models_file("models: {}\nlayers: {}\n", path=tmp_path / "models.yaml")
    with LoadedLayers(models, cache_dir=tmp_path, environ={}) as layers:
        packaged = layers.encoder()
        assert packaged is not None
        yield KeptEncoder(packaged, VectorStore(Layout(tmp_path)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_packaged_classifiers_hold_for_the_packaged_encoder(path: Path, encoder: KeptEncoder) -> None:
    """Each gives every class a probability, of any text; one depends on no other text."""
    classifier = load_classifier(path)
    for text in ("Which tea do I like?", "", "?!", "茶は何が好き", "tea " * 2_000):
        probabilities = classifier.classify(text, encoder)
        assert tuple(probabilities) == classifier.classes
        assert sum(probabilities.values()) == pytest.approx(1, abs=1e-4)
        assert probabilities == classifier.classify(text, encoder)


def test_operations_are_the_classes_of_their_classifier() -> None:
    """The weights know the operations that the code knows."""
    assert load_classifier(WEIGHTS).classes == OPERATIONS


def test_weights_hold_for_one_encoder(tmp_path: Path, encoder: KeptEncoder) -> None:
    """With another encoder, or none, nothing is said."""
    values = json.loads((CLASSIFIERS / "mood.json").read_text(encoding="utf-8"))
    path = tmp_path / "mood.json"
    path.write_text(json.dumps(values | {"encoder": "0" * 64}), encoding="utf-8")
    assert load_classifier(path).classify("Which tea do I like?", encoder) == {}
    assert load_classifier(CLASSIFIERS / "mood.json").classify("Which tea do I like?", None) == {}


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    """A file that holds no weights is named with what to do."""
    path = tmp_path / "mood.json"
    path.write_text('{"encoder": 1}', encoding="utf-8")
    with pytest.raises(FileFormatError) as raised:
        load_classifier(path)
    assert (raised.value.where, raised.value.fix) == (str(path), "install panda again")


@pytest.mark.parametrize(
    ("covering", "lacking"),
    [
        ("Ada: train 7:40 from Kiel", "Tom: train 9:15 from Kiel"),
        ("Ada's train from Kiel leaves at 7:40", "Ada's bicycle is in Kiel"),
        ("Ada, Kiel 2026: train at 7:40", "Ada, Kiel 2025: train at 8:10"),
    ],
)
def test_a_passage_covers_what_its_words_and_names_say(
    covering: str, lacking: str, encoder: KeptEncoder
) -> None:
    """Words count with the closest there; another person, year or thing makes a passage cover less."""
    ranker = PassageRanker(encoder)
    query = "When does Ada's train leave Kiel in 2026?"
    better, worse = (
        ranker.measure_coverage(query, Passage((Line(text, node="knowledge:trains.md"),)))
        for text in (covering, lacking)
    )
    assert better is not None
    assert worse is not None
    assert better.mean > worse.mean
    assert ranker.measure_coverage("Когда поезд?", Passage((Line(covering, node="n"),))) is None
