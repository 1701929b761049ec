"""The model calls of a turn as they are shown: prompts spelt out, options by likelihood."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

from panda.store.records import ChoiceCall, GeneratedCall, MessageRecord, ModelCall, OptionRecord, Prefix

_PROMPT_CHARS = 6_000
_ALL_CHARS = 300_000  # of all prompts of a page together


def show_calls(calls: Sequence[tuple[int, ModelCall]]) -> Iterator[SimpleNamespace]:
    """Calls by the number of their line; a text that stands in an earlier line is spelt out."""
    texts: dict[str, str] = {}
    room = _ALL_CHARS
    for line, call in calls:
        parts: Sequence[Prefix | MessageRecord] = ()
        prompts = []
        options = list[OptionRecord]()
        if isinstance(call, ChoiceCall):
            parts = (call.prefix,)
            options = sorted(call.options, key=lambda option: -option.logprob)
        elif isinstance(call, GeneratedCall):
            parts = call.messages
        for part in parts:
            if part.content and part.sha256:
                texts[part.sha256] = part.content
            text = part.content or texts.get(part.sha256 or "", "")
            excerpt = text[: max(0, min(_PROMPT_CHARS, room))]
            prompts.append((part.role, excerpt, len(text) - len(excerpt)))
        room -= sum(len(excerpt) for _, excerpt, _ in prompts)
        yield SimpleNamespace(line=line, call=call, prompts=prompts, options=options)
