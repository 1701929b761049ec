"""Rung 4: a writing model words passages anew in the room that their extract takes, and each is checked."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from panda.compression.fit import Rewrite
from panda.compression.pieces import MARK, Piece, Wordings
from panda.documents.evidence import check_evidence, find_claims
from panda.errors import HaltError, TryAgainError
from panda.models.cl100k import count_tokens

_CALL_TOKENS = 380
_REPLY_TOKENS = 170
"""What the passages of one call, and their wordings, have together (S3 §20)."""
_PARAGRAPH_END = re.compile(r"\n\s*\n")
_LEAST_TOKENS = 12
_CITES = re.compile(r"\[\d+\]")
"""How the marks behind an item begin, which are no prose."""
_QUOTED = re.compile(r"[\"“«„]([^\"”»“\n]{2,80})[\"”»“]")
_STRUCTURE = ("#", "|", "```", "~~~", ">", "---")


class _Outline(Protocol):
    @property
    def pieces(self) -> Sequence[Piece]: ...

    def text(self, first: int, last: int) -> str: ...


@dataclass(frozen=True)
class _RewordedPassage:
    """Sentences of one paragraph of which an extract keeps some."""

    first: int
    last: int
    text: str
    room_tokens: int  # what a wording may have
    cites: tuple[int, ...]  # the marks behind it, which stay


def word_passages(
    outline: _Outline, selected: Set[int], protected: Set[int], rewrite: Rewrite
) -> tuple[Wordings, set[int], str | None]:
    """
    Return other wordings of the passages that an extract has left holes in, what is kept with them, and why
    others were refused. As many passages go into one call as it takes; a wording is no longer than what the
    extract keeps of its passage. *selected* are the pieces of the extract, heads included.
    """
    wordings: dict[int, tuple[int, str]] = {}
    stay = set(selected)
    notes: dict[str, None] = {}
    for group in _groups(_passages(outline, selected, protected)):
        try:
            reply = rewrite(
                "\n\n".join(passage.text for passage in group), sum(passage.room_tokens for passage in group)
            )
        except (HaltError, TryAgainError) as exc:
            notes[exc.message] = None
            continue
        texts = [" ".join(text.split()) for text in _PARAGRAPH_END.split(reply.strip())]
        if len(group) == 1:
            texts = [" ".join(reply.split())]
        if len(texts) != len(group):
            notes[f"the rewrite was refused: {len(texts)} paragraphs for {len(group)} passages"] = None
            continue
        for passage, text in zip(group, texts, strict=True):
            if fault := find_fault(text, passage.text, room_tokens=passage.room_tokens):
                notes[fault] = None
            else:
                wordings[passage.first] = (passage.last, text)
                stay.update([passage.first, *passage.cites])
    return wordings, stay, "; ".join(notes) or None


def _groups(reworded: Iterable[_RewordedPassage]) -> Iterator[list[_RewordedPassage]]:
    """Yield the passages of each call."""
    group: list[_RewordedPassage] = []
    tokens = 0
    room_tokens = 0
    for passage in reworded:
        size = count_tokens(passage.text)
        is_full = tokens + size > _CALL_TOKENS or room_tokens + passage.room_tokens > _REPLY_TOKENS
        if group and is_full:
            yield group
            group = []
            tokens = 0
            room_tokens = 0
        group.append(passage)
        tokens += size
        room_tokens += passage.room_tokens
    if group:
        yield group


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
    flat_wording = " ".join(wording.split())
    flat_passage = " ".join(passage.split())
    problems += [
        f"the quoted {name!r} is not in the source"
        for name in _QUOTED.findall(flat_wording)
        if name not in flat_passage
    ]
    selected = {(claim.kind, claim.value) for claim in find_claims(wording)}
    problems += [
        f"{claim.kind} {claim.text} is lost"
        for claim in find_claims(passage)
        if claim.kind in ("price", "url", "date") and (claim.kind, claim.value) not in selected
    ]
    problems += [
        f"the quoted {name!r} is lost" for name in _QUOTED.findall(flat_passage) if name not in flat_wording
    ]
    return f"the rewrite was refused: {problems[0]}" if problems else None


def _passages(outline: _Outline, selected: Set[int], protected: Set[int]) -> Iterator[_RewordedPassage]:
    """Yield the passages of which the extract keeps enough for another wording, but not all."""
    pieces = outline.pieces
    for first, last in _stretches(pieces, protected):
        stays = [i for i in range(first, last + 1) if i in selected]
        room = count_tokens(f" {MARK} ".join(outline.text(i, i) for i in stays))
        behind = pieces[min(last + 1, len(pieces) - 1)]
        is_cited = behind.line == pieces[last].line and _CITES.match(behind.text) is not None
        cites = (last + 1,) if is_cited else ()
        room -= sum(count_tokens(pieces[i].text) for i in cites if i not in selected)
        if stays and len(stays) <= last - first and room >= _LEAST_TOKENS:
            yield _RewordedPassage(first, last, outline.text(first, last), room, cites)


def _stretches(pieces: Sequence[Piece], protected: Set[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of free sentences of one paragraph, no longer than a call takes."""
    first = -1
    tokens = 0
    for i, piece in enumerate(pieces):
        is_free = piece.kind == "sentence" and i not in protected and not _CITES.match(piece.text)
        size = count_tokens(piece.text) if is_free else 0
        is_apart = not is_free or piece.line != pieces[first].line or tokens + size > _CALL_TOKENS
        if first >= 0 and is_apart:
            yield first, i - 1
            first = -1
            tokens = 0
        if is_free and size <= _CALL_TOKENS:
            first = i if first < 0 else first
            tokens += size
    if first >= 0:
        yield first, len(pieces) - 1
