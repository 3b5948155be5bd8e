"""Reading the settings: defaults < config.yaml < MEMD_* environment < flags.

They are checked, frozen and passed down. An unknown key, a value out of range or a contradiction raises `ConfigError`
with one sentence.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from msgspec import ValidationError, convert
from msgspec.json import encode

from memd.config.places import ConfigFile, config_file, data_dir, empty_home, flatten
from memd.config.problems import sentence
from memd.config.settings import MASK, Secret, Settings, kinds, names
from memd.errors import ConfigError

ENV_PREFIX = "MEMD_"
ORIGINS = "MEMD_ORIGINS"
"""The variable with which `memd up` tells its parts where each setting comes from, as JSON: they get all of them by the
environment. A setting that it does not name has its default."""

_CREDENTIALS = re.compile("//.*@", re.DOTALL)
_PARAMETERS = re.compile(r"\?.*", re.DOTALL)
_EITHER = re.compile(r"//.*\?.*@.*", re.DOTALL)
"""An address of which cannot be told whether a password or a parameter has the question mark."""

_WORDS = {"yes": True, "on": True, "y": True, "t": True, "no": False, "off": False, "n": False, "f": False}
"""Further texts for a switch; msgspec itself reads `true`, `false`, 1 and 0."""


@dataclass(frozen=True)
class LoadedSettings:
    """The settings in force, and the origin of each (default, a file, environment, flag) by its dotted name."""

    settings: Settings
    origins: Mapping[str, str]
    file: ConfigFile | None
    """The config file that was named or found, even if it is not read."""


def load(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    *,
    use_file: bool = True,
) -> LoadedSettings:
    """Read the settings.

    `file`: the config file, which must exist; None reads the one that `MEMD_CONFIG` names, else `config.yaml` of the
    working folder if it is memd's (`memd.config.places`). `use_file` False reads no file. `environ`: None is the
    process's own. `flags`: values by dotted name; None means not set. Raises ConfigError.
    """
    environ = os.environ if environ is None else environ
    found = config_file(file, environ) if use_file else None
    layers: list[tuple[str, Mapping[str, Any]]] = []
    if found is not None:
        layers.append((str(found.path), dict(flatten(found.tree))))
    layers.append(("environment", dict(_from_environment(environ))))
    layers.append(("flag", {name: value for name, value in (flags or {}).items() if value is not None}))
    tree: dict[str, Any] = {}
    origins = dict.fromkeys(names(), "default")
    told = _told(environ.get(ORIGINS))
    switches = {name for name, annotation in kinds() if annotation is bool}
    for origin, values in layers:
        for name, value in values.items():
            _refuse_not_utf8(name, value, origin)
            _put(tree, name, _WORDS.get(value.lower(), value) if name in switches and isinstance(value, str) else value)
            origins[name] = origin if told is None or origin != "environment" else told.get(name, "default")
    if tree.get("data_dir") in (None, ""):
        tree["data_dir"], origins["data_dir"] = data_dir(environ), "default"
    try:
        settings = convert(tree, Settings, strict=False, dec_hook=_decoded)
    except ValidationError as error:
        raise ConfigError(sentence(error, origins, tree, dict(kinds()))) from None
    _refuse_not_utf8("data_dir", settings.data_dir.absolute(), f"{origins['data_dir']}; MEMD_DATA_DIR sets another")
    return LoadedSettings(settings, origins, found)


def _told(text: str | None) -> Mapping[str, str] | None:
    """The origins that the parent process has passed on; None when this process reads its settings itself."""
    if text is None:
        return None
    try:
        return convert(json.loads(text), dict[str, str])
    except ValueError:
        raise ConfigError(f"variable {ORIGINS} is set by memd up for its parts: unset it") from None


def _refuse_not_utf8(name: str, value: object, origin: str) -> None:
    """Refuse bytes that are not UTF-8, which could not be printed or written to a file. Raises ConfigError."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise ConfigError(f"setting {name} ({origin}) is not UTF-8") from None


