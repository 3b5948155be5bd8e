"""Reading YAML: each name once, names are plain text, and an error names its line.

Imported only when there is a file to read, or a variable that is not JSON: PyYAML takes 7 ms to import.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from memd.errors import ConfigError

MAX_FAST_BYTES, MAX_FAST_NESTS = 100_000, 1_000
"""Text that is larger or nests more often is read by the slow loader. The fast one recurses in C: nesting that is too
deep kills the process; the slow one raises RecursionError. 100,000 bytes of growing indentation are 450 levels."""


def compose(data: bytes) -> yaml.Node | None:
    """The text as nodes, each with its line. Raises yaml.YAMLError, UnicodeError or RecursionError."""
    return yaml.compose(data, _fast_or_safe(data))


def _load(data: bytes) -> Any:
    class Unique(_fast_or_safe(data)):  # type: ignore[misc]  # the base is chosen here
        """Refuses a mapping with a duplicate key; YAML would silently keep the last value."""

    Unique.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
    return yaml.load(data, Unique)  # noqa: S506  (both loaders are safe ones)


def _fast_or_safe(data: bytes) -> type[yaml.SafeLoader]:
    """The C loader, which takes a tenth of the time, where the text is flat and PyYAML was built with libyaml."""
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
            raise yaml.constructor.ConstructorError(None, None, f"{key} is set twice", key_node.start_mark)
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


def read(path: Path) -> dict[str, Any]:
    """The settings in a file, by name. Raises ConfigError, with the line where it is known."""
    try:
        tree = _load(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror})") from None
    except yaml.constructor.ConstructorError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(f"{path}, line {line}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: an impossible date, or not UTF-8
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path} is not YAML{place}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} must be a mapping of settings, `name: value`")
    return tree


def value(text: str) -> Any:
    """The value of a text from the environment; the text itself when it is not YAML."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return text
