"""One loaded piece of memory, its quotable lines and the texts by which they are found. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Literal

from panda.documents.markdown import Form, Passage, is_only_wikilinks, spell_out_wikilinks, split_passages
from panda.documents.memory_file import render_value
from panda.documents.text import one_line, strip_citations
from panda.language.dates import day_of, find_days
from panda.language.numbers import states_price
from panda.language.wording import plain_mood
from panda.language.words import NOT_COUNTED, split_terms, split_words
from panda.memory.confidence import MISSING, TURN_STARTS, claim_type, confidence_at, field_type
from panda.store.records import Research
from panda.store.visits import TurnRecord, Visit

_UNNAMED_FIELDS = frozenset({"specs", "specifications", "details", "fields"})
_EXCLAMATION = re.compile(r"(?:\w+: )?(?:[^\W\d_]+[,'’ ]*){1,3}!+\Z")
"""At most three words called out, perhaps behind the name of who says them."""
_SHORT_WORDS = 4
_CARRYING = ("sentence", "line", "item")
_SHORT_LINE_WORDS = 6
_ROW_FIELDS = frozenset({"products", "offers", "tables"})
SourceType = Literal["turn_summary", "preference", "fact", "research_cache", "visit_record"]
_PREFIX = re.compile(r"\A(?:preference|fact|memory):\s*")
_KEY = re.compile(r"\A[\w.-]+(?=: )")
_JOINTS = re.compile(r"[\s_-]+")
_NOTE = "knowledge:"


@dataclass(frozen=True)
class Item:
    """One quotable line of a node."""

    text: str  # one line, quotable as it stands
    content_type: str  # how it ages: a key of confidence.DECAYS
    confidence: float  # as of now, after decay; below .30 it is expired
    at: datetime | None  # when it was said or seen; None if unknown
    list_id: str | None = None  # the list or table of its node that it belongs to; None if it belongs to none
    heads: str | None = None  # the list or table that it introduces; None if it introduces none
    heading: str = ""
    """What it stands under within its node: the headings, and the line that introduces its list."""
    form: Form = "sentence"  # what it is in its document
    number: int | None = None  # its number in a numbered list
    line: int | None = None
    """Line where it begins, of a note's file or else of the text of its node, from 1; None without lines."""
    carried: str = ""  # what its text has in front, "Ingredients: ", and its document has not there
    origin: str | None = None
    """The node that says it, where this line only repeats that: then this line is no evidence."""


def wanted_list(line: Item, lines: Sequence[Item], title: str, query: str, *, all_: bool) -> list[Item]:
    """
    The list that a query wants with a line that is quoted; *lines* are all of its node.

    Args:
        all_: Whether the whole of a list is wanted.

    Returns:
        What introduces the list and its lines in order, where the line introduces it, or belongs to it and
        the query wants the whole: names what introduces it, as "ingredients", or nothing but where it stands;
        but not where it names the line's number. Else [].
    """
    name = line.heads or line.list_id
    if name is None:
        return []
    head = [one for one in lines if one.heads == name]
    listed = [one for one in lines if one.list_id == name]
    asked = set(split_terms(query))
    if not all_ and any(str(one.number) in asked for one in (listed if line.heads else [line])):
        return []
    words = " ".join(word for word in split_words(query) if word.lower() not in NOT_COUNTED)
    is_named = any(set(split_terms(one.text)) <= asked for one in head)
    above = set(split_terms(f"{title} {line.heading}"))
    is_all = bool(words) and above.issuperset(split_terms(words))
    return head + listed if line.heads or all_ or is_named or is_all else []


def _faded(text: str, content_type: str, start: float, at: datetime | None, now: datetime) -> Item:
    """A line with the confidence that it has now, having begun with *start*."""
    return Item(text, content_type, confidence_at(start, content_type, at, now), at)


def turn_items(turn: TurnRecord, now: datetime) -> tuple[Item, ...]:
    """
    What was said in a turn: the sentences that the user told, and of the answer what no other node says.

    Returns:
        Items without repeats; citation marks, the list of sources and short exclamations ("Thanks!") are left
        out. Of a turn that found no answer only what the user told. What repeats another node, or sums up
        what is recorded, names its origin.
    """
    confidence = confidence_at(TURN_STARTS.get(turn.status, MISSING), "general_fact", turn.at, now)
    found = {
        one_line(text): Item(one_line(text), "general_fact", confidence, turn.at, origin=node_id)
        for text, node_id in turn.quotes
    }
    own = turn.own_answer if turn.answered else ""
    if turn.summary.strip() and turn.answered:
        origin = None if own == turn.response else f"turn:{turn.number}"
        text = one_line(turn.summary)
        found.setdefault(text, Item(text, "general_fact", confidence, turn.at, origin=origin))
    for statement in turn.statements:
        for text in [one.text for one in split_passages(statement)] or [one_line(statement)]:
            if text and not any(text in one_line(kept) for kept, _ in turn.quotes):
                ordered = f"turn:{turn.number}" if plain_mood(text) == "orders" else None
                found.setdefault(text, Item(text, "general_fact", confidence, turn.at, origin=ordered))
    said = split_passages(strip_citations(own))
    introduced = _introductions(said)
    for passage in said:
        if passage.text not in found or passage.list_line is not None or passage.heads_line is not None:
            above = introduced.get(passage.list_line or 0, "")
            found[passage.text] = _passage_item(passage, passage.text, confidence, turn.at, above)
    return tuple(item for item in found.values() if not _EXCLAMATION.match(item.text))


