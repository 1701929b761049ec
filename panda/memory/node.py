"""One loaded piece of memory."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from panda.memory.items import Item

SourceType = Literal["turn_summary", "preference", "fact", "research_cache", "visit_record"]


@dataclass(frozen=True)
class Node:
    """One loaded piece of memory."""

    id: str
    """As "turn:811" or "memory:budget"."""
    source_type: SourceType
    """Kind of source, in S0's names."""
    title: str
    """Short name for readers."""
    provenance: str
    """File it comes from, relative to the user's directory, with / between parts."""
    at: datetime | None
    """When it was said or seen; None if unknown."""
    items: tuple[Item, ...]
    """Its quotable lines, expired ones included."""
    links: tuple[str, ...] = ()
    """Ids of nodes it leads to: a turn's research, the visits of research, the notes that a note links to."""
    expires_at: datetime | None = None
    """When its maker wanted it refreshed; None if never said."""
    warnings: tuple[str, ...] = ()
    """What was assumed while loading, as a missing confidence."""
    changed_at: datetime | None = None
    """Of a note, when its file was last written."""
    url: str | None = None
    """Of a visit, its page."""
    source_turn: int | None = None
    """Turn in which a preference or fact was said."""

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
