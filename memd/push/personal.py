"""Personal data, for `redaction.pii`: e-mail addresses, phone numbers, IBANs, and numbers of people and passports.

A number counts by its form and its check digits (python-stdnum), or by the word before it (`personal/*.yaml`). What
only looks like a phone number needs a country code, a national form, or such a word. Linear in time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from memd.errors import ConfigError
from memd.push.patterns import load
from memd.push.prefilter import Prefilter

Span = tuple[int, int, str]
Check = Callable[[str], bool]

NO_STDNUM = "redaction.pii is on, and what it needs is not installed: pip install 'memd[pii]'"

MAX_CHECKED = 200
"""Numbers of one text whose check digits are reckoned; after more, all in such a form are cut: a text of nothing but
such numbers must not hold a worker."""

_NUMBERS = {
    "cn": ("resident_id", r"\d{17}[\dXx]", "stdnum.cn.ric"),
    "us": ("ssn", r"\d{3}-\d{2}-\d{4}", "stdnum.us.ssn"),
    "fr": ("ssn", r"[12]\d{14}|[12] \d\d \d\d \d\d \d{3} \d{3} \d\d", "stdnum.fr.nir"),
    "es": ("ssn", r"\d{8}-?[A-Z]|[XYZ]-?\d{7}-?[A-Z]", "stdnum.es.nif"),
    "it": ("ssn", r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]", "stdnum.it.codicefiscale"),
    "kr": ("ssn", r"\d{6}-[1-8]\d{6}", "stdnum.kr.rrn"),
}
"""Forms of the numbers of people by country: kind, form, and the module of python-stdnum that checks it."""

_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])")
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9_.+-])[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,63}+@(?:[A-Za-z0-9-]{1,63}+\.){1,8}[A-Za-z]{2,24}+"
    r"(?![A-Za-z0-9_-])"
)
_DIGITS = re.compile(r"\d\D{0,3}\d\D{0,3}\d\D{0,3}\d")


class _Patterns:
    """The patterns of `personal/*.yaml`, and the checks of python-stdnum. Raises ConfigError when that is missing."""

    def __init__(self) -> None:
        try:
            self.checks: dict[str, Check] = {
                country: import_module(module).is_valid for country, (_, _, module) in _NUMBERS.items()
            }
            iban = import_module("stdnum.iban")
        except ImportError:
            raise ConfigError(NO_STDNUM) from None
        # A bank's own check digits inside the number are not asked: whoever made it up wrote one all the same.
        self.is_iban: Check = lambda number: bool(iban.is_valid(number, check_country=False))
        sources = load(Path(__file__).parent / "personal")
        forms = [f"(?P<{country}>{form})" for country, (_, form, _) in _NUMBERS.items()]
        # Chinese writes no spaces around a number.
        self.number = re.compile(
            rf"(?=[\dA-Z+(])(?<![A-Za-z0-9_.-])(?:{'|'.join([*forms, *sources['phone']])})(?![A-Za-z0-9_-]|[.,]\d)"
        )
        named = ((kind, source) for kind in ("phone", "passport", "ssn") for source in sources[f"named_{kind}"])
        self.named = Prefilter([(source, (kind, re.compile(source))) for kind, source in named], folded=True)


_patterns = cache(_Patterns)


def prepare() -> None:
    """Compile all patterns now. Raises ConfigError when python-stdnum is missing."""
    _patterns()


def find(text: str) -> Iterator[Span]:
    """Start, end and kind of each piece of personal data, in no order; they may overlap."""
    patterns = _patterns()
    if "@" in text:
        yield from ((*match.span(), "email") for match in _EMAIL.finditer(text))
    if not _DIGITS.search(text):
        return
    yield from _numbers(text, patterns)
    for checked, match in enumerate(_IBAN.finditer(text)):
        end = len(match[0]) if checked >= MAX_CHECKED else _iban_end(match[0], patterns.is_iban)
        if end:
            yield match.start(), match.start() + end, "iban"
    for kind, pattern in patterns.named.select(text):
        yield from ((*match.span("value"), kind) for match in pattern.finditer(text))


def _numbers(text: str, patterns: _Patterns) -> Iterator[Span]:
    """The numbers of people, and phone numbers."""
    checked = 0
    for match in patterns.number.finditer(text):
        country = match.lastgroup
        if country is None:
            yield *match.span(), "phone"
        elif checked >= MAX_CHECKED or patterns.checks[country](match[0]):
            yield *match.span(), _NUMBERS[country][0]
        checked += country is not None


def _iban_end(text: str, is_valid: Check) -> int:
    """Where the IBAN ends that a text begins with; 0 without one. Words in capitals may follow it."""
    ends = [len(text), *(match.start() for match in re.finditer(" ", text))]
    return next((end for end in sorted(ends, reverse=True) if is_valid(text[:end])), 0)
