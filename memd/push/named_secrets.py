"""Named secrets: values that only the words around them make secret ("my PIN is 4821", "密码是…", `DB_PASSWORD=…`).

A value that follows the word and a link ("is", ":", "は") counts unless it is a plain word or a name in code. Elsewhere
in the line of the word, a value counts only when it looks random. When one such word follows another at once, only the
last of them is searched after: a text that repeats such words takes linear time.
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

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SALAD = re.compile(r"^(?=.*\d)(?=.*[g-zG-Z]).{12,}$")


class Values:
    """The forms of secret values and of values that are harmless near a word for a secret (`redaction/values.yaml`)."""

    def __init__(self, sources: dict[str, list[str]]) -> None:
        self.near_password = compiled(sources["near_password"])
        self.near_password_number = compiled(sources["near_password_number"])
        self.near_key = compiled(sources["near_key"])
        self.near_code = compiled(sources["near_code"])
        self.number_at_once = compiled(sources["number_at_once"])
        self.name_in_code = compiled(sources["name_in_code"])
        self._harmless = compiled(sources["harmless"])
        self._stand_in = compiled(sources["stand_in"])

    def holds_a_place(self, value: str) -> bool:
        """Whether a value only stands for a secret: a mask, a variable, a type, "your-key-here"."""
        return self._stand_in.search(value) is not None

    def is_strong(self, value: str) -> bool:
        """Whether a value is a secret when a word for one is in its line."""
        return not self.holds_a_place(value) and not self._harmless.fullmatch(value)

    def is_strong_key(self, value: str) -> bool:
        """Whether part of the value is neither a word, a number nor a hash; a UUID counts as a key."""
        random = _UUID.fullmatch(value) is not None or any(_SALAD.search(part) for part in re.split("[_-]", value))
        return random and self.is_strong(value)


class NamedSecrets:
    """Finds the words for secrets in all languages, and the values they name."""

    def __init__(self, sources: dict[str, list[str]], values: Values) -> None:
        self._values = values
        self._password = compiled(sources["named_password"])
        self._code = compiled(sources["named_code"])
        self._key = compiled(sources["named_key"])
        self._value = compiled(sources["value"])
        self._digits = compiled(sources["code"])

    def find(self, text: str, lowered: str) -> Iterator[Span]:
        """The secrets in a text. `lowered` is the text in lower case, with all characters in the same places."""
        values = self._values
        passwords, codes, keys = (_words(words, lowered) for words in (self._password, self._code, self._key))
        yield from self._after(passwords, text, lowered, "password", _looks_like_a_password)
        yield from self._after(keys, text, lowered, "key", _looks_like_a_key)
        found = [match.span("secret") for _, end in codes if (match := self._digits.match(lowered, end))]
        found += [match.span("secret") for _, end in passwords if (match := values.number_at_once.match(text, end))]
        found += _near(codes, text, values.near_code)
        found += _near(passwords, text, values.near_password_number)
        found += _near(passwords, text, values.near_password, values.is_strong)
        yield from ((*place, "password") for place in found)
        yield from ((*place, "key") for place in _near(keys, text, values.near_key, values.is_strong_key))

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
                if self._values.holds_a_place(value):
                    continue
                if _is_quoted(group, value, link) or (looks(value, pin) and self._is_value(value, link)):
                    yield match.start(group), match.start(group) + len(value), kind

    def _is_value(self, value: str, link: str) -> bool:
        """Whether a value that follows a link is neither code nor a few words of a sentence."""
        if any(map(str.isalpha, link)):  # "is", not a sign of code
            return not (value.isdigit() and link[-1] in "=:,([")
        return not self._values.name_in_code.fullmatch(value) and not 0 < value.count(" ") < 3


def _words(pattern: re.Pattern[str], lowered: str) -> list[Place]:
    """The places of words for secrets, without those that the next one follows at once."""
    places = [word.span() for word in pattern.finditer(lowered)]
    return [place for place, after in pairwise([*places, (len(lowered) + 9, 0)]) if after[0] > place[1] + 3]


def _near(
    words: list[Place], text: str, values: re.Pattern[str], is_secret: Callable[[str], bool] = bool
) -> list[Place]:
    """The values near a word for a secret, in its line. A stretch near two words is searched once."""
    found: list[Place] = []
    done = 0
    for start, end in words:
        first = max(done, text.rfind("\n", max(0, start - NEAR), start) + 1, start - NEAR)
        line_end = text.find("\n", end, end + NEAR)
        done = end + 2 * NEAR if line_end < end + 4 else line_end  # a word that ends its line names what follows
        found += [match.span("secret") for match in values.finditer(text, first, done) if is_secret(match["secret"])]
    return found


def _is_quoted(group: str, value: str, link: str) -> bool:
    """Whether somebody quoted a value in a sentence: then it is one, whatever it looks like."""
    return group == "quoted" and " " not in value.strip() and any(map(str.isalpha, link))


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
