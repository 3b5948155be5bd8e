"""Names: whether the names of a fact were said. A name in another script or language cannot be compared, and passes.

Names are words with a capital inside a sentence, in Latin script; in Chinese what 叫 introduces, and known places. A
short form says the long one, and the other way round ("NYC", "k8s", "JS"). A translation of a name ("München" as
"Munich", 杰森 as "Jason") is no invention: where what was said is not in English and has names of its own, a name that
sounds like one of them is not missing; and no name is where the fact is in that language too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from memd.memory.text import CJK
from memd.push.patterns import Lists, prepared

STEM = 4
"""Letters that a name and a word must share at their beginning to count as one: "Portugal", "Portuguese"."""

_ENOUGH = 5_000
"""Characters of a text that are read to tell its language and its names."""

_LISTS = Lists(Path(__file__).parent / "support", "introduced", "contrasts")
_LETTERS = rf"[^\W_{CJK}]+"
_WORD = re.compile(rf"{_LETTERS}(?:[.&'’+#-]{_LETTERS}|[+#]+)*")
_OPENS = re.compile(r"(?:^|[.!?:;。！？；：\n\"“「(（]\s*)$")
_NUMBERED = re.compile(r"([a-z]{2,})-\d+")
"""A name with a number: "KES-481"."""

_RUN = re.compile(r"[A-Z][\w'’]*(?:[ -](?:(?:of|for|and|the|de|di|du|der|des|&) ){0,2}[A-Z][\w'’]*){0,5}")
"""Names side by side, which may have a short form: "Massachusetts Institute of Technology"."""

_CAPITALIZED = re.compile(r"[A-Z][\w'’]*")
_HUMP = re.compile("[A-Z]")
_NUMERONYM = re.compile(r"(?<![^\W_])([a-z])(\d{1,2})([a-z])(?![^\W_])")
_ALIKE = 0.6
"""Share of the consonants in common by which two names sound alike."""

_SOUNDS = str.maketrans("cgqvwbz", "kkkfffs", "aeiouyjh")
_CJK = re.compile(f"[{CJK}]")
_NO_SIGNS = {code: None for code in range(128) if not chr(code).isalnum()}
_MARKS = re.compile("[\u0300-\u036f]")


@prepared
def _places() -> dict[str, list[str]]:
    """Chinese names of places, each with its names in Latin letters."""
    return {name: others.split("/") for entry in _LISTS.sources("places") for name, _, others in [entry.partition("=")]}


@prepared
def _common() -> frozenset[str]:
    return frozenset(_LISTS.sources("no_names"))


@prepared
def _function_words() -> tuple[frozenset[str], frozenset[str]]:
    """The small words of English, and those of the other languages in Latin script."""
    return frozenset(_LISTS.sources("english")), frozenset(_LISTS.sources("foreign"))


@prepared
def _same() -> dict[str, frozenset[str]]:
    """Names with other words for the same: "uk", "british"."""
    groups = [frozenset(entry.split("/")) for entry in _LISTS.sources("same")]
    return {name: group for group in groups for name in group}


def is_common(name: str) -> bool:
    """Whether a word with a capital is no name of anybody or anything, as those of days and months."""
    return _plain(name) in _common()


def places_in(text: str) -> frozenset[str]:
    """The known places that a Chinese text names, as written there."""
    return frozenset(name for name in _places() if name in text) if _CJK.search(text) else frozenset()


class SaidNames:
    """The words of everything that was said around a fact, and of what was known. They are read when first needed."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._said = list(texts)

    @cached_property
    def _lines(self) -> str:
        return "\n".join(map(_plain, self._said))

    @cached_property
    def _letters(self) -> str:
        return _bare(self._lines)

    @cached_property
    def _has_cjk(self) -> bool:
        return any(map(_CJK.search, self._said))

    @cached_property
    def _chars(self) -> set[str]:
        return {char for text in self._said for char in _CJK.findall(text)}

    @cached_property
    def _is_cjk(self) -> bool:
        """Whether most of what was said is in Chinese, Japanese or Korean."""
        texts = [text[:_ENOUGH] for text in self._said]
        return sum(len(_CJK.findall(text)) for text in texts) > sum(len(_latin(text)) for text in texts)

    @cached_property
    def _foreign(self) -> int:
        return _foreignness(self._said)

    @cached_property
    def _said_names(self) -> set[str]:
        return {_plain(name) for text in self._said for name in _names(text[:_ENOUGH], opening=True)}

    @cached_property
    def _short(self) -> set[str]:
        """Words that may be the initials of a name. Two small letters may be any word."""
        english, foreign = _function_words()
        words = {word for text in self._said for word in _WORD.findall(text[:_ENOUGH]) if 2 <= len(word) <= 6}
        small = {word for word in words if word.islower() and word not in english | foreign}
        return {word.casefold() for word in words if word.isupper()} | small

    @cached_property
    def _initials(self) -> set[str]:
        return {form.initials for text in self._said for form in _short_forms(text[:_ENOUGH])}

    def missing(self, fact: str) -> str:
        """The first name of a fact that was not said; "": none."""
        for name in _names(_LISTS["contrasts"].sub(r"\1 ", fact), opening=False):
            if not (self._holds(name) or self._abbreviates(name, fact) or self._is_translated(name, fact)):
                return name
        return self._missing_chinese(fact) if _CJK.search(fact) else ""

    def _missing_chinese(self, fact: str) -> str:
        for match in _LISTS["introduced"].finditer(fact):
            if self._has_cjk and _squeezed(next(filter(None, match.groups()))) not in self._letters:
                return match[0]
        for name, others in _places().items():
            if name in fact and not any(_squeezed(one) in self._letters for one in (name, *others)):
                return name
        return ""

    def _holds(self, name: str) -> bool:
        if _plain(name) in self._lines:  # the fast path
            return True
        squeezed = _squeezed(name)
        if squeezed in self._letters:
            return True
        if len(squeezed) >= STEM and re.search(rf"(?<![^\W_]){squeezed[:STEM]}", self._lines):
            return True
        numbered = _NUMBERED.fullmatch(_plain(name))  # SaidNumbers looks for the number
        return numbered is not None and bool(re.search(rf"(?<![a-z]){numbered[1]}(?![a-z])", self._lines))

    def _abbreviates(self, name: str, fact: str) -> bool:
        """Whether a short form of a name was said, its long form, or another word for the same."""
        plain = _plain(name)
        others = _same().get(plain, frozenset())
        spoken = (other for other in others if len(other) > 3 and re.search(rf"(?<!\w){other}(?!\w)", self._lines))
        if others & self._said_names or any(spoken) or (name.isupper() and plain in self._initials):
            return True
        if any(
            plain[0] == first and plain[-1] == last and len(plain) == int(between) + 2
            for first, between, last in _NUMERONYM.findall(self._lines)
        ):
            return True
        return any(name in form.words and self._is_short(form) for form in _short_forms(fact))

    def _is_short(self, form: _ShortForm) -> bool:
        """Whether these initials were said. Two small ones need another word of the name ("vs code")."""
        if form.initials not in self._short:
            return False
        if len(form.initials) > 2 or len(form.words) == 1:
            return True
        beside = any(_squeezed(word) in self._letters for word in form.others)
        alone = re.compile(rf"(?<![A-Za-z0-9]){form.initials.upper()}(?![A-Za-z0-9])")  # CJK may stand beside it
        return beside or any(map(alone.search, self._said))

    def _is_translated(self, name: str, fact: str) -> bool:
        """Whether what was said is in another script, or in another language with names that the fact may translate."""
        if self._has_cjk:
            kept = _CJK.findall(fact)  # "Hangzhou (杭州)", where somebody said so in Chinese
            return not kept or (self._is_cjk and set(kept) <= self._chars and len(kept) < len(_latin(fact)))
        if self._foreign < 0:
            return False
        theirs = self._said_names - {_plain(name) for name in _names(fact, opening=True)}
        if self._foreign and _foreignness([fact]) >= 0:  # German has capitals everywhere
            return bool(theirs)
        return any(_sounds_like(name, said) for said in theirs)


