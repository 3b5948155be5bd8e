"""Signals: the kind of a user's message (correction, goal …), found by the patterns of `signals/<language>.yaml`.

A text is cut into sentences; code, quotations and the phrases under `harmless` are blanked out first, since most false
alarms come from words that are mentioned, not meant. Patterns under `statement` are not tried on questions. Only the
first 2,000 characters are searched: people who correct somebody do so at the beginning.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from memd.context import SIGNALS
from memd.errors import ConfigError
from memd.push.patterns import PatternFile, pattern_files
from memd.push.prefilter import Prefilter

LOOK_AT = 2_000
"""Characters of a text that are searched."""

HARMLESS = "harmless"
_KINDS = ("any", "statement")
_CJK = re.compile("[\u3400-\u9fff]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTE = re.compile("['\"“「『《]")
_QUOTED = re.compile(
    r"(?<!\w)'[^'\n]{2,80}'(?!\w)|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』"
    r"|《[^》\n]{1,200}》"
)
_SENTENCE = re.compile(r"[^.!?。！？\n;；~…]+(?:\.(?=\w)[^.!?。！？\n;；~…]*)*[.!?。！？;；~…]*")
_BOUNDS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[(|)]", re.DOTALL)
"""The structure of a regex: escapes and sets as a whole, brackets, bars."""

_QUESTION = re.compile(r"[?？]\s*$|(?:吗|嗎|呢|么)[。.!！~\s]*$")

Rules = dict[tuple[str, str], list[str]]
"""(signal, kind) → the sources of its patterns; the signal `harmless` has the phrases that are blanked out."""


class _SignalPattern:
    """One alternative of a pattern, compiled when first tried. `statement`: it is not tried on questions."""

    def __init__(self, source: str, signal: str, kind: str) -> None:
        self._source = source
        self.signal = signal
        self.statement = kind == "statement"

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(self._source)


class _Script:
    """The patterns of one script: a text without its characters need not be searched."""

    def __init__(self, rules: Rules, *, cjk: bool) -> None:
        parts = [
            (part, _SignalPattern(part, signal, kind))
            for (signal, kind), sources in rules.items()
            for source in sources
            for part in alternatives(source)
            if (_CJK.search(part) is not None) is cjk
        ]
        self._signals = Prefilter([pair for pair in parts if pair[1].signal != HARMLESS])
        self._blanked = [part for part, pattern in parts if pattern.signal == HARMLESS]
        self._prefilter = Prefilter([(part, None) for part in self._blanked])

    @cached_property
    def _harmless(self) -> tuple[re.Pattern[str], ...]:
        return grouped(self._blanked)

    def blank(self, text: str) -> str:
        """The text with the harmless phrases blanked out."""
        for pattern in self._harmless if self._prefilter.could_match(self._prefilter.literals_in(text)) else ():
            text = pattern.sub(" ", text)
        return text

    def literals_in(self, text: str) -> list[str] | None:
        """The required literals that occur in a text; None when no pattern could match."""
        literals = self._signals.literals_in(text)
        return literals if self._signals.could_match(literals) else None

    def search(self, sentence: str, literals: list[str], signals: dict[str, str]) -> None:
        """Add the signals of one sentence of a text that has these literals, each with the words that show it."""
        patterns = self._signals.select_part(literals, sentence)
        bare = sentence.strip(" \t,，、:-—*>#") if patterns else ""
        for pattern in patterns:
            if pattern.signal in signals or not (match := pattern.regex.search(bare)):
                continue
            if not (pattern.statement and _QUESTION.search(sentence)):
                signals[pattern.signal] = match[0].strip()


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
        """The signals in a text of the user; most texts have none."""
        return frozenset(self.evidence(text))

    def evidence(self, text: str) -> dict[str, str]:
        """The signals in a text of the user, each with the words that show it, in lower case."""
        text = text[:LOOK_AT].replace("’", "'")
        text = (text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)).lower()
        if "`" in text:
            text = _CODE.sub(" ", text)
        if _QUOTE.search(text):
            text = _QUOTED.sub(" ", text)
        scripts = [self._latin, self._han] if _CJK.search(text) else [self._latin]
        for script in scripts:
            text = script.blank(text)
        likely = [(script, literals) for script in scripts if (literals := script.literals_in(text)) is not None]
        found: dict[str, str] = {}
        for sentence in _SENTENCE.findall(text) if likely else ():
            for script, literals in likely:
                script.search(sentence, literals, found)
        return found


def load_patterns(folder: Path | None = None) -> Patterns:
    """The shipped patterns, changed by the `<language>.yaml` files of `folder`.

    Raises ConfigError with file and line for a pattern, a name or a form that is wrong.
    """
    if folder is not None and not folder.is_dir():
        raise ConfigError("setting signals.folder: no such folder")
    rules: Rules = {}
    for file in pattern_files("signals", folder):
        for name, node in file.sections():
            _read(file, name, node, rules)
        if folder is not None and file.path.parent == folder:
            _check(file, rules)
    return Patterns(rules)


def _read(file: PatternFile, name: Any, node: Any, rules: Rules) -> None:
    if name.value == HARMLESS:
        rules.setdefault((HARMLESS, "any"), []).extend(file.patterns(node))
    elif name.value in SIGNALS:
        _read_signal(file, name.value, node, rules)
    else:
        file.refuse(name.start_mark.line, f"no such signal; there are harmless, {', '.join(SIGNALS)}")


def _read_signal(file: PatternFile, signal: str, node: Any, rules: Rules) -> None:
    """Add the patterns of a signal. `replace` first drops its patterns of earlier files."""
    for key, part in file.names(node):
        if key.value == "replace":
            for kind in _KINDS:
                rules.pop((signal, kind), None)
            _read_signal(file, signal, part, rules)
        elif key.value in _KINDS:
            rules.setdefault((signal, key.value), []).extend(file.patterns(part))
        else:
            file.refuse(key.start_mark.line, "expected any, statement or replace")


def _check(file: PatternFile, rules: Rules) -> None:
    """Compile all patterns together: one that is right alone may clash with another (a group named twice)."""
    try:
        for sources in rules.values():
            grouped([part for source in sources for part in alternatives(source)])
    except re.error as error:
        raise ConfigError(f"{file.path}: its patterns do not go together: {error.msg}") from None


def alternatives(source: str) -> Iterator[str]:
    """The alternatives of a regex, split at its outermost bars."""
    depth, start = 0, 0
    for found in _BOUNDS.finditer(source):
        if found[0] == "|" and depth == 0:
            yield source[start : found.start()]
            start = found.end()
        depth += (found[0] == "(") - (found[0] == ")")
    yield source[start:]


def grouped(parts: list[str]) -> tuple[re.Pattern[str], ...]:
    """Patterns joined into a few larger ones, by how they begin. Raises re.error where they clash."""
    groups: dict[str, list[str]] = {}
    for part in parts:
        prefix = next((prefix for prefix in ("^", r"\b") if part.startswith(prefix)), "")
        groups.setdefault(prefix, []).append(part[len(prefix) :])
    return tuple(re.compile(f"{prefix}(?:{'|'.join(group)})") for prefix, group in groups.items())
