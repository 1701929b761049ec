"""Rung 4: a writing model words passages anew in the room that their extract takes, and each is checked."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from panda.compression.documents import MARK, Rewrite
from panda.compression.pieces import Piece, TextOutline
from panda.compression.verification import verify
from panda.errors import HaltError, TryAgainError
from panda.models.cl100k import count_tokens

_PASSAGE_TOKENS = 380
_LEAST_TOKENS = 12
_CITES = re.compile(r"\[\d+\]")
"""How the marks behind an item begin, which are no prose."""


def rewrite_passages(
    outline: TextOutline,
    kept: Set[int],
    protected: Set[int],
    *,
    rewrite: Rewrite,
) -> tuple[str | None, list[str]]:
    """
    The extract with its holes worded anew, None if no wording is accepted; and why others were refused. A
    wording is no longer than what the extract keeps of its passage, and has no number, date, URL or quoted
    name that the passage lacks. *kept* are the pieces of the extract, heads included.
    """
    texts: dict[int, str] = {}
    skipped: set[int] = set()
    stay = set(kept)
    notes: list[str] = []
    for members in _passages(outline.pieces, protected):
        first, last = members[0], members[-1]
        stays = [i for i in members if i in kept]
        if not stays or len(stays) == len(members):
            continue
        source = outline.source[outline.pieces[first].start : outline.pieces[last].end]
        parts = [outline.source[outline.pieces[i].start : outline.pieces[i].end] for i in stays]
        room = count_tokens(f" {MARK} ".join(parts))
        mark = _mark_behind(outline.pieces, last)
        if mark is not None and mark not in kept:
            room -= count_tokens(outline.pieces[mark].text)
        if room < _LEAST_TOKENS:
            continue
        problem, text = _ask(source, room, rewrite)
        if problem:
            notes.append(problem)
        else:
            texts[first] = text
            skipped.update(members[1:])
            stay |= {first} if mark is None else {first, mark}
    return (_reworded(outline, stay, texts, skipped) if texts else None), notes


def _reworded(outline: TextOutline, kept: Set[int], texts: Mapping[int, str], skipped: Set[int]) -> str:
    pieces: list[Piece] = []
    source = ""
    place: dict[int, int] = {}
    end = 0
    for i, piece in enumerate(outline.pieces):
        if i in skipped:
            end = piece.end
            continue
        source += outline.source[end : piece.start]
        text = texts.get(i, outline.source[piece.start : piece.end])
        place[i] = len(pieces)
        pieces.append(replace(piece, start=len(source), end=len(source) + len(text), text=text))
        source += text
        end = piece.end
    source += outline.source[end:]
    pieces = [replace(one, heads=tuple(place[h] for h in one.heads if h in place)) for one in pieces]
    return TextOutline(source, tuple(pieces)).render({place[i] for i in kept if i in place})


def _ask(source: str, room: int, rewrite: Rewrite) -> tuple[str | None, str]:
    try:
        text = " ".join(rewrite(source, room).split())
    except (HaltError, TryAgainError) as exc:
        return exc.message, ""
    if not any(char.isalnum() for char in text):
        return "the rewrite is empty", ""
    if text.startswith(("#", "|", "```", "~~~", ">", "---")) or MARK in text:
        return "the rewrite begins a structure of its own", ""
    problems = verify(text, source, protected=(), budget_tokens=room, is_json=False)
    return (f"the rewrite was refused: {problems[0]}", "") if problems else (None, text)


def _mark_behind(pieces: Sequence[Piece], last: int) -> int | None:
    """The piece that holds the sources of the passage that ends there, if it has one."""
    at = last + 1
    is_mark = at < len(pieces) and pieces[at].line == pieces[last].line
    return at if is_mark and _CITES.match(pieces[at].text) else None


def _passages(pieces: Sequence[Piece], protected: Set[int]) -> list[range]:
    """Runs of sentences of one paragraph that nothing protects, cut to what the recipe takes."""
    passages: list[range] = []
    first, tokens = -1, 0
    for i, piece in enumerate(pieces):
        free = piece.kind == "sentence" and i not in protected and not _CITES.match(piece.text)
        size = count_tokens(piece.text) if free else 0
        if first >= 0 and (not free or piece.line != pieces[first].line or tokens + size > _PASSAGE_TOKENS):
            passages.append(range(first, i))
            first, tokens = -1, 0
        if free and size <= _PASSAGE_TOKENS:
            first = i if first < 0 else first
            tokens += size
    if first >= 0:
        passages.append(range(first, len(pieces)))
    return passages
