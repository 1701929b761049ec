"""Which lines, keys and values of a document tell of an error, and which of these say the same."""

import re

from panda.language.patterns import lazy_pattern

ERROR_LINE = lazy_pattern(
    r"""(?:[\w.]*\.)?(?:[A-Z]\w*(?:Error|Exception)|KeyboardInterrupt)\b(?:\s*:|\s*$)   # ValueError: …
      | (?i:(?<![\w-])(?:fatal|errors?|panic|failure|fehler|erreur|ошибка)(?:\s?\[\w+\])?[`*"]{0,3}\s?:)
      | (?:错误|エラー)\s?[:：]
      | npm[ ](?:ERR!|error)
      | ^E[ ]{2,}\S
      | (?<![\w-])(?:ERROR|FATAL|CRITICAL|FAILED|PANIC)(?![\w-])
      | (?i:\b(?:exit[ _](?:code|status)|errno)["']?[:=\s]{1,3}["']?[1-9]\d*\b)
      | (?i:\bstatus["']?[:=\s]{1,3}["']?(?:error|failed|[45]\d\d)\b)
      | (?i:\b(?:build|job|tests?|command|step|subcommand)[ ]failed\b)
      | (?i:^\S*:\d+(?::\d+)?:[ ](?:fatal[ ])?error:)
      | \*\*\*\s.*\bError[ ]\d""",
    re.VERBOSE,
)
HTTP_ERROR = lazy_pattern(r"\bHTTP(?:/\d(?:\.\d)?)?[ ](?:status[ ])?[45]\d\d\b")
"""What a server refused, wherever a sentence says it."""
ERROR_KEYS = frozenset(["stderr", "exception", "traceback", "failure", "failures", "panic"])
"""Keys whose values tell of an error, beside all that end in "error" or "errors"."""
NO_ERROR = ("null", "false", "[]", "{}", "", "0", "ok")
_LEVEL = lazy_pattern(
    r"\A(?:(?P<still>[IWD])|[EF])\d{4} \d\d:\d\d:\d\d"
    r"|(?<![\w-])(?P<quiet>TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?)(?![\w-])|(?<![\w-])(?:ERROR|FATAL|CRITICAL)(?![\w-])"
    r"|\"?(?:level|severity|lvl)\"?\s*[:=]\s*\"?(?:(?P<calm>trace|debug|info|notice|warn(?:ing)?)|(?:error|fatal|critical))\b"
)
_LEVEL_CHARS = 200
_VALUE = lazy_pattern(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")


def is_error_level(text: str) -> bool | None:
    """
    Return whether the level that a line of a log names is that of an error; None if it names none.

    >>> is_error_level("12:00 ERROR disk full"), is_error_level('{"level": "info"}'), is_error_level("None")
    (True, False, None)
    """
    match = _LEVEL.search(text, 0, _LEVEL_CHARS)
    return None if match is None else not (match["quiet"] or match["calm"] or match["still"])


def is_error_key(key: str) -> bool:
    """Return whether what stands below a key of a JSON document tells of an error."""
    name = key.lower().replace("-", "_")
    return name in ERROR_KEYS or name.endswith(("error", "errors", "error_message"))


def mask_values(text: str) -> str:
    """
    Return a message without its numbers, by which two that differ in these alone are the same.

    >>> mask_values("order 17 of 0xffee01 refused")
    'order # of # refused'
    """
    return " ".join(_VALUE.sub("#", text).split())
