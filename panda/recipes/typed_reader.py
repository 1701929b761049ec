"""Typed values out of parsed YAML, with every fault named by file and key."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from panda.errors import RecipeError, RecipeKeyError

Report = Callable[[RecipeError], None]
"""Takes a fault. It raises, and reading ends; or it notes the fault, and reading goes on with a default."""


def raise_fault(fault: RecipeError) -> None:
    """The report of everybody who only wants a file that is right."""
    raise fault


@dataclass(frozen=True)
class TypedReader:
    """
    Reads one mapping of a file.

    Every method takes a value and the key it stands under and gives the value with its type. A value of
    another type is reported as a RecipeKeyError, and an empty value of the right type comes back.
    """

    path: Path
    """The file."""
    prefix: str
    """Dotted key of the mapping; "" at the top."""
    report: Report = raise_fault
    """Takes the faults."""

    def place(self, key: str) -> str:
        """File and dotted key, for an error's `where:` line."""
        return f"{self.path} ({'.'.join(part for part in (self.prefix, key) if part) or 'top level'})"

    def fail(self, key: str, message: str, fix: str | None = None) -> None:
        """Report a fault of one key."""
        self.report(RecipeKeyError(message, where=self.place(key), fix=fix))

    def mapping(self, value: object, key: str = "") -> dict[str, Any]:
        """A mapping with texts as keys."""
        fits = isinstance(value, dict) and all(isinstance(name, str) for name in value)
        return cast(dict[str, Any], self._typed(value, key, "a mapping", fits, {}))

    def mappings(self, value: object, key: str) -> list[dict[str, Any]]:
        """A list of mappings."""
        items = self._typed(value, key, "a list", isinstance(value, list), [])
        return [self.mapping(item, f"{key}[{n}]") for n, item in enumerate(items)]

    def string(self, value: object, key: str) -> str:
        """A text that is not blank."""
        fits = isinstance(value, str) and value.strip() != ""
        return cast(str, self._typed(value, key, "a text", fits, ""))

    def optional_string(self, value: object, key: str) -> str | None:
        """A text that is not blank, or nothing."""
        return None if value is None else self.string(value, key)

    def strings(self, value: object, key: str) -> tuple[str, ...]:
        """A list of texts."""
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return tuple(self._typed(value, key, "a list of texts", fits, []))

    def boolean(self, value: object, key: str) -> bool:
        """True or false."""
        return cast(bool, self._typed(value, key, "true or false", isinstance(value, bool), False))

    def count(self, value: object, key: str, *, least: int = 0) -> int:
        """A whole number."""
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return cast(int, self._typed(value, key, f"a whole number of at least {least}", fits, least))

    def number(self, value: object, key: str, *, least: float = -1e9, most: float = 1e9) -> float:
        """A number within bounds."""
        fits = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        wanted = "a number" if most >= 1e9 else f"a number from {least:g} to {most:g}"
        found = self._typed(value, key, wanted, fits and math.isfinite(cast(float, value)), 0.0)
        return float(found)

    def one_of(self, value: object, key: str, allowed: tuple[str, ...]) -> str:
        """One of some texts."""
        if not isinstance(value, str) or value not in allowed:
            near = get_close_matches(str(value).casefold(), [name.casefold() for name in allowed], n=1)
            meant = next((name for name in allowed if near and name.casefold() == near[0]), None)
            fix = f"did you mean {meant}?" if meant else f"use one of {', '.join(allowed)}"
            self.fail(key, f"{key.rpartition('.')[2]} is {value!r:.60}", fix)
            return allowed[0]
        return value

    def check_keys(
        self, values: Mapping[str, object], known: tuple[str, ...], required: tuple[str, ...] = ()
    ) -> None:
        """Report every key that is not known, and every required one that is missing."""
        for key in values:
            if key not in known:
                near = get_close_matches(key, known, n=1)
                fix = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
                self.fail(key, f"unknown key {key!r}", fix)
        for key in required:
            if key not in values:
                self.fail(key, f"the key {key!r} is missing", f"add {key}:")

    def _typed(self, value: object, key: str, wanted: str, fits: bool, empty: object) -> Any:
        if not fits:
            self.fail(key, f"{key or 'the file'} must be {wanted}, but is {value!r:.60}")
            return empty
        return value