def _passage_item(
    passage: Passage,
    text: str,
    confidence: float,
    at: datetime | None,
    introduced: str = "",
    carried: str = "",
) -> Item:
    list_id, heads = (str(line) if line else None for line in (passage.list_line, passage.heads_line))
    heading = ". ".join(filter(None, [*map(one_line, passage.headings), introduced]))
    if passage.number is not None:
        heading = f"{heading} {passage.number}".strip()
    return Item(
        *(carried + text, "general_fact", confidence, at, list_id, heads, heading),
        *(passage.form, passage.number, passage.line, carried),
    )


def _introductions(passages: Sequence[Passage]) -> dict[int, str]:
    """The line that introduces each list or table, by the line where that begins."""
    return {
        one.heads_line: one.text.rstrip(":").strip("*_: ") for one in passages if one.heads_line is not None
    }


def research_items(research: Research, now: datetime) -> tuple[Item, ...]:
    """
    The summary and each claim with its source, "Lenovo LOQ 15 @ $697 (bestbuy.com)"; claims that contradict
    each other are one line that names them all.
    """
    at = research.created_at
    items: list[Item] = []
    if research.summary and research.summary.strip():
        start = MISSING if research.quality_score is None else research.quality_score
        items.append(_faded(one_line(research.summary), "default", start, at, now))
    contested = {one_line(claim.claim) for conflict in research.conflicts for claim in conflict.claims}
    for conflict in research.conflicts:
        sure = min(claim.confidence or 0.0 for claim in conflict.claims)
        items.append(_faded(one_line(conflict.text), "price", sure, at, now))
    for claim in research.claims:
        text = one_line(claim.claim)
        if not text or text in contested:
            continue
        start = MISSING if claim.confidence is None else claim.confidence
        source = one_line(claim.source or "")
        rendered = f"{text} ({source})" if source else text
        items.append(_faded(rendered, claim.content_type or claim_type(text), start, at, now))
    return tuple(items)


def visit_items(visit: Visit, now: datetime) -> tuple[Item, ...]:
    """
    One item a field, the title in front: "Lenovo LOQ 15 Gaming Laptop: gpu NVIDIA RTX 4050"; one a row of a
    table; one a line of the page's zones, but for menus and what is likely about something else.
    """
    quality, url, at = (visit.manifest.extraction_quality, visit.manifest.url, visit.manifest.visited_at)
    start = MISSING if quality is None else quality
    details, title = visit.details, one_line(visit.title)
    plain = {key: value for key, value in details.items() if key not in _ROW_FIELDS}
    fields = [(path, value) for path, value in _flatten(plain, ()) if path != ("title",)]
    if not any(path[-1].lower() == "url" for path, _ in fields):
        fields.append((("url",), url))
    items = []
    for path, value in fields:
        content_type = "product_spec" if path[0].lower() in _UNNAMED_FIELDS else field_type(path[-1])
        body = one_line(" ".join([*(part for part in path if part.lower() not in _UNNAMED_FIELDS), value]))
        items.append(_faded(f"{title}: {body}" if title else body, content_type, start, at, now))
    said = " ".join(value for _, value in fields)
    rest = (*_rows(details, title), *_zone_lines(visit, title, said))
    return (*items, *(_faded(text, kind, min(start, sure), at, now) for text, kind, sure in rest))


def _rows(fields: Mapping[str, object], title: str) -> Iterator[tuple[str, str, float]]:
    """Each row of a page's lists and tables as one line, with how it ages."""
    for key in ("products", "offers"):
        rows = fields.get(key)
        for row in rows if isinstance(rows, list) else ():
            cells = [f"{k.replace('_', ' ')} {render_value(v)}" for k, v in row.items() if k != "name" and v]
            name = one_line(str(row.get("name") or title))
            yield f"{name}: {', '.join(cells)}", "price" if "price" in row else "availability", 1.0
    tables = fields.get("tables")
    for table in tables if isinstance(tables, list) else ():
        columns = table["columns"]
        for row in table["rows"]:
            named = zip(columns or [""] * len(row), row, strict=False)
            cells = [f"{column} {cell}".strip() for column, cell in named if cell]
            text = one_line(f"{table.get('caption') or title}: {', '.join(cells)}")
            yield text, claim_type(text) if states_price(text) else "general_fact", 1.0


def _zone_lines(visit: Visit, title: str, said: str) -> Iterator[tuple[str, str, float]]:
    """The lines of a page's zones that its fields do not say already; short ones with the title in front."""
    for zone in visit.extracted.zones or ():
        for item in zone.items if zone.is_quotable else ():
            line = one_line(item)
            if line and line not in said and line.lower() != title.lower():
                is_short = len(line.split()) < _SHORT_LINE_WORDS or visit.manifest.page_type == "product"
                content_type = claim_type(line) if zone.type == "pricing" else "general_fact"
                yield (f"{title}: {line}" if title and is_short else line), content_type, zone.confidence


