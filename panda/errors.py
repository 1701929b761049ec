"""Every exception of panda, in one tree. Constructors never print; bugs stay ordinary exceptions."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What a check says of what it was given."""

    SOUND = "sound"  # looked at, and nothing is wrong
    UNSOUND = "unsound"  # looked at, and something is wrong
    NOT_JUDGED = "not judged"
    """Not looked at: it is not there, does not read, is not finished, or what it is judged by has changed."""


class Location(str):
    """
    Where something is wrong in a file, as text on one line; *path* may have a line or key already.

    >>> Location(Location("a/b.yaml", line=7), key="x.y")
    'a/b.yaml:7 (x.y)'
    """

    def __new__(cls, path: object, *, line: int | None = None, key: str | None = None) -> "Location":
        line, outer = line or getattr(path, "line", None), getattr(path, "key", None)
        key = f"{outer}.{key}" if outer and key else key or outer
        path = str(getattr(path, "path", path))
        place = f"{path}:{line}" if line else path
        location = super().__new__(cls, f"{place} ({key})" if key else place)
        location.path = path
        location.line = line
        location.key = key
        return location

    path: str
    line: int | None  # from 1
    key: str | None  # dotted


class Problem(Exception):  # noqa: N818  # a finding too, which a check collects in a list
    """
    What is wrong, where, and what to do about it: raised, or one of the findings of a check.

    Args:
        message: One line with numbers and units.
        where: The file, a Location in it, or the command-line option.
        line: From 1.
        key: Dotted.
        fix: One line that says what the user can do.
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
        self.fix = fix
        self.verdict = verdict
        self.path = where.path if isinstance(where, Location) else where or ""
        self.line = line or getattr(where, "line", None)
        self.key = key or getattr(where, "key", None)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((self.message, self.where))

    @property
    def where(self) -> str | None:
        """File with line and key, or option."""
        return Location(self.path, line=self.line, key=self.key) if self.path else None

    @property
    def told(self) -> str:
        """All of it on one line."""
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.message}" + (f"; {self.fix}" if self.fix else "")

    def to_json(self) -> dict[str, object]:
        """The member `error` of an envelope."""
        return {"type": type(self).__name__, "message": self.message, "where": self.where, "fix": self.fix}

    def finding(self) -> dict[str, object]:
        """A member of `problems` of what a check gives."""
        names = ("path", "message", "line", "key", "fix", "verdict")
        return {name: getattr(self, name) for name in names}


def verdict_of(problems: Iterable[Problem]) -> Verdict:
    """Return the verdict of a check that found these problems."""
    verdicts = {problem.verdict for problem in problems}
    return next((v for v in (Verdict.UNSOUND, Verdict.NOT_JUDGED) if v in verdicts), Verdict.SOUND)


class UsageError(Problem):  # a command line, query or setting that cannot be used
    exit_code = 2


class SettingError(UsageError): ...  # a value in a flag, the environment, panda.toml or the user file


class QueryError(UsageError): ...  # a query that cannot start a turn


class AddonError(UsageError): ...  # an add-on that cannot be loaded, or adds what is there already


class ReadOnlyStoreError(UsageError): ...  # a writing command on the demo store of the checkout


class FileFormatError(Problem):  # a file that is there but does not say what it must
    exit_code = 2


class DocumentError(FileFormatError): ...  # context.md and other marked-up documents


class NoteFormatError(FileFormatError): ...  # what of a note is read as text, or skipped as no text


class ImportFileError(FileFormatError): ...  # a line of an import file


class RecipeError(FileFormatError): ...  # a recipe, prompt or registry entry


class RecipeNotFoundError(RecipeError): ...  # no recipe of that name


class RecipeKeyError(RecipeError): ...  # an unknown, missing or wrong key


class RecipeBudgetError(RecipeError): ...  # token budgets that do not add up or do not fit the layer


class PromptNotFoundError(RecipeError): ...  # a prompt file that is not there


class RecipeSchemaError(RecipeError): ...  # an output schema that does not compile to a grammar


class SchemaError(FileFormatError): ...  # a JSON Schema that no value can be judged by


class ModelFileError(FileFormatError): ...  # models.yaml, or a GGUF that cannot be loaded


class ObsoleteKeyError(ModelFileError): ...  # keys of models.yaml that have no effect any more


class NotFoundError(Problem):  # a turn, node or session that does not exist
    exit_code = 2


class CheckError(Problem):  # a check found something
    exit_code = 3


class LimitError(Problem):  # the limit given cannot be met
    exit_code = 4


class HaltError(Problem):
    """
    A turn cannot go on; becomes an intervention file.

    Args:
        received: What came instead of what was expected; raw model output where there is any.
        details: Further values for the intervention file.
        place: where, line, key and fix of a Problem.
    """

    exit_code = 20
    kind = "halt"  # type of the intervention

    def __init__(
        self,
        message: str,
        *,
        expected: str | None = None,
        received: str | None = None,
        details: Mapping[str, object] | None = None,
        **place: Any,
    ) -> None:
        super().__init__(message, **place)
        self.expected = expected
        self.received = received
        self.details = dict(details or {})


class BudgetExceededError(HaltError):  # protected text alone does not fit
    kind = "budget_exceeded"


class ReplyError(HaltError):  # a model's reply stayed invalid after all retries
    kind = "invalid_reply"


class ModelTimeoutError(HaltError):  # a model call took longer than its recipe allows
    kind = "model_timeout"


class ServerTimeoutError(ModelTimeoutError):  # a model server was too slow, and may be faster later
    exit_code = 75


class ContextWindowError(HaltError):  # a server says, or shows, that a prompt is longer than its window
    kind = "context_window"


class MemoryNodeError(HaltError):  # a planned document is missing or corrupt
    kind = "memory_error"


class GateError(HaltError):  # a quality gate of a recipe halts the turn
    kind = "quality_gate"


class NotApprovedError(Problem):  # an answer was made, but it may not be shown
    exit_code = 22


class StoreError(Problem):  # a file cannot be read or written
    exit_code = 74


class UntrustedError(StoreError):  # a project's file or a link that reaches out, before `panda trust`
    exit_code = 2


class WebError(Problem):  # a web page or a search on the web cannot be had
    exit_code = 74


class TryAgainError(Problem):  # something is held or away; the same command may work later
    exit_code = 75


class LockHeldError(TryAgainError): ...  # another process holds the lock


class ModelAwayError(TryAgainError): ...  # a model server does not answer


class SignalError(Problem):  # a signal ended the command, 143 if it was SIGTERM
    exit_code = 130


class BugError(Problem): ...  # made of an exception that nobody expected, at the command boundary
