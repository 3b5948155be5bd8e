"""Words: the terms of a text for the index. Stems of words, and pairs of characters where words have no spaces.

Queries and facts are split alike, so that both sides agree. Nothing in a query is an operator.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from memd.memory.text import fold

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, Hangul: words are not separated by spaces, or carry their endings."""

BEGINNING = "^"
"""Marks the beginning of a word as a term; no word contains it."""

_BEGINNINGS = (3, 5)
"""Lengths of the beginnings, in letters."""

_LETTER = f"[^\\W_{_UNSPACED}]"
# Marks belong to the letter before them; "+" and "#" to the name they end ("C++", "C#").
_TOKEN = re.compile(f"[{_UNSPACED}]+|{_LETTER}(?:{_LETTER}|[\u0300-\u036f\u0900-\u0dff]|['’](?=[a-z]))*[+#]*")
_FIRST_UNSPACED = "\u0e00"

_ENGLISH = (
    "a about after again all also am an and any anything are as at be been being both but by can could did do does "
    "doing done dont each for from get gets give gives go goes had has have having he her here hers him his how i if "
    "in into is it its itself just know known let may me might more most much must my no nor not now of off on once "
    "one only or other our out over own please same shall she should so some something still such tell than that "
    "thats the their theirs them then there these they thing things this those through to too under until up use "
    "user users very was we were what whats when where which while who whom whose why will with without would you "
    "your yours"
)
_FUNCTION_WORDS = frozenset(_ENGLISH.split())
_FUNCTION_CHARACTERS = frozenset(
    "的了吗嗎呢吧啊呀是在有和与與跟或我你您他她它们們这這那哪什么麼麽怎谁誰几幾多少会會能要想请請告诉訴把被让讓给給也都就还還很不没沒"
    "个個些里裡上下时時候用户戶对對关關于於一とのはをがにでたますか"
)


def terms(text: str) -> list[str]:
    """The terms of a text in order, with repetitions. Function words count only when there are no other words.

    For example, "Does she like teas?" has lik ^lik tea ^tea; the beginnings (^) relate insurer to insurance.
    "喜欢绿茶" has 喜 喜欢 欢 欢绿 绿 绿茶 茶.
    """
    tokens = _TOKEN.findall(fold(text))
    return _terms(tokens, keep=False) or _terms(tokens, keep=True)


def _terms(tokens: list[str], *, keep: bool) -> list[str]:
    result: list[str] = []
    for token in tokens:
        if token[0] >= _FIRST_UNSPACED and token[0] != "’":
            result += _pieces(token, keep=keep)
        elif (word := _plain(token)) and (keep or word not in _FUNCTION_WORDS):
            root = stem(word)
            result.append(root)
            if root.isalpha():
                result += [BEGINNING + root[:size] for size in _BEGINNINGS if len(root) >= size]
    return result


def _pieces(run: str, *, keep: bool) -> list[str]:
    """Characters and pairs of neighbouring characters, without those that are only grammar."""
    result: list[str] = []
    before = ""
    for char in run:
        if before and (keep or not (before in _FUNCTION_CHARACTERS and char in _FUNCTION_CHARACTERS)):
            result.append(before + char)
        if keep or char not in _FUNCTION_CHARACTERS:
            result.append(char)
        before = char
    return result


def _plain(word: str) -> str:
    """The word without apostrophes and accents, which many people omit in a query."""
    if word.isascii():
        return word.replace("'s", "").replace("'", "")
    bare = "".join(char for char in unicodedata.normalize("NFD", word) if unicodedata.category(char) != "Mn")
    return unicodedata.normalize("NFC", bare).replace("’", "'").replace("'s", "").replace("'", "")


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """A word without English inflection: likes, liked, liking and like have one stem."""
    if len(word) < 4 or not word.isalpha() or not word.isascii():
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
