"""Patterns: regexes kept in YAML, one file for each language, all read by `pattern_file`.

A file holds named lists of regexes of Python's `re`; `common.yaml` has those of no language. Under `fragments` it names
lists of alternatives, which any regex of the same folder uses as `{name}`; the files of all languages may add
alternatives to the same name. Other rooms keep their patterns in folders of their own, which they name by path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

_READERS: list[Callable[[], object]] = []

T = TypeVar("T")


@cache
def load(name: str | Path) -> dict[str, list[str]]:
    """The shipped patterns of `memd/push/<name>/`, or of an absolute path, by the name of their list.

    The languages one after the other.
    """
    from memd.push.pattern_file import pattern_files  # noqa: PLC0415  (PyYAML takes 9 ms, and an app may never push)

    patterns: dict[str, list[str]] = {}
    for file in pattern_files(name):
        for section, node in file.sections():
            patterns.setdefault(section.value, []).extend(file.patterns(node))
    return patterns


def compiled(sources: Iterable[str]) -> re.Pattern[str]:
    """One regex that matches wherever any of these matches."""
    return re.compile("|".join(sources))


class Lists(dict[str, re.Pattern[str]]):
    """The shipped lists of one folder, read when first needed. `[name]`: one regex for all of a list.

    `names`: the lists that are used so; `prepare` compiles them.
    """

    def __init__(self, folder: str | Path, *names: str) -> None:
        super().__init__()
        self._folder = folder
        self._names = names
        prepared(self._compile)

    def __missing__(self, name: str) -> re.Pattern[str]:
        if name not in self._names:
            raise KeyError(name)
        self[name] = compiled(self.sources(name))
        return self[name]

    def sources(self, name: str) -> list[str]:
        """The entries of a list, as they stand in the files."""
        return load(self._folder)[name]

    def _compile(self) -> None:
        for name in self._names:
            _ = self[name]


def prepared(read: Callable[[], T]) -> Callable[[], T]:
    """Decorates a function without arguments that reads or compiles patterns. It runs once: when needed or prepared."""
    once = cache(read)
    _READERS.append(once)
    return once


def prepare() -> None:
    """Read and compile all patterns of the modules that are loaded, for this process and its future children.

    Otherwise each is on first use, in each child anew.
    """
    for read in _READERS:
        read()
