"""What a research found, where, and what contradicts what: research.json and research.md (S1 §3.5)."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

from panda.documents.evidence import find_claims
from panda.documents.text import one_line
from panda.documents.times import parse_time, render_time
from panda.language.topics import ASKING
from panda.retrieval.relevance import find_query_words
from panda.storage.files import write_atomic, write_json
from panda.storage.layout import RESEARCH_JSON, RESEARCH_MD, TurnPaths
from panda.storage.schemas import check_json

_MODEL = re.compile(r"(?=\w*\d)\w+")


@dataclass(frozen=True)
class FoundClaim:
    """One claim of a research with where it comes from."""

    text: str
    """One line."""
    subject: str
    """Title of the page: what it is about."""
    source: str
    """Site."""
    url: str
    """Page."""
    visit_id: str
    """Visit that holds it."""
    provenance: str
    """Its file, relative to the user's directory."""
    confidence: float
    """As of now."""
    content_type: str
    """How it ages."""

    @property
    def price(self) -> str | None:
        """The one price that it names, in normal form; None if it names none or several."""
        values = {claim.value for claim in find_claims(self.text) if claim.kind == "price"}
        return values.pop() if len(values) == 1 and self.content_type == "price" else None


@dataclass(frozen=True)
class Conflict:
    """Claims that cannot all hold."""

    about: str
    """What they are about."""
    claims: tuple[FoundClaim, ...]
    """All of them, in the order they were found."""

    @property
    def text(self) -> str:
        """One line that says what each source says."""
        unique = {(claim.price, claim.url): claim for claim in self.claims}.values()
        sites = [claim.source for claim in unique]
        places = sites if len(set(sites)) == len(sites) else [claim.url for claim in unique]
        said = [f"{_written_price(c)} ({place})" for c, place in zip(unique, places, strict=True)]
        return f"{self.about}: price {' or '.join(said)}; the sources disagree"


def _written_price(claim: FoundClaim) -> str:
    return next(found.text for found in find_claims(claim.text) if found.kind == "price")


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


def differing_pairs(claims: Sequence[FoundClaim]) -> Iterator[tuple[int, int, float]]:
    """
    Pairs of claims of different pages with different prices, with how alike their subjects are.

    Args:
        claims: In any order; only those that name one price count.

    Returns:
        (index, index, likeness), likeness above 0.
    """
    priced = [(n, claim, price) for n, claim in enumerate(claims) if (price := claim.price)]
    for (i, first, one), (j, second, two) in combinations(priced, 2):
        if first.url != second.url and one != two:
            alike = likeness(first.subject, second.subject)
            if alike:
                yield i, j, alike


def join_conflicts(claims: Sequence[FoundClaim], pairs: Collection[tuple[int, int]]) -> list[Conflict]:
    """
    Conflicts from pairs: what is connected is one conflict, with every claim on that price.

    Args:
        pairs: Indices of claims about the same thing.
    """
    groups: list[set[int]] = []
    for i, j in pairs:
        joined = {i, j}.union(*(group for group in groups if group & {i, j}))
        groups = [group for group in groups if not group & {i, j}] + [joined]
    conflicts = []
    for group in sorted(groups, key=min):
        members = tuple(claims[n] for n in sorted(group))
        conflicts.append(Conflict(min((claim.subject for claim in members), key=len), members))
    return conflicts


_HOLDS_HOURS = {"prices": 6, "comparison": 48, "facts": 24 * 14, "howto": 24 * 30, "news": 6}
_FIELDS = {"prices": "commerce", "comparison": "commerce", "facts": "facts", "howto": "howto", "news": "news"}
_TOPIC_WORDS = 4


@dataclass(frozen=True)
class Source:
    """A search result as it was rated."""

    url: str
    """Address of the page."""
    title: str
    """As the provider gives it."""
    quality: float
    """Computed before it was read."""
    chosen: bool
    """Whether it was to be read."""


