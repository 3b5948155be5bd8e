"""Where documents lie. `store.class` names a store by this path, so JsonStore stays importable from here."""

from memd.memory.store.json_store import JsonStore

__all__ = ["JsonStore"]
