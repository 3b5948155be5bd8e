"""YAML as the settings are written in it: plain names, each of them once, and a line number for what is wrong.

Imported only where there is a file to read, or a text in the environment that is not JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from memd.errors import ConfigError

MAX_FAST_BYTES, MAX_FAST_NESTS = 100_000, 1_000
"""What may be deeper than this is read slowly: the C loader goes down by recursion in C, which ends the process where
Python's own raises RecursionError. 100,000 bytes of growing indentation are 450 levels."""


def compose(data: bytes) -> yaml.Node | None:
    """The nodes of a text, each with its line. Raises yaml.YAMLError, UnicodeError or RecursionError."""
    return yaml.compose(data, _fast_or_safe(data))


def _load(data: bytes) -> Any:
    class Unique(_fast_or_safe(data)):  # type: ignore[misc]  # which of the two is known only now
        """Refuses a mapping that names a key twice, which YAML would let the last one win in silence."""

    Unique.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
    return yaml.load(data, Unique)  # noqa: S506  (both are safe)


def _fast_or_safe(data: bytes) -> type[yaml.SafeLoader]:
    """The C loader takes a tenth of the time; a build of PyYAML without libyaml has none."""
    nests = sum(map(data.count, (b"[", b"{", b"- ", b"? ")))
    is_flat = len(data) <= MAX_FAST_BYTES and nests <= MAX_FAST_NESTS
    fast: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return fast if is_flat else yaml.SafeLoader


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a name must be plain text", key_node.start_mark)
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"{key} stands there twice", key_node.start_mark)
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


def read(path: Path) -> dict[str, Any]:
    """The settings that a file holds, by name. Raises ConfigError, with the line where one is to blame."""
    try:
        tree = _load(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror})") from None
    except yaml.constructor.ConstructorError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(f"{path}, line {line}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # also no date, no UTF-8, endless brackets
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path} is not YAML{place}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} must hold settings by name")
    return tree


def value(text: str) -> Any:
    """What a text from the environment means; the text itself where it is no YAML, which its setting then judges."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return text
