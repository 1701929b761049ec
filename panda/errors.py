"""
Every exception of panda, in one tree.

    PandaError                    message, where, fix, exit code
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

from collections.abc import Mapping


class PandaError(Exception):
    """
    What went wrong, where, and what to do about it.

    Args:
        message: One line with numbers and units.
        where: File with line or key, or the command-line option; None if there is no place.
        fix: One line that says what the user can do; None if nothing can be said.
    """

    exit_code = 1

    def __init__(self, message: str, *, where: str | None = None, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.fix = fix

    def to_json(self) -> dict[str, object]:
        """
        The member `error` of an envelope.

        >>> PandaError("no turn 7").to_json()
        {'type': 'PandaError', 'message': 'no turn 7', 'where': None, 'fix': None}
        """
        return {"type": type(self).__name__, "message": self.message, "where": self.where, "fix": self.fix}


class UsageError(PandaError):
    exit_code = 2


class SettingError(UsageError): ...


class QueryError(UsageError): ...


class ReadOnlyStoreError(UsageError): ...


class FileFormatError(PandaError):
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


class NotFoundError(PandaError):
    exit_code = 2


class CheckError(PandaError):
    exit_code = 3


class LimitError(PandaError):
    exit_code = 4


class HaltError(PandaError):
    """
    A turn cannot go on.

    Args:
        message: As in PandaError.
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
        fix: str | None = None,
        expected: str | None = None,
        received: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, where=where, fix=fix)
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


class NotApprovedError(PandaError):
    exit_code = 22


class StoreError(PandaError):
    exit_code = 74


class UntrustedError(StoreError):
    exit_code = 2


class WebError(PandaError):
    exit_code = 74


class TryAgainError(PandaError):
    exit_code = 75


class LockHeldError(TryAgainError): ...


class ModelAwayError(TryAgainError): ...


class SignalError(PandaError):
    exit_code = 130


class BugError(PandaError):
    exit_code = 1
