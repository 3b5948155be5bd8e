"""The page of `/docs`: the OpenAPI document as HTML. One response: no script, no request to anywhere, a closed CSP."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

Tree = dict[str, Any]

MOST_WORDS = 8
"""Values of an enumeration that a cell shows."""

LIMITS = {"minimum": "≥ {}", "maximum": "≤ {}", "maxLength": "at most {} characters", "maxItems": "at most {}"}
"""The limits of a schema, in words."""


class DocsPage:
    """The page of one OpenAPI document, with its headers."""

    def __init__(self, openapi: bytes) -> None:
        templates = Environment(
            loader=PackageLoader("memd.http", "docs"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        templates.filters["code"] = code
        source, *_ = templates.loader.get_source(templates, "docs.css")  # type: ignore[union-attr]  # it has a loader
        style = f"\n{source}"
        self._tree: Tree = orjson.loads(openapi)
        tags = list(self._tags())
        statuses = {
            one["status"]: one["description"] for tag in tags for row in tag["operations"] for one in row["responses"]
        }
        data = {
            "info": self._tree["info"],
            "tags": tags,
            "refusals": sorted((status, words) for status, words in statuses.items() if status >= "4"),
            "style": Markup(style),  # noqa: S704  (our own file)
        }
        self.body = templates.get_template("docs.html").render(data).encode()
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        self.headers: Mapping[str, str] = {
            "cache-control": "no-cache",
            "content-security-policy": f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'",
            "cross-origin-resource-policy": "same-origin",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
        }

    def _tags(self) -> Iterator[Tree]:
        """The groups with their operations, in the order of the document."""
        for tag in self._tree["tags"]:
            rows = [
                self._operation(method, path, operation)
                for path, methods in self._tree["paths"].items()
                for method, operation in methods.items()
                if tag["name"] in operation["tags"]
            ]
            yield {**tag, "anchor": tag["name"].lower().replace(" ", "-"), "operations": rows}

    def _operation(self, method: str, path: str, operation: Tree) -> Tree:
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        return {
            "method": method.upper(),
            "path": path,
            "id": operation["operationId"],
            "summary": operation["summary"],
            "description": operation.get("description", ""),
            "fields": [*self._parameters(operation), *self._body_fields(body)],
            "request": None if body is None else _pretty(body["example"]),
            "responses": [self._response(status, one) for status, one in operation["responses"].items()],
        }

    def _parameters(self, operation: Tree) -> Iterator[Tree]:
        for one in operation["parameters"]:
            told = {**one["schema"], **{name: one[name] for name in ("description",) if name in one}}
            yield self._field(one["name"], one["in"], told, required=one["required"])

    def _body_fields(self, body: Tree | None) -> Iterator[Tree]:
        if body is None:
            return
        schema = self._resolved(body["schema"])
        required = schema.get("required", [])
        for name, one in schema.get("properties", {}).items():
            yield self._field(name, "body", one, required=name in required)

    def _field(self, name: str, place: str, schema: Tree, *, required: bool) -> Tree:
        inner: Tree = next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), {})
        whole = {**inner, **schema}
        told = [words.format(whole[limit]) for limit, words in LIMITS.items() if limit in whole]
        if whole.get("default") not in (None, "", []):
            told.append(f"default {json.dumps(whole['default'])}")
        return {
            "name": name,
            "in": place,
            "kind": self._kind(schema),
            "words": whole.get("description", ""),
            "limits": ", ".join(told),
            "required": required,
        }

    def _response(self, status: str, response: Tree) -> Tree:
        [kind] = response.get("content", {"": {}})
        content = response.get("content", {}).get(kind, {})
        example = _pretty(content["example"]) if content.get("example") is not None else ""
        return {"status": status, "description": response["description"], "kind": kind, "example": example}

    def _kind(self, schema: Tree) -> str:
        """A schema in a few words."""
        schema = self._resolved(schema)
        if "anyOf" in schema:
            shown = (one for one in schema["anyOf"] if one.get("maxLength") != 0 and one.get("type") != "null")
            return " or ".join(dict.fromkeys(map(self._kind, shown)))
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            words = [str(value) for value in schema["enum"]]
            return " | ".join(words[:MOST_WORDS]) + (" | …" if len(words) > MOST_WORDS else "")
        kind = schema.get("type", "any")
        if kind == "array":
            return f"list of {self._kind(schema.get('items', {}))}"
        return schema.get("title", "object") if kind == "object" else str(kind)

    def _resolved(self, schema: Tree) -> Tree:
        """A schema, or the one of the components that it names."""
        name = schema.get("$ref", "").rpartition("/")[2]
        return self._tree["components"]["schemas"][name] if name else schema


def code(words: str) -> Markup:
    """Words with what stands between backticks as code."""
    parts = words.split("`")
    return Markup().join(
        Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(parts)
    )


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
