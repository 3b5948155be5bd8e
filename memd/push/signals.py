"""Signals: the kind of a user's message (correction, goal …), found by the patterns of `signals/<language>.yaml`.

A text is cut into sentences; code, quotations and the phrases under `harmless` are blanked out first, since most false
alarms come from words that are mentioned, not meant. Patterns under `statement` are not tried on questions. Only the
first 2,000 characters are searched: people who correct somebody do so at the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from msgspec import structs

from memd.context import SIGNALS, Message
from memd.errors import ConfigError
from memd.push.answers import Before
from memd.push.pattern_file import PatternFile, pattern_files
from memd.push.prefilter import Prefilter
from memd.push.setting_right import sets_right
from memd.push.width import nfkc

SIGNAL_MESSAGES = 6
"""Signals are looked for in this many last user messages of a claim (DeerFlow's figure)."""

LOOK_AT = 2_000
"""Characters of a text that are searched."""

HARMLESS = "harmless"
ANSWER = "answer"
_KINDS = ("any", "statement", "reply")
_ASKED = frozenset({"question", "offer", "closing"})
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
"""(signal, kind) → the sources of its patterns. `harmless` has the phrases that are blanked out, `answer` the openings
of answers: "no" and "actually" after a question correct nothing."""


class _SignalPattern:
    """One alternative of a pattern, compiled when first tried.

    `statement`: it is not tried on questions; `reply`: only on what follows a statement of the assistant.
    """

    def __init__(self, source: str, signal: str, kind: str) -> None:
        self._source = source
        self.signal = signal
        self.statement = kind == "statement"
        self.reply = kind == "reply"

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
            if signal != ANSWER and (_CJK.search(part) is not None) is cjk
        ]
        self._signals = Prefilter([pair for pair in parts if pair[1].signal != HARMLESS])
        self._blanked = [part for part, pattern in parts if pattern.signal == HARMLESS]
        self._prefilter = Prefilter([(part, None) for part in self._blanked])

    @cached_property
    def _harmless(self) -> tuple[re.Pattern[str], ...]:
        return grouped(self._blanked)

    def prepare(self) -> None:
        """Compile all patterns now."""
        _ = self._harmless
        for pattern in self._signals.all():
            _ = pattern.regex

    def blank(self, text: str) -> str:
        """The text with the harmless phrases blanked out."""
        for pattern in self._harmless if self._prefilter.finds(text) else ():
            text = pattern.sub(" ", text)
        return text

    def literals_in(self, text: str) -> list[str] | None:
        """The required literals that occur in a text; None when no pattern could match."""
        literals = self._signals.literals_in(text)
        return literals if self._signals.could_match(literals) else None

    def search(self, sentence: str, literals: list[str], signals: dict[str, str], *, reply: bool) -> None:
        """Add the signals of one sentence of a text that has these literals, each with the words that show it.

        `reply`: whether the assistant has just said something that asks nothing.
        """
        patterns = self._signals.select_part(literals, sentence)
        bare = sentence.strip(" \t,，、:-—*>#") if patterns else ""
        for pattern in patterns:
            if pattern.signal in signals or (pattern.reply and not reply) or not (match := pattern.regex.search(bare)):
                continue
            if not ((pattern.statement or pattern.signal == "reinforcement") and _QUESTION.search(sentence)):
                signals[pattern.signal] = match[0].strip()


class Patterns:
    """The patterns of all languages."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    @cached_property
    def _latin(self) -> _Script:
        return _Script(self.rules, cjk=False)

    @cached_property
    def _opening(self) -> re.Pattern[str]:
        """The words with which an answer to a question opens."""
        return re.compile("|".join(self.rules.get((ANSWER, "any"), ("(?!)",))))

    @cached_property
    def _han(self) -> _Script:
        return _Script(self.rules, cjk=True)

    def prepare(self) -> None:
        """Compile all patterns now, for this process and its future children; otherwise each is on first use."""
        _ = self._opening
        for script in (self._latin, self._han):
            script.prepare()

    def detect(self, text: str, before: str | None = "") -> frozenset[str]:
        """The signals in a text of the user; most texts have none. `before`: as for `evidence`."""
        return frozenset(self.evidence(text, before))

    def evidence(self, text: str, before: str | None = "") -> dict[str, str]:
        """The signals in a text of the user, each with the words that show it, in lower case.

        `before`: what the assistant said directly before; None: nothing, so there is nothing to correct or praise; "":
        not known.
        """
        text = text[:LOOK_AT].replace("’", "'")
        text = nfkc(text).lower()
        if "`" in text:
            text = _CODE.sub(" ", text)
        if _QUOTE.search(text):
            text = _QUOTED.sub(" ", text)
        asked = bool(before) and Before(before or "").end in _ASKED
        text = self._opening.sub("", text) if asked else text
        scripts = [self._latin, self._han] if _CJK.search(text) else [self._latin]
        for script in scripts:
            text = script.blank(text)
        likely = [(script, literals) for script in scripts if (literals := script.literals_in(text)) is not None]
        found: dict[str, str] = {}
        for sentence in _SENTENCE.findall(text) if likely else ():
            for script, literals in likely:
                script.search(sentence, literals, found, reply=bool(before) and not asked)
        if before and not asked and "correction" not in found and (words := sets_right(text, before)):
            found["correction"] = words
        silent = {"correction", "reinforcement"} if before is None else {"reinforcement"} if asked else set()
        return {signal: words for signal, words in found.items() if signal not in silent}


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


@cache
def shared_patterns(folder: Path | None = None) -> Patterns:
    """The patterns of `load_patterns`, read once for this process and its future children. Raises ConfigError."""
    return load_patterns(folder)


def _read(file: PatternFile, name: Any, node: Any, rules: Rules) -> None:
    if name.value in (HARMLESS, ANSWER):
        rules.setdefault((name.value, "any"), []).extend(file.patterns(node))
    elif name.value in SIGNALS:
        _read_signal(file, name.value, node, rules)
    else:
        file.refuse(name.start_mark.line, f"no such signal; there are harmless, answer, {', '.join(SIGNALS)}")


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
            file.refuse(key.start_mark.line, "expected any, statement, reply or replace")


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


def with_signals(new: Sequence[Message], thread: Sequence[Message], patterns: Patterns) -> tuple[Message, ...]:
    """The new messages with the signals found in the last SIGNAL_MESSAGES of the user, beside those already named.

    `thread`: all messages in their order, in which the assistant's turns directly before the new ones are looked up.
    """
    asked = {message.identity for message in [one for one in new if one.role == "user"][-SIGNAL_MESSAGES:]}
    found: dict[str, frozenset[str]] = {}
    before: str | None = None
    for message in thread:
        if message.role == "assistant":
            before = message.content if before is None else f"{before}\n{message.content}"
            continue
        if message.identity in asked:
            found[message.identity] = patterns.detect(message.content, before)
        before = None
    return tuple(
        structs.replace(message, signals=message.signals | found[message.identity])
        if found.get(message.identity)
        else message
        for message in new
    )
