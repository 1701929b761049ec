"""The OpenAPI document of `panda serve`. Pure."""

from collections.abc import Mapping
from typing import Any

from panda.memory.scope_facts import SCOPES
from panda.memory.synthesis_request import REQUEST_SCHEMA

_SCALAR: Mapping[str, Any] = {"type": ["string", "number", "boolean", "null"]}
_SHARE: Mapping[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
_COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0}


def _tagged(kinds: list[str], v: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"type": {"enum": kinds}, "v": v},
        "required": ["type", "v"],
        "additionalProperties": False,
    }


_VALUE: Mapping[str, Any] = {
    "oneOf": [
        _tagged(["string", "text", "datetime", "ref"], {"type": "string"}),
        _tagged(["number"], {"type": "number"}),
        _tagged(["boolean"], {"type": "boolean"}),
        _tagged(["list"], {"type": "array", "items": _SCALAR}),
        {
            "type": "object",
            "properties": {"type": {"const": "null"}},
            "required": ["type"],
            "additionalProperties": False,
        },
    ]
}
_ENTRY: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "entity": {"type": "string"},
        "relation": {"type": "string"},
        "scope": {"enum": list(SCOPES)},
        "value": {"$ref": "#/components/schemas/Value"},
        "confidence": _SHARE,
        "hlc": {"type": ["string", "null"]},
        "contradicted": {"type": "boolean"},
        "alt_value": {"$ref": "#/components/schemas/Value"},
        "alt_confidence": _SHARE,
    },
    "required": ["entity", "relation", "scope", "value", "confidence", "hlc", "contradicted"],
    "additionalProperties": False,
}
_ENVELOPE: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "array", "items": {"$ref": "#/components/schemas/Entry"}},
        "synthesized_at": {"type": "string", "format": "date-time"},
        "scope": {"enum": list(SCOPES)},
        "fact_count": _COUNT,
        "contradiction_count": _COUNT,
        "filtered_count": _COUNT,
    },
    "required": [
        "summary",
        "synthesized_at",
        "scope",
        "fact_count",
        "contradiction_count",
        "filtered_count",
    ],
    "additionalProperties": False,
}
_ERROR: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "ok": {"const": False},
        "data": {"type": "null"},
        "error": {
            "type": "object",
            "properties": {
                "type": {"type": "string"},
                "message": {"type": "string"},
                "where": {"type": ["string", "null"]},
                "fix": {"type": ["string", "null"]},
            },
            "required": ["type", "message", "where", "fix"],
            "additionalProperties": False,
        },
    },
    "required": ["ok", "data", "error"],
    "additionalProperties": False,
}
_REFUSALS: Mapping[str, str] = {
    "400": "The request is not what it must be; the error names the field.",
    "401": "The token is missing or wrong.",
    "405": "The path does not know the method.",
    "408": "The request took too long to arrive.",
    "413": "The body is too large.",
    "415": "The body is not called JSON.",
    "421": "The server has another name.",
    "500": "The facts cannot be read.",
    "503": "The answer took too long, or too many ask at once.",
}


def make_openapi(version: str, body_bytes: int, *, token: bool) -> dict[str, Any]:
    """
    The document.

    Args:
        version: Of panda.
        body_bytes: Largest body of a request.
        token: Whether requests need one.

    >>> sorted(make_openapi("1", 10, token=True)["paths"])
    ['/healthz', '/openapi.json', '/v1/synthesis']
    """
    refusals = {
        status: {"description": text, "content": _json({"$ref": "#/components/schemas/Error"})}
        for status, text in _REFUSALS.items()
    }
    open_refusals = {status: refusals[status] for status in ("405", "408", "413", "421")}
    health = {
        "type": "object",
        "properties": {"status": {"const": "ok"}, "version": {"type": "string"}},
        "required": ["status", "version"],
        "additionalProperties": False,
    }
    synthesis = {
        "summary": "What is known now within a scope, contradictions shown with both values.",
        "operationId": "synthesize",
        "requestBody": {
            "required": True,
            "description": f"At most {body_bytes:,} bytes.",
            "content": _json({"$ref": "#/components/schemas/Request"}),
        },
        "responses": {"200": _found("Envelope"), **refusals},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "panda", "version": version, "description": "Scope synthesis."},
        "paths": {
            "/v1/synthesis": {"post": synthesis},
            "/healthz": {
                "get": {
                    "summary": "Whether the server answers.",
                    "operationId": "health",
                    "security": [],
                    "responses": {"200": _answer("It does.", health), **open_refusals},
                }
            },
            "/openapi.json": {
                "get": {
                    "summary": "This document.",
                    "operationId": "describe",
                    "responses": {
                        "200": _answer("The document.", {"type": "object"}),
                        "401": refusals["401"],
                        **open_refusals,
                    },
                }
            },
        },
        "components": {
            "schemas": {
                "Request": REQUEST_SCHEMA,
                "Envelope": _ENVELOPE,
                "Entry": _ENTRY,
                "Value": _VALUE,
                "Error": _ERROR,
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}] if token else [],
    }


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _answer(description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": _json(schema)}


def _found(name: str) -> dict[str, Any]:
    return _answer("The answer.", {"$ref": f"#/components/schemas/{name}"})
