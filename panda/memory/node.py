"""One loaded piece of memory, its quotable lines and the texts by which they are found. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Literal

from msgspec.structs import replace

from panda.documents.markdown import TextUnit, is_only_wikilinks, spell_out_wikilinks, split_units
from panda.documents.memory_file import is_statement, render_value
from panda.documents.safe_text import one_line, strip_citations
from panda.language.dates import day_of, find_days
from panda.language.numbers import states_price
from panda.language.words import NOT_COUNTED, split_terms, split_words
from panda.memory.confidence import MISSING, TURN_STARTS, claim_type, confidence_at, field_type
from panda.messages.wording import plain_mood
from panda.store.node_id import NodeKind, key_of, kind_of
from panda.store.records import Line, Research
from panda.store.visit_records import TurnRecord, Visit

SourceType = Literal["turn_summary", "preference", "fact", "research_cache", "visit_record", "user_document"]
_UNNAMED_FIELDS = frozenset({"specs", "specifications", "details", "fields"})
_ROW_FIELDS = frozenset({"products", "offers", "tables"})
_EXCLAMATION = re.compile(r"(?:\w+: )?(?:[^\W\d_]+[,'’ ]*){1,3}!+\Z")
"""At most three words called out, perhaps behind the name of who says them."""
_SHORT_WORDS = 4
_SHORT_LINE_WORDS = 6
_CARRYING = ("sentence", "line", "item")
_PREFIX = re.compile(r"\A(?:preference|fact|memory):\s*")
_KEY = re.compile(r"\A[\w.-]+(?=: )")
_JOINTS = re.compile(r"[\s_-]+")
_NOTE = "knowledge:"
_LONG_NODE_CHARS = 50_000
"""Of a longer node, as a document that was handed over may be, only what is near to a text supports it …"""
_NEAR_CHARS = 20_000
"""… up to so much."""


@dataclass(frozen=True)
class Node:
    id: str  # as "turn:811" or "memory:budget"
    source_type: SourceType  # kind of source, in S0's names
    title: str  # short name for readers
    provenance: str  # file it comes from, relative to the user's directory, with / between parts
    at: datetime | None  # when it was said or seen; None if unknown
    items: tuple[Line, ...]  # its quotable lines, expired ones included
    aliases: tuple[str, ...] = ()  # other names of a note
    links: tuple[str, ...] = ()
    """Ids of nodes it leads to: a turn's research, the visits of research, the notes that a note links to."""
    expires_at: datetime | None = None  # when its maker wanted it refreshed; None if never said
    warnings: tuple[str, ...] = ()  # what was assumed while loading, as a missing confidence
    changed_at: datetime | None = None  # of a note, when its file was last written
    url: str | None = None  # of a visit, its page
    source_turn: int | None = None  # turn in which a preference or fact was said
    quality: float | None = None  # how good its maker found research or a visit, 0 to 1

    def __post_init__(self) -> None:
        placed = (
            replace(line, node=self.id, place=n, above=self._above(line))
            for n, line in enumerate(self.items, 1)
        )
        object.__setattr__(self, "items", tuple(placed))

    def _above(self, line: Line) -> str:
        parts = [line.heading]
        if self.id.startswith(_NOTE):
            folder = PurePosixPath(self.id.removeprefix(_NOTE)).parent.name
            parts = [_JOINTS.sub(" ", part) for part in (folder, self.title, *self.aliases)] + parts
        elif self.source_type in ("visit_record", "research_cache"):
            parts = [self.title, *parts]
        seen = dict.fromkeys(piece for part in parts for piece in one_line(part).rstrip(".:").split(". "))
        pieces = (piece.strip() for piece in seen)
        return ". ".join(piece for piece in pieces if piece and not line.text.startswith(piece))

    @property
    def origins(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line.origin for line in self.items if line.origin not in (None, self.id)))

    @property
    def confidence(self) -> float:
        """Mean confidence of the lines; 0 if there are none."""
        return sum(line.confidence for line in self.items) / len(self.items) if self.items else 0.0

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.items)

    def text_near(self, text: str) -> str:
        """
        Return the text of the node; of a long node the lines that share most words with a text, in their
        order.
        """
        return near_text([line.text for line in self.items], text)


