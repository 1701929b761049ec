"""memory.create: stages what the user said; phase 7 writes it once the turn is approved."""

from collections.abc import Mapping
from typing import Any

from panda.documents.sentences import one_line
from panda.errors import UsageError
from panda.memory.keys import memory_key
from panda.memory.staging import Kind as MemoryKind
from panda.memory.staging import Value, stage_value
from panda.tools.contract import Entity, Kind, ToolClaim, ToolContext, ToolResult


class MemoryCreate:
    """Stages one preference or fact in its result; writes nothing itself."""

    name = "memory.create"
    kind: Kind = "write"
    description = "Remember a preference or fact that the user states in this turn."
    argument_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "kind": {"enum": ["preference", "fact"]},
            "relation": {"type": "string", "minLength": 1, "maxLength": 100, "pattern": "\\S"},
            "value": {
                "oneOf": [
                    {"type": ["string", "number", "boolean", "null"]},
                    {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}},
                ]
            },
            "text": {"type": "string", "minLength": 1, "pattern": "\\S"},
            "entity": {"type": "string", "minLength": 1, "maxLength": 100, "pattern": "\\S"},
        },
        "required": ["kind", "relation", "value", "text"],
        "additionalProperties": False,
    }
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {"staged": {"type": "object"}},
        "required": ["staged"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """The staged value as staged_memory.json holds it; only what stands in the query can be staged."""
        kind: MemoryKind = arguments["kind"]
        raw = arguments["value"]
        value: Value = tuple(raw) if isinstance(raw, list) else raw
        if one_line(arguments["text"]) not in one_line(context.query):
            raise UsageError(
                "the text is not part of the user's query; only what the user says is remembered"
            )
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, str) and one_line(part).lower() not in one_line(context.query).lower():
                raise UsageError(f"the value {part!r} does not stand in the user's query")
        entity = arguments.get("entity")
        if entity is not None and one_line(entity).lower() not in one_line(context.query).lower():
            raise UsageError(f"the entity {entity!r} does not stand in the user's query")
        if entity is not None and kind == "preference":
            raise UsageError("a preference is the user's own", fix="use the kind fact for anybody else")
        staged = stage_value(
            user=context.user,
            kind=kind,
            relation=arguments["relation"],
            value=value,
            text=arguments["text"],
            source_turn=context.turn,
            entity=entity,
        )
        claim = ToolClaim(staged.text, None, "§0.raw_query", None)
        prefix = "memory" if kind == "preference" else "fact"
        key = memory_key(staged.entity, staged.relation, context.user)
        made = Entity(f"{prefix}:{key}", kind, key, "create")
        return ToolResult("success", data={"staged": staged.to_json()}, claims=(claim,), entities=(made,))
