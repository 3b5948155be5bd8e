"""Generated secrets of every kind, so that no file of the repository contains a token."""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable

RNG = random.Random(7)  # noqa: S311  (repeatable tokens, not real ones)
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits


def some(count: int, alphabet: str = ALNUM) -> str:
    return "".join(RNG.choice(alphabet) for _ in range(count))


def mixed(count: int) -> str:
    return "a1B" + some(count - 3)


def segment(fields: dict[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


def pem(name: str) -> str:
    body = "\n".join(some(64) for _ in range(3))
    return f"-----BEGIN {name}-----\n{body}\n-----END {name}-----"


TOKENS: dict[str, Callable[[], str]] = {
    "aws": lambda: "AKIA" + some(16, UPPER),
    "openai": lambda: "sk-" + some(20) + "T3BlbkFJ" + some(20),
    "openai_project": lambda: "sk-proj-" + some(48),
    "anthropic": lambda: "sk-ant-api03-" + some(80),
    "github": lambda: "ghp_" + some(36),
    "github_pat": lambda: "github_pat_" + some(22) + "_" + some(59),
    "gitlab": lambda: "glpat-" + some(20),
    "slack": lambda: "xoxb-" + some(12, string.digits) + "-" + some(24, string.ascii_lowercase + string.digits),
    "stripe": lambda: "sk_live_" + some(24),
    "stripe_test": lambda: "sk_test_" + some(24),
    "sendgrid": lambda: "SG." + some(22) + "." + some(43),
    "huggingface": lambda: "hf_" + some(34),
    "google": lambda: "AIza" + some(35),
    "telegram": lambda: some(9, "123456789") + ":" + some(35),
    "pypi": lambda: "pypi-AgEIcHlwaS5vcmc" + some(90),
    "npm": lambda: "npm_" + some(36),
    "bearer": lambda: some(40),
    "jwt": lambda: f"{segment({'alg': 'HS256', 'typ': 'JWT'})}.{segment({'sub': '1'})}.{some(43)}",
    "hex16": lambda: "a1" + some(14, HEX),
    "hex32": lambda: "a1" + some(30, HEX),
    "hex40": lambda: "a1" + some(38, HEX),
    "base64": lambda: mixed(43) + "=",
    "pem": lambda: f"«{pem('RSA PRIVATE KEY')}»",
    "openssh": lambda: f"«{pem('OPENSSH PRIVATE KEY')}»",
}
"""A function for each kind, which generates a token."""

_PLACE = re.compile(f"«({'|'.join(TOKENS)})»")


def with_tokens(line: str) -> str:
    """Replace each `«name»` in a line of JSON by a token, which is the same everywhere and in every run."""
    return _PLACE.sub(lambda found: _token(found[1]), line)


def _token(name: str) -> str:
    RNG.seed(name)
    return json.dumps(TOKENS[name]().strip("«»"))[1:-1]
