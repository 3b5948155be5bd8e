"""The OpenAPI document: it is one, it says all there is, and the server does what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.http_fuzz import fuzz
from support.http_support import Site, install, serving

from memd.http.routes import operations

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
    push = tree["paths"]["/v1/push"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert "the newest 7 messages" in push["properties"]["messages"]["description"]
    assert "user_id" not in push["required"]
    assert '"enum": ["goal", "茶"]'.replace(" ", "") in str(tree).replace("'", '"').replace(" ", "")
    assert tree["paths"]["/v1/push"]["post"]["security"] == []


@pytest.mark.long  # `make smoke` draws one request of each operation
def test_the_server_does_what_its_document_says(site: Site) -> None:
    """schemathesis makes up requests, good and bad, and finds no answer that the document does not foresee."""
    install(site)
    done = fuzz(site, examples=5, phases="fuzzing", seed=1)  # `make http-fuzz` draws anew
    assert done.returncode == 0, done.stdout
    assert "No issues found" in done.stdout
