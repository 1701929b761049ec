"""content.generate: a draft in the model's own words, kept verbatim in the turn's directory."""

from collections.abc import Mapping
from typing import Any

from panda.errors import UsageError
from panda.storage.files import write_atomic
from panda.tools.contract import Entity, Kind, ToolClaim, ToolContext, ToolResult

_MOST_BYTES = 256 * 1024


class ContentGenerate:
    """Writes a draft into artifacts/ of the turn; a draft is no evidence of anything."""

    name = "content.generate"
    kind: Kind = "generate"
    description = "Write a draft for the user, such as an email or a plan. Needs a model that writes."
    argument_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "type": {"enum": ["email", "letter", "report", "plan", "list", "post", "text"]},
            "brief": {"type": "string", "minLength": 1, "maxLength": 2000, "pattern": "\\S"},
        },
        "required": ["type", "brief"],
        "additionalProperties": False,
    }
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "key": {"type": "string"},
            "type": {"type": "string"},
            "brief": {"type": "string"},
            "characters": {"type": "integer", "minimum": 1},
            "cut": {"type": "boolean"},
        },
        "required": ["key", "type", "brief", "characters", "cut"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """The key under which the draft is kept, `t{turn}_s{step}_{type}_{n}`."""
        if context.draft is None or context.folder is None:
            raise UsageError("a draft is written within a turn", fix="ask for it with panda turn")
        kind = arguments["type"]
        text = context.draft(kind, arguments["brief"]).strip()
        if not text:
            raise UsageError("the model wrote nothing")
        kept = text.encode("utf-8")
        is_cut = len(kept) > _MOST_BYTES - 1
        if is_cut:
            mark = f"\n[… cut: {len(kept):,} bytes were written, {_MOST_BYTES:,} are kept]"
            text = kept[: _MOST_BYTES - len(mark.encode()) - 1].decode("utf-8", "ignore") + mark
        key = f"t{context.turn}_s{context.step}_{kind}_1"
        path = f"artifacts/{key}.md"
        write_atomic(context.folder / path, text + "\n")
        return ToolResult(
            "success",
            data={
                "key": key,
                "type": kind,
                "brief": arguments["brief"],
                "characters": len(text),
                "cut": is_cut,
            },
            claims=(ToolClaim(f"a draft was written: {kind} {key}", 1.0, path, None),),
            entities=(Entity(f"content:{key}", kind, key, "create"),),
            artifacts=(path,),
            text=text,
        )
