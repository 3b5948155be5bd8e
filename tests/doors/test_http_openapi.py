"""The OpenAPI document: it is one, it says all there is, and the server does what it says."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import urlencode

import pytest
from jsonschema_rs import Draft202012Validator
from support.http_fuzz import fuzz
from support.http_support import Site, install, serving

from memd.config import Settings
from memd.http.admin_fields import LETTER_ID_SCHEMA
from memd.http.examples import EXAMPLES
from memd.http.fields import RECEIPT_SCHEMA, Fields, parse_body, parse_query
from memd.http.openapi import document
from memd.http.operation import Operation
from memd.http.routes import operations
from memd.push.validation import parse_push

VALIDATE = "import json, sys, schemathesis; schemathesis.openapi.from_dict(json.load(sys.stdin)).validate()"
"""A process of its own: the import takes seconds, and every pytest worker imports this file."""


@pytest.fixture(scope="module")
def site(server_url: str) -> Iterator[Site]:
    """A server with tokens."""
    with serving(server_url, locked=True) as found:
        yield found


def test_the_document_is_valid_and_complete(site: Site) -> None:
    """It needs no token, is OpenAPI 3.1, and has every operation with its scope, body and refusals."""
    tree = site.ask("GET", "/openapi.json", token="").json
    subprocess.run([sys.executable, "-c", VALIDATE], input=json.dumps(tree), text=True, check=True)
    assert tree["openapi"].startswith("3.1")
    for operation in operations():
        said = tree["paths"][operation.path][operation.method.lower()]
        assert said["operationId"] == operation.name
        assert ("requestBody" in said) == (operation.body is not None)
        assert ("security" in said) == (operation.scope is not None)
        if operation.scope is not None:
            assert f"Scope: {operation.scope}." in said["description"]
            assert {"401", "403", "404"} <= set(said["responses"])
    assert sum(map(len, tree["paths"].values())) == len(operations())


def test_the_limits_in_force_are_said(server_url: str) -> None:
    """What the settings allow stands in the document: messages of a push, categories, whether tokens are asked for."""
    changes: dict[str, Any] = {
        "client__max_messages": 7,
        "apply__categories": ["goal", "茶"],
        "client__default_user": "all",
    }
    with serving(server_url, **changes) as found:
        tree = found.ask("GET", "/openapi.json").json
    push = tree["components"]["schemas"]["Push"]
    assert "the newest 7 messages" in push["properties"]["messages"]["description"]
    assert "user_id" not in push["required"]
    assert '"enum": ["goal", "茶"]'.replace(" ", "") in str(tree).replace("'", '"').replace(" ", "")
    assert tree["paths"]["/v1/push"]["post"]["security"] == []


@cache
def tree() -> dict[str, Any]:
    """The document of a server with the default settings."""
    found: dict[str, Any] = json.loads(document(operations(), Settings()))
    return found


@pytest.mark.parametrize("operation", operations(), ids=lambda operation: operation.name)
def test_every_operation_is_told(operation: Operation) -> None:
    """A tag that says what its group is about, a summary, a description, an example of the request that the server
    reads, and one of the response that its schema allows; a description for each field.
    """
    said = tree()["paths"][operation.path][operation.method.lower()]
    [tag] = said["tags"]
    assert next(one for one in tree()["tags"] if one["name"] == tag)["description"]
    assert operation.summary[0].isupper()
    assert not operation.summary.endswith(".")
    assert operation.description.endswith(".")
    body = said.get("requestBody", {"content": {"application/json": {"schema": {"$ref": ""}}}})
    of_body = tree()["components"]["schemas"].get(body["content"]["application/json"]["schema"]["$ref"][21:], {})
    for one in (*said["parameters"], *of_body.get("properties", {}).values()):
        assert '"description"' in json.dumps(one), one
    example = EXAMPLES.get(operation.name)
    if operation.name in ("metrics", "docs"):
        assert example is None  # they are no JSON
        return
    assert example is not None
    in_path = {one["name"]: one for one in said["parameters"] if one["in"] == "path"}
    for name, one in in_path.items():
        pattern = {"receipt_id": RECEIPT_SCHEMA, "letter_id": LETTER_ID_SCHEMA}.get(name, {"pattern": "^fact_"})[
            "pattern"
        ]
        assert re.search(str(pattern), one["example"])
    rest = {name: value for name, value in example.fields.items() if name not in in_path}
    parse_query(operation.query, urlencode(rest).encode())
    if operation.body is not None:
        raw = json.dumps(example.request).encode()
        if issubclass(operation.body, Fields):
            parse_body(operation.body, raw)
        else:
            parse_push(raw, Settings().client)
    status, kind = next(iter(operation.responses.items()))
    assert (example.response is None) == (kind is None)
    if kind is not None:
        content = said["responses"][str(status)]["content"]["application/json"]
        schema = {**content["schema"], "components": tree()["components"]}
        assert content["example"] == example.response
        assert [error.message for error in Draft202012Validator(schema).iter_errors(example.response)] == []


def test_every_object_of_a_body_has_a_name() -> None:
    """Clients make types of them: each body of a request or response that is an object is a shared one with a title."""
    bodies = [
        content["schema"]
        for methods in tree()["paths"].values()
        for said in methods.values()
        for body in (said.get("requestBody", {}), *said["responses"].values())
        for content in body.get("content", {}).values()
    ]
    names = {str(schema["$ref"]).rpartition("/")[2] for schema in bodies if "$ref" in schema}
    assert names <= tree()["components"]["schemas"].keys()
    assert all(name == schema["title"] for name, schema in tree()["components"]["schemas"].items())
    assert not [schema for schema in bodies if "properties" in schema]


def test_the_page_has_every_operation_and_asks_nobody(site: Site) -> None:
    """Without a token; no script, no address of anything else; its style is the only one that its policy allows."""
    answer = site.ask("GET", "/docs", token="")
    page = answer.body.decode()
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for operation in operations():
        assert f'<details id="{operation.name}">' in page
        assert f"<b>{operation.method}</b> <code>{operation.path}</code>" in page
    assert "<td></td>" not in page, "every field has a meaning"
    assert not re.search(r"<script|<link|<img|\son\w+=|@import|url\(|(src|href)=\"(?![#/]\w)", page)
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert f"style-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert site.ask("POST", "/docs", token="").status == 405


@pytest.mark.long  # `make smoke` draws one request of each operation
def test_the_server_does_what_its_document_says(site: Site) -> None:
    """schemathesis makes up requests, good and bad, and finds no answer that the document does not foresee."""
    install(site)
    done = fuzz(site, examples=5, phases="fuzzing", seed=1)  # `make http-fuzz` draws anew
    assert done.returncode == 0, done.stdout
    assert "No issues found" in done.stdout
