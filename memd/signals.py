"""Signals: what a user's turn says besides its content, found by patterns in YAML, one file a language.

A text is cut into sentences; code, quotations and the phrases under `harmless` are blanked out first, since most false
alarms come from words that are talked about, not said. Patterns under `statement` are not tried on questions. Only the
first 2,000 characters are looked at: who corrects somebody does so at the beginning.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NoReturn

import yaml

from memd.errors import ConfigError

SIGNALS: tuple[str, ...] = ("correction", "reinforcement", "preference", "identity", "goal", "decision")

LOOK_AT = 2_000
"""Characters of a text that are looked at."""

_KINDS = ("any", "statement")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』|《[^》\n]{1,200}》")
_SENTENCE = re.compile(r"[^.!?。！？\n;；~…]+(?:\.(?=\w)[^.!?。！？\n;；~…]*)*[.!?。！？;；~…]*")
_QUESTION = re.compile(r"[?？]\s*$|(?:吗|嗎|呢|么)[。.!！~\s]*$")

Rules = dict[tuple[str, str], list[str]]
"""(signal, kind) → pattern sources; the signal `harmless` has what is blanked out."""


class Patterns:
    """Compiled patterns of all languages."""

    def __init__(self, rules: Rules) -> None:
        self._harmless = _union(rules.get(("harmless", "any"), []))
        self._any = {signal: _union(rules.get((signal, "any"), [])) for signal in SIGNALS}
        self._statement = {signal: _union(rules.get((signal, "statement"), [])) for signal in SIGNALS}

    def detect(self, text: str) -> frozenset[str]:
        """The signals in a text of the user; none in most."""
        text = unicodedata.normalize("NFKC", text[:LOOK_AT].replace("’", "'"))
        text = _QUOTED.sub(" ", _CODE.sub(" ", text))
        text = self._harmless.sub(" ", text)
        found: set[str] = set()
        for sentence in _SENTENCE.findall(text):
            asks = _QUESTION.search(sentence) is not None
            stripped = sentence.strip(" \t,，、:-—*>#")
            for signal in SIGNALS:
                if signal not in found and (
                    self._any[signal].search(stripped) or (not asks and self._statement[signal].search(stripped))
                ):
                    found.add(signal)
        return frozenset(found)


def load_patterns(folder: Path | None = None) -> Patterns:
    """The shipped patterns, changed by the `<language>.yaml` files of `folder`.

    Raises ConfigError with file and line for a pattern, a signal or a shape that is not right.
    """
    rules: Rules = {}
    for file in sorted((resources.files("memd") / "signals").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            _read(file, rules)
    if folder is not None:
        if not folder.is_dir():
            raise ConfigError("setting signals.folder: no such folder")
        for path in sorted(folder.glob("*.yaml")):
            _read(path, rules)
    return Patterns(rules)


def _union(sources: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{source})" for source in sources) or r"(?!)", re.IGNORECASE)


def _read(file: Traversable, rules: Rules) -> None:
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


def _read_signal(file: Traversable, signal: str, body: yaml.Node, rules: Rules) -> None:
    for key, part in _pairs(file, body):
        if key.value == "replace":
            for kind in _KINDS:
                rules.pop((signal, kind), None)
            _read_signal(file, signal, part, rules)
        elif key.value in _KINDS:
            rules.setdefault((signal, key.value), []).extend(_sources(file, part))
        else:
            _refuse(file, key.start_mark.line, "expected any, statement or replace")


def _pairs(file: Traversable, node: yaml.Node) -> Iterator[tuple[Any, Any]]:
    if not isinstance(node, yaml.MappingNode):
        _refuse(file, node.start_mark.line, "expected names with values")
    yield from node.value


def _sources(file: Traversable, node: yaml.Node) -> Iterator[str]:
    if not isinstance(node, yaml.SequenceNode):
        _refuse(file, node.start_mark.line, "expected a list of patterns")
    for item in node.value:
        if not isinstance(item, yaml.ScalarNode) or not item.value:
            _refuse(file, item.start_mark.line, "expected a pattern")
        try:
            re.compile(item.value, re.IGNORECASE)
        except re.error as error:
            _refuse(file, item.start_mark.line, f"not a pattern: {error.msg}")
        yield item.value


def _refuse(file: Traversable, line: int, problem: str) -> NoReturn:
    raise ConfigError(f"{file}, line {line + 1}: {problem}")
