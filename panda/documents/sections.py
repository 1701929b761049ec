"""The one numbering of phases, sections and their budgets (S3 §11.3)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SectionKind:
    """One numbered section of context.md."""

    number: int
    """Number of the section and of the phase that writes it, 0 to 6."""
    title: str
    """Canonical title, as in the heading `## number. title`."""
    budget_tokens: int
    """Most budget tokens the section may hold on disk."""


SECTIONS: tuple[SectionKind, ...] = (
    SectionKind(0, "User Query", 500),
    SectionKind(1, "Reflection Decision", 300),
    SectionKind(2, "Gathered Context", 2_000),
    SectionKind(3, "Task Plan", 800),
    SectionKind(4, "Tool Execution", 2_500),
    SectionKind(5, "Synthesis", 2_000),
    SectionKind(6, "Validation", 500),
)


def heading(number: int) -> str:
    """
    The canonical heading line of a section.

    >>> heading(2)
    '## 2. Gathered Context'
    """
    return f"## {number}. {SECTIONS[number].title}"


PHASES: tuple[str, ...] = (
    "query analyzer",
    "reflection",
    "context gatherer",
    "planner",
    "coordinator",
    "synthesizer",
    "validator",
    "save",
)
"""What each phase is called, by its number."""