class _ShortForm(NamedTuple):
    """Initials, the words of a fact that they stand for, and the words beside those in the same name."""

    initials: str
    words: list[str]
    others: list[str]


def _latin(text: str) -> list[str]:
    return _WORD.findall(_CJK.sub(" ", text))


def _short_forms(text: str) -> Iterator[_ShortForm]:
    """The initials of names side by side, and of one with capitals inside."""
    for run in _RUN.findall(text):
        words = _CAPITALIZED.findall(run)
        for start, end in combinations(range(len(words) + 1), 2):
            initials = "".join(letter for word in words[start:end] for letter in _HUMP.findall(word)).casefold()
            if len(initials) > 1:
                yield _ShortForm(initials, words[start:end], words[:start] + words[end:])


def _sounds_like(name: str, other: str) -> bool:
    """Whether two names begin alike and share most consonants: "Florence", "Firenze"."""
    mine, theirs = (_squeezed(word).translate(_SOUNDS) for word in (name, other))
    return mine[:1] == theirs[:1] and SequenceMatcher(None, mine, theirs, False).ratio() >= _ALIKE


def _foreignness(texts: Iterable[str]) -> int:
    """Positive: most of the texts is in another language in Latin script than English. 0: it cannot be told."""
    english, foreign = _function_words()
    spoken = [word for text in texts for word in _WORD.findall(text[:_ENOUGH].casefold())]
    return sum(word in foreign for word in spoken) - sum(word in english for word in spoken)


def _names(text: str, *, opening: bool) -> Iterator[str]:
    """The words that are names. `opening`: those that open a sentence too, which have a capital whatever they are."""
    for match in _WORD.finditer(text):
        word = match[0].removesuffix("'s").removesuffix("’s").rstrip("'’")
        if word.casefold() in _common() or not any(map(str.isalpha, word)):
            continue
        capitals = sum(map(str.isupper, word))
        inside = capitals > word[0].isupper()  # "iPhone", "TypeScript", "NATO"
        if len(word) > 1 and (inside or (capitals and (opening or not _opens(text, match.start())))):
            yield word


def _opens(text: str, place: int) -> bool:
    """Whether a sentence begins at this place."""
    return _OPENS.search(text[max(place - 3, 0) : place]) is not None


def _plain(text: str) -> str:
    """A text without case and accents."""
    text = text.casefold()
    return text if text.isascii() else _MARKS.sub("", unicodedata.normalize("NFKD", text))


def _squeezed(text: str) -> str:
    return _bare(_plain(text))


def _bare(text: str) -> str:
    """The letters and digits of a text."""
    return text.translate(_NO_SIGNS) if text.isascii() else "".join(filter(str.isalnum, text))