@dataclass(frozen=True, kw_only=True)
class Research:
    """What a research found."""

    query: str
    """What was looked for."""
    topic: str
    """As "commerce.laptop"."""
    kind: str
    """prices, comparison, facts, howto or news."""
    phrases: tuple[str, ...]
    """What the provider was asked."""
    provider: str
    """Who was asked."""
    sources: tuple[Source, ...]
    """All results, best first."""
    visit_ids: tuple[str, ...]
    """Visits of the pages that count."""
    claims: tuple[FoundClaim, ...]
    """What they say."""
    conflicts: tuple[Conflict, ...]
    """Claims that cannot all hold."""
    failed: tuple[str, ...]
    """Pages that could not be read, with the reason."""
    refreshes: tuple[str, ...] = ()
    """Earlier visits of the pages that were read."""
    away: tuple[str, ...] = ()
    """Earlier visits of the pages that could not be read."""
    created_at: datetime
    """When it ran."""
    summary: str = ""
    """In a sentence or two."""

    @property
    def expires(self) -> str:
        """Until when it holds."""
        return render_time(self.created_at + timedelta(hours=_HOLDS_HOURS[self.kind]))

    @property
    def quality(self) -> float:
        """Mean confidence of the claims, less if a single source or a contradiction stands behind them."""
        if not self.claims:
            return 0.0
        mean = sum(claim.confidence for claim in self.claims) / len(self.claims)
        sites = {claim.source for claim in self.claims}
        return round(mean * (1.0 if len(sites) > 1 else 0.85) * (0.8 if self.conflicts else 1.0), 2)

    @property
    def counted(self) -> str:
        """What can be said of it without a model: how much was found where, and every contradiction."""
        sites = dict.fromkeys(claim.source for claim in self.claims)
        if not sites:
            return f"Nothing was found on: {self.query}"
        count = f"{len(sites)} site{'s' if len(sites) > 1 else ''}"
        found = f"{len(self.claims)} findings from {count} ({', '.join(sites)}) on: {self.query}"
        return ". ".join([found, *(conflict.text for conflict in self.conflicts)])

    def to_json(self) -> dict[str, Any]:
        """The content of research.json."""
        return {
            "topic": self.topic,
            "cache_key": "_".join(word.lower() for word in subject_words(self.query))[:80],
            "created_at": render_time(self.created_at),
            "expires_at": self.expires,
            "quality_score": self.quality,
            "summary": self.summary,
            "claims": [_claim_json(claim) for claim in self.claims],
            "conflicts": [
                {"about": c.about, "text": c.text, "claims": [_claim_json(claim) for claim in c.claims]}
                for c in self.conflicts
            ],
            "webpage_cache": list(self.visit_ids),
            "query": self.query,
            "kind": self.kind,
            "phrases": list(self.phrases),
            "provider": self.provider,
            "sources": [asdict(source) for source in self.sources],
            "failed": list(self.failed),
            "refreshes": list(self.refreshes),
            "away": list(self.away),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Research":
        """The research that to_json wrote."""
        return cls(
            query=value["query"],
            topic=value["topic"],
            kind=value["kind"],
            phrases=tuple(value["phrases"]),
            provider=value["provider"],
            sources=tuple(Source(**source) for source in value["sources"]),
            visit_ids=tuple(value["webpage_cache"]),
            claims=tuple(_claim_of(claim) for claim in value["claims"]),
            conflicts=tuple(
                Conflict(c["about"], tuple(_claim_of(claim) for claim in c["claims"]))
                for c in value["conflicts"]
            ),
            failed=tuple(value["failed"]),
            refreshes=tuple(value.get("refreshes", ())),
            away=tuple(value.get("away", ())),
            created_at=parse_time(value["created_at"]),
            summary=value["summary"],
        )


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
    words = [re.sub(r"\W+", "", word) for word in find_query_words(query)]
    return [word for word in words if word and word.lower() not in ASKING] or [word for word in words if word]


def write_research(paths: TurnPaths, made: Research) -> None:
    """Write both files of a turn."""
    value = made.to_json()
    check_json(RESEARCH_JSON, value, str(paths / RESEARCH_JSON))
    write_atomic(paths / RESEARCH_MD, render_research(made))
    write_json(paths / RESEARCH_JSON, value)


def render_research(made: Research) -> str:
    """The content of research.md."""
    lines = [f"# {one_line(made.query)}", "", made.summary, "", "## Research Findings", ""]
    lines += [f"- {_plain(c.text)} ({c.source}, visit:{c.visit_id}, {c.confidence:.2f})" for c in made.claims]
    lines += ["- nothing was found"] if not made.claims else []
    if made.conflicts:
        lines += ["", "## Conflicts", "", *(f"- {_plain(conflict.text)}" for conflict in made.conflicts)]
    lines += ["", "## Sources", ""]
    lines += [
        f"- {source.url} (quality {source.quality:.2f}, {'read' if source.chosen else 'not read'})"
        for source in made.sources
    ]
    lines += [f"- not readable: {_plain(text)}" for text in made.failed]
    lines += ["", f"Searched {made.provider} for: {'; '.join(made.phrases)}", ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return one_line(text).replace("`", "'")


def _claim_json(claim: FoundClaim) -> dict[str, Any]:
    return {
        "claim": claim.text,
        "source": claim.source,
        "confidence": round(claim.confidence, 2),
        "content_type": claim.content_type,
        "visit_id": claim.visit_id,
        "url": claim.url,
        "subject": claim.subject,
        "provenance": claim.provenance,
    }


def _claim_of(value: Mapping[str, Any]) -> FoundClaim:
    names = ("subject", "source", "url", "visit_id", "provenance", "confidence", "content_type")
    return FoundClaim(text=value["claim"], **{name: value[name] for name in names})
