"""YAML files of recipes: plain values without aliases or doubled keys; faults name their place."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from msgspec import Meta

from panda.documents.yaml_text import YamlTextError, parse_yaml
from panda.errors import FileFormatError, Location, RecipeError, RecipeKeyError
from panda.store.files import read_text

_T = TypeVar("_T")
_NONE: Mapping[str, object] = {}


def load_yaml(path: Path) -> tuple[object, str]:
    """
    What a YAML file says, and its text; dates in it become text.

    Raises:
        RecipeError: It is not YAML, not UTF-8, holds more than plain values, or has an alias or a doubled
            key; `where` has the line.
        StoreError: It cannot be read.
    """
    text = read_own_text(path)
    return parse_yaml_text(text, path=path), text


def read_own_text(path: Path) -> str:
    """Text of a recipe or prompt file; RecipeError: it is not UTF-8; StoreError: it cannot be read."""
    try:
        return read_text(path)
    except FileFormatError as exc:
        raise RecipeError(exc.message, exc.path, line=exc.line, fix=exc.fix) from exc


def parse_yaml_text(text: str, *, path: Path) -> object:
    """
    What a YAML text says (RecipeError as load_yaml).

    >>> parse_yaml_text("a: [1, x]", path=Path("r.yaml"))
    {'a': [1, 'x']}
    """
    try:
        return parse_yaml(text)
    except YamlTextError as exc:
        fix = "correct the line" if exc.line else "correct the file"
        raise RecipeError(str(exc), str(path), line=exc.line, fix=fix) from exc


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

    path: Path  # the file
    prefix: str = ""  # dotted key of the mapping; "" at the top
    report: Report = raise_fault  # takes the faults

    def place(self, key: str) -> str:
        """File and dotted key, for an error's `where:` line."""
        return Location(self.path, key=self._dotted(key) or "top level")

    def fail(self, key: str, message: str, fix: str | None = None) -> None:
        """Report a fault of one key."""
        self.report(RecipeKeyError(message, where=self.place(key), fix=fix))

    def at(self, key: str) -> "TypedReader":
        """The reader of what stands under a key."""
        return replace(self, prefix=self._dotted(key))

    def record(
        self,
        cls: type[_T],
        value: object,
        *,
        own: Mapping[str, object] = _NONE,
        read: Mapping[str, object] = _NONE,
    ) -> _T:
        """
        A dataclass out of a mapping: types and bounds of its fields say what the keys may hold.

        Args:
            value: Keys are the fields' names; one with a default may be missing.
            own: Fields that have no key.
            read: Fields whose keys the caller has read.
        """
        found, given = {**own, **read}, self.mapping(value)
        keyed = [(field, key) for field, key in _keyed(cast(Any, cls)) if field.name not in own]
        required = [key for field, key in keyed if field.default is MISSING is field.default_factory]
        self.check_keys(given, [key for _, key in keyed], required)
        for field, key in keyed:
            if field.name not in found and (key in given or key in required):
                reader = self if key in given else replace(self, report=lambda fault: None)
                found[field.name] = reader._value(field.type, given.get(key), key)
        return cls(**found)

    def mapping(self, value: object, key: str = "") -> dict[str, Any]:
        """A mapping with texts as keys."""
        fits = isinstance(value, dict) and all(isinstance(name, str) for name in value)
        return cast(dict[str, Any], self._typed(value, key, "a mapping", fits, {}))

    def mappings(self, value: object, key: str) -> list[dict[str, Any]]:
        """A list of mappings."""
        items = self._typed(value, key, "a list", isinstance(value, list), [])
        return [self.mapping(item, f"{key}[{n}]") for n, item in enumerate(items)]

    def strings(self, value: object, key: str) -> tuple[str, ...]:
        """A list of texts."""
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return tuple(self._typed(value, key, "a list of texts", fits, []))

    def one_of(self, value: object, key: str, allowed: Sequence[str]) -> str:
        """One of some texts."""
        if not isinstance(value, str) or value not in allowed:
            near = get_close_matches(str(value).casefold(), [name.casefold() for name in allowed], n=1)
            meant = next((name for name in allowed if near and name.casefold() == near[0]), None)
            fix = f"did you mean {meant}?" if meant else f"use one of {', '.join(allowed)}"
            self.fail(key, f"{key.rpartition('.')[2]} is {value!r:.60}", fix)
            return allowed[0]
        return value

    def check_keys(
        self, values: Mapping[str, object], known: Sequence[str], required: Sequence[str] = ()
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

    def _value(self, kind: Any, value: Any, key: str) -> Any:
        """The value of a field of that type."""
        origin, inner = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType):  # X | None
            return None if value is None else self._value(inner[0], value, key)
        if origin is Literal:
            return self.one_of(value, key, inner)
        if origin is tuple:
            return self.strings(value, key)
        if origin is Mapping:
            parts = self.mapping(value, key)
            return {name: self._value(inner[1], part, f"{key}.{name}") for name, part in parts.items()}
        if is_dataclass(kind):
            return self.at(key).record(cast(type, kind), value)
        bounds = inner[1] if origin is Annotated else Meta()
        kind = inner[0] if origin is Annotated else kind
        if kind is str:
            return self._typed(value, key, "a text", isinstance(value, str) and value.strip() != "", "")
        if kind is bool:
            return self._typed(value, key, "true or false", isinstance(value, bool), False)
        if kind is int:
            least = int(bounds.ge or 0)
            fits = isinstance(value, int) and not isinstance(value, bool) and value >= least
            return self._typed(value, key, f"a whole number of at least {least}", fits, least)
        if kind is float:
            low, high = (-math.inf if bounds.ge is None else bounds.ge), (bounds.le or math.inf)
            fits = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
            wanted = "a number" if bounds.le is None else f"a number from {low:g} to {high:g}"
            return float(self._typed(value, key, wanted, fits and math.isfinite(value), 0.0))
        return value

    def _typed(self, value: object, key: str, wanted: str, fits: bool, empty: object) -> Any:
        if not fits:
            self.fail(key, f"{key or self.prefix or 'the file'} must be {wanted}, but is {value!r:.60}")
            return empty
        return value

    def _dotted(self, key: str) -> str:
        return ".".join(part for part in (self.prefix, key) if part)


@cache
def _keyed(cls: Any) -> list[tuple[Field[Any], str]]:
    """The fields of a dataclass, each with its key."""
    return [(field, field.name.rstrip("_")) for field in fields(cls)]
