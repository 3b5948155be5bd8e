"""Named secrets: values that only the words around them make secret ("my PIN is 4821", "密码是…", `DB_PASSWORD=…`).

A value that follows the word and a link ("is", ":", "は") counts when it is no word of a language and no name in code.
In the line of the word, a value also counts that looks random by itself. A word that the next one follows at once is
left to that one, so a text of nothing but such words is not slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from memd.push.patterns import compiled

Span = tuple[int, int, str]
Place = tuple[int, int]

NEAR = 80
"""Characters before and after a word for a secret in which a value that looks random is one."""

_ALONE = r"(?<![A-Za-z0-9_@/.:=+$%&#~^*!?\\-])(?P<secret>{})(?![A-Za-z0-9_/=(\\@]|:\d)"
_PASSWORD_NEAR = re.compile(
    _ALONE.format(
        r"(?=[^\s\d]{0,40}\d)(?=[^\sA-Za-z]{0,40}[A-Za-z])[!#-&*+.0-9?@A-Z^_a-z~-]{7,63}[!#-&*0-9A-Z_a-z~]"
        r"|(?=[a-z-]{0,40}[A-Z])[A-Za-z]{3,20}(?:-[A-Za-z]{3,20}){2,6}"
    )
)
_NUMBER_NEAR = re.compile(r"(?<![\w.,:/#$€£+-])(?P<secret>(?!(?:19|20)\d{6})\d{8})(?![.,:/%€-]?[\dA-Za-z_])")
_KEY_NEAR = re.compile(
    _ALONE.format(
        r"(?<!id[ :=])(?<!id: )[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
        r"|(?![0-9a-f]{8}-)(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_-]{20,200}"
    )
)
_CODE_NEAR = re.compile(
    r"(?<![\w.,:/#$€£-])(?P<secret>(?!(?:19|20)\d\d(?!\d))\d{4,8}|\d{3} \d{3}|\d{4} \d{4}"
    r"|(?=[a-z-]{0,9}\d)[a-z0-9]{4,5}-[a-z0-9]{4,6})"
    r"(?![.,:/%€-]?[\dA-Za-z_])"
    r"(?! ?(?:€|%|euros?|words|users))"
)
_HARMLESS = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.-]+|\S+\.[a-z]{2,10}|\d{4}-\d\d-\d\dT.*|[\d.:-]+[a-zA-Z]?|[a-z]+(?:[_-][a-z]+)*[_-]?\d|0x[0-9a-fA-F]+|[A-Z]{2,5}-?\d+"
    r"|[a-z]+(?:-\d+(?:\.\d+)*)+|(?:[.]?[a-z]+|\d+)(?:[-.](?:[a-z]+\d{0,2}|v?\d+))+|(?:[A-Z]?[a-z]+)+\d(?:[A-Z][a-z]+)*"
    r"|[A-Z]+(?:[-_]?\d+)+[A-Z]{0,3}|1Z[0-9A-Z]{16}|[A-Za-z]+[-_]?\d{1,3}(?:\.\d+)*"
    r"|.*(?i:sha\d|md5|pbkdf|aes\d|base64|utf|oauth|ipv\d|http|hasher|pass|token|code).*|A-Za-z.*"
)
"""Addresses, domains, versions, dates, names with a number, algorithms: not secrets because a word for one is near."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SALAD = re.compile(r"^(?=.*\d)(?=.*[g-zG-Z]).{12,}$")
_STAND_IN = re.compile(
    r"^[\W_]*$|^[xX*•.]+$|^(?:[$%<{\[]|[.~]?/)|^[A-Z_]+$|[>}]$|\*\*\*|(?i:your|change.?me|example|placeholder|redacted|xxxx)"
    r"|^(?i:(?:new-|current-)?pass(?:word|wd)?|pwd|secret|token|string|text|hidden|none|null|true|false|user(?:name)?)$"
    r"|^[A-Za-z_$][\w$]*(?:(?:\.|::|->)[\w$]+)*[(\[]|^[A-Za-z_$]+(?:(?:\.|::|->)[A-Za-z_$]+)+$|^\w+(?:\|[\w:,]+)+$"
)
"""Values that only hold the place of a secret: masks, variables, calls, types, "your-key-here"."""

_NAME = re.compile(r"[!$@]?[A-Za-z][a-z]+(?:_[a-z]+|[A-Z][a-z]+)*")
"""A name in code: `password=db_password`."""

_AT_ONCE = re.compile(r"[^\S\n]{0,2}(\d{4,10})(?![\d.,]?\d)(?! ?(?:[a-z%€$]|字|位|文字|桁|个|次))")
"""A number that follows the word for a password at once."""


