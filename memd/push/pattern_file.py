"""A file of patterns, and the files of a folder. Imported only to read them: PyYAML takes 9 ms to import."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml

from memd.config.yaml_text import compose
from memd.errors import ConfigError

FRAGMENTS = "fragments"
_HERE = Path(__file__).parent
_SHIPPED = _HERE.parent
_USE = re.compile(r"(?<!\\)\{([a-z][a-z_]*)\}")


class PatternFile:
    """One file of patterns. `fragments` is shared by the files of a folder; this file adds its own.

    Every method raises ConfigError with the file and the line of what is wrong.
    """

    def __init__(self, path: Path, fragments: dict[str, list[str]]) -> None:
        self.path = path
        self._fragments = fragments
        try:
            root = compose(path.read_bytes())
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            self.refuse(mark.line if mark else 0, "not YAML")
        self._sections = [] if root is None else list(self.names(root))
        for name, node in self._sections:
            if name.value == FRAGMENTS:
                for fragment, alternatives in self.names(node):
                    texts = [item.value for item in self._items(alternatives)]
                    fragments.setdefault(fragment.value, []).extend(texts)

    def sections(self) -> list[tuple[Any, Any]]:
        """The sections of the file as YAML nodes, name and content, without the fragments."""
        return [(name, node) for name, node in self._sections if name.value != FRAGMENTS]

    def names(self, node: yaml.Node) -> Iterator[tuple[Any, Any]]:
        """The names in a section, each with its content."""
        if not isinstance(node, yaml.MappingNode):
            self.refuse(node.start_mark.line, "expected names with values")
        yield from node.value

    def patterns(self, node: yaml.Node) -> Iterator[str]:
        """The regexes in a list, with their fragments filled in."""
        for item in self._items(node):
            source = self._filled(item)
            if not self.path.is_relative_to(_SHIPPED):  # a test has compiled the shipped ones
                self._check(source, item)
            yield source

    def refuse(self, line: int, problem: str) -> NoReturn:
        """Raise ConfigError for a line, counted from 0."""
        raise ConfigError(f"{self.path}, line {line + 1}: {problem}")

    def _items(self, node: yaml.Node) -> Iterator[yaml.ScalarNode]:
        if not isinstance(node, yaml.SequenceNode):
            self.refuse(node.start_mark.line, "expected a list of patterns")
        for item in node.value:
            if not isinstance(item, yaml.ScalarNode) or not item.value:
                self.refuse(item.start_mark.line, "expected a pattern")
            yield item

    def _filled(self, item: yaml.ScalarNode) -> str:
        def fragment(use: re.Match[str]) -> str:
            if use[1] not in self._fragments:
                self.refuse(item.start_mark.line, f"no such fragment: {use[1]} (write a plain brace as \\{{)")
            return f"(?:{'|'.join(self._fragments[use[1]])})"

        return _USE.sub(fragment, item.value)

    def _check(self, source: str, item: yaml.ScalarNode) -> None:
        try:
            re.compile(source)
        except re.error as error:
            self.refuse(item.start_mark.line, f"not a pattern: {error.msg}")


def pattern_files(name: str | Path, folder: Path | None = None) -> list[PatternFile]:
    """The shipped files of `memd/push/<name>/` or of an absolute path, then those of a folder of the user.

    Each folder in alphabetical order.
    """
    fragments: dict[str, list[str]] = {}
    folders = [_HERE / name] if folder is None else [_HERE / name, folder]
    return [PatternFile(path, fragments) for place in folders for path in sorted(place.glob("*.yaml"))]