def is_statement_id(node_id: str) -> bool:
    """
    Return whether a node is a sentence that the user told, and no value of a key.

    >>> is_statement_id("fact:said_t8_1"), is_statement_id("fact:name")
    (True, False)
    """
    return kind_of(node_id) is NodeKind.FACT and is_statement(key_of(node_id))


def near_text(lines: Sequence[str], text: str) -> str:
    """Lines as one text; of many those that share most words with *text*, in their order."""
    if sum(map(len, lines)) <= _LONG_NODE_CHARS:
        return "\n".join(lines)
    wanted = set(split_terms(text))
    shared = [len(wanted.intersection(split_terms(line))) for line in lines]
    near: list[int] = []
    left_chars = _NEAR_CHARS
    for at in sorted(range(len(lines)), key=lambda at: (-shared[at], at)):
        left_chars -= len(lines[at])
        if left_chars < 0 or not shared[at]:
            break
        near.append(at)
    return "\n".join(lines[at] for at in sorted(near))


def trace(cited: Line, node: Node | None) -> Literal["same", "moved", "changed", "gone"]:
    """Return what became of a line in its node as it is now; a node of None is gone."""
    texts = [line.text for line in node.items] if node else []
    if texts[cited.place - 1 : cited.place] == [cited.text]:
        return "same"
    if cited.text in texts:
        return "moved"
    return "changed" if len(texts) >= cited.place else "gone"


def wanted_list(line: Line, lines: Sequence[Line], title: str, query: str, *, all_: bool) -> list[Line]:
    """
    The list of *lines*, all of its node, that a query wants with one that is quoted: where the line
    introduces it, or *all_* is wanted, or the query names what introduces it, as "ingredients", or nothing
    but where it stands; not where it names the line's number.
    """
    name = line.heads or line.list_id
    if name is None:
        return []
    head = [other for other in lines if other.heads == name]
    listed = [other for other in lines if other.list_id == name]
    asked = set(split_terms(query))
    numbered = listed if line.heads else [line]
    if not all_ and any(str(other.number) in asked for other in numbered):
        return []
    words = " ".join(word for word in split_words(query) if word.lower() not in NOT_COUNTED)
    is_named = any(set(split_terms(other.text)) <= asked for other in head)
    above = set(split_terms(f"{title} {line.heading}"))
    is_all = bool(words) and above.issuperset(split_terms(words))
    return head + listed if line.heads or all_ or is_named or is_all else []


def turn_lines(turn: TurnRecord, now: datetime) -> tuple[Line, ...]:
    """
    Return what was said in a turn, without repeats: the sentences that the user told, and of an answer what
    no other node says; no citation marks, sources or short exclamations ("Thanks!").
    """
    sure = confidence_at(TURN_STARTS.get(turn.status, MISSING), "general_fact", turn.at, now)

    def line(text: str, origin: str | None) -> Line:
        return Line(text, "general_fact", sure, turn.at, origin=origin)

    lines_by_text = {
        text: line(text, node_id) for text, node_id in ((one_line(q), n) for q, n in turn.quotes)
    }
    own = turn.own_answer if turn.answered else ""
    if turn.summary.strip() and turn.answered:
        text = one_line(turn.summary)
        lines_by_text.setdefault(
            text, line(text, None if own == turn.response else NodeKind.TURN.id(turn.number))
        )
    for statement in turn.statements:
        for text in [unit.text for unit in split_units(statement)] or [one_line(statement)]:
            if text and not any(text in one_line(quote) for quote, _ in turn.quotes):
                origin = NodeKind.TURN.id(turn.number) if plain_mood(text) == "orders" else None
                lines_by_text.setdefault(text, line(text, origin))
    answer_units = split_units(strip_citations(own))
    introduced = _introductions(answer_units)
    for unit in answer_units:
        if unit.text not in lines_by_text or unit.list_line is not None or unit.heads_line is not None:
            lines_by_text[unit.text] = _unit_line(unit, unit.text, sure, turn.at, introduced)
    return tuple(line for line in lines_by_text.values() if not _EXCLAMATION.match(line.text))


