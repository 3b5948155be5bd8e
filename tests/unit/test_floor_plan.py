"""The floor plan as data: which part may import which, no circles, few files at the top, one name for one thing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LEVELS = (
    ("demo", "testing", "stored names"),
    ("cli", "http", "mcp", "adapters"),
    ("evaluation", "ops", "workers", "scheduler"),
    ("client", "forget"),
    ("session", "projects"),
    ("recall",),
    ("extraction", "inbox", "memory"),
    ("push",),
    ("tasks",),
    ("asynchronous", "config", "context", "disk", "errors", "events", "identifiers", "printable"),
)
"""The parts of memd from the top down: a part imports its own level and the levels below it."""

DEPTH = {part: depth for depth, level in enumerate(LEVELS) for part in level}
MOST_FILES_AT_THE_TOP = 10
MOST_IMPORTS_IN_FUNCTIONS = 31

SAME_FILE_NAME = {
    "protocol.py",  # of extractors, of batches, of stores: what a part of its room must offer
    "server.py",  # the embedded server, and what the doctor says of a server
    "steps.py",  # of the claim's life, and of an edit by hand
}
"""File names that exist twice below the doors. A door's file has the name of the subject that it serves."""

_REASON = re.compile(r"# noqa: PLC0415\W+\w+\W+\w+")
"""At least two words."""


@dataclass(frozen=True)
class Import:
    """One import of one of our modules by another."""

    importer: str
    imported: str
    line: str
    in_function: bool


@cache
def modules() -> dict[str, Path]:
    """The modules of memd and of the workers, by their dotted name."""
    files = [file for top in ("memd", "workers") for file in sorted((ROOT / top).rglob("*.py"))]
    return {".".join(_parts(file)): file for file in files}


@cache
def tree_of(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"))


def _parts(file: Path) -> tuple[str, ...]:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports_of(name: str, file: Path) -> Iterator[Import]:
    """All imports of a module, wherever they are written; those for type checkers count like the others."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for node, in_function in _walk(tree_of(file), in_function=False):
        for imported in _imported(node):
            yield Import(name, imported, lines[node.lineno - 1], in_function)


def _walk(tree: ast.AST, *, in_function: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, in_function
        inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _walk(node, in_function=inside)


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    """The names of the modules; `from a import b` names a.b when that is a module, else a."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    base = node.module or ""
    return {f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules() else base for alias in node.names}


@cache
def all_imports() -> tuple[Import, ...]:
    """Every import of every module."""
    return tuple(found for name, file in modules().items() for found in imports_of(name, file))


def own_imports() -> Iterator[Import]:
    """The imports of one of our modules by another."""
    return (found for found in all_imports() if found.imported in modules() and found.imported != found.importer)


def part_of(module: str) -> str:
    """The part of the floor plan that a module belongs to; empty for the package's own __init__ and __main__.

    The top-level `workers` has only the names that RQ stores; nothing of memd may import it.
    """
    top, *rest = module.split(".")
    if top == "workers":
        return "stored names"
    return rest[0] if rest and rest[0] != "__main__" else ""


def test_every_part_has_its_level() -> None:
    """A new package or file at the top is put into the line."""
    assert {part_of(module) for module in modules()} - {""} <= set(DEPTH)


def test_imports_run_down() -> None:
    """No part imports one that is above it; the package itself, which only offers names, may import any."""
    upward = {
        f"{found.importer} imports {found.imported}"
        for found in own_imports()
        if (importer := part_of(found.importer)) and (imported := part_of(found.imported))
        if DEPTH[imported] < DEPTH[importer]
    }
    assert upward == set()


def test_there_are_no_circles() -> None:
    """Not even by an import inside a function or for a type checker."""
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for found in own_imports():
        graph[found.importer].add(found.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_the_import_lines_are_absolute() -> None:
    """A relative import would escape the checks of this page."""
    relative = [
        name
        for name, file in modules().items()
        for node, _ in _walk(tree_of(file), in_function=False)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_few_files_lie_at_the_top() -> None:
    """What every part shares, the client, and the one story that crosses two rooms."""
    assert len(list((ROOT / "memd").glob("*.py"))) <= MOST_FILES_AT_THE_TOP


def test_imports_inside_functions_are_few_and_give_their_reason() -> None:
    """They are for starts that must be quick, and each says which."""
    inside = [found for found in all_imports() if found.in_function]
    assert len({(found.importer, found.line) for found in inside}) <= MOST_IMPORTS_IN_FUNCTIONS
    assert [f"{found.importer}: {found.line.strip()}" for found in inside if not _REASON.search(found.line)] == []


def test_a_class_name_means_one_class() -> None:
    """No public class has the name of another one."""
    names = Counter(
        node.name
        for file in modules().values()
        for node in tree_of(file).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == set()


def test_a_file_name_means_one_subject() -> None:
    """Below the doors no two packages have a file of the same name, except those that are listed."""
    names = Counter(
        file.name
        for module, file in modules().items()
        if part_of(module) not in (*LEVELS[1], "stored names") and not file.name.startswith("__")
    )
    assert {name for name, count in names.items() if count > 1} == SAME_FILE_NAME