def _flatten(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(inner, (*path, str(key)))
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        for inner in value:
            yield from _flatten(inner, path or ("item",))
    elif value is not None and path and (rendered := render_value(value)):
        yield path, rendered


def knowledge_items(
    passages: Sequence[Passage], title: str, start: float, at: datetime | None, now: datetime
) -> tuple[Item, ...]:
    """
    One item a sentence, line or list item, links between notes as a reader sees them. A paragraph of nothing
    but links is left out.

    What it stands under, or else the title of the note, stands in front of an item that is too short to be
    understood alone, or that has no date where they have one.

    Args:
        passages: Passages of a knowledge document, all or those of a section.
        start: Confidence of the document when it was written.
    """
    items, introduced = [], _introductions(passages)
    for passage in passages:
        if is_only_wikilinks(passage.text) and passage.form != "item":
            continue
        text = spell_out_wikilinks(passage.text)
        above = introduced.get(passage.list_line or 0, "")
        places = [one for one in (title, *map(one_line, passage.headings), above) if one]
        dated = [one for one in places if find_days(one)]
        when = next((day for one in reversed(dated) if (day := day_of(one))), at)
        is_short = len(text.split()) < _SHORT_WORDS and ": " not in text and passage.form in _CARRYING
        carried = ""
        if dated and not find_days(text) and passage.form != "code":
            carried = dated[-1]
        elif is_short and not passage.heads_line:
            carried = places[-1]
        carried = f"{carried}: " if carried and not text.startswith(carried) else ""
        confidence = confidence_at(start, "general_fact", when, now)
        items.append(_passage_item(passage, text, confidence, when, above, carried))
    return tuple(items)


@dataclass(frozen=True)
class Node:
    """One loaded piece of memory."""

    id: str  # as "turn:811" or "memory:budget"
    source_type: SourceType  # kind of source, in S0's names
    title: str  # short name for readers
    provenance: str  # file it comes from, relative to the user's directory, with / between parts
    at: datetime | None  # when it was said or seen; None if unknown
    items: tuple[Item, ...]  # its quotable lines, expired ones included
    links: tuple[str, ...] = ()
    """Ids of nodes it leads to: a turn's research, the visits of research, the notes that a note links to."""
    expires_at: datetime | None = None  # when its maker wanted it refreshed; None if never said
    warnings: tuple[str, ...] = ()  # what was assumed while loading, as a missing confidence
    changed_at: datetime | None = None  # of a note, when its file was last written
    url: str | None = None  # of a visit, its page
    source_turn: int | None = None  # turn in which a preference or fact was said
    quality: float | None = None  # how good its maker found research or a visit, 0 to 1

    @property
    def origins(self) -> tuple[str, ...]:
        """The nodes that its lines repeat, each once."""
        return tuple(dict.fromkeys(item.origin for item in self.items if item.origin not in (None, self.id)))

    @property
    def confidence(self) -> float:
        """Mean confidence of the items; 0 if there are none."""
        return sum(item.confidence for item in self.items) / len(self.items) if self.items else 0.0

    @property
    def text(self) -> str:
        """All item texts, a line each."""
        return "\n".join(item.text for item in self.items)


def line_text(above: str, text: str) -> str:
    """
    A line with what it stands below, as an encoder gets it: no ids, keys as words, nothing twice.

    Args:
        above: Its title and headings, as line_title gives them; may be empty.

    >>> line_text("Bees. Spring", "They fly in May.")
    'Bees. Spring. They fly in May.'
    >>> line_text("", "preference: budget_laptop: $750"), line_text("Bees. Hive", "Hive: two frames")
    ('budget laptop: $750', 'Bees. Hive: two frames')
    """
    line = _KEY.sub(lambda key: key[0].replace("_", " "), _PREFIX.sub("", one_line(text)))
    parts = (part for part in above.split(". ") if part and not line.startswith(part))
    return ". ".join([*parts, line])


def line_title(node: Node, item: Item) -> str:
    """
    What a line stands below: of a note its folder, name and headings, of a page or research its title.

    Args:
        node: The node; what was said in turns and is remembered stands for itself.
    """
    parts = [item.heading]
    if node.id.startswith(_NOTE):
        folder = PurePosixPath(node.id.removeprefix(_NOTE)).parent.name
        parts = [_JOINTS.sub(" ", part) for part in (folder, node.title)] + parts
    elif node.source_type in ("visit_record", "research_cache"):
        parts = [node.title, *parts]
    seen = dict.fromkeys(piece for part in parts for piece in one_line(part).rstrip(".:").split(". "))
    pieces = (piece.strip() for piece in seen)
    return ". ".join(piece for piece in pieces if piece and not item.text.startswith(piece))


def node_lines(node: Node) -> list[tuple[Item, str]]:
    """Each line of a node that stands for itself, with its text for the encoder, in order."""
    return [
        (item, line_text(line_title(node, item), item.text)) for item in node.items if item.origin is None
    ]
