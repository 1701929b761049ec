"""Rules of the offline responder that can be switched off, to measure what each earns."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from unittest.mock import patch

from panda.phases.statements import Since

_Replacement = Callable[..., object]


def _nothing(*_: object, **__: object) -> None:
    return None


def _no(*_: object, **__: object) -> bool:
    return False


RULES: Mapping[str, tuple[str, _Replacement]] = {
    "tables": ("panda.phases.quotation.answer_from_tables", _nothing),
    "rows-shown": ("panda.phases.table_answer._answer_from_shown", _nothing),
    "columns-counted": ("panda.retrieval.table_questions._counts_values", _no),
    "lists": ("panda.phases.synthesizer.session_answer", _nothing),
    "by-value": ("panda.phases.quotation.asks_by_value", _no),
    "closest-items": ("panda.phases.quotation.closest_items", lambda passage: passage.lines),
    "fewer-words": ("panda.retrieval.selection._has_fewer_words", _no),
    "told-since": ("panda.phases.quotation.told_since", lambda turn, lines, *_: Since(tuple(lines), {})),
    "likeliest": ("panda.session.message._likeliest", lambda message, ways: ways[0]),
    "asked-anew": ("panda.session.message.ask_anew", _nothing),
    "small-talk": ("panda.session.message._is_only_talk", _no),
    "whole-names": ("panda.retrieval.passages._needs_itself", _no),
    "needs-tools": ("panda.offline.planning._needs_tools", _no),
    "asks-back": ("panda.offline.clarity.content_stems", lambda query: {query}),
}
"""By its name the function that carries a rule out, and what stands in for it without the rule."""


@contextmanager
def without(rule: str | None) -> Iterator[None]:
    """Switch a rule off for the block; None leaves all on. An unknown function is an AttributeError."""
    if rule is None:
        yield
        return
    path, replacement = RULES[rule]
    module, _, name = path.rpartition(".")
    with patch.object(import_module(module), name, replacement):
        yield