def _unit_line(
    unit: TextUnit,
    text: str,
    confidence: float,
    at: datetime | None,
    introduced: Mapping[int, str],
    *,
    carried: str = "",
) -> Line:
    above = introduced.get(unit.list_line or 0, "")
    heading = ". ".join(filter(None, [*map(one_line, unit.headings), above]))
    return Line(
        text=carried + text,
        content_type="general_fact",
        confidence=confidence,
        at=at,
        list_id=str(unit.list_line) if unit.list_line else None,
        heads=str(unit.heads_line) if unit.heads_line else None,
        heading=heading if unit.number is None else f"{heading} {unit.number}".strip(),
        form=unit.form,
        number=unit.number,
        line=unit.line or None,
        block=unit.block_line,
        depth=unit.depth,
        carried=carried,
    )


def _introductions(text_units: Sequence[TextUnit]) -> dict[int, str]:
    heads = [unit for unit in text_units if unit.heads_line is not None]
    return {head.heads_line or 0: head.text.rstrip(":").strip("*_: ") for head in heads}


def research_lines(research: Research, now: datetime) -> Iterator[Line]:
    """The summary and each claim with its source; claims that contradict each other are one line."""
    statements: list[tuple[str, str, float | None]] = []
    if research.summary.strip():
        statements.append((research.summary, "default", research.quality_score))
    contested = {one_line(claim.claim) for conflict in research.conflicts for claim in conflict.claims}
    for conflict in research.conflicts:
        statements.append((conflict.text, "price", min(claim.confidence or 0.0 for claim in conflict.claims)))
    for claim in research.claims:
        text = one_line(claim.claim)
        source = one_line(claim.source)
        if text and text not in contested:
            ages = claim.content_type or claim_type(text)
            statements.append((f"{text} ({source})" if source else text, ages, claim.confidence))
    at = research.created_at
    for text, ages, start in statements:
        sure = confidence_at(MISSING if start is None else start, ages, at, now)
        yield Line(one_line(text), ages, sure, at)


def visit_lines(visit: Visit, now: datetime) -> Iterator[Line]:
    """
    One line a field, the title in front: "Lenovo LOQ 15 Gaming Laptop: gpu NVIDIA RTX 4050"; one a row of a
    table; one a line of the page's zones, but for menus and what is likely about something else.
    """
    quality = visit.manifest.extraction_quality
    at = visit.manifest.visited_at
    title = one_line(visit.title)
    plain = {key: value for key, value in visit.details.items() if key not in _ROW_FIELDS}
    fields = [(path, value) for path, value in _flatten(plain, ()) if path != ("title",)]
    if not any(path[-1].lower() == "url" for path, _ in fields):
        fields.append((("url",), visit.manifest.url))
    field_texts: list[tuple[str, str, float]] = []
    for path, value in fields:
        ages: str = "product_spec" if path[0].lower() in _UNNAMED_FIELDS else field_type(path[-1])
        body = one_line(" ".join([*(part for part in path if part.lower() not in _UNNAMED_FIELDS), value]))
        field_texts.append((f"{title}: {body}" if title else body, ages, 1.0))
    field_values = " ".join(value for _, value in fields)
    start = MISSING if quality is None else quality
    for text, ages, sure in (
        *field_texts,
        *_rows(visit.details, title),
        *_zone_lines(visit, title, field_values),
    ):
        yield Line(text, ages, confidence_at(min(start, sure), ages, at, now), at)


