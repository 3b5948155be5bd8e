"""Signals: what a user's turn says besides its content, found by patterns in YAML, one file a language.

A text is cut into sentences; code, quotations and the phrases under `harmless` are blanked out first, since most false
alarms come from words that are talked about, not said. Patterns under `statement` are not tried on questions. Only the
first 2,000 characters are looked at: who corrects somebody does so at the beginning.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property

from memd.push.prefilter import Prefilter

SIGNALS: tuple[str, ...] = ("correction", "reinforcement", "preference", "identity", "goal", "decision")

LOOK_AT = 2_000
"""Characters of a text that are looked at."""

HARMLESS = "harmless"
_CJK = re.compile("[\u3400-\u9fff]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTE = re.compile("['\"“「『《]")
_QUOTED = re.compile(
    r"(?<!\w)'[^'\n]{2,80}'(?!\w)|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』"
    r"|《[^》\n]{1,200}》"
)
_SENTENCE = re.compile(r"[^.!?。！？\n;；~…]+(?:\.(?=\w)[^.!?。！？\n;；~…]*)*[.!?。！？;；~…]*")
_BOUNDS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[(|)]", re.DOTALL)
"""What makes a pattern's structure: escapes and sets as a whole, brackets, bars."""

_QUESTION = re.compile(r"[?？]\s*$|(?:吗|嗎|呢|么)[。.!！~\s]*$")

Rules = dict[tuple[str, str], list[str]]
"""(signal, kind) → pattern sources; the signal `harmless` has what is blanked out."""


class _Pattern:
    """One alternative of a pattern: what it tells, and whether it is tried on statements only. Compiled when tried."""

    def __init__(self, source: str, signal: str, kind: str) -> None:
        self._source = source
        self.signal = signal
        self.statement = kind == "statement"

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(self._source)


class _Script:
    """The patterns of one script: a text that has none of its characters need not be looked at."""

    def __init__(self, rules: Rules, *, cjk: bool) -> None:
        parts = [
            (part, _Pattern(part, signal, kind))
            for (signal, kind), sources in rules.items()
            for source in sources
            for part in alternatives(source)
            if (_CJK.search(part) is not None) is cjk
        ]
        self._telling = Prefilter([pair for pair in parts if pair[1].signal != HARMLESS])
        self._blanked = [part for part, pattern in parts if pattern.signal == HARMLESS]
        self._blanking = Prefilter([(part, None) for part in self._blanked])

    @cached_property
    def _harmless(self) -> tuple[re.Pattern[str], ...]:
        return grouped(self._blanked)

    def blank(self, text: str) -> str:
        """The text with everything harmless blanked out."""
        for pattern in self._harmless if self._blanking.could_match(self._blanking.literals_in(text)) else ():
            text = pattern.sub(" ", text)
        return text

    def needs(self, text: str) -> list[str] | None:
        """The texts that patterns need and this one has; None when no pattern can be found in it."""
        needs = self._telling.literals_in(text)
        return needs if self._telling.could_match(needs) else None

    def look(self, sentence: str, needs: list[str], found: set[str]) -> None:
        """Add the signals that are found in a sentence of a text that has these needs."""
        patterns = self._telling.select_part(needs, sentence)
        bare = sentence.strip(" \t,，、:-—*>#") if patterns else ""
        for pattern in patterns:
            if pattern.signal in found or not pattern.regex.search(bare):
                continue
            if not (pattern.statement and _QUESTION.search(sentence)):
                found.add(pattern.signal)


class Patterns:
    """The patterns of all languages."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    @cached_property
    def _latin(self) -> _Script:
        return _Script(self.rules, cjk=False)

    @cached_property
    def _han(self) -> _Script:
        return _Script(self.rules, cjk=True)

    def detect(self, text: str) -> frozenset[str]:
        """The signals in a text of the user; none in most."""
        text = text[:LOOK_AT].replace("’", "'")
        text = (text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)).lower()
        if "`" in text:
            text = _CODE.sub(" ", text)
        if _QUOTE.search(text):
            text = _QUOTED.sub(" ", text)
        scripts = [self._latin, self._han] if _CJK.search(text) else [self._latin]
        for script in scripts:
            text = script.blank(text)
        looking = [(script, needs) for script in scripts if (needs := script.needs(text)) is not None]
        found: set[str] = set()
        for sentence in _SENTENCE.findall(text) if looking else ():
            for script, needs in looking:
                script.look(sentence, needs, found)
        return frozenset(found)


def alternatives(source: str) -> Iterator[str]:
    """The parts of a pattern between its outermost bars."""
    depth, start = 0, 0
    for found in _BOUNDS.finditer(source):
        if found[0] == "|" and depth == 0:
            yield source[start : found.start()]
            start = found.end()
        depth += (found[0] == "(") - (found[0] == ")")
    yield source[start:]


def grouped(parts: list[str]) -> tuple[re.Pattern[str], ...]:
    """Patterns as a few larger ones, by how they begin. Raises re.error where they do not go together."""
    groups: dict[str, list[str]] = {}
    for part in parts:
        prefix = next((prefix for prefix in ("^", r"\b") if part.startswith(prefix)), "")
        groups.setdefault(prefix, []).append(part[len(prefix) :])
    return tuple(re.compile(f"{prefix}(?:{'|'.join(group)})") for prefix, group in groups.items())
