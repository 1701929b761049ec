"""Rung 4: a writing model words passages anew in the room that their extract takes, and each is checked."""

import re
from collections.abc import Iterator, Sequence, Set
from typing import Protocol

from panda.compression.fit import Rewrite
from panda.compression.pieces import MARK, Piece, Wordings
from panda.documents.evidence import check_evidence, find_claims
from panda.errors import HaltError, TryAgainError
from panda.models.cl100k import count_tokens

_PASSAGE_TOKENS = 380
_LEAST_TOKENS = 12
_CITES = re.compile(r"\[\d+\]")
"""How the marks behind an item begin, which are no prose."""
_QUOTED = re.compile(r"[\"“«„]([^\"”»“\n]{2,80})[\"”»“]")
_STRUCTURE = ("#", "|", "```", "~~~", ">", "---")


class _Outline(Protocol):
    @property
    def pieces(self) -> Sequence[Piece]: ...

    def text(self, first: int, last: int) -> str: ...


def word_passages(
    outline: _Outline, kept: Set[int], protected: Set[int], rewrite: Rewrite
) -> tuple[Wordings, set[int], str | None]:
    """
    Other wordings of the passages that an extract has left holes in, what is kept with them, and why others
    were refused. A wording is no longer than what the extract keeps of its passage. *kept* are the pieces of
    the extract, heads included.
    """
    pieces = outline.pieces
    wordings: dict[int, tuple[int, str]] = {}
    stay = set(kept)
    notes: dict[str, None] = {}
    for first, last in _passages(pieces, protected):
        stays = [i for i in range(first, last + 1) if i in kept]
        room = count_tokens(f" {MARK} ".join(outline.text(i, i) for i in stays))
        behind = pieces[min(last + 1, len(pieces) - 1)]
        cites = [last + 1] if behind.line == pieces[last].line and _CITES.match(behind.text) else []
        room -= sum(count_tokens(pieces[i].text) for i in cites if i not in kept)
        if not stays or len(stays) > last - first or room < _LEAST_TOKENS:
            continue
        passage = outline.text(first, last)
        try:
            text = " ".join(rewrite(passage, room).split())
        except (HaltError, TryAgainError) as exc:
            notes[exc.message] = None
            continue
        if fault := find_fault(text, passage, room_tokens=room):
            notes[fault] = None
        else:
            wordings[first] = (last, text)
            stay.update([first, *cites])
    return wordings, stay, "; ".join(notes) or None


def find_fault(wording: str, passage: str, *, room_tokens: int) -> str | None:
    """
    Why a wording must not stand for a passage: it claims what the passage does not hold, or a price, URL,
    date or name in quotes of the passage is lost.

    >>> find_fault("The fan is $5.", "The fan costs $5, they say, or $6.", room_tokens=9)
    'the rewrite was refused: price $6 is lost'
    """
    if not any(char.isalnum() for char in wording):
        return "the rewrite is empty"
    if wording.startswith(_STRUCTURE) or MARK in wording:
        return "the rewrite begins a structure of its own"
    problems = []
    if (size := count_tokens(wording)) > room_tokens:
        problems.append(f"{size} tokens, {size - room_tokens} more than its room of {room_tokens}")
    claims = check_evidence(wording, [passage])
    problems += [f"{claim.kind} {claim.text} is not in the source" for claim in claims]
    said, plain = " ".join(wording.split()), " ".join(passage.split())
    problems += [
        f"the quoted {name!r} is not in the source" for name in _QUOTED.findall(said) if name not in plain
    ]
    kept = {(claim.kind, claim.value) for claim in find_claims(wording)}
    problems += [
        f"{claim.kind} {claim.text} is lost"
        for claim in find_claims(passage)
        if claim.kind in ("price", "url", "date") and (claim.kind, claim.value) not in kept
    ]
    problems += [f"the quoted {name!r} is lost" for name in _QUOTED.findall(plain) if name not in said]
    return f"the rewrite was refused: {problems[0]}" if problems else None


def _passages(pieces: Sequence[Piece], protected: Set[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of free sentences of one paragraph, no longer than a call takes."""
    first, tokens = -1, 0
    for i, piece in enumerate(pieces):
        free = piece.kind == "sentence" and i not in protected and not _CITES.match(piece.text)
        size = count_tokens(piece.text) if free else 0
        if first >= 0 and (not free or piece.line != pieces[first].line or tokens + size > _PASSAGE_TOKENS):
            yield first, i - 1
            first, tokens = -1, 0
        if free and size <= _PASSAGE_TOKENS:
            first = i if first < 0 else first
            tokens += size
    if first >= 0:
        yield first, len(pieces) - 1
