"""Messages → the text and tokens of a model's chat template."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from panda.errors import ModelFileError
from panda.models.contract import Message
from panda.models.llama.weights import Weights

_FIXED_DATE = datetime(2024, 7, 26)
"""The date that templates write by default; today's would change the text of the same messages."""


@dataclass(frozen=True)
class Part:
    """A stretch of a rendered chat."""

    text: str
    """Its text."""
    is_content: bool
    """Whether it is a message's content; only the template's own parts may hold control tokens."""


class RenderedChat(str):
    """A chat as text that still knows its parts, so that its control tokens, and those alone, stay such."""

    parts: Sequence[Part]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> "RenderedChat":
        """The text of all parts."""
        chat = cls("".join(part.text for part in parts))
        chat.parts = parts
        return chat


def render_parts(weights: Weights, messages: Sequence[Message]) -> list[Part]:
    """
    The chat as the template writes it, contents told apart from the template's own text.

    Contents never reach the template: it sees a mark for each, so that no content can forge a control token,
    and the parts up to the last leading system message are the same whatever follows.

    Args:
        weights: Whose template.
        messages: At least one, in order.

    Returns:
        Template text and contents in turn, beginning and ending with template text; 2 * n + 1 parts.

    Raises:
        ModelFileError: The file has no chat template, or the template refuses these messages.
    """
    if weights.chat_template is None:
        raise ModelFileError(
            "the model file has no chat template, so it can score but not reply",
            where=str(weights.path),
            fix="use an instruction-tuned model, or set writes: false in models.yaml",
        )
    marks = [f"\ue000{i}\ue001" for i in range(len(messages))]
    import jinja2

    try:
        text = _compiled(weights.chat_template).render(
            messages=[{"role": m.role, "content": mark} for m, mark in zip(messages, marks, strict=True)],
            add_generation_prompt=True,
            bos_token=_name(weights, weights.bos),
            eos_token=_name(weights, weights.eos),
            strftime_now=_FIXED_DATE.strftime,
            raise_exception=_refuse,
        )
    except jinja2.TemplateError as exc:
        raise ModelFileError(
            f"the chat template of the model file fails: {exc}",
            where=str(weights.path),
            fix="use a model whose template knows system, user and assistant messages",
        ) from exc
    parts: list[Part] = []
    for message, mark in zip(messages, marks, strict=True):
        before, found, text = text.partition(mark)
        if not found or mark in text:
            raise ModelFileError(
                f"the chat template of the model does not write the {message.role} message once, in order",
                where=str(weights.path),
                fix="use a model whose template knows system, user and assistant messages",
            )
        parts += [Part(before, False), Part(message.content, True)]
    return [*parts, Part(text, False)]


def tokenise_parts(weights: Weights, parts: Sequence[Part], *, is_start: bool) -> list[int]:
    """
    Tokens of a stretch of a chat.

    Args:
        weights: Whose tokenizer.
        parts: Tokenised one by one.
        is_start: Whether the chat begins here: then BOS comes first, if the model wants it.
    """
    tokens: list[int] = []
    for part in parts:
        tokens += weights.tokenise(part.text, special=not part.is_content)
    if is_start and weights.adds_bos and tokens[:1] != [weights.bos]:
        tokens.insert(0, weights.bos)
    return tokens


def _name(weights: Weights, token: int) -> str:
    return weights.piece(token, special=True).decode("utf-8", "replace") if token >= 0 else ""


def _refuse(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)


@lru_cache(maxsize=8)
def _compiled(template: str) -> Any:
    from jinja2 import TemplateSyntaxError
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    try:
        return environment.from_string(template)
    except TemplateSyntaxError as exc:
        raise ModelFileError(
            f"the chat template of the model file cannot be read: {exc}", fix="use another model file"
        ) from exc
