"""What offline replies compare texts with: the encoder and its classifiers; without one, words."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from panda.messages.wording import PAGE_ADDRESS
from panda.models.model_contract import Encoder
from panda.models.text_classifier import load_classifier
from panda.offline.answering import Words, answer_probabilities, describe_closest, load_weights
from panda.offline.encoded_texts import CLASSIFIERS, Vectors, cosines
from panda.retrieval.relevance import share_of_words
from panda.steps.options import Option

_EXAMPLES = Path(__file__).parent / "examples"
_SHARPNESS = 15.0  # what a cosine is multiplied by, so that the softmax over classes becomes a probability
_MOST_KEPT = 20_000  # texts whose vectors are kept
_MOST_READ = 400  # texts whose words are kept; each word is a vector


def softmax(values: Mapping[str, float]) -> dict[str, float]:
    """Return probabilities by logarithms; empty for none."""
    top = max(values.values(), default=0.0)
    total = sum(math.exp(value - top) for value in values.values())
    return {key: math.exp(value - top) / total for key, value in values.items()}


@lru_cache(maxsize=16)
def load_examples(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the examples of each class in a file of panda/offline/examples/."""
    text = (_EXAMPLES / f"{name}.md").read_text(encoding="utf-8")
    parts = re.split(r"(?m)^# (.+)\n", text)
    return {
        heading.strip(): tuple(line[2:].strip() for line in body.splitlines() if line.startswith("- "))
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }


class OfflineModels:
    """The encoder with its classifiers; every text is encoded once."""

    def __init__(self, encoder: Encoder | None) -> None:
        self.encoder = encoder
        self._vectors: dict[str, Vectors] = {}
        self._words: dict[str, Words] = {}

    def nearness(self, query: str, texts: Sequence[str]) -> list[float]:
        """Cosine of each text with the query; without an encoder the share of its words that a text has."""
        if self.encoder is None:
            return [share_of_words(query, text) for text in texts]
        return cosines(self._encode, query, texts)

    def rank(self, query: str, options: Sequence[Option], *, prior: float = 0.0) -> dict[str, float]:
        """Return a score by option id: its nearness to the query and its own prior, so much weighted."""
        near = self.nearness(query, [option.near for option in options])
        pairs = zip(options, near, strict=True)
        return {option.id: value + prior * option.prior for option, value in pairs}

    def classify(self, name: str, text: str) -> dict[str, float]:
        """Return the probability of each class of a classifier; {} where there is none for the encoder."""
        return load_classifier(CLASSIFIERS / f"{name}.json").classify(text, self.encoder)

    def classify_message(self, name: str, text: str) -> dict[str, float]:
        """Return as classify, with addresses of pages as "the page"."""
        return self.classify(name, PAGE_ADDRESS.sub("the page", text))

    def classify_by_examples(self, name: str, text: str, among: Sequence[str] = ()) -> dict[str, float]:
        """
        Return the probability of each class by its examples, made of the nearest and the mean of all.

        Args:
            name: The file of examples.
            among: The classes that are compared; empty for all of the file.
        """
        examples = {
            label: texts
            for label, texts in load_examples(name).items()
            if texts and (not among or label in among)
        }
        values = iter(self.nearness(text, [example for texts in examples.values() for example in texts]))
        near = {label: [next(values) for _ in texts] for label, texts in examples.items()}
        return softmax(
            {label: _SHARPNESS * (max(all_) + sum(all_) / len(all_)) / 2 for label, all_ in near.items()}
        )

    def answers(self, query: str, options: Sequence[Option]) -> dict[str, float] | None:
        """Return the probability of each option that it answers; None without its weights, or options."""
        weights = load_weights()
        if self.encoder is None or self.encoder.info.digest != weights.encoder or not options:
            return None
        lines = [option.near for option in options]
        probabilities = answer_probabilities(weights, query, lines, self._encode, self._words_of)
        return {option.id: value for option, value in zip(options, probabilities, strict=True)}

    def describe_lines(self, query: str, lines: Sequence[str]) -> list[float]:
        """Return what describes the line that is closest to a query, as `describe_closest` does."""
        return describe_closest(query, lines, self._encode, self._words_of)[1]

    def _encode(self, texts: Sequence[str]) -> Vectors:
        assert self.encoder is not None
        if len(self._vectors) > _MOST_KEPT:
            self._vectors.clear()
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            self._vectors.update(zip(missing, self.encoder.encode(missing), strict=True))
        return np.array([self._vectors[text] for text in texts], np.float32)

    def _words_of(self, text: str) -> Words:
        """The words of a text, each with its vector in its place; its signs where it has no word."""
        assert self.encoder is not None
        if text not in self._words:
            if len(self._words) >= _MOST_READ:
                self._words.clear()
            encoded = self.encoder.encode_words(text)
            self._words[text] = [pair for pair in encoded if pair[0][0].isalnum()] or encoded
        return self._words[text]
