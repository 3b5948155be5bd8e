"""Secrets: what is cut out of a text, measured on a labelled set, and what is left alone."""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.redaction import find, holds_secret, redact

LINES = Path(__file__).parent / "data" / "secrets" / "lines.txt"
MARK = re.compile("«(.*?)»", re.DOTALL)
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
"""Tokens of each kind, made of nothing."""


def cases() -> Iterator[tuple[str, list[str]]]:
    """Each line as a text, and the secrets in it."""
    for line in LINES.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        marked = re.sub(r"\{([a-z_0-9]+)\}", lambda found: TOKENS[found[1]](), line)
        yield MARK.sub(r"\1", marked), [secret for secret in MARK.findall(marked) if secret]


CASES = list(cases())


def test_precision_and_recall_on_the_labelled_set() -> None:
    """At least 200 lines, a third of them Chinese: 97 % of what is cut out is secret, and 97 % of it is cut out."""
    hits = misses = false = 0
    wrong: list[str] = []
    for text, secrets in CASES:
        found = [text[start:end] for start, end, _ in find(text)]
        covered = [secret for secret in secrets if any(secret in piece for piece in found)]
        extra = [piece for piece in found if not any(secret in piece for secret in secrets)]
        hits += len(covered)
        misses += len(secrets) - len(covered)
        false += len(extra)
        wrong += [f"missed: {secret}" for secret in secrets if secret not in covered]
        wrong += [f"not a secret: {piece}" for piece in extra]
    print(f"{len(CASES)} lines, {hits + misses} secrets: precision {hits / (hits + false):.3f}, "  # noqa: T201
          f"recall {hits / (hits + misses):.3f}")  # fmt: skip
    assert len(CASES) >= 200
    assert sum(not text.isascii() for text, _ in CASES) >= 60
    assert hits / (hits + false) >= 0.97, wrong
    assert hits / (hits + misses) >= 0.97, wrong


@pytest.mark.parametrize("text", [text for text, secrets in CASES if secrets])
def test_redaction_is_idempotent(text: str) -> None:
    """What is redacted stays as it is when it is redacted again."""
    once, counts = redact(text)
    assert redact(once) == (once, {})
    assert holds_secret(once) == bool(counts)


@given(st.text(max_size=200))
def test_any_text_is_redacted_the_same_twice(text: str) -> None:
    """Total and idempotent, whatever the text."""
    once, _ = redact(text)
    assert redact(once)[0] == once


def test_the_rest_of_a_text_stays_as_it_was() -> None:
    """Only the secret goes, not the sentence around it."""
    secret = TOKENS["aws"]()
    assert redact(f"前面 {secret} 后面")[0] == "前面 [redacted:key] 后面"
    assert redact("my password is Tr0ub4dor&3, don't forget")[0] == "my password is [redacted:password], don't forget"


def test_full_width_digits_are_read() -> None:
    """A card typed with a Chinese input method is a card."""
    wide = "".join(chr(ord(digit) + 0xFEE0) for digit in "4111111111111111")
    assert redact(f"卡号{wide}。")[0] == "卡号[redacted:card]。"