def _decoded(kind: type, value: object) -> object:
    """Decode a path or a secret; msgspec adds the setting's name to an error. A path may begin with `~`."""
    if kind is Path and isinstance(value, (str, Path)):
        return _at_home(Path(value))
    if not isinstance(value, str):
        raise TypeError("must be a path" if kind is Path else "must be text")
    return kind(value)


def _at_home(path: Path) -> Path:
    if path.parts[:1] != ("~",):
        return path
    if empty_home():
        raise ValueError("there is no home folder for ~, as HOME is empty")
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("there is no home folder for ~") from None


def plain(settings: Settings) -> dict[str, Any]:
    """All settings as JSON values. Secrets and options of a store are masked, of an address all but host and path."""
    tree: dict[str, Any] = json.loads(
        encode(settings, enc_hook=lambda value: MASK if type(value) is Secret else str(value))
    )
    if settings.extraction.base_url:
        address = _CREDENTIALS.sub(f"//{MASK}@", _EITHER.sub(f"//{MASK}", settings.extraction.base_url))
        tree["extraction"]["base_url"] = _PARAMETERS.sub(f"?{MASK}", address)
    tree["store"]["options"] = dict.fromkeys(settings.store.options, MASK)  # a database's address holds its password
    return tree


def by_name(settings: Settings) -> dict[str, Any]:
    """The values of `plain` by the dotted name of their setting."""
    tree = plain(settings)
    return {name: _leaf(tree, name) for name in names()}


def _leaf(tree: dict[str, Any], name: str) -> Any:
    section, _, leaf = name.rpartition(".")
    return tree[section][leaf] if section else tree[leaf]


def as_environment(settings: Settings, origins: Mapping[str, str] | None = None) -> dict[str, str]:
    """The MEMD_* variables that give a child process these settings; they override any config file it reads.

    `origins`: what it is to report as the origin of each setting; None: the environment.
    """
    tree = plain(settings)
    if settings.redis_url:
        tree["redis_url"] = settings.redis_url.reveal()
    tree["extraction"]["base_url"] = settings.extraction.base_url
    tree["store"]["options"] = settings.store.options
    if settings.store.url:
        tree["store"]["url"] = settings.store.url.reveal()
    if settings.extraction.api_key:
        tree["extraction"]["api_key"] = settings.extraction.api_key.reveal()
    tree["data_dir"] = str(settings.data_dir.absolute())
    told = {} if origins is None else {ORIGINS: json.dumps({k: v for k, v in origins.items() if v != "default"})}
    return told | {ENV_PREFIX + name.upper().replace(".", "__"): json.dumps(value) for name, value in flatten(tree)}


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    texts = set(_texts())
    for variable, text in environ.items():
        if not variable.startswith(ENV_PREFIX) or variable in ("MEMD_CONFIG", ORIGINS):
            continue
        name = variable[len(ENV_PREFIX) :].lower().replace("__", ".")
        verbatim = name in texts and text != "null" and not text.startswith('"')  # as_environment quotes its texts
        yield name, text if verbatim and text else _value(text)


def _value(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):  # a person wrote it; the daemon writes JSON for its parts
        from memd.config import yaml_text  # noqa: PLC0415  (as above)

        return yaml_text.value(text)


def _texts() -> Iterator[str]:
    """The settings whose values stay text: a key made of digits, a folder called `no`."""
    for name, annotation in kinds():
        if set(get_args(annotation) or (annotation,)) <= {str, Path, Secret, type(None)}:
            yield name


def _put(tree: dict[str, Any], name: str, value: Any) -> None:
    section, _, leaf = name.partition(".")
    if not leaf:
        tree[section] = value
        return
    inner = tree.setdefault(section, {})
    if isinstance(inner, dict):
        inner[leaf] = value