def _rows(fields: Mapping[str, Any], title: str) -> Iterator[tuple[str, str, float]]:
    products, offers, tables = (
        fields[key] if isinstance(fields.get(key), list) else () for key in ("products", "offers", "tables")
    )
    for row in (*products, *offers):
        cells = [f"{k.replace('_', ' ')} {render_value(v)}" for k, v in row.items() if k != "name" and v]
        name = one_line(str(row.get("name") or title))
        yield f"{name}: {', '.join(cells)}", "price" if "price" in row else "availability", 1.0
    for table in tables:
        for row in table["rows"]:
            named = zip(table["columns"] or [""] * len(row), row, strict=False)
            cells = [f"{column} {cell}".strip() for column, cell in named if cell]
            text = one_line(f"{table.get('caption') or title}: {', '.join(cells)}")
            yield text, claim_type(text) if states_price(text) else "general_fact", 1.0


def _zone_lines(visit: Visit, title: str, field_values: str) -> Iterator[tuple[str, str, float]]:
    for zone in visit.extracted.zones or ():
        for text in map(one_line, zone.items if zone.is_quotable else ()):
            if text and text not in field_values and text.lower() != title.lower():
                is_short = len(text.split()) < _SHORT_LINE_WORDS or visit.manifest.page_type == "product"
                ages = claim_type(text) if zone.type == "pricing" else "general_fact"
                yield (f"{title}: {text}" if title and is_short else text), ages, zone.confidence


def _flatten(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(inner, (*path, str(key)))
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        for inner in value:
            yield from _flatten(inner, path or ("item",))
    elif value is not None and path and (rendered := render_value(value)):
        yield path, rendered


def note_lines(
    text_units: Sequence[TextUnit], title: str, start: float, at: datetime | None, now: datetime
) -> Iterator[Line]:
    """
    One line a sentence, line or list item, links between notes as a reader sees them; no paragraph of nothing
    but links. What it stands under, or else the title, stands in front of a line that is too short alone, or
    lacks the date of that. *start* is the note's confidence when it was written.
    """
    introduced = _introductions(text_units)
    for unit in text_units:
        if is_only_wikilinks(unit.text) and unit.form != "item":
            continue
        text = spell_out_wikilinks(unit.text)
        above = introduced.get(unit.list_line or 0, "")
        places = [place for place in (title, *map(one_line, unit.headings), above) if place]
        dated = [place for place in places if find_days(place)]
        when = next((day for place in reversed(dated) if (day := day_of(place))), at)
        is_short = len(text.split()) < _SHORT_WORDS and ": " not in text and unit.form in _CARRYING
        carried = ""
        if dated and not find_days(text) and unit.form != "code":
            carried = dated[-1]
        elif is_short and places and not unit.heads_line:
            carried = places[-1]
        carried = f"{carried}: " if carried and not text.startswith(carried) else ""
        sure = confidence_at(start, "general_fact", when, now)
        yield _unit_line(unit, text, sure, when, introduced, carried=carried)


def line_text(above: str, text: str) -> str:
    """
    A line with what it stands below (see Line.above), as an encoder gets it: no ids, keys as words, nothing
    twice.

    >>> line_text("Bees. Spring", "They fly in May."), line_text("Bees. Hive", "Hive: two frames")
    ('Bees. Spring. They fly in May.', 'Bees. Hive: two frames')
    >>> line_text("", "preference: budget_laptop: $750")
    'budget laptop: $750'
    """
    line = _KEY.sub(lambda key: key[0].replace("_", " "), _PREFIX.sub("", one_line(text)))
    parts = (part for part in above.split(". ") if part and not line.startswith(part))
    return ". ".join([*parts, line])


def node_lines(node: Node) -> list[tuple[Line, str]]:
    own = (line for line in node.items if line.origin is None)
    return [(line, line_text(line.above, line.text)) for line in own]
