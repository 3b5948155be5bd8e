"""Numbers and words that are secrets by a check: card numbers, and the seed phrases of wallets.

A card number is recognised by issuer, length and check digit, however its digits are grouped. A seed phrase is twelve
words or more in a row, all of BIP-39's English list.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

from memd.push.patterns import prepared

SEED_WORDS = 12
"""Words in a row that make a seed phrase."""

_BETWEEN = r"(?:[^\S\n]{0,2}[-./_:|]?[^\S\n]{0,2}|\r?\n[^\S\n]{0,4})"
_FIRST = re.compile(r"(?<!\d)[23456]\d\d")
_ROWS = re.compile(rf"\d(?<!\d\d)(?:{_BETWEEN}\d){{12,}}+")
_ISSUERS = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35\d{14}|62\d{14,17}|3(?:0[0-5]|[68]\d)\d{11}|(?:50|5[6-8]|6[0-9])\d{14}"
)
"""The issuers' prefixes and lengths; with the check digit, hardly an order number passes."""

_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_PLAIN = bytes.maketrans(b"0123456789", bytes(range(10)))
_DOUBLED = bytes.maketrans(b"0123456789", bytes([0, 2, 4, 6, 8, 1, 3, 5, 7, 9]))
_GROUP = re.compile(r"\d+")
_ROW = re.compile(r"""(?<![a-z])[a-z]{3,8}(?:[\s,;|"'-]{1,5}(?:\d\d?[.):]?[\s"']{1,2})?[a-z]{3,8}(?![a-z]))++""")
"""Words in a row that may be a seed phrase. Of any number: from each word of a short row it would be tried again."""

_SHORTEST_ROW = 4 * SEED_WORDS - 1
"""Characters of a seed phrase at least."""

_WORD = re.compile("[a-z]+")
_ENOUGH = b"\1" * SEED_WORDS


def cards(text: str) -> Iterator[tuple[int, int]]:
    """The places of card numbers."""
    rows = [row for row in _ROWS.finditer(text) if _FIRST.search(text, *row.span())]
    ibans = [(-1, -1), *(iban.span() for iban in _IBAN.finditer(text))] if rows else []  # in order, and apart
    for row in rows:
        for start, end in _cards_of(text, [group.span() for group in _GROUP.finditer(text, *row.span())]):
            if start >= ibans[bisect_right(ibans, (start, len(text))) - 1][1]:
                yield start, end


def _cards_of(text: str, groups: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The places of cards in a row of groups of digits, the longest of those that begin with one group."""
    digits = "".join(text[start:end] for start, end in groups)
    sums = _luhn_sums(digits)
    places = [0, *accumulate(end - start for start, end in groups)]
    free = 0
    for number, (start, end) in enumerate(groups):
        if number < free or end - start < 3 or text[start] not in "23456":
            continue
        first = places[number]
        for last in range(bisect_right(places, first + 19) - 1, number, -1):
            length, stop = places[last] - first, groups[last - 1][1]
            if length < 13:
                break
            luhn = sums[places[last] % 2]
            if (luhn[places[last]] - luhn[first]) % 10 or _tied(text, start - 1, ".,-") or _tied(text, stop, "-./_"):
                continue
            if _is_card(digits[first : places[last]]):
                yield start, stop
                free = last
                break


def _luhn_sums(digits: str) -> tuple[list[int], list[int]]:
    """Sums of the first digits as Luhn counts them: with those at even places doubled, and with those at odd places.

    The digits from a to b pass when sums[b % 2][b] - sums[b % 2][a] ends in 0: the last one is not doubled.
    """
    plain, doubled = (list(digits.encode().translate(table)) for table in (_PLAIN, _DOUBLED))
    even, odd = plain[:], plain[:]
    even[::2], odd[1::2] = doubled[::2], doubled[1::2]
    return [0, *accumulate(even)], [0, *accumulate(odd)]


def _tied(text: str, end: int, signs: str) -> bool:
    """Whether one of some signs ties the digit before a place to the digit behind it."""
    return 0 < end < len(text) - 1 and text[end] in signs and text[end - 1].isdigit() and text[end + 1].isdigit()


def _is_card(digits: str) -> bool:
    return _ISSUERS.fullmatch(digits) is not None and len(set(digits)) > 1


def seed_phrases(lowered: str, hints: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The places of seed phrases in a text in lower case. Without a hint in the text, the checksum must be right."""
    hinted: bool | None = None  # looked for once, and only where words side by side could be a phrase
    for row in _ROW.finditer(lowered):
        if len(row[0]) < _SHORTEST_ROW or not _has_enough(row[0]):
            continue
        run: list[re.Match[str]] = []
        for word in (*_WORD.finditer(lowered, *row.span()), None):
            if word is not None and word[0] in seed_words():
                run.append(word)
                continue
            if len(run) >= SEED_WORDS:
                if hinted is None:
                    hinted = any(hint in lowered for hint in hints)
                if hinted or _is_seed([word[0] for word in run]):
                    yield run[0].start(), run[-1].end()
            run = []


def _has_enough(row: str) -> bool:
    """Whether enough seed words stand side by side in a row: a look that most rows end with."""
    return bytes(map(seed_words().__contains__, _WORD.findall(row))).find(_ENOUGH) >= 0


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


@prepared
def seed_words() -> dict[str, int]:
    """BIP-39's English words, each with its number."""
    words = (Path(__file__).parent / "redaction" / "seed_words.txt").read_text(encoding="ascii").split()
    return {word: number for number, word in enumerate(words)}
