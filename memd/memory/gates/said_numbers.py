"""SaidNumbers: whether the numbers of a fact were said. Dates, ages and durations may be reckoned from what was said.

Numbers are read as digits ("1,340", "72k", "130万") and as words ("a hundred and twenty-five thousand", 两千). What is
read of the sources is generous, for a number read too many only lets a fact pass. But a multiple of a said number
counts only where its unit or scale is named, and the day of the talk only in a date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cached_property
from itertools import combinations, product
from pathlib import Path

from memd.push.patterns import Lists, prepared
from memd.push.width import nfkc

_LONGEST = 40
"""Characters of a number that are read."""

_LISTS = Lists(
    Path(__file__).parent / "support",
    *("relative", "dates", "skip", "parts", "half_hour", "quarters", "before_hour"),
)
_NUMBER = re.compile(r"\d+")
_NO_DIGIT = re.compile(r"[^\d.,]")
_POINT = re.compile("[.,]")
_LETTER = re.compile("[a-z]")
_UNIT = re.compile("(?:st|nd|rd|th|kg|km|m|cm|mm|g|h|l|am|pm|gb|tb|mg|ml|s|x|p|eur|usd)(?![a-z])")
_SAID = re.compile(
    r"(?<![a-z\d._])(\d+(?:[.,'  ]\d{3})*(?:[.,]\d+)?)"
    r"(?:\s?(k|m|mio|tsd|thousand|million|billion|mil|mille|tausend|百万|千万|万|萬|千|百|亿)(?![a-z]))?"
)
"""A number in digits, and its scale."""

_SCALES = {
    "k": 1e3, "m": 1e6, "mio": 1e6, "tsd": 1e3, "thousand": 1e3, "million": 1e6, "billion": 1e9, "mil": 1e3,
    "mille": 1e3, "tausend": 1e3, "百万": 1e6, "千万": 1e7, "万": 1e4, "萬": 1e4, "千": 1e3, "百": 1e2, "亿": 1e8,
}  # fmt: skip
_ZH = re.compile("[零〇一二两兩俩仨三四五六七八九十百千万萬亿半]+")
_ZH_COUNTED = re.compile(
    "(?<![第星期周礼拜初每零〇一二两三四五六七八九十百千万])(?!.分之)((?:一(?=[十百千万])|[二两三四五六七八九十百千万])[零〇一二两三四五六七八九十百千万]*)"
    "(?=[岁歲个個天块元只隻條条次套辆斤层層位本台倍口公小分名年])"
)
_ZH_DIGITS = {
    char: value for value, chars in enumerate(("零〇", "一", "二两兩俩", "三仨", *"四五六七八九")) for char in chars
}
_ZH_UNITS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000, "亿": 100_000_000}
_AFTERNOON = re.compile(r"(?<![\d.,:])(1[3-9]|2[0-3])(?=:\d\d|\s?(?:[h点时時]|uhr)|\s?(?:und|bis|-|–)\s?\d\d\s?uhr)")
_CLOCK = re.compile(r"(?<![\d.,:])(\d{1,2})(?::|\s?(?:h|点|时)\s?)(\d{2})(?!\d)")
_ZH_MONTH = re.compile(r"\d{1,2}\s?月(?:份|底|初|中)?")
_PARTS_OF_HOUR = {"half_hour": {30}, "quarters": {15, 45}}
_AND_A_HALF = re.compile(r"(?<![a-z\d])(\d{1,9}|[a-z]{3,12}) and a half|([一二两三四五六七八九十\d]{1,4})[年个岁]半")
_METRES = re.compile("([12一二两])\\s?米([一二三四五六七八九\\d]{1,2})(?!\\d)")
"""A height: 一米七五."""

_LISTING = re.compile(r"(?<![\w’'-])[\w’'-]{1,30}(?:(?:, |、)[\w’' -]{1,30}){1,8}(?:,? (?:and|und|et|y|e) |[和、])\w")
_COMMA = re.compile("[,、](?! (?:and|und|et|y|e) )")
_WORD = re.compile(r"[^\W\d_]+")
_MOST_AGES = 30
"""Numbers whose differences are looked at; so many are said in no turn but a list."""

_TENS = range(20, 100, 10)
_CONNECTING = frozenset({"and", "und", "et", "y", "e", "a"})
_ONES = frozenset({"one", "ein", "un", "une", "uno", "una"})
"""Words for one. Mostly they are articles: they count only in a longer number, "thirty-one", "einunddreißig"."""


@prepared
def _words() -> dict[str, float]:
    """Number words of all languages, and the scales."""
    pairs = (entry.partition("=") for entry in _LISTS.sources("numbers"))
    return {word: float(value) for word, _, value in pairs}


@prepared
def _unclear() -> frozenset[str]:
    """Number words that mean a number where somebody says them, and mostly none in a fact."""
    return frozenset(_LISTS.sources("unclear"))


@prepared
def _scales() -> list[tuple[float, re.Pattern[str]]]:
    """Multiples that a fact may write a said number as, each with the units or scales that have to be named."""
    pairs = (entry.partition("=") for entry in _LISTS.sources("scales"))
    return [(float(factor), re.compile(words)) for factor, _, words in pairs]


class SaidNumbers:
    """The numbers of everything that was said around a fact, and of what was known. They are read when first needed."""

    def __init__(self, texts: Iterable[str], said_on: date, more: SaidNumbers | None = None) -> None:
        """`more`: the numbers of other texts, which are not read again."""
        self._given = list(texts)
        self._said_on = said_on
        self._more = more

    @cached_property
    def _own(self) -> list[str]:
        return [nfkc(text).lower() for text in self._given]

    @cached_property
    def _texts(self) -> list[str]:
        return [*self._own, *(self._more._texts if self._more else ())]

    @cached_property
    def _read_texts(self) -> list[tuple[str, set[float]]]:
        own = [(text, set(_read(text))) for text in self._own]
        return [*own, *(self._more._read_texts if self._more else ())]

    @cached_property
    def _values(self) -> set[float]:
        return {value for _, values in self._read_texts for value in values}

    @cached_property
    def _relative(self) -> bool:
        return any(map(_LISTS["relative"].search, self._texts))

    @cached_property
    def _said_years(self) -> set[float]:
        return {value for value in self._values if 1900 <= value <= 2100}

    @cached_property
    def _years(self) -> set[float]:
        spans = {abs(one - other) for one, other in combinations(self._ages, 2)}
        return {full for value in self._values | spans for full in self._full_years(value)}

    @cached_property
    def _ages(self) -> list[float]:
        """What may be an age or a count of years: of two of them the difference is a time, "since I was 12, I'm 34"."""
        return sorted(value for value in self._values if 1 <= value < 100 and value == int(value))[:_MOST_AGES]

    def missing(self, fact: str) -> str:
        """The first number of a fact that neither stands in the sources nor can be reckoned from them; "": none."""
        text = nfkc(fact).lower()
        dates = [*_LISTS["dates"].finditer(text)]
        for match in dates:
            if missing := self._missing_of_date(match):
                return missing
        text = _LISTS["dates"].sub(" ", text) if dates else text
        text = _ZH_MONTH.sub(" ", _LISTS["skip"].sub(" ", text))
        text = _CLOCK.sub(self._clock, text)
        text = _AFTERNOON.sub(lambda hour: " " if self._holds(int(hour[0]) - 12) else hour[0], text)
        named = _named(text)
        return next((word for word, values in named if not any(self._holds(value, text) for value in values)), "")

    def _clock(self, time: re.Match[str]) -> str:
        """A time of a fact, without what was said: "17:30" is said by "half five", "6:45" by "quarter to seven"."""
        hour, minutes = map(int, time.groups())
        parts = next((name for name, own in _PARTS_OF_HOUR.items() if minutes in own), "")
        spoken = bool(parts) and any(map(_LISTS[parts].search, self._texts))
        before = (spoken or self._holds(60 - minutes)) and any(map(_LISTS["before_hour"].search, self._texts))
        hours = (hour, hour - 12, hour + 12, *((hour + 1, hour - 11) if before else ()))
        return " " if (spoken or before or self._holds(minutes)) and any(map(self._holds, hours)) else time[0]

    def _missing_of_date(self, match: re.Match[str]) -> str:
        parts = [int(part) for part in _NUMBER.findall(match[0])]
        years = [part for part in parts if part > 31]
        if any(not self._holds(year) for year in years):
            return match[0]
        days = [part for part in parts if part <= 31]
        if len(years) == 1 and len(days) == 1 and not _LETTER.search(match[0]):  # "2026-11"
            near = {(self._said_on.month + offset - 1) % 12 + 1 for offset in (-1, 0, 1)}
        else:
            near = {self._said_on.day + offset for offset in (-1, 0, 1)}
            days = days[-1:] if years and parts[0] == years[0] else days
        if self._relative or not days or any(self._holds(day) or day in near for day in days):
            return ""
        return match[0]

    def _holds(self, value: float, fact: str = "") -> bool:
        """Whether a number was said, or can be reckoned from what was said and the year; `fact` names its units."""
        if value in self._values or value <= 1:
            return True
        if any(self._is_scaled(value, factor, words, fact) for factor, words in _scales()):
            return True
        now = self._said_on.year
        if 1900 <= value <= 2100:
            return abs(value - now) <= 1 or any(abs(value - year) <= 1 for year in self._years)
        return value == int(value) and any(abs(now - year - value) <= 1 for year in self._said_years)

    def _is_scaled(self, value: float, factor: float, words: re.Pattern[str], fact: str) -> bool:
        """Whether a text has a multiple or a part of a number, and names the scale, with the fact: "70 to 72k"."""
        return any(
            (value * factor in values or value / factor in values) and words.search(f"{fact}\n{text}")
            for text, values in self._read_texts
        )

    def _full_years(self, value: float) -> Iterator[float]:
        """The years that a number may mean: itself, with its century, or that many years before or after now."""
        now = self._said_on.year
        if 1900 <= value <= 2100:
            yield value
        if 0 < value < 100:
            yield from (now - value, now + value)
            if value == int(value):
                yield from (1900 + value, 2000 + value)


def _read(text: str) -> Iterator[float]:
    """Every reading of every number of a text."""
    yield from map(float, {number[:_LONGEST] for number in _NUMBER.findall(text)})
    for number, scale in set(_SAID.findall(text)):
        yield from _readings(number, scale)
    yield from {value for _, values in _worded(text) for value in values}
    for run in {run[:_LONGEST] for run in _ZH.findall(text)}:
        yield from _zh_values(run)
        if run[-1] == "一" and len(run) > 1:  # 五十一个月: fifty a month, or fifty-one months
            yield from _zh_values(run[:-1])
    yield from _listed(text)
    for latin, chinese in _AND_A_HALF.findall(text) if " and a half" in text or "半" in text else ():
        yield from (value + 0.5 for value in _value_of(latin or chinese))
    for metres, rest in _METRES.findall(text) if "米" in text else ():
        for whole, part in product(_value_of(metres), _value_of(rest)):
            height = whole * 100 + (part if part >= 10 else part * 10)
            yield from (height, height / 100)


def _value_of(word: str) -> list[float]:
    """The readings of one number in digits, or as a word."""
    if word.isdecimal():
        return [float(word[:_LONGEST])]
    if word in _ONES:
        return [1.0]
    return [_words()[word]] if word in _words() else _zh_values(word) if _ZH.fullmatch(word) else []


def _listed(text: str) -> Iterator[float]:
    """How many things each list of a text names: "Mia, Theo and Ada" are three."""
    for listing in _LISTING.findall(text) if ", " in text or "、" in text else ():
        yield float(len(_COMMA.findall(listing)) + 2)


def _named(text: str) -> Iterator[tuple[str, list[float]]]:
    """The numbers of a fact, as written, each with its readings."""
    yield from _digits(text)
    worded = ((word, values[-1]) for word, values in _worded(text) if word not in _unclear())
    yield from ((word, [value]) for word, value in worded if value > 2)
    for match in _ZH_COUNTED.finditer(text):
        yield match[0], _zh_values(match[1])


def _digits(text: str) -> Iterator[tuple[str, list[float]]]:
    """The numbers in digits, but for those in a name: "3d", "4x4"."""
    for match in _SAID.finditer(text):
        if match[2] or not _LETTER.match(text, match.end()) or _UNIT.match(text, match.end()):
            yield match[0], _readings(match[1], match[2])


def _readings(number: str, scale: str) -> list[float]:
    """What a number may mean: "1.340" 1340 or 1.34, "1,340" only the first, "72k" 72 or 72,000."""
    bare = _NO_DIGIT.sub("", number[:_LONGEST])
    readings = {float(_POINT.sub("", bare))}
    point = max(bare.rfind("."), bare.rfind(","))
    if point >= 0 and not (bare[point] == "," and len(bare) - point == 4):
        readings.add(float(_POINT.sub("", bare[:point]) + "." + bare[point + 1 :]))
    if scale:
        readings |= {value * _SCALES[scale] for value in readings}
    return sorted(readings)


def _worded(text: str) -> Iterator[tuple[str, list[float]]]:
    """Numbers in words: the words of each, and the values on the way to it, word by word."""
    said = _WORD.findall(text)
    parts = {word: split for word in set(said) if (split := _split(word))}
    if not parts:
        return
    run: list[str] = []
    values: list[float] = []
    total, current = 0.0, 0.0
    for whole in (*said, ""):
        split = parts.get(whole, [whole])
        for word in split:
            longer = _goes_on(current, 1) if run else len(split) > 1
            value = 1.0 if longer and word in _ONES else _words().get(word)
            if value is None and run and whole in _CONNECTING:
                continue
            if run and (value is None or (value < 100 and not _goes_on(current, value))):
                yield " ".join(run), values or [total + current]
                run, values, total, current = [], [], 0.0, 0.0
            if value is None:
                continue
            if value >= 1_000:
                total, current = total + (current or 1) * value, 0.0
            elif value == 100:
                current = (current or 1) * 100
            else:
                current = 80.0 if (current, value) == (4, 20) else current + value  # quatre-vingt
            run.append(word)
        if run:
            values.append(total + current)


def _goes_on(current: float, value: float) -> bool:
    """Whether a number word adds to the number before it: "hundred | five", "sixty | twelve", "zwei(und) | zwanzig"."""
    if 0 < current % 100 < 10:
        return value in _TENS
    return current % 100 == 0 or (current % 100 in _TENS and value < 20)


def _split(word: str) -> list[str]:
    """The number words that a word is or is made of ("zweiundzwanzig"); empty when it is none."""
    if word in _words():
        return [word]
    if not 7 <= len(word) <= _LONGEST or not _LISTS["parts"].match(word):
        return []
    parts = [match[0] for match in _LISTS["parts"].finditer(word)]
    return [part for part in parts if part != "und"] if "".join(parts) == word else []


def _zh_values(run: str) -> list[float]:
    """The readings of Chinese numerals: 三十七 by its units, 二零一九 digit by digit."""
    readings = [_zh_value(run)]
    if all(char in _ZH_DIGITS for char in run):
        readings.append(float("".join(str(_ZH_DIGITS[char]) for char in run)))
    return readings


def _zh_value(run: str) -> float:
    total, section, digit = 0.0, 0.0, 0.0
    for char in run:
        if char == "半":
            section += 0.5
        elif (unit := _ZH_UNITS.get(char)) is None:
            digit = _ZH_DIGITS[char]
        elif unit < 10_000:
            section, digit = section + (digit or 1) * unit, 0.0
        else:
            total, section, digit = (total + section + digit or 1) * unit, 0.0, 0.0
    if digit and len(run) > 1 and (last := _ZH_UNITS.get(run[-2], 0)) >= 100:
        digit *= last / 10  # 一千二 is 1,200
    return total + section + digit