class NamedSecrets:
    """The words for secrets in all languages, and what follows them."""

    def __init__(self, sources: dict[str, list[str]]) -> None:
        self._password = compiled(sources["named_password"])
        self._code = compiled(sources["named_code"])
        self._key = compiled(sources["named_key"])
        self._value = compiled(sources["value"])
        self._digits = compiled(sources["code"])

    def find(self, text: str, lowered: str) -> Iterator[Span]:
        """The secrets in a text, which is also given in lower case with all characters in the same places."""
        passwords, codes, keys = (_words(words, lowered) for words in (self._password, self._code, self._key))
        yield from self._after(passwords, text, lowered, "password", _looks_like_a_password)
        yield from self._after(keys, text, lowered, "key", _looks_like_a_key)
        found = [match.span("secret") for _, end in codes if (match := self._digits.match(lowered, end))]
        found += [match.span(1) for _, end in passwords if (match := _AT_ONCE.match(text, end))]
        found += _near(codes, text, _CODE_NEAR)
        found += _near(passwords, text, _NUMBER_NEAR)
        found += [place for place in _near(passwords, text, _PASSWORD_NEAR) if _strong(text[slice(*place)])]
        yield from ((*place, "password") for place in found)
        yield from ((*place, "key") for place in _near(keys, text, _KEY_NEAR) if _strong_key(text[slice(*place)]))

    def _after(
        self, words: list[Place], text: str, lowered: str, kind: str, looks: Callable[[str, bool], bool]
    ) -> Iterator[Span]:
        """The values that follow a word and a link."""
        for start, end in words:
            if match := self._value.match(lowered, end):
                group = "quoted" if match["quoted"] is not None else "named"
                value = text[slice(*match.span(group))].rstrip(".?。)）")
                link = lowered[end : match.start(group)].rstrip(" '\"`")
                pin = "pin" in lowered[start:end]
                if not holds_a_place(value) and (_is_quoted(group, value, link) or _is_value(value, link, pin, looks)):
                    yield match.start(group), match.start(group) + len(value), kind


def holds_a_place(value: str) -> bool:
    """Whether a value only stands for a secret: a mask, a variable, a type, "your-key-here"."""
    return _STAND_IN.search(value) is not None


def _words(pattern: re.Pattern[str], lowered: str) -> list[Place]:
    """The places of words for secrets, without those that the next one follows at once."""
    places = [word.span() for word in pattern.finditer(lowered)]
    return [place for place, after in pairwise([*places, (len(lowered) + 9, 0)]) if after[0] > place[1] + 3]


def _near(words: list[Place], text: str, values: re.Pattern[str]) -> list[Place]:
    """The values near a word for a secret, in its line. A stretch near two words is searched once."""
    found: list[Place] = []
    done = 0
    for start, end in words:
        first = max(done, text.rfind("\n", max(0, start - NEAR), start) + 1, start - NEAR)
        line_end = text.find("\n", end, end + NEAR)
        done = end + 2 * NEAR if line_end < end + 4 else line_end  # a word that ends its line names what follows
        found += [match.span("secret") for match in values.finditer(text, first, done)]
    return found


def _strong(value: str) -> bool:
    return not holds_a_place(value) and not _HARMLESS.fullmatch(value)


def _strong_key(value: str) -> bool:
    """Whether a part of the value is no word, no number and no hash; a UUID counts as a key."""
    salad = _UUID.fullmatch(value) is not None or any(_SALAD.search(part) for part in re.split("[_-]", value))
    return salad and _strong(value)


def _is_quoted(group: str, value: str, link: str) -> bool:
    """Whether somebody quoted a value in a sentence: then it is one, whatever it looks like."""
    return group == "quoted" and " " not in value.strip() and any(map(str.isalpha, link))


def _is_value(value: str, link: str, pin: bool, looks: Callable[[str, bool], bool]) -> bool:
    if any(map(str.isalpha, link)):  # "is", not a sign of code
        return looks(value, pin) and not (value.isdigit() and link[-1] in "=:,([")
    return looks(value, pin) and not _NAME.fullmatch(value) and not 0 < value.count(" ") < 3


def _looks_like_a_password(value: str, pin: bool) -> bool:
    """Whether a value has a digit, a sign or a capital inside: nobody writes "Wr0ng" for "wrong"."""
    if len(value) < 3 or value.endswith(":") or not value.isascii():
        return False
    if value.isdigit():
        return len(value) >= 4 or pin
    inner = value[1:]
    signs = any(not char.isalnum() and char not in "-'/()" for char in value)
    return any(map(str.isdigit, value)) or signs or (inner != inner.lower() and not value.isupper())


def _looks_like_a_key(value: str, _: bool) -> bool:
    """Whether a value is long, without spaces, and has digits: no word of any language."""
    return len(value) >= 12 and value.isascii() and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
