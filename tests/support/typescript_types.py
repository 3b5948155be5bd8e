"""TypeScript types of the OpenAPI document, for clients/typescript; `make client-types` writes them.

PYTHONPATH=tests .venv/bin/python -m support.typescript_types           # write
PYTHONPATH=tests .venv/bin/python -m support.typescript_types --check   # exit code 1 when a file is not up to date
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memd.config import Settings
from memd.http.openapi import document
from memd.http.routes import operations

Schema = Mapping[str, Any]

FOLDER = Path(__file__).parents[2] / "clients" / "typescript" / "generated"
COMMAND = "make client-types"
HEADER = f"// Generated from the OpenAPI document of `memd serve` by `{COMMAND}`. Do not edit.\n"

OPEN = """\
/** Fields that memd does not list are taken too. */
export type Open<T> = T | (T & { [field: string]: unknown });
"""

OPERATIONS = """\
/** Every operation: what it takes, and what it returns. */
export type Operations = {
"""

ROUTES = """\
/** The method and the path of every operation, and what its reply is when it is no refusal. */
export declare const operations: {
  readonly [Name in keyof Operations]: readonly [method: string, path: string, reply: "json" | "text" | "none"];
};
"""

_SIMPLE = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
    "undefined": "undefined",  # no body; not JSON Schema's
}
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_WIDTH = 116


def files() -> dict[Path, str]:
    """The generated files and their texts, for the default settings."""
    tree = json.loads(document(operations(), Settings()))
    return {FOLDER / "openapi.d.ts": _types(tree), FOLDER / "openapi.js": _routes(tree)}


def stale() -> list[Path]:
    """The files that are not what the document makes of them."""
    return [file for file, text in files().items() if not file.exists() or file.read_text(encoding="utf-8") != text]


def _routes(tree: Schema) -> str:
    rows = [
        f"  {each['operationId']}: [{_text(method.upper())}, {_text(path)}, {_text(_reply(each))}],\n"
        for method, path, each in _all(tree)
    ]
    return f"{HEADER}export const operations = {{\n{''.join(rows)}}};\n"


def _types(tree: Schema) -> str:
    parts = [HEADER, OPEN]
    schemas, taken = tree["components"]["schemas"], _taken(tree)
    parts += [_declared(name, _Writer(takes=name in taken), schema) for name, schema in schemas.items()]
    rows: list[str] = []
    for method, path, operation in _all(tree):
        name = operation["operationId"]
        stem = name[0].upper() + name[1:]
        parts.append(f"export type {stem}Input = {_input(operation, schemas)};\n")
        parts.append(_declared(f"{stem}Output", _Writer(takes=False), _output(operation)))
        said = _comment(f"{operation['summary']}. {operation.get('description', '')} `{method.upper()} {path}`", "  ")
        rows.append(f"{said}  {name}: {{ input: {stem}Input; output: {stem}Output }};\n")
    parts.append("".join([OPERATIONS, *rows, "};\n"]))
    return "\n".join([*parts, ROUTES])


def _taken(tree: Schema) -> set[str]:
    """The schemas that only bodies of requests name. What memd returns may be handed back to it as it is."""
    schemas = tree["components"]["schemas"]
    bodies = [operation["requestBody"] for _, _, operation in _all(tree) if "requestBody" in operation]
    responses = [operation["responses"] for _, _, operation in _all(tree)]
    return _named_by(bodies, schemas) - _named_by(responses, schemas)


def _named_by(part: Any, schemas: Schema) -> set[str]:
    """The names of the schemas that a part of the document refers to, through others as well."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            waiting += one.values()
            if "$ref" in one and (name := _name_in(one["$ref"])) not in found:
                found.add(name)
                waiting.append(schemas[name])
    return found


def _name_in(reference: str) -> str:
    return reference.rpartition("/")[2]


def _all(tree: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in tree["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _input(operation: Schema, schemas: Schema) -> str:
    """Path, query and body as one object: no name is in two of them."""
    given = {
        one["name"]: {**one["schema"], "description": one.get("description", "")} for one in operation["parameters"]
    }
    needed = [one["name"] for one in operation["parameters"] if one["required"]]
    parameters = {"type": "object", "additionalProperties": False, "properties": given, "required": needed}
    if "requestBody" not in operation:
        return _Writer(takes=True).of(parameters, "")
    assert not [one for one in operation["parameters"] if one["in"] == "query"], operation["operationId"]
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    assert not given.keys() & schemas[_name_in(body["$ref"])]["properties"].keys(), operation["operationId"]
    parts = [parameters, body] if given else [body]
    return " & ".join(_Writer(takes=True).of(part, "") for part in parts)


def _output(operation: Schema) -> Schema:
    """The body of the responses that are no refusals."""
    content = _content(operation)
    if content is None:
        return {"type": "undefined"}
    schema: Schema = next(iter(content.values()))["schema"]
    return schema


def _reply(operation: Schema) -> str:
    """What the client has to make of such a body: json, text or none."""
    content = _content(operation)
    if content is None:
        return "none"
    return "json" if "application/json" in content else "text"


def _content(operation: Schema) -> Schema | None:
    """The content of the responses that are no refusals; all of an operation's have the same schema."""
    found = [response for status, response in operation["responses"].items() if status.startswith("2")]
    contents: list[Schema | None] = [response.get("content") for response in found]
    schemas = [content and {kind: each["schema"] for kind, each in content.items()} for content in contents]
    assert all(schema == schemas[0] for schema in schemas), operation["operationId"]
    return contents[0]


def _declared(name: str, writer: _Writer, schema: Schema) -> str:
    return f"{_comment(schema.get('description', ''), '')}export type {name} = {writer.of(schema, '')};\n"


class _Writer:
    """Types for schemas. `takes`: of what memd takes, where fields are closed only if the schema says so.

    What memd returns may get new fields, on which nobody should rely: there only listed fields are typed, and others
    where the schema says that there are some.
    """

    def __init__(self, *, takes: bool) -> None:
        self._takes = takes

    def of(self, schema: Schema, indent: str) -> str:
        """The type; lines after its first one begin with the indent."""
        if "$ref" in schema:
            return _name_in(schema["$ref"])
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema and schema.get("format") != "memd-category":  # categories are a setting of the server
            return " | ".join(map(_text, schema["enum"]))
        if "properties" in schema:
            return self._object(schema, indent)
        if kinds := schema.get("anyOf") or schema.get("oneOf"):
            return self._union(kinds, indent)
        return self._plain(schema, indent)

    def _plain(self, schema: Schema, indent: str) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._union([{**schema, "type": one} for one in kind], indent)
        if kind == "array":
            name = "ReadonlyArray" if self._takes else "Array"
            return f"{name}<{self.of(schema['items'], indent) if 'items' in schema else 'unknown'}>"
        if kind == "object":
            values = schema.get("additionalProperties", True)
            return f"{{ [name: string]: {'unknown' if values is True else self.of(values, indent)} }}"
        if kind is None:
            return "unknown"
        return _SIMPLE[kind]

    def _union(self, kinds: Sequence[Schema], indent: str) -> str:
        texts = dict.fromkeys(self.of(kind, indent) for kind in kinds)
        if "string" in texts:
            texts = {text: None for text in texts if not text.startswith('"')}
        return " | ".join(texts)

    def _object(self, schema: Schema, indent: str) -> str:
        properties = schema["properties"]
        required = set(schema.get("required", ()))
        text = self._fields(properties, required, schema, indent)
        if kinds := schema.get("anyOf") or schema.get("oneOf"):
            chosen = dict.fromkeys(self._choice(kind, properties, required, indent) for kind in kinds)
            text += "".join([" & (\n", *(f"{indent}  | {one}\n" for one in chosen), f"{indent})"])
        if self._takes and schema.get("additionalProperties", True) is not False:
            return f"Open<{text}>"
        return text

    def _choice(self, kind: Schema, parents: Schema, required: set[str], indent: str) -> str:
        """One alternative of an object: its fields, which are required where it or its parent says so."""
        needed = set(kind.get("required", ()))
        own = {**{name: parents[name] for name in needed & parents.keys()}, **kind.get("properties", {})}
        fields = [self._field(name, own[name], needed | required, indent + "  ") for name in own]
        return f"{{ {'; '.join(fields)} }}"

    def _fields(self, properties: Schema, required: set[str], schema: Schema, indent: str) -> str:
        inner = indent + "  "
        lines = [
            f"{_comment(value.get('description', ''), inner)}{inner}{self._field(name, value, required, inner)};\n"
            for name, value in properties.items()
        ]
        if not self._takes and schema.get("additionalProperties") is True:
            lines.append(f"{inner}[field: string]: unknown;\n")
        return f"{{\n{''.join(lines)}{indent}}}" if lines else "Record<string, never>"

    def _field(self, name: str, schema: Schema, required: set[str], indent: str) -> str:
        """A field. What memd takes may be undefined where it may be absent: JSON and addresses leave it out."""
        kind = self.of(schema, indent)
        if name in required:
            return f"{_name(name)}: {kind}"
        return f"{_name(name)}?: {kind}{' | undefined' if self._takes and kind != 'unknown' else ''}"


def _comment(text: str, indent: str) -> str:
    text = " ".join(text.split()).replace("*/", "* /")
    if not text:
        return ""
    if len(indent) + len(text) <= _WIDTH - 7:
        return f"{indent}/** {text} */\n"
    lines = [f"{indent} * {line}\n" for line in textwrap.wrap(text, _WIDTH - len(indent) - 3, break_on_hyphens=False)]
    return "".join([f"{indent}/**\n", *lines, f"{indent} */\n"])


def _name(name: str) -> str:
    return name if _NAME.fullmatch(name) else _text(name)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> int:
    """Write the files, or with --check name those that are not up to date."""
    parser = argparse.ArgumentParser(prog="python -m support.typescript_types", description="Types for TypeScript.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args().check:
        found = stale()
        sys.stdout.writelines(f"{file.name} is not up to date: {COMMAND}\n" for file in found)
        return 1 if found else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file, text in files().items():
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
