"""Seeding a bug: edits memd's modules while they are loaded, and its Lua while it is read."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from chaos.mutants.bugs import BUGS, LUA, Bug, Edit

VARIABLE = "CHAOS_BUG"
"""The environment variable that names the bug."""

HOOK = Path(__file__).parent / "hook"

_READ = 'resources.files("memd.inbox").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")'
_READ_EDITED = f'__import__("chaos.mutants.seeding", fromlist=["lua"]).lua(name, {_READ})'


class Stale(Exception):
    """An edit no longer fits the code."""


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made. Raises Stale when the text of an edit does not occur exactly once."""
    for edit in edits:
        if text.count(edit.old) != 1:
            raise Stale(f"{edit.file}: not exactly once in it: {edit.old!r}")
        text = text.replace(edit.old, edit.new)
    return text


def by_module(bug: Bug) -> dict[str, list[Edit]]:
    """The edits of a bug by module; Lua is edited when it is read."""
    found: dict[str, list[Edit]] = defaultdict(list)
    for edit in bug.edits:
        if not edit.file.startswith(LUA):
            found[edit.file.removesuffix(".py").replace("/", ".")].append(edit)
    if any(edit.file.startswith(LUA) for edit in bug.edits):
        found["memd.inbox.library"].append(Edit("memd/inbox/library.py", _READ, _READ_EDITED))
    return found


def lua(name: str, text: str) -> str:
    """One part of the Lua functions with the edits of the active bug."""
    return edited(text, (edit for edit in named(os.environ[VARIABLE]).edits if edit.file == f"{LUA}{name}.lua"))


def named(name: str) -> Bug:
    """The bug of this name. Raises Stale when no bug has it."""
    for bug in BUGS:
        if bug.name == name:
            return bug
    raise Stale(f"no bug is named {name!r}")


def check(bug: Bug) -> None:
    """Make all edits of a bug, without effect. Raises Stale."""
    for module, edits in by_module(bug).items():
        edited(_source(module), edits)
    for file in {edit.file for edit in bug.edits if edit.file.startswith(LUA)}:
        text = (Path(_origin("memd")).parent.parent / file).read_text(encoding="utf-8")
        edited(text, (edit for edit in bug.edits if edit.file == file))


def switch_on(name: str) -> None:
    """From now on edit the modules that this process loads, as the bug says. Raises Stale."""
    bug = named(name)
    check(bug)
    sys.meta_path.insert(0, Finder(by_module(bug)))


def environment(bug: Bug, tests: Path) -> dict[str, str]:
    """The environment that switches a bug on in a new process."""
    return {"PYTHONPATH": os.pathsep.join((str(HOOK), str(tests))), VARIABLE: bug.name}


def _source(module: str) -> str:
    package = Path(_origin(module.partition(".")[0])).parent.parent
    return package.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")


def _origin(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise Stale(f"the package {package} cannot be found")
    return spec.origin


class Finder(MetaPathFinder):
    """The first finder on the path: it finds the modules to edit."""

    def __init__(self, edits: dict[str, list[Edit]]) -> None:
        self._edits = edits

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The ordinary spec of a module, with a loader that edits."""
        if fullname not in self._edits:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            raise Stale(f"the module {fullname} cannot be found")
        spec.loader = Editor(fullname, spec.origin, self._edits[fullname])
        return spec


class Editor(SourceFileLoader):
    """Loads one module from its edited source; nothing is cached."""

    def __init__(self, fullname: str, path: str, edits: list[Edit]) -> None:
        super().__init__(fullname, path)
        self._edits = edits

    def get_code(self, fullname: str) -> CodeType:
        """The code of the edited source."""
        source = self.get_data(self.path).decode()
        return compile(edited(source, self._edits), self.path, "exec", dont_inherit=True)
