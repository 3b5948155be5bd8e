"""Numbers and words that are secrets by a check: card numbers, and the seed phrases of wallets.

A card number is recognised by issuer, length and check digit, however its digits are grouped. A seed phrase is twelve
words or more in a row, all of BIP-39's English list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from stdnum import luhn

SEED_WORDS = 12
"""Words in a row that make a seed phrase."""

_BETWEEN = r"(?:[^\S\n]{0,2}[-./_:|]?[^\S\n]{0,2}|\r?\n[^\S\n]{0,4})"
_ROW = re.compile(rf"(?<!\d)(?<!\d[.,-])(?=[23456]\d\d)\d(?:{_BETWEEN}\d){{12,18}}")
_ISSUERS = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35\d{14}|62\d{14,17}|3(?:0[0-5]|[68]\d)\d{11}|(?:50|5[6-8]|6[0-9])\d{14}"
)
"""The issuers' prefixes and lengths; with the check digit, hardly an order number passes."""

_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_GROUP = re.compile(r"\d+")
_SEED = re.compile(r"""(?<![a-z])[a-z]{3,8}(?:[\s,;|"'-]{1,5}(?:\d\d?[.):]?[\s"']{1,2})?[a-z]{3,8}(?![a-z])){11,}+""")
_WORD = re.compile("[a-z]+")


def cards(text: str) -> Iterator[tuple[int, int]]:
    """The places of card numbers."""
    ibans = [iban.span() for iban in _IBAN.finditer(text)]
    at = 0
    while row := _ROW.search(text, at):
        start = row.start()
        end = 0 if any(first <= start < last for first, last in ibans) else _card_end(text, row)
        if end:
            yield start, end
        first = _GROUP.match(text, start)
        at = end or (first.end() if first else row.end())


def _card_end(text: str, row: re.Match[str]) -> int:
    """Where the card ends that begins with the row; 0 when there is none. The row may go on with another number."""
    digits, longest = "", 0
    for group in _GROUP.finditer(text, row.start(), row.end() + 19):
        digits += group[0]
        if len(digits) > 19 or group.start() >= row.end():
            break
        if len(digits) >= 13 and not _goes_on(text, group.end()) and _is_card(digits):
            longest = group.end()
    return longest


def _goes_on(text: str, end: int) -> bool:
    """Whether a dash or point ties the next digits to these."""
    return text[end : end + 1] in ("-", ".", "/", "_") and text[end + 1 : end + 2].isdigit()


def _is_card(digits: str) -> bool:
    return _ISSUERS.fullmatch(digits) is not None and len(set(digits)) > 1 and luhn.is_valid(digits)


def seed_phrases(lowered: str, hints: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The places of seed phrases in a text in lower case. Without a hint in the text, the checksum must be right."""
    for row in _SEED.finditer(lowered):
        run: list[re.Match[str]] = []
        for word in (*_WORD.finditer(lowered, *row.span()), None):
            if word is not None and word[0] in seed_words():
                run.append(word)
                continue
            if len(run) >= SEED_WORDS and (any(hint in lowered for hint in hints) or _is_seed([w[0] for w in run])):
                yield run[0].start(), run[-1].end()
            run = []


def _is_seed(words: list[str]) -> bool:
    """Whether the first or last words, as many as a phrase has, carry the right checksum."""
    parts = (part for count in range(SEED_WORDS, 25, 3) for part in (words[:count], words[-count:]))
    return any(_has_checksum(part) for part in parts if len(part) % 3 == 0)


def _has_checksum(words: list[str]) -> bool:
    """BIP-39: each word is 11 bits; the last 1 of 33 bits begins the SHA-256 of the others."""
    number = 0
    for word in words:
        number = number << 11 | seed_words()[word]
    check = len(words) // 3
    entropy = (number >> check).to_bytes(check * 4, "big")
    return sha256(entropy).digest()[0] >> (8 - check) == number & ((1 << check) - 1)


@cache
def seed_words() -> dict[str, int]:
    """BIP-39's English words, each with its number."""
    words = (Path(__file__).parent / "redaction" / "seed_words.txt").read_text(encoding="ascii").split()
    return {word: number for number, word in enumerate(words)}
