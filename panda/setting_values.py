"""What each setting may be: from what somebody gave to its value."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from panda.documents.times import parse_time
from panda.errors import SettingError, UsageError
from panda.storage.names import check_id


@dataclass(frozen=True)
class Given:
    """A value as somebody gave it."""

    value: object
    """As it stands in the flag, variable or file."""
    origin: str
    """Flag, variable or file."""
    where: str
    """For an error: file with key, or as *origin*."""
    directory: Path
    """What a relative path is relative to."""


def _wrong(given: Given, wanted: str) -> SettingError:
    return SettingError(f"{str(given.value)[:80]!r} is not {wanted}", where=given.where, fix=f"give {wanted}")


def _path(given: Given, environ: Mapping[str, str]) -> Path:
    text = str(given.value) if isinstance(given.value, str | Path) else ""
    if not text or "\0" in text:
        raise _wrong(given, "a path")
    if text == "~" or text.startswith("~/"):
        return Path(environ.get("HOME") or "/") / text[2:]
    return given.directory / text


def _identifier(what: str) -> Callable[[Given, Mapping[str, str]], str]:
    def check(given: Given, environ: Mapping[str, str]) -> str:
        if not isinstance(given.value, str):
            raise _wrong(given, f"a {what} id")
        try:
            return check_id(given.value, what=what)
        except UsageError as exc:
            raise SettingError(exc.message, where=given.where, fix=exc.fix) from exc

    return check


def _now(given: Given, environ: Mapping[str, str]) -> datetime:
    try:
        if isinstance(given.value, datetime):
            return parse_time(given.value.isoformat())
        return parse_time(given.value if isinstance(given.value, str) else "")
    except ValueError as exc:
        raise _wrong(given, "a time such as 2026-01-04T14:30:00Z") from exc


def _seed(given: Given, environ: Mapping[str, str]) -> int:
    try:
        number = given.value if type(given.value) is int else int(str(given.value))
    except ValueError as exc:
        raise _wrong(given, "a whole number from 0 to 4294967295") from exc
    if not 0 <= number < 2**32:
        raise _wrong(given, "a whole number from 0 to 4294967295")
    return number


def _number(
    what: str, *, most: float = float("inf"), whole: bool = True
) -> Callable[[Given, Mapping[str, str]], float]:
    """A check for a number from 0 to *most*."""

    def check(given: Given, environ: Mapping[str, str]) -> float:
        try:
            number = int(str(given.value)) if whole else float(str(given.value))
        except ValueError as exc:
            raise _wrong(given, what) from exc
        if not 0 <= number <= most or number == float("inf"):
            raise _wrong(given, what)
        return number

    return check


def check_flag(given: Given, environ: Mapping[str, str]) -> bool:
    """True or false, as files and variables say it (SettingError for anything else)."""
    values = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False}
    found = {**values, "no": False}.get(str(given.value).lower())
    if found is None:
        raise _wrong(given, "true or false")
    return found


_seconds = _number("a number of seconds, 0 or more", whole=False)


def _limit(given: Given, environ: Mapping[str, str]) -> float:
    seconds = _seconds(given, environ)
    if seconds == 0:
        raise _wrong(given, "a number of seconds above 0")
    return seconds


def _commands(given: Given, environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Commands by name; each a list of words, or one line as a shell would split it. No shell runs it."""
    wanted = 'a table of commands, such as [test_commands] with unit = "python -m pytest -q"'
    table = given.value if isinstance(given.value, dict) else {"": None}
    commands = {}
    for name, value in table.items():
        try:
            words = shlex.split(value) if isinstance(value, str) else value
        except ValueError as exc:
            raise _wrong(given, wanted) from exc
        if not isinstance(words, list) or not words or not all(isinstance(one, str) for one in words):
            raise _wrong(given, wanted)
        commands[name] = tuple(words)
    return commands


def _layer(given: Given, environ: Mapping[str, str]) -> str:
    from panda.models.models_file import LAYERS  # only if it is wanted: it loads yaml, and help must not

    if given.value not in LAYERS:
        raise _wrong(given, f"a layer: {', '.join(LAYERS)}")
    return str(given.value)


def _places(given: Given, environ: Mapping[str, str]) -> tuple[str, ...]:
    from panda.web.addresses import parse_places  # only if it is wanted

    try:
        return parse_places(given.value)
    except UsageError as exc:
        raise SettingError(exc.message, where=given.where, fix=exc.fix) from exc


def _search_provider(given: Given, environ: Mapping[str, str]) -> str:
    kind, _, place = str(given.value).partition(":")
    if kind == "file" and place:
        return f"file:{_path(Given(place, given.origin, given.where, given.directory), environ)}"
    if kind == "searxng" and place.startswith(("http://", "https://")):
        return f"searxng:{place}"
    raise _wrong(given, "searxng:URL or file:DIRECTORY")


CHECKS: Mapping[str, Callable[[Given, Mapping[str, str]], object]] = {
    "root": _path,
    "user": _identifier("user"),
    "session": _identifier("session"),
    "now": _now,
    "seed": _seed,
    "wait_seconds": _seconds,
    "models_file": _path,
    "cache_dir": _path,
    "web_allow": _places,
    "web_timeout_seconds": _seconds,
    "search_provider": _search_provider,
    "compression_model_layer": _layer,
    "tool_seconds": _limit,
    "test_seconds": _limit,
    "test_commands": _commands,
    "compression_enabled": check_flag,
    "compression_threshold": _number("a share from 0 to 1, such as 0.9", most=1, whole=False),
    "min_compression_savings": _number("a whole number of tokens, 0 or more"),
    "compression_cache_ttl": _seconds,
    "default_context_budget": _number("a whole number of tokens, 0 or more"),
    "response_token_reserve": _number("a whole number of tokens, 0 or more"),
}
"""Setting to what turns a given value into it, raising SettingError for one that it cannot be."""
