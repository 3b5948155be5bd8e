"""The OpenAPI document, generated from the table of operations and from the checks, so that it cannot drift."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import orjson

from memd import __version__
from memd.config import ApplySettings, Settings
from memd.http import openapi_schemas as schemas
from memd.http.admin_fields import LETTER_ID_SCHEMA
from memd.http.examples import EXAMPLES, NO_FIELDS, Example
from memd.http.fields import FACT_ID_SCHEMA, RECEIPT_SCHEMA, Fields
from memd.http.operation import Operation
from memd.http.problems import MEDIA_TYPE
from memd.http.push_schema import push
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
_IN_PATHS: dict[str, dict[str, Any]] = {
    "receipt_id": {**RECEIPT_SCHEMA, "description": "`id` of the push's response."},
    "fact_id": {**FACT_ID_SCHEMA, "description": "`id` of the fact."},
    "letter_id": {**LETTER_ID_SCHEMA, "description": "`id` of the letter, from the list."},
}
_ETAG = {"description": "The version of the response.", "schema": {"type": "string"}}


def document(operations: list[Operation], settings: Settings) -> bytes:
    """The document as JSON. `settings`: the limits in force."""
    parts: dict[str, Any] = {}
    _named(schemas.PROBLEM, parts)
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
        "tags": [{"name": name, "description": about} for name, about in dict.fromkeys(one.tag for one in operations)],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(parts.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "memd token add"}},
        },
    }
    return orjson.dumps(tree, option=orjson.OPT_INDENT_2)


def _operation(operation: Operation, settings: Settings, parts: dict[str, Any]) -> dict[str, Any]:
    refusals = {*_ALWAYS, *operation.refusals, *_body_refusals(operation), *_token_refusals(operation)}
    tree: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.tag.name],
        "summary": operation.summary,
        "parameters": list(_with_examples(operation, parts)),
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
        content = {"schema": _body(operation.body, settings, parts), "example": _example(operation).request}
        tree["requestBody"] = {"required": True, "content": {"application/json": content}}
    return tree


def _example(operation: Operation) -> Example:
    return EXAMPLES.get(operation.name, NO_FIELDS)


def _with_examples(operation: Operation, parts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parameters of path and query, each with its value in the operation's example, if it has one there."""
    given = _example(operation).fields
    for parameter in (*_path_parameters(operation), *_query_parameters(operation.query, parts)):
        example = {"example": given[parameter["name"]]} if parameter["name"] in given else {}
        yield {**parameter, **example}


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
        content = {"application/json": {"schema": _named(schemas.of(kind), parts)}}
        if status == next(iter(operation.responses)):
            content["application/json"]["example"] = _example(operation).response
    response: dict[str, Any] = {"description": HTTPStatus(status).phrase, "content": content}
    if operation.etag:
        response["headers"] = {"ETag": _ETAG}
    return response


def _refusal(status: int) -> dict[str, Any]:
    return {"description": _REFUSALS[status], "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, **_told(_IN_PATHS[name])} for name in names]


def _query_parameters(model: type[Fields], parts: dict[str, Any]) -> list[dict[str, Any]]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, **_told(_without_null(_named(field, parts)))}
        for name, field in schema.get("properties", {}).items()
    ]


def _told(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema for a parameter, which has the description in its own place."""
    rest = {name: value for name, value in schema.items() if name not in {"description", "title"}}
    return {**({"description": schema["description"]} if "description" in schema else {}), "schema": rest}


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
        schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
        _put_limits(schema, settings.apply)
    else:
        schema = push(settings)
    found: dict[str, Any] = _named(schema, parts)
    return found


def _named(schema: Any, parts: dict[str, Any]) -> Any:
    """A schema in which a reference stands for each object with a title; the objects move to the shared components.

    Clients make types of them, so a title is a name: unique, and as stable as the operation's.
    """
    if isinstance(schema, list):
        return [_named(inner, parts) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    _named(list(schema.get("$defs", {}).values()), parts)
    found = {key: _named(inner, parts) for key, inner in schema.items() if key != "$defs"}
    if not {"title", "properties"} <= found.keys():
        return found
    name = found["title"]
    if parts.setdefault(name, found) != found:
        raise ValueError(f"two schemas have the title {name}")
    return {"$ref": f"#/components/schemas/{name}"}


def _put_limits(schema: Any, settings: ApplySettings) -> None:
    """Put the limits of the settings where a schema is of a fact or a category."""
    if isinstance(schema, list):
        for inner in schema:
            _put_limits(inner, settings)
    elif isinstance(schema, dict):
        if schema.get("format") == "memd-category":
            others = [name for name in OTHER_NAMES if category_named(name, settings.categories)]
            excluded = schema.get("not", {}).get("const")
            names = dict.fromkeys((*settings.categories, *others))
            schema["enum"] = [name for name in names if name != excluded]
        if schema.get("format") == "memd-fact":
            schema |= {"minLength": -(-settings.fact_min_chars // CJK_CHARS), "maxLength": settings.fact_max_chars}
        for inner in schema.values():
            _put_limits(inner, settings)
