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

from memd.errors import ConfigError

SIGNALS: tuple[str, ...] = ("correction", "reinforcement", "preference", "identity", "goal", "decision")

LOOK_AT = 2_000
"""Characters of a text that are looked at."""

_SHIPPED = Path(str(resources.files("memd"))) / "signals"
_KINDS = ("any", "statement")
_CJK = re.compile("[\u3400-\u9fff]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED = re.compile(
    r"(?<!\w)'[^'\n]{2,80}'(?!\w)|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』"
    r"|《[^》\n]{1,200}》"
)
_SENTENCE = re.compile(r"[^.!?。！？\n;；~…]+(?:\.(?=\w)[^.!?。！？\n;；~…]*)*[.!?。！？;；~…]*")
_QUESTION = re.compile(r"[?？]\s*$|(?:吗|嗎|呢|么)[。.!！~\s]*$")

Rules = dict[tuple[str, str], list[str]]
"""(signal, kind) → pattern sources; the signal `harmless` has what is blanked out."""


class _Union:
    """Patterns as few regular expressions as fast as `re` allows: by where they may begin, and by the script they need.

    A pattern that begins with `^` is tried once, one with `\\b` at the beginnings of words only.
    """

    def __init__(self, sources: list[str]) -> None:
        self._sources = sources

    @cached_property
    def _parts(self) -> list[str]:
        return [part for source in self._sources for part in _alternatives(source)]

    @cached_property
    def _latin(self) -> tuple[re.Pattern[str], ...]:
        return _grouped([part for part in self._parts if not _CJK.search(part)])

    @cached_property
    def _han(self) -> tuple[re.Pattern[str], ...]:
        return _grouped([part for part in self._parts if _CJK.search(part)])

    def patterns(self, cjk: bool) -> tuple[re.Pattern[str], ...]:
        """What is to be tried on a text; those with CJK characters only when it has some. Compiled when used."""
        return self._latin + self._han if cjk else self._latin

    def found_in(self, text: str, cjk: bool) -> bool:
        """Whether any pattern is found."""
        return any(pattern.search(text) for pattern in self.patterns(cjk))

    def blanked(self, text: str, cjk: bool) -> str:
        """The text with everything that is found blanked out."""
        for pattern in self.patterns(cjk):
            text = pattern.sub(" ", text)
        return text


class Patterns:
    """Compiled patterns of all languages."""

    def __init__(self, rules: Rules) -> None:
        self._harmless = _Union(rules.get(("harmless", "any"), []))
        self._any = {signal: _Union(rules.get((signal, "any"), [])) for signal in SIGNALS}
        self._statement = {signal: _Union(rules.get((signal, "statement"), [])) for signal in SIGNALS}

    def detect(self, text: str) -> frozenset[str]:
        """The signals in a text of the user; none in most."""
        text = unicodedata.normalize("NFKC", text[:LOOK_AT].replace("’", "'")).lower()
        text = _QUOTED.sub(" ", _CODE.sub(" ", text))
        cjk = _CJK.search(text) is not None
        text = self._harmless.blanked(text, cjk)
        found: set[str] = set()
        for sentence in _SENTENCE.findall(text):
            asks = _QUESTION.search(sentence) is not None
            stripped = sentence.strip(" \t,，、:-—*>#")
            for signal in SIGNALS:
                if signal not in found and self._says(signal, stripped, asks, cjk):
                    found.add(signal)
        return frozenset(found)

    def _says(self, signal: str, sentence: str, asks: bool, cjk: bool) -> bool:
        if self._any[signal].found_in(sentence, cjk):
            return True
        return not asks and self._statement[signal].found_in(sentence, cjk)


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
            _Union(sources).patterns(cjk=True)
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
        if name.value == "harmless":
            rules.setdefault(("harmless", "any"), []).extend(_sources(file, body))
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
