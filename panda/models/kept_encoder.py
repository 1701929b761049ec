"""An encoder whose vectors are kept: a text that was seen before is not computed again."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from panda.index.vectors import VectorStore
from panda.language.text import plain_signs
from panda.models.model_contract import Encoder, ModelInfo

if TYPE_CHECKING:
    from panda.models.model_contract import Vectors

TURN_TEXTS = 200
"""Most texts without a kept vector that a turn computes, in all its phases together."""

_LARGEST = 127
_MOST_IN_MEMORY = 20_000
_DIGEST_BYTES = 16
_MOST_READ = 100
"""Texts whose words' vectors are remembered."""


class KeptEncoder:
    """
    Gives each vector as whole numbers from -127 to 127 describe its direction, whether it was kept or is new:
    so a cosine is the same either way. What it computes it remembers as long as the process lives; what is
    saved in *store* lasts: the texts of the store's own nodes, not what was asked about them.
    """

    def __init__(self, encoder: Encoder, store: VectorStore) -> None:
        self._encoder = encoder
        self.store = store
        self._packed: dict[bytes, bytes] = {}
        self._words: dict[str, list[tuple[str, Vectors]]] = {}
        self._computed: set[bytes] = set()
        """Digests of what this process computed and has not saved."""
        self.turn_texts_left: int | None = None
        """How many texts the running turn may still compute; None outside of turns: any number."""

    @property
    def info(self) -> ModelInfo:
        return self._encoder.info

    @cached_property
    def width(self) -> int:
        """Return how many numbers a vector has."""
        return len(self.encode_packed([""])[0])

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """As the encoder's own, from which cosines differ by less than .005."""
        return unpack(self.encode_packed(texts))

    def encode_words(self, text: str) -> "list[tuple[str, Vectors]]":
        """Each word of a text with its vector in its place; of the texts read last they are remembered."""
        plain = plain_signs(text)
        if plain not in self._words:
            if len(self._words) >= _MOST_READ:
                self._words.clear()
            self._words[plain] = self._encoder.encode_words(plain)
        return self._words[plain]

    def begin_turn(self) -> None:
        """Let the turn that begins compute as many texts as any turn."""
        self.turn_texts_left = TURN_TEXTS

    def encode_some(self, texts: Sequence[str]) -> dict[str, bytes]:
        """
        Return the vectors of texts, by text, as `pack` gives them; of those that have to be computed only the
        first ones, as many as the running turn may still compute.
        """
        digests = {text: self.digest(text) for text in texts}
        vectors = self.find([*digests.values()])
        computed = [text for text in digests if digests[text] not in vectors][: self.turn_texts_left]
        available = [text for text in digests if digests[text] in vectors]
        return {
            **{text: vectors[digests[text]] for text in available},
            **dict(zip(computed, self.encode_packed(computed), strict=True)),
        }

    def cosines(self, query: str, texts: Sequence[str]) -> dict[str, float]:
        """Return the cosine of each text with the query, by text; of those that `encode_some` gives."""
        (query_vector,) = self.encode([query])
        packed = self.encode_some(texts)
        if not packed:
            return {}
        cosines = unpack([*packed.values()]) @ query_vector
        return dict(zip(packed, map(float, cosines), strict=True))

    def cosines_with_mean(self, texts: Sequence[str]) -> list[float | None]:
        """Return the cosine of each text with the mean of all; None of what `encode_some` leaves out."""
        packed = self.encode_some(texts)
        if not packed:
            return [None for _ in texts]
        vectors = unpack([*packed.values()])
        cosines = dict(zip(packed, map(float, vectors @ vectors.mean(axis=0)), strict=True))
        return [cosines.get(text) for text in texts]

    def encode_packed(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors of texts as `pack` gives them."""
        digests = [self.digest(text) for text in texts]
        vectors = self.find(digests)
        new = {key: plain_signs(text) for key, text in zip(digests, texts, strict=True) if key not in vectors}
        if new:
            vectors.update(zip(new, pack(self._encoder.encode([*new.values()])), strict=True))
            self._remember(vectors)
            self._computed.update(new)
            if self.turn_texts_left is not None:
                self.turn_texts_left = max(0, self.turn_texts_left - len(new))
        return [vectors[digest] for digest in digests]

    def save(self, texts: Sequence[str]) -> None:
        """Save the vectors of texts of the store, those that were computed; questions are not handed over."""
        digests = {self.digest(text) for text in texts} & self._computed
        vectors = {digest: self._packed[digest] for digest in digests if digest in self._packed}
        if vectors and self.store.save(vectors, ()):
            self._computed -= digests

    def digest(self, text: str) -> bytes:
        """By what a text's vector is kept: the text, in plain signs, and the model."""
        data = f"{self.info.digest}\0{plain_signs(text)}".encode("utf-8", "replace")
        return hashlib.sha256(data).digest()[:_DIGEST_BYTES]

    def find(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """The packed vectors that are known already, by digest."""
        remembered = {digest: self._packed[digest] for digest in digests if digest in self._packed}
        stored = self.store.load(digest for digest in digests if digest not in remembered)
        self._remember(stored)
        return remembered | stored

    def _remember(self, vectors: Mapping[bytes, bytes]) -> None:
        if len(self._packed) > _MOST_IN_MEMORY:
            self._packed.clear()
        self._packed.update(vectors)


def pack(vectors: "Vectors") -> list[bytes]:
    """Vectors, shape (n, width), as one signed byte a number, the largest 127: direction alone, no length."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    whole = np.rint(vectors / np.where(largest > 0, largest, 1) * _LARGEST)
    return [row.tobytes() for row in whole.astype(np.int8)]


def unpack(packed: Sequence[bytes]) -> "Vectors":
    """The reverse of pack: vectors of length 1, shape (n, width); (0, 0) of none."""
    if not packed:
        return np.empty((0, 0), np.float32)
    whole = np.frombuffer(b"".join(packed), np.int8).reshape(len(packed), -1).astype(np.float32)
    lengths = np.linalg.norm(whole, axis=1, keepdims=True)
    return (whole / np.where(lengths > 0, lengths, 1)).astype(np.float32)
