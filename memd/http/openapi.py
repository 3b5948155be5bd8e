"""The OpenAPI document, made from the table of operations and from the checks themselves, so that it cannot drift."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson

from memd import __version__
from memd.config import ApplySettings, Settings
from memd.http import schemas
from memd.http.endpoint import Operation
from memd.http.inputs import FACT_ID_SCHEMA, RECEIPT_SCHEMA, Input
from memd.http.problems import MEDIA_TYPE

_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_REFUSALS = {
    400: "No JSON, or no HTTP, that memd reads",
    401: "No valid token",
    403: "The token has not the scope that this takes",
    404: "Not there, or not for this token",
    405: "Not with this method",
    408: "The body took too long to arrive",
    409: "Somebody else changed the memory at the same time",
    413: "Too long",
    415: "Not JSON as it is",
    421: "Not for this Host",
    422: "Read, and refused for what it says",
    431: "The head of the request is too long",
    500: "A document is damaged, or memd is at fault",
    503: "Not now: the inbox or the file system is out of reach or full, or it took too long; ask again",
}
_ALWAYS = (400, 405, 421, 422, 431, 500, 503)
_IN_PATHS = {"receipt_id": RECEIPT_SCHEMA, "fact_id": FACT_ID_SCHEMA}
_ETAG = {"description": "The version of what was read.", "schema": {"type": "string"}}


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
            "description": "The memory daemon for LLM agents. Every request may be sent again when its answer is lost.",
        },
        "paths": paths,
        "components": {
            "schemas": parts,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "memd token add"}},
        },
    }
    return orjson.dumps(tree, option=orjson.OPT_INDENT_2)


def _operation(operation: Operation, settings: Settings, parts: dict[str, Any]) -> dict[str, Any]:
    refusals = {*_ALWAYS, *operation.refusals, *(_of_body(operation)), *(_of_token(operation))}
    tree: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation), *_query_parameters(operation.query, parts)],
        "responses": {
            **{str(status): _answer(status, kind, operation, parts) for status, kind in operation.answers.items()},
            **({"304": {"description": "Nothing has changed", "headers": {"ETag": _ETAG}}} if operation.etag else {}),
            **{str(status): _refusal(status) for status in sorted(refusals)},
        },
    }
    if operation.about:
        tree["description"] = operation.about
    if operation.scope is not None:
        tree["description"] = f"{operation.about} Scope: {operation.scope}.".strip()
        # Where no tokens are configured none is asked for; the requirement is then empty.
        tree["security"] = [{"token": []}] if settings.http.tokens is not None else []
    if operation.body is not None:
        schema = _body(operation.body, settings, parts)
        tree["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return tree


def _of_body(operation: Operation) -> tuple[int, ...]:
    return (408, 413, 415) if operation.body is not None else ()


def _of_token(operation: Operation) -> tuple[int, ...]:
    return (401, 403, 404) if operation.scope is not None else ()


def _answer(status: int, kind: Any, operation: Operation, parts: dict[str, Any]) -> dict[str, Any]:
    if kind is None:
        return {"description": HTTPStatus(status).phrase}
    if isinstance(kind, str):
        content = {kind: {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": _lifted(schemas.of(kind), parts)}}
    answer: dict[str, Any] = {"description": HTTPStatus(status).phrase, "content": content}
    if operation.etag:
        answer["headers"] = {"ETag": _ETAG}
    return answer


def _refusal(status: int) -> dict[str, Any]:
    return {"description": _REFUSALS[status], "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": _IN_PATHS[name]} for name in names]


def _query_parameters(model: type[Input], parts: dict[str, Any]) -> list[dict[str, Any]]:
    schema = _lifted(model.model_json_schema(ref_template="#/components/schemas/{model}"), parts)
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(field)}
        for name, field in schema.get("properties", {}).items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query has no null: it leaves the field out."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name not in {"anyOf", "default"} or value is not None}
    rest.pop("anyOf", None)
    if not kinds:
        return rest
    return {**kinds[0], **rest} if len(kinds) == 1 else {"anyOf": kinds, **rest}


def _body(kind: Any, settings: Settings, parts: dict[str, Any]) -> dict[str, Any]:
    if issubclass(kind, Input):
        schema = _lifted(kind.model_json_schema(ref_template="#/components/schemas/{model}"), parts)
        _put_limits(schema, settings.apply)
        return schema
    return schemas.push(settings)


def _lifted(schema: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """A schema with its definitions put where all can refer to them."""
    parts.update(schema.get("$defs", {}))
    return {name: value for name, value in schema.items() if name != "$defs"}


def _put_limits(schema: Any, settings: ApplySettings) -> None:
    """What the settings say about facts and categories, where these are meant."""
    if isinstance(schema, list):
        for inner in schema:
            _put_limits(inner, settings)
    elif isinstance(schema, dict):
        if schema.get("format") == "memd-category":
            schema["enum"] = list(settings.categories)
        if schema.get("format") == "memd-fact":
            schema |= {"minLength": settings.fact_min_chars, "maxLength": settings.fact_max_chars}
        for inner in schema.values():
            _put_limits(inner, settings)
