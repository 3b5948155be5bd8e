"""What a setting names by its dotted path: a store, an extractor or an embedder of one's own.

It is found in an installed package or in a folder of PYTHONPATH, never in the current folder.
"""

from __future__ import annotations

import importlib
from typing import Any

from memd.errors import ConfigError


def load(setting: str, path: str) -> Any:
    """The object at this path. Raises ConfigError when it cannot be loaded."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # noqa: BLE001  (foreign code may raise anything; whatever it was, nothing is started)
        raise _unloadable(setting, error) from None


def make(setting: str, path: str, *arguments: Any) -> Any:
    """An instance of the class at this path. Raises ConfigError when it cannot be made; the class's own passes."""
    made = load(setting, path)
    try:
        return made(*arguments)
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001  (as above)
        raise _unloadable(setting, error) from None


def _unloadable(setting: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"setting {setting}: what it names cannot be loaded ({type(error).__name__}); "
        "install its package, or put its folder on PYTHONPATH"
    )
