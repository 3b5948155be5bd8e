"""The default places: the config file of the current folder, and the data folder.

Many programs have a `config.yaml`. A file that is not memd's is left alone and reported; it is not an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert

from memd.config.settings import HERE, Settings, names
from memd.errors import ConfigError
from memd.printable import printable

CONFIG_FILE = "config.yaml"
MAX_FOUND_BYTES = 256 * 1024
"""A larger file that nobody named is not parsed: YAML takes about 5 s for each MiB, at every command."""

SECTION = "memd"
"""A file that other programs read as well has memd's settings in this section; the rest of the file is not read."""

_GENERAL = re.compile(r"data_dir|redis_url|enabled|server\.port|(http|log)\..*")
"""Settings whose names other programs use too, so they do not show that a file is memd's."""

_MADE = ("store.id", "server/server.conf")
"""Files that show that memd made a data folder: the store's id, and the configuration of the embedded server."""

_SECTIONS = rb"^(memd|filtering|signals|inbox|dead|scheduler|drain|extraction|apply|recall):"
"""Lines that show that a file was meant for memd although it is not valid YAML."""


@dataclass(frozen=True)
class ConfigFile:
    """A config file that was named or found: its settings, or why it is not read."""

    path: Path
    tree: Mapping[str, Any]
    unread: str = ""


def config_file(file: Path | None, environ: Mapping[str, str]) -> ConfigFile | None:
    """The file that a flag or `MEMD_CONFIG` names, else `config.yaml` of the current folder, else None.

    Raises ConfigError for a named file that cannot be read, and for a found one that is memd's and is not YAML.
    """
    named = file or (Path(environ["MEMD_CONFIG"]) if environ.get("MEMD_CONFIG") else None)
    if named is not None:
        return ConfigFile(named, _own(_read(named)))
    found = Path(CONFIG_FILE)
    return _judged(found) if found.is_file() else None


def data_dir(environ: Mapping[str, str]) -> Path:
    """The data folder that no setting names: an existing `./memd-data`, else memd's folder in the user's data home.

    Raises ConfigError without a home folder, and when something else has the name `memd-data`.
    """
    here = Path(HERE).absolute()
    if _is_here(here):
        return here
    home = environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(home):  # noqa: PTH117  (Path("") would be the current folder; the XDG rules ignore relative ones)
        # Path.expanduser raises where a user has no home, and both take an empty HOME for the root folder.
        home = "" if empty_home() else os.path.expanduser("~/.local/share")  # noqa: PTH111
    if not os.path.isabs(home):  # noqa: PTH117  (as above)
        raise ConfigError(
            "setting data_dir: there is no home folder to keep the data in; set data_dir or MEMD_DATA_DIR"
        )
    return Path(home) / "memd"


def empty_home() -> bool:
    """Whether HOME is set and empty. Python would take the root folder for the home folder."""
    return os.environ.get("HOME") == ""


def _is_here(here: Path) -> bool:
    """Whether `./memd-data` is a data folder. Raises ConfigError for a file, or a link to a folder that is not memd's.

    Another folder would be a guess: the link may be one to a disk that is not mounted.
    """
    if not here.is_symlink():
        if here.is_dir() or not here.exists():
            return here.is_dir()
        fault = "is not a folder"
    elif any(os.path.isfile(here / name) for name in _MADE):  # noqa: PTH113  (Path.is_file raises without rights)
        return True
    else:
        fault = "is a link, and not to a data folder of memd"
    raise ConfigError(
        f"setting data_dir: {printable(here)} {fault}, so it is not used; remove it, or set data_dir or MEMD_DATA_DIR"
    )


def flatten(tree: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """The values of a tree of settings by their dotted names."""
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            for inner, leaf in value.items():
                yield f"{name}.{inner}", leaf
        else:
            yield str(name), value


def _read(path: Path) -> dict[str, Any]:
    from memd.config import yaml_text  # noqa: PLC0415  (YAML takes 7 ms to import; many apps have no file)

    return yaml_text.read(path)


def _own(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    section = tree.get(SECTION)
    return section if isinstance(section, dict) else tree


def _judged(path: Path) -> ConfigFile:
    place = printable(path.absolute())
    if path.stat().st_size > MAX_FOUND_BYTES:
        return ConfigFile(path, {}, f"{place} is larger than {MAX_FOUND_BYTES // 1024} KiB; --config reads it")
    try:
        tree = _read(path)
    except ConfigError as error:
        if _looks_like_ours(path):
            raise
        return ConfigFile(path, {}, str(error))
    if isinstance(tree.get(SECTION), dict) or _is_ours(tree):
        return ConfigFile(path, _own(tree))
    return ConfigFile(path, {}, f"{place} has no section `{SECTION}:`, so it is not memd's")


def _looks_like_ours(path: Path) -> bool:
    try:
        return bool(re.search(_SECTIONS, path.read_bytes(), re.MULTILINE))
    except OSError:  # found but unreadable: a file meant for memd can be named
        return False


def _is_ours(tree: Mapping[str, Any]) -> bool:
    """Whether most names are settings that only memd has, or all are settings with valid values."""
    known, found = set(names()), [name for name, _ in flatten(tree)]
    foreign = [name for name in found if name not in known]
    own = [name for name in found if name in known and not _GENERAL.fullmatch(name)]
    if own or foreign:
        return len(own) > len(foreign)
    return "server.port" not in found and _fits(tree)


def _fits(tree: Mapping[str, Any]) -> bool:
    try:
        convert(tree, Settings, strict=False, dec_hook=lambda kind, value: kind(value))
    except (ValidationError, TypeError):
        return False
    return True
