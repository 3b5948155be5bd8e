"""Secrets: what is cut out of a text, measured on a labelled set, and what is left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.evaluation.made_secrets import TOKENS
from memd.push.named_secrets import MAX_NAMED
from memd.push.redaction import find, holds_secret, redact

LINES = Path(__file__).parents[1] / "data" / "secrets" / "lines.txt"
MARK = re.compile("«(.*?)»", re.DOTALL)


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


def test_a_text_of_nothing_but_words_for_secrets_hides_none() -> None:
    """After 500 words whose values are judged, what follows such a word in its line goes unjudged; the rest stays."""
    words = "".join(f"her pin is none, {number}\n" for number in range(MAX_NAMED + 20))
    left = redact(f"{words}the password is hunter2x\n我的密码是 Tr0ub4dor\nSee you in Porto.")[0]
    assert "hunter2x" not in left
    assert "Tr0ub4dor" not in left
    assert left.endswith("See you in Porto.")
    assert redact(left)[0] == left


@pytest.mark.parametrize(
    "text",
    [
        "I'll pin the tests to Pacific/Auckland.",
        "Please pin dependencies to requests==2.31",
        "Pin it to sha256:abc1, then pin the image to node:20-alpine3.19",
        "Connect pin D13 to the LED, pin 12 is GND.",
        "Pass the flag --color=always2 to pytest",
        "You can pass user_id=ana42 to push, or pass --env FOO=bar9x.",
    ],
)
def test_to_pin_and_to_pass_are_verbs(text: str) -> None:
    """Programmers pin versions and pass flags: what follows is no PIN and no password."""
    assert redact(text)[0] == text
