"""What a research found, where, and what contradicts what: research.json and research.md (S1 §3.5)."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

from panda.documents.evidence import find_claims
from panda.documents.text import one_line
from panda.language.words import read_words
from panda.retrieval.relevance import find_query_words
from panda.store.layout import RESEARCH_MD
from panda.store.records import Research, ResearchClaim, ResearchConflict
from panda.store.turns import TurnFolder

_HOLDS_HOURS = {"prices": 6, "comparison": 48, "facts": 24 * 14, "howto": 24 * 30, "news": 6}
_FIELDS = {"prices": "commerce", "comparison": "commerce", "facts": "facts", "howto": "howto", "news": "news"}
_TOPIC_WORDS = 4
_KEY_CHARS = 80
_MODEL = re.compile(r"(?=\w*\d)\w+")


def price_of(claim: ResearchClaim) -> str | None:
    """The one price that a claim names, in normal form; None if it names none or several."""
    values = {found.value for found in find_claims(claim.claim) if found.kind == "price"}
    return values.pop() if len(values) == 1 and claim.content_type == "price" else None


def new_research(
    query: str,
    kind: str,
    claims: Sequence[ResearchClaim],
    conflicts: Sequence[ResearchConflict],
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
        created_at=at,
        expires_at=at + timedelta(hours=_HOLDS_HOURS[kind]),
        quality_score=_quality(claims, conflicts),
        summary=_counted(query, claims, conflicts),
        claims=tuple(claims),
        conflicts=tuple(conflicts),
        **more,
    )


def _quality(claims: Sequence[ResearchClaim], conflicts: Sequence[ResearchConflict]) -> float:
    if not claims:
        return 0.0
    mean = sum(claim.confidence or 0.0 for claim in claims) / len(claims)
    sites = {claim.source for claim in claims}
    return round(mean * (1.0 if len(sites) > 1 else 0.85) * (0.8 if conflicts else 1.0), 2)


def _counted(query: str, claims: Sequence[ResearchClaim], conflicts: Sequence[ResearchConflict]) -> str:
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


def write_research(turn: TurnFolder, record: Research) -> None:
    turn.write_text(RESEARCH_MD, render_research(record))
    turn.save(record)


def render_research(record: Research) -> str:
    lines = [f"# {one_line(record.query)}", "", record.summary, "", "## Research Findings", ""]
    lines += [
        f"- {_plain(c.claim)} ({c.source}, visit:{c.visit_id}, {c.confidence or 0:.2f})"
        for c in record.claims
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


def differing_pairs(claims: Sequence[ResearchClaim]) -> Iterator[tuple[int, int, float]]:
    """Index, index and likeness (above 0) of claims of two pages with two prices."""
    priced = [(n, claim, price) for n, claim in enumerate(claims) if (price := price_of(claim))]
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


def join_conflicts(
    claims: Sequence[ResearchClaim], pairs: Collection[tuple[int, int]]
) -> list[ResearchConflict]:
    """Conflicts from pairs of indices: what is connected is one, with every claim on that price."""
    groups: list[set[int]] = []
    for i, j in pairs:
        joined = {i, j}.union(*(group for group in groups if group & {i, j}))
        groups = [group for group in groups if not group & {i, j}] + [joined]
    return [_conflict(claims[n] for n in sorted(group)) for group in sorted(groups, key=min)]


def _conflict(members: Iterable[ResearchClaim]) -> ResearchConflict:
    claims = tuple(members)
    about = min((claim.subject for claim in claims), key=len)
    unique = {(price_of(claim), claim.url): claim for claim in claims}.values()
    sites = [claim.source for claim in unique]
    places = sites if len(set(sites)) == len(sites) else [claim.url for claim in unique]
    prices = [next(c.text for c in find_claims(claim.claim) if c.kind == "price") for claim in unique]
    told = " or ".join(f"{price} ({place})" for price, place in zip(prices, places, strict=True))
    return ResearchConflict(about, f"{about}: price {told}; the sources disagree", claims)
