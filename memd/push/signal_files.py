"""The files that signals are described in: the shipped ones, and those of `signals.folder`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml

from memd.errors import ConfigError
from memd.push.signals import HARMLESS, SIGNALS, Patterns, Rules, alternatives, grouped
from memd.yaml_text import compose

_SHIPPED = Path(__file__).parent / "signals"
_KINDS = ("any", "statement")


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
            grouped([part for source in sources for part in alternatives(source)])
    except re.error as error:
        raise ConfigError(f"{file}: its patterns do not go together: {error.msg}") from None


def _read(file: Path, rules: Rules) -> None:
    """Add the patterns of one file. `replace` drops what earlier files said of a signal."""
    try:
        root = compose(file.read_bytes())
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        _refuse(file, mark.line if mark else 0, "not YAML")
    if root is None:
        return
    for name, body in _pairs(file, root):
        if name.value == HARMLESS:
            rules.setdefault((HARMLESS, "any"), []).extend(_sources(file, body))
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
