"""The values that a context.md holds: front matter, sections, text and `_meta` blocks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from panda.documents.sections import SECTIONS
from panda.documents.yaml_values import plain_value


@dataclass(frozen=True)
class FrontMatter:
    """What stands between the two `---` lines."""

    schema: str
    """Name and version of the format."""
    turn: int
    """Turn number."""
    user_id: str
    """Whose turn it is."""
    session_id: str
    """Session of the turn."""
    mode: str
    """chat or code."""
    created_at: datetime
    """When the turn was claimed; kept in UTC, whole seconds."""

    def __post_init__(self) -> None:
        moment = self.created_at
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        object.__setattr__(self, "created_at", moment.replace(microsecond=0))


@dataclass(frozen=True)
class Text:
    """A stretch of text; whoever wrote it, it is escaped on disk and comes back exactly."""

    text: str
    """Never empty."""

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("a Text block cannot be empty")


@dataclass(frozen=True)
class Meta:
    """A `_meta` block: data for code, beside the text for readers."""

    values: Mapping[str, object]
    """Key to JSON-like value."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", plain_value(self.values))


Block = Text | Meta


@dataclass(frozen=True)
class Section:
    """One numbered section. Neighbouring Text blocks are joined, as the file cannot tell them apart."""

    number: int
    """0 to 6; the title follows from it."""
    blocks: tuple[Block, ...] = ()
    """Body in order; may be empty."""

    def __post_init__(self) -> None:
        if not 0 <= self.number < len(SECTIONS):
            raise ValueError(f"there is no section {self.number}")
        joined: list[Block] = []
        for block in self.blocks:
            last = joined[-1] if joined else None
            if isinstance(block, Text) and isinstance(last, Text):
                joined[-1] = Text(f"{last.text}\n\n{block.text}")
            else:
                joined.append(block)
        object.__setattr__(self, "blocks", tuple(joined))

    @property
    def text(self) -> str:
        """All Text blocks, joined by one blank line; "" if there is none."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def meta(self) -> Mapping[str, object]:
        """Values of the first Meta block; {} if there is none."""
        return next((block.values for block in self.blocks if isinstance(block, Meta)), {})


@dataclass(frozen=True)
class ContextDocument:
    """A whole context.md."""

    front: FrontMatter
    """Its front matter."""
    sections: tuple[Section, ...] = ()
    """Its sections, numbers ascending."""

    def __post_init__(self) -> None:
        numbers = [section.number for section in self.sections]
        if numbers != sorted(set(numbers)):
            raise ValueError(f"sections {numbers} are not ascending")

    def section(self, number: int) -> Section | None:
        """The section of that number, or None."""
        return next((section for section in self.sections if section.number == number), None)

    def with_section(self, section: Section) -> "ContextDocument":
        """This document with the section put in its place, instead of one of the same number."""
        others = [other for other in self.sections if other.number != section.number]
        return ContextDocument(self.front, tuple(sorted([*others, section], key=lambda one: one.number)))

    def without(self, number: int) -> "ContextDocument":
        """This document less the section of that number."""
        return ContextDocument(self.front, tuple(one for one in self.sections if one.number != number))
