"""Rung 4: a writing model words passages anew in the room that their extract takes, and each is checked."""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from panda.compression.documents import MARK, Rewrite
from panda.compression.pieces import Piece, TextOutline
from panda.compression.verification import verify
from panda.errors import HaltError, TryAgainError

_PASSAGE_TOKENS = 380
_LEAST_TOKENS = 12
_CITES = re.compile(r"\[\d+\]")
"""How the marks behind an item begin, which are no prose."""


@dataclass(frozen=True)
class Passage:
    """Neighbouring sentences that are worded anew together."""

    first: int
    """Index of their first piece."""
    last: int
    """Index of their last."""


@dataclass(frozen=True)
class Rewritten:
    """What a model made of the passages of a document."""

    texts: Mapping[int, str]
    """New wording by the first piece of each accepted passage."""
    skipped: frozenset[int]
    """Pieces that the new wordings stand for, besides the first ones."""
    notes: tuple[str, ...]
    """Why others were refused."""
    marks: frozenset[int] = frozenset()
    """Marks of sources behind new wordings, which stay."""


def rewrite_passages(
    outline: TextOutline,
    kept: Set[int],
    protected: Set[int],
    *,
    rewrite: Rewrite,
    count: Callable[[str], int],
) -> Rewritten:
    """
    Word anew what the extract has left holes in.

    Args:
        kept: Pieces of the extract, heads included.
        protected: Pieces that no model touches.

    Returns:
        For each accepted passage a text no longer than what the extract keeps of it, without a number, date,
        URL or quoted name that the passage lacks. Everything else stays with the extract.
    """
    texts: dict[int, str] = {}
    skipped: set[int] = set()
    marks: set[int] = set()
    notes: list[str] = []
    for passage in _passages(outline.pieces, protected, count):
        members = range(passage.first, passage.last + 1)
        stays = [i for i in members if i in kept]
        if not stays or len(stays) == len(members):
            continue
        source = outline.source[outline.pieces[passage.first].start : outline.pieces[passage.last].end]
        room = count(_extract(outline, stays))
        mark = _mark_behind(outline.pieces, passage)
        if mark is not None and mark not in kept:
            room -= count(outline.pieces[mark].text)
        if room < _LEAST_TOKENS:
            continue
        problem, text = _ask(source, room, rewrite, count)
        if problem:
            notes.append(problem)
        else:
            texts[passage.first] = text
            skipped.update(range(passage.first + 1, passage.last + 1))
            marks |= {mark} if mark is not None else set()
    return Rewritten(texts, frozenset(skipped), tuple(notes), frozenset(marks))


def apply_rewrite(outline: TextOutline, kept: Set[int], made: Rewritten) -> str:
    """The extract with the new wordings in place of their passages."""
    pieces: list[Piece] = []
    source = ""
    place: dict[int, int] = {}
    end = 0
    for i, piece in enumerate(outline.pieces):
        if i in made.skipped:
            end = piece.end
            continue
        source += outline.source[end : piece.start]
        text = made.texts.get(i, outline.source[piece.start : piece.end])
        place[i] = len(pieces)
        pieces.append(replace(piece, start=len(source), end=len(source) + len(text), text=text))
        source += text
        end = piece.end
    source += outline.source[end:]
    pieces = [replace(one, heads=tuple(place[h] for h in one.heads if h in place)) for one in pieces]
    return TextOutline(source, tuple(pieces)).render(
        {place[i] for i in (*kept, *made.texts, *made.marks) if i in place}
    )


def _ask(source: str, room: int, rewrite: Rewrite, count: Callable[[str], int]) -> tuple[str | None, str]:
    try:
        text = " ".join(rewrite(source, room).split())
    except (HaltError, TryAgainError) as exc:
        return exc.message, ""
    if not any(char.isalnum() for char in text):
        return "the rewrite is empty", ""
    if text.startswith(("#", "|", "```", "~~~", ">", "---")) or MARK in text:
        return "the rewrite begins a structure of its own", ""
    problems = verify(text, source, protected=(), budget_tokens=room, count=count, is_json=False)
    return (f"the rewrite was refused: {problems[0]}", "") if problems else (None, text)


def _mark_behind(pieces: Sequence[Piece], passage: Passage) -> int | None:
    """The piece that holds the sources of a passage, if it has one."""
    at = passage.last + 1
    is_mark = at < len(pieces) and pieces[at].line == pieces[passage.last].line
    return at if is_mark and _CITES.match(pieces[at].text) else None


def _extract(outline: TextOutline, stays: Sequence[int]) -> str:
    return f" {MARK} ".join(outline.source[outline.pieces[i].start : outline.pieces[i].end] for i in stays)


def _passages(pieces: Sequence[Piece], protected: Set[int], count: Callable[[str], int]) -> list[Passage]:
    """Runs of sentences of one paragraph that nothing protects, cut to what the recipe takes."""
    found: list[Passage] = []
    first, tokens = -1, 0
    for i, piece in enumerate(pieces):
        free = piece.kind == "sentence" and i not in protected and not _CITES.match(piece.text)
        size = count(piece.text) if free else 0
        if first >= 0 and (not free or piece.line != pieces[first].line or tokens + size > _PASSAGE_TOKENS):
            found.append(Passage(first, i - 1))
            first, tokens = -1, 0
        if free and size <= _PASSAGE_TOKENS:
            first = i if first < 0 else first
            tokens += size
    if first >= 0:
        found.append(Passage(first, len(pieces) - 1))
    return found
