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
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

import yaml

from memd.candidates import Candidates
from memd.errors import ConfigError

SIGNALS: tuple[str, ...] = ("correction", "reinforcement", "preference", "identity", "goal", "decision")

LOOK_AT = 2_000
"""Characters of a text that are looked at."""

_SHIPPED = Path(str(resources.files("memd"))) / "signals"
_KINDS = ("any", "statement")
_HARMLESS = "harmless"
_CJK = re.compile("[\u3400-\u9fff]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTE = re.compile("['\"“「『《]")
_QUOTED = re.compile(
    r"(?<!\w)'[^'\n]{2,80}'(?!\w)|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』"
    r"|《[^》\n]{1,200}》"
)
_SENTENCE = re.compile(r"[^.!?。！？\n;；~…]+(?:\.(?=\w)[^.!?。！？\n;；~…]*)*[.!?。！？;；~…]*")
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
            for part in _alternatives(source)
            if (_CJK.search(part) is not None) is cjk
        ]
        self._telling = Candidates([pair for pair in parts if pair[1].signal != _HARMLESS])
        self._blanked = [part for part, pattern in parts if pattern.signal == _HARMLESS]
        self._blanking = Candidates([(part, None) for part in self._blanked])

    @cached_property
    def _harmless(self) -> tuple[re.Pattern[str], ...]:
        return _grouped(self._blanked)

    def blank(self, text: str) -> str:
        """The text with everything harmless blanked out."""
        for pattern in self._harmless if self._blanking.may_match(self._blanking.needs(text)) else ():
            text = pattern.sub(" ", text)
        return text

    def look(self, text: str, found: set[str]) -> None:
        """Add the signals that are found in the sentences of a text."""
        needs = self._telling.needs(text)
        for sentence in _SENTENCE.findall(text) if self._telling.may_match(needs) else ():
            bare = sentence.strip(" \t,，、:-—*>#")
            for pattern in self._telling.among(needs, bare):
                if pattern.signal in found or (pattern.statement and _QUESTION.search(sentence)):
                    continue
                if pattern.regex.search(bare):
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
        text = (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()
        if "`" in text:
            text = _CODE.sub(" ", text)
        if _QUOTE.search(text):
            text = _QUOTED.sub(" ", text)
        scripts = [self._latin, self._han] if _CJK.search(text) else [self._latin]
        for script in scripts:
            text = script.blank(text)
        found: set[str] = set()
        for script in scripts:
            script.look(text, found)
        return frozenset(found)


def load_patterns(folder: Path | None = None) -> Patterns:
    """The shipped patterns, changed by the `<language>.yaml` files of `folder`.

    Raises ConfigError with file and line for a pattern, a signal or a shape that is not right.
    """
    rules: Rules = {}
    for file in sorted(_SHIPPED.glob("*.yaml")):
        _read(file, rules)
    if folder is not None:
        if not folder.is_dir():
            raise ConfigError("setting signals.folder: no such folder")
        for path in sorted(folder.glob("*.yaml")):
            _read(path, rules)
            _try(path, rules)
    return Patterns(rules)


def _try(file: Path, rules: Rules) -> None:
    """Compile all together once: what stands alone may still not stand beside the others (a group named twice)."""
    try:
        for sources in rules.values():
            _grouped([part for source in sources for part in _alternatives(source)])
    except re.error as error:
        raise ConfigError(f"{file}: its patterns do not go together: {error.msg}") from None


def _alternatives(source: str) -> Iterator[str]:
    """The parts of a pattern between its outermost bars."""
    depth, start, index = 0, 0, 0
    in_set = False
    while index < len(source):
        char = source[index]
        if char == "\\":
            index += 1
        elif in_set:
            in_set = char != "]"
        elif char == "[":
            in_set = True
        elif char == "|" and depth == 0:
            yield source[start:index]
            start = index + 1
        else:
            depth += (char == "(") - (char == ")")
        index += 1
    yield source[start:]


def _grouped(parts: list[str]) -> tuple[re.Pattern[str], ...]:
    groups: dict[str, list[str]] = {}
    for part in parts:
        prefix = next((prefix for prefix in ("^", r"\b") if part.startswith(prefix)), "")
        groups.setdefault(prefix, []).append(part[len(prefix) :])
    return tuple(re.compile(f"{prefix}(?:{'|'.join(group)})") for prefix, group in groups.items())


def _read(file: Path, rules: Rules) -> None:
    """Add the patterns of one file. `replace` drops what earlier files said of a signal."""
    try:
        root = yaml.compose(file.read_text(encoding="utf-8"), yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        _refuse(file, mark.line if mark else 0, "not YAML")
    if root is None:
        return
    for name, body in _pairs(file, root):
        if name.value == _HARMLESS:
            rules.setdefault((_HARMLESS, "any"), []).extend(_sources(file, body))
        elif name.value in SIGNALS:
            _read_signal(file, name.value, body, rules)
        else:
            _refuse(file, name.start_mark.line, f"no such signal; there are harmless, {', '.join(SIGNALS)}")


def _read_signal(file: Path, signal: str, body: yaml.Node, rules: Rules) -> None:
    for key, part in _pairs(file, body):
        if key.value == "replace":
            for kind in _KINDS:
                rules.pop((signal, kind), None)
            _read_signal(file, signal, part, rules)
        elif key.value in _KINDS:
            rules.setdefault((signal, key.value), []).extend(_sources(file, part))
        else:
            _refuse(file, key.start_mark.line, "expected any, statement or replace")


def _pairs(file: Path, node: yaml.Node) -> Iterator[tuple[Any, Any]]:
    if not isinstance(node, yaml.MappingNode):
        _refuse(file, node.start_mark.line, "expected names with values")
    yield from node.value


def _sources(file: Path, node: yaml.Node) -> Iterator[str]:
    if not isinstance(node, yaml.SequenceNode):
        _refuse(file, node.start_mark.line, "expected a list of patterns")
    for item in node.value:
        if not isinstance(item, yaml.ScalarNode) or not item.value:
            _refuse(file, item.start_mark.line, "expected a pattern")
        if not file.is_relative_to(_SHIPPED):  # a test has compiled the shipped ones
            _check(file, item)
        yield item.value


def _check(file: Path, item: yaml.ScalarNode) -> None:
    try:
        re.compile(item.value)
    except re.error as error:
        _refuse(file, item.start_mark.line, f"not a pattern: {error.msg}")


def _refuse(file: Path, line: int, problem: str) -> NoReturn:
    raise ConfigError(f"{file}, line {line + 1}: {problem}")
