"""Words: the roots of a text for the index. Stems of words, and pairs of characters where words have no spaces.

Queries and facts are split alike, so that both sides agree. Nothing in a query is an operator. The roots of a word are
reckoned once and kept. `words/` has the grammar, irregular forms and number words of each language.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any

from memd.config.yaml_text import read
from memd.memory.text import fold

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, Hangul: words are not separated by spaces, or carry their endings."""

BEGINNINGS = (3, 5)
"""Lengths, in letters, of the beginnings by which related words are found."""

_KEPT = 32_768
"""Words whose roots are kept: some 6 MB. Beyond it they are reckoned anew, which only costs time."""

_LETTER = f"[^\\W_{_UNSPACED}]"
# Marks belong to the letter before them; "+" and "#" to the name they end ("C++", "C#").
_TOKEN = re.compile(f"[{_UNSPACED}]+|{_LETTER}(?:{_LETTER}|[\u0300-\u036f\u0900-\u0dff]|['’](?=[a-z]))*[+#]*")
_FIRST_UNSPACED = "\u0e00"
# ASCII text is split at everything that no word contains, much faster than by the regex; its case does not count.
_BETWEEN = bytes(code if chr(code).isalnum() or chr(code) in "'+#" else 32 for code in range(128)).lower().ljust(256)

_AROUND = '.,;:!?()"'
"""Signs around words, which are no part of them."""

_FOLDER = Path(__file__).with_suffix("")
_ENGLISH: dict[str, Any] = read(_FOLDER / "en.yaml")
_CHINESE: dict[str, Any] = read(_FOLDER / "zh.yaml")
_FUNCTION_WORDS = frozenset(_ENGLISH["function_words"])
_NUMBERS: dict[str, str] = _ENGLISH["numbers"]
_IRREGULAR = {form: plain for plain, forms in _ENGLISH["irregular"].items() for form in forms}
_FUNCTION_CHARACTERS = frozenset(_CHINESE["function_characters"])
_NUMERALS: dict[str, str] = _CHINESE["numerals"]

Roots = tuple[str, ...]


def roots(text: str) -> list[str]:
    """The roots of a text in order, with repetitions. Function words count only when there are no other words.

    For example, "Does she like teas?" has lik tea, "bought two" has buy 2, and
    "喜欢绿茶" has 喜欢 喜 欢绿 欢 绿茶 绿 茶.
    """
    if text.isascii():
        words = text.encode().translate(_BETWEEN).decode().split()
        return list(chain.from_iterable(map(_WORDS.__getitem__, words))) or _grammar(fold(text))
    found: list[str] = []
    plain = fold(text)
    for word in plain.split():
        if word.isascii():
            found += _WORDS[word.strip(_AROUND)]
            continue
        for token in _TOKEN.findall(word):
            found += _characters(token) if _is_unspaced(token) else _WORDS[token]
    return found or _grammar(plain)


def beginnings(root: str) -> list[str]:
    """The beginnings of a root by which related words are found; none of a number or of characters."""
    return [root[:size] for size in BEGINNINGS if len(root) >= size] if root.isascii() and root.isalpha() else []


def _is_unspaced(token: str) -> bool:
    return token[0] >= _FIRST_UNSPACED and token[0] != "’"


def _characters(run: str) -> list[str]:
    """Pairs of neighbouring characters, each before its first character; without those that are only grammar."""
    return [*chain.from_iterable(map(_PAIRS.__getitem__, map(add, run, run[1:]))), *_PAIRS[run[-1]]]


def _grammar(plain: str) -> list[str]:
    """The roots of a text that has only function words."""
    found: list[str] = []
    for token in _TOKEN.findall(plain):
        found += [*map(add, token, token[1:]), *token] if _is_unspaced(token) else (stem(_plain(token)),)
    return [root for root in found if root]


class _Kept(dict[str, Roots]):
    """The roots of each word met so far. Two threads may reckon the same word at once, which is harmless."""

    def _reckoned(self, word: str) -> Iterable[str]:
        raise NotImplementedError

    def __missing__(self, word: str) -> Roots:
        found = tuple(self._reckoned(word))
        if len(self) >= _KEPT:
            self.clear()
        self[word] = found
        return found


class _Words(_Kept):
    """The roots of what stands between two spaces: mostly one word, "c++" or "it's" included."""

    def _reckoned(self, word: str) -> Iterable[str]:
        words = map(_plain, _TOKEN.findall(word))
        return [stem(part) for part in words if part and part not in _FUNCTION_WORDS]


class _Pairs(_Kept):
    """The roots of a pair of characters, or of a last single one: the pair, and its first character."""

    def _reckoned(self, word: str) -> Iterable[str]:
        first = word[0]
        if len(word) == 2 and not _FUNCTION_CHARACTERS.issuperset(word):
            yield word
        if first not in _FUNCTION_CHARACTERS:
            yield _NUMERALS.get(first, first)


_WORDS, _PAIRS = _Words(), _Pairs()


def _plain(word: str) -> str:
    """The word without apostrophes and accents, which many people omit in a query."""
    if word.isascii():
        return word.replace("'s", "").replace("'", "")
    bare = "".join(char for char in unicodedata.normalize("NFD", word) if unicodedata.category(char) != "Mn")
    return unicodedata.normalize("NFC", bare).replace("’", "'").replace("'s", "").replace("'", "")


def stem(word: str) -> str:
    """A word without English inflection: likes, liked, liking and like have one stem, as go and went; two is 2."""
    if len(word) < 3 or not word.isalpha() or not word.isascii():
        return word
    if word in _NUMBERS:
        return _NUMBERS[word]
    return _regular(_IRREGULAR.get(word, word))


def _regular(word: str) -> str:
    if len(word) < 4:
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
