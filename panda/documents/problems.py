"""What a check finds, and the three things that it can say."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a check says of what it was given. What was not judged is never sound; it ends with 3 as well."""

    SOUND = "sound"  # looked at, and nothing is wrong
    UNSOUND = "unsound"  # looked at, and something is wrong
    NOT_JUDGED = "not judged"
    """Not looked at: it is not there, does not read, is not finished, or what it is judged by has changed."""


FORGOTTEN = "forgotten_at"
"""Key of the problem that a turn is not judged because something was forgotten in it."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with one file."""

    path: str  # file, as given or relative to the root that was checked
    message: str  # what is wrong, with numbers
    line: int | None = None  # line in the file, from 1
    key: str | None = None  # key inside the file, dotted
    fix: str | None = None  # what to do
    verdict: Verdict = Verdict.UNSOUND
    """NOT_JUDGED where nothing can be said of it, which is no less a finding."""

    @property
    def where(self) -> str:
        """File with line or key, for an error's `where:` line."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place} ({self.key})" if self.key else place

    @property
    def told(self) -> str:
        """All of it on one line: where, what, and what to do."""
        return f"{self.where}: {self.message}" + (f"; {self.fix}" if self.fix else "")


def verdict_of(problems: Iterable[Problem]) -> Verdict:
    """
    What a check says that found these problems.

    >>> str(verdict_of([])), str(verdict_of([Problem("a.md", "gone", verdict=Verdict.NOT_JUDGED)]))
    ('sound', 'not judged')
    """
    found = {problem.verdict for problem in problems}
    return next((one for one in (Verdict.UNSOUND, Verdict.NOT_JUDGED) if one in found), Verdict.SOUND)
