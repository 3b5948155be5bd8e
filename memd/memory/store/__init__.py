"""Where memories are kept. `store.class` names its class by this path, so JsonStore must stay importable from here."""

from memd.memory.store.json_store import JsonStore

__all__ = ["JsonStore"]
