"""Named secrets: values that only the words around them make secret ("my PIN is 4821", "密码是…", `DB_PASSWORD=…`).

A value that follows the word and a link ("is", ":", "は") counts unless it is a plain word or a name in code. Elsewhere
in the line of the word, a value counts only when it looks random. When one such word follows another at once, only the
last of them is searched after: a text that repeats such words takes linear time.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

from memd.push.patterns import compiled
from memd.push.word_finder import Place, WordFinder, add

Span = tuple[int, int, str]

NEAR = 80
"""Characters before and after a word for a secret in which a value that looks random is one."""

LINES_AFTER = 300
"""Characters after a word for backup codes in which these are looked for, in any line."""

MAX_NAMED = 500
"""Words for passwords and keys in one text whose values are judged. After more, the rest of each line that follows such
a word is cut unjudged: a text of nothing but such words must not hold a worker, and hides no secret."""

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
        self._stand_in_part = compiled(sources["stand_in_part"])

    def holds_a_place(self, value: str) -> bool:
        """Whether a value only stands for a secret: a mask, a variable, a type, "your-key-here"."""
        return self._stand_in.match(value) is not None or self._stand_in_part.search(value) is not None

    def is_strong(self, value: str) -> bool:
        """Whether a value is a secret when a word for one is in its line."""
        return not self.holds_a_place(value) and not self._harmless.fullmatch(value)

    def is_strong_alone(self, value: str) -> bool:
        """Whether a value is a password although no word says so: letters of both cases and digits, no name."""
        kinds = any(map(str.isupper, value)) + any(map(str.islower, value)) + any(map(str.isdigit, value))
        return kinds == 3 and len(value) >= 9 and self.is_strong(value)

    def is_strong_key(self, value: str) -> bool:
        """Whether part of the value is neither a word, a number nor a hash; a UUID counts as a key."""
        random = _UUID.fullmatch(value) is not None or any(_SALAD.search(part) for part in re.split("[_-]", value))
        return random and self.is_strong(value)


class _Near(NamedTuple):
    """What is searched near the words of a kind: values of a form that pass a check."""

    word: str
    values: re.Pattern[str]
    is_secret: Callable[[str], bool]
    kind: str


class NamedSecrets:
    """Finds the words for secrets in all languages, and the values they name."""

    def __init__(self, sources: dict[str, list[str]], values: Values) -> None:
        self._values = values
        kinds = [name.removesuffix("_word") for name in sources if name.endswith("_word")]
        self._words = WordFinder((kind, source) for kind in kinds for source in sources[f"{kind}_word"])
        self._value = compiled(sources["value"])
        self._digits = compiled(sources["code"])
        self._near = [
            _Near("code", values.near_code, bool, "password"),
            _Near("password", values.near_password_number, bool, "password"),
            _Near("password", values.near_password, values.is_strong, "password"),
            _Near("login", values.near_password, values.is_strong_alone, "password"),
            _Near("recovery", compiled(sources["near_recovery"]), bool, "password"),
            _Near("passphrase", compiled(sources["near_passphrase"]), bool, "password"),
            _Near("wifi", compiled(sources["near_wifi"]), bool, "password"),
            _Near("wifi", values.near_password, values.is_strong_alone, "password"),
            _Near("key", values.near_key, values.is_strong_key, "key"),
            _Near("private_key", compiled(sources["near_private_key"]), bool, "key"),
            _Near("vendor", compiled(sources["near_vendor"]), values.is_strong_key, "key"),
            _Near("vendor_of_ids", compiled(sources["near_vendor_of_ids"]), bool, "key"),
        ]

    def find(self, text: str, lowered: str) -> Iterator[Span]:
        """The secrets in a text. `lowered` is the text in lower case, with all characters in the same places."""
        found = self._words.find(lowered)
        found["password"] = _merged(found["password"], found["code"])
        named = list(dict.fromkeys(sorted([*found["password"], *found["key"]])))
        cut = list(_lines_after(named[MAX_NAMED:], text))
        yield from ((first, last, "password") for first, last in cut)
        yield from self._near_words(found, text, cut)
        if cut:
            found = {kind: places[: bisect_left(places, named[MAX_NAMED])] for kind, places in found.items()}
        yield from self._named(found, text, lowered)

    def _near_words(self, found: dict[str, list[Place]], text: str, cut: list[Place]) -> Iterator[Span]:
        """The secrets near words of their kind, but for what is cut anyway."""
        windows = {
            kind: _outside(_windows(places, text, lines=kind == "recovery"), cut)
            for kind, places in found.items()
            if places
        }
        for near in self._near if windows else ():
            for first, last in windows.get(near.word, ()):
                for match in near.values.finditer(text, first, last):
                    if near.is_secret(match["secret"]):
                        yield *match.span("secret"), near.kind

    def _named(self, found: dict[str, list[Place]], text: str, lowered: str) -> Iterator[Span]:
        """The secrets that follow their words."""
        passwords, codes, keys = found["password"], found["code"], found["key"]
        yield from self._after(passwords, text, lowered, "password", _looks_like_a_password)
        yield from self._after(keys, text, lowered, "key", _looks_like_a_key)
        at_once = self._values.number_at_once
        matches = [
            *(self._digits.match(lowered, end) for _, end in codes),
            *(at_once.match(text, end) for _, end in passwords),
        ]
        yield from ((*match.span("secret"), "password") for match in matches if match)

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
        in_sentence = any(map(str.isalpha, link))  # "is", not a sign of code
        if in_sentence and value.isdigit() and link[-1] in "=:,([":
            return False
        in_code = self._values.name_in_code.fullmatch(value) is not None or 0 < value.count(" ") < 3
        return (in_sentence and link[-1] != "=") or not in_code


def _merged(some: list[Place], others: list[Place]) -> list[Place]:
    if not some or not others:
        return some or others
    places: list[Place] = []
    for place in sorted([*some, *others]):  # two rows in order: sorting them takes linear time
        add(place, places)
    return places


def _windows(words: list[Place], text: str, *, lines: bool) -> list[Place]:
    """The stretches of a text near words, each in the line of its word, or also in the lines after. None overlap."""
    windows: list[Place] = []
    last = -1
    for start, end in words:
        line_end = text.find("\n", end, end + NEAR)
        near_end = end + 2 * NEAR if line_end < end + 4 else line_end  # a word that ends its line names what follows
        near_end = max(near_end, end + LINES_AFTER) if lines else near_end
        if start <= last:
            windows[-1] = windows[-1][0], near_end
        else:
            near = max(0, start - NEAR)
            near = text.rfind(" ", max(0, near - NEAR), near) + 1 or near  # a value that begins before is not cut
            first = max(last, text.rfind("\n", near, start) + 1, near)
            windows.append((first, near_end))
        last = near_end
    return windows


def _lines_after(words: list[Place], text: str) -> Iterator[Place]:
    """What follows each word in its line, whatever it is; stretches that meet as one."""
    first = last = 0
    for _, end in words:
        line_end = text.find("\n", end, end + NEAR)
        if end > last:
            if last > first:
                yield first, last
            first = end
        last = min(end + NEAR, len(text)) if line_end < 0 else line_end
    if last > first:
        yield first, last


def _outside(windows: list[Place], cut: list[Place]) -> list[Place]:
    """The parts of the windows that are not cut; both in order."""
    parts: list[Place] = []
    nearest = 0
    for window, last in windows:
        first = window
        while nearest < len(cut) and cut[nearest][1] <= first:
            nearest += 1
        for start, stop in map(cut.__getitem__, range(nearest, len(cut))):
            if start >= last:
                break
            if start > first:
                parts.append((first, start))
            first = max(first, stop)
        if first < last:
            parts.append((first, last))
    return parts


def _is_quoted(group: str, value: str, link: str) -> bool:
    """Whether somebody quoted a value in a sentence: then it is one, whatever it looks like."""
    return group == "quoted" and " " not in value.strip() and any(map(str.isalpha, link)) and link[-1] != "="


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
