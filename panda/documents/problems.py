"""What a check of files finds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing wrong with one file."""

    path: str
    """File, as given or relative to the root that was checked."""
    message: str
    """What is wrong, with numbers."""
    line: int | None = None
    """Line in the file, from 1."""
    key: str | None = None
    """Key inside the file, dotted."""
    fix: str | None = None
    """What to do."""

    @property
    def where(self) -> str:
        """File with line or key, for an error's `where:` line."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place} ({self.key})" if self.key else place
