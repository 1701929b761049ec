"""What a research found, where, and what contradicts what: research.json and research.md (S1 §3.5)."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

import msgspec
from msgspec import Struct

from panda.documents.evidence import find_claims
from panda.documents.records import encode
from panda.documents.text import one_line
from panda.documents.times import render_time
from panda.language.words import read_words
from panda.retrieval.relevance import find_query_words
from panda.store.files import read_json, write_atomic, write_json
from panda.store.layout import RESEARCH_JSON, RESEARCH_MD, TurnPaths
from panda.store.records import check_json

_HOLDS_HOURS = {"prices": 6, "comparison": 48, "facts": 24 * 14, "howto": 24 * 30, "news": 6}
_FIELDS = {"prices": "commerce", "comparison": "commerce", "facts": "facts", "howto": "howto", "news": "news"}
_TOPIC_WORDS = 4
_KEY_CHARS = 80
_MODEL = re.compile(r"(?=\w*\d)\w+")


class FoundClaim(Struct, frozen=True, kw_only=True, rename={"text": "claim"}):
    """One claim of a research with where it comes from."""

    text: str  # one line
    source: str  # site
    confidence: float  # as of now, two decimals
    content_type: str  # how it ages
    visit_id: str  # visit that holds it
    url: str  # page
    subject: str  # title of the page: what it is about
    provenance: str  # its file, relative to the user's directory

    @property
    def price(self) -> str | None:
        """The one price that it names, in normal form; None if it names none or several."""
        values = {claim.value for claim in find_claims(self.text) if claim.kind == "price"}
        return values.pop() if len(values) == 1 and self.content_type == "price" else None


class Conflict(Struct, frozen=True):
    """Claims that cannot all hold: shown side by side, never settled."""

    about: str  # what they are about
    text: str  # one line that says what each source says
    claims: tuple[FoundClaim, ...]  # all of them, in the order they were found


class Source(Struct, frozen=True):
    """A search result as it was rated."""

    url: str  # address of the page
    title: str  # as the provider gives it
    quality: float  # computed before it was read
    chosen: bool  # whether it was to be read


class Research(
    Struct, frozen=True, kw_only=True, rename={"quality": "quality_score", "visit_ids": "webpage_cache"}
):
    """What a research found, as research.json holds it."""

    topic: str  # as "commerce.laptop"
    cache_key: str  # the words of its subject
    created_at: str  # when it ran
    expires_at: str  # until when it holds
    quality: float
    """Mean confidence of the claims, less if a single source or a contradiction stands behind them."""
    summary: str  # in a sentence or two
    claims: tuple[FoundClaim, ...]  # what the pages say
    conflicts: tuple[Conflict, ...]  # claims that cannot all hold
    visit_ids: tuple[str, ...]  # visits of the pages that count
    query: str  # what was looked for
    kind: str  # prices, comparison, facts, howto or news
    phrases: tuple[str, ...]  # what the provider was asked
    provider: str  # who was asked
    sources: tuple[Source, ...]  # all results, best first
    failed: tuple[str, ...]  # pages that could not be read, with the reason
    refreshes: tuple[str, ...] = ()  # earlier visits of the pages that were read
    away: tuple[str, ...] = ()  # earlier visits of the pages that could not be read


def new_research(
    query: str,
    kind: str,
    claims: Sequence[FoundClaim],
    conflicts: Sequence[Conflict],
    *,
    at: datetime,
    **more: Any,
) -> Research:
    """The record of what was found; *more* are the fields that follow from nothing else."""
    return Research(
        query=query,
        kind=kind,
        topic=topic_of(query, kind),
        cache_key="_".join(word.lower() for word in subject_words(query))[:_KEY_CHARS],
        created_at=render_time(at),
        expires_at=render_time(at + timedelta(hours=_HOLDS_HOURS[kind])),
        quality=_quality(claims, conflicts),
        summary=_counted(query, claims, conflicts),
        claims=tuple(claims),
        conflicts=tuple(conflicts),
        **more,
    )


def _quality(claims: Sequence[FoundClaim], conflicts: Sequence[Conflict]) -> float:
    if not claims:
        return 0.0
    mean = sum(claim.confidence for claim in claims) / len(claims)
    sites = {claim.source for claim in claims}
    return round(mean * (1.0 if len(sites) > 1 else 0.85) * (0.8 if conflicts else 1.0), 2)


def _counted(query: str, claims: Sequence[FoundClaim], conflicts: Sequence[Conflict]) -> str:
    """What can be said without a model: how much was found where, and every contradiction."""
    sites = dict.fromkeys(claim.source for claim in claims)
    if not sites:
        return f"Nothing was found on: {query}"
    count = f"{len(sites)} site{'s' if len(sites) > 1 else ''}"
    found = f"{len(claims)} findings from {count} ({', '.join(sites)}) on: {query}"
    return ". ".join([found, *(conflict.text for conflict in conflicts)])


def topic_of(query: str, kind: str) -> str:
    """
    The topic of a research: its field and what it is about.

    >>> topic_of("How much does the Lenovo LOQ 15 cost?", "prices")
    'commerce.lenovo_loq_15'
    """
    words = [word.lower() for word in subject_words(query)][:_TOPIC_WORDS]
    return f"{_FIELDS[kind]}.{'_'.join(words) or 'general'}"


def subject_words(query: str) -> list[str]:
    """
    What a query is about, without what it asks of it.

    >>> subject_words("How much does the Lenovo LOQ 15 cost?")
    ['Lenovo', 'LOQ', '15']
    """
    words = [plain for word in find_query_words(query) if (plain := re.sub(r"\W+", "", word))]
    asking = read_words("topic_words.txt", "asking")
    return [word for word in words if word.lower() not in asking] or words


def read_research(paths: TurnPaths) -> Research | None:
    """The research that a turn has written; None if it has none."""
    path = paths / RESEARCH_JSON
    return msgspec.convert(read_json(path), Research) if path.is_file() else None


def write_research(paths: TurnPaths, record: Research) -> None:
    """Write both files of a turn."""
    value = encode(record)
    check_json(RESEARCH_JSON, value, str(paths / RESEARCH_JSON))
    write_atomic(paths / RESEARCH_MD, render_research(record))
    write_json(paths / RESEARCH_JSON, value)


def render_research(record: Research) -> str:
    """The content of research.md."""
    lines = [f"# {one_line(record.query)}", "", record.summary, "", "## Research Findings", ""]
    lines += [
        f"- {_plain(c.text)} ({c.source}, visit:{c.visit_id}, {c.confidence:.2f})" for c in record.claims
    ]
    lines += ["- nothing was found"] if not record.claims else []
    if record.conflicts:
        lines += ["", "## Conflicts", "", *(f"- {_plain(conflict.text)}" for conflict in record.conflicts)]
    lines += ["", "## Sources", ""]
    lines += [
        f"- {source.url} (quality {source.quality:.2f}, {'read' if source.chosen else 'not read'})"
        for source in record.sources
    ]
    lines += [f"- not readable: {_plain(text)}" for text in record.failed]
    lines += ["", f"Searched {record.provider} for: {'; '.join(record.phrases)}", ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return one_line(text).replace("`", "'")


def differing_pairs(claims: Sequence[FoundClaim]) -> Iterator[tuple[int, int, float]]:
    """Index, index and likeness (above 0) of claims of two pages with two prices."""
    priced = [(n, claim, price) for n, claim in enumerate(claims) if (price := claim.price)]
    for (i, first, one), (j, second, two) in combinations(priced, 2):
        if first.url != second.url and one != two:
            alike = likeness(first.subject, second.subject)
            if alike:
                yield i, j, alike


def likeness(first: str, second: str) -> float:
    """
    How likely two titles name the same thing: the share of the shorter one's words; 0 if their models differ.

    >>> likeness("Lenovo LOQ 15 Gaming Laptop", "Lenovo LOQ 15"), likeness("Lenovo LOQ 15", "Lenovo LOQ 16")
    (1.0, 0.0)
    """
    a, b = (set(re.findall(r"\w+", title.lower())) for title in (first, second))
    models = [set(_MODEL.findall(title.lower())) for title in (first, second)]
    if not a or not b or (all(models) and not (models[0] <= models[1] or models[1] <= models[0])):
        return 0.0
    return round(len(a & b) / min(len(a), len(b)), 2)


def join_conflicts(claims: Sequence[FoundClaim], pairs: Collection[tuple[int, int]]) -> list[Conflict]:
    """Conflicts from pairs of indices: what is connected is one, with every claim on that price."""
    groups: list[set[int]] = []
    for i, j in pairs:
        joined = {i, j}.union(*(group for group in groups if group & {i, j}))
        groups = [group for group in groups if not group & {i, j}] + [joined]
    return [_conflict(claims[n] for n in sorted(group)) for group in sorted(groups, key=min)]


def _conflict(members: Iterable[FoundClaim]) -> Conflict:
    claims = tuple(members)
    about = min((claim.subject for claim in claims), key=len)
    unique = {(claim.price, claim.url): claim for claim in claims}.values()
    sites = [claim.source for claim in unique]
    places = sites if len(set(sites)) == len(sites) else [claim.url for claim in unique]
    prices = [next(c.text for c in find_claims(claim.text) if c.kind == "price") for claim in unique]
    told = " or ".join(f"{price} ({place})" for price, place in zip(prices, places, strict=True))
    return Conflict(about, f"{about}: price {told}; the sources disagree", claims)
