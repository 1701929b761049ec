"""Chat templates of model files: programs of jinja2, which run in a sandbox."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from panda.errors import ModelFileError
from panda.isolation import WorkerLimits, run_isolated

_LIMITS = WorkerLimits(seconds=10.0, memory_bytes=1_000_000_000)
MAX_CHARS = 1_000_000
"""Longest text that a template may write around the messages."""
_FIXED_DATE = datetime(2024, 7, 26)
"""The date that templates write by default; today's would change the text of the same messages."""
TEMPLATE_FIX = "use a model whose template knows system, user and assistant messages"


def mark_of(number: int) -> str:
    """Return what a template sees in place of the content of a message."""
    return f"\ue000{number}\ue001"


@lru_cache(maxsize=64)
def render_isolated(template: str, roles: tuple[str, ...], bos: str, eos: str, *, where: str) -> str:
    """As render_template, in a worker with a deadline: a template of somebody else may loop for ever."""
    call = partial(render_template, template, roles, bos, eos, where=where)
    return run_isolated(call, limits=_LIMITS, where=where, error=ModelFileError, fix=TEMPLATE_FIX)


def render_template(template: str, roles: Sequence[str], bos: str, eos: str, *, where: str) -> str:
    """
    Return a chat of messages with these roles as the template writes it, a mark for the content of each.

    Raises:
        ModelFileError: The template is none, fails or writes too much.
    """
    import jinja2

    try:
        text: str = _compile(template).render(
            messages=[{"role": role, "content": mark_of(number)} for number, role in enumerate(roles)],
            add_generation_prompt=True,
            bos_token=bos,
            eos_token=eos,
            strftime_now=_FIXED_DATE.strftime,
            raise_exception=_refuse,
        )
    except jinja2.TemplateSyntaxError as exc:
        message = f"the chat template of the model file cannot be read: {exc}"
        raise ModelFileError(message, where, fix="use another model file") from exc
    except (jinja2.TemplateError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as exc:
        message = f"the chat template of the model file fails: {exc}"[:500]
        raise ModelFileError(message, where, fix=TEMPLATE_FIX) from exc
    if len(text) > MAX_CHARS:
        message = (
            f"the chat template of the model file writes {len(text):,} characters, more than {MAX_CHARS:,}"
        )
        raise ModelFileError(message, where, fix=TEMPLATE_FIX)
    return text


def _refuse(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)


@lru_cache(maxsize=8)
def _compile(template: str) -> Any:
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "extensions": [loopcontrols]}
    return ImmutableSandboxedEnvironment(**options).from_string(template)
