"""The tool content.generate: a draft in the model's own words, kept verbatim in the turn's directory."""

from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from panda.errors import UsageError
from panda.store.files import write_atomic
from panda.store.records import StepEntity, ToolClaim
from panda.tools.tool_contract import Arguments, ToolContext, ToolResult, tool

_MOST_BYTES = 256 * 1024


class _DraftArguments(Arguments, frozen=True):
    type: Literal["email", "letter", "report", "plan", "list", "post", "text"]
    brief: Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\S")]


class _Draft(TypedDict):
    key: str
    type: str
    brief: str
    characters: int
    cut: bool


@tool(
    "content.generate",
    "generate",
    "Write a draft for the user, such as an email or a plan. Needs a language model.",
    _Draft,
    from_store=True,
)
def generate_content(arguments: _DraftArguments, context: ToolContext) -> ToolResult:
    """The key under which the draft is kept, `t{turn}_s{step}_{type}_{n}`; a draft is no evidence."""
    if context.draft is None or context.folder is None:
        raise UsageError("a draft is written within a turn", fix="ask for it with panda turn")
    text = context.draft(arguments.type, arguments.brief).strip()
    if not text:
        raise UsageError("the model wrote nothing")
    encoded = text.encode("utf-8")
    is_cut = len(encoded) > _MOST_BYTES - 1
    if is_cut:
        mark = f"\n[… cut: {len(encoded):,} bytes were written, {_MOST_BYTES:,} are kept]"
        text = encoded[: _MOST_BYTES - len(mark.encode()) - 1].decode("utf-8", "ignore") + mark
    key = f"t{context.turn}_s{context.step}_{arguments.type}_1"
    path = f"artifacts/{key}.md"
    write_atomic(context.folder / path, text + "\n")
    return ToolResult(
        "success",
        data=_Draft(key=key, type=arguments.type, brief=arguments.brief, characters=len(text), cut=is_cut),
        claims=(ToolClaim(f"a draft was written: {arguments.type} {key}", 1.0, path),),
        entities=(StepEntity(f"content:{key}", arguments.type, key, "create"),),
        artifacts=(path,),
        text=text,
    )
