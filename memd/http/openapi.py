"""The OpenAPI document, generated from the table of operations and from the checks, so that it cannot drift."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson

from memd import __version__
from memd.config import ApplySettings, Settings
from memd.http import openapi_schemas as schemas
from memd.http.fields import FACT_ID_SCHEMA, RECEIPT_SCHEMA, Fields
from memd.http.operation import Operation
from memd.http.problems import MEDIA_TYPE
from memd.memory.categories import OTHER_NAMES, category_named
from memd.memory.gates.refusal import CJK_CHARS

_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_REFUSALS = {
    400: "Malformed HTTP or JSON",
    401: "No valid token",
    403: "The token lacks the scope",
    404: "Not found, or not visible to this token",
    405: "This path does not have this method",
    408: "The body took too long to arrive",
    409: "The memory was changed at the same time",
    413: "The body is too long",
    415: "Not plain JSON",
    421: "This Host is not served",
    422: "Valid JSON with invalid content",
    431: "The head of the request is too long",
    500: "A document is damaged, or memd has a bug",
    503: "The inbox or the file system is full or cannot be reached, or it took too long; try again",
}
_ALWAYS = (400, 405, 421, 422, 431, 500, 503)
_IN_PATHS = {"receipt_id": RECEIPT_SCHEMA, "fact_id": FACT_ID_SCHEMA}
_ETAG = {"description": "The version of the response.", "schema": {"type": "string"}}


def document(operations: list[Operation], settings: Settings) -> bytes:
    """The document as JSON. `settings`: the limits in force."""
    parts: dict[str, Any] = {"Problem": schemas.PROBLEM}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, settings, parts)
    tree = {
        "openapi": "3.1.0",
        "info": {
            "title": "memd",
            "version": __version__,
            "description": "The memory daemon for LLM agents. Every request is safe to repeat.",
        },
        "paths": paths,
        "components": {
            "schemas": parts,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "memd token add"}},
        },
    }
    return orjson.dumps(tree, option=orjson.OPT_INDENT_2)


def _operation(operation: Operation, settings: Settings, parts: dict[str, Any]) -> dict[str, Any]:
    refusals = {*_ALWAYS, *operation.refusals, *_body_refusals(operation), *_token_refusals(operation)}
    tree: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation), *_query_parameters(operation.query, parts)],
        "responses": {
            **{str(status): _response(status, kind, operation, parts) for status, kind in operation.responses.items()},
            **({"304": {"description": "Not modified", "headers": {"ETag": _ETAG}}} if operation.etag else {}),
            **{str(status): _refusal(status) for status in sorted(refusals)},
        },
    }
    if operation.description:
        tree["description"] = operation.description
    if operation.scope is not None:
        tree["description"] = f"{operation.description} Scope: {operation.scope}.".strip()
        # Where no tokens are configured, the requirement is empty.
        tree["security"] = [{"token": []}] if settings.http.tokens is not None else []
    if operation.body is not None:
        schema = _body(operation.body, settings, parts)
        tree["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return tree


def _body_refusals(operation: Operation) -> tuple[int, ...]:
    return (408, 413, 415) if operation.body is not None else ()


def _token_refusals(operation: Operation) -> tuple[int, ...]:
    return (401, 403, 404) if operation.scope is not None else ()


def _response(status: int, kind: Any, operation: Operation, parts: dict[str, Any]) -> dict[str, Any]:
    if kind is None:
        return {"description": HTTPStatus(status).phrase}
    if isinstance(kind, str):
        content = {kind: {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": _without_definitions(schemas.of(kind), parts)}}
    response: dict[str, Any] = {"description": HTTPStatus(status).phrase, "content": content}
    if operation.etag:
        response["headers"] = {"ETag": _ETAG}
    return response


def _refusal(status: int) -> dict[str, Any]:
    return {"description": _REFUSALS[status], "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": _IN_PATHS[name]} for name in names]


def _query_parameters(model: type[Fields], parts: dict[str, Any]) -> list[dict[str, Any]]:
    schema = _without_definitions(model.model_json_schema(ref_template="#/components/schemas/{model}"), parts)
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(field)}
        for name, field in schema.get("properties", {}).items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without null: a query leaves an absent field out."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name not in {"anyOf", "default"} or value is not None}
    rest.pop("anyOf", None)
    if not kinds:
        return rest
    return {**kinds[0], **rest} if len(kinds) == 1 else {"anyOf": kinds, **rest}


def _body(kind: Any, settings: Settings, parts: dict[str, Any]) -> dict[str, Any]:
    if issubclass(kind, Fields):
        schema = _without_definitions(kind.model_json_schema(ref_template="#/components/schemas/{model}"), parts)
        _put_limits(schema, settings.apply)
        return schema
    return schemas.push(settings)


def _without_definitions(schema: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """A schema without its definitions, which move to the shared components."""
    parts.update(schema.get("$defs", {}))
    return {name: value for name, value in schema.items() if name != "$defs"}


def _put_limits(schema: Any, settings: ApplySettings) -> None:
    """Put the limits of the settings where a schema is of a fact or a category."""
    if isinstance(schema, list):
        for inner in schema:
            _put_limits(inner, settings)
    elif isinstance(schema, dict):
        if schema.get("format") == "memd-category":
            others = [name for name in OTHER_NAMES if category_named(name, settings.categories)]
            schema["enum"] = list(dict.fromkeys((*settings.categories, *others)))
        if schema.get("format") == "memd-fact":
            schema |= {"minLength": -(-settings.fact_min_chars // CJK_CHARS), "maxLength": settings.fact_max_chars}
        for inner in schema.values():
            _put_limits(inner, settings)
