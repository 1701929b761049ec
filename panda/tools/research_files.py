"""research.json and research.md: what a research found, where, and what contradicts what (S1 §3.5)."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from panda.documents.text import one_line
from panda.documents.times import parse_time, render_time
from panda.language.topics import ASKING
from panda.retrieval.relevance import find_query_words
from panda.storage.files import write_atomic, write_json
from panda.storage.layout import RESEARCH_JSON, RESEARCH_MD, TurnPaths
from panda.storage.schemas import check_json
from panda.tools.conflicts import Conflict, FoundClaim

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
    """
    Write both files of a turn.

    Raises:
        StoreError: They cannot be written.
        FileFormatError: A value does not fit its schema.
    """
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
