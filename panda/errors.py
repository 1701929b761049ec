"""
Every exception of panda, in one tree.

    Problem                       message, where, line, key, fix, verdict, exit code
    ├── UsageError                2   a command line, query or setting that cannot be used
    │   ├── SettingError              a value in a flag, the environment, panda.toml or the user file
    │   ├── QueryError                a query that cannot start a turn
    │   └── ReadOnlyStoreError        a writing command on the demo store of the checkout
    ├── FileFormatError           2   a file that is there but does not say what it must
    │   ├── DocumentError             context.md and other marked-up documents
    │   ├── ImportFileError           a line of an import file
    │   ├── RecipeError               a recipe, prompt or registry entry
    │   │   ├── RecipeNotFoundError       no recipe of that name
    │   │   ├── RecipeKeyError            an unknown, missing or wrong key
    │   │   ├── RecipeBudgetError         token budgets that do not add up or do not fit the layer
    │   │   ├── PromptNotFoundError       a prompt file that is not there
    │   │   └── RecipeSchemaError         an output schema that does not compile to a grammar
    │   └── ModelFileError            models.yaml, or a GGUF that cannot be loaded
    ├── NotFoundError             2   a turn, node or session that does not exist
    ├── CheckError                3   a check found something
    ├── LimitError                4   the limit given cannot be met
    ├── HaltError                 20  a turn cannot go on; becomes an intervention file
    │   ├── BudgetExceededError       protected text alone does not fit
    │   ├── ReplyError                a model's reply stayed invalid after all retries
    │   ├── ModelTimeoutError         a model call took longer than its recipe allows
    │   ├── MemoryNodeError           a planned document is missing or corrupt
    │   └── GateError                 a quality gate of a recipe halts the turn
    ├── NotApprovedError          22  an answer was made, but it may not be shown
    ├── StoreError                74  a file cannot be read or written
    │   └── UntrustedError        2   a project's file or a link that reaches out, before `panda trust`
    ├── WebError                  74  a web page or a search on the web cannot be had
    ├── TryAgainError             75  something is held or away; the same command may work later
    │   ├── LockHeldError             another process holds the lock
    │   └── ModelAwayError            a model server does not answer
    ├── SignalError               130 or 143: a signal ended the command
    └── BugError                  1   made of an exception that nobody expected, at the command boundary

Constructors never print. Bugs stay ordinary exceptions.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum


class Verdict(StrEnum):
    """What a check says of what it was given."""

    SOUND = "sound"  # looked at, and nothing is wrong
    UNSOUND = "unsound"  # looked at, and something is wrong
    NOT_JUDGED = "not judged"
    """Not looked at: it is not there, does not read, is not finished, or what it is judged by has changed."""


class Location(str):
    """
    Where something is wrong in a file; as text on one line.

    >>> Location(Location("a/b.yaml", line=7), key="x.y")
    'a/b.yaml:7 (x.y)'
    """

    def __new__(cls, path: object, *, line: int | None = None, key: str | None = None) -> "Location":
        """*path* may have a line or key already."""
        line, outer = line or getattr(path, "line", None), getattr(path, "key", None)
        key = f"{outer}.{key}" if outer and key else key or outer
        path = str(getattr(path, "path", path))
        place = f"{path}:{line}" if line else path
        made = super().__new__(cls, f"{place} ({key})" if key else place)
        made.path, made.line, made.key = path, line, key
        return made

    path: str
    line: int | None  # from 1
    key: str | None  # dotted


class Problem(Exception):  # noqa: N818  # a finding too, which a check collects in a list
    """
    What is wrong, where, and what to do about it: raised, or one of the findings of a check.

    Args:
        message: One line with numbers and units.
        where: The file, a Location in it, or the command-line option; None if there is no place.
        line: Line in the file, from 1.
        key: Key inside of the file, dotted.
        fix: One line that says what the user can do; None if nothing can be said.
        verdict: NOT_JUDGED where nothing can be said of it, which is no less a finding.
    """

    exit_code = 1

    def __init__(
        self,
        message: str,
        where: str | None = None,
        *,
        line: int | None = None,
        key: str | None = None,
        fix: str | None = None,
        verdict: Verdict = Verdict.UNSOUND,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = where.path if isinstance(where, Location) else where or ""
        self.line = line or getattr(where, "line", None)
        self.key = key or getattr(where, "key", None)
        self.fix = fix
        self.verdict = verdict

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((self.message, self.where))

    @property
    def where(self) -> str | None:
        """File with line and key, or option."""
        return None if not self.path else Location(self.path, line=self.line, key=self.key)

    @property
    def told(self) -> str:
        """All of it on one line: where, what, and what to do."""
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.message}" + (f"; {self.fix}" if self.fix else "")

    def to_json(self) -> dict[str, object]:
        """
        The member `error` of an envelope.

        >>> Problem("no turn 7").to_json()
        {'type': 'Problem', 'message': 'no turn 7', 'where': None, 'fix': None}
        """
        return {"type": type(self).__name__, "message": self.message, "where": self.where, "fix": self.fix}

    def finding(self) -> dict[str, object]:
        """A member of `problems` of what a check gives."""
        names = ("path", "message", "line", "key", "fix", "verdict")
        return {name: getattr(self, name) for name in names}


def verdict_of(problems: Iterable[Problem]) -> Verdict:
    """
    What a check says that found these problems.

    >>> str(verdict_of([])), str(verdict_of([Problem("gone", "a.md", verdict=Verdict.NOT_JUDGED)]))
    ('sound', 'not judged')
    """
    found = {problem.verdict for problem in problems}
    return next((one for one in (Verdict.UNSOUND, Verdict.NOT_JUDGED) if one in found), Verdict.SOUND)


class UsageError(Problem):
    exit_code = 2


class SettingError(UsageError): ...


class QueryError(UsageError): ...


class ReadOnlyStoreError(UsageError): ...


class FileFormatError(Problem):
    exit_code = 2


class DocumentError(FileFormatError): ...


class ImportFileError(FileFormatError): ...


class RecipeError(FileFormatError): ...


class RecipeNotFoundError(RecipeError): ...


class RecipeKeyError(RecipeError): ...


class RecipeBudgetError(RecipeError): ...


class PromptNotFoundError(RecipeError): ...


class RecipeSchemaError(RecipeError): ...


class ModelFileError(FileFormatError): ...


class NotFoundError(Problem):
    exit_code = 2


class CheckError(Problem):
    exit_code = 3


class LimitError(Problem):
    exit_code = 4


class HaltError(Problem):
    """
    A turn cannot go on.

    Args:
        message: As in Problem; so are where, line, key and fix.
        kind: Short machine-readable type of the intervention, e.g. "memory_error".
        expected: What should have been there.
        received: What came instead; raw model output where there is any.
        details: Further values for the intervention file.
    """

    exit_code = 20
    kind = "halt"

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        line: int | None = None,
        key: str | None = None,
        fix: str | None = None,
        expected: str | None = None,
        received: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, where, line=line, key=key, fix=fix)
        self.expected = expected
        self.received = received
        self.details = dict(details or {})


class BudgetExceededError(HaltError):
    kind = "budget_exceeded"


class ReplyError(HaltError):
    kind = "invalid_reply"


class ModelTimeoutError(HaltError):
    kind = "model_timeout"


class MemoryNodeError(HaltError):
    kind = "memory_error"


class GateError(HaltError):
    kind = "quality_gate"


class NotApprovedError(Problem):
    exit_code = 22


class StoreError(Problem):
    exit_code = 74


class UntrustedError(StoreError):
    exit_code = 2


class WebError(Problem):
    exit_code = 74


class TryAgainError(Problem):
    exit_code = 75


class LockHeldError(TryAgainError): ...


class ModelAwayError(TryAgainError): ...


class SignalError(Problem):
    exit_code = 130


class BugError(Problem):
    exit_code = 1
